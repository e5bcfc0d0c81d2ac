//! Puts a tower service behind a real socket.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_service::Service;

/// What a body of any type may fail with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What it fails with once its type is erased.
///
/// A named type: a future that holds a `dyn Error` in its types' arguments over an await is "not general enough".
#[derive(Debug)]
pub struct Broken(BoxError);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Broken {}

/// A body of either direction.
pub type Body = UnsyncBoxBody<Bytes, Broken>;

/// The service under test, whatever its own types are.
pub type Boxed = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Erases the types of a service.
pub fn boxed<S, B>(service: S) -> Boxed
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    BoxCloneSyncService::new(service.map_response(|response| response.map(body)))
}

/// Erases the type of a body.
pub fn body<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(|error| Broken(error.into())).boxed_unsync()
}

/// A running server; dropping it ends the listener and cuts every connection.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Serves on a free port of loopback, over HTTP/2 with prior knowledge or over HTTP/1.1.
    pub async fn start(service: Boxed, h2: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on loopback");
        let address = listener.local_addr().expect("the port's address");
        Self::adopt(address, accept(listener, service, h2))
    }

    /// A server of the test's own.
    pub fn adopt(address: SocketAddr, serving: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { address, accepting: tokio::spawn(serving) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Owns the connections, so that aborting it cuts them.
async fn accept(listener: TcpListener, service: Boxed, h2: bool) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        connections.spawn(connection(stream, service.clone(), h2));
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, service: Boxed, h2: bool) {
    let service = service.map_request(|request: Request<hyper::body::Incoming>| request.map(body));
    let service = TowerToHyperService::new(service);
    let io = TokioIo::new(stream);
    // A connection that ends in an error is one that a test has cut, or it shows in that test's client.
    if h2 {
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
    } else {
        let _ = http1::Builder::new().serve_connection(io, service).await;
    }
}
