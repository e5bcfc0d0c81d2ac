//! Bodies: how many bytes of them, and how long they may take.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use http_body::Frame;
use http_body_util::StreamBody;
use mcp_transport::{Limits, Revision};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{ACCOUNT, PEER, serving, too_much};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::peer::Peer;
use crate::support::request::Call;
use crate::support::server::{self, Body};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("limit/each/body-bytes-by-caller", Carriers::Every, by_caller);
    wire.any("limit/each/body-bytes-in-all", Carriers::Every, in_all);
    wire.any("limit/each/body-bytes-uncounted", Carriers::Clock, uncounted);
    wire.any("limit/each/body-bytes-kept", Carriers::Clock, kept);
    wire.any("limit/each/body-time", Carriers::Clock, time);
    wire.any("limit/each/stdio-body-bytes", Carriers::Clock, on_stdio);
}

const BODY: usize = 20_000;

/// A request that stays with the handler, padded to this length.
fn padded(cx: Cx, method: &str, name: &str, length: usize) -> Call {
    let call = Call::of(cx.revision, method, json!({ "name": name }));
    let mut bytes = Call::of(cx.revision, method, json!({ "name": name })).into_bytes();
    bytes.resize(length, b' ');
    call.raw(bytes)
}

async fn hold(client: &Client, stage: &Stage, call: Call, name: &str) -> tokio::task::JoinHandle<()> {
    let client = client.clone();
    let asking = tokio::spawn(async move { drop(client.send(call).await.result().await) });
    stage.entered(name).await;
    asking
}

/// A caller holds the bodies of its requests, and gets no more in than its share.
async fn by_caller(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().body_bytes(BODY).body_bytes_by_caller(2 * BODY);
    let client = cx.serve(serving(&stage, limits)).await;
    for header in [ACCOUNT, PEER] {
        let as_one = |call: Call| call.header(header, "one");
        let first = hold(&client, &stage, as_one(padded(cx, "x/hold", header, BODY)), header).await;
        client.send(as_one(padded(cx, "x/echo", "", BODY))).await.result().await;
        let again = format!("{header} again");
        let second = hold(&client, &stage, as_one(padded(cx, "x/hold", &again, BODY)), &again).await;
        stage.take_runs();
        // Each has left 4 KiB uncounted.
        too_much(client.send(as_one(padded(cx, "x/echo", "", 8192 + 4096 + 1))).await, None).await;
        assert_eq!(stage.take_runs(), 0, "it was not even read");
        client.send(as_one(padded(cx, "x/echo", "", 8192 + 4096))).await.result().await;
        client.send(padded(cx, "x/echo", "", BODY).header(header, "two")).await.result().await;
        client.send(padded(cx, "x/echo", "", BODY)).await.result().await;
        stage.release(header);
        first.await.expect("an answer");
        client.send(as_one(padded(cx, "x/echo", "", BODY))).await.result().await;
        stage.release(&again);
        second.await.expect("an answer");
    }
}

async fn in_all(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().body_bytes(BODY).body_bytes_by_caller(BODY).body_bytes_in_all(BODY);
    let client = cx.serve(serving(&stage, limits)).await;
    let held = hold(&client, &stage, padded(cx, "x/hold", "held", BODY), "held").await;
    let refused = client.send(padded(cx, "x/echo", "", BODY).header(ACCOUNT, "one")).await;
    assert_ne!(refused.header("retry-after"), "");
    refused.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
    client.send(padded(cx, "x/echo", "", 4096)).await.result().await;
    stage.release("held");
    held.await.expect("an answer");
    client.send(padded(cx, "x/echo", "", BODY).header(ACCOUNT, "one")).await.result().await;
}

/// Short bodies get in whatever is held.
async fn uncounted(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().body_bytes(BODY).body_bytes_by_caller(BODY).body_bytes_in_all(BODY);
    let client = cx.serve(serving(&stage, limits)).await;
    let mut held = Vec::new();
    for n in 0..50 {
        held.push(hold(&client, &stage, padded(cx, "x/hold", &n.to_string(), 4096), &n.to_string()).await);
    }
    client.send(padded(cx, "x/echo", "", BODY)).await.result().await;
    (0..50).for_each(|n| stage.release(&n.to_string()));
    for asking in held {
        asking.await.expect("an answer");
    }
}

/// What the application keeps of a body is held, and no longer than it keeps it.
async fn kept(cx: Cx) {
    let kept = Arc::new(std::sync::Mutex::new(Vec::new()));
    let script = Script::new({
        let kept = Arc::clone(&kept);
        move |request, _| {
            kept.lock().expect("nobody panicked").push(request);
            async { mcp_transport::Reply::empty() }
        }
    });
    let limits = Limits::default().body_bytes(BODY).body_bytes_by_caller(BODY).body_bytes_in_all(BODY);
    let client = cx.serve(super::serves(script, limits)).await;
    client.send(padded(cx, "x/keep", "", BODY)).await.result().await;
    let refused = client.send(padded(cx, "x/keep", "", BODY)).await;
    refused.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
    kept.lock().expect("nobody panicked").clear();
    client.send(padded(cx, "x/keep", "", BODY)).await.result().await;
}

/// A body in pieces, one every so often.
fn trickling(call: Call, piece: usize, every: Duration) -> http::Request<Body> {
    let pieces = stream::unfold(Bytes::from(call.into_bytes()), move |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        let piece = rest.split_to(piece.min(rest.len()));
        sleep(every).await;
        Some((Ok::<_, Infallible>(Frame::data(piece)), rest))
    });
    let call = Call::of(Revision::V2026_07_28, "x", json!({}));
    call.with_body(server::body(StreamBody::new(Box::pin(pieces))))
}

/// The same under the head that belongs to the body.
fn slow(cx: Cx, length: usize, piece: usize, every: Duration) -> http::Request<Body> {
    let head = Call::of(cx.revision, "x/echo", json!({"name": ""})).with_body(()).into_parts().0;
    let body = trickling(padded(cx, "x/echo", "", length), piece, every).into_body();
    http::Request::from_parts(head, body)
}

/// Whoever sends a byte now and then is turned away; whoever sends much slowly is not.
async fn time(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default())).await;
    let seconds = Duration::from_secs;
    for (length, piece, every, takes) in [
        (1024, 1, seconds(1), None),
        (1024, 1024, seconds(29), Some(29)),
        (1024, 1024, seconds(31), None),
        (1024, 100, Duration::from_millis(2600), Some(28)),
        // A MiB in 24 seconds.
        (4 << 20, 64 << 10, Duration::from_millis(1500), Some(96)),
        // A MiB in 32 seconds.
        (4 << 20, 64 << 10, seconds(2), None),
    ] {
        let since = Instant::now();
        let answer = client.send_body(slow(cx, length, piece, every)).await;
        match takes {
            Some(takes) => {
                answer.result().await;
                assert_eq!(since.elapsed().as_secs(), takes);
            }
            None => {
                answer.error(StatusCode::REQUEST_TIMEOUT, -32600, None).await;
                assert_eq!(since.elapsed().as_secs(), 30, "{piece} bytes every {every:?}");
            }
        }
    }
    let client = cx.serve(serving(&stage, Limits::default().body_time(seconds(2)))).await;
    client.send_body(slow(cx, 1024, 1024, seconds(1))).await.result().await;
    let late = client.send_body(slow(cx, 1024, 1024, seconds(3))).await;
    late.error(StatusCode::REQUEST_TIMEOUT, -32600, None).await;
}

/// On a byte stream the lines that are held count; what finds no room is refused, and what makes room is not.
async fn on_stdio(cx: Cx) {
    let stage = Stage::default();
    let heard = Arc::new(AtomicUsize::new(0));
    let script = stage.script().hearing({
        let heard = Arc::clone(&heard);
        move |_, _| {
            heard.fetch_add(1, Ordering::SeqCst);
            async {}
        }
    });
    let limits = Limits::default().body_bytes(BODY).body_bytes_by_caller(BODY);
    let mut peer = Peer::built(cx.revision, script, 1 << 20, |builder| builder.limits(limits)).ready().await;
    let pad = "x".repeat(BODY - 1000);
    peer.send(peer.request("held", "x/hold", json!({"name": "held", "pad": pad}))).await;
    stage.entered("held").await;
    peer.refused(peer.request(1, "x/echo", json!({ "pad": pad })), -32603).await;
    peer.send(peer.notification("notifications/x", json!({ "pad": pad }))).await;
    peer.send(json!({"jsonrpc": "2.0", "id": 7, "result": {"pad": pad}})).await;
    assert_eq!(peer.ask(peer.request(2, "x/echo", json!({"n": 1}))).await["n"], 1);
    assert_eq!(heard.load(Ordering::SeqCst), 0);
    let cancel = json!({"requestId": "held", "reason": pad});
    peer.send(peer.notification("notifications/cancelled", cancel)).await;
    stage.dropped("held").await;
    let answer = peer.ask(peer.request(3, "x/echo", json!({ "pad": pad }))).await;
    assert_eq!(answer["pad"], pad);
    peer.send(peer.notification("notifications/x", json!({ "pad": pad }))).await;
    peer.ask(peer.request(4, "x/echo", json!({}))).await;
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}
