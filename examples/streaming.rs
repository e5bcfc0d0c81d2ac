//! Work that takes its time: progress, log messages and cancellation.
//!
//!     cargo run --example streaming -- --http 127.0.0.1:8080
//!
//! `count` says how far it has come; its first report turns the answer into an event stream. `sleep` stops where it
//! stands when its client goes away. `cancellations` returns how often that has happened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::serve::ListenerExt;
use mcp_transport::{
    Capabilities, LogLevel, McpError, McpHandler, Progress, Reply, Request, RequestContext, ServerInfo,
    StreamableHttpService,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Default)]
struct Streaming {
    cancellations: AtomicU64,
}

#[derive(Deserialize)]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct Count {
    to: u32,
    interval_ms: u64,
}

#[derive(Deserialize)]
struct Sleep {
    ms: u64,
}

impl McpHandler for Streaming {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("streaming", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools().logging()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let text = match (request.method(), request.name()) {
            ("tools/list", _) => return Reply::of(tools()),
            ("tools/call", Some("echo")) => request.arguments::<Echo>()?.text,
            ("tools/call", Some("count")) => count(request.arguments()?, &cx).await?,
            ("tools/call", Some("sleep")) => sleep(request.arguments()?, cx, &self.cancellations).await,
            ("tools/call", Some("cancellations")) => self.cancellations.load(Ordering::Relaxed).to_string(),
            ("tools/call", _) => return Err(McpError::invalid_params("There is no such tool")),
            _ => return Err(McpError::method_not_found()),
        };
        Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
    }
}

async fn count(Count { to, interval_ms }: Count, cx: &RequestContext) -> Result<String, McpError> {
    for step in 1..=to {
        tokio::time::sleep(Duration::from_millis(interval_ms)).await;
        cx.progress(Progress::new(f64::from(step)).total(f64::from(to))).await;
        cx.log(LogLevel::Info, format!("{step} of {to}")).await?;
    }
    Ok(format!("counted to {to}"))
}

async fn sleep(Sleep { ms }: Sleep, cx: RequestContext, cancellations: &AtomicU64) -> String {
    let _asleep = Asleep { cx, cancellations };
    tokio::time::sleep(Duration::from_millis(ms)).await;
    format!("slept {ms} ms")
}

/// A cancelled handler is dropped, and so is what it holds: a `Drop` is the place to tidy up.
struct Asleep<'a> {
    cx: RequestContext,
    cancellations: &'a AtomicU64,
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        if let Some(cause) = self.cx.cancel_cause() {
            self.cancellations.fetch_add(1, Ordering::Relaxed);
            eprintln!("cancelled: {cause:?}");
        }
    }
}

fn tools() -> Value {
    let number = json!({ "type": "integer", "minimum": 0 });
    let tool = |name, description, properties: Value| {
        let required: Vec<_> = properties.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        json!({ "name": name, "description": description, "inputSchema": schema })
    };
    json!({ "tools": [
        tool("echo", "Says what it is told.", json!({ "text": { "type": "string" } })),
        tool("count", "Counts, and says how far it has come.", json!({ "to": number, "interval_ms": number })),
        tool("sleep", "Sleeps until it is done or cancelled.", json!({ "ms": number })),
        tool("cancellations", "Says how many sleeps were cancelled.", json!({})),
    ] })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);

    let app = axum::Router::new().route_service("/mcp", StreamableHttpService::new(Streaming::default()));
    // Without it, small answers wait for the peer's acknowledgement.
    axum::serve(listener.tap_io(|socket| drop(socket.set_nodelay(true))), app).await?;
    Ok(())
}
