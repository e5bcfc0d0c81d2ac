//! Tools whose work may outlive their call: as a task where the client can follow one.

use std::time::Duration;

use mcp_transport::{McpError, Reply, Request, RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rounds::user_name;
use crate::tasks::{self, Tasks};
use crate::tools::{object, text, tool};

#[derive(Deserialize)]
struct Greet {
    name: String,
}

#[derive(Deserialize)]
struct Compute {
    seconds: u16,
    label: String,
}

#[derive(Deserialize)]
struct Delete {
    filename: String,
}

pub fn tools() -> Vec<Value> {
    vec![
        tool("greet", "Greets, at once.", json!({ "name": { "type": "string" } })),
        tool(
            "slow_compute",
            "Takes its time.",
            json!({
                "seconds": { "type": "integer", "minimum": 0 },
                "label": { "type": "string" },
            }),
        ),
        tool("failing_job", "Fails after a while, and says so to the model.", json!({})),
        tool("protocol_error_job", "Fails after a while, with an error.", json!({})),
        tool("confirm_delete", "Asks before it deletes.", json!({ "filename": { "type": "string" } })),
        tool("multi_input", "Asks for two things at once.", json!({})),
        tool("test_tool_with_task", "Asks first, and then takes its time.", json!({})),
    ]
}

pub async fn call(
    name: &str,
    request: &Request,
    tasks: &Tasks,
    cx: &RequestContext,
) -> Option<Result<Reply, McpError>> {
    Some(match name {
        "greet" => request.arguments().and_then(|Greet { name }| text(format!("Hello, {name}!"))),
        "slow_compute" => slow_compute(request, tasks, cx).await,
        "failing_job" => tasks::require(cx).and_then(|()| tasks.start(cx, |_| failing())),
        "protocol_error_job" => tasks::require(cx).and_then(|()| tasks.start(cx, |_| erring())),
        "confirm_delete" => confirm_delete(request, tasks, cx),
        "multi_input" => multi_input(tasks, cx),
        "test_tool_with_task" => ask_first(tasks, cx).await,
        _ => return None,
    })
}

/// The same work, in the call or after it.
async fn slow_compute(request: &Request, tasks: &Tasks, cx: &RequestContext) -> Result<Reply, McpError> {
    let Compute { seconds, label } = request.arguments()?;
    let work = async move {
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
        Ok(said(&format!("{label} took {seconds} s")))
    };
    match tasks::are_supported(cx) {
        true => tasks.start(cx, |_| work),
        false => Reply::of(work.await?),
    }
}

async fn failing() -> Result<Value, McpError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(json!({ "isError": true, "content": [{ "type": "text", "text": "It did not work out" }] }))
}

async fn erring() -> Result<Value, McpError> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    Err(McpError::internal("the machine broke down"))
}

fn confirm_delete(request: &Request, tasks: &Tasks, cx: &RequestContext) -> Result<Reply, McpError> {
    require_user(cx)?;
    let Delete { filename } = request.arguments()?;
    tasks.start(cx, |task| async move {
        let question = form(&format!("Delete {filename}?"), json!({ "confirm": { "type": "boolean" } }));
        let answer = task.ask("confirm", question).await?;
        match answer["content"]["confirm"].as_bool() {
            Some(true) => Ok(said(&format!("{filename} is deleted"))),
            _ => Ok(said("Nothing was deleted")),
        }
    })
}

fn multi_input(tasks: &Tasks, cx: &RequestContext) -> Result<Reply, McpError> {
    require_user(cx)?;
    tasks.start(cx, |task| async move {
        let (name, confirm) = tokio::try_join!(
            task.ask("name", form("What is your name?", json!({ "name": { "type": "string" } }))),
            task.ask("confirm", form("Is that so?", json!({ "confirm": { "type": "boolean" } }))),
        )?;
        Ok(said(&format!("{} {}", name["content"], confirm["content"])))
    })
}

/// Questions before the task are asked in rounds, as any tool asks them.
async fn ask_first(tasks: &Tasks, cx: &RequestContext) -> Result<Reply, McpError> {
    tasks::require(cx)?;
    let name = user_name(cx).await?.unwrap_or_else(|| "stranger".to_owned());
    tasks.start(cx, |_| async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok(said(&format!("It is done, {name}")))
    })
}

/// A task that asks needs a client that can follow it, and has a user to ask.
fn require_user(cx: &RequestContext) -> Result<(), McpError> {
    tasks::require(cx)?;
    match cx.client_capabilities().declares(&["elicitation"]) {
        true => Ok(()),
        false => Err(McpError::missing_capabilities(json!({ "elicitation": {} }))),
    }
}

fn form(message: &str, properties: Value) -> Value {
    let params = json!({ "message": message, "requestedSchema": object(properties) });
    json!({ "method": "elicitation/create", "params": params })
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
