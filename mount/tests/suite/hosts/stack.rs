//! A plain tower stack with the usual layers in front, each set so that it leaves event streams alone.

use std::time::Duration;

use http::StatusCode;
use tower::ServiceBuilder;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

use super::{Ground, hyper};

pub async fn serve(ground: Ground) {
    let (listener, service, drained) = ground.drained();
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        // Longer than any answer takes to begin: the transport begins one after 15 seconds.
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(30)))
        // Its predicate leaves `text/event-stream` alone.
        .layer(CompressionLayer::new())
        .service(service);
    hyper::accept(listener, None, drained, stack).await;
}
