//! A plain tower stack: trace, time limits, compression and CORS in front of the service, each so that event streams pass.
//!
//!     cargo run --example tower_stack -- --http 127.0.0.1:8080

use std::time::Duration;

use axum::Router;
use http::StatusCode;
use mcp_transport::{
    Capabilities, McpError, McpHandler, Progress, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::json;
use tower::ServiceBuilder;
use tower_http::compression::CompressionLayer;
use tower_http::cors::{Any, CorsLayer};
use tower_http::timeout::{RequestBodyTimeoutLayer, TimeoutLayer};
use tower_http::trace::TraceLayer;

struct Counter;

#[derive(Deserialize)]
struct Count {
    to: u32,
}

impl McpHandler for Counter {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("counter", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match (request.method(), request.name()) {
            ("tools/list", _) => {
                let schema = json!({ "type": "object", "properties": { "to": { "type": "integer" } } });
                Reply::of(json!({ "tools": [{ "name": "count", "inputSchema": schema }] }))
            }
            ("tools/call", Some("count")) => {
                let Count { to } = request.arguments()?;
                for number in 1..=to {
                    cx.progress(Progress::new(number.into()).total(to.into())).await;
                }
                Reply::of(json!({ "content": [{ "type": "text", "text": format!("counted to {to}") }] }))
            }
            ("tools/call", _) => Err(McpError::invalid_params("There is one tool here: count")),
            _ => Err(McpError::method_not_found()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);

    // CORS is the service's own business: it knows which headers its clients send and read.
    let mcp = StreamableHttpService::builder(Counter).allow_origin("https://app.example.com").build()?;
    // The limit of a body too (`Limits::body_bytes`): a layer in front would refuse in words no MCP client reads.
    let mcp = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        // It counts until an answer begins. The service begins every answer after 15 seconds of silence, so this cuts
        // nothing that works; a shorter one needs a shorter `Limits::commit_after`.
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(20)))
        // Bodies that do not come. There is no `ResponseBodyTimeoutLayer`: streams may be silent between two comments.
        .layer(RequestBodyTimeoutLayer::new(Duration::from_secs(10)))
        // By default it leaves event streams alone. A predicate of one's own must: `.and(NotForContentType::SSE)`.
        .layer(CompressionLayer::new())
        .service(mcp);

    // Other routes may have a CORS layer of their own.
    let pages = Router::new().route("/about", axum::routing::get(async || "It counts."));
    let app = Router::new().merge(pages.layer(CorsLayer::new().allow_origin(Any))).route_service("/mcp", mcp);
    let listener = tokio::net::TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
