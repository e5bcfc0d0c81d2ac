//! A transport that drains still lets clients read on what they have begun to read.

use std::time::Duration;

use http::StatusCode;
use mcp_transport::EventStore;
use serde_json::Value;
use tokio::time::sleep;

use super::{Bench, LAST_EVENT_ID, after, answered, listen, read, rest, resume, said};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{ID, PROTOCOL_VERSION, SESSION_ID};

pub fn register(wire: &mut Wire) {
    wire.any_legacy("shutdown/drain/resuming", Carriers::Every, drain);
    wire.any_legacy("shutdown/drain/resuming-without-a-store", Carriers::Every, without_a_store);
}

/// The stream of an answer that is being made is read on; nothing new is opened.
async fn drain(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    let mut general = listen(&session).await;
    bench.service.changes().tools_list_changed();
    let (of_general, _) = read(&mut general).await.expect("an event");
    bench.leave(general).await;
    bench.service.changes().prompts_list_changed();
    let service = bench.service.clone();
    let draining = tokio::spawn(async move { service.drain(Duration::from_secs(10)).await });
    sleep(Duration::from_millis(5)).await;

    let unavailable = async |call| {
        let answer = bench.client.send(call).await;
        assert_ne!(answer.header("retry-after"), "");
        answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
    };
    unavailable(session.get()).await;
    unavailable(session.get().header(LAST_EVENT_ID, "")).await;
    unavailable(after(&session, &first).header(SESSION_ID, "AAAAAAAAAAAAAAAAAAAAAA")).await;
    unavailable(after(&session, &first).without(SESSION_ID)).await;
    unavailable(after(&session, &first).header(PROTOCOL_VERSION, "2026-07-28")).await;
    super::refused(&session, "AAAAAAAAAAAAAAAAAAAAAA-1").await;

    let mut stream = resume(&session, &first).await;
    run.say(1).await;
    assert_eq!(read(&mut stream).await.expect("an event").1, said(1));
    assert!(!draining.is_finished());
    run.answer("a");
    let (last, message) = read(&mut stream).await.expect("an event");
    assert_eq!((message, read(&mut stream).await), (answered(ID, "a"), None));
    drop(stream);
    let report = draining.await.expect("nobody panicked");
    assert_eq!((report.in_flight, report.cut), (1, 0));

    assert_eq!(rest(resume(&session, &first).await).await, [said(1), answered(ID, "a")]);
    // There is no general stream any more.
    unavailable(after(&session, &last)).await;
    unavailable(after(&session, &of_general)).await;
}

/// Where nothing is kept a GET with an id is one like any other.
async fn without_a_store(cx: Cx) {
    let bench = Bench::with(cx, |builder| builder.event_store(EventStore::None)).await;
    let session = bench.session(cx).await;
    bench.service.drain(Duration::ZERO).await;
    let answer = bench.client.send(after(&session, "AAAAAAAAAAAAAAAAAAAAAA-1")).await;
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
}
