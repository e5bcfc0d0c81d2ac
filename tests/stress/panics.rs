//! A thousand panics, wherever the application's code runs.

use std::sync::Arc;

use futures::FutureExt;
use http::{Method, StatusCode};
use http_body_util::Full;
use mcp_transport::{Limits, Revision, StreamableHttpService};
use serde_json::json;
use tokio::task::JoinSet;

use super::support::{
    Acts, LEGACY, Panics, bare, call, initialize, inside, is_modern, listen, messages, named, nothing_is_left, notify,
    open, send,
};

/// Where the panic is.
#[derive(Clone, Copy, Debug)]
enum At {
    Request(&'static str),
    Destructor,
    Notification,
    Subscribe,
    Opened,
    Closed,
}

const PLACES: [At; 8] = [
    At::Request("panic/once"),
    At::Request("panic/later"),
    At::Request("panic/stream"),
    At::Destructor,
    At::Notification,
    At::Subscribe,
    At::Opened,
    At::Closed,
];

const TASKS: usize = 4;
const EACH: usize = 250;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_panics() {
    let (acts, panics) = (Arc::new(Acts::default()), Panics::default());
    let limits = Limits::default().listeners(TASKS).in_flight(1);
    let service = StreamableHttpService::builder(Arc::clone(&acts)).limits(limits).observer(panics.clone()).build();
    let service = service.expect("a service");
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let service = service.clone();
        tasks.spawn(async move {
            for number in 0..EACH {
                one(&service, task + number, Revision::ALL[number % 5], PLACES[number / 5 % 8]).await;
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(panics.count(), TASKS * EACH, "each is reported, once");
    // No place was lost: as many listeners as ever find one.
    let mut streams = Vec::new();
    for id in 0..TASKS {
        streams.push(send(&service, listen(&["a"], id)).await);
        assert_eq!(streams[id].status(), StatusCode::OK);
    }
    assert_eq!(send(&service, listen(&["a"], 9)).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(streams);
    nothing_is_left(service, acts);
}

/// One panic, and a request right behind it that does not feel it.
async fn one(service: &StreamableHttpService, number: usize, revision: Revision, at: At) {
    let session =
        if is_modern(revision) || number % 3 == 0 { None } else { Some(open(service, initialize(revision)).await) };
    let place = |request| match &session {
        Some(session) => inside(session, request),
        None => request,
    };
    match at {
        At::Request(method) => fails(service, place(call(revision, method, json!({}), 7)), 7).await,
        At::Destructor => {
            // Not in the session, whose work would not end with the connection.
            let request = call(revision, "panic/drop", json!({}), 7).map(Full::new);
            let mut answer = Box::pin(service.handle(request));
            assert!(answer.as_mut().now_or_never().is_none());
            drop(answer);
        }
        At::Notification => {
            let answer = send(service, place(notify(revision, "panic/x"))).await;
            assert_eq!(answer.status(), StatusCode::ACCEPTED);
        }
        At::Subscribe if is_modern(revision) => fails(service, listen(&["a", "panic/x", "b"], 7), 7).await,
        At::Subscribe => {
            let session = open(service, initialize(revision)).await;
            let params = json!({"uri": "panic/x"});
            fails(service, inside(&session, call(revision, "resources/subscribe", params, 7)), 7).await;
            end(service, &session).await;
        }
        At::Opened => {
            // Where there are no sessions, somebody who has them stands in.
            let revision = if is_modern(revision) { LEGACY[number % 4] } else { revision };
            let initialize = named("panic/opened", initialize(revision));
            fails(service, initialize, 1).await;
        }
        At::Closed => {
            let revision = if is_modern(revision) { LEGACY[number % 4] } else { revision };
            let session = open(service, named("panic/closed", initialize(revision))).await;
            let answer = send(service, named("panic/closed", bare(Method::DELETE, &session))).await;
            assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        }
    }
    // The same id, so that it must be free again; the only request that the session may have.
    let answer = messages(send(service, place(call(revision, "x/later", json!({}), 7))).await).await;
    assert_eq!(answer.last().expect("a response")["result"]["did"], "x/later", "after {at:?}");
    if let Some(session) = session {
        end(service, &session).await;
    }
}

/// The answer is an internal error that says no more, alone or behind what was sent before.
async fn fails(service: &StreamableHttpService, request: http::Request<bytes::Bytes>, id: usize) {
    let answer = send(service, request).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(!answer.headers().contains_key("mcp-session-id"));
    let last = messages(answer).await.pop().expect("a response");
    assert_eq!(last, json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "Internal error"}}));
}

async fn end(service: &StreamableHttpService, session: &str) {
    assert_eq!(send(service, bare(Method::DELETE, session)).await.status(), StatusCode::NO_CONTENT);
}
