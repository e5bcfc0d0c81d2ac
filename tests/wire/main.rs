//! The wire contract, seen from outside: every requirement of `ledger.txt` under every revision it speaks of, over
//! HTTP/1.1, HTTP/2 and, where time matters, in process under a clock that only moves when all is quiet.
//!
//! A trial is named `revision/area/name` and its kind is the carrier, so that `cargo test --test wire -- 2025-06-18/`
//! and `cargo test --test wire -- http/405` pick what they say.

#![allow(clippy::needless_pass_by_value)] // a value made for one call is nobody's else

mod auth;
mod batch;
mod clients;
mod cors;
mod dialogue;
mod era;
mod exchange;
mod general;
mod harness;
mod http;
mod ladder;
mod ledger;
mod legacy;
mod limits;
mod listen;
mod modern;
mod origin;
mod principals;
mod publish;
mod result;
mod resume;
mod sessionless;
mod shutdown;
mod stdio;
#[allow(dead_code)] // a kit: what it offers is there before the test that needs it
mod support;

use std::process::ExitCode;

use harness::Wire;
use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut wire = Wire::default();
    support::check::register(&mut wire);
    clients::register(&mut wire);
    ladder::register(&mut wire);
    http::register(&mut wire);
    era::register(&mut wire);
    sessionless::register(&mut wire);
    legacy::register(&mut wire);
    origin::register(&mut wire);
    cors::register(&mut wire);
    dialogue::register(&mut wire);
    modern::register(&mut wire);
    exchange::register(&mut wire);
    batch::register(&mut wire);
    general::register(&mut wire);
    shutdown::register(&mut wire);
    listen::register(&mut wire);
    principals::register(&mut wire);
    publish::register(&mut wire);
    resume::register(&mut wire);
    limits::register(&mut wire);
    result::register(&mut wire);
    auth::register(&mut wire);
    stdio::register(&mut wire);
    libtest_mimic::run(&arguments, wire.into_trials()).exit_code()
}
