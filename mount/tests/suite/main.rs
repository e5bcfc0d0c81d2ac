//! One handler in every framework, and one suite that each of them passes.
//!
//! A trial is named `host/caller/case`, so that `cargo test --test suite -- actix/` picks what it says.

mod cases;
mod hosts;
mod site;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most of a trial is waiting.
    arguments.test_threads.get_or_insert(8);
    libtest_mimic::run(&arguments, cases::trials()).exit_code()
}
