//! A finished answer waits for its client.

use std::time::Duration;

use http::StatusCode;
use mcp_transport::Limits;
use serde_json::Value;
use tokio::time::sleep;

use super::{Bench, after, answered, read, refused, rest, resume, said};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::ID;

pub fn register(wire: &mut Wire) {
    wire.legacy("resume/kept", Carriers::Every, kept);
    wire.legacy("resume/kept/time", Carriers::Clock, time);
    wire.legacy("resume/kept/session", Carriers::Clock, holds_no_session);
    wire.legacy("resume/kept/id-is-free", Carriers::Every, id_is_free);
    wire.legacy("resume/kept/json", Carriers::Every, json);
}

/// Until it is read, and while it may not have arrived.
async fn kept(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    run.say(1).await;
    run.answer("a");
    bench.streams(0).await;
    // The comment has arrived and nothing else.
    for _ in 0..3 {
        bench.leave(resume(&session, &first).await).await;
    }
    for _ in 0..3 {
        assert_eq!(rest(resume(&session, &first).await).await, [said(1), answered(ID, "a")]);
    }
}

/// For ten minutes, or for as long as is configured.
async fn time(cx: Cx) {
    let brief = Limits::default().stored_for(Duration::from_secs(7));
    for (limits, time) in [(Limits::default(), 600), (brief, 7)] {
        let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
        let session = bench.session(cx).await;
        let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
        bench.leave(stream).await;
        run.answer("a");
        sleep(Duration::from_millis(time * 1000 - 10)).await;
        let mut stream = resume(&session, &first).await;
        let (last, message) = read(&mut stream).await.expect("an event");
        assert_eq!(message, answered(ID, "a"));
        sleep(Duration::from_millis(20)).await;
        refused(&session, &first).await;
        refused(&session, &last).await;
    }
}

/// It holds no session open: that ends after its idle time, and the answer with it.
async fn holds_no_session(cx: Cx) {
    let limits = Limits::default().session_idle(Duration::from_secs(60)).unread_time(Duration::MAX);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(bench.service.counts().sessions, 1, "the work itself does");
    run.answer("a");
    sleep(Duration::from_secs(59)).await;
    // So does whoever reads.
    let (stream, run, second) = bench.streaming(session.call("x/work", Value::Null)).await;
    drop(stream);
    let reading = resume(&session, &second).await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(bench.service.counts().sessions, 1);
    run.answer("b");
    drop(reading);
    sleep(Duration::from_secs(70)).await;
    assert_eq!(bench.service.counts().sessions, 0);
    for id in [&first, &second] {
        bench.client.send(after(&session, id)).await.error(StatusCode::NOT_FOUND, -32600, None).await;
    }
}

/// A request is answered when its answer is made: its id may be used again, and both answers are there.
async fn id_is_free(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut firsts = Vec::new();
    for n in 0..3 {
        let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
        bench.leave(stream).await;
        run.answer(&format!("{n}"));
        while bench.service.counts().in_flight > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        firsts.push(first);
    }
    for (n, first) in firsts.iter().enumerate() {
        assert_eq!(rest(resume(&session, first).await).await, [answered(ID, &format!("{n}"))]);
    }
}

/// Where no event was sent there is nothing to come back to: an answer that is no stream is gone with its connection.
async fn json(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    asking.abort();
    assert!(asking.await.is_err());
    // Until the server knows, the answer may still take a form.
    sleep(Duration::from_millis(20)).await;
    run.say(0).await;
    run.answer("a");
    while bench.service.counts().in_flight > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let call = session.call("x/quick", Value::Null);
    assert_eq!(bench.client.send(call).await.json().await["result"], serde_json::json!({}));
}
