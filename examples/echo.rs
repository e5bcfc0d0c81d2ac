//! The smallest real server: one tool, `echo {text}`, for clients of every protocol revision.
//!
//!     cargo run --example echo -- --http 127.0.0.1:8080
//!     cargo run --example echo -- --stdio

use axum::serve::ListenerExt;
use mcp_transport::{
    Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StdioTransport,
    StreamableHttpService,
};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;

struct Echo;

#[derive(Deserialize)]
struct EchoArguments {
    text: String,
}

impl McpHandler for Echo {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("echo", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => Reply::of(json!({ "tools": [{
                "name": "echo",
                "description": "Says what it is told.",
                "inputSchema": {
                    "type": "object",
                    "properties": { "text": { "type": "string" } },
                    "required": ["text"],
                },
            }] })),
            "tools/call" if request.name() == Some("echo") => {
                let EchoArguments { text } = request.arguments()?;
                Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
            }
            "tools/call" => Err(McpError::invalid_params("There is one tool here: echo")),
            _ => Err(McpError::method_not_found()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("--stdio"), _) => drop(StdioTransport::stdio(Echo).serve().await?),
        (Some("--http"), Some(address)) => serve_http(&address).await?,
        _ => serve_http("127.0.0.1:8080").await?,
    }
    Ok(())
}

async fn serve_http(address: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);

    // Without TCP_NODELAY, small answers wait for the peer's acknowledgement.
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    let app = axum::Router::new().route_service("/mcp", StreamableHttpService::new(Echo));
    axum::serve(listener, app).await
}
