//! The way to a server on a socket, as a tower service, so that the crate's own test client can go it.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// What a request is sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Each request on a connection of its own, which ends when the client leaves.
    H1,
    /// All on one connection. A client that leaves resets its stream.
    H2,
}

/// One server. Clones share the HTTP/2 connection.
#[derive(Clone)]
pub struct Remote {
    pub address: SocketAddr,
    version: Version,
    tls: Option<TlsConnector>,
    shared: Arc<OnceCell<Shared>>,
}

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Sent = UnsyncBoxBody<Bytes, BoxError>;

struct Shared {
    sender: http2::SendRequest<Sent>,
    _connection: Connection,
}

/// Drives a connection; dropping it closes the socket.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Remote {
    pub fn new(address: SocketAddr, version: Version, tls: Option<TlsConnector>) -> Self {
        Self { address, version, tls, shared: Arc::default() }
    }

    /// The same server by a connection of its own.
    pub fn another(&self) -> Self {
        Self { shared: Arc::default(), ..self.clone() }
    }

    /// Sends a request whose body may break off or never end.
    pub async fn send<B>(&self, request: Request<B>) -> hyper::Result<Response<Held>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let authority = format!("localhost:{}", self.address.port());
        request.headers_mut().remove(HOST);
        match self.version {
            Version::H1 => {
                request.headers_mut().insert(HOST, HeaderValue::from_str(&authority).unwrap());
                let (mut sender, connection) = http1::handshake(TokioIo::new(self.connect().await)).await?;
                let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
                let response = sender.send_request(request).await?;
                Ok(response.map(|body| Held { body, _connection: Some(connection) }))
            }
            Version::H2 => {
                let path = request.uri().path_and_query().unwrap().as_str();
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                *request.uri_mut() = format!("{scheme}://{authority}{path}").parse::<Uri>().unwrap();
                let shared = self.shared.get_or_init(|| self.share()).await;
                let response = shared.sender.clone().send_request(request).await?;
                Ok(response.map(|body| Held { body, _connection: None }))
            }
        }
    }

    /// Opens a connection, encrypted where the server wants it.
    pub async fn connect(&self) -> Box<dyn Stream> {
        let socket = TcpStream::connect(self.address).await.expect("a connection");
        socket.set_nodelay(true).unwrap();
        match &self.tls {
            None => Box::new(socket),
            Some(tls) => {
                let name = ServerName::try_from("localhost").unwrap();
                Box::new(tls.connect(name, socket).await.expect("a TLS handshake"))
            }
        }
    }

    async fn share(&self) -> Shared {
        let io = TokioIo::new(self.connect().await);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.expect("a handshake");
        Shared { sender, _connection: Connection(tokio::spawn(async move { drop(connection.await) })) }
    }
}

/// A byte stream, whatever it runs over.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl<B> tower::Service<Request<B>> for Remote
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Held>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Held>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let remote = self.clone();
        Box::pin(async move { Ok(remote.send(request).await.expect("an answer")) })
    }
}

/// The body of an answer, which holds its connection open.
pub struct Held {
    body: Incoming,
    _connection: Option<Connection>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
