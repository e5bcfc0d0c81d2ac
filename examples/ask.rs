//! A tool that asks its user: straight-line code, for clients of every revision.
//!
//!     cargo run --example ask -- --http 127.0.0.1:8080
//!
//! `delete {path}` asks whether it may, then for a reason and a name at once, and last for a code until it is right
//! (42). A client of 2026-07-28 reads the questions as a result and sends its call again with the answers:
//!
//! ```text
//! → tools/call {"name":"delete","arguments":{"path":"a.txt"}}
//! ← {"resultType":"input_required","inputRequests":{"confirm":{"method":"elicitation/create","params":{…}}},"requestState":"AQ…"}
//! → tools/call {…,"inputResponses":{"confirm":{"action":"accept","content":{"yes":true}}},"requestState":"AQ…"}
//! ← {"resultType":"input_required","inputRequests":{"name":{…},"reason":{…}},"requestState":"AR…"}
//! → tools/call {…,"inputResponses":{"name":{…},"reason":{…}},"requestState":"AR…"}
//! ← {"resultType":"input_required","inputRequests":{"code":{…}},"requestState":"AS…"}
//! → tools/call {…,"inputResponses":{"code":{"action":"accept","content":{"code":41}}},"requestState":"AS…"}
//! ← {"resultType":"input_required","inputRequests":{"code#2":{…}},"requestState":"AT…"}
//! → tools/call {…,"inputResponses":{"code#2":{"action":"accept","content":{"code":42}}},"requestState":"AT…"}
//! ← {"resultType":"complete","content":[{"type":"text","text":"a.txt is deleted (Ann: too old)"}]}
//! ```
//!
//! One of 2025-06-18 or 2025-11-25 that has a session reads them as requests on the stream of its call, and answers each
//! with a POST:
//!
//! ```text
//! → {"id":1,"method":"tools/call","params":{"name":"delete","arguments":{"path":"a.txt"}}}
//! ← data: {"id":1,"method":"elicitation/create","params":{"message":"Delete a.txt?","requestedSchema":{…}}}
//! → {"id":1,"result":{"action":"accept","content":{"yes":true}}}
//! ← data: {"id":2,"method":"elicitation/create",…}
//! ← data: {"id":3,"method":"elicitation/create",…}
//!   …
//! ← data: {"id":1,"result":{"content":[{"type":"text","text":"a.txt is deleted (Ann: too old)"}]}}
//! ```

use mcp_transport::{
    AskError, Capabilities, McpError, McpHandler, Question, Reply, Request, RequestContext, ServerInfo,
    StreamableHttpService,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

struct Files;

#[derive(Deserialize)]
struct Delete {
    path: String,
}

#[derive(Deserialize)]
struct Confirm {
    yes: bool,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Reason {
    reason: String,
}

#[derive(Deserialize)]
struct Code {
    code: u32,
}

impl McpHandler for Files {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("ask", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match (request.method(), request.name()) {
            ("tools/list", _) => Reply::of(json!({ "tools": [{
                "name": "delete",
                "description": "Deletes a file, if its user agrees.",
                "inputSchema": { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] },
            }] })),
            ("tools/call", Some("delete")) => {
                let Delete { path } = request.arguments()?;
                let text = match delete(&path, &cx).await? {
                    Some(text) => text,
                    None => "Nothing was deleted.".to_owned(),
                };
                Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
            }
            ("tools/call", _) => Err(McpError::invalid_params("There is one tool here: delete")),
            _ => Err(McpError::method_not_found()),
        }
    }
}

/// `None` where the user says no to any of it.
async fn delete(path: &str, cx: &RequestContext) -> Result<Option<String>, McpError> {
    let confirm = form(cx, "confirm", &format!("Delete {path}?"), json!({ "yes": { "type": "boolean" } })).await?;
    let Some(Confirm { yes: true }) = confirm else {
        return Ok(None);
    };

    // Two at once: a client of 2026-07-28 gets both in one round.
    let (name, reason) = tokio::try_join!(
        form(cx, "name", "Who are you?", json!({ "name": { "type": "string" } })),
        form(cx, "reason", "Why?", json!({ "reason": { "type": "string" } })),
    )?;
    let (Some(Name { name }), Some(Reason { reason })) = (name, reason) else {
        return Ok(None);
    };

    // Each turn of the loop is a question of its own.
    loop {
        match form(cx, "code", "The code?", json!({ "code": { "type": "integer" } })).await? {
            Some(Code { code: 42 }) => break,
            Some(_) => {}
            None => return Ok(None),
        }
    }

    // What has an effect comes after the last question: everything above may run more than once.
    Ok(Some(format!("{path} is deleted ({name}: {reason})")))
}

/// Asks for one value. `None` where the user declines.
async fn form<T: DeserializeOwned>(
    cx: &RequestContext,
    name: &str,
    message: &str,
    properties: Value,
) -> Result<Option<T>, McpError> {
    let required: Vec<&String> = properties.as_object().into_iter().flatten().map(|(key, _)| key).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    match cx.ask(name, Question::form(message, schema)?).await {
        Ok(answer) => Ok(answer.accepted()?),
        // This client has no way to ask its user.
        Err(AskError::Unsupported { .. } | AskError::Unreachable) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let listener = tokio::net::TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().route_service("/mcp", StreamableHttpService::new(Files))).await
}
