//! The era of each message, and what is answered where it is not served.

use mcp_transport::{Reply, Revision, Revisions};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::peer::{Peer, initialize, request};
use crate::support::request::{CAPABILITIES, CLAIM, LOG_LEVEL};
use crate::support::seen::Seen;

pub fn register(wire: &mut Wire) {
    wire.any("stdio/era", Carriers::Clock, each_message_decides);
    wire.any("stdio/before-initialize", Carriers::Clock, anything_is_answered);
    wire.modern("meta/stdio", Carriers::Clock, envelope);
    wire.modern("meta/stdio/nothing-taken", Carriers::Clock, nothing_is_taken_from_a_handshake);
    wire.any("era/modern-only/stdio", Carriers::Clock, modern_only);
    wire.any("era/legacy-only/stdio", Carriers::Clock, legacy_only);
    wire.any("era/removed-methods/stdio", Carriers::Clock, removed);
}

/// Both eras on one stream, before and after a handshake, in any order.
async fn each_message_decides(cx: Cx) {
    let seen = Seen::default();
    let mut peer = Peer::silent(cx.revision, seen.script());
    let legacy = if cx.modern() { Revision::V2025_11_25 } else { cx.revision };
    let modern = |id: u32| request(Revision::V2026_07_28, id, "x/y", Value::Null);
    let old = |id: u32| request(legacy, id, "x/y", Value::Null);
    let result = peer.ask(modern(1)).await;
    assert_eq!((&result["revision"], &result["resultType"]), (&json!("2026-07-28"), &json!("complete")));
    let result = peer.ask(old(2)).await;
    assert_eq!((&result["revision"], result.get("resultType")), (&json!("2024-11-05"), None));
    assert_eq!(peer.ask(initialize(3, legacy)).await["protocolVersion"], legacy.as_str());
    for id in [10, 20, 30] {
        let result = peer.ask(modern(id)).await;
        assert_eq!((&result["revision"], &result["resultType"]), (&json!("2026-07-28"), &json!("complete")));
        let result = peer.ask(old(id + 1)).await;
        assert_eq!((&result["revision"], result.get("resultType")), (&json!(legacy.as_str()), None));
    }
    let discovered = peer.ask(request(Revision::V2026_07_28, "d", "server/discover", Value::Null)).await;
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
}

async fn anything_is_answered(cx: Cx) {
    let seen = Seen::default();
    let mut peer = Peer::silent(cx.revision, seen.script());
    // A notification before everything is no reason to go away.
    peer.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await;
    let old = |method: &str| request(Revision::V2024_11_05, method, method, Value::Null);
    assert_eq!(
        peer.ask(old("tools/list")).await,
        json!({"method": "tools/list", "revision": "2024-11-05", "tools": []})
    );
    assert_eq!(peer.ask(old("ping")).await, json!({}));
    assert_eq!(
        peer.ask(request(Revision::V2024_11_05, 1, "logging/setLevel", json!({"level": "error"}))).await,
        json!({})
    );
    peer.refused(old("subscriptions/listen"), -32601).await;
    peer.refused(old("server/discover"), -32601).await;

    let served = Revisions::all().without(Revision::V2024_11_05);
    let mut peer = Peer::built(cx.revision, seen.script(), 1 << 20, |builder| builder.revisions(served));
    assert_eq!(peer.ask(old("tools/list")).await["revision"], "2025-03-26", "the oldest that is served");
}

async fn envelope(cx: Cx) {
    let seen = Seen::default();
    let mut peer = Peer::silent(cx.revision, seen.script());
    let right = || request(Revision::V2026_07_28, 1, "x/y", Value::Null);
    let broken = |edit: &dyn Fn(&mut Value)| {
        let mut message = right();
        edit(&mut message["params"]["_meta"]);
        message
    };
    for claim in ["2026-07-29", "2025-11-25", "", "draft"] {
        // The version is judged first.
        let message = broken(&|meta| *meta = json!({ CLAIM: claim }));
        let error = peer.refused(message, -32022).await;
        assert_eq!(error["data"], json!({"supported": ["2026-07-28"], "requested": claim}));
    }
    for claim in [json!(7), json!(null), json!(["2026-07-28"])] {
        let error = peer.refused(broken(&|meta| meta[CLAIM] = claim.clone()), -32602).await;
        assert!(error["message"].as_str().is_some_and(|text| text.contains(CLAIM)), "{error}");
    }
    for capabilities in [json!(null), json!(true), json!([])] {
        let error = peer.refused(broken(&|meta| meta[CAPABILITIES] = capabilities.clone()), -32602).await;
        assert!(error["message"].as_str().is_some_and(|text| text.contains(CAPABILITIES)), "{error}");
    }
    let missing = broken(&|meta| drop(meta.as_object_mut().expect("an object").remove(CAPABILITIES)));
    peer.refused(missing, -32602).await;
    peer.refused(broken(&|meta| meta[LOG_LEVEL] = json!("loud")), -32602).await;
    assert!(seen.take().is_empty());
    assert_eq!(peer.ask(right()).await["method"], "x/y");
}

/// The capabilities, the client's name, the level and the session of a handshake are not those of a modern request.
async fn nothing_is_taken_from_a_handshake(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        Reply::of(json!({
            "client": cx.client_info().map(|info| info.name),
            "samples": cx.client_capabilities().declares(&["sampling"]),
            "session": cx.session().is_some(),
            "http": cx.http().is_some(),
            "revision": cx.revision().as_str(),
        }))
    });
    let mut peer = Peer::silent(cx.revision, script);
    let mut hello = initialize(1, Revision::V2025_11_25);
    hello["params"]["capabilities"] = json!({"sampling": {}});
    hello["params"]["clientInfo"]["name"] = json!("old");
    peer.ask(hello).await;
    let old = peer.ask(request(Revision::V2025_11_25, 2, "x/y", Value::Null)).await;
    assert_eq!(
        old,
        json!({"client": "old", "samples": true, "session": true, "http": false, "revision": "2025-11-25"})
    );
    let mut new = peer.ask(request(Revision::V2026_07_28, 3, "x/y", Value::Null)).await;
    new.as_object_mut().expect("an object").retain(|key, _| key != "_meta" && key != "resultType");
    assert_eq!(
        new,
        json!({"client": "wire", "samples": false, "session": false, "http": false, "revision": "2026-07-28"})
    );
}

async fn modern_only(cx: Cx) {
    let seen = Seen::default();
    let only = Revisions::modern_only();
    let mut peer = Peer::built(cx.revision, seen.script(), 1 << 20, |builder| builder.revisions(only));
    let asked = if cx.modern() { Revision::V2025_11_25 } else { cx.revision };
    let error = peer.refused(initialize(1, asked), -32022).await;
    assert_eq!(error["data"], json!({"supported": ["2026-07-28"], "requested": asked.as_str()}));
    for method in ["tools/list", "ping"] {
        let error = peer.refused(request(asked, 2, method, Value::Null), -32602).await;
        assert!(error["message"].as_str().is_some_and(|text| text.contains(CLAIM)), "{error}");
    }
    peer.refused(json!([request(asked, 3, "ping", Value::Null)]), -32600).await;
    peer.send(json!({"jsonrpc": "2.0", "method": "x/told"})).await;
    peer.silence().await;
    assert!(seen.take().is_empty());
    assert_eq!(peer.ask(request(Revision::V2026_07_28, 4, "x/y", Value::Null)).await["method"], "x/y");
}

async fn legacy_only(cx: Cx) {
    let seen = Seen::default();
    let only = Revisions::legacy_only();
    let mut peer = Peer::built(cx.revision, seen.script(), 1 << 20, |builder| builder.revisions(only));
    for method in ["server/discover", "tools/list", "x/y"] {
        // No error that a client takes for a modern one.
        let error = peer.refused(request(Revision::V2026_07_28, 1, method, Value::Null), -32600).await;
        assert_eq!(error.get("data"), None);
    }
    let mut told = request(Revision::V2026_07_28, 1, "x/told", Value::Null);
    told.as_object_mut().expect("an object").remove("id");
    peer.send(told).await;
    peer.silence().await;
    assert!(seen.take().is_empty());
    assert_eq!(peer.ask(initialize(2, Revision::V2025_11_25)).await["protocolVersion"], "2025-11-25");
}

async fn removed(cx: Cx) {
    let seen = Seen::default();
    let mut peer = Peer::open(cx.revision, seen.script()).await;
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
    ] {
        peer.refused(request(Revision::V2026_07_28, method, method, Value::Null), -32601).await;
    }
    assert!(seen.methods().iter().all(|method| method.starts_with("notifications/")));
}
