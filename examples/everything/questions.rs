//! What a tool can ask its client: the user, by a form, or the model. The same lines serve clients that are asked by a
//! request of the server's own and clients that are asked by a result.

use mcp_transport::{McpError, Question, Reply, Request, RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::{object, text, tool};

#[derive(Deserialize)]
struct Prompt {
    prompt: String,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

/// What a model says, as far as it is of interest here.
#[derive(Deserialize)]
struct Sampled {
    content: Said,
}

#[derive(Deserialize)]
struct Said {
    text: String,
}

pub fn tools() -> Vec<Value> {
    vec![
        tool("test_sampling", "Asks the client's model.", json!({ "prompt": { "type": "string" } })),
        tool("test_elicitation", "Asks the user who they are.", json!({ "message": { "type": "string" } })),
        tool("test_elicitation_sep1034_defaults", "Asks by a form that is filled in already.", json!({})),
        tool("test_elicitation_sep1330_enums", "Asks the user to choose.", json!({})),
        tool("test_streaming_elicitation", "Asks the user to go on.", json!({})),
        tool("test_missing_capability", "Needs a client that has a model.", json!({})),
    ]
}

pub async fn call(name: &str, request: &Request, cx: &RequestContext) -> Option<Result<Reply, McpError>> {
    Some(match name {
        "test_sampling" => sampling(request, cx).await,
        "test_elicitation" => elicitation(request, cx).await,
        "test_elicitation_sep1034_defaults" => form(cx, "Please check and confirm", defaults()).await,
        "test_elicitation_sep1330_enums" => form(cx, "Please choose", enums()).await,
        "test_streaming_elicitation" => form(cx, "Shall it go on?", json!({ "go_on": { "type": "boolean" } })).await,
        "test_missing_capability" if cx.client_capabilities().declares(&["sampling"]) => {
            text("The client has a model.")
        }
        "test_missing_capability" => Err(McpError::missing_capabilities(json!({ "sampling": {} }))),
        _ => return None,
    })
}

async fn sampling(request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
    let Prompt { prompt } = request.arguments()?;
    let answer = cx.ask("model", sample(&prompt)?).await?;
    let Sampled { content } = answer.parse()?;
    text(format!("LLM response: {}", content.text))
}

/// A question to the client's model.
pub fn sample(prompt: &str) -> Result<Question, McpError> {
    let content = json!({ "type": "text", "text": prompt });
    Question::sampling(json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 }))
}

async fn elicitation(request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
    let Message { message } = request.arguments()?;
    let properties = json!({
        "username": { "type": "string", "description": "Your name" },
        "email": { "type": "string", "description": "Your address" },
    });
    let answer = cx.ask("user", Question::form(message, object(properties))?).await?;
    text(format!("User response: {}", answer.json()))
}

/// Asks the user, and says what they did: that they decline is an answer too.
async fn form(cx: &RequestContext, message: &str, properties: Value) -> Result<Reply, McpError> {
    let question = Question::form(message, json!({ "type": "object", "properties": properties }))?;
    let answer = cx.ask("form", question).await?;
    text(format!("Elicitation completed: {}", answer.json()))
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn enums() -> Value {
    let titled = json!([
        { "const": "one", "title": "The first" },
        { "const": "two", "title": "The second" },
        { "const": "three", "title": "The third" },
    ]);
    let plain = json!(["one", "two", "three"]);
    let names = json!(["The first", "The second", "The third"]);
    json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": plain, "enumNames": names },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    })
}
