//! How often a quiet call allocates: a ratchet, so that the number goes down and never unnoticed up.
//!
//! Counted on the thread that polls, from the finished HTTP request to the finished response, with a body that shares
//! its memory with nobody: a needless clone of it allocates, and shows.

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use mcp_transport::testing::request;
use mcp_transport::{
    Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ResponseBody, Revision, ServerInfo,
    StreamableHttpService,
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
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => Reply::of(json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })),
            _ => echo(request.arguments()),
        }
    }
}

/// Answers in one poll, as a quiet call is.
fn answer(service: &StreamableHttpService, request: http::Request<Full<Bytes>>) -> Response<ResponseBody> {
    match pin!(service.handle(request)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(response) => response,
        Poll::Pending => panic!("a handler that waits for nothing is answered in one poll"),
    }
}

#[test]
fn a_quiet_call_allocates_no_more_than_it_must() {
    let service = StreamableHttpService::new(Echo);
    let make = || {
        let params = json!({ "name": "echo", "arguments": { "text": "hello" } });
        let request = request(Revision::V2026_07_28, "tools/call", params);
        // Not the bytes the kit made, which might be shared.
        request.map(|body| Full::new(Bytes::from(body.to_vec())))
    };
    let length = http_body::Body::size_hint(make().body()).exact();
    assert!(length.is_some_and(|length| (260..330).contains(&length)), "a small call, of {length:?} bytes");
    // The first one learns the tools.
    assert_eq!(answer(&service, make()).status(), StatusCode::OK);

    let (request, mut response) = (make(), None);
    let whole = measure(|| response = Some(answer(&service, request))).count_total;
    assert!(response.is_some_and(|response| response.status() == StatusCode::OK));
    let arguments = r#"{"text":"hello"}"#;
    let handler = measure(|| {
        let reply = echo(serde_json::from_str(arguments).map_err(McpError::internal));
        assert!(reply.is_ok());
    });
    let own = whole - handler.count_total;
    assert!(
        own <= MOST,
        "a small tools/call now costs {own} allocations of the transport's own, {MOST} before. Find the new one with \
         a heap profiler (valgrind --tool=dhat on this test) and take it out; the list at MOST says what has to be."
    );
    assert!(own == MOST, "a small tools/call now costs {own} allocations, {MOST} before: write that down in MOST");
}
