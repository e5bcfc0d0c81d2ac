//! The end of the server.

use std::time::Instant;

use http::StatusCode;
use serde_json::json;
use tokio::net::TcpStream;

use super::{EVERYONE, REACHABLE, Suite};
use crate::hosts::DRAIN;
use crate::site::{Site, soon, spawn, text};

pub(super) fn register(suite: &mut Suite) {
    suite.case("drain/calls", EVERYONE, calls);
    suite.case("drain/listeners", REACHABLE, listeners);
}

/// New calls are turned away, one that is in flight ends, another is cut and answered, and then the server is gone.
async fn calls(mut site: Site) {
    let ends = spawn(site.tool("wait", json!({ "streaming": false })));
    site.tally(|tally| tally.begun == 1).await;
    let forever = json!({ "streaming": true, "forever": true });
    let mut cut = soon(site.tool("wait", forever).stream()).await;
    assert_eq!(soon(cut.next()).await.unwrap()["method"], "notifications/progress");
    site.tally(|tally| tally.begun == 2).await;

    let begun = Instant::now();
    site.running.stop();
    soon(async {
        while site.tool("echo", json!({ "text": "late" })).await.status != StatusCode::SERVICE_UNAVAILABLE {
            tokio::task::yield_now().await;
        }
    })
    .await;
    site.running.workshop.gate.add_permits(1);
    assert_eq!(text(&soon(ends).await.unwrap()), "let go on");
    assert_eq!(soon(cut.finish()).await.error()["code"], -32603);
    soon(site.running.ended()).await;
    assert!(begun.elapsed() < DRAIN * 2, "{:?}", begun.elapsed());
    assert!(TcpStream::connect(site.running.remote.address).await.is_err());
}

/// Streams that would never end hold nothing up.
async fn listeners(mut site: Site) {
    let stream = soon(site.listen()).await;
    site.streams(1).await;
    let begun = Instant::now();
    site.running.stop();
    let rest = soon(stream.finish()).await;
    assert_eq!(rest.messages.len(), usize::from(site.modern()), "{rest}");
    soon(site.running.ended()).await;
    assert!(begun.elapsed() < DRAIN, "{:?}", begun.elapsed());
}
