//! Clients of 2026-07-28.

use http::StatusCode;
use mcp_transport::{Counts, Revision};
use serde_json::{Value, json};

use super::{id, serving, until};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::fixture;
use crate::support::request::{Call, SESSION_ID};
use crate::support::session::accepted;

const REVISION: Revision = Revision::V2026_07_28;
const TAG: &str = "io.modelcontextprotocol/subscriptionId";

pub fn register(wire: &mut Wire) {
    for client in ["inspector", "python", "rmcp", "typescript"] {
        wire.client(REVISION, &format!("{client}/listen"), Carriers::Every, move |cx| listen(cx, client));
    }
    for client in ["inspector", "typescript"] {
        wire.client(REVISION, &format!("{client}/listen-cancelled"), Carriers::Every, move |cx| cancelled(cx, client));
    }
    wire.client(REVISION, "python/no-discover", Carriers::Every, no_discover);
}

/// Listens, and hears what is granted first. Every message names the subscription by the request's id, in its type: a
/// number from rmcp, a string from the others.
async fn open(client: &Client, name: &str) -> Answer {
    let mut stream = client.send(fixture::call(name, "listen", "")).await;
    assert_eq!(stream.status, StatusCode::OK);
    let acknowledged = json!({
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": {TAG: id(name, "listen")}, "notifications": {"toolsListChanged": true}},
    });
    assert_eq!(stream.next_message().await, Some(acknowledged));
    stream
}

fn list_changed(name: &str) -> Value {
    let params = json!({"_meta": {TAG: id(name, "listen")}});
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params})
}

async fn change(client: &Client) {
    client.send(Call::modern("tools/call", json!({"name": "change"}))).await.result().await;
}

/// What each does first, then a change that it hears of, and its going.
async fn listen(cx: Cx, name: &'static str) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    let discovered = client.send(fixture::call(name, "discover", "")).await;
    assert_eq!((discovered.status, discovered.header(SESSION_ID)), (StatusCode::OK, ""));
    let response = discovered.json().await;
    assert_eq!(response["id"], id(name, "discover"));
    assert_eq!(response["result"]["supportedVersions"], json!([REVISION.as_str()]));
    assert_eq!(response["result"]["capabilities"]["tools"], json!({"listChanged": true}));

    let mut stream = open(&client, name).await;
    change(&client).await;
    assert_eq!(stream.next_message().await, Some(list_changed(name)));
    drop(stream);
    until(|| service.counts() == Counts::default()).await;
}

/// Having closed the stream they say so too, in a notification that may lack `Mcp-Method`. It is taken, and touches
/// nobody who listens under the same id.
async fn cancelled(cx: Cx, name: &'static str) {
    let (service, _) = serving();
    let client = cx.serve(service.clone()).await;
    let mut other = open(&client.another(), name).await;
    drop(open(&client, name).await);
    accepted(client.send(fixture::call(name, "listen-cancelled", "")).await).await;
    until(|| service.counts().streams == 1).await;
    change(&client).await;
    assert_eq!(other.next_message().await, Some(list_changed(name)));
}

/// A client that is told which revision to speak asks nothing first.
async fn no_discover(cx: Cx) {
    let (service, _) = serving();
    let client = cx.serve(service).await;
    let result = client.send(fixture::call("python", "first-of-2026-07-28", "")).await.result().await;
    assert_eq!((&result["tools"], &result["revision"]), (&json!([]), &json!(REVISION.as_str())));
}
