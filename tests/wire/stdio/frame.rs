//! How messages stand on the stream, and how many may be under way.

use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::peer::Peer;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("stdio/frame", Carriers::Clock, every_way_to_end_a_line);
    wire.any("stdio/frame/last", Carriers::Clock, the_last_line_needs_no_end);
    wire.any("stdio/frame/text", Carriers::Clock, text_stays_on_its_line);
    wire.any("stdio/frame/pieces", Carriers::Clock, lines_come_in_pieces);
    wire.any("stdio/concurrent", Carriers::Clock, all_at_once);
    wire.any("stdio/concurrent/hooks", Carriers::Clock, hooks_run_in_order_off_the_reading_path);
    wire.any("stdio/concurrent/panic", Carriers::Clock, a_panicking_hook_stops_no_other);
    wire.any("stdio/duplicate-id", Carriers::Clock, one_id_at_a_time);
    wire.any("stdio/duplicate-id/eras", Carriers::Clock, one_space_for_both_eras);
}

async fn every_way_to_end_a_line(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, Stage::default().script());
    let ask = |peer: &Peer, id: u32| peer.request(id, "x/echo", json!({"n": id})).to_string();
    let lines = format!("\u{feff}{}\r\n\r\n\n  \t\n{}\n \r\n  {}  \n", ask(&peer, 1), ask(&peer, 2), ask(&peer, 3));
    peer.write(lines).await;
    for id in 1..=3 {
        let answer = peer.heard().await;
        assert_eq!((&answer["id"], &answer["result"]["n"]), (&json!(id), &json!(id)));
    }
    peer.silence().await;
}

async fn the_last_line_needs_no_end(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, Stage::default().script());
    let request = peer.request("last", "x/echo", json!({"n": 1}));
    peer.write(request.to_string()).await;
    peer.silence().await;
    let (_, said) = peer.end().await;
    assert_eq!((said.len(), &said[0]["id"], &said[0]["result"]["n"]), (1, &json!("last"), &json!(1)));
}

/// Line breaks in text and in what a handler wrote raw never break a line.
async fn text_stays_on_its_line(cx: Cx) {
    let raw = "{\n \"a\": [1,\r\n 2]\n}";
    let script = Script::new(move |_, _| async move {
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str(raw).expect("JSON");
        mcp_transport::Reply::of(json!({"text": "one\ntwo\r\n\u{2028}", "raw": raw}))
    });
    let mut peer = Peer::silent(cx.revision, script);
    let result = peer.ask(peer.request("a\nb", "x/y", Value::Null)).await;
    assert_eq!((&result["text"], &result["raw"]), (&json!("one\ntwo\r\n\u{2028}"), &json!({"a": [1, 2]})));
}

async fn lines_come_in_pieces(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, Stage::default().script());
    let text = "\u{1F600}".repeat(50);
    let lines = (0..2).map(|id| format!("{}\n", peer.request(id, "x/echo", json!({"text": text})))).collect::<String>();
    for byte in lines.as_bytes() {
        peer.write([*byte]).await;
        tokio::task::yield_now().await;
    }
    for id in 0..2 {
        let answer = peer.heard().await;
        assert_eq!((&answer["id"], &answer["result"]["text"]), (&json!(id), &json!(text)));
    }
}

async fn all_at_once(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    let slow = peer.request("slow", "x/hold", json!({"name": "slow"}));
    peer.send(slow).await;
    stage.entered("slow").await;
    for id in 0..200 {
        peer.send(peer.request(id, "x/meet", json!({"name": id.to_string(), "of": 200}))).await;
    }
    let mut ids: Vec<_> = peer.heard_all(200).await.iter().map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq((0..200).map(Some)), "each once");
    assert!(stage.is_in("slow"));
    stage.release("slow");
    assert_eq!(peer.heard().await["id"], "slow");
}

/// The hook of a notification is heard out before that of the next begins, and holds up no request.
async fn hooks_run_in_order_off_the_reading_path(cx: Cx) {
    let (entered, log) = (std::sync::Arc::new(tokio::sync::Notify::new()), Log::default());
    let go = std::sync::Arc::new(tokio::sync::Notify::new());
    let script = Stage::default().script().hearing({
        let (entered, go, log) = (entered.clone(), go.clone(), log.clone());
        move |notification, _| {
            let (entered, go, log) = (entered.clone(), go.clone(), log.clone());
            async move {
                log.add(notification.method());
                if notification.method() == "x/first" {
                    entered.notify_one();
                    go.notified().await;
                    log.add("first is through");
                }
            }
        }
    });
    let mut peer = Peer::silent(cx.revision, script);
    for method in ["x/first", "x/second", "x/third"] {
        peer.send(peer.notification(method, json!({}))).await;
    }
    entered.notified().await;
    assert_eq!(peer.ask(peer.request(1, "x/echo", json!({"n": 1}))).await["n"], 1);
    assert_eq!(log.take(), ["x/first"]);
    go.notify_one();
    peer.silence().await;
    assert_eq!(log.take(), ["first is through", "x/second", "x/third"]);
}

async fn a_panicking_hook_stops_no_other(cx: Cx) {
    let log = Log::default();
    let script = Stage::default().script().hearing({
        let log = log.clone();
        move |notification, _| {
            if notification.method() == "x/bad" {
                std::panic::resume_unwind(Box::new("as asked"));
            }
            log.add(notification.method());
            async {}
        }
    });
    let mut peer = Peer::silent(cx.revision, script);
    for method in ["x/bad", "x/good"] {
        peer.send(peer.notification(method, json!({}))).await;
    }
    peer.silence().await;
    assert_eq!(log.take(), ["x/good"]);
}

async fn one_id_at_a_time(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    for (id, same) in [("7", "7.0"), ("\"a\"", "\"\\u0061\"")] {
        let first = peer.request("ID", "x/hold", json!({"name": id})).to_string();
        peer.write(format!("{}\n", first.replace("\"ID\"", id))).await;
        stage.entered(id).await;
        let second = peer.request("ID", "x/echo", json!({})).to_string().replace("\"ID\"", same);
        peer.write(format!("{second}\n")).await;
        let refused = peer.error(Some(serde_json::from_str(same).expect("an id")), -32600).await;
        assert!(refused["message"].is_string());
        stage.release(id);
        assert!(peer.heard().await["result"].is_object());
        // Free again.
        peer.write(format!("{second}\n")).await;
        assert!(peer.heard().await["result"].is_object());
    }
}

async fn one_space_for_both_eras(cx: Cx) {
    use mcp_transport::Revision;
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    peer.send(peer.request(1, "x/hold", json!({"name": "one"}))).await;
    stage.entered("one").await;
    let other = if cx.modern() { Revision::V2025_06_18 } else { Revision::V2026_07_28 };
    peer.refused(crate::support::peer::request(other, 1, "x/echo", json!({})), -32600).await;
    stage.release("one");
    assert_eq!(peer.heard().await["result"]["name"], "one");
}

/// What was heard, in order.
#[derive(Clone, Default)]
pub struct Log(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, what: &str) {
        self.0.lock().expect("nobody panicked").push(what.to_owned());
    }

    /// What was heard since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panicked"))
    }
}
