//! Which way a question takes to a client up to 2025-11-25, and how the answer finds back.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{RequestContext, Revision};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};

use super::{Bench, text, told};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::dialogue::{self, Asked, in_session, question};
use crate::support::handler::Script;
use crate::support::session::{Session, accepted};

pub fn register(wire: &mut Wire) {
    wire.legacy("ask/related", Carriers::Every, related);
    wire.legacy("ask/related/any-request", Carriers::Every, any_request);
    wire.legacy("ask/related/json-only", Carriers::Every, json_only);
    wire.legacy("ask/related/left", Carriers::Every, left);
    wire.legacy("ask/related/hook", Carriers::Every, hook);
    wire.legacy("ask/related/subscribe", Carriers::Every, subscribe);
    wire.legacy("ask/related/unread", Carriers::Clock, unread);
    wire.legacy("ask/related/batch", Carriers::Every, batch);
    wire.legacy("answer/response/awaited", Carriers::Every, awaited);
    wire.legacy("answer/response/batch", Carriers::Every, batched_response);
}

/// The next question on a stream, and its id.
pub(super) async fn next(stream: &mut Answer) -> (Value, Asked) {
    let message = stream.next_message().await.expect("a question");
    (message["id"].clone(), Asked::request(&message).unwrap_or_else(|| panic!("no request: {message}")))
}

pub(super) fn response(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(super) async fn answer(session: &Session, id: &Value, result: Value) {
    accepted(session.client.send(session.post(response(id, result))).await).await;
}

/// A response that nobody waits for.
pub(super) async fn unawaited(session: &Session, response: Value) {
    let answer = session.client.send(session.post(response)).await;
    answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
}

/// The text of the result that a stream ends with.
pub(super) async fn result(mut stream: Answer) -> String {
    let message = stream.next_message().await.expect("a response");
    assert_eq!(stream.next_event().await, None);
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {message}")).to_owned()
}

async fn ask(cx: RequestContext) -> String {
    told(&cx.ask("q", question(&cx, "q")).await)
}

pub(super) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// A question rides the stream of the answer that is being made, at once, and no other.
async fn related(cx: Cx) {
    let bench = Bench::open(cx, |_, cx| async move { text(ask(cx).await) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let general = session.listen().await;
    let mut stream = session.request("tools/call", json!({"name": "t"})).await;
    let message = stream.next_message().await.expect("a question");
    let (method, params) = if cx.revision >= Revision::V2025_06_18 {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        ("elicitation/create", json!({"message": "q", "requestedSchema": schema}))
    } else {
        let message = json!({"role": "user", "content": {"type": "text", "text": "q"}});
        ("sampling/createMessage", json!({"messages": [message], "maxTokens": 10}))
    };
    assert_eq!(message, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
    // Another call's question has an id of its own.
    let mut other = session.client.send(session.call("tools/call", json!({"name": "t"})).id(2)).await;
    let (second, asked) = next(&mut other).await;
    assert_eq!(second, 2);
    answer(&session, &second, asked.says("two")).await;
    answer(&session, &message["id"], asked.says("one")).await;
    assert_eq!((result(stream).await, result(other).await), ("one".into(), "two".into()));
    session.end().await;
    assert_eq!(general.events().await, [Value::Null; 0]);
}

/// Whatever the client asked for may ask back.
async fn any_request(cx: Cx) {
    let script = Script::new(|_, cx| async move { text(ask(cx).await) });
    let bench = Bench::of(cx, script, |builder| builder).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    for (method, params) in [("tools/list", json!({})), ("completion/complete", json!({})), ("x/y", Value::Null)] {
        let played = in_session(&session, session.call(method, params), |asked| Some(asked.says("yes"))).await;
        assert_eq!((played.text(), played.rounds.concat()), ("yes", vec!["q".to_owned()]), "{method}");
    }
}

/// A client that takes only JSON is asked on its general stream, and not at all where there is none.
async fn json_only(cx: Cx) {
    let bench = Bench::open(cx, |_, cx| async move { text(ask(cx).await) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let call = || session.call("tools/call", json!({"name": "t"})).header(ACCEPT.as_str(), "application/json");
    let begun = Instant::now();
    let alone = session.client.send(call()).await.result().await;
    assert_eq!(alone["content"][0]["text"], "Unreachable");
    assert!(begun.elapsed() < Duration::from_secs(10), "at once");

    let mut general = session.listen().await;
    let asking = tokio::spawn({
        let (client, call) = (session.client.clone(), call());
        async move { client.send(call).await.result().await }
    });
    let (id, asked) = next(&mut general).await;
    answer(&session, &id, asked.says("yes")).await;
    assert_eq!(asking.await.expect("an answer")["content"][0]["text"], "yes");
}

/// A client whose connection is gone is asked on its general stream, and not at all where there is none.
async fn left(cx: Cx) {
    let (go, (tell, mut outcomes)) = (Arc::new(Notify::new()), unbounded_channel());
    let waits = Arc::clone(&go);
    let bench = Bench::open(cx, move |_, cx| {
        let (waits, tell) = (Arc::clone(&waits), tell.clone());
        async move {
            cx.notify("notifications/x", json!({})).await?;
            waits.notified().await;
            let _ = tell.send(ask(cx).await);
            text("nobody reads it")
        }
    })
    .await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let leave = async || {
        let streams = bench.service.counts().streams;
        let mut stream = session.request("tools/call", json!({"name": "t"})).await;
        assert_eq!(stream.next_message().await.expect("an event")["method"], "notifications/x");
        drop(stream);
        until(|| bench.service.counts().streams == streams).await;
        go.notify_one();
    };
    leave().await;
    assert_eq!(outcomes.recv().await.expect("an outcome"), "Unreachable");
    until(|| bench.service.counts().in_flight == 0).await;

    let mut general = session.listen().await;
    leave().await;
    let (id, asked) = next(&mut general).await;
    answer(&session, &id, asked.says("yes")).await;
    assert_eq!(outcomes.recv().await.expect("an outcome"), "yes");
}

/// A bench whose notification hook asks.
async fn hooked(cx: Cx) -> (Bench, UnboundedReceiver<String>) {
    let (tell, outcomes): (UnboundedSender<String>, _) = unbounded_channel();
    let script = Script::new(|_, _| async { text("") }).hearing(move |_, cx| {
        let tell = tell.clone();
        async move {
            let _ = tell.send(ask(cx).await);
        }
    });
    (Bench::of(cx, script, |builder| builder).await, outcomes)
}

/// What hears a notification has no stream of its own.
async fn hook(cx: Cx) {
    let (bench, mut outcomes) = hooked(cx).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    session.notify("notifications/x", Value::Null).await;
    assert_eq!(outcomes.recv().await.expect("an outcome"), "Unreachable");

    let mut general = session.listen().await;
    session.notify("notifications/x", Value::Null).await;
    let (id, asked) = next(&mut general).await;
    answer(&session, &id, asked.says("yes")).await;
    assert_eq!(outcomes.recv().await.expect("an outcome"), "yes");
    unawaited(&session, response(&id, asked.says("yes"))).await;

    // The session ends before the answer.
    session.notify("notifications/x", Value::Null).await;
    next(&mut general).await;
    session.end().await;
    assert_eq!(outcomes.recv().await.expect("an outcome"), "SessionEnded");
    assert_eq!(general.next_event().await, None);
}

/// Whoever decides on a subscription may ask, on the stream of its answer.
async fn subscribe(cx: Cx) {
    let script = Script::new(|_, _| async { text("") }).deciding(|_, cx| async move {
        match ask(cx).await.as_str() {
            "yes" => Ok(()),
            other => Err(mcp_transport::McpError::new(-7, other.to_owned())),
        }
    });
    let bench = Bench::of(cx, script, |builder| builder).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let call = || session.call("resources/subscribe", json!({"uri": "file:///a"}));
    let played = in_session(&session, call(), |asked| Some(asked.says("no"))).await;
    assert_eq!(super::error(&played.response)["message"], "no");
    let played = in_session(&session, call(), |asked| Some(asked.says("yes"))).await;
    assert_eq!(*played.result(), json!({}));
}

/// A question that waits for the general stream when that breaks is on the next one; what was taken back meanwhile is
/// taken back there.
async fn unread(cx: Cx) {
    let (bench, mut outcomes) = hooked(cx).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let general = session.listen().await;
    session.notify("notifications/x", Value::Null).await;
    sleep(Duration::from_secs(1)).await;
    drop(general);
    let mut general = session.listen().await;
    let (id, asked) = next(&mut general).await;
    answer(&session, &id, asked.says("yes")).await;
    assert_eq!(outcomes.recv().await.expect("an outcome"), "yes");

    // One that was read, and one that was not: both time out while no stream is open.
    session.notify("notifications/x", Value::Null).await;
    let (read, _) = next(&mut general).await;
    session.notify("notifications/x", Value::Null).await;
    sleep(Duration::from_secs(1)).await;
    drop(general);
    for _ in 0..2 {
        assert_eq!(outcomes.recv().await.expect("an outcome"), "TimedOut");
    }
    let mut general = session.listen().await;
    let (unread, _) = next(&mut general).await;
    for id in [read, unread] {
        let cancelled = general.next_message().await.expect("a cancellation");
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"], json!({"requestId": id}));
    }
}

/// In a batch all questions ride its one stream.
async fn batch(cx: Cx) {
    if cx.revision != Revision::V2025_03_26 {
        return;
    }
    let bench = Bench::open(cx, |_, cx| async move { text(ask(cx).await) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let call = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}});
    let mut stream = session.client.send(session.post(json!([call(1), call(2)]))).await;
    let (one, asked) = next(&mut stream).await;
    let (two, _) = next(&mut stream).await;
    let responses = json!([response(&two, asked.says("b")), response(&one, asked.says("a"))]);
    accepted(session.client.send(session.post(responses)).await).await;
    let mut texts: Vec<_> =
        stream.events().await.iter().map(|event| event["result"]["content"][0]["text"].clone()).collect();
    texts.sort_by_key(Value::to_string);
    assert_eq!(texts, ["a", "b"]);
}

/// 202 for a response that somebody waits for, and 400 for all others: later ones, and those of other ids.
async fn awaited(cx: Cx) {
    let bench = Bench::open(cx, |_, cx| async move { text(ask(cx).await) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let other = dialogue::open(&bench.client, cx.revision).await;
    let mut stream = session.request("tools/call", json!({"name": "t"})).await;
    let (id, asked) = next(&mut stream).await;
    let says = asked.says("yes");
    assert_eq!(id, 1);
    for id in [json!("1"), json!(2), json!(0), json!(-1), json!(null), json!(""), json!("x")] {
        if !id.is_null() {
            unawaited(&session, response(&id, says.clone())).await;
        }
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "x"}});
        unawaited(&session, error).await;
    }
    unawaited(&session, json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}})).await;
    // Another session's question is another's.
    unawaited(&other, response(&id, says.clone())).await;
    answer(&session, &id, says.clone()).await;
    unawaited(&session, response(&id, says.clone())).await;
    assert_eq!(result(stream).await, "yes");
    unawaited(&session, response(&id, says)).await;

    // The same number may be written otherwise, and an error is an answer.
    for (wire, outcome) in [
        (r#"{"jsonrpc":"2.0","id":2.0,"error":{"code":-1,"message":"no"}}"#, r#"Refused { code: -1, message: "no" }"#),
        (
            r#"{"id":3,"error":{"code":7,"message":"","data":[1]},"jsonrpc":"2.0"}"#,
            r#"Refused { code: 7, message: "" }"#,
        ),
        (r#"{"jsonrpc":"2.0","id":4,"error":{"message":"no"}}"#, "BadAnswer"),
        (r#"{"jsonrpc":"2.0","id":5,"result":null}"#, "BadAnswer"),
        (r#"{"jsonrpc":"2.0","id":6,"result":{}}"#, "BadAnswer"),
    ] {
        let mut stream = session.request("tools/call", json!({"name": "t"})).await;
        next(&mut stream).await;
        accepted(session.client.send(session.post(Value::Null).raw(wire)).await).await;
        assert_eq!(result(stream).await, outcome);
    }
}

/// A response inside a batch reaches whoever waits for it.
async fn batched_response(cx: Cx) {
    let bench = Bench::open(cx, |_, cx| async move { text(ask(cx).await) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut stream = session.request("tools/call", json!({"name": "t"})).await;
    let (id, asked) = next(&mut stream).await;
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    let body = json!([ping, response(&json!(77), json!({})), response(&id, asked.says("yes"))]);
    let batch = session.client.send(session.post(body)).await;
    if cx.revision == Revision::V2025_03_26 {
        assert_eq!(batch.json().await, json!([{"jsonrpc": "2.0", "id": 9, "result": {}}]));
    } else {
        batch.error(StatusCode::BAD_REQUEST, -32600, None).await;
        assert!(timeout(Duration::from_millis(20), stream.next_message()).await.is_err());
        answer(&session, &id, asked.says("yes")).await;
    }
    assert_eq!(result(stream).await, "yes");
}
