//! One server with something of everything: tools, prompts, resources, completion, logs, progress, changes, questions to
//! the client, and long work as tasks. Nothing in it asks which revision its client speaks.
//!
//!     cargo run --example everything -- --http 127.0.0.1:8080 --log
//!     cargo run --example everything -- --stdio
//!
//! Then open <http://127.0.0.1:8080/> in a browser: a page that talks to the server in both eras, and shows every message.
//! `--log` says on standard error what the transport does; `--allow-origin` and `--allow-host`, each with a value and as
//! often as you like, let pages of other origins in, and requests to other names of this machine.
//!
//! What its tools are called and what they say is what the official conformance suite expects; `tests/conformance/run`
//! holds it against that. The files, in the order to read them:
//!
//! - `content.rs`: what a tool can return;
//! - `reports.rs`: what a tool can send while it runs;
//! - `questions.rs`: what it can ask its client, in straight-line code;
//! - `rounds.rs`: several questions, one after the other or at once, and a round made by hand;
//! - `tasks.rs`: the extension `io.modelcontextprotocol/tasks`, written by an application; `jobs.rs`: tools that use it;
//! - `prompts.rs` and `resources.rs`;
//! - `http.rs` and `log.rs`: the server on HTTP, and what it tells of itself; `page.rs`: the page.

mod content;
mod http;
mod jobs;
mod log;
mod page;
mod prompts;
mod questions;
mod reports;
mod resources;
mod rounds;
mod tasks;
mod tools;

use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StdioTransport};
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
    match arguments.next().as_deref() {
        Some("--stdio") => drop(StdioTransport::stdio(everything).serve().await?),
        Some("--http") => {
            let address = arguments.next().ok_or("--http needs an address")?;
            http::serve(everything, &address, arguments).await?;
        }
        Some(other) => return Err(format!("begin with --http or --stdio, not with {other}").into()),
        None => http::serve(everything, "127.0.0.1:8080", arguments).await?,
    }
    Ok(())
}
