//! Clients that come and go by every exit, and what is left of them: nothing.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{CancelCause, Counts, Limits};
use serde_json::{Value, json};

use super::{Ends, METHOD, Signal, all_quiet, limited, reply, tell, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("fault/leak", Carriers::Every, nothing_is_left);
    wire.any("fault/leak/deadline", Carriers::Every, nothing_is_left_by_the_deadline);
    wire.any("fault/leak/drain", Carriers::Every, nothing_is_left_by_a_drain);
    wire.any("fault/leak/talkers", Carriers::Every, tasks_of_the_handler_are_not_held_up);
}

/// How often each exit is taken.
const ROUNDS: usize = 5;

/// Goes with a request, and tells how many of its kind live.
#[derive(Clone)]
struct Trace(#[allow(dead_code)] Arc<()>);

/// Does what `params.exit` says, holding on to what a handler would.
fn leaving(entered: &Signal, ends: &Ends, trace: &Arc<()>) -> Script {
    let (entered, ends, trace) = (entered.clone(), ends.clone(), Arc::clone(trace));
    let hear = (entered.clone(), Arc::clone(&trace));
    let script = Script::new(move |request, cx| {
        let (entered, ends, trace) = (entered.clone(), ends.clone(), Arc::clone(&trace));
        async move {
            let _guard = (ends.guard(&cx), trace);
            let exit = request.params::<Value>()?["exit"].as_str().map(str::to_owned).unwrap_or_default();
            if exit.contains("stream") {
                tell(&cx, 1).await;
            }
            entered.give();
            tokio::task::yield_now().await;
            if exit.contains("panic") {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            if exit.contains("hang") {
                pending::<()>().await;
            }
            reply(1)
        }
    });
    script.hearing(move |notification, _| {
        let (entered, trace) = hear.clone();
        async move {
            let _trace = trace;
            entered.give();
            match notification.method() {
                "notifications/hang" => pending::<()>().await,
                "notifications/panic" => std::panic::resume_unwind(Box::new("on purpose")),
                _ => tokio::task::yield_now().await,
            }
        }
    })
}

fn exit(cx: Cx, how: &str, trace: &Arc<()>) -> Call {
    let mut call = work(cx);
    call.set("/params/exit", how);
    call.extensions.insert(Trace(Arc::clone(trace)));
    call
}

/// Sends a request, and leaves once its handler is at work: without an answer, or in the middle of one.
async fn leave(client: &Client, call: Call, entered: &Signal, head: bool) {
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.send(call).await }
    });
    entered.taken().await;
    if head {
        asking.await.expect("a head");
    } else {
        asking.abort();
        let _ = asking.await;
    }
}

async fn nothing_is_left(cx: Cx) {
    let (entered, ends, trace) = (Signal::new(), Ends::new(), Arc::new(()));
    let service = limited(leaving(&entered, &ends, &trace), Limits::default());
    let client = cx.serve(service.clone()).await;
    let before = Arc::strong_count(&trace);
    for _ in 0..ROUNDS {
        for how in ["answer", "stream", "panic", "panic-stream"] {
            let answer = client.send(exit(cx, how, &trace)).await;
            entered.taken().await;
            assert_eq!(answer.status, StatusCode::OK);
            answer.text().await;
            assert_eq!(ends.next().await, None, "{how}");
            // Not read at all, or not to its end.
            drop(client.send(exit(cx, how, &trace)).await);
            entered.taken().await;
            ends.next().await;
        }
        leave(&client, exit(cx, "hang", &trace), &entered, false).await;
        assert_eq!(ends.next().await, Some(CancelCause::Disconnected));
        leave(&client, exit(cx, "hang-stream", &trace), &entered, true).await;
        assert_eq!(ends.next().await, Some(CancelCause::Disconnected));
        let only_json = exit(cx, "hang-stream", &trace).header(ACCEPT.as_str(), "application/json");
        leave(&client, only_json, &entered, false).await;
        assert_eq!(ends.next().await, Some(CancelCause::Disconnected));
        for refused in [exit(cx, "", &trace).raw("{"), exit(cx, "", &trace).header(ACCEPT.as_str(), "text/html")] {
            assert!(client.send(refused).await.status.is_client_error());
        }
        for method in ["notifications/quiet", "notifications/panic"] {
            let mut call = Call::of(cx.revision, method, json!({})).notification();
            call.extensions.insert(Trace(Arc::clone(&trace)));
            assert_eq!(client.send(call).await.status, StatusCode::ACCEPTED);
            entered.taken().await;
        }
    }
    all_quiet(&service).await;
    settled(&trace, before).await;
    assert_eq!(ends.dropped.count(), 0);
}

/// Waits until nothing holds the trace that did not before.
async fn settled(trace: &Arc<()>, before: usize) {
    while Arc::strong_count(trace) != before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn nothing_is_left_by_the_deadline(cx: Cx) {
    let (entered, ends, trace) = (Signal::new(), Ends::new(), Arc::new(()));
    let limits = Limits::default().handler_time(Duration::from_millis(20));
    let service = limited(leaving(&entered, &ends, &trace), limits);
    let client = cx.serve(service.clone()).await;
    let before = Arc::strong_count(&trace);
    for _ in 0..ROUNDS {
        for how in ["hang", "hang-stream"] {
            client.send(exit(cx, how, &trace)).await.text().await;
            assert_eq!(ends.next().await, Some(CancelCause::Deadline));
        }
        let hangs = Call::of(cx.revision, "notifications/hang", json!({})).notification();
        assert_eq!(client.send(hangs).await.status, StatusCode::ACCEPTED);
    }
    all_quiet(&service).await;
    settled(&trace, before).await;
}

async fn nothing_is_left_by_a_drain(cx: Cx) {
    let (entered, ends, trace) = (Signal::new(), Ends::new(), Arc::new(()));
    let service = limited(leaving(&entered, &ends, &trace), Limits::default());
    let client = cx.serve(service.clone()).await;
    let before = Arc::strong_count(&trace);
    let mut asking = Vec::new();
    for _ in 0..ROUNDS {
        for how in ["hang", "hang-stream"] {
            let (client, call) = (client.clone(), exit(cx, how, &trace));
            asking.push(tokio::spawn(async move { client.send(call).await.text().await }));
            entered.taken().await;
        }
        let hangs = Call::of(cx.revision, "notifications/hang", json!({})).notification();
        assert_eq!(client.send(hangs).await.status, StatusCode::ACCEPTED);
        entered.taken().await;
    }
    let report = service.drain(Duration::ZERO).await;
    assert_eq!((report.in_flight, report.cut), (3 * ROUNDS, 3 * ROUNDS));
    for asked in asking {
        assert!(asked.await.expect("an answer").contains("\"The server is shutting down\""));
        assert_eq!(ends.next().await, Some(CancelCause::Drained));
    }
    assert_eq!(client.send(exit(cx, "answer", &trace)).await.status, StatusCode::SERVICE_UNAVAILABLE);
    all_quiet(&service).await;
    settled(&trace, before).await;
    assert_eq!(service.counts(), Counts::default());
}

/// A task that a handler left behind goes on talking to a client that is gone. It must come to its end, for what it
/// holds is held until then.
async fn tasks_of_the_handler_are_not_held_up(cx: Cx) {
    let (entered, go, done) = (Signal::new(), Signal::new(), Signal::new());
    let hear = (go.clone(), done.clone());
    let script = Script::new({
        let (entered, go, done) = (entered.clone(), go.clone(), done.clone());
        move |request, cx| {
            let (entered, go, done) = (entered.clone(), go.clone(), done.clone());
            async move {
                let streams = request.params::<Value>()?["exit"] == "stream";
                if streams {
                    tell(&cx, 1).await;
                }
                tokio::spawn(async move {
                    entered.give();
                    go.taken().await;
                    for n in 0..1000 {
                        tell(&cx, n).await;
                    }
                    done.give();
                });
                pending::<()>().await;
                reply(1)
            }
        }
    });
    let script = script.hearing(move |_, cx| {
        let (_, done) = hear.clone();
        async move {
            for n in 0..1000 {
                tell(&cx, n).await;
            }
            done.give();
        }
    });
    let trace = Arc::new(());
    let service = limited(script, Limits::default());
    let client = cx.serve(service.clone()).await;
    for (how, head) in [("", false), ("stream", true)] {
        leave(&client, exit(cx, how, &trace), &entered, head).await;
        all_quiet(&service).await;
        go.give();
        done.taken().await;
    }
    let heard = Call::of(cx.revision, METHOD, json!({})).notification();
    assert_eq!(client.send(heard).await.status, StatusCode::ACCEPTED);
    done.taken().await;
    all_quiet(&service).await;
    settled(&trace, 1).await;
}
