//! Bytes that wait for clients that do not read: of one caller, and of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_transport::Limits;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{ACCOUNT, PEER, filling, serves, too_much};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, ID};
use crate::support::session::{self, accepted};

pub fn register(wire: &mut Wire) {
    wire.any("limit/each/queue-bytes-by-caller", Carriers::Clock, by_caller);
    wire.any("limit/each/queue-bytes-in-all", Carriers::Clock, in_all);
    wire.legacy_part_of_any("limit/each/queue-bytes-in-sessions", Carriers::Clock, in_sessions);
}

const PAD: usize = 10_000;

fn fill(cx: Cx, messages: usize) -> Call {
    Call::of(cx.revision, "x/fill", json!({"messages": messages, "pad": PAD}))
}

/// What has been sent, once nobody can send more.
async fn sent(sent: &AtomicUsize) -> usize {
    sleep(Duration::from_secs(1)).await;
    sent.load(Ordering::SeqCst)
}

/// Past its share each stream of a caller holds one message at a time, and its requests are refused; others are not.
async fn by_caller(cx: Cx) {
    for header in [ACCOUNT, PEER] {
        let count = Arc::new(AtomicUsize::new(0));
        // Room for three, and a bit.
        let limits = Limits::default().queue_bytes_by_caller(3 * PAD + 1000);
        let client = cx.serve(serves(filling(&count), limits)).await;
        let as_one = |call: Call| call.header(header, "one");
        let first = client.send(as_one(fill(cx, 50))).await;
        assert_eq!(sent(&count).await, 3);
        // Its share is not quite full.
        let second = client.send(as_one(fill(cx, 50))).await;
        assert_eq!(sent(&count).await, 4, "one for a stream");
        for _ in 0..3 {
            too_much(client.send(as_one(fill(cx, 0))).await, Some(ID.into())).await;
        }
        client.send(fill(cx, 0).header(header, "two")).await.result().await;
        let read = client.send(fill(cx, 50).header(header, "two")).await.events().await;
        assert_eq!(read.len(), 51);
        // Nothing is lost, and once it is read there is room again.
        assert_eq!(second.events().await.len(), 51);
        assert_eq!(first.events().await.len(), 51);
        client.send(as_one(fill(cx, 0))).await.result().await;
    }
}

/// Past the whole every stream holds one message at a time: whose client reads goes on, and nobody who has a share is
/// refused.
async fn in_all(cx: Cx) {
    let count = Arc::new(AtomicUsize::new(0));
    let limits = Limits::default().queue_bytes_in_all(3 * PAD + 1000);
    let client = cx.serve(serves(filling(&count), limits)).await;
    let unread = client.send(fill(cx, 50)).await;
    assert_eq!(sent(&count).await, 3);
    let others = [client.send(fill(cx, 50)).await, client.send(fill(cx, 50).header(ACCOUNT, "one")).await];
    assert_eq!(sent(&count).await, 5);
    let read = client.send(fill(cx, 50).header(PEER, "two")).await.events().await;
    assert_eq!(read.len(), 51);
    // A client that leaves makes room.
    drop(others);
    assert_eq!(unread.events().await.len(), 51);
    count.store(0, Ordering::SeqCst);
    let alone = client.send(fill(cx, 50)).await;
    assert_eq!(sent(&count).await, 3);
    drop(alone);
}

/// Answers that wait behind messages count; what settles what is under way is taken all the same.
async fn in_sessions(cx: Cx) {
    let count = Arc::new(AtomicUsize::new(0));
    let limits = Limits::default().queue_bytes_by_caller(PAD);
    let client = cx.serve(serves(filling(&count), limits)).await;
    let session = session::open_by(&client, session::initialize(cx.revision).header(ACCOUNT, "one")).await;
    let unread = client.send(session.call("x/fill", json!({"messages": 2, "pad": PAD})).id("unread")).await;
    sleep(Duration::from_secs(1)).await;
    too_much(session.request("x/fill", json!({})).await, Some(ID.into())).await;
    assert_eq!(session.result("ping", Value::Null).await, json!({}));
    session.cancel("unread").await;
    accepted(client.send(session.notification("notifications/initialized", Value::Null)).await).await;
    drop(unread);
    session.request("x/fill", json!({})).await.result().await;
    session.end().await;
}
