//! How often calls allocate, how many tasks they spawn, and what is kept of clients that say nothing: ratchets, so that
//! the numbers go down and never unnoticed up.
//!
//! Counted on the thread that polls, from the finished HTTP request to the finished response, with a body that shares
//! its memory with nobody: a needless clone of it allocates, and shows.

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use bytes::Bytes;
use futures::FutureExt;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mcp_transport::testing::request;
use mcp_transport::{
    Capabilities, Limits, McpError, McpHandler, Progress, Reply, Request, RequestContext, ResponseBody, Revision,
    ServerInfo, StreamableHttpService,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a small `tools/call` of 2026-07-28 may allocate beyond what its handler does:
///
/// 1. the call, which request, context and exchange share (`Arc<Call>`);
/// 2. the handler's future, whose type is erased (`ErasedHandler::request`);
/// 3. the owner that `Bytes` makes of the reply's buffer (`Frame::seal`);
/// 4. the index of the response's headers, and
/// 5. their entries, at the first one (`respond::json`).
const MOST: u64 = 5;

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct CallResult<'a> {
    content: [Text<'a>; 1],
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// What the handler does, without a transport around it.
fn echo(arguments: Result<Arguments<'_>, McpError>) -> Result<Reply, McpError> {
    Reply::of(&CallResult { content: [Text { r#type: "text", text: &arguments?.text }] })
}

struct Echo;

impl McpHandler for Echo {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("echo", "1.0.0").title("Echo").description("Says what it is told, and nothing else.")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools().tools_list_changed()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => Reply::of(json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })),
            _ => self.call(&request, &cx).await,
        }
    }
}

impl Echo {
    async fn call(&self, request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks().to_string();
        let said = match request.name() {
            Some("tasks") => tasks(),
            Some("wait") => {
                tokio::task::yield_now().await;
                tasks()
            }
            Some("notify-and-count") => {
                cx.progress(Progress::new(1.0)).await;
                tokio::task::yield_now().await;
                tasks()
            }
            Some("notify") => {
                cx.progress(Progress::new(1.0)).await;
                return echo(request.arguments());
            }
            _ => return echo(request.arguments()),
        };
        echo(Ok(Arguments { text: said.into() }))
    }
}

/// Answers in one poll, as a quiet call is.
fn answer(service: &StreamableHttpService, request: http::Request<Full<Bytes>>) -> Response<ResponseBody> {
    match pin!(service.handle(request)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(response) => response,
        Poll::Pending => panic!("a handler that waits for nothing is answered in one poll"),
    }
}

/// A small call of a revision; not with the bytes the kit made, which might be shared.
fn call(revision: Revision, tool: &str, text: &str) -> http::Request<Full<Bytes>> {
    let params = json!({ "name": tool, "arguments": { "text": text }, "_meta": { "progressToken": 1 } });
    request(revision, "tools/call", params).map(|body| Full::new(Bytes::from(body.to_vec())))
}

fn in_session(session: &str, mut request: http::Request<Full<Bytes>>) -> http::Request<Full<Bytes>> {
    request.headers_mut().insert("mcp-session-id", session.parse().expect("a value"));
    request
}

fn open(service: &StreamableHttpService) -> String {
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let response = answer(service, request(Revision::V2025_11_25, "initialize", params).map(Full::new));
    response.headers()["mcp-session-id"].to_str().expect("text").to_owned()
}

/// What a call allocates beside its handler: how often, and how many bytes.
fn own(service: &StreamableHttpService, text: &str, make: impl Fn() -> http::Request<Full<Bytes>>) -> (u64, u64) {
    // The first one learns the tools, and makes room in maps.
    assert_eq!(answer(service, make()).status(), StatusCode::OK);
    let (request, mut response) = (make(), None);
    let whole = measure(|| response = Some(answer(service, request)));
    assert!(response.is_some_and(|response| response.status() == StatusCode::OK));
    let arguments = json!({ "text": text }).to_string();
    let handler = measure(|| {
        let reply = echo(serde_json::from_str(&arguments).map_err(McpError::internal));
        assert!(reply.is_ok());
    });
    (whole.count_total - handler.count_total, whole.bytes_total.saturating_sub(handler.bytes_total))
}

#[test]
fn a_quiet_call_allocates_no_more_than_it_must() {
    let service = StreamableHttpService::new(Echo);
    let make = || call(Revision::V2026_07_28, "echo", "hello");
    let length = http_body::Body::size_hint(make().body()).exact();
    assert!(length.is_some_and(|length| (260..330).contains(&length)), "a small call, of {length:?} bytes");
    let (count, bytes) = own(&service, "hello", make);
    println!("a small tools/call: {count} allocations of its own, {bytes} bytes");
    assert!(
        count <= MOST,
        "a small tools/call now costs {count} allocations of the transport's own, {MOST} before. Find the new one with \
         a heap profiler (valgrind --tool=dhat on this test) and take it out; the list at MOST says what has to be."
    );
    assert!(count == MOST, "a small tools/call now costs {count} allocations, {MOST} before: write that down in MOST");
    assert!(bytes <= 5 << 10, "a small tools/call now costs {bytes} bytes");
}

#[test]
fn what_a_call_allocates_does_not_grow_with_its_arguments() {
    let service = StreamableHttpService::new(Echo);
    for bytes in [10 << 10, 64 << 10, 1 << 20] {
        let text = "a \"text\"\n".repeat(bytes / 9);
        let (count, _) = own(&service, &text, || call(Revision::V2026_07_28, "echo", &text));
        // The end of the answer may be what its buffer has no room for.
        assert!((MOST..=MOST + 1).contains(&count), "{bytes} bytes of arguments: {count} allocations");
    }
}

/// What a small call in a session may allocate: what one of 2026-07-28 does, and its place among the requests in flight,
/// under its id.
const MOST_IN_SESSION: u64 = MOST + 7;

#[test]
fn a_call_in_a_session_allocates_little_more() {
    let service = StreamableHttpService::new(Echo);
    let session = open(&service);
    let (count, bytes) = own(&service, "hello", || in_session(&session, call(Revision::V2025_11_25, "echo", "hello")));
    println!("a small tools/call in a session: {count} allocations of its own, {bytes} bytes");
    assert!(count <= MOST_IN_SESSION && bytes <= 5 << 10, "{count} allocations, {bytes} bytes");
}

/// What a call may allocate that reports progress once: its task, its queue, and two events.
const MOST_STREAMED: u64 = 13;

#[test]
fn a_streamed_call_allocates_a_bounded_number() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let service = StreamableHttpService::new(Echo);
    let streamed = |request| {
        runtime.block_on(async {
            let response = service.handle(request).await;
            response.into_body().collect().await.expect("a body").to_bytes()
        })
    };
    let make = || call(Revision::V2026_07_28, "notify", "hello");
    // The table of streams is in sixteen parts, each of which takes its memory when it is first used.
    for _ in 0..16 {
        assert!(streamed(make()).starts_with(b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\""));
    }
    let request = make();
    let all = measure(|| drop(streamed(request)));
    println!("a streamed tools/call: {} allocations, {} bytes", all.count_total, all.bytes_total);
    assert!(all.count_total <= MOST_STREAMED, "{} allocations", all.count_total);
    assert!(all.bytes_total <= 16 << 10, "{} bytes", all.bytes_total);
}

/// Tasks are counted by the handler: before it does anything, after a report of progress, and after it has waited.
#[tokio::test]
async fn tasks_are_spawned_only_where_the_handler_has_to_go_on_alone() {
    let service = StreamableHttpService::new(Echo);
    let session = open(&service);
    // One sweeps all sessions, and from the first stream on one all that nobody reads.
    let first = service.handle(call(Revision::V2026_07_28, "notify", "")).await;
    first.into_body().collect().await.expect("a body");
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let modern = |tool| call(Revision::V2026_07_28, tool, "");
    let legacy = |tool| in_session(&session, call(Revision::V2025_11_25, tool, ""));
    for (what, request, tasks) in [
        ("a quiet call", modern("tasks"), 0),
        ("one that waits", modern("wait"), 0),
        ("one that streams", modern("notify-and-count"), 1),
        ("a quiet one in a session", legacy("tasks"), 0),
        ("one in a session that waits", legacy("wait"), 1),
        ("one in a session that streams", legacy("notify-and-count"), 1),
    ] {
        let body = service.handle(request).await.into_body().collect().await.expect("a body").to_bytes();
        let answer = format!("\"text\":\"{}\"", before + tasks);
        assert!(String::from_utf8_lossy(&body).contains(&answer), "{what}: {body:?}");
    }
}

/// How many of each are kept open.
const IDLE: usize = 1_000;

/// What an idle session, or the stream of an idle listener, may hold.
const MOST_IDLE_BYTES: usize = 2 << 10;

/// The bytes that each of so many things holds once they are open. None has a task.
fn held<T>(what: &str, open: impl Fn() -> T) {
    // Maps and buffers that all share grow in steps.
    let first: Vec<_> = (0..IDLE).map(|_| open()).collect();
    let mut more = Vec::with_capacity(IDLE);
    let held = measure(|| more.extend((0..IDLE).map(|_| open())));
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let each = usize::try_from(held.bytes_current).unwrap_or_default() / IDLE + size_of::<T>();
    println!("{what}: {each} bytes each, {tasks} tasks in all");
    assert!(each <= MOST_IDLE_BYTES, "{what}: {each} bytes each");
    assert!(tasks <= 2, "{tasks} tasks");
    drop((first, more));
}

#[tokio::test]
async fn who_says_nothing_costs_little_and_no_task() {
    let limits = Limits::default()
        .sessions(10 * IDLE)
        .sessions_by_caller(10 * IDLE)
        .listeners(10 * IDLE)
        .listeners_by_caller(10 * IDLE);
    let service = StreamableHttpService::builder(Echo).limits(limits).build().expect("limits");
    held("an idle session", || drop(open(&service)));
    let begun = |request: http::Request<Full<Bytes>>| {
        let mut body = answer(&service, request).into_body();
        // Its first event, and its timer.
        while let Some(frame) = body.frame().now_or_never() {
            assert!(frame.is_some_and(|frame| frame.is_ok()));
        }
        body
    };
    held("an idle listener", || {
        let params = json!({ "notifications": { "toolsListChanged": true } });
        begun(request(Revision::V2026_07_28, "subscriptions/listen", params).map(Full::new))
    });
    // Its session is part of it.
    held("an idle GET stream", || {
        let mut get = http::Request::get("/mcp").body(Full::default()).expect("a request");
        get.headers_mut().insert("accept", "text/event-stream".parse().expect("a value"));
        begun(in_session(&open(&service), get))
    });
}
