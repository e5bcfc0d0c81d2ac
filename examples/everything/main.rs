//! One server with something of everything: tools, prompts, resources, completion, logs, progress, changes, questions to
//! the client, and long work as tasks. Nothing in it asks which revision its client speaks.
//!
//!     cargo run --example everything -- --http 127.0.0.1:8080
//!     cargo run --example everything -- --stdio
//!
//! What its tools are called and what they say is what the official conformance suite expects; `tests/conformance/run`
//! holds it against that. The files, in the order to read them:
//!
//! - `content.rs`: what a tool can return;
//! - `reports.rs`: what a tool can send while it runs;
//! - `questions.rs`: what it can ask its client, in straight-line code;
//! - `rounds.rs`: several questions, one after the other or at once, and a round made by hand;
//! - `tasks.rs`: the extension `io.modelcontextprotocol/tasks`, written by an application; `jobs.rs`: tools that use it;
//! - `prompts.rs` and `resources.rs`.

mod content;
mod jobs;
mod prompts;
mod questions;
mod reports;
mod resources;
mod rounds;
mod tasks;
mod tools;

use std::time::Duration;

use axum::serve::ListenerExt;
use mcp_transport::{
    Capabilities, EventStore, Limits, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StdioTransport,
    StreamableHttpService,
};
use serde_json::json;

use tasks::Tasks;

/// One value serves all clients.
#[derive(Default)]
struct Everything {
    tasks: Tasks,
}

impl McpHandler for Everything {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("everything", env!("CARGO_PKG_VERSION")).title("A server with everything")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new()
            .tools_list_changed()
            .prompts_list_changed()
            .resources_subscribe()
            .completions()
            .logging()
            .extension(tasks::EXTENSION, json!({}))
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => tools::list(),
            "tools/call" => tools::call(&self.tasks, &request, &cx).await,
            "prompts/list" => prompts::list(),
            "prompts/get" => prompts::get(&request, &cx).await,
            "completion/complete" => prompts::complete(&request),
            "resources/list" => resources::list(),
            "resources/templates/list" => resources::templates(),
            "resources/read" => resources::read(&request),
            "tasks/get" => self.tasks.get(&request, &cx),
            "tasks/update" => self.tasks.update(&request, &cx),
            "tasks/cancel" => self.tasks.cancel(&request, &cx),
            _ => Err(McpError::method_not_found()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let everything = Everything::default();
    let mut arguments = std::env::args().skip(1);
    let address = match arguments.next().as_deref() {
        Some("--stdio") => {
            StdioTransport::stdio(everything).serve().await?;
            return Ok(());
        }
        Some("--http") => arguments.next(),
        _ => None,
    };
    let listener = tokio::net::TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);

    // In a session nothing is lost with a connection: every answer is a stream, and every stream can be resumed.
    let service = StreamableHttpService::builder(everything)
        .event_store(EventStore::InMemory)
        .limits(Limits::default().commit_after(Duration::ZERO))
        .build()?;
    let app = axum::Router::new().route_service("/mcp", service);
    // Without it, small answers wait for the peer's acknowledgement.
    axum::serve(listener.tap_io(|socket| drop(socket.set_nodelay(true))), app).await?;
    Ok(())
}
