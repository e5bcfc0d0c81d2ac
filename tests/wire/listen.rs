//! `subscriptions/listen`: what a client of 2026-07-28 hears of changes, and for how long.

mod filter;
mod life;
mod many;
mod opening;

use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use mcp_transport::{Capabilities, Changes, McpError, StreamableHttpBuilder, StreamableHttpService};
use serde_json::{Value, json};

use crate::harness::{Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, ID};

pub fn register(wire: &mut Wire) {
    opening::register(wire);
    filter::register(wire);
    many::register(wire);
    life::register(wire);
}

pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

pub const TOOLS: &str = "notifications/tools/list_changed";
pub const PROMPTS: &str = "notifications/prompts/list_changed";
pub const RESOURCES: &str = "notifications/resources/list_changed";
pub const UPDATED: &str = "notifications/resources/updated";

/// A server, and the handle to publish its changes with.
struct Site {
    client: Client,
    service: StreamableHttpService,
    changes: Changes,
}

impl Site {
    /// Declares every change there is.
    async fn open(cx: Cx) -> Self {
        Self::with(cx, script()).await
    }

    async fn with(cx: Cx, script: Script) -> Self {
        Self::built(cx, script, |builder| builder).await
    }

    async fn built(cx: Cx, script: Script, build: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> Self {
        let changes = Changes::new();
        let service = build(StreamableHttpService::builder(script).changes(&changes)).build().expect("a service");
        Self { client: cx.serve(service.clone()).await, service, changes }
    }

    /// Sends a request that must be granted, and returns the stream and what was granted.
    async fn listen(&self, call: Call) -> (Answer, Value) {
        let mut stream = self.client.send(call).await;
        assert_eq!(stream.status, StatusCode::OK);
        assert_eq!(stream.header(CONTENT_TYPE.as_str()), "text/event-stream");
        let mut first = stream.next_message().await.expect("an acknowledgement");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        let granted = first["params"]["notifications"].take();
        (stream, granted)
    }

    /// Publishes one change of every kind, and updates of these resources.
    fn publish_all(&self, uris: &[&str]) {
        publish_all(&self.changes, uris);
    }

    /// Ends the stream from the server's side and returns all that was still to come.
    async fn end(&self, stream: Answer) -> Vec<Value> {
        self.end_all(vec![stream]).await.remove(0)
    }

    /// Ends all streams and returns all that was still to come on each.
    async fn end_all(&self, streams: Vec<Answer>) -> Vec<Vec<Value>> {
        let rest = join_all(streams.into_iter().map(Answer::events));
        let (report, rest) = tokio::join!(self.service.drain(Duration::from_secs(5)), rest);
        assert_eq!((report.in_flight, report.cut), (0, 0));
        rest
    }

    /// Waits until so many event streams are open.
    async fn streams(&self, count: usize) {
        until(|| self.service.counts().streams == count).await;
    }
}

/// A handler that declares every change there is.
pub fn script() -> Script {
    Script::new(|_, _| async { Err(McpError::method_not_found()) }).declaring(everything())
}

pub fn everything() -> Capabilities {
    Capabilities::new()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .resources_subscribe()
        .logging()
}

/// Publishes one change of every kind, and updates of these resources.
pub fn publish_all(changes: &Changes, uris: &[&str]) {
    changes.tools_list_changed();
    changes.prompts_list_changed();
    changes.resources_list_changed();
    for uri in uris {
        changes.resource_updated(uri);
    }
}

/// The request with this filter.
pub fn listen(filter: Value) -> Call {
    let mut call = Call::modern("subscriptions/listen", json!({}));
    call.set("/params/notifications", filter);
    call
}

/// Everything there is to ask for, and updates of these resources.
pub fn all(uris: &[&str]) -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": uris,
    })
}

/// A message of the subscription of this id.
pub fn tagged(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ SUBSCRIPTION_ID: id.into() });
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// What a subscription that the server ends says last.
pub fn ended(id: impl Into<Value>) -> Value {
    let id = id.into();
    let meta = json!({
        SUBSCRIPTION_ID: id,
        "io.modelcontextprotocol/serverInfo": {"name": "wire", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}})
}

/// What [`publish_all`] makes a subscription to everything say.
fn all_tagged(uris: &[&str]) -> Vec<Value> {
    let lists = [TOOLS, PROMPTS, RESOURCES].map(|method| tagged(ID, method, json!({})));
    let updates = uris.iter().map(|uri| tagged(ID, UPDATED, json!({ "uri": uri })));
    lists.into_iter().chain(updates).collect()
}

/// Waits for what another task or connection has to bring about. A trial that waits in vain is cut by the harness.
pub async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
