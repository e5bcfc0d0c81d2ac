//! Clients of every era come and go over real sockets, for as long as one likes, and nothing grows.
//!
//!     cargo run --release --manifest-path interop/Cargo.toml --bin soak -- [seconds, 60 by default]
//!
//! A round is a few seconds of many clients over HTTP/1.1, HTTP/2 and Unix sockets, who leave in the middle of anything
//! or read slowly. Then either they stop and all becomes quiet, or the server is drained under them. After each round no
//! request is in flight, no stream or session is open, and no more is allocated than after the first rounds, within
//! [`BYTES`], [`BLOCKS`] and [`RESIDENT`].

mod clients;
mod memory;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcp_transport::{Changes, Counts};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::clients::{Random, Tally};
use self::memory::Memory;
use self::server::Server;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Rounds whose highest figures are what all later ones are measured by.
const WARM_UP: usize = 4;

/// More bytes than that, allocated when all is quiet, are a leak.
const BYTES: isize = 64 << 10;
/// The same in blocks: far fewer than there were clients in a round.
const BLOCKS: isize = 100;
/// The same as the kernel counts: the allocator keeps pages for itself.
const RESIDENT: isize = 24 << 20;

const CLIENTS: u64 = 24;
const ROUND: Duration = Duration::from_secs(4);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let seconds = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let (begun, tally) = (Instant::now(), Arc::new(Tally::default()));
    let mut base = Memory::default();
    let mut drains = 0;
    for round in 0.. {
        if round > WARM_UP && begun.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        let (in_flight, cut) = one_round(round, &tally).await;
        drains += usize::from(in_flight > 0);
        let now = Memory::now();
        println!("{:>5} s, round {round}: {now}; drained: {in_flight} in flight, {cut} cut", begun.elapsed().as_secs());
        if round < WARM_UP {
            base = base.most(now);
            continue;
        }
        let grown = (now.bytes - base.bytes, now.blocks - base.blocks, now.resident - base.resident);
        assert!(grown.0 < BYTES && grown.1 < BLOCKS && grown.2 < RESIDENT, "grown by {grown:?} since {base}");
    }
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    println!(
        "{} s: {} connections ({} killed), {} requests, {} answers read to their end, {} refusals, {} streams resumed, \
         {drains} drains under load; after warm-up {base}, at the end {}",
        begun.elapsed().as_secs(),
        count(&tally.connections),
        count(&tally.killed),
        count(&tally.requests),
        count(&tally.answers),
        count(&tally.refused),
        count(&tally.resumed),
        Memory::now(),
    );
    assert!(count(&tally.answers) > 100 && count(&tally.killed) > 10, "that was no load");
}

/// What was in flight when the round's drain began, and how much of it was cut: nothing where the clients went first.
async fn one_round(round: usize, tally: &Arc<Tally>) -> (usize, usize) {
    let changes = Changes::new();
    let server = Server::start(&changes).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for client in 0..CLIENTS {
        let (tally, over, changes, address) = (Arc::clone(tally), Arc::clone(&over), changes.clone(), server.address);
        tasks.spawn(async move {
            for life in 0.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let random = Random::new((round as u64) << 32 | client << 20 | life);
                match client % 4 {
                    0 => clients::stream(&changes, &tally, random).await,
                    _ => clients::http(address, &tally, random).await,
                }
            }
        });
    }
    let begun = Instant::now();
    while begun.elapsed() < ROUND {
        changes.tools_list_changed();
        changes.resource_updated("a");
        sleep(Duration::from_millis(3)).await;
    }
    let mut drained = (0, 0);
    if round % 2 == 1 {
        let report = timeout(Duration::from_secs(5), server.service.drain(Duration::from_millis(500))).await;
        let report = report.expect("a drain that hangs");
        drained = (report.in_flight, report.cut);
    }
    over.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a client that has nothing to complain of");
    }
    quiet(&server).await;
    server.stop().await;
    drop(changes);
    // Connections that were closed go in tasks of their own.
    sleep(Duration::from_millis(100)).await;
    drained
}

/// Work ends, streams are given up, sessions expire.
async fn quiet(server: &Server) {
    let counts = || server.service.counts();
    let waiting = async {
        while counts() != Counts::default() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), waiting).await.unwrap_or_else(|_| panic!("something is left: {:?}", counts()));
}
