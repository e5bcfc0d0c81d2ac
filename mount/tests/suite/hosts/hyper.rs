//! hyper: HTTP/1.1 and HTTP/2 told apart by their first bytes, and a loop of our own that accepts.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::{Service, ServiceExt};

use super::{Ground, caller};
use mount::remote::{BoxError, Stream};

pub async fn serve(ground: Ground) {
    let (listener, service, drained) = ground.drained();
    accept(listener, None, drained, service).await;
}

/// Serves whoever connects, until told to stop. Then every connection ends with the answers that are on their way.
pub async fn accept<S, B>(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    drained: impl Future<Output = ()>,
    service: S,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let listener = TcpListener::from_std(listener).unwrap();
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new());
    server.http2().timer(TokioTimer::new());
    let graceful = GracefulShutdown::new();
    let mut drained = pin!(drained);
    loop {
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => accepted.unwrap(),
            () = &mut drained => break,
        };
        socket.set_nodelay(true).unwrap();
        let (server, service, tls) = (server.clone(), service.clone(), tls.clone());
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let stream: Box<dyn Stream> = match tls {
                None => Box::new(socket),
                Some(tls) => match tls.accept(socket).await {
                    Ok(stream) => Box::new(stream),
                    Err(_) => return,
                },
            };
            let service = tower::service_fn(move |request| authenticate(service.clone(), peer, request));
            let connection = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
            let _ = watcher.watch(connection.into_owned()).await;
        });
    }
    drop(listener);
    tokio::time::timeout(Duration::from_secs(5), graceful.shutdown()).await.expect("every connection ends");
}

async fn authenticate<S, B>(
    service: S,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Either<B, Full<Bytes>>>, Infallible>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
{
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match caller(authorization) {
        Some((principal, tenant)) => {
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(tenant);
            request.extensions_mut().insert(peer);
        }
        // Preflights carry no credentials.
        None if request.method() == Method::OPTIONS => {}
        None => {
            let mut response = Response::new(Either::Right(Full::default()));
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            return Ok(response);
        }
    }
    Ok(service.oneshot(request).await?.map(Either::Left))
}
