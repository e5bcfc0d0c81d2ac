//! How costs grow: with the sessions that are open, with the listeners that are told, with the sessions that expire.
//!
//!     cargo run --release --bin scale [SESSIONS]
//!
//! Prints Markdown. 1,000,000 sessions, the default, take about 3 GB, half of which is what the program keeps of them.

use std::time::{Duration, Instant};

use cases::kit::{Again, RUNTIME, now, open, text};
use cases::{handler::Tools, stream_cases::Listeners};
use http::HeaderValue;
use mcp_transport::{Limits, Revision, StreamableHttpService};
use serde_json::json;

const LEGACY: Revision = Revision::V2025_11_25;
const ROUNDS: usize = 7;
const CALLS: usize = 20_000;

fn main() {
    let most = std::env::args().nth(1).map_or(1_000_000, |most| most.parse().expect("a number"));
    let _guard = RUNTIME.enter();
    requests(most);
    publishes();
    expiry(most / 10);
}

/// A service with sessions open, and what names them.
struct Open {
    service: StreamableHttpService,
    ids: Vec<HeaderValue>,
    bytes: usize,
    /// Each call in another session.
    everywhere: Vec<f64>,
    /// All calls in ten of them.
    in_ten: Vec<f64>,
}

impl Open {
    fn new(count: usize, idle: Duration) -> Self {
        let limits = Limits::default().sessions(count).sessions_by_caller(count).session_idle(idle);
        let service = StreamableHttpService::builder(Tools(2)).limits(limits).build().expect("limits");
        let mut ids = Vec::with_capacity(count);
        let before = resident();
        ids.extend((0..count).map(|_| open(&service, LEGACY).parse::<HeaderValue>().expect("a value")));
        let bytes = resident().saturating_sub(before) / count;
        Self { service, ids, bytes, everywhere: Vec::new(), in_ten: Vec::new() }
    }

    /// Nanoseconds of a call, each in another of so many sessions.
    fn round(&self, call: &Again, among: usize) -> f64 {
        let mut spent = Duration::ZERO;
        for number in 0..CALLS {
            let mut request = call.once();
            // A prime step: neighbours are far from each other.
            let id = &self.ids[number.wrapping_mul(7_368_787) % among];
            request.headers_mut().insert("mcp-session-id", id.clone());
            let begun = Instant::now();
            let response = cases::kit::poll(&self.service, request);
            spent += begun.elapsed();
            assert!(response.status().is_success());
        }
        spent.as_nanos() as f64 / CALLS as f64
    }
}

fn requests(most: usize) {
    let call = Again::call(LEGACY, "echo", json!({ "text": text(100) }));
    let mut all: Vec<_> = [10, 10_000, most].map(|count| Open::new(count, Duration::from_secs(3600))).into();
    for _ in 0..ROUNDS {
        for open in &mut all {
            let time = open.round(&call, open.ids.len());
            open.everywhere.push(time);
            let time = open.round(&call, 10);
            open.in_ten.push(time);
        }
    }
    println!(
        "| sessions open | ns a call, each in another | ÷ 10 sessions | ns a call, in ten of them | ÷ 10 sessions | bytes \
         each, their ids included |\n|---:|---:|---:|---:|---:|---:|"
    );
    let first = [median(&all[0].everywhere), median(&all[0].in_ten)];
    for open in &all {
        let times = [median(&open.everywhere), median(&open.in_ten)];
        let [everywhere, in_ten] = [times[0] / first[0], times[1] / first[1]];
        println!(
            "| {} | {:.0} | {everywhere:.2} | {:.0} | {in_ten:.2} | {} |",
            open.ids.len(),
            times[0],
            times[1],
            open.bytes
        );
    }
}

fn publishes() {
    println!("\n| listeners | ns of the publish call, each | ns to read it, each |\n|---:|---:|---:|");
    for count in [1, 1_000, 10_000, 100_000] {
        let mut listeners = Listeners::open(count);
        let (mut told, mut read) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            listeners.service.changes().tools_list_changed();
            told.push(begun.elapsed().as_nanos() as f64 / count as f64);
            let begun = Instant::now();
            assert_eq!(listeners.read(), count);
            read.push(begun.elapsed().as_nanos() as f64 / count as f64);
        }
        println!("| {count} | {:.0} | {:.0} |", median(&told), median(&read));
    }
}

/// Sessions that expire all at once, while one client goes on calling.
fn expiry(count: usize) {
    let open = Open::new(count, Duration::from_secs(3));
    let call = Again::call(Revision::V2026_07_28, "echo", json!({ "text": text(100) }));
    let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
    RUNTIME.block_on(async {
        while open.service.counts().sessions > 0 && begun.elapsed() < Duration::from_secs(120) {
            let asked = Instant::now();
            assert!(now(&open.service, &call).status().is_success());
            tokio::task::yield_now().await;
            slowest = slowest.max(asked.elapsed());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    println!(
        "\n{count} sessions expired together: all gone after {:.1} s, the longest time that a call beside them waited: {:.1} ms",
        begun.elapsed().as_secs_f64(),
        slowest.as_secs_f64() * 1e3
    );
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Resident bytes of this process. Pages are taken to be 4 KiB.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}
