//! In an application that is already there: nested routes, shared state, authentication and graceful shutdown.
//!
//!     cargo run --example axum -- --http 127.0.0.1:8080
//!
//! `Authorization: Bearer ada` makes the caller ada; a real application would verify the token.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{self, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware, routing};
use mcp_transport::{
    Capabilities, McpError, McpHandler, Principal, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
    drain_all,
};
use serde::Deserialize;
use serde_json::json;
use tokio::signal;

/// The application's state. Its own pages and the MCP server share it.
type Notes = Arc<Mutex<Vec<String>>>;

struct NotesServer(Notes);

#[derive(Deserialize)]
struct AddNote {
    text: String,
}

impl McpHandler for NotesServer {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("notes", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => Reply::of(json!({ "tools": [{
                "name": "add_note",
                "inputSchema": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } }},
            }] })),
            "tools/call" if request.name() == Some("add_note") => {
                let who = cx.principal().ok_or_else(|| McpError::internal("the layer in front is missing"))?;
                let AddNote { text } = request.arguments()?;
                self.0.lock().unwrap().push(format!("{}: {text}", who.as_str()));
                Reply::of(json!({ "content": [{ "type": "text", "text": "Noted." }] }))
            }
            "tools/call" => Err(McpError::invalid_params("There is one tool here: add_note")),
            _ => Err(McpError::method_not_found()),
        }
    }
}

/// The layer in front: nobody gets in without a name, and the name is left in the request's extensions.
async fn authenticate(mut request: extract::Request, next: middleware::Next) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(name) = authorization.and_then(|value| value.strip_prefix("Bearer ")) else {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")]).into_response();
    };
    let who = Principal::new(name);
    request.extensions_mut().insert(who);
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let notes = Notes::default();
    // It finds the principal that `authenticate` leaves in the request's extensions.
    let mcp = StreamableHttpService::new(NotesServer(Arc::clone(&notes)));
    let list = async |State(notes): State<Notes>| notes.lock().unwrap().join("\n");
    let api = Router::new().route("/notes", routing::get(list)).route_service("/mcp", mcp.clone());
    let app = Router::new().nest("/api", api.layer(middleware::from_fn(authenticate))).with_state(notes);

    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let listener = tokio::net::TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on http://{}/api/mcp", listener.local_addr()?);

    // The MCP server answers new requests with 503 and finishes the others; then axum closes the connections.
    let shutdown = async move {
        stop_signal().await;
        println!("{:?}", drain_all(&[&mcp], Duration::from_secs(30)).await);
    };
    Ok(axum::serve(listener, app).with_graceful_shutdown(shutdown).await?)
}

/// Ctrl-C, or SIGTERM from whatever runs the server.
async fn stop_signal() {
    #[cfg(unix)]
    let terminate = async { signal::unix::signal(signal::unix::SignalKind::terminate()).unwrap().recv().await };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<Option<()>>();
    tokio::select! { _ = signal::ctrl_c() => {}, _ = terminate => {} }
}
