//! actix-web (feature `actix`).
//!
//! ```no_run
//! # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
//! # struct Hello;
//! # impl McpHandler for Hello {
//! #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
//! #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
//! #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
//! # }
//! use actix_web::{App, HttpServer, web};
//! use mcp_transport::StreamableHttpService;
//! use mcp_transport::actix::Endpoint;
//!
//! # async fn run() -> std::io::Result<()> {
//! let mcp = Endpoint::new(StreamableHttpService::new(Hello));
//! HttpServer::new(move || App::new().route("/mcp", web::to(mcp.clone())))
//!     // So that actix notices when a client goes away.
//!     .h1_allow_half_closed(false)
//!     .bind("127.0.0.1:8080")?
//!     .run()
//!     .await
//! # }
//! ```
//!
//! # Disconnects
//!
//! **Set [`h1_allow_half_closed`] to false.** By default actix goes on serving a client that has closed its side of an
//! HTTP/1 connection, for it might still read. So it does not tell one that has gone away until a write fails, and what
//! that client has asked for is not cancelled: neither a call that has said nothing yet nor a stream that is quiet. The
//! price is that a client which closes its side and then reads loses its answer; no MCP client does that.
//!
//! Over HTTP/2 (actix's feature `http2`) actix runs each request as a task of its own, which it does not end when the
//! client resets the stream or the connection is gone. Only a write that fails tells it. So a call is cancelled once
//! its stream speaks again, by its handler or by a [keep-alive comment](crate::Limits::keep_alive); one that is silent
//! becomes a stream after [`commit_after`](crate::Limits::commit_after). Choose both as short as a handler may go on in
//! vain.
//!
//! # What else differs
//!
//! - The body is limited by [`Limits::body_bytes`](crate::Limits::body_bytes). actix's `PayloadConfig` does not apply.
//! - `middleware::Compress` compresses event streams too. It holds no event back, but keeps an encoder for each open
//!   stream: wrap it around other routes.
//! - To shut down, [drain](crate::Transport::drain) the service in the future that
//!   [`shutdown_signal`](actix_web::HttpServer::shutdown_signal) is given. Without it actix stops at the process's
//!   signals by itself, waits for open streams until `shutdown_timeout`, and breaks them. After the drain nothing is
//!   open but connections that idle: let `shutdown_timeout` be a few seconds, since actix does not close those of
//!   HTTP/2 itself.
//! - actix-web 4.12 runs on this crate's minimum Rust; later releases may need a newer one.
//!
//! [`h1_allow_half_closed`]: actix_web::HttpServer::h1_allow_half_closed

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, MessageBody};
use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::{Handler, HttpMessage, HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures::Stream;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{Principal, StreamableHttpService};

/// A [`StreamableHttpService`] as a handler of actix-web: what `web::to`, `Route::to` and `Resource::to` take. Or any tower
/// service around one that never fails: an `AuthService` (feature `auth`), a stack of layers.
///
/// Give it every method of its path. Cloning is cheap, and all clones serve one transport, in whichever worker they
/// are.
///
/// The handler sees the request's method, URI, version and headers as they came. Of its extensions it sees the
/// [`Principal`] that a middleware may have left, the peer's address as [`SocketAddr`](std::net::SocketAddr), and what
/// [`carry`](Self::carry) adds.
#[derive(Clone)]
pub struct Endpoint<S = StreamableHttpService> {
    service: S,
    carry: Option<Arc<Carry>>,
}

type Carry = dyn Fn(&HttpRequest, &mut http::Extensions) + Send + Sync;

impl<S> Endpoint<S> {
    /// Makes a handler of a service.
    pub fn new(service: S) -> Self {
        Self { service, carry: None }
    }

    /// Takes over more from a request: what middlewares left in its extensions, connection data, application data. The
    /// extensions of actix hold what never leaves its thread; those of a handler may move to another.
    ///
    /// ```
    /// # use mcp_transport::{StreamableHttpService, actix::Endpoint};
    /// use actix_web::HttpMessage;
    ///
    /// #[derive(Clone)]
    /// struct Account(String);
    ///
    /// # fn f(service: StreamableHttpService) -> Endpoint {
    /// Endpoint::new(service).carry(|request, extensions| {
    ///     if let Some(account) = request.extensions().get::<Account>() {
    ///         extensions.insert(account.clone());
    ///     }
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn carry(mut self, carry: impl Fn(&HttpRequest, &mut http::Extensions) + Send + Sync + 'static) -> Self {
        self.carry = Some(Arc::new(carry));
        self
    }

    /// The request in the types of `http` 1; `None` where it cannot be said in them.
    fn request(&self, head: &HttpRequest, payload: web::Payload) -> Option<http::Request<RequestBody>> {
        let mut request = http::Request::builder()
            .method(head.method().as_str())
            .uri(head.uri().to_string())
            .version(version(head.version())?);
        for (name, value) in head.headers() {
            request = request.header(name.as_str(), value.as_bytes());
        }
        let extensions = request.extensions_mut()?;
        if let Some(address) = head.peer_addr() {
            extensions.insert(address);
        }
        if let Some(principal) = head.extensions().get::<Principal>() {
            extensions.insert(principal.clone());
        }
        if let Some(carry) = &self.carry {
            carry(head, extensions);
        }
        request.body(RequestBody { payload, left: content_length(head) }).ok()
    }
}

impl<S, B> Handler<(HttpRequest, web::Payload)> for Endpoint<S>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>, Error = Infallible> + Clone + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError>>> + 'static,
{
    type Output = HttpResponse;
    type Future = Pin<Box<dyn Future<Output = HttpResponse>>>;

    fn call(&self, (head, payload): (HttpRequest, web::Payload)) -> Self::Future {
        let Some(request) = self.request(&head, payload) else {
            return Box::pin(async { HttpResponse::BadRequest().finish() });
        };
        // The future borrows nothing, so that it may outlive this handler.
        let mut service = self.service.clone();
        Box::pin(async move {
            let Ok(()) = poll_fn(|cx| service.poll_ready(cx)).await;
            let Ok(answer) = service.call(request).await;
            response(answer)
        })
    }
}

/// The response in actix's types. What is said of its length stands in its body.
fn response<B>(response: http::Response<B>) -> HttpResponse
where
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError>>> + 'static,
{
    let (head, body) = response.into_parts();
    let status = StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = HttpResponse::build(status);
    for (name, value) in &head.headers {
        answer.append_header((name.as_str(), value.as_bytes()));
    }
    answer.body(Outgoing { body })
}

fn version(version: actix_web::http::Version) -> Option<http::Version> {
    use actix_web::http::Version;
    match version {
        Version::HTTP_10 => Some(http::Version::HTTP_10),
        Version::HTTP_11 => Some(http::Version::HTTP_11),
        Version::HTTP_2 => Some(http::Version::HTTP_2),
        _ => None,
    }
}

/// How long the body says it is; nothing where it does not say.
fn content_length(head: &HttpRequest) -> u64 {
    let length = head.headers().get(actix_web::http::header::CONTENT_LENGTH);
    length.and_then(|length| length.to_str().ok()).and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// The body of a request: actix's payload, polled where it is.
pub struct RequestBody {
    payload: web::Payload,
    // Of what the request's head announced.
    left: u64,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = PayloadError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, PayloadError>>> {
        let read = ready!(Pin::new(&mut self.payload).poll_next(cx));
        if let Some(Ok(data)) = &read {
            self.left = self.left.saturating_sub(u64::try_from(data.len()).unwrap_or(u64::MAX));
        }
        Poll::Ready(read.map(|data| data.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.left);
        hint
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("left", &self.left).finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of a response. One whose length is known keeps its `Content-Length`.
    struct Outgoing<B> {
        #[pin]
        body: B,
    }
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn StdError>>>> MessageBody for Outgoing<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size_hint().exact().map_or(BodySize::Stream, BodySize::Sized)
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        let mut body = self.project().body;
        loop {
            let Some(frame) = ready!(body.as_mut().poll_frame(cx)) else {
                return Poll::Ready(None);
            };
            // Trailers, which actix has no place for, are passed over.
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Err(_)) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Endpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("service", &self.service).finish_non_exhaustive()
    }
}
