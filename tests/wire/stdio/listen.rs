//! `subscriptions/listen` on a byte stream.

use mcp_transport::{Changes, Limits, McpError, RequestContext, Revision};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::listen::{
    PROMPTS, RESOURCES, SUBSCRIPTION_ID, TOOLS, UPDATED, all, ended, everything, publish_all, script, tagged,
};
use crate::support::handler::Script;
use crate::support::peer::{Peer, initialize};

pub fn register(wire: &mut Wire) {
    wire.modern("listen/ack-first/stdio", Carriers::Clock, acknowledged_first);
    wire.modern("listen/bad-filter/stdio", Carriers::Clock, bad_filter);
    wire.modern("listen/many/stdio", Carriers::Clock, many);
    wire.modern("listen/many/stdio-limit", Carriers::Clock, as_many_as_may);
    wire.modern("listen/nothing-lost/stdio", Carriers::Clock, nothing_lost);
    wire.modern("listen/only-there/stdio", Carriers::Clock, only_there);
    wire.modern("listen/end/stdio", Carriers::Clock, ended_by_a_drain);
    wire.modern("listen/cancel/stdio", Carriers::Clock, cancelled_by_its_client);
    wire.any("publish/bridge/stdio", Carriers::Clock, one_publish_for_all);
    wire.any("publish/slow/stdio", Carriers::Clock, equal_changes_become_one);
}

/// Listens, and returns what is granted.
async fn listen(peer: &mut Peer, id: impl Into<Value>, filter: Value) -> Value {
    let id = id.into();
    peer.send(peer.request(id.clone(), "subscriptions/listen", json!({"notifications": filter}))).await;
    let mut first = peer.heard().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["_meta"][SUBSCRIPTION_ID], id);
    first["params"]["notifications"].take()
}

fn all_tagged(id: &Value, uris: &[&str]) -> Vec<Value> {
    let lists = [TOOLS, PROMPTS, RESOURCES].map(|method| tagged(id.clone(), method, json!({})));
    let updates = uris.iter().map(|uri| tagged(id.clone(), UPDATED, json!({ "uri": uri })));
    lists.into_iter().chain(updates).collect()
}

/// What is said of a subscription that the server ends: a cancellation, and the result.
fn ends(id: &Value) -> [Value; 2] {
    [tagged(id.clone(), "notifications/cancelled", json!({"requestId": id})), ended(id.clone())]
}

async fn acknowledged_first(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, script());
    for id in [json!("one"), json!(2)] {
        assert_eq!(listen(&mut peer, id.clone(), all(&["a"])).await, all(&["a"]));
        publish_all(peer.transport.changes(), &["a", "b"]);
        assert_eq!(peer.heard_all(4).await, all_tagged(&id, &["a"]));
        peer.silence().await;
        peer.send(peer.notification("notifications/cancelled", json!({"requestId": id}))).await;
    }
    let granted = listen(&mut peer, 3, json!({"toolsListChanged": true, "unknown": true})).await;
    assert_eq!(granted, json!({"toolsListChanged": true}));
}

async fn bad_filter(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, script());
    for params in [json!({}), json!({"notifications": []}), json!({"notifications": {"toolsListChanged": 1}})] {
        peer.refused(peer.request(1, "subscriptions/listen", params), -32602).await;
    }
    // The id is free.
    listen(&mut peer, 1, json!({})).await;
}

async fn many(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, script());
    for id in 0..50 {
        listen(&mut peer, id, json!({"toolsListChanged": true})).await;
    }
    peer.refused(peer.request(7, "subscriptions/listen", json!({"notifications": {}})), -32600).await;
    peer.refused(peer.request(7, "x/y", json!({})), -32600).await;
    assert_eq!(peer.transport.counts().streams, 51);
    peer.transport.changes().tools_list_changed();
    let mut heard: Vec<_> =
        peer.heard_all(50).await.iter().map(|change| change["params"]["_meta"][SUBSCRIPTION_ID].as_u64()).collect();
    heard.sort_unstable();
    assert!(heard.into_iter().eq((0..50).map(Some)));
}

/// Subscriptions have a limit of their own, and take no request its place.
async fn as_many_as_may(cx: Cx) {
    for limits in [Limits::default().listeners_by_caller(3), Limits::default().listeners(3)] {
        let limits = limits.in_flight(1);
        let mut peer = Peer::built(cx.revision, Script::echo(json!([])).declaring(everything()), 1 << 20, |builder| {
            builder.limits(limits)
        });
        for id in 0..3 {
            listen(&mut peer, id, json!({})).await;
        }
        peer.refused(peer.request(3, "subscriptions/listen", json!({"notifications": {}})), -32603).await;
        assert_eq!(peer.ask(peer.request(4, "tools/list", json!({}))).await["tools"], json!([]));
        peer.send(peer.notification("notifications/cancelled", json!({"requestId": 0}))).await;
        peer.silence().await;
        listen(&mut peer, 3, json!({})).await;
    }
}

async fn nothing_lost(cx: Cx) {
    let changes = Changes::new();
    let publisher = changes.clone();
    // Published while the handler decides, before anything is acknowledged.
    let script = script().deciding(move |uri, _| {
        publisher.resource_updated(&uri);
        publisher.tools_list_changed();
        async { Ok(()) }
    });
    let mut peer = Peer::built(cx.revision, script, 1 << 20, |builder| builder.changes(&changes));
    listen(&mut peer, 1, json!({"toolsListChanged": true, "resourceSubscriptions": ["a"]})).await;
    assert_eq!(peer.heard().await, tagged(1, TOOLS, json!({})));
    assert_eq!(peer.heard().await, tagged(1, UPDATED, json!({"uri": "a"})));
    peer.silence().await;
}

/// What the hook of a subscription says is not of the subscription.
async fn only_there(cx: Cx) {
    let script = script().deciding(|_, cx: RequestContext| async move {
        cx.notify("notifications/x", json!({})).await?;
        cx.progress(mcp_transport::Progress::new(1.0)).await;
        cx.log(mcp_transport::LogLevel::Error, "text").await?;
        Err(McpError::new(-7, "no"))
    });
    let mut peer = Peer::silent(cx.revision, script);
    let mut request = peer.request(1, "subscriptions/listen", json!({"notifications": all(&["a"])}));
    request["params"]["_meta"]["progressToken"] = json!(5);
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    peer.send(request).await;
    let first = peer.heard().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    assert_eq!(first["params"]["notifications"].get("resourceSubscriptions"), None);
    peer.silence().await;
}

async fn ended_by_a_drain(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, script());
    let (one, two) = (json!("one"), json!(2));
    listen(&mut peer, one.clone(), all(&["a"])).await;
    listen(&mut peer, two.clone(), json!({})).await;
    publish_all(peer.transport.changes(), &["a"]);
    let report = peer.transport.drain(std::time::Duration::from_secs(5)).await;
    assert_eq!((report.in_flight, report.cut), (0, 0));
    let mut said = Vec::new();
    while let Some(message) = peer.next().await {
        said.push(message);
    }
    let of = |id: &Value| -> Vec<Value> {
        said.iter()
            .filter(|message| message["params"]["_meta"][SUBSCRIPTION_ID] == *id || message["id"] == *id)
            .cloned()
            .collect()
    };
    let mut expected = all_tagged(&one, &["a"]);
    expected.extend(ends(&one));
    assert_eq!(of(&one), expected, "what is unread comes first");
    assert_eq!(of(&two), ends(&two));
}

async fn cancelled_by_its_client(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, script());
    listen(&mut peer, 1, all(&["a"])).await;
    listen(&mut peer, 2, json!({"toolsListChanged": true})).await;
    peer.send(peer.notification("notifications/cancelled", json!({"requestId": 1}))).await;
    peer.silence().await;
    assert_eq!(peer.transport.counts().streams, 2);
    publish_all(peer.transport.changes(), &["a"]);
    assert_eq!(peer.heard().await, tagged(2, TOOLS, json!({})));
    peer.silence().await;
}

/// One publish reaches both a subscription and a handshake's client on one stream, and a second stream.
async fn one_publish_for_all(cx: Cx) {
    let changes = Changes::new();
    let old = if cx.modern() { Revision::V2025_11_25 } else { cx.revision };
    let built = |revision| Peer::built(revision, script(), 1 << 20, |builder| builder.changes(&changes));
    let mut both = built(Revision::V2026_07_28);
    let mut plain = built(old).ready().await;
    both.ask(initialize("hello", old)).await;
    listen(&mut both, 1, json!({"toolsListChanged": true})).await;
    changes.tools_list_changed();
    let untagged = json!({"jsonrpc": "2.0", "method": TOOLS});
    assert_eq!(plain.heard().await, untagged);
    let heard = both.heard_all(2).await;
    assert!(heard.contains(&untagged) && heard.contains(&tagged(1, TOOLS, json!({}))), "{heard:?}");
    plain.silence().await;
    both.silence().await;
}

/// While the peer does not read, equal changes become one, and none that still matters is lost.
async fn equal_changes_become_one(cx: Cx) {
    let pipe = 256;
    let small = |builder: mcp_transport::StdioBuilder| builder.limits(Limits::default().queue_bytes(2048));
    let mut peer = Peer::built(cx.revision, script(), pipe, small).ready().await;
    if cx.modern() {
        listen(&mut peer, 1, all(&["last"])).await;
    } else {
        peer.ask(peer.request(1, "resources/subscribe", json!({"uri": "last"}))).await;
    }
    for _ in 0..10_000 {
        publish_all(peer.transport.changes(), &["other"]);
        tokio::task::yield_now().await;
    }
    peer.transport.changes().resource_updated("last");
    let mut heard = 0;
    loop {
        let change = peer.heard().await;
        if change["params"]["uri"] == "last" {
            break;
        }
        heard += 1;
    }
    assert!(heard < 100, "{heard} of 30,000");
    peer.silence().await;
}
