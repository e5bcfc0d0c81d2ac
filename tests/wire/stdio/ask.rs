//! Questions to the client on a byte stream: requests of the server's own up to 2025-11-25, rounds on 2026-07-28.

use mcp_transport::{AskError, Reply, RequestContext, ServeEnd};
use serde_json::{Value, json};

use crate::dialogue::interview;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::dialogue::{self, Asked, everything, respond, retry};
use crate::support::handler::Script;
use crate::support::peer::{Peer, initialize};
use crate::support::request::{CAPABILITIES, meta};

pub fn register(wire: &mut Wire) {
    wire.legacy("ask/related/stdio", Carriers::Clock, same_by_requests);
    wire.modern("mrtr/answers/stdio", Carriers::Clock, same_by_rounds);
    wire.legacy("ask/ends/stdio", Carriers::Clock, cancelled);
    wire.any_legacy("stdio/eof/asks", Carriers::Clock, eof);
}

/// What the client says to [`interview`].
fn answers() -> impl FnMut(&Asked) -> Option<Value> {
    let mut names = ["", "", "Ann", "Bob"].into_iter();
    move |asked| {
        Some(asked.says(match asked.text() {
            "Name?" => names.next().expect("asked four times"),
            "Age?" => "41",
            "Town?" => "Bern",
            _ => "file:///w",
        }))
    }
}

const SAID: &str = "3 Ann 41 Bern file:///w Bob";

/// A peer that has shaken hands, and can answer everything.
async fn able(cx: Cx, script: Script) -> Peer {
    let mut peer = Peer::silent(cx.revision, script);
    let mut hello = initialize("hello", cx.revision);
    hello["params"]["capabilities"] = everything();
    peer.ask(hello).await;
    peer.send(peer.notification("notifications/initialized", Value::Null)).await;
    peer
}

async fn same_by_requests(cx: Cx) {
    let mut peer = able(cx, Script::new(|_, cx| interview(cx))).await;
    peer.send(peer.request("call", "tools/call", json!({"name": "t"}))).await;
    let mut answer = answers();
    let result = loop {
        let message = peer.heard().await;
        if message["id"] == "call" {
            break message["result"].clone();
        }
        let response = respond(&message, &mut answer).expect("an answer");
        peer.send(response).await;
    };
    assert_eq!(result["content"][0]["text"], SAID);
}

async fn same_by_rounds(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, Script::new(|_, cx| interview(cx)));
    let mut request = peer.request(0, "tools/call", json!({"name": "t"}));
    *request.pointer_mut(&meta(CAPABILITIES)).expect("capabilities") = everything();
    let (mut answer, mut rounds) = (answers(), 0);
    let result = loop {
        request["id"] = json!(rounds);
        let result = peer.ask(request.clone()).await;
        if result["resultType"] == "complete" {
            break result;
        }
        request["params"]["inputResponses"] = retry(&result, &mut answer).into();
        request["params"]["requestState"] = result["requestState"].clone();
        rounds += 1;
    };
    assert_eq!((result["content"][0]["text"].as_str(), rounds), (Some(SAID), 6));
}

/// Asks one question, and answers with how it ended.
fn asking() -> Script {
    Script::new(|_, cx: RequestContext| async move {
        let end = cx.ask("q", dialogue::question(&cx, "Well?")).await;
        Reply::of(json!({"ended": matches!(end, Err(AskError::SessionEnded))}))
    })
}

async fn cancelled(cx: Cx) {
    let mut peer = able(cx, asking()).await;
    peer.send(peer.request(1, "x/ask", json!({}))).await;
    let question = peer.heard().await;
    peer.send(peer.notification("notifications/cancelled", json!({"requestId": 1}))).await;
    let taken_back = peer.heard().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    // An answer that comes too late is for nobody.
    peer.send(respond(&question, &mut |asked: &Asked| Some(asked.says("late"))).expect("an answer")).await;
    peer.silence().await;
}

/// Nobody can answer any more: the question fails at once, and its request is still answered.
async fn eof(cx: Cx) {
    let mut peer = able(cx, asking()).await;
    peer.send(peer.request(1, "x/ask", json!({}))).await;
    peer.heard().await;
    let started = tokio::time::Instant::now();
    let (end, said) = peer.end().await;
    assert_eq!((end, started.elapsed().as_millis()), (ServeEnd::EndOfInput, 0));
    assert_eq!(said, [json!({"jsonrpc": "2.0", "id": 1, "result": {"ended": true}})]);
}
