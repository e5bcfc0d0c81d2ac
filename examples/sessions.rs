//! State kept for each session, and changes told to every client: a server whose tools come and go.
//!
//!     cargo run --example sessions -- --http 127.0.0.1:8080
//!
//! `remember {text}` and `recall` keep notes in the caller's session (clients up to 2025-11-25; later ones have none).
//! `unlock` publishes a change from inside a tool; the clock at the end of `main` publishes one from outside.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_transport::{
    Capabilities, Changes, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::{Value, json};

const CLOCK: &str = "clock://now";

/// One value serves all clients.
#[derive(Default)]
struct Notebook {
    unlocked: AtomicBool,
}

/// What one session remembers.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

#[derive(Deserialize)]
struct Remember {
    text: String,
}

impl McpHandler for Notebook {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("notebook", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed().resources_subscribe()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match (request.method(), request.name()) {
            ("tools/list", _) => Reply::of(json!({ "tools": self.tools() })),
            ("tools/call", Some("remember")) => {
                let Remember { text } = request.arguments()?;
                notes(&cx)?.0.lock().unwrap_or_else(|e| e.into_inner()).push(text);
                say("Noted.")
            }
            ("tools/call", Some("recall")) => say(&notes(&cx)?.0.lock().unwrap_or_else(|e| e.into_inner()).join("\n")),
            ("tools/call", Some("unlock")) => {
                self.unlocked.store(true, Ordering::Relaxed);
                cx.changes().tools_list_changed();
                say("There is a new tool now.")
            }
            ("tools/call", Some("secret")) if self.unlocked.load(Ordering::Relaxed) => say("42"),
            ("tools/call", _) => Err(McpError::invalid_params("There is no such tool")),
            ("resources/list", _) => Reply::of(json!({ "resources": [{ "uri": CLOCK, "name": "clock" }] })),
            ("resources/read", _) if request.uri() == Some(CLOCK) => {
                let now = format!("{:?}", std::time::SystemTime::now());
                Reply::of(json!({ "contents": [{ "uri": CLOCK, "text": now }] }))
            }
            ("resources/read", _) => Err(McpError::resource_not_found(request.uri().unwrap_or_default())),
            _ => Err(McpError::method_not_found()),
        }
    }
}

impl Notebook {
    fn tools(&self) -> Vec<Value> {
        let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let nothing = json!({ "type": "object" });
        let mut tools = vec![
            json!({ "name": "remember", "inputSchema": text }),
            json!({ "name": "recall", "inputSchema": nothing }),
            json!({ "name": "unlock", "inputSchema": nothing }),
        ];
        if self.unlocked.load(Ordering::Relaxed) {
            tools.push(json!({ "name": "secret", "inputSchema": nothing }));
        }
        tools
    }
}

/// The notes of the caller's session, made when they are first asked for.
fn notes(cx: &RequestContext) -> Result<std::sync::Arc<Notes>, McpError> {
    let session = cx.session().ok_or_else(|| McpError::invalid_request("Notes need a session"))?;
    Ok(session.get_or_insert_with(Notes::default))
}

fn say(text: &str) -> Result<Reply, McpError> {
    Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let listener = tokio::net::TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);

    // The handle outlives any request: here a clock publishes through it.
    let changes = Changes::new();
    let service = StreamableHttpService::builder(Notebook::default()).changes(&changes).build()?;
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            changes.resource_updated(CLOCK);
        }
    });
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?;
    Ok(())
}
