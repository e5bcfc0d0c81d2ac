//! The load generator: starts servers on one core, loads them from another in interleaved rounds, and prints a table.
//!
//!     load table FLOOR OURS RMCP [ROUNDS]   what ../run does
//!     load calls PORT CASE CALLS            so many calls on one connection, for a profiler

mod case;
mod client;
mod idle;
mod measure;
mod server;
mod table;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match arguments[..] {
        ["table", floor, ours, rmcp] => runtime.block_on(table::print([floor, ours, rmcp], 7)),
        ["table", floor, ours, rmcp, rounds] => {
            runtime.block_on(table::print([floor, ours, rmcp], rounds.parse().expect("a number")));
        }
        ["calls", port, case, calls] => {
            let case = case::CASES.iter().find(|known| known.name == case).expect("a case");
            let (port, calls) = (port.parse().expect("a port"), calls.parse().expect("a number"));
            runtime.block_on(client::calls(port, case, calls));
        }
        _ => panic!("load table FLOOR OURS RMCP [ROUNDS], or load calls PORT CASE CALLS"),
    }
}
