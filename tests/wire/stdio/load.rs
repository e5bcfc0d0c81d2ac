//! Many and large messages, and what bounds them.

use mcp_transport::{Capabilities, Limits, RefusalKind, Reply, Revision};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::peer::{Peer, request};
use crate::support::seen::Refusals;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("stdio/concurrent/large", Carriers::Clock, large_answers);
    wire.any("stdio/bad-line/huge", Carriers::Clock, huge_line);
    wire.any("limit/each/stdio-in-flight", Carriers::Clock, in_flight);
    wire.any("limit/each/stdio-unwritten", Carriers::Clock, a_place_is_held_until_the_answer_is_written);
    wire.any("limit/each/stdio-refusals", Carriers::Clock, refusals_are_bounded);
    wire.any("limit/each/stdio-batch-refusals", Carriers::Clock, refusals_in_batches_are_bounded);
    wire.any("limit/each/stdio-listen-refusals", Carriers::Clock, refused_subscriptions_are_bounded);
    wire.any_legacy("limit/each/stdio-ping", Carriers::Clock, a_ping_is_never_refused);
    wire.any("fault/panic/stdio", Carriers::Clock, a_panic_costs_one_request);
}

/// 200 at once, 64 KiB each: none lost, none torn.
async fn large_answers(cx: Cx) {
    let script = Script::new(|request, _| async move {
        let n = request.params::<Value>()?["n"].as_u64().unwrap_or_default();
        tokio::task::yield_now().await;
        let letter = char::from(b'a' + u8::try_from(n % 26).unwrap_or_default());
        Reply::of(json!({"n": n, "text": letter.to_string().repeat(64 << 10)}))
    });
    let mut peer = Peer::built(cx.revision, script, 8192, |builder| builder).ready().await;
    let requests: Vec<_> = (0..200).map(|id| peer.request(id, "x/y", json!({"n": id}))).collect();
    for request in requests {
        peer.send(request).await;
    }
    let mut seen = vec![0; 200];
    for answer in peer.heard_all(200).await {
        let n = answer["result"]["n"].as_u64().expect("a number");
        assert_eq!(answer["id"], n);
        let letter = char::from(b'a' + u8::try_from(n % 26).expect("small"));
        let text = answer["result"]["text"].as_str().expect("a text");
        assert!(text.len() == 64 << 10 && text.chars().all(|character| character == letter));
        seen[usize::try_from(n).expect("small")] += 1;
    }
    assert!(seen.iter().all(|count| *count == 1));
}

/// 17 MiB in one line.
async fn huge_line(cx: Cx) {
    let mut peer = Peer::open(cx.revision, Stage::default().script()).await;
    let piece = "x".repeat(1 << 20);
    for _ in 0..17 {
        peer.write(&piece).await;
    }
    peer.write("\n").await;
    peer.error(None, -32700).await;
    assert_eq!(peer.ask(peer.request(1, "x/echo", json!({"n": 1}))).await["n"], 1);
    peer.silence().await;
}

async fn in_flight(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().in_flight(3);
    let mut peer = Peer::built(cx.revision, stage.script(), 1 << 20, |builder| builder.limits(limits)).ready().await;
    let hold = |peer: &Peer, id: u32| peer.request(id, "x/hold", json!({"name": id.to_string()}));
    for round in 0..3 {
        for id in 0..3 {
            peer.send(hold(&peer, 10 * round + id)).await;
            stage.entered(&(10 * round + id).to_string()).await;
        }
        peer.refused(hold(&peer, 99), -32603).await;
        peer.refused(hold(&peer, 10 * round), -32600).await;
        for id in 0..3 {
            stage.release(&(10 * round + id).to_string());
            assert_eq!(peer.heard().await["id"], 10 * round + id);
        }
    }
}

/// A peer that asks and never reads holds its places, so that what it is owed stays bounded.
async fn a_place_is_held_until_the_answer_is_written(cx: Cx) {
    let stage = Stage::default();
    let refusals = Refusals::default();
    let (limits, observer) = (Limits::default().in_flight(50), refusals.clone());
    let mut peer = Peer::built(cx.revision, stage.script(), 1024, |builder| builder.limits(limits).observer(observer))
        .ready()
        .await;
    stage.take_runs();
    let text = "x".repeat(500);
    for id in 0..200 {
        peer.send(peer.request(id, "x/echo", json!({"text": text}))).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let runs = stage.take_runs();
    assert!((50..60).contains(&runs), "{runs}");
    assert_eq!(refusals.take(), vec![RefusalKind::Overloaded; 200 - runs]);
    let heard = peer.heard_all(200).await;
    assert_eq!(heard.iter().filter(|answer| answer["result"].is_object()).count(), runs);
    assert_eq!(heard.iter().filter(|answer| answer["error"]["code"] == -32603).count(), 200 - runs);
    // All places are free.
    for id in 0..50 {
        peer.send(peer.request(id, "x/hold", json!({"name": id.to_string()}))).await;
        stage.entered(&id.to_string()).await;
    }
}

async fn refusals_are_bounded(cx: Cx) {
    let refusals = Refusals::default();
    let observer = refusals.clone();
    let mut peer =
        Peer::built(cx.revision, Stage::default().script(), 256, |builder| builder.observer(observer)).ready().await;
    let bad = r#"{"jsonrpc":"2.0","id":1,"method":7}"#;
    peer.write(format!("{bad}\n").repeat(5000)).await;
    peer.send(peer.request("last", "x/echo", json!({}))).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(refusals.take().len(), 5000, "all were read");
    let mut told = 0;
    while peer.heard().await["id"] != "last" {
        told += 1;
    }
    assert!((1024..1100).contains(&told), "{told}");
    peer.refused(json!({"jsonrpc": "2.0", "id": 1, "method": 7}), -32600).await;
}

/// A peer that reads nothing cannot pile up answers by sending them in arrays. Before `initialize` batches are taken.
async fn refusals_in_batches_are_bounded(cx: Cx) {
    let ping = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "x/y"}]);
    for batch in [json!([7]).to_string(), ping.to_string()] {
        let mut peer = Peer::built(cx.revision, Stage::default().script(), 256, |builder| builder);
        peer.write(format!("{batch}\n").repeat(5000)).await;
        peer.send(peer.request("last", "x/echo", json!({}))).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let mut told = 0;
        while peer.heard().await["id"] != "last" {
            told += 1;
        }
        assert!((1024..1100).contains(&told), "{told}");
    }
}

/// What a subscription is refused with holds a place until it is written, also after a handshake on the same stream.
async fn refused_subscriptions_are_bounded(cx: Cx) {
    let script = Stage::default().script().declaring(Capabilities::new().resources_subscribe());
    let script = script.deciding(|_, _| async { std::panic::resume_unwind(Box::new("as asked")) });
    let limits = Limits::default().in_flight(50);
    let mut peer = Peer::built(cx.revision, script, 256, |builder| builder.limits(limits)).ready().await;
    let params = json!({"notifications": {"resourceSubscriptions": ["x:/"]}});
    for id in 0..300 {
        peer.send(request(Revision::V2026_07_28, id, "subscriptions/listen", params.clone())).await;
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let heard = peer.heard_all(300).await;
    let panicked = heard.iter().filter(|answer| answer["error"]["message"] == "Internal error").count();
    assert!((1..60).contains(&panicked), "{panicked}");
    // All places are free.
    for id in 0..50 {
        assert!(peer.ask(peer.request(id, "x/echo", json!({}))).await.is_object());
    }
}

async fn a_ping_is_never_refused(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().in_flight(1);
    let mut peer = Peer::built(cx.revision, stage.script(), 1 << 20, |builder| builder.limits(limits)).ready().await;
    peer.send(peer.request("held", "x/hold", json!({"name": "held"}))).await;
    stage.entered("held").await;
    for id in 0..10 {
        assert_eq!(peer.ask(peer.request(id, "ping", Value::Null)).await, json!({}));
        peer.refused(peer.request(id, "x/echo", Value::Null), -32603).await;
    }
}

async fn a_panic_costs_one_request(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    peer.send(peer.request("held", "x/hold", json!({"name": "held"}))).await;
    stage.entered("held").await;
    let error = peer.refused(peer.request(1, "x/panic", json!({"name": "panic"})), -32603).await;
    assert_eq!(error, json!({"code": -32603, "message": "Internal error"}));
    stage.release("held");
    assert_eq!(peer.heard().await["id"], "held");
}
