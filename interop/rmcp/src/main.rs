//! Walks rmcp's client through the steps that ../../run lists: `walk-rmcp URL discover|auto|initialize`.
//!
//! The URL may be `stdio:` and the command of a server to start.

// Logging is deprecated since 2026-07-28, and served all the same.
#![allow(deprecated)]

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, Request, RequestMetaObject, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, Peer, PeerRequestOptions, RunningService};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use walk_rmcp::{Result, UNDER_WAY, command, connect, expect, log_to_stderr, step, version};

/// Keeps what the server says on the way to an answer.
#[derive(Default)]
struct Listener {
    progress: Mutex<Vec<f64>>,
    log: Mutex<Vec<Value>>,
    changed: tokio::sync::Notify,
}

impl ClientHandler for Listener {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(params.progress);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.log.lock().unwrap().push(params.data);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

type Client = RunningService<RoleClient, Listener>;

fn tool_call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let mut params =
        CallToolRequestParams::new(name).with_arguments(arguments.as_object().cloned().unwrap_or_default());
    let mut meta = RequestMetaObject::new();
    meta.set_log_level(LoggingLevel::Info);
    params.meta = Some(meta);
    params
}

async fn call(peer: &Peer<RoleClient>, name: &'static str, arguments: Value) -> Result<String> {
    let result: CallToolResult = peer.call_tool(tool_call(name, arguments)).await?;
    let text = result.content.first().and_then(|content| content.as_text()).ok_or("no text")?;
    Ok(text.text.clone())
}

async fn list(client: &Client) -> Result<String> {
    let tools = client.list_all_tools().await?;
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    expect("the tools", names, vec!["echo", "count", "poll", "break", "sleep", "cancelled", "finished", "change"])
}

async fn echo(client: &Client, text: &str) -> Result<String> {
    expect("the echo", call(client, "echo", json!({ "text": text })).await?, text.to_owned())
}

async fn count(client: &Client) -> Result<String> {
    let answer = call(client, "count", json!({ "to": 5, "interval_ms": 20 })).await?;
    expect("the answer", answer, "counted to 5".to_owned())?;
    expect("the progress", client.service().progress.lock().unwrap().clone(), vec![1.0, 2.0, 3.0, 4.0, 5.0])?;
    expect("the log", client.service().log.lock().unwrap().len(), 5)
}

/// A call whose connection the server lets go again and again, and one whose connection breaks.
async fn resume(client: &Client) -> Result<String> {
    for (tool, text) in [("poll", "polled to 4"), ("break", "broke off before 4")] {
        client.service().progress.lock().unwrap().clear();
        expect("the answer", call(client, tool, json!({ "to": 4, "interval_ms": 200 })).await?, text.to_owned())?;
        expect("the progress", client.service().progress.lock().unwrap().clone(), vec![1.0, 2.0, 3.0, 4.0])?;
    }
    Ok(String::new())
}

async fn cancel(client: &Client) -> Result<String> {
    let before = cancelled(client).await?;
    let request = ClientRequest::CallToolRequest(Request::new(tool_call("sleep", json!({ "ms": 60_000 }))));
    let running = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    tokio::time::sleep(UNDER_WAY).await;
    running.cancel(Some("enough slept".to_owned())).await?;
    stopped(client, before).await
}

/// Hears of a change that a tool publishes: on a subscription, or on the stream that was opened with the session.
async fn changes(client: &Client) -> Result<String> {
    if version(client)? == ProtocolVersion::V_2026_07_28 {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = client.listen(filter.clone()).await?;
        expect("what is granted", subscription.acknowledged().clone(), filter)?;
        call(client, "change", json!({})).await?;
        let heard = tokio::time::timeout(PATIENCE, subscription.next()).await??;
        let is_change = matches!(heard, Some(ServerNotification::ToolListChangedNotification(_)));
        expect("a change of the tools is heard", is_change, true)?;
        subscription.cancel().await?;
    } else {
        call(client, "change", json!({})).await?;
        tokio::time::timeout(PATIENCE, client.service().changed.notified()).await?;
    }
    Ok(String::new())
}

async fn second(client: &Client, other: &Client) -> Result<String> {
    tokio::try_join!(echo(client, "one"), echo(other, "another")).map(|_| String::new())
}

/// Closes the second connection in the middle of a call.
async fn hang_up(client: &Client, other: Client, url: &str) -> Result<String> {
    let before = cancelled(client).await?;
    let peer = other.peer().clone();
    let sleeping = tokio::spawn(async move { call(&peer, "sleep", json!({ "ms": 60_000 })).await });
    tokio::time::sleep(UNDER_WAY).await;
    other.cancel().await?;
    if sleeping.await?.is_ok() {
        return Err("the call was answered".into());
    }
    if command(url).is_some() {
        // The other server is a process of its own, and tells in its report what became of the call.
        return Ok(String::new());
    }
    stopped(client, before).await
}

/// Time enough for what must come.
const PATIENCE: Duration = Duration::from_secs(3);

async fn cancelled(client: &Client) -> Result<u64> {
    Ok(call(client, "cancelled", json!({})).await?.parse()?)
}

async fn stopped(client: &Client, before: u64) -> Result<String> {
    let deadline = Instant::now() + PATIENCE;
    while cancelled(client).await? == before {
        if Instant::now() > deadline {
            return Err("the handler is still running".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(String::new())
}

async fn walk(url: &str, mode: &str) -> Result<()> {
    let client = connect(Listener::default(), url, mode).await?;
    step("connect", async { Ok(version(&client)?.to_string()) }).await;
    step("list", list(&client)).await;
    step("echo", echo(&client, "Grüße, \"world\"\n")).await;
    step("count", count(&client)).await;
    if version(&client)? == ProtocolVersion::V_2026_07_28 {
        println!("resume skipped that revision has no way back");
    } else {
        step("resume", resume(&client)).await;
    }
    step("cancel", cancel(&client)).await;
    step("changes", changes(&client)).await;
    let other = connect(Listener::default(), url, mode).await?;
    step("second", second(&client, &other)).await;
    step("hang-up", hang_up(&client, other, url)).await;
    step("close", async { client.cancel().await.map(|_| String::new()).map_err(Into::into) }).await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    log_to_stderr();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, mode] = &arguments[..] else {
        return Err("usage: walk-rmcp URL discover|auto|initialize".into());
    };
    walk(url, mode).await
}
