//! What each client sends first, to servers of one revision each.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use mcp_transport::{CancelCause, Counts, Revision, Revisions, StreamableHttpService};
use serde_json::{Value, json};

use super::{Sleeps, building, id, legacy_revisions, until};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::fixture::{self, CLIENTS};
use crate::support::request::{Call, PROTOCOL_VERSION, SESSION_ID};
use crate::support::session::accepted;

/// Those that try `server/discover`.
pub const PROBERS: [&str; 4] = ["inspector", "python", "rmcp", "typescript"];

/// Those that were seen to delete their session.
const DELETERS: [&str; 4] = ["python", "rmcp", "typescript", "typescript-v1"];

/// Those whose opening of the transport with two endpoints was seen.
const OLD: [&str; 3] = ["python", "typescript", "typescript-v1"];

pub fn register(wire: &mut Wire) {
    for revision in legacy_revisions() {
        for name in CLIENTS {
            wire.client(revision, &format!("{name}/first"), Carriers::Every, move |cx| legacy(cx, name));
        }
        for name in OLD {
            wire.client(revision, &format!("{name}/old-transport"), Carriers::Every, move |cx| old(cx, name));
        }
    }
    let modern = Revision::V2026_07_28;
    for name in CLIENTS {
        wire.client(modern, &format!("{name}/refused"), Carriers::Every, move |cx| refused(cx, name));
    }
    for name in PROBERS {
        wire.client(modern, &format!("{name}/first"), Carriers::Every, move |cx| first(cx, name));
    }
}

/// A server of exactly these.
pub fn only(revisions: Revisions) -> (StreamableHttpService, Sleeps) {
    let (builder, sleeps) = building();
    (builder.revisions(revisions).build().expect("a service"), sleeps)
}

/// In what every one of them does, a client may name the version that was negotiated, or none at all.
async fn legacy(cx: Cx, name: &'static str) {
    let (service, _sleeps) = only(Revisions::only([cx.revision]));
    let client = cx.serve(service.clone()).await;
    let version = cx.revision.as_str();
    for names_version in [true, false] {
        if PROBERS.contains(&name) {
            let answer = client.send(fixture::call(name, "discover", "")).await;
            answer.error(StatusCode::BAD_REQUEST, -32600, Some(&id(name, "discover"))).await;
        }
        let opened = client.send(fixture::call(name, "initialize", "")).await;
        let session = opened.header(SESSION_ID).to_owned();
        assert_eq!(opened.result().await["protocolVersion"], version);

        let call = |step: &str| {
            let call = fixture::call(name, step, &session);
            if names_version { call.header(PROTOCOL_VERSION, version) } else { call.without(PROTOCOL_VERSION) }
        };
        accepted(client.send(call("initialized")).await).await;
        let mut stream = client.send(call("get")).await;
        assert_eq!((stream.status, stream.header(CONTENT_TYPE.as_str())), (StatusCode::OK, "text/event-stream"));
        let listed = response(client.send(call("list")).await).await;
        assert_eq!((&listed["id"], &listed["result"]["revision"]), (&id(name, "list"), &json!(version)));
        if DELETERS.contains(&name) {
            assert_eq!(client.send(call("delete")).await.status, StatusCode::NO_CONTENT);
            assert_eq!(stream.next_message().await, None);
            drop(stream);
            until(|| service.counts() == Counts::default()).await;
        }
    }
}

/// A message that came as JSON, or as the last of a stream.
async fn response(answer: Answer) -> Value {
    assert_eq!(answer.status, StatusCode::OK);
    if answer.header(CONTENT_TYPE.as_str()) == "text/event-stream" {
        answer.events().await.pop().expect("a response")
    } else {
        answer.json().await
    }
}

/// It opens the old transport with a GET, and learns that there is none.
async fn old(cx: Cx, name: &'static str) {
    let (service, _sleeps) = only(Revisions::only([cx.revision]));
    let client = cx.serve(service).await;
    client.send(fixture::call(name, "sse-get", "")).await.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
}

/// A server that serves nothing older says so, in a way that every one of them can show.
async fn refused(cx: Cx, name: &'static str) {
    let (service, _sleeps) = only(Revisions::modern_only());
    let client = cx.serve(service.clone()).await;
    let answer = client.send(fixture::call(name, "initialize", "")).await;
    let error = answer.error(StatusCode::BAD_REQUEST, -32022, Some(&id(name, "initialize"))).await;
    assert_eq!(error["data"]["supported"], json!([cx.revision.as_str()]));
    let steps: &[_] = if DELETERS.contains(&name) { &["get", "delete"] } else { &["get"] };
    for step in steps {
        let answer = client.send(fixture::call(name, step, "1")).await;
        answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
    }
    assert_eq!(service.counts(), Counts::default());
}

/// It asks, lists, calls, and leaves a call that it no longer wants.
async fn first(cx: Cx, name: &'static str) {
    for revisions in [Revisions::all(), Revisions::modern_only()] {
        let (service, mut sleeps) = only(revisions);
        let client = cx.serve(service.clone()).await;
        let discovered = client.send(fixture::call(name, "discover", "")).await.result().await;
        assert_eq!(discovered["supportedVersions"], json!([cx.revision.as_str()]));

        let listed = response(client.send(fixture::call(name, "modern-list", "")).await).await;
        assert_eq!(listed["id"], id(name, "modern-list"));
        assert_eq!(listed["result"]["revision"], cx.revision.as_str());
        count(&client, name).await;

        let sleeping = {
            let (client, call) = (client.clone(), fixture::call(name, "modern-sleep", ""));
            tokio::spawn(async move { client.send(call).await })
        };
        sleeps.entered().await;
        sleeping.abort();
        // Over HTTP/2 the connection is the client's, and stays.
        assert_eq!(sleeps.ended().await, Some(CancelCause::Disconnected));
        until(|| service.counts() == Counts::default()).await;
    }
}

/// Progress comes to those who asked for it, under their token; log messages to those who gave a level.
async fn count(client: &Client, name: &'static str) {
    let call: Call = fixture::call(name, "modern-count", "");
    let mut messages = client.send(call).await.events().await;
    let response = messages.pop().expect("a response");
    assert_eq!((&response["id"], &response["result"]["content"]), (&id(name, "modern-count"), &json!([])));
    let token = &fixture::message(name, "modern-count")["params"]["_meta"]["progressToken"];
    let (progress, log): (Vec<_>, Vec<_>) =
        messages.iter().partition(|message| message["method"] == "notifications/progress");
    assert_eq!(progress.len(), if token.is_null() { 0 } else { 5 });
    assert!(progress.iter().all(|message| message["params"]["progressToken"] == *token));
    assert_eq!(log.len(), 5);
    assert!(log.iter().all(|message| message["method"] == "notifications/message"));
}
