//! Responses, notifications and pings.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::RETRY_AFTER;
use mcp_transport::{Limits, Reply, Revision, Revisions, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::{Bench, Then};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::Call;
use crate::support::session::{self, Session, accepted};
use crate::support::sse::Frame;

pub fn register(wire: &mut Wire) {
    wire.legacy("answer/response/stray", Carriers::Every, stray_response);
    wire.legacy("answer/notification", Carriers::Every, notification);
    wire.legacy("answer/notification/hook", Carriers::Every, notification_hook);
    wire.legacy("answer/notification/too-many-hooks", Carriers::Clock, too_many_hooks);
    wire.legacy("ping/prompt", Carriers::Every, ping);
    wire.legacy("ping/prompt/past-limits", Carriers::Every, ping_past_limits);
    wire.legacy("ping/prompt/none-sent", Carriers::Clock, no_ping_is_sent);
}

/// A hook may ask its client, which need not answer: one session does not take the places of another.
async fn too_many_hooks(cx: Cx) {
    let release = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&release);
    let script = Script::new(|_, _| async { Reply::empty() }).hearing(move |_, _| {
        let gate = Arc::clone(&gate);
        async move { gate.acquire().await.map_or((), |permit| permit.forget()) }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let (one, other) = (session::open(&client, cx.revision).await, session::open(&client, cx.revision).await);
    let send = async |session: &Session| client.send(session.notification("notifications/x", Value::Null)).await.status;
    for _ in 0..64 {
        assert_eq!(send(&one).await, 202);
    }
    assert_eq!(send(&one).await, 503);
    assert_eq!(send(&other).await, 202);
    release.add_permits(65);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(send(&one).await, 202);
}

/// A response that nobody waits for is refused, and no id is given back: it would answer a request nobody made.
async fn stray_response(cx: Cx) {
    let bench = Bench::open(cx).await;
    let (session, fresh) = (bench.session(cx).await, session::start(&bench.client, cx.revision).await);
    let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
    let other = bench.send(fresh.call("x/work", Value::Null).id("a"));
    let mut other_run = bench.run().await;
    bench.life.take();
    let error = json!({"code": -1, "message": "no"});
    for members in [
        json!({"id": 1, "result": {}}),
        json!({"id": "a", "result": {"action": "accept", "content": {}}}),
        json!({"id": 1, "error": error}),
        json!({"id": 12345678901234567_u64, "error": error}),
        json!({"id": null, "error": error}),
        json!({"error": error}),
        json!({"id": 1, "result": null}),
        json!({"id": 1.0, "result": {}, "more": 1}),
    ] {
        let mut response = members;
        response["jsonrpc"] = json!("2.0");
        let sessionless = Call::post(response.clone());
        for call in [session.post(response.clone()), fresh.post(response.clone()), sessionless] {
            bench.client.send(call).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
        }
    }
    // What is no response at all is refused as such.
    for members in [
        json!({"id": 1, "result": {}, "error": error}),
        json!({"id": 1}),
        json!({"result": {}}),
        json!({"id": null, "result": {}}),
    ] {
        let mut response = members;
        response["jsonrpc"] = json!("2.0");
        let answer = bench.client.send(session.post(response)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.json().await["error"]["code"], -32600);
    }
    assert_eq!(bench.life.take(), [""; 0]);
    assert!(run.waits() && other_run.waits());
    run.go(Then::Answer);
    other_run.go(Then::Answer);
    asking.await.expect("an answer").result().await;
    other.await.expect("an answer").result().await;
}

/// A notification is accepted, known or not, ready or not, in a session or in none.
async fn notification(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = session::start(&bench.client, cx.revision).await;
    bench.life.take();
    for (method, is_heard) in [
        ("notifications/x", true),
        ("notifications/initialized", false),
        ("notifications/roots/list_changed", true),
        ("notifications/progress", true),
        ("notifications/cancelled", false),
        ("notifications/tools/list_changed", true),
        ("no/such", true),
        ("tools/call", true),
        ("ping", true),
        ("", true),
        ("\u{e9}\n", true),
    ] {
        for params in [Value::Null, json!({}), json!({"requestId": "none", "_meta": {"x": 1}})] {
            for call in [
                session.notification(method, params.clone()),
                Call::legacy(cx.revision, method, params.clone()).notification(),
            ] {
                accepted(bench.client.send(call).await).await;
                let heard = if is_heard { vec![format!("notification {method}")] } else { Vec::new() };
                assert_eq!(bench.life.take(), heard);
            }
        }
    }
    // `Accept` says nothing about an answer without a body.
    for accept in ["application/json", "text/event-stream", "*/*"] {
        let call = session.notification("notifications/x", Value::Null).header("accept", accept);
        accepted(bench.client.send(call).await).await;
    }
}

/// Nobody waits for the hook: not the client, whatever becomes of it.
async fn notification_hook(cx: Cx) {
    let (entered, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let declare = |script: Script, _| {
        script.hearing(move |notification, cx| {
            let entered = entered.clone();
            let panics = notification.method() == "notifications/panic";
            async move {
                let session = cx.session().map(|session| session.id().to_owned());
                entered.send((session, cx.revision())).expect("the test listens");
                if panics {
                    std::panic::resume_unwind(Box::new("as the test says"));
                }
                std::future::pending::<()>().await;
            }
        })
    };
    let bench = Bench::of(cx, declare, |builder| builder).await;
    let session = bench.session(cx).await;
    for method in ["notifications/x", "notifications/panic", "notifications/y"] {
        session.notify(method, json!({})).await;
        assert_eq!(runs.recv().await, Some((Some(session.id.clone()), cx.revision)));
        let sessionless = Call::legacy(cx.revision, method, json!({})).notification();
        accepted(bench.client.send(sessionless).await).await;
        assert_eq!(runs.recv().await, Some((None, cx.revision.max(Revision::V2025_03_26))));
    }
    session.result("x/quick", Value::Null).await;
}

/// `{}` at once, from the first message on, whatever else is going on.
async fn ping(cx: Cx) {
    let bench = Bench::open(cx).await;
    // Before there is any session.
    let sessionless = |params| Call::legacy(cx.revision, "ping", params);
    for params in [Value::Null, json!({}), json!({"_meta": {"progressToken": 1}}), json!({"more": [1]})] {
        assert_eq!(bench.client.send(sessionless(params)).await.result().await, json!({}));
    }
    // Before the client has said that it is ready.
    let session = session::start(&bench.client, cx.revision).await;
    bench.life.take();
    assert_eq!(session.result("ping", Value::Null).await, json!({}));
    session.notify("notifications/initialized", Value::Null).await;
    // Beside what runs, and an open stream.
    let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": 1}))).await;
    bench.life.take();
    let stream = session.listen().await;
    for id in [json!("p"), json!(0), json!("")] {
        let answer = bench.client.send(session.call("ping", Value::Null).id(id.clone())).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.json().await, json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
    let mut odd = session.call("ping", Value::Null).id(9);
    odd.replace("\"ping\"", "\"p\\u0069ng\"");
    assert_eq!(bench.client.send(odd).await.result().await, json!({}));
    let sse = session.call("ping", Value::Null).id(9).header("accept", "text/event-stream");
    assert_eq!(bench.client.send(sse).await.events().await, [json!({"jsonrpc": "2.0", "id": 9, "result": {}})]);
    assert_eq!(bench.life.take(), [""; 0], "the transport answers");
    drop(stream);
    run.go(Then::Answer);
    assert_eq!(asking.await.expect("an answer").events().await.len(), 2);
}

/// A session that has as many requests in flight as it may still gets its pings answered.
async fn ping_past_limits(cx: Cx) {
    let bench = Bench::with(cx, |builder| builder.limits(Limits::default().in_flight(2))).await;
    let (session, other) = (bench.session(cx).await, bench.session(cx).await);
    let call = |id| session.call("x/work", Value::Null).id(id);
    let (first, mut first_run) = bench.work(call("a")).await;
    let (second, mut second_run) = bench.work(call("b")).await;
    bench.life.take();
    for id in [json!("c"), json!(3)] {
        for method in ["x/work", "x/quick", "logging/setLevel"] {
            let busy = session.call(method, json!({"level": "info"})).id(id.clone());
            let answer = bench.client.send(busy).await;
            assert_ne!(answer.header(RETRY_AFTER.as_str()), "");
            answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&id)).await;
        }
        let answer = bench.client.send(session.call("ping", Value::Null).id(id)).await;
        assert_eq!(answer.result().await, json!({}));
    }
    // An id that is taken is refused as that, at the limit too.
    let taken = bench.client.send(session.call("ping", Value::Null).id("a")).await;
    taken.error(StatusCode::BAD_REQUEST, -32600, Some(&json!("a"))).await;
    assert_eq!(bench.life.take(), [""; 0]);
    // One session's load is not another's, and notifications are no requests.
    other.result("x/quick", Value::Null).await;
    session.notify("notifications/x", Value::Null).await;
    first_run.go(Then::Answer);
    first.await.expect("an answer").result().await;
    session.result("x/quick", Value::Null).await;
    second_run.go(Then::Answer);
    second.await.expect("an answer").result().await;
}

/// Streams are kept alive by comments: the server pings nobody.
async fn no_ping_is_sent(cx: Cx) {
    let bench = Bench::with(cx, |builder| builder.revisions(Revisions::legacy_only())).await;
    let session = bench.session(cx).await;
    let mut general = session.listen().await;
    let sessionless = Call::legacy(cx.revision, "x/work", Value::Null);
    let begun = Instant::now();
    let mut answers = Vec::new();
    for call in [session.call("x/work", Value::Null), sessionless] {
        let (asking, run) = bench.work(call).await;
        answers.push((asking.await.expect("an answer"), run));
    }
    for _ in 0..100 {
        assert!(matches!(general.frame().await, Some(Frame::Comment(_))));
        for (answer, _) in &mut answers {
            assert!(matches!(answer.frame().await, Some(Frame::Comment(_))));
        }
    }
    assert!(begun.elapsed() > Duration::from_secs(20 * 60));
    for (mut answer, mut run) in answers {
        run.go(Then::Answer);
        assert_eq!(answer.next_message().await.expect("a response")["result"], json!({"done": null}));
        assert_eq!(answer.frame().await, None);
    }
    let quiet = timeout(Duration::from_secs(3600), general.next_event()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}
