//! Arrays: batches of 2025-03-26, and refusals everywhere else.

use mcp_transport::{Limits, Revision, Revisions};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::peer::{Peer, initialize, request};
use crate::support::seen::Seen;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("stdio/batch", Carriers::Clock, by_the_negotiated_version);
    wire.any("stdio/batch/before", Carriers::Clock, before_a_handshake_it_counts_as_2025_03_26);
    wire.any_legacy("stdio/batch/quiet", Carriers::Clock, nothing_to_answer);
    wire.any_legacy("stdio/batch/bad", Carriers::Clock, each_element_for_itself);
    wire.any_legacy("stdio/batch/cancel", Carriers::Clock, what_is_cancelled_is_missing);
    wire.any_legacy("stdio/batch/limits", Carriers::Clock, limits);
}

const BATCHES: Revision = Revision::V2025_03_26;

async fn by_the_negotiated_version(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    if cx.modern() {
        let messages = json!([peer.request(1, "x/echo", Value::Null)]);
        // A claim makes it modern, also where it counted as a batch without.
        peer.refused(messages, -32600).await;
        return;
    }
    let ask = |id: u32| request(BATCHES, id, "x/meet", json!({"name": id.to_string(), "of": 3, "tell": 1}));
    let messages = json!([ask(1), {"jsonrpc": "2.0", "method": "x/told"}, ask(2), ask(3)]);
    if cx.revision != BATCHES {
        peer.refused(messages, -32600).await;
        assert_eq!(stage.take_runs(), 0);
        return;
    }
    peer.send(messages).await;
    // What its handlers say comes as it is said, the answers together.
    for told in peer.heard_all(3).await {
        assert_eq!(told["method"], "notifications/x");
    }
    let answers = peer.heard().await;
    let mut ids: Vec<_> = answers.as_array().expect("an array").iter().map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2), Some(3)]);
    peer.silence().await;
}

async fn before_a_handshake_it_counts_as_2025_03_26(cx: Cx) {
    let seen = Seen::default();
    let mut peer = Peer::silent(cx.revision, seen.script());
    let batch = || json!([request(BATCHES, 1, "x/y", Value::Null)]);
    peer.send(batch()).await;
    assert_eq!(peer.heard().await[0]["result"]["revision"], "2025-03-26");
    if !cx.modern() {
        let mut peer = Peer::open(cx.revision, seen.script()).await;
        peer.send(batch()).await;
        assert_eq!(peer.heard().await.is_array(), cx.revision == BATCHES);
    }
    let without = Revisions::all().without(BATCHES);
    let mut peer = Peer::built(cx.revision, seen.script(), 1 << 20, |builder| builder.revisions(without));
    peer.refused(batch(), -32600).await;
}

async fn nothing_to_answer(_: Cx) {
    let seen = Seen::default();
    let mut peer = Peer::open(BATCHES, seen.script()).await;
    seen.take();
    peer.send(json!([
        {"jsonrpc": "2.0", "method": "x/one"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        {"jsonrpc": "2.0", "method": 7},
        {"jsonrpc": "2.0", "method": "x/two"},
    ]))
    .await;
    peer.silence().await;
    assert_eq!(seen.methods(), ["x/one", "x/two"]);
}

async fn each_element_for_itself(_: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(BATCHES, stage.script()).await;
    peer.send(request(BATCHES, "held", "x/hold", json!({"name": "held"}))).await;
    stage.entered("held").await;
    peer.send(json!([
        7,
        request(BATCHES, "held", "x/echo", json!({})),
        initialize("again", BATCHES),
        request(BATCHES, 1, "x/echo", json!({"n": 1})),
        request(BATCHES, 1, "x/echo", json!({"n": 2})),
        {"jsonrpc": "2.0", "id": 5},
        request(BATCHES, 6, "x/panic", json!({})),
    ]))
    .await;
    let answers = peer.heard().await;
    let answers = answers.as_array().expect("an array");
    let of = |id: Value| -> Vec<Value> {
        let named = answers.iter().filter(|answer| answer.get("id").cloned().unwrap_or_default() == id);
        named
            .map(|answer| answer.get("error").map_or_else(|| answer["result"].clone(), |error| error["code"].clone()))
            .collect()
    };
    assert_eq!(answers.len(), 7);
    assert_eq!(of(json!(null)), [-32600]);
    assert_eq!(of(json!("held")), [-32600]);
    assert_eq!(of(json!("again")), [-32600]);
    let mut ones = of(json!(1));
    ones.sort_by_key(Value::is_object);
    assert_eq!(ones, [json!(-32600), json!({"n": 1})]);
    assert_eq!(of(json!(5)), [-32600]);
    assert_eq!(of(json!(6)), [-32603]);
    assert!(stage.is_in("held"));
}

async fn what_is_cancelled_is_missing(_: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(BATCHES, stage.script()).await;
    let hold = |id: &str| request(BATCHES, id, "x/hold", json!({"name": id}));
    let cancel = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    peer.send(json!([hold("a"), hold("b"), cancel("a")])).await;
    stage.entered("b").await;
    assert!(!stage.is_in("a"), "it is over before it begins, or was dropped");
    stage.release("b");
    let answers = peer.heard().await;
    assert_eq!((answers.as_array().map(Vec::len), &answers[0]["id"]), (Some(1), &json!("b")));
    peer.send(json!([hold("c"), hold("d")])).await;
    stage.entered("d").await;
    peer.send_all(&[cancel("c"), cancel("d")]).await;
    stage.dropped("d").await;
    peer.silence().await;
    assert_eq!(peer.ask(request(BATCHES, "c", "x/echo", json!({"n": 1}))).await["n"], 1, "the ids are free");
}

async fn limits(_: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().batch(5).in_flight(3);
    let mut peer = Peer::built(BATCHES, stage.script(), 1 << 20, |builder| builder.limits(limits)).ready().await;
    let echo = |id: u32| request(BATCHES, id, "x/echo", json!({}));
    peer.refused((0..6).map(echo).collect(), -32600).await;
    assert_eq!(stage.take_runs(), 0, "nothing of it runs");
    let hold = |id: u32| request(BATCHES, id, "x/hold", json!({"name": id.to_string()}));
    peer.send((0..5).map(hold).collect()).await;
    for id in 0..3 {
        stage.entered(&id.to_string()).await;
        stage.release(&id.to_string());
    }
    let answers = peer.heard().await;
    let refused = answers.as_array().expect("an array").iter().filter(|answer| answer["error"]["code"] == -32603);
    assert_eq!((answers.as_array().map(Vec::len), refused.count()), (Some(5), 2));
    // All places are free again.
    peer.send((10..13).map(echo).collect()).await;
    let answers = peer.heard().await;
    assert!(answers.as_array().expect("an array").iter().all(|answer| answer["result"].is_object()));
}
