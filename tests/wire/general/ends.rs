//! What ends a session and its general stream: DELETE, a drain, and neither the cap nor time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::{Method, StatusCode};
use mcp_transport::{CancelCause, Limits, SessionEnd, StreamableHttpService};
use serde_json::{Value, json};

use super::{builder, ended, heard, listening, serving, until};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, PROTOCOL_VERSION, SESSION_ID};
use crate::support::session::{self, ACCOUNT, accepted};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.legacy("get/opens/closed-by-delete", Carriers::Every, closed_by_delete);
    wire.legacy("get/opens/closed-by-drain", Carriers::Every, closed_by_drain);
    wire.legacy("get/opens/not-evicted", Carriers::Clock, not_evicted);
    wire.legacy("delete/ends", Carriers::Every, delete_ends);
    wire.legacy("delete/ends/what-runs", Carriers::Every, what_runs);
    wire.legacy("delete/ends/judged", Carriers::Every, judged);
}

/// It ends as it should, with what was published before its end.
async fn closed_by_delete(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, stream) = listening(&client, cx.revision).await;
    service.changes().tools_list_changed();
    session.end().await;
    service.changes().prompts_list_changed();
    assert_eq!(stream.events().await, [super::list_changed("tools")]);
    until(|| service.counts().streams == 0).await;
    client.send(session.get()).await.error(StatusCode::NOT_FOUND, -32600, None).await;
}

async fn closed_by_drain(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, stream) = listening(&client, cx.revision).await;
    service.changes().tools_list_changed();
    service.drain(Duration::ZERO).await;
    service.changes().prompts_list_changed();
    assert_eq!(stream.events().await, [super::list_changed("tools")]);
    until(|| service.counts().streams == 0).await;
    client.send(session.get()).await.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
}

/// At the cap, sessions with an open stream stay, however long they have been silent.
async fn not_evicted(cx: Cx) {
    let stage = Stage::default();
    let service =
        builder(&stage).limits(Limits::default().sessions(2).unread_time(Duration::MAX)).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    let raw = session::start(&client, cx.revision).await;
    raw.result("resources/subscribe", json!({"uri": super::END})).await;
    let mut raw_stream = raw.listen().await;
    let (_ready, mut stream) = listening(&client, cx.revision).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let answer = client.send(session::initialize(cx.revision)).await;
    assert_eq!(answer.header(SESSION_ID), "");
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&1.into())).await;
    for stream in [&mut raw_stream, &mut stream] {
        assert_eq!(heard(stream, &service).await, [Value::Null; 0]);
    }
    // Without its stream it goes, and with it whatever comes after.
    drop(raw_stream);
    session::open(&client, cx.revision).await;
    client.send(raw.get()).await.error(StatusCode::NOT_FOUND, -32600, None).await;
}

/// 204 without a body; then the session is as unknown as one that never was, and the application has heard once.
async fn delete_ends(cx: Cx) {
    let stage = Stage::default();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let script = stage.script().watching(|_| (), {
        let ends = Arc::clone(&ends);
        move |session, end| ends.lock().expect("nobody panicked").push((session.id().to_owned(), end))
    });
    let service = StreamableHttpService::new(script);
    let client = cx.serve(service.clone()).await;
    let (session, other) = (session::open(&client, cx.revision).await, session::open(&client, cx.revision).await);
    let stream = session.listen().await;
    assert_eq!(service.counts().sessions, 2);
    let answer = client.send(session.delete()).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!((answer.header(CONTENT_TYPE.as_str()), answer.header(SESSION_ID)), ("", ""));
    assert_eq!(answer.text().await, "");
    ended(stream).await;
    assert_eq!(service.counts().sessions, 1);
    let gone = |call: Call, id: Option<Value>| {
        let client = client.clone();
        async move { client.send(call).await.error(StatusCode::NOT_FOUND, -32600, id.as_ref()).await }
    };
    gone(session.delete(), None).await;
    gone(session.get(), None).await;
    gone(session.call("x/echo", json!({})), Some(1.into())).await;
    gone(session.call("ping", json!({})), Some(1.into())).await;
    gone(session.notification("notifications/x", json!({})), None).await;
    gone(session.sign(session::initialize(cx.revision)), Some(1.into())).await;
    assert_eq!(*ends.lock().expect("nobody panicked"), [(session.id.clone(), SessionEnd::Deleted)]);
    assert_eq!(stage.take_runs(), 0);
    assert!(other.is_open().await);
    // Nothing is judged that a DELETE has no use for.
    let odd = other.delete().header(ACCEPT.as_str(), "image/png").header(CONTENT_TYPE.as_str(), "text/html");
    assert_eq!(client.send(odd).await.status, StatusCode::NO_CONTENT);
    assert_eq!(service.counts().sessions, 0);
}

/// Whatever runs in the session is cancelled and not answered, as if its client had cancelled each request; so is what
/// nobody waits for any more. Other sessions go on.
async fn what_runs(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    let other = session::open(&client, cx.revision).await;
    let hold = |name: &str, tell: usize, accept: &str| {
        let call = session.call("x/hold", json!({"name": name, "tell": tell})).id(name).header(ACCEPT.as_str(), accept);
        let client = client.clone();
        tokio::spawn(async move { client.send(call).await })
    };
    let either = "application/json, text/event-stream";
    let quiet = hold("quiet", 0, either);
    let streams = hold("streams", 1, either);
    let json_only = hold("json", 1, "application/json");
    let sse_only = hold("sse", 0, "text/event-stream");
    let left = hold("left", 0, either);
    let elsewhere = tokio::spawn({
        let (client, call) = (client.clone(), other.call("x/hold", json!({"name": "elsewhere"})));
        async move { client.send(call).await }
    });
    for name in ["quiet", "streams", "json", "sse", "left", "elsewhere"] {
        stage.entered(name).await;
    }
    left.abort();
    let mut streams = streams.await.expect("an answer");
    assert_eq!(streams.next_message().await.expect("an event")["method"], "notifications/x");

    session.end().await;
    for name in ["quiet", "streams", "json", "sse", "left"] {
        assert_eq!(stage.dropped(name).await, Some(CancelCause::SessionEnded), "{name}");
    }
    for answer in [quiet.await.expect("an answer"), streams, sse_only.await.expect("an answer")] {
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.events().await, [Value::Null; 0]);
    }
    accepted(json_only.await.expect("an answer")).await;
    assert!(stage.is_in("elsewhere"));
    stage.release("elsewhere");
    elsewhere.await.expect("an answer").result().await;
    until(|| service.counts().in_flight == 0 && service.counts().streams == 0).await;
}

/// Its head is judged: the other era, the version, whether there is a session, and whose it is.
async fn judged(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open_by(&client, session::initialize(cx.revision).header(ACCOUNT, "one")).await;
    let refused = async |call, status, code| client.send(call).await.error(status, code, None).await;
    let modern = client.send(session.delete().header(PROTOCOL_VERSION, "2026-07-28")).await;
    assert_eq!(modern.header(ALLOW.as_str()), "POST");
    modern.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
    for call in [session.delete(), Call::bare(Method::DELETE), session.delete().header(SESSION_ID, "none")] {
        refused(call.header(PROTOCOL_VERSION, "2025-03-27"), StatusCode::BAD_REQUEST, -32022).await;
    }
    for call in [Call::bare(Method::DELETE), Call::bare(Method::DELETE).header(PROTOCOL_VERSION, "2025-06-18")] {
        refused(call, StatusCode::BAD_REQUEST, -32600).await;
    }
    refused(session.delete().also(SESSION_ID, &session.id), StatusCode::BAD_REQUEST, -32600).await;
    let upper = session.id.to_ascii_uppercase();
    for id in ["none", "", &upper, &session.id[1..], &format!("{}x", session.id)] {
        refused(session.delete().header(SESSION_ID, id), StatusCode::NOT_FOUND, -32600).await;
    }
    for stranger in [session.delete().header(ACCOUNT, "two"), session.delete().without(ACCOUNT)] {
        refused(stranger, StatusCode::NOT_FOUND, -32600).await;
    }
    assert!(session.is_open().await);
    // The negotiated version governs, whichever served one the header names.
    assert_eq!(
        client.send(session.delete().header(PROTOCOL_VERSION, "2025-03-26")).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(service.counts().sessions, 0);
}
