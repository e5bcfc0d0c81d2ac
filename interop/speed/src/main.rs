//! How fast servers answer on standard input and output: this crate, rmcp, and the barest loop that reads and writes
//! JSON. One run measures all, so that they share the machine's mood.
//!
//!     cargo run --release --bin stdio-speed [SECONDS]
//!
//! Each server is a child on two pipes that echoes a text. The client keeps so many calls in flight, and writes as many
//! new ones as it has read answers. CPU is the child's, of both kinds, from /proc.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

mod servers;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("--serve") => servers::serve(&arguments.next().unwrap_or_default()),
        seconds => measure(seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or(3.0)),
    }
}

fn measure(seconds: f64) {
    let time = Duration::from_secs_f64(seconds);
    println!(
        "{:<24} {:>8} {:>9} {:>12} {:>14} {:>10}",
        "server", "bytes", "in flight", "calls/s", "CPU µs a call", "MiB/s"
    );
    for (bytes, in_flight) in [(100, 64), (10 << 10, 64), (100, 1)] {
        for server in servers::ALL {
            let result = run(server, bytes, in_flight, time);
            println!(
                "{server:<24} {bytes:>8} {in_flight:>9} {:>12.0} {:>14.2} {:>10.1}",
                result.rate,
                result.cpu,
                result.rate * bytes as f64 / f64::from(1 << 20),
            );
        }
    }
}

struct Measured {
    rate: f64,
    /// Microseconds a call.
    cpu: f64,
}

fn run(server: &str, bytes: usize, in_flight: usize, time: Duration) -> Measured {
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--serve", server])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let (mut stdin, mut stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let client = r#"{"name":"speed","version":"0"}"#;
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{client}}}}}"#
    );
    stdin.write_all(format!("{hello}\n").as_bytes()).expect("a pipe");
    let mut buffer = vec![0; 1 << 20];
    await_lines(&mut stdout, &mut buffer, 1);
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").expect("a pipe");

    let (credit, credits) = channel();
    credit.send(in_flight as u64).expect("a writer");
    let writer = thread::spawn(move || write(stdin, bytes, &credits));

    let (started, mut measured_from) = (Instant::now(), None);
    let mut answered = 0_u64;
    let measured = loop {
        let lines = await_lines(&mut stdout, &mut buffer, 1);
        answered += lines;
        // The writer has gone only where the server has.
        credit.send(lines).expect("a writer");
        let now = Instant::now();
        match measured_from {
            // The first part of the time warms up.
            None if now - started > time / 5 => measured_from = Some((now, answered, cpu(&child))),
            Some((from, before, cpu_before)) if now - from > time => {
                let calls = (answered - before) as f64;
                let spent = cpu(&child) - cpu_before;
                break Measured { rate: calls / (now - from).as_secs_f64(), cpu: spent / calls };
            }
            _ => {}
        }
    };
    drop(credit);
    let _ = child.kill();
    let _ = child.wait();
    let _ = writer.join();
    measured
}

/// Writes a call for each credit: those that are there together in one write.
fn write(mut stdin: impl Write, bytes: usize, credits: &Receiver<u64>) {
    let text = "x".repeat(bytes);
    let (mut next, mut batch) = (1_u64, String::new());
    while let Ok(first) = credits.recv() {
        let count: u64 = first + credits.try_iter().sum::<u64>();
        batch.clear();
        for id in next..next + count {
            let params = format_args!(r#"{{"name":"echo","arguments":{{"text":"{text}"}}}}"#);
            let _ = writeln!(batch, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        }
        next += count;
        if stdin.write_all(batch.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads until so many lines have ended, and returns how many did.
fn await_lines(stdout: &mut impl Read, buffer: &mut [u8], least: u64) -> u64 {
    let mut lines = 0;
    while lines < least {
        let read = stdout.read(buffer).expect("a pipe");
        assert!(read > 0, "the server is gone");
        lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    lines
}

/// Microseconds that a process has spent.
fn cpu(child: &Child) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("a process");
    let nanoseconds: u64 = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    nanoseconds as f64 / 1000.0
}
