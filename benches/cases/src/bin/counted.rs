//! Runs a case so many times, for a profiler: `counted CASE RUNS`.

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(runs)) = (arguments.next(), arguments.next()) else {
        cases::ALL.iter().for_each(|name| println!("{name}"));
        return;
    };
    let mut case = cases::prepare(&name);
    for _ in 0..runs.parse::<u64>().expect("a number") {
        (case.before)();
        (case.run)();
    }
}
