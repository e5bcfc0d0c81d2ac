//! The application of all cases.

use std::borrow::Cow;

use mcp_transport::{
    Capabilities, McpError, McpHandler, Progress, Question, Reply, Request, RequestContext, ServerInfo,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct CallResult<'a> {
    content: [Text<'a>; 1],
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Lists so many tools. `echo` answers with its text, `count` after so many reports of progress, `ask` after a question.
pub struct Tools(pub usize);

/// The arguments of `annotated` that its headers mirror.
pub const ANNOTATED: [&str; 5] = ["region", "tenant", "shard", "kind", "trace"];

impl McpHandler for Tools {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("cases", "1.0.0")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools().tools_list_changed()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method() == "tools/list" {
            return Reply::of(json!({ "tools": (0..self.0).map(tool).collect::<Vec<_>>() }));
        }
        if request.method() != "tools/call" {
            return Err(McpError::method_not_found());
        }
        match request.name() {
            Some("count") => {
                let to: Value = request.arguments()?;
                for step in 1..=to["to"].as_u64().unwrap_or_default() {
                    cx.progress(Progress::new(step as f64)).await;
                }
                echo("done")
            }
            Some("ask") => {
                let schema = json!({ "type": "object", "properties": { "sure": { "type": "boolean" } } });
                let question = json!({ "message": "Sure?", "requestedSchema": schema });
                cx.ask("sure", Question::new("elicitation/create", question)?).await?;
                echo("done")
            }
            _ => echo(&request.arguments::<Arguments<'_>>()?.text),
        }
    }
}

fn echo(text: &str) -> Result<Reply, McpError> {
    Reply::of(CallResult { content: [Text { r#type: "text", text }] })
}

/// The first is `annotated`, the others are like `echo`.
fn tool(number: usize) -> Value {
    if number == 0 {
        let mirrored = |name: &&str| ((*name).to_owned(), json!({ "type": "string", "x-mcp-header": name }));
        let properties: serde_json::Map<_, _> = ANNOTATED.iter().map(mirrored).collect();
        return json!({ "name": "annotated", "inputSchema": { "type": "object", "properties": properties } });
    }
    let properties = json!({ "text": { "type": "string", "description": "What to say" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["text"] });
    json!({ "name": format!("echo{number}"), "description": "Says what it is told", "inputSchema": schema })
}
