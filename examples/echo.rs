//! The smallest real server: one tool, `echo {text}`, for clients of every protocol revision.
//!
//!     cargo run --example echo -- --http 127.0.0.1:8080

use mcp_transport::{
    Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::json;

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
            "tools/list" => Reply::of(&json!({ "tools": [{
                "name": "echo",
                "description": "Says what it is told.",
                "inputSchema": {
                    "type": "object",
                    "properties": { "text": { "type": "string" } },
                    "required": ["text"],
                },
            }] })),
            "tools/call" if request.name().as_deref() == Some("echo") => {
                let EchoArguments { text } = request.arguments()?;
                Reply::of(&json!({ "content": [{ "type": "text", "text": text }] }))
            }
            "tools/call" => Err(McpError::invalid_params("There is one tool here: echo")),
            _ => Err(McpError::method_not_found()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--http", address] => address,
        [] => "127.0.0.1:8080",
        _ => return Err("usage: echo [--http ADDRESS]".into()),
    };
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);

    let app = axum::Router::new().route_service("/mcp", StreamableHttpService::new(Echo));
    // Without it, small answers wait for the peer's acknowledgement.
    let listener = axum::serve::ListenerExt::tap_io(listener, |socket| {
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, app).await?;
    Ok(())
}
