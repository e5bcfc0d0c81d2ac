//! What ends the elements of a batch before they are answered: their client, its connection, its session.

use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{CancelCause, StreamableHttpService};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{BATCHED, cancellation, request, responses, result, sorted};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client, assert_error};
use crate::support::request::Call;
use crate::support::session::{self, accepted};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.only(BATCHED, "batch/concurrent/cancelled-inside", Carriers::Every, cancelled_inside);
    wire.only(BATCHED, "batch/concurrent/cancelled-by-another", Carriers::Every, cancelled_by_another);
    wire.only(BATCHED, "batch/concurrent/all-cancelled", Carriers::Every, all_cancelled);
    wire.only(BATCHED, "batch/concurrent/sessionless-cancels-nothing", Carriers::Every, sessionless);
    wire.only(BATCHED, "batch/concurrent/dropped-in-session", Carriers::Every, dropped_in_session);
    wire.only(BATCHED, "batch/concurrent/dropped-sessionless", Carriers::Every, dropped_sessionless);
    wire.only(BATCHED, "batch/concurrent/deleted", Carriers::Every, deleted);
}

/// A cancellation in the same batch cancels what stands before it, and no other's reply is withheld.
async fn cancelled_inside(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let session = session::open(&client, BATCHED).await;
    let hold = |id: Value, name: &str| request(id, "x/hold", json!({"name": name}));
    for (id, by) in [(json!("a"), json!("a")), (json!(7), json!(7)), (json!(8), json!(8.0))] {
        let all = json!([
            request(1, "x/echo", json!({"n": 1})),
            hold(id, "cancelled"),
            cancellation(by),
            request(2, "x/echo", json!({"n": 2})),
        ]);
        let answer = client.send(session.post(all)).await;
        assert_eq!(responses(answer).await, [result(1, json!({"n": 1})), result(2, json!({"n": 2}))]);
    }
    // One that comes before its request crossed it the wrong way: nothing is cancelled.
    let all = json!([cancellation(3), request(3, "x/echo", json!({})), cancellation("3"), cancellation(99)]);
    assert_eq!(responses(client.send(session.post(all)).await).await, [result(3, json!({}))]);
    // The id is free again.
    let again = json!([request("a", "x/echo", json!({})), request(7, "ping", json!({}))]);
    assert_eq!(responses(client.send(session.post(again)).await).await.len(), 2);
}

/// A cancellation from elsewhere takes one element, whether its batch is a stream already or not.
async fn cancelled_by_another(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let session = session::open(&client, BATCHED).await;
    for (tell, in_a_batch) in [(0, false), (1, false), (0, true), (1, true)] {
        let (gone, stays) = (format!("gone-{tell}-{in_a_batch}"), format!("stays-{tell}-{in_a_batch}"));
        let asking = send(
            &client,
            session.post(json!([
                request("gone", "x/hold", json!({"name": gone, "tell": tell})),
                request("stays", "x/hold", json!({"name": stays})),
            ])),
        );
        stage.entered(&gone).await;
        stage.entered(&stays).await;
        if in_a_batch {
            accepted(client.send(session.post(json!([cancellation("gone")]))).await).await;
        } else {
            session.cancel("gone").await;
        }
        assert_eq!(stage.dropped(&gone).await, Some(CancelCause::Requested));
        assert!(stage.is_in(&stays));
        stage.release(&stays);
        let answer = asking.await.expect("an answer");
        let stays = result("stays", json!({"name": stays}));
        if tell == 0 {
            assert_eq!(responses(answer).await, [stays]);
        } else {
            let told = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"name": gone, "n": 0}});
            assert_eq!(answer.events().await, [told, stays.1]);
        }
    }
}

/// Where every element is cancelled the POST ends as an empty stream, or 202 where the client takes only JSON.
async fn all_cancelled(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let session = session::open(&client, BATCHED).await;
    let hold = |id: &str, name: &str| request(id, "x/hold", json!({"name": name}));
    let inside = json!([hold("a", "x"), hold("b", "y"), cancellation("b"), cancellation("a")]);
    for accept in ["application/json", "text/event-stream", "*/*"] {
        let withheld = async |answer: Answer| {
            if accept == "application/json" {
                accepted(answer).await;
            } else {
                assert_eq!(answer.status, StatusCode::OK);
                assert_eq!(answer.events().await, [Value::Null; 0]);
            }
        };
        withheld(client.send(session.post(inside.clone()).header(ACCEPT.as_str(), accept)).await).await;

        let (one, other) = (format!("one-{accept}"), format!("other-{accept}"));
        let call = session.post(json!([hold("a", &one), hold("b", &other)])).header(ACCEPT.as_str(), accept);
        let asking = send(&client, call);
        stage.entered(&one).await;
        stage.entered(&other).await;
        session.cancel("a").await;
        stage.dropped(&one).await;
        assert!(stage.is_in(&other));
        session.cancel("b").await;
        withheld(asking.await.expect("an answer")).await;
    }
}

/// Without a session nothing is cancelled by its id: it may be another client's.
async fn sessionless(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let all = json!([request(1, "x/echo", json!({})), cancellation(1), request(2, "x/hold", json!({"name": "held"}))]);
    let asking = send(&client, Call::post(all));
    stage.entered("held").await;
    for body in [json!([cancellation(2)]), cancellation(2)] {
        accepted(client.send(Call::post(body)).await).await;
    }
    assert!(stage.is_in("held"));
    stage.release("held");
    assert_eq!(responses(asking.await.expect("an answer")).await.len(), 2);
}

/// In a session a dropped connection cancels nothing: every element runs to its end, and its id is then free.
async fn dropped_in_session(cx: Cx) {
    let stage = Stage::default();
    let service = StreamableHttpService::new(stage.script());
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, BATCHED).await;
    for tell in [0, 1] {
        let (one, other) = (format!("one-{tell}"), format!("other-{tell}"));
        let all = json!([
            request(1, "x/hold", json!({"name": one, "tell": tell})),
            request(2, "x/hold", json!({"name": other})),
        ]);
        // A connection of its own, so that over HTTP/2 too it is the connection that ends.
        let leaving = client.another();
        let asking = send(&leaving, session.post(all));
        drop(leaving);
        stage.entered(&one).await;
        stage.entered(&other).await;
        if tell > 0 {
            let mut answer = asking.await.expect("an answer");
            assert_eq!(answer.next_message().await.expect("an event")["method"], "notifications/x");
            drop(answer);
        } else {
            asking.abort();
        }
        until(|| service.counts().streams == 0).await;
        let taken = json!([request(1, "ping", json!({}))]);
        let refused = client.send(session.post(taken)).await.json().await;
        assert_error(refused[0].clone(), -32600, Some(&1.into()));
        assert!(stage.is_in(&one) && stage.is_in(&other));
        stage.release(&one);
        stage.release(&other);
        stage.answered(&one).await;
        stage.answered(&other).await;
        until(|| service.counts().in_flight == 0).await;
        let again = json!([request(1, "x/echo", json!({})), request(2, "x/echo", json!({}))]);
        assert_eq!(responses(client.send(session.post(again)).await).await.len(), 2);
    }
}

/// Without a session it cancels all of them.
async fn dropped_sessionless(cx: Cx) {
    let stage = Stage::default();
    let service = StreamableHttpService::new(stage.script());
    let client = cx.serve(service.clone()).await;
    for tell in [0, 1] {
        let (one, other) = (format!("one-{tell}"), format!("other-{tell}"));
        let all = json!([
            request(1, "x/hold", json!({"name": one, "tell": tell})),
            request(2, "x/hold", json!({"name": other})),
            request(3, "ping", json!({})),
        ]);
        let asking = send(&client, Call::post(all));
        stage.entered(&one).await;
        stage.entered(&other).await;
        if tell > 0 {
            drop(asking.await.expect("an answer"));
        } else {
            asking.abort();
        }
        assert_eq!(stage.dropped(&one).await, Some(CancelCause::Disconnected));
        assert_eq!(stage.dropped(&other).await, Some(CancelCause::Disconnected));
        until(|| service.counts().in_flight == 0).await;
    }
}

/// The end of its session cancels what runs, and what was cancelled is not answered.
async fn deleted(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    for tell in [0, 1] {
        let session = session::open(&client, BATCHED).await;
        let name = format!("held-{tell}");
        let all = json!([request(1, "x/hold", json!({"name": name, "tell": tell})), request(2, "ping", json!({}))]);
        let asking = send(&client, session.post(all));
        stage.entered(&name).await;
        session.end().await;
        assert_eq!(stage.dropped(&name).await, Some(CancelCause::SessionEnded));
        let answer = asking.await.expect("an answer");
        let all = if tell == 0 { responses(answer).await } else { sorted(answer.events().await.split_off(1)) };
        assert_eq!(all, [result(2, json!({}))]);
    }
}

fn send(client: &Client, call: Call) -> JoinHandle<Answer> {
    let client = client.clone();
    tokio::spawn(async move { client.send(call).await })
}

/// Waits for what has no other sign than its effect.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
