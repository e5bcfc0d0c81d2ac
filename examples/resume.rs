//! A long task, and a client that keeps losing its connection.
//!
//!     cargo run --example resume -- --http 127.0.0.1:8080
//!
//! `render {frames, interval_ms}` reports every frame. With an event store its events have ids, in every revision up to
//! 2025-11-25, and a client that lost the connection comes back with the last id it read:
//!
//! ```text
//! → POST tools/call {"name":"render","arguments":{"frames":4,"interval_ms":500},"_meta":{"progressToken":1}}
//! ← id: 9AfXs0Zx5V2nQm8oTj4l6w-1
//! ← data: {"method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":4}}
//!   (the connection breaks)
//! → GET, Last-Event-ID: 9AfXs0Zx5V2nQm8oTj4l6w-1
//! ← id: 9AfXs0Zx5V2nQm8oTj4l6w-2
//! ← data: {"method":"notifications/progress","params":{"progressToken":1,"progress":2,"total":4}}
//!   …
//! ← id: 9AfXs0Zx5V2nQm8oTj4l6w-5
//! ← data: {"id":1,"result":{"content":[{"type":"text","text":"rendered 4 frames"}]}}
//! ```
//!
//! One of 2025-11-25 need not even stay connected: after every frame the handler lets its connection go, and says when to
//! come back. It reads a report at each visit, and the answer at the last:
//!
//! ```text
//! → POST tools/call {"name":"render","arguments":{"frames":4,"interval_ms":500},"_meta":{"progressToken":1}}
//! ← id: kU3cY1bRw7HqLzEo2GsVtA-1
//! ← data:
//! ← id: kU3cY1bRw7HqLzEo2GsVtA-2
//! ← retry: 250
//! ← data:
//!   (the server closes the connection; the client waits for 250 ms)
//! → GET, Last-Event-ID: kU3cY1bRw7HqLzEo2GsVtA-2
//! ← id: kU3cY1bRw7HqLzEo2GsVtA-3
//! ← data: {"method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":4}}
//! ← id: kU3cY1bRw7HqLzEo2GsVtA-4
//! ← retry: 250
//! ← data:
//!   …
//! → GET, Last-Event-ID: kU3cY1bRw7HqLzEo2GsVtA-8
//! ← id: kU3cY1bRw7HqLzEo2GsVtA-9
//! ← data: {"method":"notifications/progress","params":{"progressToken":1,"progress":4,"total":4}}
//! ← id: kU3cY1bRw7HqLzEo2GsVtA-10
//! ← data: {"id":1,"result":{"content":[{"type":"text","text":"rendered 4 frames"}]}}
//! ```
//!
//! A client of 2026-07-28 that goes away cancels the task: that revision has no way back.

use std::time::Duration;

use axum::serve::ListenerExt;
use mcp_transport::{
    Capabilities, EventStore, McpError, McpHandler, Progress, Reply, Request, RequestContext, ServerInfo,
    StreamableHttpService,
};
use serde::Deserialize;
use serde_json::json;

struct Studio;

#[derive(Deserialize)]
struct Render {
    frames: u32,
    interval_ms: u64,
}

impl McpHandler for Studio {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("resume", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let number = json!({ "type": "integer", "minimum": 0 });
        match (request.method(), request.name()) {
            ("tools/list", _) => Reply::of(json!({ "tools": [{
                "name": "render",
                "description": "Renders as many frames, one at each interval.",
                "inputSchema": {
                    "type": "object",
                    "properties": { "frames": number, "interval_ms": number },
                    "required": ["frames", "interval_ms"],
                },
            }] })),
            ("tools/call", Some("render")) => {
                let text = render(request.arguments()?, &cx).await;
                Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
            }
            ("tools/call", _) => Err(McpError::invalid_params("There is no such tool")),
            _ => Err(McpError::method_not_found()),
        }
    }
}

/// It makes no difference here whether anybody is connected: what is reported meanwhile is read later.
async fn render(Render { frames, interval_ms }: Render, cx: &RequestContext) -> String {
    let interval = Duration::from_millis(interval_ms);
    for frame in 1..=frames {
        // The client is back before the next frame is done. Does nothing where it could not come back.
        cx.close_connection(interval / 2);
        tokio::time::sleep(interval).await;
        cx.progress(Progress::new(frame.into()).total(frames.into())).await;
    }
    format!("rendered {frames} frames")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);

    let service = StreamableHttpService::builder(Studio).event_store(EventStore::InMemory).build()?;
    let app = axum::Router::new().route_service("/mcp", service);
    axum::serve(listener.tap_io(|socket| drop(socket.set_nodelay(true))), app).await?;
    Ok(())
}
