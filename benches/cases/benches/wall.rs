//! Every case by the clock: `cargo bench [FILTER]`.

fn main() {
    divan::main();
}

#[divan::bench(args = cases::ALL)]
fn case(bencher: divan::Bencher<'_, '_>, name: &str) {
    let case = std::cell::RefCell::new(cases::prepare(name));
    let before = || (case.borrow_mut().before)();
    bencher.with_inputs(before).bench_local_values(|()| (case.borrow_mut().run)());
}
