use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::*;
use crate::{Capabilities, Limits, McpError, McpHandler, Reply, RequestContext, ServerInfo};

mod asked;
mod chaos;
mod left;

/// Answers at once.
struct Quick;

impl McpHandler for Quick {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("quick", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: crate::Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method() == "talk" {
            cx.notify("notifications/said", json!({})).await?;
        }
        Reply::of(json!({"tools": [{"name": "t", "inputSchema": {}}]}))
    }
}

/// A body that must stay on its thread, in pieces.
struct Pieces(Rc<RefCell<VecDeque<&'static str>>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.borrow_mut().pop_front();
        Poll::Ready(piece.map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
    }
}

fn post<B>(method: &str, body: B) -> Request<B> {
    let request = Request::post("/mcp").header("content-type", "application/json").header("mcp-method", method);
    request.header("mcp-protocol-version", "2026-07-28").header("mcp-name", "t").body(body).unwrap()
}

/// A request of 2026-07-28.
fn modern(method: &str) -> Request<Full<Bytes>> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "t", "_meta": meta}});
    post(method, Full::from(message.to_string()))
}

/// A message of an earlier revision.
fn legacy(message: &Value) -> Request<Full<Bytes>> {
    let request = Request::post("/mcp").header("content-type", "application/json");
    request.body(Full::from(message.to_string())).unwrap()
}

fn text(response: Response<ResponseBody>) -> String {
    let body = response.into_body().collect().now_or_never().expect("no wait").unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

#[test]
fn a_body_need_not_be_send() {
    let pieces = [
        r#"{"jsonrpc":"2.0","id":1,"method":"say","params":{"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    ];
    let body = Rc::new(RefCell::new(VecDeque::from(pieces)));
    let service = StreamableHttpService::new(Quick);
    let response = service.handle(post("say", Pieces(Rc::clone(&body)))).now_or_never().expect("no wait");
    assert_eq!(response.status(), 200);
    assert!(text(response).contains("\"result\""));
    assert!(body.borrow().is_empty());
    // The future and the response are where the body is.
    fn assert_send<T: Send + 'static>(value: T) -> T {
        value
    }
    let response = assert_send(service.handle(assert_send(modern("say")))).now_or_never().expect("no wait");
    assert_send(response);
}

/// No test here has a runtime: whatever touches its clock or spawns a task panics.
#[test]
fn what_never_waits_needs_no_runtime() {
    let limits = Limits::default().handler_time(Duration::from_secs(5)).commit_after(Duration::ZERO);
    let configured = StreamableHttpService::builder(Quick).limits(limits).build().unwrap();
    for service in [StreamableHttpService::new(Quick), configured] {
        let answer = |request| text(service.handle(request).now_or_never().expect("no wait"));
        for method in ["say", "tools/list", "tools/call", "tools/call", "server/discover"] {
            assert!(answer(modern(method)).contains("\"result\""), "{method}");
        }
        let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
        for (method, params) in [("initialize", initialize), ("ping", json!({})), ("say", json!({}))] {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            assert!(answer(legacy(&message)).contains("\"result\""), "{method}");
        }
        assert_eq!(answer(legacy(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))), "");
        assert!(answer(legacy(&json!([]))).contains("-32600"));
        let said = answer(modern("talk"));
        assert!(said.starts_with("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/said\""));
        assert_eq!(said.matches("event: message").count(), 2, "a stream that is read at once sets no timer");
        assert_eq!(service.counts(), crate::Counts { sessions: 1, ..crate::Counts::default() });
    }
}

/// Never comes to an end.
struct Stuck;

impl McpHandler for Stuck {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("stuck", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new()
    }

    async fn request(&self, request: crate::Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method().starts_with("stream") {
            cx.notify("notifications/said", json!({})).await?;
        }
        tokio::task::yield_now().await;
        if request.method().ends_with("panic") {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        std::future::pending().await
    }

    async fn notification(&self, _: crate::Notification, _: RequestContext) {
        std::future::pending::<()>().await;
    }
}

/// Whatever a drain could reach is taken off its map, by whichever exit it goes.
#[test]
fn no_exit_leaves_a_call_in_the_map() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let limits = Limits::default().handler_time(Duration::from_secs(5));
        let service = StreamableHttpService::builder(Stuck).limits(limits).build().unwrap();
        let lifecycle = &service.shared.server.lifecycle;
        let hears = || legacy(&json!({"jsonrpc": "2.0", "method": "notifications/x"}));

        let mut undecided = Box::pin(service.handle(modern("wait")));
        assert!(undecided.as_mut().now_or_never().is_none());
        let streams = service.handle(modern("stream")).now_or_never().expect("a head");
        service.handle(hears()).await;
        tokio::task::yield_now().await;
        assert_eq!((lifecycle.waiting(), lifecycle.counts().in_flight), (3, 3), "all can be reached");
        drop(undecided);
        drop(streams);
        tokio::task::yield_now().await;
        assert_eq!((lifecycle.waiting(), lifecycle.counts().in_flight), (1, 1), "the clients left");

        for method in ["wait", "panic"] {
            assert!(text(service.handle(modern(method)).await).contains("-32603"));
        }
        for method in ["stream", "stream-panic"] {
            let body = service.handle(modern(method)).await.into_body().collect().await.unwrap().to_bytes();
            assert!(body.windows(6).any(|window| window == b"-32603"));
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((lifecycle.waiting(), lifecycle.counts()), (0, crate::Counts::default()), "their time was up");

        service.handle(hears()).await;
        let (answer, report) = tokio::join!(service.handle(modern("wait")), service.drain(Duration::ZERO));
        assert_eq!((report.in_flight, report.cut), (2, 2));
        assert!(text(answer).contains("-32603"));
        assert_eq!((lifecycle.waiting(), lifecycle.counts()), (0, crate::Counts::default()), "they were cut");
    });
}
