//! In an actix-web application: a scope with authentication, several workers, and a shutdown that drains.
//!
//!     cargo run --example actix -- --http 127.0.0.1:8080
//!
//! `Authorization: Bearer ada` makes the caller ada; a real application would verify the token.

use std::time::Duration;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header;
use actix_web::middleware::{Next, from_fn};
use actix_web::{App, Error, HttpMessage, HttpResponse, HttpServer, web};
use mcp_transport::actix::Endpoint;
use mcp_transport::{
    Capabilities, McpError, McpHandler, Principal, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
};
use serde_json::json;

struct Greeter;

impl McpHandler for Greeter {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("greeter", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match (request.method(), request.name()) {
            ("tools/list", _) => {
                Reply::of(json!({ "tools": [{ "name": "greet", "inputSchema": { "type": "object" } }] }))
            }
            ("tools/call", Some("greet")) => {
                let who = cx.principal().ok_or_else(|| McpError::internal("the middleware in front is missing"))?;
                Reply::of(json!({ "content": [{ "type": "text", "text": format!("Hello, {}!", who.as_str()) }] }))
            }
            ("tools/call", _) => Err(McpError::invalid_params("There is one tool here: greet")),
            _ => Err(McpError::method_not_found()),
        }
    }
}

/// The middleware in front: nobody gets in without a name, and the endpoint finds the name in the request's extensions.
async fn authenticate<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(name) = authorization.and_then(|value| value.strip_prefix("Bearer ")) else {
        let refusal = HttpResponse::Unauthorized().insert_header((header::WWW_AUTHENTICATE, "Bearer")).finish();
        return Ok(request.into_response(refusal).map_into_right_body());
    };
    let who = Principal::new(name);
    request.extensions_mut().insert(who);
    Ok(next.call(request).await?.map_into_left_body())
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let service = StreamableHttpService::new(Greeter);
    // Every worker has a clone, and all clones are one transport.
    let mcp = Endpoint::new(service.clone());
    let server = HttpServer::new(move || {
        App::new().service(web::scope("/api").wrap(from_fn(authenticate)).route("/mcp", web::to(mcp.clone())))
    })
    // Else actix goes on serving clients that are gone: what they have asked for would not be cancelled.
    .h1_allow_half_closed(false)
    // The MCP server answers new requests with 503 and finishes the others; then actix closes the connections.
    .shutdown_signal(async move {
        let _ = tokio::signal::ctrl_c().await;
        println!("{:?}", service.drain(Duration::from_secs(30)).await);
    })
    .shutdown_timeout(5)
    .bind(address.as_deref().unwrap_or("127.0.0.1:8080"))?;
    println!("listening on http://{}/api/mcp", server.addrs()[0]);
    server.run().await
}
