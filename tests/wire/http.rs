//! What every HTTP request meets, beyond the tables of [`ladder`](crate::ladder): section 1 of the contract.

mod bodies;
mod ids;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER};
use http::{Method, StatusCode};
use mcp_transport::{Limits, Reply, Revisions, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::{Carrier, Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, MCP_METHOD, MCP_NAME, PROTOCOL_VERSION, SESSION_ID};
use crate::support::seen::Seen;

pub fn register(wire: &mut Wire) {
    bodies::register(wire);
    ids::register(wire);
    wire.any("http/rungs/draining", Carriers::Every, draining);
    wire.any("http/refusal-codes", Carriers::Every, refusal_codes);
    wire.any("http/refusal-codes/no-echo", Carriers::Every, no_echo);
    wire.any("http/slash", Carriers::Every, any_path);
    wire.any("http/slash/mounted", Carriers::Every, mounted);
    wire.any("http/accept-delete", Carriers::Every, accept_delete);
    wire.any("http/headers-never", Carriers::Every, headers_never);
    wire.any("http/405-allow", Carriers::Every, other_methods);
    wire.any("http/405-allow/post-alone", Carriers::Every, other_methods_without_legacy);
    wire.any("http/202-empty", Carriers::Every, accepted_is_empty);
}

/// A service of which little is asked, and what reached its handler.
fn service() -> (StreamableHttpService, Seen) {
    let seen = Seen::default();
    let builder = StreamableHttpService::builder(seen.script()).limits(Limits::default().body_bytes(4096));
    (builder.allow_host("localhost").allow_host("127.0.0.1").build().expect("a service"), seen)
}

/// A right request, of a method that only the handler knows.
fn right(cx: Cx) -> Call {
    Call::of(cx.revision, "x/ask", json!({}))
}

/// A GET, DELETE or any other request without a body, from a client of the trial's revision.
fn bodyless(cx: Cx, method: Method) -> Call {
    let call = Call::bare(method);
    if right(cx).headers.contains_key(PROTOCOL_VERSION) {
        call.header(PROTOCOL_VERSION, cx.revision.as_str())
    } else {
        call
    }
}

/// Methods that are never served. They are told apart by case.
fn other_verbs() -> Vec<Method> {
    let extension = |name: &[u8]| Method::from_bytes(name).expect("a method");
    let extensions = [extension(b"post"), extension(b"Post"), extension(b"MCP"), extension(b"QUERY")];
    [Method::PUT, Method::PATCH, Method::HEAD, Method::TRACE].into_iter().chain(extensions).collect()
}

/// While one request is still being answered, nothing else is taken; that one is.
async fn draining(cx: Cx) {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = {
        let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
        Script::new(move |_, _| {
            let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
            async move {
                entered.notify_one();
                leave.notified().await;
                Reply::empty()
            }
        })
    };
    let service = StreamableHttpService::new(script);
    let client = cx.serve(service.clone()).await;
    let first = tokio::spawn({
        let (client, call) = (client.clone(), right(cx));
        async move { client.send(call).await }
    });
    entered.notified().await;

    let mut drain = pin!(service.drain(Duration::from_secs(10)));
    assert!(poll_fn(|cx| Poll::Ready(drain.as_mut().poll(cx).is_pending())).await, "a request is in flight");
    for call in [right(cx), right(cx).notification()] {
        turned_away(client.send(call).await).await;
    }
    let verbs = [Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT, Method::PATCH, Method::TRACE];
    for verb in verbs {
        turned_away(client.send(bodyless(cx, verb.clone())).await).await;
        turned_away(client.send(bodyless(cx, verb).header(SESSION_ID, "none")).await).await;
    }
    let head = client.send(bodyless(cx, Method::HEAD)).await;
    assert_eq!(head.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!head.header(RETRY_AFTER.as_str()).is_empty());
    assert_eq!(head.text().await, "");

    leave.notify_one();
    assert!(first.await.expect("an answer").result().await.is_object());
    let report = drain.await;
    assert_eq!((report.in_flight, report.cut), (1, 0));
    turned_away(client.send(right(cx)).await).await;
}

async fn turned_away(answer: Answer) {
    let seconds: u64 = answer.header(RETRY_AFTER.as_str()).parse().expect("seconds");
    assert!(seconds > 0, "a client that comes back at once finds the same");
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
}

/// Each status has its code, whatever forms of answer the client takes.
async fn refusal_codes(cx: Cx) {
    let (open, seen) = service();
    let (shut, _) = service();
    shut.drain(Duration::ZERO).await;
    let (open, shut) = (cx.serve(open).await, cx.serve(shut).await);
    for accept in ["application/json", "text/event-stream", "application/json, text/event-stream", "*/*"] {
        let asking = |call: Call| call.header(ACCEPT.as_str(), accept);
        let post = || asking(right(cx));
        for verb in [Method::POST, Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT] {
            let mut call = post();
            call.method = verb;
            refused(&shut, call, StatusCode::SERVICE_UNAVAILABLE, -32603).await;
        }
        let evil = |call: Call| call.header(ORIGIN.as_str(), "https://evil.test");
        for verb in [Method::GET, Method::DELETE, Method::OPTIONS, Method::PUT] {
            refused(&open, evil(asking(bodyless(cx, verb))), StatusCode::FORBIDDEN, -32600).await;
        }
        refused(&open, evil(post()), StatusCode::FORBIDDEN, -32600).await;
        refused(&open, post().header(HOST.as_str(), "evil.test"), StatusCode::FORBIDDEN, -32600).await;
        refused(&open, asking(bodyless(cx, Method::PUT)), StatusCode::METHOD_NOT_ALLOWED, -32600).await;
        let plain = post().header(CONTENT_TYPE.as_str(), "text/plain");
        refused(&open, plain, StatusCode::UNSUPPORTED_MEDIA_TYPE, -32600).await;
        refused(&open, post().raw([b' '; 5000]), StatusCode::PAYLOAD_TOO_LARGE, -32600).await;
        if cx.modern() {
            refused(&open, asking(Call::modern("ping", json!({}))), StatusCode::NOT_FOUND, -32601).await;
            refused(&open, asking(bodyless(cx, Method::GET)), StatusCode::METHOD_NOT_ALLOWED, -32600).await;
            continue;
        }
        // Also where the method is one that nobody knows: a 404 speaks of the session, and of it alone.
        for method in ["x/ask", "no/such/method", "server/discover", "subscriptions/listen", "initialize", "ping"] {
            let call = asking(Call::legacy(cx.revision, method, json!({}))).header(SESSION_ID, "none");
            refused(&open, call, StatusCode::NOT_FOUND, -32600).await;
        }
        let gone = asking(bodyless(cx, Method::DELETE)).header(SESSION_ID, "none");
        refused(&open, gone, StatusCode::NOT_FOUND, -32600).await;
    }
    let accept = right(cx).header(ACCEPT.as_str(), "text/html");
    refused(&open, accept, StatusCode::NOT_ACCEPTABLE, -32600).await;
    assert_eq!(seen.methods(), [""; 0]);
}

/// Sends what is refused with this status and code, in JSON, with the request's id or with none.
async fn refused(client: &Client, call: Call, status: StatusCode, code: i64) {
    let id = (status == StatusCode::NOT_FOUND).then(|| call.body["id"].clone()).filter(|id| !id.is_null());
    client.send(call).await.error(status, code, id.as_ref()).await;
}

/// A word in every place that a peer can fill comes back in none.
async fn no_echo(cx: Cx) {
    const WORD: &str = "xyzzy7";
    let (service, _) = service();
    let client = cx.serve(service).await;
    let mut calls = Vec::new();
    for name in [ORIGIN.as_str(), HOST.as_str(), CONTENT_TYPE.as_str(), ACCEPT.as_str(), MCP_METHOD, SESSION_ID] {
        calls.push(right(cx).header(name, WORD));
    }
    calls.push(Call::of(cx.revision, "tools/call", json!({"name": "a"})).header(MCP_NAME, WORD));
    calls.push(Call::of(cx.revision, "tools/call", json!({"name": WORD})).header(MCP_NAME, "a"));
    for body in [
        format!("{{\"id\":1,\"jsonrpc\":\"{WORD}\",\"method\":\"{WORD}\"}}"),
        format!("{{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[\"{WORD}\"]}}"),
        format!("{{\"id\":{{\"{WORD}\":1}},\"jsonrpc\":\"2.0\",\"method\":\"x\"}}"),
        format!("{{\"{WORD}\":{WORD}}}"),
        format!("\"{WORD}\""),
        format!("[\"{WORD}\""),
        format!("{{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"{WORD}\",\"params\":{{\"name\":1,\"name\":\"{WORD}\"}}}}"),
    ] {
        calls.push(right(cx).raw(body));
    }
    let mut path = bodyless(cx, Method::GET);
    path.path = format!("/{WORD}?{WORD}");
    calls.push(path);
    for call in calls {
        let answer = client.send(call).await;
        let (status, headers) = (answer.status, format!("{:?}", answer.headers));
        let text = answer.text().await;
        assert!(!text.contains(WORD) && !headers.contains(WORD), "{status} {headers} {text}");
        // Nor is it told what parsed it.
        for tell in ["mcp_transport", "serde", "line 1", "column", "::", ".rs"] {
            assert!(!text.contains(tell), "{tell:?} in {text}");
        }
    }
}

/// The service has no opinion about paths.
async fn any_path(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    for path in ["/", "/mcp", "/mcp/", "//", "/a/b/c", "/mcp?x=1", "/mcp/?", "/%2e%2e/mcp"] {
        let mut call = right(cx);
        path.clone_into(&mut call.path);
        let answer = client.send(call).await;
        assert_eq!(answer.header("location"), "");
        assert_eq!(answer.result().await["method"], "x/ask", "{path}");
        for verb in [Method::GET, Method::DELETE, Method::PUT] {
            let mut call = bodyless(cx, verb);
            path.clone_into(&mut call.path);
            let answer = client.send(call).await;
            assert!(answer.status.is_client_error() && answer.header("location").is_empty(), "{path}: {answer:?}");
        }
    }
    assert_eq!(seen.methods(), ["x/ask"; 8]);
}

/// Behind a router it answers where it is mounted, and the router elsewhere.
async fn mounted(cx: Cx) {
    let (service, _) = service();
    let router = axum::Router::new().route_service("/mcp", service.clone()).nest_service("/deep/down", service);
    let client = cx.serve(router).await;
    for (path, status) in [
        ("/mcp", StatusCode::OK),
        ("/deep/down", StatusCode::OK),
        ("/deep/down/below", StatusCode::OK),
        ("/mcp/", StatusCode::NOT_FOUND),
        ("/", StatusCode::NOT_FOUND),
    ] {
        let mut call = right(cx);
        path.clone_into(&mut call.path);
        assert_eq!(client.send(call).await.status, status, "{path}");
    }
}

/// DELETE and GET are judged by none of the headers that speak of a body, nor DELETE by what it accepts.
async fn accept_delete(cx: Cx) {
    let (service, _) = service();
    let client = cx.serve(service).await;
    let expected = |verb: &Method| match (cx.modern(), verb) {
        (true, _) | (_, &Method::GET) => StatusCode::METHOD_NOT_ALLOWED,
        (false, _) => StatusCode::BAD_REQUEST,
    };
    for kind in ["text/plain", "application/json", "", "multipart/form-data; boundary=x", "\u{e9}"] {
        for verb in [Method::GET, Method::DELETE] {
            let status = expected(&verb);
            let call = bodyless(cx, verb.clone()).header(CONTENT_TYPE.as_str(), kind);
            client.send(call).await.error(status, -32600, None).await;
            let twice = bodyless(cx, verb).header(CONTENT_TYPE.as_str(), kind).also(CONTENT_TYPE.as_str(), "a/b");
            client.send(twice).await.error(status, -32600, None).await;
        }
        let delete = bodyless(cx, Method::DELETE).header(ACCEPT.as_str(), kind);
        client.send(delete).await.error(expected(&Method::DELETE), -32600, None).await;
    }
    for accept in ["text/html", "*/*;q=0", "application/json", "text/event-stream"] {
        let delete = bodyless(cx, Method::DELETE).header(ACCEPT.as_str(), accept);
        client.send(delete).await.error(expected(&Method::DELETE), -32600, None).await;
        if !cx.modern() {
            let delete = bodyless(cx, Method::DELETE).header(ACCEPT.as_str(), accept).header(SESSION_ID, "none");
            client.send(delete).await.error(StatusCode::NOT_FOUND, -32600, None).await;
        }
    }
}

/// Whatever the answer, what concerns the connection alone is left to who owns the connection.
async fn headers_never(cx: Cx) {
    let script = Script::new(|request, cx| async move {
        if request.method() == "x/stream" {
            cx.notify("notifications/x", json!({})).await?;
        }
        Reply::empty()
    });
    let service = StreamableHttpService::new(script);
    let client = cx.serve(service.clone()).await;
    let stream = || Call::of(cx.revision, "x/stream", json!({}));
    let method = |verb: Method| {
        let mut call = right(cx);
        call.method = verb;
        call
    };
    let calls = [
        (right(cx), 200, "application/json"),
        (stream(), 200, "text/event-stream"),
        (right(cx).header(ACCEPT.as_str(), "text/event-stream"), 200, "text/event-stream"),
        (right(cx).notification(), 202, ""),
        (method(Method::OPTIONS), 204, ""),
        (right(cx).raw("{"), 400, "application/json"),
        (right(cx).header(ORIGIN.as_str(), "null"), 403, "application/json"),
        (method(Method::PUT), 405, "application/json"),
        (right(cx).header(ACCEPT.as_str(), "text/html"), 406, "application/json"),
        (right(cx).header(CONTENT_TYPE.as_str(), "text/html"), 415, "application/json"),
    ];
    for (call, status, kind) in calls {
        check_hops(cx, client.send(call).await, status, kind).await;
    }
    service.drain(Duration::ZERO).await;
    check_hops(cx, client.send(right(cx)).await, 503, "application/json").await;
}

async fn check_hops(cx: Cx, answer: Answer, status: u16, kind: &str) {
    assert_eq!((answer.status.as_u16(), answer.header(CONTENT_TYPE.as_str())), (status, kind));
    let hops = ["connection", "transfer-encoding", "keep-alive", "proxy-connection", "upgrade", "te", "trailer"];
    for name in hops {
        // Over HTTP/1.1 the server that owns the connection may set them.
        assert!(cx.carrier == Carrier::H1 || !answer.headers.contains_key(name), "{name} beside {status}");
    }
    answer.text().await;
}

async fn other_methods(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    for verb in other_verbs() {
        let mut call = right(cx);
        call.method = verb.clone();
        for call in [call, bodyless(cx, verb.clone())] {
            not_allowed(&verb, client.send(call).await, "POST, GET, DELETE").await;
        }
    }
    if cx.carrier == Carrier::Clock {
        // No client but one that wants a tunnel sends it.
        let answer = client.send(bodyless(cx, Method::CONNECT)).await;
        not_allowed(&Method::CONNECT, answer, "POST, GET, DELETE").await;
    }
    assert_eq!(seen.methods(), [""; 0]);
}

async fn other_methods_without_legacy(cx: Cx) {
    let seen = Seen::default();
    let builder = StreamableHttpService::builder(seen.script()).revisions(Revisions::modern_only());
    let client = cx.serve(builder.build().expect("a service")).await;
    for verb in other_verbs().into_iter().chain([Method::GET, Method::DELETE]) {
        for session in [None, Some("none")] {
            let mut call = bodyless(cx, verb.clone());
            session.into_iter().for_each(|session| call.put(SESSION_ID, session));
            not_allowed(&verb, client.send(call).await, "POST").await;
        }
    }
    let preflight = client.send(bodyless(cx, Method::OPTIONS)).await;
    assert_eq!(preflight.status, StatusCode::NO_CONTENT);
}

async fn not_allowed(verb: &Method, answer: Answer, allowed: &str) {
    assert_eq!(answer.header(ALLOW.as_str()), allowed, "{verb}");
    if verb == Method::HEAD {
        // The head of what another method would get: a body would be taken for the next answer.
        assert_eq!(
            (answer.status, answer.header(CONTENT_TYPE.as_str())),
            (StatusCode::METHOD_NOT_ALLOWED, "application/json")
        );
        assert_eq!(answer.text().await, "");
    } else {
        answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
    }
}

async fn accepted_is_empty(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    let methods = ["notifications/initialized", "notifications/cancelled", "notifications/no/such", "x", "tools/call"];
    for method in methods {
        for accept in ["application/json", "text/event-stream", "application/json, text/event-stream"] {
            let call = Call::of(cx.revision, method, json!({"requestId": ID})).notification();
            let answer = client.send(call.header(ACCEPT.as_str(), accept)).await;
            assert_eq!(answer.status, StatusCode::ACCEPTED, "{method}");
            assert!(!answer.headers.contains_key(CONTENT_TYPE), "{answer:?}");
            assert!(["", "0"].contains(&answer.header(CONTENT_LENGTH.as_str())), "{answer:?}");
            assert_eq!(answer.text().await, "");
        }
    }
    assert!(seen.methods().contains(&"notifications/no/such".to_owned()));
    let answer = client.send(right(cx)).await.result().await;
    assert_ne!(answer, Value::Null);
}
