//! Tools that ask more than once, or for more than one thing. A client of 2026-07-28 is asked in rounds: it reads
//! `input_required`, and sends its call again with the answers. What is known so far travels with it, sealed.

use mcp_transport::{AskError, InputResponse, McpError, Question, Reply, RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::try_join;

use crate::questions::sample;
use crate::tools::{object, text, tool};

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Color {
    color: String,
}

pub fn tools() -> Vec<Value> {
    vec![
        tool("test_input_required_result_elicitation", "Greets its user.", json!({})),
        tool("test_input_required_result_sampling", "Asks the model for a capital.", json!({})),
        tool("test_input_required_result_list_roots", "Counts the roots.", json!({})),
        tool("test_input_required_result_multiple_inputs", "Asks for three things at once.", json!({})),
        tool("test_input_required_result_multi_round", "Asks twice.", json!({})),
        tool("test_input_required_result_capabilities", "Asks for what the client can give.", json!({})),
        tool("test_input_required_result_request_state", "Asks by hand, and keeps a state.", json!({})),
        tool("test_input_required_result_tampered_state", "Does the same.", json!({})),
    ]
}

pub async fn call(name: &str, cx: &RequestContext) -> Option<Result<Reply, McpError>> {
    Some(match name.strip_prefix("test_input_required_result_")? {
        "elicitation" => greet(cx).await,
        "sampling" => capital(cx).await,
        "list_roots" => roots(cx).await,
        "multiple_inputs" => three_at_once(cx).await,
        "multi_round" => one_after_the_other(cx).await,
        "capabilities" => what_it_can(cx).await,
        "request_state" | "tampered_state" => by_hand(cx),
        _ => return None,
    })
}

/// Asks the user for one text.
pub fn form(message: &str, member: &str) -> Result<Question, McpError> {
    Question::form(message, object(json!({ (member): { "type": "string" } })))
}

/// The name of the user, who may not want to say it.
pub async fn user_name(cx: &RequestContext) -> Result<Option<String>, McpError> {
    let answer = cx.ask("user_name", form("What is your name?", "name")?).await?;
    Ok(answer.accepted()?.map(|Name { name }| name))
}

async fn greet(cx: &RequestContext) -> Result<Reply, McpError> {
    let name = user_name(cx).await?;
    text(format!("Hello, {}!", name.as_deref().unwrap_or("stranger")))
}

async fn capital(cx: &RequestContext) -> Result<Reply, McpError> {
    let answer = cx.ask("capital_question", sample("What is the capital of France?")?).await?;
    text(format!("The model says: {}", answer.json()))
}

async fn roots(cx: &RequestContext) -> Result<Reply, McpError> {
    let answer = cx.ask("client_roots", Question::roots()?).await?;
    text(format!("The client works in: {}", answer.json()))
}

/// Asked together, they go out in one round.
async fn three_at_once(cx: &RequestContext) -> Result<Reply, McpError> {
    let (name, greeting, roots) = try_join!(
        cx.ask("user_name", form("What is your name?", "name")?),
        cx.ask("greeting", sample("Generate a greeting")?),
        cx.ask("client_roots", Question::roots()?),
    )?;
    text(format!("{} {} {}", name.json(), greeting.json(), roots.json()))
}

async fn one_after_the_other(cx: &RequestContext) -> Result<Reply, McpError> {
    let name = cx.ask("step1", form("Step 1: What is your name?", "name")?).await?;
    let Some(Name { name }) = name.accepted()? else {
        return text("As you like.");
    };
    let color = cx.ask("step2", form("Step 2: What is your favorite color?", "color")?).await?;
    let Some(Color { color }) = color.accepted()? else {
        return text(format!("As you like, {name}."));
    };
    text(format!("{name} likes {color}."))
}

/// Asks what this client can be asked, and does without the rest.
async fn what_it_can(cx: &RequestContext) -> Result<Reply, McpError> {
    let (name, greeting) = try_join!(
        if_it_can(cx, "user_name", form("What is your name?", "name")?),
        if_it_can(cx, "greeting", sample("Generate a greeting")?),
    )?;
    let heard = [name, greeting].iter().flatten().count();
    text(format!("{heard} of 2 questions were answered."))
}

async fn if_it_can(cx: &RequestContext, name: &str, question: Question) -> Result<Option<InputResponse>, McpError> {
    match cx.ask(name, question).await {
        Ok(answer) => Ok(Some(answer)),
        Err(AskError::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The rounds as the protocol has them. The handler writes the result itself, and is called again with what the client
/// sent. Its state is sealed all the same, and clients of every revision can follow: the older ones are asked by
/// requests.
fn by_hand(cx: &RequestContext) -> Result<Reply, McpError> {
    let (Some(state), Some(answers)) = (cx.request_state(), cx.input_responses()) else {
        let schema = object(json!({ "ok": { "type": "boolean" } }));
        let params = json!({ "message": "Please confirm", "requestedSchema": schema });
        return Reply::of(json!({
            "resultType": "input_required",
            "inputRequests": { "confirm": { "method": "elicitation/create", "params": params } },
            "requestState": "state-ok",
        }));
    };
    // Nobody else can have written the state. The answers may be anything.
    let state: String = serde_json::from_slice(state).map_err(McpError::internal)?;
    let answers: Value = serde_json::from_slice(answers).map_err(McpError::internal)?;
    match answers["confirm"]["content"]["ok"].as_bool() {
        Some(ok) => text(format!("{state}, confirmed: {ok}")),
        None => text(format!("{state}, not confirmed")),
    }
}
