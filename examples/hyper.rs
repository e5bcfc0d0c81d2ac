//! On hyper alone: one server for HTTP/1.1 and HTTP/2, told apart by their first bytes. It serves resources.
//!
//!     cargo run --example hyper -- --http 127.0.0.1:8080

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use mcp_transport::{
    Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
};
use serde_json::json;
use tokio::net::TcpListener;

struct Greetings;

impl McpHandler for Greetings {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("greetings", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().resources()
    }

    async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "resources/list" => Reply::of(json!({
                "resources": [{ "uri": "greeting:///world", "name": "world", "mimeType": "text/plain" }],
            })),
            "resources/templates/list" => Reply::of(json!({
                "resourceTemplates": [{ "uriTemplate": "greeting:///{name}", "name": "anybody" }],
            })),
            "resources/read" => {
                let uri = request.uri().ok_or_else(|| McpError::invalid_params("`uri` is missing"))?;
                let Some(name) = uri.strip_prefix("greeting:///") else {
                    return Err(McpError::resource_not_found(uri));
                };
                let text = format!("Hello, {name}!");
                Reply::of(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }] }))
            }
            _ => Err(McpError::method_not_found()),
        }
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);

    let service = TowerToHyperService::new(StreamableHttpService::new(Greetings));
    let mut server = auto::Builder::new(TokioExecutor::new());
    // With a timer, hyper gives up on heads that come too slowly, and on HTTP/2 peers that are gone.
    server.http1().timer(TokioTimer::new());
    server.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            // Out of file descriptors, most likely: some will be given back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Without TCP_NODELAY, small answers wait for the peer's acknowledgement.
        let _ = socket.set_nodelay(true);
        let (server, service) = (server.clone(), service.clone());
        tokio::spawn(async move { server.serve_connection(TokioIo::new(socket), service).await });
    }
}
