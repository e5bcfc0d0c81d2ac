//! Requests, and what is done with them.

use std::future::Future;
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mcp_transport::testing::request;
use mcp_transport::{ResponseBody, Revision, StreamableHttpService};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// What is never pending needs none; the rest runs here.
pub static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));

/// A request that can be sent again and again.
#[derive(Clone)]
pub struct Again(pub Request<Bytes>);

impl Again {
    pub fn new(revision: Revision, method: &str, params: Value) -> Self {
        Self(request(revision, method, params))
    }

    pub fn call(revision: Revision, tool: &str, arguments: Value) -> Self {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 1 } });
        Self::new(revision, "tools/call", params)
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.0.headers_mut().insert(name, value.parse().expect("a value"));
        self
    }

    /// The same with a body that shares its memory with nobody, as one from a socket.
    pub fn once(&self) -> Request<Full<Bytes>> {
        let body = Bytes::from(self.0.body().to_vec());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = self.0.method().clone();
        *request.uri_mut() = self.0.uri().clone();
        *request.headers_mut() = self.0.headers().clone();
        request
    }
}

/// A text as people write it, of so many bytes.
pub fn text(bytes: usize) -> String {
    let line =
        "The quick brown fox jumps over the lazy dog and goes on its way to the next den, where it rests a bit.\n";
    line.chars().cycle().take(bytes).collect()
}

/// Answers in one poll, as a quiet call is.
pub fn now(service: &StreamableHttpService, request: &Again) -> Response<ResponseBody> {
    poll(service, request.once())
}

/// The same for a request that is sent once.
pub fn poll(service: &StreamableHttpService, request: Request<Full<Bytes>>) -> Response<ResponseBody> {
    match pin!(service.handle(request)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(response) => response,
        Poll::Pending => panic!("a handler that waits for nothing is answered in one poll"),
    }
}

/// Answers, and reads the whole body.
pub fn whole(service: &StreamableHttpService, request: &Again) -> Bytes {
    RUNTIME.block_on(async {
        let response = service.handle(request.once()).await;
        response.into_body().collect().await.expect("a body").to_bytes()
    })
}

/// Opens a session, and returns its id.
pub fn open(service: &StreamableHttpService, revision: Revision) -> String {
    let client_info = json!({ "name": "cases", "version": "0" });
    let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client_info });
    let response = now(service, &Again::new(revision, "initialize", params));
    response.headers()["mcp-session-id"].to_str().expect("an id").to_owned()
}
