//! The list of tools, and where each is found.

use mcp_transport::{McpError, Reply, Request, RequestContext};
use serde_json::{Value, json};

use crate::tasks::Tasks;
use crate::{content, jobs, questions, reports, rounds};

pub fn list() -> Result<Reply, McpError> {
    let tools = [content::tools(), reports::tools(), questions::tools(), rounds::tools(), jobs::tools()].concat();
    // They are the same for everyone, and stay so for a while.
    Reply::of(json!({ "tools": tools, "ttlMs": 60_000, "cacheScope": "public" }))
}

pub async fn call(tasks: &Tasks, request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
    let name = request.name().ok_or_else(|| McpError::invalid_params("Which tool?"))?;
    if let Some(reply) = content::call(name, request) {
        return reply;
    }
    if let Some(reply) = reports::call(name, request, cx).await {
        return reply;
    }
    if let Some(reply) = questions::call(name, request, cx).await {
        return reply;
    }
    if let Some(reply) = rounds::call(name, cx).await {
        return reply;
    }
    if let Some(reply) = jobs::call(name, request, tasks, cx).await {
        return reply;
    }
    Err(McpError::invalid_params("There is no such tool"))
}

/// A tool as the list describes it. It needs all of its arguments.
pub fn tool(name: &str, description: &str, arguments: Value) -> Value {
    json!({ "name": name, "description": description, "inputSchema": object(arguments) })
}

/// The schema of an object with these properties, all of them required.
pub fn object(properties: Value) -> Value {
    let required: Vec<String> = properties.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
    let mut schema = json!({ "type": "object", "required": required });
    schema["properties"] = properties;
    schema
}

/// What a tool returns that has a text to say.
pub fn text(text: impl AsRef<str>) -> Result<Reply, McpError> {
    Reply::of(json!({ "content": [{ "type": "text", "text": text.as_ref() }] }))
}
