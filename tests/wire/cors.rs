//! What a browser is told, so that the page of an allowed origin may send its requests and read the answers.

use std::collections::BTreeSet;
use std::time::Duration;

use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, VARY,
};
use http::{HeaderMap, Method, StatusCode};
use mcp_transport::{Era, Limits, McpError, Reply, Revision, Revisions, StreamableHttpService};
use serde_json::json;

use crate::harness::{Carrier, Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, PROTOCOL_VERSION, SESSION_ID};

/// A page of an allowed origin, spelled as no configuration spells it: answers repeat the page's spelling.
const PAGE: &str = "HTTPS://App.Test:443";

/// The longest body the service takes, in bytes.
const BODY_LIMIT: usize = 4096;

pub fn register(wire: &mut Wire) {
    wire.any("cors/preflight", Carriers::Every, preflight);
    wire.any("cors/preflight/headers", Carriers::Every, requested_headers);
    wire.any("cors/preflight/methods", Carriers::Every, methods);
    wire.any("cors/preflight/others", Carriers::Every, others);
    wire.any("cors/preflight/then-the-request", Carriers::Every, then_the_request);
    wire.any("cors/answers", Carriers::Every, answers);
    wire.any("cors/answers/draining", Carriers::Every, draining);
    wire.any("cors/answers/aborted", Carriers::H1, aborted);
    wire.any("cors/answers/clock", Carriers::Clock, clock);
}

fn service() -> StreamableHttpService {
    let handler = Script::new(|request, cx| async move {
        match request.name() {
            Some("stream") => cx.notify("notifications/x", json!({})).await?,
            Some("stream-error") => {
                cx.notify("notifications/x", json!({})).await?;
                return Err(McpError::internal("no"));
            }
            Some("slow") => tokio::time::sleep(Duration::from_secs(3600)).await,
            Some("error") => return Err(McpError::new(7, "no")),
            Some("internal") => return Err(McpError::internal("no")),
            Some("params") => return Err(McpError::invalid_params("no")),
            Some("panic") => std::panic::resume_unwind(Box::new("on purpose")),
            _ => {}
        }
        Reply::of(json!({"messages": []}))
    });
    StreamableHttpService::builder(handler)
        .allow_origin("https://app.test")
        .allow_host("localhost")
        .allow_host("127.0.0.1")
        .limits(Limits::default().body_bytes(BODY_LIMIT))
        .build()
        .expect("a service")
}

/// A preflight as a browser sends it.
fn asking(origin: &str, headers: &str) -> Call {
    Call::bare(Method::OPTIONS)
        .header(ORIGIN.as_str(), origin)
        .header(ACCESS_CONTROL_REQUEST_METHOD.as_str(), "POST")
        .header(ACCESS_CONTROL_REQUEST_HEADERS.as_str(), headers)
        .header(ACCEPT.as_str(), "*/*")
        .header("sec-fetch-mode", "cors")
}

/// The elements of a header that is a list, in lower case, over all its lines.
fn list(headers: &HeaderMap, name: impl http::header::AsHeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().expect("visible ASCII").to_ascii_lowercase());
    let elements = lines.flat_map(|line| line.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>());
    elements.filter(|element| !element.is_empty()).collect()
}

/// The page may read the answer, and no other page by way of a cache.
#[track_caller]
fn assert_open(headers: &HeaderMap, what: &str) {
    let origins: Vec<_> = headers.get_all(ACCESS_CONTROL_ALLOW_ORIGIN).iter().collect();
    assert_eq!(origins, [PAGE], "{what}");
    let varies = list(headers, VARY);
    assert_eq!(varies.iter().filter(|name| *name == "origin").count(), 1, "{what}: Vary is {varies:?}");
    let exposed = list(headers, ACCESS_CONTROL_EXPOSE_HEADERS);
    assert!(exposed.contains(&SESSION_ID.to_owned()), "{what}: exposed are {exposed:?}");
    assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS), "{what}: no cookies");
}

#[track_caller]
fn assert_closed(headers: &HeaderMap, what: &str) {
    assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), "{what}");
    assert!(!headers.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS), "{what}");
}

/// Checks that it is a 204 with nothing in it, and returns its headers.
async fn granted(answer: Answer) -> HeaderMap {
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let headers = answer.headers.clone();
    assert!(!headers.contains_key(CONTENT_TYPE));
    assert!(!headers.contains_key(CONTENT_LENGTH), "RFC 9110 forbids it beside 204");
    assert_eq!(answer.text().await, "");
    headers
}

async fn preflight(cx: Cx) {
    let client = cx.serve(service()).await;
    let wanted = "content-type,mcp-method,mcp-protocol-version";
    let headers = granted(client.send(asking(PAGE, wanted)).await).await;
    assert_open(&headers, "the preflight");
    let allowed: BTreeSet<_> = list(&headers, ACCESS_CONTROL_ALLOW_HEADERS).into_iter().collect();
    assert_eq!(allowed, wanted.split(',').map(str::to_owned).collect());
    assert_eq!(list(&headers, ACCESS_CONTROL_ALLOW_METHODS), ["post", "get", "delete"]);

    // From another page, and from none.
    for origin in ["https://evil.test", "null", "", "https://app.test.evil.test"] {
        let answer = client.send(asking(origin, wanted)).await;
        assert_closed(&answer.headers, origin);
        assert!(!answer.headers.contains_key(ACCESS_CONTROL_ALLOW_HEADERS), "{origin}");
        assert!(!answer.headers.contains_key(ACCESS_CONTROL_ALLOW_METHODS), "{origin}");
        answer.error(StatusCode::FORBIDDEN, -32600, None).await;
    }
    let twice = asking(PAGE, wanted).also(ORIGIN.as_str(), PAGE);
    client.send(twice).await.error(StatusCode::FORBIDDEN, -32600, None).await;
    assert_closed(&granted(client.send(asking(PAGE, wanted).without(ORIGIN.as_str())).await).await, "no origin");
    assert_closed(&granted(client.send(Call::bare(Method::OPTIONS)).await).await, "OPTIONS and nothing else");
}

/// Of the requested names those come back that the protocol knows.
async fn requested_headers(cx: Cx) {
    let client = cx.serve(service()).await;
    let every = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, \
                 mcp-session-id";
    for (asked, allowed) in [
        ("", ""),
        (every, every),
        ("Authorization,CONTENT-TYPE", "authorization, content-type"),
        ("mcp-param-region, Mcp-Param-A.B_c", "mcp-param-region, mcp-param-a.b_c"),
        ("x-evil, authorization, cookie", "authorization"),
        ("x-evil", ""),
        ("mcp-param-", ""),
        ("mcp-params, mcp-other, x-mcp-param-a", ""),
        ("*", ""),
        (" ,, \tmcp-name ,", "mcp-name"),
        ("mcp-param-a b, mcp-param-\"c\", mcp-param-(d)", ""),
    ] {
        let headers = granted(client.send(asking(PAGE, asked)).await).await;
        assert_eq!(list(&headers, ACCESS_CONTROL_ALLOW_HEADERS).join(", "), allowed, "{asked:?}");
        assert_open(&headers, asked);
    }
    let lines = asking(PAGE, "mcp-name").also(ACCESS_CONTROL_REQUEST_HEADERS.as_str(), "x-evil,mcp-method");
    let headers = granted(client.send(lines).await).await;
    assert_eq!(list(&headers, ACCESS_CONTROL_ALLOW_HEADERS), ["mcp-name", "mcp-method"]);
    let bytes = asking(PAGE, "").header(ACCESS_CONTROL_REQUEST_HEADERS.as_str(), b"mcp-param-\xff, mcp-name");
    let headers = granted(client.send(bytes).await).await;
    assert_eq!(list(&headers, ACCESS_CONTROL_ALLOW_HEADERS), ["mcp-name"]);

    // A page that asks for ever so many gets an answer of a size that a browser takes.
    let many: Vec<_> = (0..700).map(|n| format!("mcp-param-{n}")).collect();
    let headers = granted(client.send(asking(PAGE, &many.join(","))).await).await;
    let answer = &headers[ACCESS_CONTROL_ALLOW_HEADERS];
    assert!((3500..=4096).contains(&answer.len()), "{}", answer.len());
    assert_eq!(list(&headers, ACCESS_CONTROL_ALLOW_HEADERS)[..2], ["mcp-param-0", "mcp-param-1"]);
}

/// The methods are those of the revisions served, whatever method is asked for.
async fn methods(cx: Cx) {
    let all: &[_] = &["post", "get", "delete"];
    let (served, expected) = match cx.revision.era() {
        Era::Legacy => (Revisions::only([cx.revision]), all),
        Era::Modern => (Revisions::modern_only(), &all[..1]),
    };
    let service = StreamableHttpService::builder(Script::echo(json!([]))).revisions(served).build().expect("a service");
    let client = cx.serve(service).await;
    for method in ["POST", "GET", "DELETE", "PUT", "post", "", "evil evil"] {
        let call = asking("http://localhost", "").header(ACCESS_CONTROL_REQUEST_METHOD.as_str(), method);
        let headers = granted(client.send(call).await).await;
        assert_eq!(list(&headers, ACCESS_CONTROL_ALLOW_METHODS), expected, "{method:?}");
    }
}

/// What else may stand in a preflight does not matter, but for what rungs below the method's judge.
async fn others(cx: Cx) {
    let client = cx.serve(service()).await;
    for call in [
        asking(PAGE, "").header(PROTOCOL_VERSION, cx.revision.as_str()),
        asking(PAGE, "").header(PROTOCOL_VERSION, "nonsense"),
        asking(PAGE, "").header(SESSION_ID, "unknown"),
        asking(PAGE, "").header(ACCEPT.as_str(), "text/html"),
        asking(PAGE, "").header(CONTENT_TYPE.as_str(), "text/plain").raw("hello"),
        asking(PAGE, "").raw("{"),
        asking(PAGE, "").without(ACCESS_CONTROL_REQUEST_METHOD.as_str()),
        asking(PAGE, "").without(ACCESS_CONTROL_REQUEST_HEADERS.as_str()),
    ] {
        assert_open(&granted(client.send(call).await).await, "a preflight");
    }
    let elsewhere = client.send(asking(PAGE, "").header(HOST.as_str(), "evil.test")).await;
    assert_open(&elsewhere.headers, "a preflight to another host");
    elsewhere.error(StatusCode::FORBIDDEN, -32600, None).await;
}

/// Every header of a right request may be sent by a page.
async fn then_the_request(cx: Cx) {
    let client = cx.serve(service()).await;
    let params = json!({"name": "a", "arguments": {"region": "eu"}});
    let call = Call::of(cx.revision, "tools/call", params)
        .header("authorization", "Bearer a")
        .header("last-event-id", "1")
        .header("mcp-param-region", "eu");
    let names: BTreeSet<_> = call.headers.keys().map(|name| name.as_str().to_owned()).collect();
    let wanted = names.iter().cloned().collect::<Vec<_>>().join(",");
    let headers = granted(client.send(asking(PAGE, &wanted)).await).await;
    assert_eq!(list(&headers, ACCESS_CONTROL_ALLOW_HEADERS).into_iter().collect::<BTreeSet<_>>(), names);
    let answer = client.send(call.header(ORIGIN.as_str(), PAGE)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_open(&answer.headers, "the request itself");
}

/// One of every kind of answer there is, by its name, with the status that shows it to be of that kind.
fn kinds(revision: Revision) -> Vec<(&'static str, Call, u16)> {
    let modern = revision.era() == Era::Modern;
    let status = |modern_one, legacy_one| if modern { modern_one } else { legacy_one };
    let get = |name: &str| Call::of(revision, "prompts/get", json!({"name": name}));
    let right = || get("a");
    let version = |method: Method| match modern {
        true => Call::bare(method).header(PROTOCOL_VERSION, revision.as_str()),
        false => Call::bare(method),
    };
    let opening = if modern { "server/discover" } else { "initialize" };
    let hello = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": {"name": "a"}});
    vec![
        ("a result", right(), 200),
        ("the transport's own result", Call::of(revision, opening, hello), 200),
        ("a stream", get("stream"), 200),
        ("a stream that ends in an error", get("stream-error"), 200),
        ("only SSE accepted", right().header(ACCEPT.as_str(), "text/event-stream"), 200),
        ("only JSON accepted", get("stream").header(ACCEPT.as_str(), "application/json"), 200),
        ("a handler's error", get("error"), 200),
        ("a handler's internal error", get("internal"), 200),
        ("a handler's invalid params", get("params"), status(400, 200)),
        ("a panic", get("panic"), 200),
        ("a method of the other era", Call::of(revision, "initialize", json!({})), status(404, 200)),
        ("a notification", right().notification(), 202),
        ("a host not allowed", right().header(HOST.as_str(), "evil.test"), 403),
        ("PUT", version(Method::PUT), 405),
        ("HEAD", version(Method::HEAD), 405),
        ("a GET", version(Method::GET).header(ACCEPT.as_str(), "text/event-stream"), 405),
        ("a GET of no stream", version(Method::GET).header(ACCEPT.as_str(), "text/html"), status(405, 406)),
        ("a DELETE", version(Method::DELETE), status(405, 400)),
        ("a DELETE of no session", version(Method::DELETE).header(SESSION_ID, "unknown"), status(405, 404)),
        ("no JSON by its type", right().header(CONTENT_TYPE.as_str(), "text/plain"), 415),
        ("nothing accepted", right().header(ACCEPT.as_str(), "text/html"), 406),
        ("too large", right().raw(vec![b' '; BODY_LIMIT + 1]), 413),
        ("no JSON", right().raw("{"), 400),
        ("no message", right().raw("{}"), 400),
        ("a response", Call::post(json!({"jsonrpc": "2.0", "id": 1, "result": {}})), 400),
        ("an unknown version", right().header(PROTOCOL_VERSION, "2020-01-01"), 400),
        ("an unknown session", right().header(SESSION_ID, "unknown"), status(200, 404)),
        ("a preflight", asking(PAGE, "authorization"), 204),
    ]
}

async fn answers(cx: Cx) {
    let client = cx.serve(service()).await;
    for (kind, call, status) in kinds(cx.revision) {
        let answer = client.send(call.header(ORIGIN.as_str(), PAGE)).await;
        assert_eq!(answer.status.as_u16(), status, "{kind}");
        assert_open(&answer.headers, kind);
        let streams = answer.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        assert_eq!(streams, kind.starts_with("a stream") || kind == "only SSE accepted", "{kind}");
    }
    // The same without an origin, and to another page: nothing is opened.
    for (kind, mut call, status) in kinds(cx.revision) {
        call.headers.remove(ORIGIN);
        let answer = client.send(call).await;
        assert_eq!(answer.status.as_u16(), status, "{kind}");
        assert_closed(&answer.headers, kind);
    }
    for (kind, call, _) in kinds(cx.revision) {
        let answer = client.send(call.header(ORIGIN.as_str(), "https://evil.test")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{kind}");
        assert_closed(&answer.headers, kind);
    }
}

/// Turned away with 503: the page may read that, and when to come back.
async fn draining(cx: Cx) {
    let service = service();
    let client: Client = cx.serve(service.clone()).await;
    service.drain(Duration::ZERO).await;
    for call in [Call::of(cx.revision, "tools/list", json!({})), Call::get(), asking(PAGE, "")] {
        let what = call.method.to_string();
        let answer = client.send(call.header(ORIGIN.as_str(), PAGE)).await;
        assert_open(&answer.headers, &what);
        assert!(answer.headers.contains_key(RETRY_AFTER), "{what}");
        assert!(list(&answer.headers, ACCESS_CONTROL_EXPOSE_HEADERS).contains(&"retry-after".to_owned()), "{what}");
        assert!(!answer.headers.contains_key(ALLOW), "{what}");
        answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
    }
}

/// A body that breaks off is answered too, where the connection still carries an answer.
async fn aborted(cx: Cx) {
    let client = cx.serve(service()).await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\norigin: {PAGE}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    let mut raw = client.raw(format!("{head}1\r\n{{\r\nnonsense\r\n")).await;
    let text = raw.until("Request body incomplete").await.to_ascii_lowercase();
    assert!(text.starts_with("http/1.1 400 "), "{text}");
    assert!(text.contains(&format!("access-control-allow-origin: {PAGE}\r\n").to_ascii_lowercase()), "{text}");
    assert!(text.contains("vary: origin\r\n"), "{text}");
}

/// An answer that the clock turned into a stream.
async fn clock(cx: Cx) {
    assert_eq!(cx.carrier, Carrier::Clock);
    let client = cx.serve(service()).await;
    let call = Call::of(cx.revision, "prompts/get", json!({"name": "slow"}));
    let mut answer = client.send(call.header(ORIGIN.as_str(), PAGE)).await;
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "text/event-stream");
    assert_open(&answer.headers, "a stream begun by the clock");
    assert_eq!(answer.next_message().await.expect("the answer")["result"]["messages"], json!([]));
}
