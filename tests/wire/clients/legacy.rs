//! Clients in a session of 2025-11-25.

use std::time::Duration;

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use mcp_transport::{CancelCause, Revision, Revisions, StreamableHttpService};
use serde_json::{Value, json};

use super::{building, id, legacy_revisions, serving, until};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::fixture::{self, CLIENTS};
use crate::support::request::{MCP_METHOD, PROTOCOL_VERSION, SESSION_ID};
use crate::support::session::accepted;
use crate::support::sse::{Event, Frame};

const REVISION: Revision = Revision::V2025_11_25;

/// Those that do more than to look, and delete their session.
const WORKERS: [&str; 4] = ["python", "rmcp", "typescript", "typescript-v1"];

pub fn register(wire: &mut Wire) {
    for client in WORKERS {
        wire.client(REVISION, &format!("{client}/session"), Carriers::Every, move |cx| session(cx, client));
    }
    wire.client(REVISION, "inspector/session", Carriers::Every, inspector);
    wire.client(REVISION, "inspector/never-deletes", Carriers::Clock, never_deletes);
    wire.client(REVISION, "initialize-with-headers", Carriers::Every, initialize_with_headers);
    wire.client(REVISION, "last-event-id", Carriers::Every, last_event_id);
    wire.client(REVISION, "json-only", Carriers::Every, json_only);
    wire.client(REVISION, "fallback", Carriers::Every, fallback);
    wire.client(REVISION, "one-connection", Carriers::H1, one_connection);
    wire.client(REVISION, "closes-at-the-answer", Carriers::H1, closes_at_the_answer);
}

/// A client's session, opened by what it sends.
struct Session {
    client: Client,
    name: &'static str,
    id: String,
}

impl Session {
    /// Shakes hands, and opens the stream that every one of these clients opens.
    async fn open(client: &Client, name: &'static str) -> (Self, Answer) {
        let answer = client.send(fixture::call(name, "initialize", "")).await;
        let session = answer.header(SESSION_ID).to_owned();
        assert_eq!(answer.status, StatusCode::OK);
        let response = answer.json().await;
        assert_eq!(response["id"], id(name, "initialize"));
        // What the body of `initialize` asks for never makes it modern: rmcp asks for 2026-07-28.
        assert_eq!(response["result"]["protocolVersion"], REVISION.as_str());
        assert_eq!(response["result"]["capabilities"]["tools"], json!({"listChanged": true}));
        assert_ne!(session, "");
        let session = Self { client: client.clone(), name, id: session };
        accepted(session.send("initialized").await).await;
        let mut stream = session.send("get").await;
        assert_eq!((stream.status, stream.header(CONTENT_TYPE.as_str())), (StatusCode::OK, "text/event-stream"));
        assert!(matches!(stream.frame().await, Some(Frame::Comment(_))));
        (session, stream)
    }

    async fn send(&self, step: &str) -> Answer {
        self.client.send(fixture::call(self.name, step, &self.id)).await
    }

    /// Sends a request and returns its result, which must come as JSON.
    async fn result(&self, step: &str) -> Value {
        let answer = self.send(step).await;
        assert_eq!(answer.status, StatusCode::OK);
        let response = answer.json().await;
        assert_eq!(response["id"], id(self.name, step), "{response}");
        response["result"].clone()
    }

    /// Sends a request that asks for progress, and returns how many messages came before its result.
    async fn progress(&self, step: &str) -> usize {
        let token = fixture::message(self.name, step)["params"]["_meta"]["progressToken"].clone();
        assert!(token.is_u64());
        let mut messages = self.send(step).await.events().await;
        let response = messages.pop().expect("an answer");
        assert_eq!(response["id"], id(self.name, step));
        assert!(response["result"].is_object(), "{response}");
        for message in &messages {
            let progress = message["method"] == "notifications/progress";
            assert!(!progress || message["params"]["progressToken"] == token, "{message}");
        }
        messages.len()
    }
}

fn list_changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

/// All that a client does in a session, to its end.
async fn session(cx: Cx, name: &'static str) {
    let (service, mut sleeps) = serving();
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = Session::open(&client, name).await;
    assert_eq!(service.counts().sessions, 1);
    if name == "rmcp" {
        // It asks for progress of everything.
        assert_eq!(session.progress("list").await, 1);
    } else {
        assert_eq!(session.result("list").await, json!({"tools": [], "revision": REVISION.as_str()}));
    }
    assert_eq!(session.progress("count").await, 10);

    // It cancels and keeps the response open.
    let sleeping = {
        let (client, call) = (client.clone(), fixture::call(name, "sleep", &session.id));
        tokio::spawn(async move { client.send(call).await })
    };
    sleeps.entered().await;
    accepted(session.send("cancelled").await).await;
    assert_eq!(sleeps.ended().await, Some(CancelCause::Requested));
    let withheld = sleeping.await.expect("an answer");
    assert_eq!(withheld.status, StatusCode::OK);
    assert_eq!(withheld.events().await, [Value::Null; 0]);

    session.result("change").await;
    assert_eq!(stream.next_message().await, Some(list_changed()));

    // It deletes the session while the stream is open.
    let deleted = session.send("delete").await;
    assert_eq!((deleted.status, deleted.text().await.as_str()), (StatusCode::NO_CONTENT, ""));
    assert_eq!(stream.next_message().await, None);
    drop(stream);
    until(|| service.counts() == mcp_transport::Counts::default()).await;
}

/// It looks, listens and goes.
async fn inspector(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = Session::open(&client, "inspector").await;
    assert_eq!(session.result("set-level").await, json!({}));
    // It leaves out `params`.
    assert!(fixture::message("inspector", "list").get("params").is_none());
    assert_eq!(session.result("list").await["tools"], json!([]));
    service.changes().tools_list_changed();
    assert_eq!(stream.next_message().await, Some(list_changed()));
    drop(stream);
    until(|| service.counts().streams == 0).await;
    assert_eq!(service.counts().sessions, 1);
}

/// A session that its client has left ends by itself, and not before the stream is closed.
async fn never_deletes(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    let (session, stream) = Session::open(&client, "inspector").await;
    let reading = tokio::spawn(async move {
        let mut stream = stream;
        while stream.frame().await.is_some() {}
    });
    tokio::time::sleep(Duration::from_secs(2 * 60 * 60)).await;
    assert_eq!(service.counts().sessions, 1);
    reading.abort();
    let _ = reading.await;
    tokio::time::sleep(Duration::from_secs(29 * 60)).await;
    assert_eq!(service.counts().sessions, 1);
    tokio::time::sleep(Duration::from_secs(3 * 60)).await;
    assert_eq!(service.counts().sessions, 0);
    let late = session.send("list").await;
    late.error(StatusCode::NOT_FOUND, -32600, Some(&id("inspector", "list"))).await;
}

/// Clients that have spoken before, or that fall back, may send `initialize` with the headers of what they tried.
async fn initialize_with_headers(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    for name in CLIENTS {
        for revision in legacy_revisions() {
            let call = fixture::call(name, "initialize", "");
            let call = call.header(PROTOCOL_VERSION, revision.as_str()).header(MCP_METHOD, "initialize");
            let answer = client.send(call).await;
            assert_ne!(answer.header(SESSION_ID), "");
            assert_eq!(answer.result().await["protocolVersion"], REVISION.as_str());
        }
    }
    assert_eq!(service.counts().sessions, CLIENTS.len() * legacy_revisions().count());
}

/// A GET that names the last event of a stream that is over, such as the answer to `initialize`, has nothing to resume: it
/// opens the session's stream. Here no event has an id, so that there is nothing to name, and no `retry`.
async fn last_event_id(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    for name in WORKERS {
        let (session, first) = Session::open(&client, name).await;
        let resuming = || fixture::call(name, "get", &session.id).header("last-event-id", "1");
        // While the stream is open there can be no other.
        client.send(resuming()).await.error(StatusCode::CONFLICT, -32600, None).await;
        drop(first);
        until(|| service.counts().streams == 0).await;
        let mut stream = client.send(resuming()).await;
        assert_eq!(stream.status, StatusCode::OK);
        session.result("change").await;
        let plain = Event { data: Some(list_changed().to_string()), ..Event::default() };
        assert_eq!(stream.next_event().await, Some(plain));
        let mut answer = session.send("count").await;
        while let Some(event) = answer.next_event().await {
            assert_eq!((event.id, event.retry), (None, None));
        }
        session.send("delete").await;
    }
}

/// There are clients that take nothing but JSON: they get sessions and answers, and no stream.
async fn json_only(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service).await;
    let json = |call: crate::support::request::Call| call.header(ACCEPT.as_str(), "application/json");
    for name in WORKERS {
        let opened = client.send(json(fixture::call(name, "initialize", ""))).await;
        let session = opened.header(SESSION_ID).to_owned();
        opened.result().await;
        accepted(client.send(json(fixture::call(name, "initialized", &session))).await).await;
        let refused = client.send(json(fixture::call(name, "get", &session))).await;
        refused.error(StatusCode::NOT_ACCEPTABLE, -32600, None).await;
        let counted = client.send(json(fixture::call(name, "count", &session))).await;
        assert_eq!(counted.result().await, json!({"content": []}));
        let deleted = client.send(json(fixture::call(name, "delete", &session))).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    }
}

/// To clients that try `server/discover` first, a server without a modern revision is plainly legacy; one that is going
/// down settles nothing.
async fn fallback(cx: Cx) {
    let (builder, _sleeps) = building();
    let old: StreamableHttpService = builder.revisions(Revisions::legacy_only()).build().expect("a service");
    let client = cx.serve(old.clone()).await;
    let probers = ["inspector", "python", "rmcp", "typescript"];
    for name in probers {
        let answer = client.send(fixture::call(name, "discover", "")).await;
        // None of the codes that a client takes for an answer of the modern era.
        answer.error(StatusCode::BAD_REQUEST, -32600, Some(&id(name, "discover"))).await;
        Session::open(&client, name).await;
    }
    old.drain(Duration::ZERO).await;
    let (current, _sleeps) = serving();
    let other = cx.serve(current.clone()).await;
    current.drain(Duration::ZERO).await;
    for client in [client, other] {
        for name in probers {
            for step in ["discover", "initialize"] {
                let answer = client.send(fixture::call(name, step, "")).await;
                answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
            }
        }
    }
}

/// The TypeScript SDK sends one request after another on a connection: each answer has to end where it ends.
async fn one_connection(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    for name in ["typescript", "typescript-v1"] {
        let mut raw = client.raw(fixture::bytes(name, "initialize", "")).await;
        let opened = raw.until("\"id\":0}").await;
        let (_, id) = opened.split_once("mcp-session-id: ").expect("a session");
        let (id, _) = id.split_once("\r\n").expect("a header");
        for (step, end) in [
            ("initialized", "HTTP/1.1 202 Accepted"),
            ("count", "\r\n0\r\n\r\n"),
            ("list", "\"id\":1}"),
            ("delete", "HTTP/1.1 204 No Content"),
        ] {
            raw.write(fixture::bytes(name, step, id)).await;
            let seen = raw.until(end).await;
            assert!(seen.contains(end), "{step}: {seen}");
        }
        assert_eq!(service.counts(), mcp_transport::Counts::default());
    }
}

/// The others open a connection for each request, and close it when they have read the answer, not when it ends.
async fn closes_at_the_answer(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    for name in ["python", "rmcp"] {
        let (session, stream) = Session::open(&client, name).await;
        for _ in 0..10 {
            let mut raw = client.raw(fixture::bytes(name, "count", &session.id)).await;
            let answered = raw.until("\"result\"").await;
            assert!(answered.contains("\"result\""), "{answered}");
        }
        session.send("delete").await;
        drop(stream);
        until(|| service.counts() == mcp_transport::Counts::default()).await;
    }
}
