//! One server on stdio and on HTTP at once: the host that started it and its own pages see the same list, and each hears
//! what the other changes.
//!
//!     cargo run --example both -- --http 127.0.0.1:8080
//!
//! It ends when the host closes standard input, or on SIGTERM; either way what is at work may finish first.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_transport::{
    Capabilities, Changes, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StdioTransport,
    StreamableHttpService, drain_all,
};
use serde::Deserialize;
use serde_json::json;
use tokio::signal;

/// What is at work gets this long to finish.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// What clients have noted. Each note is a resource.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

#[derive(Deserialize)]
struct Note {
    text: String,
}

impl McpHandler for Notes {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("both", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools().resources_list_changed()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => Reply::of(json!({ "tools": [{
                "name": "note",
                "description": "Notes a text for everyone.",
                "inputSchema": {
                    "type": "object",
                    "properties": { "text": { "type": "string" } },
                    "required": ["text"],
                },
            }] })),
            "tools/call" => {
                let Note { text } = request.arguments()?;
                self.0.lock().unwrap().push(text);
                // Told to the clients of every transport that was given the same handle.
                cx.changes().resources_list_changed();
                Reply::of(json!({ "content": [{ "type": "text", "text": "Noted." }] }))
            }
            "resources/list" => {
                let notes = self.0.lock().unwrap();
                let resource = |(n, text)| json!({ "uri": format!("note:///{n}"), "name": text });
                Reply::of(json!({ "resources": notes.iter().enumerate().map(resource).collect::<Vec<_>>() }))
            }
            _ => Err(McpError::method_not_found()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (notes, changes) = (Arc::new(Notes::default()), Changes::new());
    let http = StreamableHttpService::builder(Arc::clone(&notes)).changes(&changes).build()?;
    let stdio = StdioTransport::builder(notes).changes(&changes).build()?;

    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let listener = tokio::net::TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    // Standard output is the stdio transport's.
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let app = axum::Router::new().route_service("/mcp", http.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });

    let terminated = terminated()?;
    let (host, pages) = (stdio.clone(), http.clone());
    tokio::spawn(async move {
        terminated.await;
        drain_all(&[&host, &pages], DRAIN_TIME).await;
    });

    stdio.serve().await?;
    // The host is gone, or the drain has ended its stream; the others get their time.
    drain_all(&[&http], DRAIN_TIME).await;
    Ok(())
}

/// Waits for SIGTERM, or Ctrl-C where there is none.
#[cfg(unix)]
fn terminated() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal::unix::signal(signal::unix::SignalKind::terminate())?;
    Ok(async move {
        terminate.recv().await;
    })
}

#[cfg(not(unix))]
fn terminated() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async { drop(signal::ctrl_c().await) })
}
