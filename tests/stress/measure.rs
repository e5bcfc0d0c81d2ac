//! What it costs to be idle: a report, no test.

use std::fs::read_to_string;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use http::Method;
use http_body_util::BodyExt;
use mcp_transport::{Limits, ResponseBody, Revision, StreamableHttpService};

use super::support::{Acts, bare, initialize, listen, open, ready, send};

const COUNT: usize = 10_000;

/// Resident bytes of this process, where the kernel says so. Pages are taken to be 4 KiB.
fn resident() -> usize {
    let statm = read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}

fn report(what: &str, before: usize, size: usize) {
    let each = resident().saturating_sub(before) / COUNT;
    println!("{what}: {each} resident bytes each, of which {size} are the response's body itself");
}

/// Reads until there is nothing more to read, as a connection does: the keep-alive timer is then set.
fn settle(body: &mut ResponseBody) {
    while body.frame().now_or_never().is_some() {}
}

fn publish(service: &StreamableHttpService, what: &str) {
    type Publish = fn(&mcp_transport::Changes);
    let changes: [(&str, Publish); 3] = [
        ("a list", |changes| changes.tools_list_changed()),
        ("a resource all subscribed to", |changes| changes.resource_updated("file:///some/resource.txt")),
        ("a resource nobody subscribed to", |changes| changes.resource_updated("file:///nobody")),
    ];
    for (change, publish) in changes {
        for again in ["", ", told already and not read"] {
            let since = Instant::now();
            publish(service.changes());
            println!("one publish of {change}{again}, to {COUNT} {what}: {:?}", since.elapsed());
        }
    }
}

#[tokio::test]
#[ignore = "a measurement"]
async fn idle_sessions() {
    let service = StreamableHttpService::new(Arc::new(Acts::default()));
    let before = resident();
    let mut sessions = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let session = open(&service, initialize(Revision::V2025_11_25)).await;
        ready(&service, Revision::V2025_11_25, &session).await;
        sessions.push(session);
    }
    report("idle sessions, their ids kept by the test", before, 0);
    let before = resident();
    let mut streams = Vec::with_capacity(COUNT);
    for session in &sessions {
        let mut body = send(&service, bare(Method::GET, session)).await.into_body();
        settle(&mut body);
        streams.push(body);
    }
    report("idle GET streams", before, size_of::<ResponseBody>());
    publish(&service, "GET streams");
}

#[tokio::test]
#[ignore = "a measurement"]
async fn idle_listeners() {
    let limits = Limits::default().keep_alive(Duration::from_secs(3600));
    let service = StreamableHttpService::builder(Arc::new(Acts::default())).limits(limits).build().expect("a service");
    let before = resident();
    let mut streams = Vec::with_capacity(COUNT);
    for id in 0..COUNT {
        let mut body = send(&service, listen(&["file:///some/resource.txt"], id)).await.into_body();
        settle(&mut body);
        streams.push(body);
    }
    report("idle listeners", before, size_of::<ResponseBody>());
    publish(&service, "listeners");
}
