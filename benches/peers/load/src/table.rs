//! Rounds over all servers and cases, and the table of their medians.

use crate::case::{CASES, Case, Kind};
use crate::idle;
use crate::measure::{Measured, alone, measure};
use crate::server::Server;

const NAMES: [&str; 3] = ["floor", "ours", "rmcp"];
const FLOOR: usize = 0;

/// The servers that a case is asked of.
fn asked(case: &Case) -> &'static [usize] {
    match case.kind {
        Kind::Modern | Kind::Notify => &[0, 1, 2],
        Kind::Raw => &[0],
        Kind::Session => &[1, 2],
        Kind::SessionNotify => &[],
    }
}

/// The case whose floor a case is compared with.
fn floor_of(case: &Case) -> &'static str {
    match (case.kind, case.bytes) {
        (Kind::Notify, _) => "notify-100",
        (_, 100) => "json-100",
        (_, 10_240) => "json-10k",
        _ => "json-1m",
    }
}

pub async fn print(paths: [&str; 3], rounds: usize) {
    let servers = paths.map(|path| Server::start(path, &[]));
    let idle = servers.each_ref().map(Server::resident);
    let mut all: Vec<(&Case, usize, Vec<Measured>)> = Vec::new();
    for case in &CASES {
        all.extend(asked(case).iter().map(|server| (case, *server, Vec::new())));
    }
    for round in 0..rounds {
        for (case, server, measured) in &mut all {
            measured.push(measure(&servers[*server], case).await);
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    drop(servers);
    print_calls(&all);
    print_memory(paths, idle).await;
    print_nagle(paths).await;
}

fn print_calls(all: &[(&Case, usize, Vec<Measured>)]) {
    println!("| case | server | CPU µs a request | ÷ floor | requests/s | p50 µs | p99 µs |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for (case, server, measured) in all {
        let floor = all.iter().find(|(floor, at, _)| *at == FLOOR && floor.name == floor_of(case));
        let floor = floor.map(|(_, _, floor)| floor).expect("the floor of every case");
        // Within one round, so that both had the machine's same mood.
        let ratio = median(measured.iter().zip(floor).map(|(ours, floor)| ours.cpu / floor.cpu));
        let of = |field: fn(&Measured) -> f64| median(measured.iter().map(field));
        println!(
            "| {} | {} | {:.1} | {ratio:.2} | {:.0} | {:.0} | {:.0} |",
            case.name,
            NAMES[*server],
            of(|m| m.cpu),
            of(|m| m.rate),
            of(|m| m.p50),
            of(|m| m.p99),
        );
    }
}

async fn print_memory([floor, ours, rmcp]: [&str; 3], idle: [f64; 3]) {
    println!("\n| resident memory, KiB | floor | ours | rmcp |\n|---|---:|---:|---:|");
    let row = |name: &str, values: [Option<f64>; 3]| {
        let cell = |value: Option<f64>| value.map_or("–".to_owned(), |bytes| format!("{:.1}", bytes / 1024.0));
        println!("| {name} | {} | {} | {} |", cell(values[0]), cell(values[1]), cell(values[2]));
    };
    row("idle process", idle.map(Some));
    let call = CASES[0].request(None);
    let mut connections = [None; 3];
    for (cell, path) in connections.iter_mut().zip([floor, ours, rmcp]) {
        *cell = Some(idle::connections(path, &call).await);
    }
    row("an idle connection", connections);
    row("an idle session", [None, Some(idle::sessions(ours).await), Some(idle::sessions(rmcp).await)]);
    let floor = Some(idle::floor_gets(floor).await);
    row(
        "an idle GET stream, its session and connection",
        [floor, Some(idle::gets(ours).await), Some(idle::gets(rmcp).await)],
    );
    row(
        "an idle listen stream and its connection",
        [floor, Some(idle::listens(ours).await), Some(idle::listens(rmcp).await)],
    );
}

/// Streams of a session where Nagle's algorithm is on: they must not stall.
async fn print_nagle([_, ours, rmcp]: [&str; 3]) {
    let case = CASES.iter().find(|case| case.kind == Kind::SessionNotify).expect("the case");
    println!("\n| a streamed session call, Nagle on | ms |\n|---|---:|");
    for (name, path) in [("ours", ours), ("rmcp", rmcp)] {
        let server = Server::start(path, &[("NAGLE", "1")]);
        println!("| {name} | {:.2} |", alone(&server, case).await);
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
