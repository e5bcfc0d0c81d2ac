//! The client, and a request on its way.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde_json::{Value, json};
use tower_service::Service;

use super::answer::{Answer, AnswerStream, Incoming};
use super::fail;
use super::request::{self, Draft, PATH};
use crate::protocol::revision::Revision;

/// A client that calls a service in process, in the shape of any revision.
///
/// Cheap to clone. Clones share the service and number their requests together.
///
/// ```
/// # use mcp_transport::{Capabilities, McpError, McpHandler, Progress, Reply, Request, RequestContext, ServerInfo};
/// # use mcp_transport::StreamableHttpService;
/// # struct Deploy;
/// # impl McpHandler for Deploy {
/// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("deploy", "1") }
/// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
/// #     async fn request(&self, _: Request, cx: RequestContext) -> Result<Reply, McpError> {
/// #         cx.progress(Progress::new(1.0)).await;
/// #         Reply::of(json!({ "content": [] }))
/// #     }
/// # }
/// use mcp_transport::Revision;
/// use mcp_transport::testing::Client;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let client = Client::new(StreamableHttpService::new(Deploy)).capabilities(json!({ "elicitation": {} }));
/// let params = json!({ "name": "deploy", "_meta": { "progressToken": 7 } });
/// let answer = client.call(Revision::V2026_07_28, "tools/call", params).await;
/// assert_eq!(answer.notifications()[0]["params"]["progress"], 1);
/// assert_eq!(answer.result()["resultType"], "complete");
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    service: Arc<Serve>,
    next_id: Arc<AtomicU64>,
    path: Uri,
    capabilities: Value,
}

/// A service whose types are forgotten.
pub(super) type Serve = dyn Fn(http::Request<Body>) -> Serving + Send + Sync;

pub(super) type Serving = Pin<Box<dyn Future<Output = http::Response<Incoming>> + Send>>;

impl Client {
    /// Makes a client of a service: a [`StreamableHttpService`](crate::StreamableHttpService), or a stack with one in
    /// it, such as an `axum::Router`.
    ///
    /// ```
    /// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
    /// # struct Hello;
    /// # impl McpHandler for Hello {
    /// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
    /// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
    /// #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
    /// # }
    /// use mcp_transport::testing::Client;
    /// use mcp_transport::{Revision, StreamableHttpService};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let app = axum::Router::new().route_service("/api/mcp", StreamableHttpService::new(Hello));
    /// let client = Client::new(app).path("/api/mcp");
    /// assert_eq!(client.call(Revision::V2025_11_25, "ping", ()).await.status, 200);
    /// # }
    /// ```
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<http::Request<Body>, Response = http::Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let serve = move |request| -> Serving {
            let mut service = service.clone();
            Box::pin(async move {
                let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
                let Ok(response) = service.call(request).await;
                response.map(|body| body.map_err(|error| error.into().to_string()).boxed_unsync())
            })
        };
        Self {
            service: Arc::new(serve),
            next_id: Arc::new(AtomicU64::new(1)),
            path: Uri::from_static(PATH),
            capabilities: json!({}),
        }
    }

    /// Declares what the client can do, as an object such as `{"sampling": {}}`. Sent with every request from
    /// 2026-07-28 on. Default: nothing.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// What the client declares that it can do.
    pub(super) const fn declared(&self) -> &Value {
        &self.capabilities
    }

    /// Calls this path. Default: `/mcp`. A bare service answers on any.
    ///
    /// # Panics
    ///
    /// If it is no path.
    #[must_use]
    #[track_caller]
    pub fn path(mut self, path: &str) -> Self {
        match path.parse() {
            Ok(path) => self.path = path,
            Err(error) => fail(format_args!("{path:?} is no path: {error}")),
        }
        self
    }

    /// Makes a request of `revision`, right in every header and every member of `_meta`, as
    /// [`request`](fn@super::request) writes it. Await it to have it answered.
    ///
    /// What else `_meta` is to say stands in `params`: `{"_meta": {"progressToken": 1}}`.
    ///
    /// # Panics
    ///
    /// If `params` is neither an object nor null, or the method cannot stand in a header.
    #[track_caller]
    pub fn call(&self, revision: Revision, method: &str, params: impl Serialize) -> Call {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.message(revision, method, params, Some(id))
    }

    /// Makes a notification of `revision`. The answer has no message; its status is 202.
    ///
    /// # Panics
    ///
    /// As [`call`](Self::call).
    #[track_caller]
    pub fn notify(&self, revision: Revision, method: &str, params: impl Serialize) -> Call {
        self.message(revision, method, params, None)
    }

    /// Takes any HTTP request, right or wrong. A `Host` is added where there is none.
    ///
    /// ```
    /// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
    /// # use mcp_transport::{StreamableHttpService, testing::Client};
    /// # struct Hello;
    /// # impl McpHandler for Hello {
    /// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
    /// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
    /// #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), http::Error> {
    /// # let client = Client::new(StreamableHttpService::new(Hello));
    /// let answer = client.send(http::Request::put("/mcp").body("".into())?).await;
    /// assert_eq!(answer.status, 405);
    /// assert_eq!(answer.error()["code"], -32600);
    /// # Ok(())
    /// # }
    /// ```
    pub fn send(&self, mut request: http::Request<Bytes>) -> Call {
        request.headers_mut().entry(HOST).or_insert(HeaderValue::from_static("localhost"));
        Call { service: Arc::clone(&self.service), next_id: Arc::clone(&self.next_id), request }
    }

    #[track_caller]
    fn message(&self, revision: Revision, method: &str, params: impl Serialize, id: Option<u64>) -> Call {
        let params = request::object(params);
        let mut request = Draft { revision, method, params, id, capabilities: &self.capabilities }.write();
        *request.uri_mut() = self.path.clone();
        self.send(request)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A request that is not sent yet. Await it for its whole [`Answer`], or [`stream`](Self::stream) it message by
/// message. Where the server asks something on the way, let the client be [`answering`](Self::answering).
#[must_use = "nothing is sent until it is awaited or streamed"]
pub struct Call {
    pub(super) service: Arc<Serve>,
    pub(super) next_id: Arc<AtomicU64>,
    pub(super) request: http::Request<Bytes>,
}

impl Call {
    /// Sets a header, in place of any of that name.
    ///
    /// ```
    /// # fn f(client: mcp_transport::testing::Client, revision: mcp_transport::Revision) {
    /// let call = client.call(revision, "tools/list", ()).header("authorization", "Bearer secret");
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If name or value cannot stand in a header.
    #[track_caller]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let Ok(name) = http::HeaderName::from_bytes(name.as_bytes()) else {
            fail(format_args!("{name:?} is no name of a header"));
        };
        self.request.headers_mut().insert(name, request::value(value));
        self
    }

    /// Adds what a layer in front of the service would leave in the request, such as an account.
    pub fn extension(mut self, extension: impl Clone + Send + Sync + 'static) -> Self {
        self.request.extensions_mut().insert(extension);
        self
    }

    /// Sends it, and returns once the answer has begun.
    ///
    /// # Cancel safety
    ///
    /// To drop the future is what a client does that leaves before the answer.
    pub async fn stream(self) -> AnswerStream {
        let request = self.request.map(|bytes| Body(Full::from(bytes)));
        AnswerStream::new((self.service)(request).await)
    }
}

impl IntoFuture for Call {
    type Output = Answer;
    type IntoFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.stream().await.finish().await })
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("request", &self.request).finish_non_exhaustive()
    }
}

/// The body of a request that a [`Client`] sends: all of it at once.
#[derive(Debug)]
pub struct Body(Full<Bytes>);

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
