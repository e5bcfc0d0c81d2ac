//! A stream whose request was cancelled, and one whose session has ended.

use http::StatusCode;
use mcp_transport::CancelCause;
use serde_json::Value;

use super::{Bench, after, read, rest, resume, said};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::ID;

pub fn register(wire: &mut Wire) {
    wire.legacy("resume/cancelled", Carriers::Every, cancelled);
    wire.legacy("resume/cancelled/away", Carriers::Every, cancelled_while_away);
    wire.legacy("resume/cancelled/session", Carriers::Every, session_ended);
    wire.legacy("cancel/disconnect/resumed", Carriers::Every, disconnected);
}

/// It ends for whoever reads it, and for whoever comes back to it: what was sent, and no answer.
async fn cancelled(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    run.say(1).await;
    let mut stream = resume(&session, &first).await;
    let (second, message) = read(&mut stream).await.expect("an event");
    assert_eq!(message, said(1));
    session.cancel(ID).await;
    assert_eq!(run.cx.cancelled().await, CancelCause::Requested);
    assert_eq!(rest(stream).await, [Value::Null; 0]);
    for _ in 0..3 {
        assert_eq!(rest(resume(&session, &first).await).await, [said(1)]);
        // There is nothing left to read, and it is not the general stream that reads on: there was no answer.
        assert_eq!(rest(resume(&session, &second).await).await, [Value::Null; 0]);
    }
}

/// The same where nobody was there when it was cancelled.
async fn cancelled_while_away(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    run.say(1).await;
    session.cancel(ID).await;
    run.cx.cancelled().await;
    while bench.service.counts().in_flight > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    run.cx.notify("notifications/late", serde_json::json!({})).await.expect("an object");
    assert_eq!(rest(resume(&session, &first).await).await, [said(1)]);
}

/// With its session all that was kept is gone, and what is being read ends.
async fn session_ended(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    let stream = resume(&session, &first).await;
    session.end().await;
    assert_eq!(run.cx.cancelled().await, CancelCause::SessionEnded);
    assert_eq!(rest(stream).await, [Value::Null; 0]);
    bench.client.send(after(&session, &first)).await.error(StatusCode::NOT_FOUND, -32600, None).await;
    let other = bench.session(cx).await;
    super::refused(&other, &first).await;
}

/// A lost connection is no cancellation, however often it is lost.
async fn disconnected(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    for _ in 0..5 {
        let stream = resume(&session, &first).await;
        bench.leave(stream).await;
    }
    assert_eq!((run.cx.cancel_cause(), bench.service.counts().in_flight), (None, 1));
    run.answer("a");
    assert_eq!(rest(resume(&session, &first).await).await.len(), 1);
}
