//! What a tool can send while it runs: log messages, progress, and changes that everyone hears of.

use std::time::Duration;

use mcp_transport::{LogLevel, McpError, Progress, Reply, Request, RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::resources::WATCHED;
use crate::tools::{text, tool};

#[derive(Deserialize)]
struct Count {
    to: u16,
}

pub fn tools() -> Vec<Value> {
    vec![
        tool("test_tool_with_logging", "Works, and says what it does.", json!({})),
        tool("test_logging_tool", "Logs for those who want it.", json!({})),
        tool("test_tool_with_progress", "Works, and says how far it has come.", json!({})),
        tool(
            "count",
            "Counts, five numbers a second, and reports each.",
            json!({ "to": { "type": "integer", "minimum": 1, "maximum": u16::MAX, "default": 10 } }),
        ),
        tool("test_reconnection", "Lets its client go, and answers when it is back.", json!({})),
        tool("test_trigger_tool_change", "Tells everyone that the tools have changed.", json!({})),
        tool("test_trigger_prompt_change", "Tells everyone that the prompts have changed.", json!({})),
        tool("test_trigger_resource_change", "Tells subscribers that a resource has changed.", json!({})),
    ]
}

pub async fn call(name: &str, request: &Request, cx: &RequestContext) -> Option<Result<Reply, McpError>> {
    Some(match name {
        "test_tool_with_logging" => logging(cx).await,
        "test_logging_tool" => cx.log(LogLevel::Info, "This was asked for").await.and_then(|()| text("Done.")),
        "test_tool_with_progress" => progress(cx).await,
        "count" => count(request, cx).await,
        "test_reconnection" => reconnection(cx).await,
        "test_trigger_tool_change" => {
            cx.changes().tools_list_changed();
            text("They know.")
        }
        "test_trigger_prompt_change" => {
            cx.changes().prompts_list_changed();
            text("They know.")
        }
        "test_trigger_resource_change" => {
            cx.changes().resource_updated(WATCHED);
            text("They know.")
        }
        _ => return None,
    })
}

/// Whether anyone wants to read it is the transport's business.
async fn logging(cx: &RequestContext) -> Result<Reply, McpError> {
    cx.log(LogLevel::Info, "Tool execution started").await?;
    work().await;
    cx.log(LogLevel::Info, "Tool processing data").await?;
    work().await;
    cx.log(LogLevel::Info, "Tool execution completed").await?;
    text("The tool has run, and logged it.")
}

/// The first report turns the answer into an event stream, for clients that asked for reports.
async fn progress(cx: &RequestContext) -> Result<Reply, McpError> {
    for done in [0.0, 50.0, 100.0] {
        cx.progress(Progress::new(done).total(100.0)).await;
        work().await;
    }
    text("The tool has run, and said how far it was.")
}

/// Long enough to watch, or to be cancelled: then this future is dropped where it waits.
async fn count(request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
    let Count { to } = request.arguments()?;
    for done in 0..=to {
        cx.progress(Progress::new(done.into()).total(to.into())).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    text(format!("Counted to {to}."))
}

/// A long task need not hold a connection. Where the client cannot come back for the answer, it stays.
async fn reconnection(cx: &RequestContext) -> Result<Reply, McpError> {
    cx.close_connection(Duration::from_millis(500));
    work().await;
    text("The client came back, or never went.")
}

async fn work() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
