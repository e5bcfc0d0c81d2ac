//! Takes rmcp's client through everything: `tour-rmcp URL|COMMAND discover|auto|initialize`. The steps are in ../tour.

// Sampling, roots and logging are deprecated since 2026-07-28, and served all the same.
#![allow(deprecated)]

use std::sync::Mutex;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest, ContentBlock,
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    GetPromptRequestParams, Implementation, JsonObject, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ReadResourceRequestParams, Request, RequestMetaObject, ResourceContents, Root,
    SamplingMessage,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use walk_rmcp::{Result, UNDER_WAY, connect, expect, log_to_stderr, step, version};

/// Answers what the server asks, and keeps what it says on the way to an answer.
#[derive(Default)]
struct User {
    progress: Mutex<Vec<f64>>,
    log: Mutex<Vec<Value>>,
}

type Client = RunningService<RoleClient, User>;

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(Default::default());
        capabilities.sampling = Some(Default::default());
        capabilities.elicitation = Some(Default::default());
        ClientConfig::new(capabilities, Implementation::new("tour", "0.0.0"))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> std::result::Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = params else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let mut content = filled_in();
        content.retain(|name, _| requested_schema.properties.contains_key(name));
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> std::result::Result<CreateMessageResult, ErrorData> {
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("Paris"), "none".to_owned()))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> std::result::Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///tour").with_name("tour")]))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(params.progress);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.log.lock().unwrap().push(params.data);
    }
}

/// What the user fills in, whatever form it is.
fn filled_in() -> JsonObject {
    let form =
        [("name", "Ann"), ("color", "red"), ("username", "ann"), ("email", "ann@example.com"), ("context", "tea")];
    let mut form: JsonObject = form.map(|(name, value)| (name.to_owned(), json!(value))).into_iter().collect();
    form.insert("ok".to_owned(), json!(true));
    form
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn tool_call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(name).with_arguments(object(arguments));
    // Legacy servers ignore the level; without it a modern one sends no log.
    let mut meta = RequestMetaObject::new();
    meta.set_log_level(LoggingLevel::Info);
    params.meta = Some(meta);
    params
}

async fn call(client: &Client, name: &'static str, arguments: Value) -> Result<CallToolResult> {
    Ok(client.call_tool(tool_call(name, arguments)).await?)
}

async fn says(client: &Client, expected: &str, tool: &'static str, arguments: Value) -> Result<String> {
    let result = call(client, tool, arguments).await?;
    let is_said = result.content.iter().filter_map(|block| block.as_text()).any(|said| said.text.contains(expected));
    if is_said { Ok(String::new()) } else { Err(format!("{tool}: {:?}", result.content).into()) }
}

fn kind(block: &ContentBlock) -> &'static str {
    match block {
        ContentBlock::Text(_) => "text",
        ContentBlock::Image(_) => "image",
        ContentBlock::Audio(_) => "audio",
        ContentBlock::Resource(_) => "resource",
        _ => "another",
    }
}

async fn tools(client: &Client) -> Result<String> {
    let listed = client.list_all_tools().await?;
    expect("the first tool", listed.first().map(|tool| &*tool.name), Some("test_simple_text"))?;
    let kinds = call(client, "test_multiple_content_types", json!({})).await?;
    expect("the kinds", kinds.content.iter().map(kind).collect(), vec!["text", "image", "resource"])?;
    let sound = call(client, "test_audio_content", json!({})).await?;
    let sound = sound.content.first().and_then(|block| block.as_audio());
    expect("the sound", sound.map(|sound| &*sound.mime_type), Some("audio/wav"))?;
    expect("the failure", call(client, "test_error_handling", json!({})).await?.is_error, Some(true))?;
    says(client, "Grüße", "test_custom_header", json!({ "value": "Grüße" })).await?;
    says(client, "Hello, Ann!", "greet", json!({ "name": "Ann" })).await
}

async fn reports(client: &Client) -> Result<String> {
    call(client, "test_tool_with_progress", json!({})).await?;
    expect("the progress", client.service().progress.lock().unwrap().clone(), vec![0.0, 50.0, 100.0])?;
    client.service().log.lock().unwrap().clear();
    call(client, "test_tool_with_logging", json!({})).await?;
    expect("the log", client.service().log.lock().unwrap().len(), 3)
}

async fn questions(client: &Client) -> Result<String> {
    says(client, "LLM response: Paris", "test_sampling", json!({ "prompt": "The capital?" })).await?;
    says(client, "ann@example.com", "test_elicitation", json!({ "message": "Who are you?" })).await
}

async fn rounds(client: &Client) -> Result<String> {
    says(client, "Hello, Ann!", "test_input_required_result_elicitation", json!({})).await?;
    says(client, "file:///tour", "test_input_required_result_list_roots", json!({})).await?;
    says(client, "Paris", "test_input_required_result_multiple_inputs", json!({})).await?;
    says(client, "Ann likes red.", "test_input_required_result_multi_round", json!({})).await?;
    says(client, "state-ok, confirmed: true", "test_input_required_result_request_state", json!({})).await
}

async fn prompts(client: &Client) -> Result<String> {
    expect("the prompts", client.list_all_prompts().await?.len(), 5)?;
    let arguments = object(json!({ "arg1": "one", "arg2": "two" }));
    let said =
        prompt(client, GetPromptRequestParams::new("test_prompt_with_arguments").with_arguments(arguments)).await?;
    expect("the arguments", said.contains("arg2='two'"), true)?;
    let said = prompt(client, GetPromptRequestParams::new("test_input_required_result_prompt")).await?;
    expect("the context", &*said, "The context is: tea")
}

/// The text of its first message.
async fn prompt(client: &Client, params: GetPromptRequestParams) -> Result<String> {
    let prompt = client.get_prompt(params).await?;
    let text = prompt.messages.first().and_then(|message| message.content.as_text()).ok_or("no text")?;
    Ok(text.text.clone())
}

async fn resources(client: &Client) -> Result<String> {
    expect("the resources", client.list_all_resources().await?.len(), 3)?;
    expect("the templates", client.list_all_resource_templates().await?.len(), 1)?;
    let read = client.read_resource(ReadResourceRequestParams::new("test://template/7/data")).await?;
    match read.contents.first() {
        Some(ResourceContents::TextResourceContents { text, .. }) if text.contains("Data for ID: 7") => {
            Ok(String::new())
        }
        other => Err(format!("the data: {other:?}").into()),
    }
}

async fn reconnection(client: &Client) -> Result<String> {
    says(client, "The client came back", "test_reconnection", json!({})).await
}

async fn cancel(client: &Client) -> Result<String> {
    let params = tool_call("slow_compute", json!({ "seconds": 60, "label": "it" }));
    let request = ClientRequest::CallToolRequest(Request::new(params));
    let running = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    tokio::time::sleep(UNDER_WAY).await;
    running.cancel(Some("no longer wanted".to_owned())).await?;
    says(client, "Hello, Ann!", "greet", json!({ "name": "Ann" })).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    log_to_stderr();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, mode] = &arguments[..] else {
        return Err("usage: tour-rmcp URL|COMMAND discover|auto|initialize".into());
    };
    let url = if server.starts_with("http") { server.clone() } else { format!("stdio:{server} --stdio") };
    let client = connect(User::default(), &url, mode).await?;
    step("connect", async { Ok(version(&client)?.to_string()) }).await;
    step("tools", tools(&client)).await;
    step("reports", reports(&client)).await;
    step("questions", questions(&client)).await;
    step("rounds", rounds(&client)).await;
    step("prompts", prompts(&client)).await;
    step("resources", resources(&client)).await;
    step("reconnection", reconnection(&client)).await;
    step("cancel", cancel(&client)).await;
    client.cancel().await?;
    Ok(())
}
