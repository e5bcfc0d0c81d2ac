//! The general stream of a session: what GET opens, how long it stays, and what it carries.

mod carries;
mod ends;
mod second;

use std::time::Duration;

use http::StatusCode;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use mcp_transport::{Capabilities, Era, Limits, Principal, Revision, StreamableHttpBuilder, StreamableHttpService};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::request::{MCP_METHOD, PROTOCOL_VERSION, SESSION_ID};
use crate::support::session::{self, ACCOUNT, Session};
use crate::support::sse::Frame;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.legacy("get/opens", Carriers::Every, opens);
    wire.legacy("get/opens/judged", Carriers::Every, judged);
    wire.legacy("get/opens/keep-alive", Carriers::Clock, keep_alive);
    wire.legacy("get/opens/keep-alive-after-events", Carriers::Clock, keep_alive_after_events);
    wire.legacy("get/opens/holds-its-session", Carriers::Clock, holds_its_session);
    wire.only(Revision::V2024_11_05, "http/no-sse-transport/in-session", Carriers::Every, no_endpoint_event);
    second::register(wire);
    carries::register(wire);
    ends::register(wire);
}

/// A server that declares every change there is.
fn builder(stage: &Stage) -> StreamableHttpBuilder {
    let capabilities = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
    let script = stage.script().declaring(capabilities.resources_subscribe().logging());
    StreamableHttpService::builder(script).principal(|head| {
        let account = head.headers.get(ACCOUNT)?.to_str().ok()?;
        Some(Principal::new(account))
    })
}

fn serving(stage: &Stage) -> StreamableHttpService {
    builder(stage).build().expect("a service")
}

/// The one resource that every session of these tests subscribes to.
const END: &str = "file:///end";

/// Opens a session and its stream, and subscribes to [`END`].
async fn listening(client: &Client, revision: Revision) -> (Session, Answer) {
    let session = session::open(client, revision).await;
    assert_eq!(session.result("resources/subscribe", json!({"uri": END})).await, json!({}));
    let stream = session.listen().await;
    (session, stream)
}

/// Everything that has been published so far and goes to this stream: resource updates come after list changes, and in
/// their order.
async fn heard(stream: &mut Answer, service: &StreamableHttpService) -> Vec<Value> {
    service.changes().resource_updated(END);
    let mut heard = Vec::new();
    loop {
        let message = stream.next_message().await.expect("the stream goes on");
        if message == updated(END) {
            return heard;
        }
        heard.push(message);
    }
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

fn list_changed(list: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")})
}

/// Reads a stream to its end. What it says on the way does not matter.
async fn ended(mut stream: Answer) {
    while stream.frame().await.is_some() {}
}

/// Waits for what has no other sign than its effect.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// It opens at once, before the client says that it is ready too, and its first byte is there.
async fn opens(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let before = session::start(&client, cx.revision).await;
    let after = session::open(&client, cx.revision).await;
    for session in [before, after] {
        let begun = Instant::now();
        let mut stream = client.send(session.get()).await;
        assert_eq!(stream.status, StatusCode::OK);
        assert_eq!(stream.header(CONTENT_TYPE.as_str()), "text/event-stream");
        assert_eq!(stream.header(CACHE_CONTROL.as_str()), "no-store");
        assert_eq!(stream.header("x-accel-buffering"), "no");
        assert!(matches!(stream.frame().await, Some(Frame::Comment(_))));
        assert!(begun.elapsed() < Duration::from_secs(10), "long before the first keep-alive");
        assert_eq!(service.counts().streams, 1);
        drop(stream);
        until(|| service.counts().streams == 0).await;
    }
}

/// Its head is judged: what it accepts, its version, its session, in that order.
async fn judged(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open_by(&client, session::initialize(cx.revision).header(ACCOUNT, "one")).await;
    let refused = async |call, status, code| client.send(call).await.error(status, code, None).await;
    for accept in ["application/json", "text/html", "text/event-stream;q=0", "application/*"] {
        let call = session.get().header(ACCEPT.as_str(), accept);
        refused(call, StatusCode::NOT_ACCEPTABLE, -32600).await;
        let worse =
            session.get().header(ACCEPT.as_str(), accept).header(PROTOCOL_VERSION, "1").header(SESSION_ID, "none");
        refused(worse, StatusCode::NOT_ACCEPTABLE, -32600).await;
    }
    for version in ["2025-03-27", "1", ""] {
        let call = session.get().header(PROTOCOL_VERSION, version).header(SESSION_ID, "none");
        let error = refused(call, StatusCode::BAD_REQUEST, -32022).await;
        assert_eq!(error["data"]["supported"].as_array().map(Vec::len), Some(4));
    }
    let modern =
        client.send(session.get().header(PROTOCOL_VERSION, "2026-07-28").header(ACCEPT.as_str(), "text/html")).await;
    assert_eq!(modern.header(ALLOW.as_str()), "POST");
    modern.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
    refused(session.get().also(SESSION_ID, &session.id), StatusCode::BAD_REQUEST, -32600).await;
    for stranger in [session.get().header(ACCOUNT, "two"), session.get().without(ACCOUNT)] {
        refused(stranger, StatusCode::NOT_FOUND, -32600).await;
    }
    assert_eq!(service.counts().streams, 0);

    let served = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy);
    let named = served.map(|revision| session.get().header(PROTOCOL_VERSION, revision.as_str()));
    let accepting = ["*/*", "text/*", "application/json, text/event-stream;q=0.1", "Text/Event-Stream"];
    let accepting = accepting.map(|accept| session.get().header(ACCEPT.as_str(), accept));
    // Nothing is kept that an id could be of; neither headers of the other era nor a `Content-Type` mean anything here.
    let others = [
        session.get().without(ACCEPT.as_str()),
        session.get().header("last-event-id", "17"),
        session.get().header("last-event-id", ""),
        session.get().header(MCP_METHOD, "subscriptions/listen"),
        session.get().header(CONTENT_TYPE.as_str(), "text/plain"),
    ];
    for call in named.chain(accepting).chain(others) {
        let mut stream = client.send(call).await;
        assert_eq!(stream.status, StatusCode::OK);
        assert!(matches!(stream.frame().await, Some(Frame::Comment(_))));
        drop(stream);
        until(|| service.counts().streams == 0).await;
    }
}

/// Comments come at every interval, within a tenth, for as long as it is silent.
async fn keep_alive(cx: Cx) {
    let stage = Stage::default();
    let eager = Limits::default().keep_alive(Duration::from_secs(2));
    let eager = builder(&stage).limits(eager).build().expect("a service");
    for (service, interval) in [(serving(&stage), Duration::from_secs(15)), (eager, Duration::from_secs(2))] {
        let client = cx.serve(service).await;
        let session = session::open(&client, cx.revision).await;
        let mut stream = session.listen().await;
        let mut intervals = Vec::new();
        for _ in 0..200 {
            let before = Instant::now();
            assert!(matches!(stream.frame().await, Some(Frame::Comment(_))));
            intervals.push(before.elapsed());
        }
        let (least, most) = (interval.mul_f64(0.9), interval.mul_f64(1.1) + Duration::from_millis(2));
        assert!(intervals.iter().all(|interval| (least..=most).contains(interval)), "{intervals:?}");
        intervals.sort();
        assert!(intervals[0] + interval.mul_f64(0.1) < intervals[199], "they are spread: {intervals:?}");
    }
}

/// An event is as good as a comment: the silence begins anew after it.
async fn keep_alive_after_events(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (_session, mut stream) = listening(&client, cx.revision).await;
    for _ in 0..20 {
        // Read all the while: only then is there a timer.
        let (frame, ()) = tokio::join!(stream.frame(), async {
            sleep(Duration::from_secs(13)).await;
            service.changes().tools_list_changed();
        });
        let Some(Frame::Event(event)) = frame else { panic!("a comment too early") };
        assert_eq!((event.id, event.retry), (None, None), "nothing to resume from");
    }
    let before = Instant::now();
    assert!(matches!(stream.frame().await, Some(Frame::Comment(_))));
    assert!((13..17).contains(&before.elapsed().as_secs()));
}

/// An open stream holds its session open; the idle time counts from its end.
async fn holds_its_session(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    assert!(timeout(Duration::from_secs(3 * 3600), async { while stream.frame().await.is_some() {} }).await.is_err());
    assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
    drop(stream);
    sleep(Duration::from_secs(29 * 60)).await;
    let stream = session.listen().await;
    drop(stream);
    sleep(Duration::from_secs(29 * 60)).await;
    assert!(session.is_open().await);
    sleep(Duration::from_secs(31 * 60)).await;
    client.send(session.get()).await.error(StatusCode::NOT_FOUND, -32600, None).await;
}

/// The stream of a 2024-11-05 session is the general one: it never says where to post.
async fn no_endpoint_event(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
    assert_eq!(session.result("ping", Value::Null).await, json!({}));
    session.end().await;
    assert_eq!(stream.events().await, [Value::Null; 0]);
}
