//! How the serving of a byte stream ends.

use std::time::Duration;

use mcp_transport::{
    CancelCause, Error, ErrorKind, Exchange, ExchangeEnd, Limits, Observer, Reply, RequestContext, ServeEnd,
    StdioTransport,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::frame::Log;
use crate::harness::{Carriers, Cx, Wire};
use crate::listen::{all, script};
use crate::support::handler::Script;
use crate::support::peer::Peer;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("stdio/eof", Carriers::Clock, requests_answer_before_the_end);
    wire.any("stdio/eof/late", Carriers::Clock, what_takes_too_long_is_cancelled);
    wire.any("stdio/eof/stuck", Carriers::Clock, a_peer_that_reads_nothing_holds_nobody_up);
    wire.any("stdio/eof/hooks", Carriers::Clock, notifications_are_heard_out);
    wire.modern_part_of_any("stdio/eof/listens", Carriers::Clock, listens_end_at_once);
    wire.any("stdio/peer-gone", Carriers::Clock, a_failing_write_cancels_all);
    wire.any("stdio/peer-gone/dropped", Carriers::Clock, dropping_it_cancels_all);
    wire.any("stdio/eof/once", Carriers::Clock, served_once);
    wire.any("stdio/eof/observer", Carriers::Clock, an_observer_that_panics_leaves_nobody_waiting);
    wire.any("shutdown/drain/stdio", Carriers::Clock, drained);
    wire.any("shutdown/drain/stdio-late", Carriers::Clock, drained_past_the_deadline);
    wire.any("shutdown/drain/stdio-stuck", Carriers::Clock, drained_with_a_peer_that_reads_nothing);
    wire.any("shutdown/drain/stdio-before", Carriers::Clock, drained_before_it_was_served);
    wire.any("shutdown/drain/stdio-idle", Carriers::Clock, drained_at_once_while_idle);
}

async fn hold(peer: &mut Peer, stage: &Stage, names: std::ops::Range<u32>) {
    for id in names {
        peer.send(peer.request(id, "x/hold", json!({"name": id.to_string()}))).await;
        stage.entered(&id.to_string()).await;
    }
}

async fn requests_answer_before_the_end(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    hold(&mut peer, &stage, 0..10).await;
    peer.finish().await;
    for id in 0..10 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stage.release(&id.to_string());
        assert_eq!(peer.heard().await["id"], id);
    }
    assert_eq!(peer.next().await, None);
    assert_eq!(peer.served().await, ServeEnd::EndOfInput);
}

async fn what_takes_too_long_is_cancelled(cx: Cx) {
    for seconds in [30, 2] {
        let limits =
            if seconds == 30 { Limits::default() } else { Limits::default().drain_time(Duration::from_secs(2)) };
        let stage = Stage::default();
        let mut peer =
            Peer::built(cx.revision, stage.script(), 1 << 20, |builder| builder.limits(limits)).ready().await;
        hold(&mut peer, &stage, 0..3).await;
        stage.release("1");
        assert_eq!(peer.heard().await["id"], 1);
        let started = Instant::now();
        let (end, said) = peer.end().await;
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!(end, ServeEnd::EndOfInput);
        let mut ids: Vec<_> =
            said.iter().map(|answer| (answer["id"].as_u64(), answer["error"]["code"].as_i64())).collect();
        ids.sort_unstable();
        assert_eq!(ids, [(Some(0), Some(-32603)), (Some(2), Some(-32603))]);
        assert_eq!(stage.dropped("0").await, Some(CancelCause::Drained));
    }
}

async fn a_peer_that_reads_nothing_holds_nobody_up(cx: Cx) {
    let mut peer = Peer::built(cx.revision, Stage::default().script(), 512, |builder| builder).ready().await;
    for id in 0..10 {
        peer.send(peer.request(id, "x/echo", json!({"text": "x".repeat(200)}))).await;
    }
    peer.finish().await;
    let started = Instant::now();
    // Kept open by the peer, and never read.
    assert_eq!(peer.served().await, ServeEnd::EndOfInput);
    assert_eq!(started.elapsed().as_secs(), 31);
}

async fn notifications_are_heard_out(cx: Cx) {
    let log = Log::default();
    let script = Stage::default().script().hearing({
        let log = log.clone();
        move |notification, _| {
            let log = log.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                log.add(notification.method());
            }
        }
    });
    let mut peer = Peer::silent(cx.revision, script);
    peer.send(peer.notification("x/one", json!({}))).await;
    peer.send(peer.notification("x/two", json!({}))).await;
    assert_eq!(peer.end().await.0, ServeEnd::EndOfInput);
    assert_eq!(log.take(), ["x/one", "x/two"]);
}

async fn listens_end_at_once(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, script());
    for id in 0..5 {
        peer.send(peer.request(id, "subscriptions/listen", json!({"notifications": all(&["a"])}))).await;
    }
    assert_eq!(peer.heard_all(5).await.len(), 5);
    let started = Instant::now();
    let (end, said) = peer.end().await;
    assert!(started.elapsed() < Duration::from_millis(100));
    assert_eq!(end, ServeEnd::EndOfInput);
    assert_eq!(said.iter().filter(|message| message["result"].is_object()).count(), 5);
    assert_eq!(said.len(), 10);
}

async fn a_failing_write_cancels_all(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    hold(&mut peer, &stage, 0..10).await;
    let transport = peer.transport.clone();
    stage.release("0");
    // Both directions at once: what is written fails.
    let end = peer.leave().await;
    assert!(matches!(end, ServeEnd::PeerGone), "{end:?}");
    for id in 1..10 {
        assert_eq!(stage.dropped(&id.to_string()).await, Some(CancelCause::Disconnected));
    }
    assert_eq!(transport.counts(), mcp_transport::Counts::default());
}

async fn dropping_it_cancels_all(cx: Cx) {
    let stage = Stage::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let transport = StdioTransport::new(stage.script(), reader, writer);
    let served = transport.clone();
    let serving = tokio::spawn(async move { served.serve().await });
    let (from, mut to) = tokio::io::split(ours);
    let request = crate::support::peer::request(cx.revision, 1, "x/hold", json!({"name": "held"}));
    tokio::io::AsyncWriteExt::write_all(&mut to, format!("{request}\n").as_bytes()).await.expect("a pipe");
    stage.entered("held").await;
    serving.abort();
    assert_eq!(stage.dropped("held").await, Some(CancelCause::Disconnected));
    let _ = serving.await;
    crate::listen::until(|| transport.counts() == mcp_transport::Counts::default()).await;
    drop((from, to));
}

async fn served_once(cx: Cx) {
    let mut peer = Peer::open(cx.revision, Stage::default().script()).await;
    assert_eq!(peer.ask(peer.request(1, "x/echo", json!({"n": 1}))).await["n"], 1);
    let transport = peer.transport.clone();
    assert_eq!(transport.serve().await.as_ref().map_err(Error::kind), Err(ErrorKind::Served));
    assert_eq!(peer.end().await.0, ServeEnd::EndOfInput);
    assert_eq!(transport.serve().await.as_ref().map_err(Error::kind), Err(ErrorKind::Served));
}

/// What an observer throws takes the answer it was told of along, and an error stands in for it.
async fn an_observer_that_panics_leaves_nobody_waiting(cx: Cx) {
    struct Bad;
    impl Observer for Bad {
        fn exchange_ended(&self, exchange: &Exchange<'_>, _: ExchangeEnd) {
            assert!(!exchange.method().starts_with("x/bad"), "as asked");
        }
    }
    let script = Script::new(|request, _| async move {
        if request.method() == "x/bad-later" {
            tokio::task::yield_now().await;
        }
        Reply::empty()
    });
    let mut peer = Peer::built(cx.revision, script, 1 << 20, |builder| builder.observer(Bad)).ready().await;
    for method in ["x/bad", "x/bad-later"] {
        peer.refused(peer.request(1, method, Value::Null), -32603).await;
        peer.ask(peer.request(1, "x/good", Value::Null)).await;
    }
    assert_eq!(peer.end().await.0, ServeEnd::EndOfInput);
}

async fn drained(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    hold(&mut peer, &stage, 0..3).await;
    let transport = peer.transport.clone();
    let draining = tokio::spawn(async move { transport.drain(Duration::from_secs(30)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Told by its id, since there is no exchange it could be told by.
    peer.refused(peer.request("new", "x/echo", Value::Null), -32603).await;
    peer.send(peer.notification("notifications/cancelled", json!({"requestId": 0}))).await;
    assert_eq!(stage.dropped("0").await, Some(CancelCause::Requested));
    for id in 1..3 {
        stage.release(&id.to_string());
        assert_eq!(peer.heard().await["result"]["name"], id.to_string());
    }
    assert_eq!(peer.next().await, None);
    let report = draining.await.expect("a report");
    assert_eq!((report.in_flight, report.cut), (3, 0));
    assert_eq!(peer.served().await, ServeEnd::Drained);
}

async fn drained_past_the_deadline(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    hold(&mut peer, &stage, 0..3).await;
    let started = Instant::now();
    let report = peer.transport.drain(Duration::from_secs(7)).await;
    assert_eq!((report.in_flight, report.cut, started.elapsed().as_secs()), (3, 3, 7));
    for answer in peer.heard_all(3).await {
        assert_eq!(answer["error"]["code"], -32603);
    }
    assert_eq!(peer.next().await, None);
    assert_eq!(peer.served().await, ServeEnd::Drained);
}

async fn drained_with_a_peer_that_reads_nothing(cx: Cx) {
    let mut peer = Peer::built(cx.revision, Stage::default().script(), 512, |builder| builder).ready().await;
    for id in 0..10 {
        peer.send(peer.request(id, "x/echo", json!({"text": "x".repeat(200)}))).await;
    }
    let started = Instant::now();
    peer.transport.drain(Duration::from_secs(7)).await;
    assert_eq!(started.elapsed().as_secs(), 8);
    assert_eq!(peer.served().await, ServeEnd::Drained);
}

async fn drained_before_it_was_served(cx: Cx) {
    let (_ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let transport = StdioTransport::new(Script::new(|_, _: RequestContext| async { Reply::empty() }), reader, writer);
    assert_eq!(transport.drain(Duration::from_secs(5)).await, mcp_transport::DrainReport::default());
    assert_eq!(transport.serve().await.ok(), Some(ServeEnd::Drained));
    assert!(cx.revision <= mcp_transport::Revision::V2026_07_28);
}

async fn drained_at_once_while_idle(cx: Cx) {
    let peer = Peer::open(cx.revision, Stage::default().script()).await;
    let started = Instant::now();
    mcp_transport::drain_all(&[&peer.transport], Duration::from_secs(30)).await;
    assert!(started.elapsed() < Duration::from_millis(100));
    assert_eq!(peer.served().await, ServeEnd::Drained);
}
