//! What becomes of what is open when its token expires.

use std::time::Duration;

use http::StatusCode;
use mcp_transport::auth::OpenStreams;
use serde_json::json;
use tokio::time::Instant;

use super::owner::open;
use super::{Site, bearing, principal};
use crate::harness::{Carriers, Cx, Wire};
use crate::listen::{TOOLS, ended, listen, tagged};
use crate::support::client::Answer;
use crate::support::request::{Call, ID};

pub fn register(wire: &mut Wire) {
    wire.modern_part_of_any("auth/ends", Carriers::Clock, listening);
    wire.any_legacy("auth/ends/general", Carriers::Clock, general);
    wire.any("auth/ends/answers", Carriers::Clock, answers);
    wire.modern_part_of_any("auth/ends/goes-on", Carriers::Clock, goes_on);
    wire.modern_part_of_any("auth/ends/no-expiry", Carriers::Clock, no_expiry);
}

/// Half a second is what the system's clock may have gone on by, which the runtime's does not know of.
fn is_about(since: Instant, seconds: u64) -> bool {
    let passed = since.elapsed();
    passed <= Duration::from_secs(seconds) && passed > Duration::from_secs(seconds) - Duration::from_millis(500)
}

/// It ends as whenever the server ends it, and a new token opens another.
async fn listening(cx: Cx) {
    let site = Site::open(cx).await;
    let call = || listen(json!({"toolsListChanged": true}));
    let started = Instant::now();
    let mut stream = site.client.send(bearing(call(), "alice.1.x.30")).await;
    stream.next_message().await.expect("an acknowledgement");
    tokio::time::sleep(Duration::from_secs(29)).await;
    site.changes.tools_list_changed();
    assert_eq!(stream.next_message().await, Some(tagged(ID, TOOLS, json!({}))));
    assert_eq!(stream.next_message().await, Some(ended(ID)));
    assert_eq!(stream.next_message().await, None);
    assert!(is_about(started, 30), "{:?}", started.elapsed());
    assert_eq!(site.service.counts().streams, 1, "the body is still held");
    drop(stream);
    assert_eq!(site.service.counts().streams, 0);
    let stream = site.client.send(bearing(call(), "alice.2.x.30")).await;
    assert_eq!(stream.status, StatusCode::OK);
}

async fn general(cx: Cx) {
    let site = Site::open(cx).await;
    let session = open(&site, "alice.1").await;
    let started = Instant::now();
    let mut stream = site.client.send(bearing(session.get(), "alice.1.x.30")).await;
    tokio::time::sleep(Duration::from_secs(29)).await;
    site.changes.tools_list_changed();
    assert_eq!(stream.next_message().await, Some(json!({"jsonrpc": "2.0", "method": TOOLS})));
    assert_eq!(stream.next_message().await, None);
    assert!(is_about(started, 30), "{:?}", started.elapsed());
    drop(stream);
    let mut stream = site.client.send(bearing(session.get(), "alice.2")).await;
    assert_eq!(stream.status, StatusCode::OK);
    site.changes.tools_list_changed();
    assert_eq!(stream.next_message().await, Some(json!({"jsonrpc": "2.0", "method": TOOLS})));
}

/// Who was let in gets the answer, however long it takes.
async fn answers(cx: Cx) {
    let site = Site::open(cx).await;
    let started = Instant::now();
    let call = Call::of(cx.revision, "prompts/get", json!({"name": "ask"}));
    let events = site.client.send(bearing(call, "alice.1.x.30")).await.events().await;
    assert_eq!(events[0]["result"]["principal"], principal("alice"));
    assert!(started.elapsed() >= Duration::from_secs(60));
}

/// Reads all the while: a stream that nobody reads is given up.
async fn hears_after_an_hour(site: &Site, mut stream: Answer) {
    let change = async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        site.changes.tools_list_changed();
    };
    let (heard, ()) = tokio::join!(stream.next_message(), change);
    assert_eq!(heard, Some(tagged(ID, TOOLS, json!({}))));
}

async fn goes_on(cx: Cx) {
    let site = Site::with(cx, |layer| layer.open_streams(OpenStreams::GoOn), |service| service).await;
    let mut stream = site.client.send(bearing(listen(json!({"toolsListChanged": true})), "alice.1.x.30")).await;
    stream.next_message().await.expect("an acknowledgement");
    hears_after_an_hour(&site, stream).await;
}

async fn no_expiry(cx: Cx) {
    let site = Site::open(cx).await;
    let mut stream = site.client.send(bearing(listen(json!({"toolsListChanged": true})), "alice.1.x")).await;
    stream.next_message().await.expect("an acknowledgement");
    hears_after_an_hour(&site, stream).await;
}
