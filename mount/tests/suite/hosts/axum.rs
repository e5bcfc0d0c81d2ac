//! axum: a nested router with state and middleware, and axum's own graceful shutdown.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use axum::{Router, routing};
use tokio::net::TcpListener;

use super::{Ground, Peer, caller};

pub async fn serve(ground: Ground) {
    let (listener, service, drained) = ground.drained();
    let page = async |State(name): State<&'static str>| name;
    let api = Router::new().route("/name", routing::get(page)).route_service("/mcp", service);
    let app = Router::new().nest("/api", api.layer(middleware::from_fn(authenticate))).with_state("workshop");
    let listener = TcpListener::from_std(listener).unwrap().tap_io(|socket| socket.set_nodelay(true).unwrap());
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).with_graceful_shutdown(drained).await.unwrap();
}

async fn authenticate(ConnectInfo(peer): ConnectInfo<Peer>, mut request: Request, next: Next) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match caller(authorization) {
        Some((principal, tenant)) => {
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(tenant);
            request.extensions_mut().insert(peer);
        }
        // Preflights carry no credentials.
        None if request.method() == Method::OPTIONS => {}
        None => return StatusCode::UNAUTHORIZED.into_response(),
    }
    next.run(request).await
}
