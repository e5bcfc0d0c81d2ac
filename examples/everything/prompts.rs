//! Prompts, and completion of their arguments.

use mcp_transport::{McpError, Reply, Request, RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::content::PNG;
use crate::rounds::form;

/// What may stand for the arguments of `test_prompt_with_arguments`.
const VALUES: [&str; 3] = ["testValue1", "testValue2", "testing"];

#[derive(Deserialize)]
struct Arguments {
    arg1: String,
    arg2: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    resource_uri: String,
}

#[derive(Deserialize)]
struct Context {
    context: String,
}

pub fn list() -> Result<Reply, McpError> {
    let argument = |name: &str| json!({ "name": name, "description": "What to speak of", "required": true });
    let prompt = |name: &str, description: &str, arguments: Vec<Value>| json!({ "name": name, "description": description, "arguments": arguments });
    Reply::of(json!({ "prompts": [
        prompt("test_simple_prompt", "One sentence.", vec![]),
        prompt("test_prompt_with_arguments", "A sentence with two words to fill in.", vec![
            argument("arg1"),
            argument("arg2"),
        ]),
        prompt("test_prompt_with_embedded_resource", "A resource and a question.", vec![argument("resourceUri")]),
        prompt("test_prompt_with_image", "A picture and a question.", vec![]),
        prompt("test_input_required_result_prompt", "Asks its user before it says anything.", vec![]),
    ] }))
}

pub async fn get(request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
    match request.name() {
        Some("test_simple_prompt") => messages([text("This is a simple prompt for testing.")]),
        Some("test_prompt_with_arguments") => {
            let Arguments { arg1, arg2 } = request.arguments()?;
            messages([text(&format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))])
        }
        Some("test_prompt_with_embedded_resource") => {
            let Embedded { resource_uri } = request.arguments()?;
            let resource = json!({ "uri": resource_uri, "mimeType": "text/plain", "text": "What it says." });
            let resource = json!({ "type": "resource", "resource": resource });
            messages([resource, text("What does the resource say?")])
        }
        Some("test_prompt_with_image") => {
            let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
            messages([image, text("What does the picture show?")])
        }
        Some("test_input_required_result_prompt") => {
            let question = form("What context should the prompt use?", "context")?;
            let context = cx.ask("user_context", question).await?.accepted()?;
            let context = context.map_or_else(|| "none".to_owned(), |Context { context }| context);
            messages([text(&format!("The context is: {context}"))])
        }
        _ => Err(McpError::invalid_params("There is no such prompt")),
    }
}

/// Suggests how a value may go on.
pub fn complete(request: &Request) -> Result<Reply, McpError> {
    #[derive(Deserialize)]
    struct Params {
        argument: Argument,
    }
    #[derive(Deserialize)]
    struct Argument {
        value: String,
    }
    let Params { argument } = request.params()?;
    let values: Vec<_> = VALUES.into_iter().filter(|value| value.starts_with(&argument.value)).collect();
    Reply::of(json!({ "completion": { "total": values.len(), "hasMore": false, "values": values } }))
}

/// A prompt of the user's, one block a message.
fn messages<const N: usize>(blocks: [Value; N]) -> Result<Reply, McpError> {
    let messages = blocks.map(|content| json!({ "role": "user", "content": content }));
    Reply::of(json!({ "messages": messages.as_slice() }))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
