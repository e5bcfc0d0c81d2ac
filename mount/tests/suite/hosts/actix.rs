//! actix-web: a scope with middleware, and the crate's own adapter.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::middleware::{Next, from_fn};
use actix_web::{App, Error, HttpMessage, HttpResponse, HttpServer, web};
use mcp_transport::actix::Endpoint;
use mount::handler::Tenant;

use super::{Ground, caller};

pub async fn serve(ground: Ground) {
    let (listener, service, drained) = ground.drained();
    // The principal and the peer's address are carried over without being asked for.
    let mcp = Endpoint::new(service).carry(|request, extensions| {
        if let Some(tenant) = request.extensions().get::<Tenant>() {
            extensions.insert(tenant.clone());
        }
    });
    let server = HttpServer::new(move || {
        App::new().service(web::scope("/api").wrap(from_fn(authenticate)).route("/mcp", web::to(mcp.clone())))
    });
    server
        .workers(2)
        .h1_allow_half_closed(false)
        .shutdown_signal(drained)
        // For connections on which nothing is left: actix does not end those of HTTP/2 itself.
        .shutdown_timeout(1)
        .listen_auto_h2c(listener)
        .unwrap()
        .run()
        .await
        .unwrap();
}

async fn authenticate<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match caller(authorization) {
        Some((principal, tenant)) => {
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(tenant);
        }
        // Preflights carry no credentials.
        None if request.method() == Method::OPTIONS => {}
        None => return Ok(request.into_response(HttpResponse::Unauthorized()).map_into_right_body()),
    }
    Ok(next.call(request).await?.map_into_left_body())
}
