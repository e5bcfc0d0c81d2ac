//! The session that a byte stream is after `initialize`, up to 2025-11-25.

use std::sync::{Arc, Mutex};

use mcp_transport::{Capabilities, LogLevel, McpError, Principal, Reply, RequestContext, SessionEnd};
use serde_json::{Value, json};

use super::frame::Log;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::peer::{Peer, initialize};

pub fn register(wire: &mut Wire) {
    wire.legacy("initialize/negotiates/stdio", Carriers::Clock, negotiates);
    wire.legacy("initialize/twice/stdio", Carriers::Clock, twice);
    wire.legacy("initialize/mints/stdio", Carriers::Clock, a_failed_one_opens_nothing);
    wire.legacy("initialize/declares/stdio", Carriers::Clock, declares);
    wire.legacy("log/level/stdio", Carriers::Clock, levels);
    wire.legacy("subscribe/delivers/stdio", Carriers::Clock, subscribes);
    wire.legacy("session/owner/stdio", Carriers::Clock, one_session_for_the_stream);
    wire.any_legacy("stdio/list-changed", Carriers::Clock, changes_are_forwarded);
    wire.any_legacy("stdio/list-changed/undeclared", Carriers::Clock, only_what_is_declared);
}

async fn negotiates(cx: Cx) {
    for (asked, answered) in
        [(cx.revision.as_str(), cx.revision.as_str()), ("2026-07-28", "2025-11-25"), ("1.0", "2025-11-25")]
    {
        let mut peer = Peer::silent(cx.revision, Script::echo(json!([])));
        let mut hello = initialize(1, cx.revision);
        hello["params"]["protocolVersion"] = json!(asked);
        assert_eq!(peer.ask(hello).await["protocolVersion"], answered);
    }
}

async fn twice(cx: Cx) {
    let mut peer = Peer::open(cx.revision, Script::echo(json!([]))).await;
    peer.refused(initialize(1, cx.revision), -32600).await;
    assert_eq!(peer.transport.counts().sessions, 1);
    assert_eq!(peer.ask(peer.request(2, "tools/list", Value::Null)).await["tools"], json!([]));
}

async fn a_failed_one_opens_nothing(cx: Cx) {
    let opened = Log::default();
    let log = opened.clone();
    let script = Script::echo(json!([])).watching(move |_| log.add("opened"), |_, _| ());
    let mut peer = Peer::silent(cx.revision, script);
    for params in
        [json!({}), json!({"protocolVersion": 7, "capabilities": {}}), json!({"protocolVersion": "2025-06-18"})]
    {
        peer.refused(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}), -32602).await;
    }
    let mut long = initialize(1, cx.revision);
    long["params"]["capabilities"] = json!({"experimental": {"x": "y".repeat(70_000)}});
    peer.refused(long, -32600).await;
    assert_eq!((peer.transport.counts().sessions, opened.take().len()), (0, 0));
    let result = peer.ask(initialize(1, cx.revision)).await;
    assert_eq!(result["protocolVersion"], cx.revision.as_str());
    assert_eq!((peer.transport.counts().sessions, opened.take().len()), (1, 1));

    // The hook that hears of it panics: there is none, and the next may be opened.
    let panics = Arc::new(Mutex::new(true));
    let script = Script::echo(json!([])).watching(
        move |_| {
            if std::mem::take(&mut *panics.lock().expect("nobody panicked while holding it")) {
                std::panic::resume_unwind(Box::new("as asked"));
            }
        },
        |_, _| (),
    );
    let mut peer = Peer::silent(cx.revision, script);
    peer.refused(initialize(1, cx.revision), -32603).await;
    assert_eq!(peer.transport.counts().sessions, 0);
    peer.ask(initialize(1, cx.revision)).await;
}

async fn declares(cx: Cx) {
    let capabilities = Capabilities::new().tools_list_changed().prompts().resources_subscribe();
    let mut peer = Peer::silent(cx.revision, Script::echo(json!([])).declaring(capabilities));
    let result = peer.ask(initialize(1, cx.revision)).await;
    assert_eq!(
        result["capabilities"],
        json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}})
    );
}

async fn levels(cx: Cx) {
    let script = Script::new(|_, cx: RequestContext| async move {
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Error] {
            cx.log(level, "text").await?;
        }
        Reply::empty()
    });
    let mut peer = Peer::silent(cx.revision, script);
    let heard = async |peer: &mut Peer| {
        peer.send(peer.request("q", "x/y", Value::Null)).await;
        let mut levels = Vec::new();
        loop {
            let message = peer.heard().await;
            match message["params"]["level"].as_str() {
                Some(level) => levels.push(level.to_owned()),
                None => return levels,
            }
        }
    };
    // Before a handshake there is nothing a level could hold for.
    peer.ask(peer.request(1, "logging/setLevel", json!({"level": "error"}))).await;
    assert_eq!(heard(&mut peer).await, ["info", "error"]);
    let mut peer = peer.ready().await;
    assert_eq!(heard(&mut peer).await, ["info", "error"]);
    for (level, count) in [("error", 1), ("debug", 3), ("emergency", 0), ("info", 2)] {
        assert_eq!(peer.ask(peer.request(1, "logging/setLevel", json!({"level": level}))).await, json!({}));
        assert_eq!(heard(&mut peer).await.len(), count, "{level}");
        peer.refused(peer.request(2, "logging/setLevel", json!({"level": "loud"})), -32602).await;
    }
}

fn subscribing() -> Script {
    let all = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
    Script::echo(json!([]))
        .declaring(all.resources_subscribe())
        .deciding(|uri, _| async move { if uri == "secret" { Err(McpError::new(-7, "no")) } else { Ok(()) } })
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

async fn subscribes(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, subscribing());
    let subscribe = |peer: &Peer, uri: &str| peer.request(1, "resources/subscribe", json!({"uri": uri}));
    // Nothing could be delivered before a handshake.
    peer.refused(subscribe(&peer, "a"), -32600).await;
    let mut peer = peer.ready().await;
    let changes = peer.transport.changes().clone();
    assert_eq!(peer.ask(subscribe(&peer, "a")).await, json!({}));
    peer.refused(subscribe(&peer, "secret"), -7).await;
    for uri in ["b", "secret", "a"] {
        changes.resource_updated(uri);
    }
    assert_eq!(peer.heard().await, updated("a"));
    assert_eq!(peer.ask(peer.request(2, "resources/unsubscribe", json!({"uri": "a"}))).await, json!({}));
    changes.resource_updated("a");
    peer.silence().await;

    let mut peer = Peer::open(cx.revision, Script::echo(json!([]))).await;
    peer.refused(subscribe(&peer, "a"), -32601).await;
}

async fn changes_are_forwarded(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, subscribing());
    let changes = peer.transport.changes().clone();
    let publish = || {
        changes.tools_list_changed();
        changes.prompts_list_changed();
        changes.resources_list_changed();
    };
    publish();
    peer.ask(peer.request(1, "tools/list", Value::Null)).await;
    publish();
    peer.silence().await;
    // From the answer to `initialize` on, before the client says that it is ready.
    peer.ask(initialize(2, cx.revision)).await;
    peer.silence().await;
    publish();
    for list in ["tools", "prompts", "resources"] {
        let method = format!("notifications/{list}/list_changed");
        assert_eq!(peer.heard().await, json!({"jsonrpc": "2.0", "method": method}));
    }
    peer.silence().await;
}

async fn only_what_is_declared(cx: Cx) {
    let script = Script::echo(json!([])).declaring(Capabilities::new().tools().prompts_list_changed());
    let mut peer = Peer::open(cx.revision, script).await;
    let changes = peer.transport.changes().clone();
    changes.tools_list_changed();
    changes.resources_list_changed();
    changes.prompts_list_changed();
    assert_eq!(peer.heard().await["method"], "notifications/prompts/list_changed");
    peer.silence().await;
}

async fn one_session_for_the_stream(cx: Cx) {
    #[derive(Clone)]
    struct Socket(u32);
    let log = Log::default();
    let (opened, closed) = (log.clone(), log.clone());
    let script = Script::new(|_, cx: RequestContext| async move {
        let count = cx.session().map(|session| {
            let count = session.get_or_insert_with(|| Mutex::new(0));
            let mut count = count.lock().expect("nobody panicked");
            *count += 1;
            *count
        });
        Reply::of(json!({
            "count": count,
            "principal": cx.principal().map(|principal| principal.as_str().to_owned()),
            "socket": cx.extensions().get::<Socket>().map(|socket| socket.0),
        }))
    })
    .watching(
        move |session| {
            opened.add(&format!("opened for {:?}", session.principal().map(|principal| principal.as_str().to_owned())));
        },
        move |_, end| closed.add(if end == SessionEnd::Disconnected { "closed" } else { "ended otherwise" }),
    );
    let mut extensions = http::Extensions::new();
    extensions.insert(Socket(7));
    let mut peer = Peer::built(cx.revision, script, 1 << 20, |builder| {
        builder.principal(Principal::new("ada")).extensions(extensions)
    });
    let before = peer.ask(peer.request(0, "x/y", Value::Null)).await;
    assert_eq!(before, json!({"count": null, "principal": "ada", "socket": 7}));
    let mut peer = peer.ready().await;
    for count in 1..3 {
        let result = peer.ask(peer.request(count, "x/y", Value::Null)).await;
        assert_eq!(result, json!({"count": count, "principal": "ada", "socket": 7}));
    }
    assert_eq!(log.take(), ["opened for Some(\"ada\")"]);
    peer.end().await;
    assert_eq!(log.take(), ["closed"]);
}
