//! A handler lets the connection go, and the client comes back when it was told to (2025-11-25).

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use mcp_transport::Revision;
use serde_json::Value;
use tokio::time::sleep;

use super::{Bench, answered, read, rest, resume, said, skip_mark};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::request::ID;

pub fn register(wire: &mut Wire) {
    let wire = &mut *wire;
    wire.only(Revision::V2025_11_25, "resume/poll", Carriers::Every, poll);
    wire.only(Revision::V2025_11_25, "resume/poll/streaming", Carriers::Every, streaming);
    wire.only(Revision::V2025_11_25, "resume/poll/answered-at-once", Carriers::Every, answered_at_once);
    wire.only(Revision::V2025_11_25, "resume/poll/json-only", Carriers::Every, json_only);
    wire.only(Revision::V2025_11_25, "resume/poll/general", Carriers::Every, general);
    wire.only(Revision::V2025_11_25, "resume/poll/many-times", Carriers::Clock, many_times);
}

const RETRY: Duration = Duration::from_millis(1234);

/// The last event of a connection that the server lets go: how long to wait, and from where to read on.
async fn let_go(mut stream: Answer) -> String {
    let event = stream.next_event().await.expect("an event");
    assert_eq!((event.retry, event.data.as_deref()), (Some(RETRY), Some("")));
    assert_eq!(stream.next_event().await, None, "the connection ends");
    event.id.expect("an id")
}

/// Before anything was sent: the answer becomes a stream for it. The GET may be let go as well.
async fn poll(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    assert!(run.cx.close_connection(RETRY));
    let mut stream = asking.await.expect("an answer");
    assert_eq!(stream.header(CONTENT_TYPE.as_str()), "text/event-stream");
    let first = skip_mark(&mut stream, cx.revision).await.expect("an id");
    let mut id = let_go(stream).await;
    assert_ne!(id, first);
    for n in 0..3 {
        bench.streams(0).await;
        assert!(!run.cx.close_connection(RETRY), "there is none to let go");
        run.say(n).await;
        let mut stream = resume(&session, &id).await;
        assert_eq!(read(&mut stream).await.expect("an event").1, said(n));
        assert!(run.cx.close_connection(RETRY));
        id = let_go(stream).await;
    }
    assert_eq!((bench.service.counts().in_flight, run.cx.cancel_cause()), (1, None));
    let stream = resume(&session, &id).await;
    run.answer("a");
    assert_eq!(rest(stream).await, [answered(ID, "a")]);
    let all: Vec<_> = [said(0), said(1), said(2), answered(ID, "a")].into();
    assert_eq!(rest(resume(&session, &first).await).await, all, "the ends of connections are no part of the stream");
}

/// What was sent before it goes is read first, and what is sent after is not.
async fn streaming(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (mut stream, run, _) = bench.streaming(session.call("x/work", Value::Null)).await;
    run.say(1).await;
    assert!(run.cx.close_connection(RETRY));
    assert!(!run.cx.close_connection(Duration::ZERO), "it goes already");
    run.say(2).await;
    let cx = run.cx.clone();
    run.answer("a");
    while bench.service.counts().in_flight > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(!cx.close_connection(RETRY), "it is answered");
    assert_eq!(read(&mut stream).await.expect("an event").1, said(1));
    let id = let_go(stream).await;
    assert_eq!(rest(resume(&session, &id).await).await, [said(2), answered(ID, "a")]);
}

/// One that answers in the same breath is answered as if it had not: there is nothing to come back for.
async fn answered_at_once(cx: Cx) {
    let script = super::Script::new(|_, cx| async move {
        assert!(cx.close_connection(RETRY));
        mcp_transport::Reply::of(serde_json::json!({}))
    });
    let service = super::StreamableHttpService::builder(script).event_store(super::EventStore::InMemory).build();
    let client = cx.serve(service.expect("a service")).await;
    let session = super::session::open(&client, cx.revision).await;
    assert_eq!(session.result("x/quick", Value::Null).await, serde_json::json!({}));
    let call = session.call("x/quick", Value::Null).header(ACCEPT.as_str(), "text/event-stream");
    let mut stream = client.send(call).await;
    skip_mark(&mut stream, cx.revision).await;
    assert_eq!(rest(stream).await.len(), 1);
}

/// A client that takes only JSON has nothing to come back to.
async fn json_only(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null).header(ACCEPT.as_str(), "application/json"));
    let run = bench.run().await;
    assert!(!run.cx.close_connection(RETRY));
    run.answer("a");
    assert_eq!(asking.await.expect("an answer").json().await, answered(ID, "a"));
}

/// The general stream of a server that shuts down says when to come back; the one that is superseded does not.
async fn general(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut older = session.listen().await;
    let id = skip_mark(&mut older, cx.revision).await.expect("an id");
    let mut stream = resume(&session, &id).await;
    assert_eq!(older.next_event().await, None);
    let ended = bench.session(cx).await;
    let mut its_stream = super::listen(&ended).await;
    ended.end().await;
    assert_eq!(its_stream.next_event().await, None, "nor does that of a session that is over");
    let (_, event) = tokio::join!(bench.service.drain(Duration::from_secs(5)), async {
        let event = stream.next_event().await;
        assert_eq!(stream.next_event().await, None);
        drop(stream);
        event.expect("an event")
    });
    assert_eq!((event.retry, event.data.as_deref()), (Some(Duration::from_secs(5)), Some("")));
    assert!(event.id.is_some());
}

/// A task of an hour whose client is connected for moments.
async fn many_times(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    assert!(run.cx.close_connection(RETRY));
    let mut stream = asking.await.expect("an answer");
    skip_mark(&mut stream, cx.revision).await;
    let mut id = let_go(stream).await;
    for n in 0..120 {
        sleep(Duration::from_secs(30)).await;
        run.say(n).await;
        let mut stream = resume(&session, &id).await;
        assert_eq!(read(&mut stream).await.expect("an event").1, said(n));
        assert!(run.cx.close_connection(RETRY));
        id = let_go(stream).await;
    }
    run.answer("a");
    assert_eq!(rest(resume(&session, &id).await).await, [answered(ID, "a")]);
}
