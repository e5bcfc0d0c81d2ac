//! Questions up to 2025-11-25 that get no answer, or too late.

use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{CancelCause, Limits, Request, RequestContext};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep};

use super::related::{answer, next, response, result, unawaited};
use super::{Bench, text, told};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, assert_error};
use crate::support::dialogue::{self, in_session, question};

pub fn register(wire: &mut Wire) {
    wire.legacy("ask/ends/time", Carriers::Clock, time);
    wire.legacy("ask/ends/own-time", Carriers::Clock, own_time);
    wire.legacy("ask/ends/full", Carriers::Clock, full);
    wire.legacy("ask/ends/cancelled", Carriers::Every, cancelled);
    wire.legacy("ask/ends/general", Carriers::Every, general);
    wire.legacy("ask/ends/handler-time", Carriers::Clock, handler_time);
    wire.legacy("ask/ends/session", Carriers::Every, session_ends);
    wire.legacy("ask/ends/expiry", Carriers::Clock, expiry);
    wire.legacy("ask/ends/wrong-shape", Carriers::Every, wrong_shape);
    wire.legacy("ask/ends/task", Carriers::Every, task);
    wire.legacy_part_of_any("shutdown/drain/asks", Carriers::Every, drain);
}

fn call(session: &crate::support::session::Session) -> crate::support::request::Call {
    session.call("tools/call", json!({"name": "t"}))
}

/// The client is told that nobody waits for its answer any more.
async fn taken_back(stream: &mut Answer, id: &Value) {
    let message = stream.next_message().await.expect("a cancellation");
    let method = "notifications/cancelled";
    assert_eq!(message, json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}));
}

/// It waits as long as the limit says; then the waiter is gone before the client hears of it.
async fn time(cx: Cx) {
    for (limits, seconds) in [(Limits::default(), 300), (Limits::default().ask_time(Duration::from_secs(7)), 7)] {
        let handler =
            |_: Request, cx: RequestContext| async move { text(told(&cx.ask("q", question(&cx, "q")).await)) };
        let bench = Bench::with(cx, handler, |builder| builder.limits(limits)).await;
        let session = dialogue::open(&bench.client, cx.revision).await;
        let begun = Instant::now();
        let mut stream = session.client.send(call(&session)).await;
        let (id, asked) = next(&mut stream).await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "it leaves at once");
        taken_back(&mut stream, &id).await;
        assert_eq!(begun.elapsed().as_secs(), seconds);
        unawaited(&session, response(&id, asked.says("late"))).await;
        assert_eq!(result(stream).await, "TimedOut");
        // A moment before is in time.
        let mut stream = session.client.send(call(&session)).await;
        let (id, asked) = next(&mut stream).await;
        sleep(Duration::from_millis(seconds * 1_000 - 10)).await;
        answer(&session, &id, asked.says("in time")).await;
        assert_eq!(result(stream).await, "in time");
    }
}

/// A question's own time counts instead, be it shorter or longer.
async fn own_time(cx: Cx) {
    for own in [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3_000), Duration::MAX] {
        let patient = Limits::default().unread_time(Duration::MAX);
        let bench = Bench::with(
            cx,
            move |_, cx| async move { text(told(&cx.ask("q", question(&cx, "q").timeout(own)).await)) },
            |builder| builder.limits(patient),
        )
        .await;
        let session = dialogue::open(&bench.client, cx.revision).await;
        let begun = Instant::now();
        let mut stream = session.client.send(call(&session)).await;
        let (id, asked) = next(&mut stream).await;
        if own == Duration::MAX {
            sleep(Duration::from_secs(24 * 3_600)).await;
            answer(&session, &id, asked.says("a day later")).await;
            assert_eq!(result(stream).await, "a day later");
        } else {
            taken_back(&mut stream, &id).await;
            assert_eq!(begun.elapsed().as_secs(), own.as_secs());
            assert_eq!(result(stream).await, "TimedOut");
        }
    }
}

/// Time runs while a question waits for room on a stream that nobody reads, and it does not go out elsewhere then.
async fn full(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        for _ in 0..2 {
            cx.notify("notifications/x", json!({"x": "x".repeat(6_000)})).await?;
        }
        // In a task of its own, which the answer leaves behind.
        let asking = tokio::spawn(async move { told(&cx.ask("q", question(&cx, "q")).await) });
        tokio::select! {
            outcome = asking => text(outcome.expect("a task")),
            () = sleep(Duration::from_secs(5)) => text("enough"),
        }
    };
    let limits = Limits::default().queue_bytes(12 << 10);
    let bench = Bench::with(cx, handler, |builder| builder.limits(limits)).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let general = session.listen().await;
    let stream = session.client.send(call(&session)).await;
    sleep(Duration::from_secs(60)).await;
    let methods: Vec<_> = stream.events().await.iter().map(|message| message["method"].clone()).collect();
    let told = json!("notifications/x");
    assert!(methods.iter().all(|method| *method == told || method.is_null()), "{methods:?}");
    session.end().await;
    assert_eq!(general.events().await, [Value::Null; 0], "nobody waits for it any more");
}

/// When its request is cancelled a question is taken back on the same stream, before that ends.
async fn cancelled(cx: Cx) {
    let bench = Bench::open(cx, |_, cx| async move { text(told(&cx.ask("q", question(&cx, "q")).await)) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut stream = session.client.send(call(&session).id("mine")).await;
    let (id, asked) = next(&mut stream).await;
    session.cancel("mine").await;
    taken_back(&mut stream, &id).await;
    unawaited(&session, response(&id, asked.says("late"))).await;
    assert_eq!(stream.next_event().await, None, "its own reply is withheld");
    // The id is free, and a new question has a new one.
    let played = in_session(&session, call(&session).id("mine"), |asked| Some(asked.says("yes"))).await;
    assert_eq!(played.text(), "yes");
}

/// One that went out on the general stream is taken back there.
async fn general(cx: Cx) {
    let bench = Bench::open(cx, |_, cx| async move { text(told(&cx.ask("q", question(&cx, "q")).await)) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut general = session.listen().await;
    let asking = tokio::spawn({
        let (client, call) = (session.client.clone(), call(&session).id("mine"));
        async move { client.send(call.header(ACCEPT.as_str(), "application/json")).await }
    });
    let (id, asked) = next(&mut general).await;
    session.cancel("mine").await;
    taken_back(&mut general, &id).await;
    assert_eq!(asking.await.expect("an answer").status, StatusCode::ACCEPTED);
    unawaited(&session, response(&id, asked.says("late"))).await;
    session.end().await;
    assert_eq!(general.next_event().await, None);
}

/// The handler's own deadline, too.
async fn handler_time(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move { text(told(&cx.ask("q", question(&cx, "q")).await)) };
    let limits = Limits::default().handler_time(Duration::from_secs(3));
    let bench = Bench::with(cx, handler, |builder| builder.limits(limits)).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut stream = session.client.send(call(&session)).await;
    let (id, asked) = next(&mut stream).await;
    taken_back(&mut stream, &id).await;
    unawaited(&session, response(&id, asked.says("late"))).await;
    let rest = stream.events().await;
    assert_error(rest[0].clone(), -32603, Some(&json!(1)));
}

/// A session that its client deletes takes its questions along.
async fn session_ends(cx: Cx) {
    let (tell, mut outcomes) = unbounded_channel();
    let bench = Bench::open(cx, move |_, cx| {
        let tell = tell.clone();
        async move {
            // The handler is dropped with the session. A task lives on.
            let asking = tokio::spawn(async move {
                let _ = tell.send((told(&cx.ask("q", question(&cx, "q")).await), cx.cancel_cause()));
                let _ = tell.send((told(&cx.ask("q", question(&cx, "q")).await), cx.cancel_cause()));
            });
            asking.await.expect("a task");
            text("")
        }
    })
    .await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut stream = session.client.send(call(&session)).await;
    let (id, asked) = next(&mut stream).await;
    session.end().await;
    let (outcome, cause) = outcomes.recv().await.expect("an outcome");
    assert!(["SessionEnded", "Unreachable"].contains(&&*outcome), "{outcome}");
    assert_eq!(cause, Some(CancelCause::SessionEnded));
    let (again, _) = outcomes.recv().await.expect("an outcome");
    assert!(["SessionEnded", "Unreachable"].contains(&&*again), "{again}");
    assert_eq!(stream.next_event().await, None);
    let late = session.client.send(session.post(response(&id, asked.says("late")))).await;
    assert_eq!(late.status, StatusCode::NOT_FOUND);
}

/// A question is work: a session does not expire over it.
async fn expiry(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        text(told(&cx.ask("q", question(&cx, "q").timeout(Duration::from_secs(7_200))).await))
    };
    let limits = Limits::default().session_idle(Duration::from_secs(60)).unread_time(Duration::MAX);
    let bench = Bench::with(cx, handler, |builder| builder.limits(limits)).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut stream = session.client.send(call(&session)).await;
    let (id, asked) = next(&mut stream).await;
    sleep(Duration::from_secs(3_600)).await;
    answer(&session, &id, asked.says("yes")).await;
    assert_eq!(result(stream).await, "yes");
}

/// An answer that is none fails; what a handler with `?` answers then is the client's fault.
async fn wrong_shape(cx: Cx) {
    let handler =
        |_: Request, cx: RequestContext| async move { text(told(&Ok(cx.ask("q", question(&cx, "q")).await?))) };
    let bench = Bench::open(cx, handler).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    for wrong in [json!(null), json!(7), json!([]), json!({}), json!({"action": "maybe"}), json!({"role": "assistant"})]
    {
        let played = in_session(&session, call(&session), |_| Some(wrong.clone())).await;
        assert_eq!(played.status, StatusCode::OK);
        let error = assert_error(played.response, -32602, Some(&json!(1)));
        assert!(!error["message"].as_str().expect("a text").contains("maybe"), "{error}");
    }
    assert_eq!(bench.heard.take(), [""; 0], "it is no fault of the application's");
}

/// A task that nobody waits for fails once its request is answered, whether it asked before or after.
async fn task(cx: Cx) {
    let (tell, mut outcomes) = unbounded_channel();
    let bench = Bench::open(cx, move |_, cx| {
        let tell = tell.clone();
        async move {
            tokio::spawn(async move {
                for _ in 0..3 {
                    let _ = tell.send(told(&cx.ask("q", question(&cx, "q")).await));
                    tokio::task::yield_now().await;
                }
            });
            text("done")
        }
    })
    .await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut general = session.listen().await;
    let played = in_session(&session, call(&session), |_| None).await;
    assert_eq!(played.text(), "done");
    for _ in 0..3 {
        assert_eq!(outcomes.recv().await.expect("an outcome"), "Unreachable");
    }
    // Nothing waits: no id that was given out is awaited, and nothing has gone out elsewhere.
    for id in 1..=3 {
        unawaited(&session, response(&json!(id), json!({}))).await;
    }
    session.end().await;
    assert_eq!(general.next_event().await, None);
}

/// Answers still get in while a drain waits for who asked; what is cut then is taken back.
async fn drain(cx: Cx) {
    let bench = Bench::open(cx, |_, cx| async move { text(told(&cx.ask("q", question(&cx, "q")).await)) }).await;
    let session = dialogue::open(&bench.client, cx.revision).await;
    let mut answered = session.client.send(call(&session)).await;
    let (one, asked) = next(&mut answered).await;
    let mut cut = session.client.send(call(&session).id(2)).await;
    let (two, _) = next(&mut cut).await;
    let service = bench.service.clone();
    let draining = tokio::spawn(async move { service.drain(Duration::from_millis(300)).await });
    while session.client.send(session.call("ping", Value::Null)).await.status != StatusCode::SERVICE_UNAVAILABLE {
        tokio::task::yield_now().await;
    }
    answer(&session, &one, asked.says("yes")).await;
    assert_eq!(result(answered).await, "yes");
    unawaited(&session, response(&one, asked.says("yes"))).await;
    taken_back(&mut cut, &two).await;
    let rest = cut.events().await;
    assert_error(rest[0].clone(), -32603, Some(&json!(2)));
    let report = draining.await.expect("a report");
    assert_eq!((report.in_flight, report.cut), (2, 1));
}
