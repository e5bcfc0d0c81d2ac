//! What live sessions may still do while the transport is drained: answer, cancel and leave.

use std::pin::pin;
use std::time::Duration;

use http::{Method, StatusCode};
use mcp_transport::{CancelCause, Principal, Revision, StreamableHttpService};
use serde_json::{Value, json};

use super::{Listener, begin, serving, turned_away};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::assert_error;
use crate::support::request::{Call, PROTOCOL_VERSION, SESSION_ID};
use crate::support::session::{self, ACCOUNT, accepted};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.legacy_part_of_any("shutdown/drain/cancels", Carriers::Every, cancels);
    wire.legacy_part_of_any("shutdown/drain/deletes", Carriers::Every, deletes);
    wire.legacy_part_of_any("shutdown/drain/responses", Carriers::Every, responses);
    wire.legacy_part_of_any("shutdown/drain/strangers", Carriers::Every, strangers);
    wire.legacy_part_of_any("shutdown/drain/nothing-else", Carriers::Every, nothing_else);
    wire.legacy_part_of_any("shutdown/drain/batch", Carriers::Every, batch);
}

/// The client takes back what it asked: its reply is withheld, and the drain has one less to wait for.
async fn cancels(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let listener = Listener::open(cx, &client).await;
    let session = listener.session.clone().expect("a session");
    let held = listener.hold(&stage, "held", 0).await;
    let mut drain = pin!(service.drain(Duration::from_secs(600)));
    begin(drain.as_mut()).await;
    session.cancel("unknown").await;
    accepted(client.send(session.notification("notifications/cancelled", json!({}))).await).await;
    assert!(stage.is_in("held"));
    session.cancel("held").await;
    assert_eq!(stage.dropped("held").await, Some(CancelCause::Requested));
    let (report, (), answer) = tokio::join!(drain, listener.ends(), held);
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.events().await, [Value::Null; 0]);
    assert_eq!((report.in_flight, report.cut), (1, 0));
}

/// The client leaves for good: what runs in its session is cancelled, and its reply withheld.
async fn deletes(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let listener = Listener::open(cx, &client).await;
    let session = listener.session.clone().expect("a session");
    let held = listener.hold(&stage, "held", 0).await;
    let mut drain = pin!(service.drain(Duration::from_secs(600)));
    begin(drain.as_mut()).await;
    session.end().await;
    assert_eq!(stage.dropped("held").await, Some(CancelCause::SessionEnded));
    let (report, (), answer) = tokio::join!(drain, listener.ends(), held);
    assert_eq!(answer.expect("an answer").events().await, [Value::Null; 0]);
    assert_eq!((report.in_flight, report.cut), (1, 0));
    assert_eq!(service.counts().sessions, 0);
    turned_away(&client, session.delete()).await;
}

/// Responses are let in, to be told that nothing waits for them.
async fn responses(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    service.drain(Duration::ZERO).await;
    for body in [
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}),
    ] {
        client.send(session.post(body.clone())).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
        turned_away(&client, Call::post(body)).await;
    }
}

/// Only who is in a live session: for all others it is as if there were none.
async fn strangers(cx: Cx) {
    let stage = Stage::default();
    let service = StreamableHttpService::builder(stage.script()).principal(|head| {
        let account = head.headers.get(ACCOUNT)?.to_str().ok()?;
        Some(Principal::new(account))
    });
    let service = service.build().expect("a service");
    let client = cx.serve(service.clone()).await;
    let session = session::open_by(&client, session::initialize(cx.revision).header(ACCOUNT, "one")).await;
    let gone = session::open(&client, cx.revision).await;
    gone.end().await;
    let held = tokio::spawn({
        let (client, call) = (client.clone(), session.call("x/hold", json!({"name": "held"})));
        async move { client.send(call).await }
    });
    stage.entered("held").await;
    let mut drain = pin!(service.drain(Duration::from_secs(600)));
    begin(drain.as_mut()).await;
    for call in [
        session.cancellation(1).without(SESSION_ID),
        session.cancellation(1).header(SESSION_ID, "none"),
        session.cancellation(1).header(ACCOUNT, "two"),
        session.cancellation(1).without(ACCOUNT),
        session.cancellation(1).header(PROTOCOL_VERSION, "1"),
        session.cancellation(1).also(SESSION_ID, &session.id),
        gone.cancellation(1),
        gone.delete(),
        session.delete().header(ACCOUNT, "two"),
        session.delete().header(SESSION_ID, "none"),
        session.delete().header(PROTOCOL_VERSION, "2026-07-28"),
        Call::bare(Method::DELETE),
    ] {
        turned_away(&client, call).await;
    }
    assert!(stage.is_in("held"));
    stage.release("held");
    let (report, answer) = tokio::join!(drain, held);
    answer.expect("an answer").result().await;
    assert_eq!((report.in_flight, report.cut), (1, 0));
}

/// Whatever else a live session sends is new work, broken or not.
async fn nothing_else(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    service.drain(Duration::ZERO).await;
    for call in [
        session.call("x/echo", json!({})),
        session.call("ping", Value::Null),
        session.call("notifications/cancelled", json!({"requestId": 1})),
        session.sign(session::initialize(cx.revision)),
        session.notification("notifications/initialized", Value::Null),
        session.notification("notifications/roots/list_changed", Value::Null),
        session.post(json!([])),
        session.post(json!({})),
        session.post(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []})),
        session.post(Value::Null).raw("{"),
        session.post(Value::Null).raw(""),
        session.get(),
        session.get().header("last-event-id", "1"),
        session.sign(Call::modern("x/echo", json!({}))),
        session.sign(Call::modern("notifications/cancelled", json!({"requestId": 1})).notification()),
    ] {
        turned_away(&client, call).await;
    }
    assert_eq!(stage.take_runs(), 0);
}

/// A batch of nothing but those is let in; one that asks for more is turned away whole. What runs is cut element-wise.
async fn batch(cx: Cx) {
    if cx.revision != Revision::V2025_03_26 {
        return;
    }
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    let hold = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "x/hold", "params": {"name": id}});
    let cancel = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let asking = tokio::spawn({
        let (client, call) = (client.clone(), session.post(json!([hold("a"), hold("b"), hold("c")])));
        async move { client.send(call).await }
    });
    for name in ["a", "b", "c"] {
        stage.entered(name).await;
    }
    let mut drain = pin!(service.drain(Duration::from_millis(500)));
    begin(drain.as_mut()).await;
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    for more in [ping, told, json!(7)] {
        turned_away(&client, session.post(json!([cancel("b"), more]))).await;
        turned_away(&client, session.post(json!([more, cancel("b")]))).await;
    }
    assert!(stage.is_in("b"));
    accepted(client.send(session.post(json!([response, cancel("a")]))).await).await;
    assert_eq!(stage.dropped("a").await, Some(CancelCause::Requested));
    stage.release("b");
    stage.answered("b").await;
    let (report, answer) = tokio::join!(drain, asking);
    let answers = answer.expect("an answer").json().await;
    let [done, cut] = &answers.as_array().expect("an array")[..] else { panic!("two answers: {answers}") };
    assert_eq!((&done["id"], &done["result"]), (&json!("b"), &json!({"name": "b"})));
    assert_error(cut.clone(), -32603, Some(&"c".into()));
    assert_eq!((report.in_flight, report.cut), (3, 1));
}
