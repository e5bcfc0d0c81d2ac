//! What cancels a request up to 2025-11-25, and what does not.

use std::time::Duration;

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use mcp_transport::{CancelCause, Limits};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Bench, End, Run, Then, cancelled};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::request::{Call, ID, SESSION_ID};
use crate::support::session::{self, accepted, initialize};
use crate::support::sse::Frame;

pub fn register(wire: &mut Wire) {
    wire.legacy("cancel/disconnect", Carriers::Every, disconnect_in_a_session);
    wire.legacy("cancel/disconnect/full-queue", Carriers::Every, disconnect_with_a_full_queue);
    wire.legacy("cancel/disconnect/connection", Carriers::H2, whole_connection);
    wire.legacy("cancel/disconnect/keep-alive", Carriers::Clock, between_keep_alives);
    wire.legacy("cancel/disconnect/sessionless", Carriers::Every, disconnect_without_a_session);
    wire.legacy("cancel/notification", Carriers::Every, by_notification);
    wire.legacy("cancel/notification/streaming", Carriers::Every, while_it_streams);
    wire.legacy("cancel/notification/committed", Carriers::Clock, after_the_commit_time);
    wire.legacy("cancel/notification/full-queue", Carriers::Every, while_it_cannot_send);
    wire.legacy("cancel/notification/gone", Carriers::Every, after_its_client_left);
    wire.legacy("cancel/notification/reason", Carriers::Every, reason);
    wire.legacy("cancel/notification/one-of-many", Carriers::Every, one_of_many);
    wire.legacy("cancel/ignored", Carriers::Every, ignored);
    wire.legacy("cancel/ignored/finished", Carriers::Every, finished);
    wire.legacy("cancel/ignored/initialize", Carriers::Every, initialize_is_not_cancelled);
    wire.legacy("cancel/ignored/sessionless", Carriers::Every, sessionless);
}

/// Nobody has cancelled the run, and it goes on for a while.
async fn goes_on(run: &mut Run) {
    for _ in 0..5 {
        sleep(Duration::from_millis(2)).await;
        assert!(run.waits());
    }
}

/// Waits until the server has noticed that a client is gone: the stream of its answer is closed.
async fn no_streams(bench: &Bench) {
    let closed = async {
        while bench.service.counts().streams > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), closed).await.expect("the stream is closed");
}

/// In a session the work is the session's: its handler runs to its end, whoever still listens.
async fn disconnect_in_a_session(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for accept in ["application/json", "application/json, text/event-stream", "text/event-stream"] {
        for (sends, reads) in [(0, 0), (2, 0), (2, 1), (2, 2)] {
            let call = session.call("x/work", json!({"sends": sends, "more": 300})).header(ACCEPT.as_str(), accept);
            let (asking, mut run) = bench.work(call).await;
            bench.life.take();
            if sends > 0 && accept != "application/json" {
                let mut answer = asking.await.expect("an answer");
                for n in 0..reads {
                    assert_eq!(answer.next_message().await.expect("an event")["params"], json!({ "n": n }));
                }
                drop(answer);
                no_streams(&bench).await;
            } else {
                asking.abort();
                assert!(asking.await.is_err());
            }
            goes_on(&mut run).await;
            assert_eq!(bench.service.counts().in_flight, 1);
            run.go(Then::Answer);
            assert_eq!(run.end().await, End::Whole, "and what it still sends waits for nobody");
            assert_eq!(run.cx.cancel_cause(), None);
            assert_eq!(bench.life.take(), [""; 0]);
            assert_eq!(bench.service.counts().in_flight, 0);
        }
    }
    assert!(session.is_open().await);
}

/// A handler that waits for room goes on when its client leaves.
async fn disconnect_with_a_full_queue(cx: Cx) {
    let limits = Limits::default().queue_bytes(4096);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    // More than fits into the queue and the sockets' buffers: it has not come to wait for `go` when its client leaves.
    let asking = bench.send(session.call("x/work", json!({"sends": 200_000})));
    let mut answer = asking.await.expect("an answer");
    assert_eq!(answer.next_message().await.expect("an event")["params"], json!({"n": 0}));
    drop(answer);
    let mut run = bench.run().await;
    goes_on(&mut run).await;
    run.go(Then::Answer);
    assert_eq!(run.end().await, End::Whole);
}

/// A whole connection goes, and none of its requests.
async fn whole_connection(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let other = bench.client.another();
    let asking: Vec<_> = (0..3).map(|id| super::send(&other, session.call("x/work", Value::Null).id(id))).collect();
    let mut runs = [bench.run().await, bench.run().await, bench.run().await];
    drop(other);
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    for run in &mut runs {
        goes_on(run).await;
        run.go(Then::Answer);
        assert_eq!(run.end().await, End::Whole);
    }
}

/// Minutes of comments, then the client leaves, and the handler still runs to its end.
async fn between_keep_alives(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
    let mut answer = asking.await.expect("an answer");
    for _ in 0..4 {
        assert!(matches!(answer.frame().await, Some(Frame::Comment(_))));
    }
    drop(answer);
    sleep(Duration::from_secs(3600)).await;
    assert!(run.waits());
    run.go(Then::Answer);
    assert_eq!(run.end().await, End::Whole);
}

/// Without a session nobody else could ever want the answer.
async fn disconnect_without_a_session(cx: Cx) {
    let bench = Bench::open(cx).await;
    for sends in [0, 2] {
        let (asking, mut run) = bench.work(Call::legacy(cx.revision, "x/work", json!({"sends": sends}))).await;
        bench.life.take();
        if sends > 0 {
            let mut answer = asking.await.expect("an answer");
            assert!(answer.next_message().await.is_some());
            assert!(run.waits());
            drop(answer);
        } else {
            assert!(run.waits());
            asking.abort();
        }
        assert_eq!(run.end().await, End::Dropped);
        assert_eq!(run.cx.cancelled().await, CancelCause::Disconnected);
        while bench.service.counts().in_flight > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(bench.life.take(), [cancelled(CancelCause::Disconnected)]);
    }
}

/// The end of a POST whose reply is withheld.
async fn assert_withheld(answer: Answer) {
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "text/event-stream");
    assert!(matches!(answer.header("cache-control"), "no-cache" | "no-store"));
    assert_eq!(answer.text().await, "");
}

/// The request is cancelled: its future is dropped, the application told, and the reply withheld.
async fn by_notification(cx: Cx) {
    let bench = Bench::open(cx).await;
    let (session, other) = (bench.session(cx).await, bench.session(cx).await);
    let (neighbour, mut neighbours_run) = bench.work(other.call("x/work", Value::Null)).await;
    for (id, named) in
        [("1", "1"), ("1", "1.0"), ("7.0", "7"), ("\"a\"", "\"a\""), ("\"a\"", "\"\\u0061\""), ("0", "0")]
    {
        for accept in ["application/json", "application/json, text/event-stream", "text/event-stream", "*/*"] {
            let mut call = session.call("x/work", Value::Null).id("@").header(ACCEPT.as_str(), accept);
            call.replace("\"@\"", id);
            let (asking, mut run) = bench.work(call).await;
            bench.life.take();
            let mut cancel = session.cancellation("@");
            cancel.replace("\"@\"", named);
            accepted(bench.client.send(cancel).await).await;
            assert_eq!(run.end().await, End::Dropped);
            assert_eq!(run.cx.cancelled().await, CancelCause::Requested);
            assert_eq!(run.cx.cancel_reason(), Some("enough"));
            let answer = asking.await.expect("an answer");
            if accept == "application/json" {
                accepted(answer).await;
            } else {
                assert_withheld(answer).await;
            }
            assert_eq!(bench.life.take(), [cancelled(CancelCause::Requested)]);
        }
    }
    // The same id in another session is another request.
    assert!(neighbours_run.waits());
    neighbours_run.go(Then::Answer);
    neighbour.await.expect("an answer").result().await;
    assert_eq!(bench.service.counts().in_flight, 0);
}

/// What was sent before stays; the stream then ends, without a response.
async fn while_it_streams(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for (accept, reads) in [("*/*", 0), ("*/*", 1), ("text/event-stream", 2)] {
        let call = session.call("x/work", json!({"sends": 2})).header(ACCEPT.as_str(), accept);
        let (asking, mut run) = bench.work(call).await;
        let mut answer = asking.await.expect("an answer");
        for n in 0..reads {
            assert_eq!(answer.next_message().await.expect("an event")["params"], json!({ "n": n }));
        }
        session.cancel(ID).await;
        assert_eq!(run.end().await, End::Dropped);
        // A task of the handler's that goes on has nobody to talk to.
        run.cx.notify("notifications/late", json!({})).await.expect("an object");
        let rest: Vec<_> = answer.events().await.into_iter().map(|event| event["params"]["n"].clone()).collect();
        assert_eq!(rest, (reads..2).map(|n| json!(n)).collect::<Vec<_>>());
    }
    // Where only JSON is taken nothing was sent before either.
    let call = session.call("x/work", json!({"sends": 2})).header(ACCEPT.as_str(), "application/json");
    let (asking, mut run) = bench.work(call).await;
    session.cancel(ID).await;
    assert_eq!(run.end().await, End::Dropped);
    accepted(asking.await.expect("an answer")).await;
}

/// The answer has become a stream by the clock, and then ends with nothing but comments in it.
async fn after_the_commit_time(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
    let mut answer = asking.await.expect("an answer");
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "text/event-stream");
    assert!(matches!(answer.frame().await, Some(Frame::Comment(_))));
    session.cancel(ID).await;
    assert_eq!(run.end().await, End::Dropped);
    assert_eq!(answer.frame().await, None);
}

/// A handler that waits for room is cancelled like any other.
async fn while_it_cannot_send(cx: Cx) {
    let limits = Limits::default().queue_bytes(4096);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    bench.life.take();
    let asking = bench.send(session.call("x/work", json!({"sends": u32::MAX})));
    let mut answer = asking.await.expect("an answer");
    assert_eq!(answer.next_message().await.expect("an event")["params"], json!({"n": 0}));
    session.cancel(ID).await;
    while bench.service.counts().in_flight > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(bench.life.take().last(), Some(&cancelled(CancelCause::Requested)));
    let events = answer.events().await;
    assert!(events.iter().all(|event| event["method"] == "notifications/x"), "no response among them");
}

/// A client whose connection broke can still cancel, and that is how it ends what it started.
async fn after_its_client_left(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": 1}))).await;
    drop(asking.await.expect("an answer"));
    goes_on(&mut run).await;
    session.cancel(ID).await;
    assert_eq!(run.end().await, End::Dropped);
    assert_eq!(run.cx.cancel_cause(), Some(CancelCause::Requested));
}

/// The reason is passed on where it is a text, its first 4 KiB, and the cancellation counts where it is not. The first
/// one stays.
async fn reason(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let long = "long ".repeat(1000);
    for (reason, told) in [
        (json!("enough"), Some("enough")),
        (json!(""), Some("")),
        (json!("caf\u{e9} \"x\"\n\u{1f600}"), Some("caf\u{e9} \"x\"\n\u{1f600}")),
        (json!(long), Some(&long[..4096])),
        (Value::Null, None),
        (json!(7), None),
        (json!({"text": "x"}), None),
    ] {
        let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
        assert_eq!(run.cx.cancel_reason(), None);
        let params = json!({"requestId": ID, "reason": reason, "_meta": {"x": 1}, "more": [1]});
        session.notify("notifications/cancelled", params).await;
        assert_eq!(run.end().await, End::Dropped);
        assert_eq!(run.cx.cancel_reason(), told);
        assert_eq!(run.cx.cancel_cause(), Some(CancelCause::Requested));
        session.notify("notifications/cancelled", json!({"requestId": ID, "reason": "again"})).await;
        assert_eq!(run.cx.cancel_reason(), told);
        assert_withheld(asking.await.expect("an answer")).await;
    }
    let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
    session.notify("notifications/cancelled", json!({"requestId": ID})).await;
    assert_eq!((run.end().await, run.cx.cancel_reason()), (End::Dropped, None));
    assert_withheld(asking.await.expect("an answer")).await;
}

/// Only the one that is named.
async fn one_of_many(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut asked = Vec::new();
    for id in [json!(1), json!("1"), json!(2), json!("a")] {
        let call = session.call("x/work", json!({ "tag": id })).id(id.clone());
        asked.push((id, bench.work(call).await));
    }
    session.cancel("1").await;
    for (id, (asking, mut run)) in asked {
        if id == json!("1") {
            assert_eq!(run.end().await, End::Dropped);
            assert_withheld(asking.await.expect("an answer")).await;
        } else {
            assert!(run.waits());
            run.go(Then::Answer);
            assert_eq!(asking.await.expect("an answer").result().await, json!({ "done": id }));
        }
    }
}

/// What fits no request in flight is accepted, and does nothing.
async fn ignored(cx: Cx) {
    let bench = Bench::open(cx).await;
    let (session, other) = (bench.session(cx).await, bench.session(cx).await);
    let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
    bench.life.take();
    for params in [
        Value::Null,
        json!({}),
        json!({"requestId": 2}),
        json!({"requestId": "1"}),
        json!({"requestId": "1.0"}),
        json!({"requestId": 1.5}),
        json!({"requestId": -1}),
        json!({"requestId": null}),
        json!({"requestId": true}),
        json!({"requestId": [1]}),
        json!({"requestId": {"id": 1}}),
        json!({"requestId": ""}),
        json!({"requestid": 1}),
        json!({"id": 1}),
        json!({"reason": "enough"}),
        json!({"params": {"requestId": 1}}),
        json!({"_meta": {"requestId": 1}}),
    ] {
        session.notify("notifications/cancelled", params).await;
    }
    for number in ["1e0", "10e-1", "1.00"] {
        let mut call = session.cancellation("@");
        call.replace("\"@\"", number);
        accepted(bench.client.send(call).await).await;
    }
    // Another session's word, and that of whoever asks for an answer, is not this session's.
    other.cancel(ID).await;
    let request = session.call("notifications/cancelled", json!({"requestId": ID})).id(2);
    let _ = bench.client.send(request).await.text().await;
    let foreign = session.cancellation(ID).header(session::ACCOUNT, "bob");
    bench.client.send(foreign).await.error(StatusCode::NOT_FOUND, -32600, None).await;
    let unknown = session.cancellation(ID).header(SESSION_ID, "none");
    bench.client.send(unknown).await.error(StatusCode::NOT_FOUND, -32600, None).await;
    goes_on(&mut run).await;
    assert_eq!(bench.life.take(), ["request notifications/cancelled"]);
    run.go(Then::Answer);
    asking.await.expect("an answer").result().await;
}

/// One that comes too late is no error, and does not touch what comes next under the same id.
async fn finished(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for _ in 0..2 {
        let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
        run.go(Then::Answer);
        asking.await.expect("an answer").result().await;
        session.cancel(ID).await;
        session.cancel(ID).await;
        assert_eq!((run.cx.cancel_cause(), run.cx.cancel_reason()), (None, None));
    }
    let (asking, mut run) = bench.work(session.call("x/work", Value::Null)).await;
    session.cancel(ID).await;
    session.cancel(ID).await;
    assert_eq!(run.end().await, End::Dropped);
    assert_withheld(asking.await.expect("an answer")).await;
    session.result("x/quick", Value::Null).await;
}

/// `initialize` is done when its session is known, and its id means nothing there.
async fn initialize_is_not_cancelled(cx: Cx) {
    let bench = Bench::open(cx).await;
    for id in [json!(ID), json!("a"), json!(0)] {
        let session = session::start_by(&bench.client, initialize(cx.revision).id(id.clone())).await;
        session.cancel(id.clone()).await;
        session.notify("notifications/initialized", Value::Null).await;
        assert!(session.is_open().await);
        // What next has that id is not cancelled by what came before it.
        let answer = bench.client.send(session.call("x/quick", Value::Null).id(id.clone())).await;
        assert_eq!(answer.result().await["session"], session.id);
    }
    assert_eq!(bench.service.counts().sessions, 3);
    let sessionless = Call::legacy(cx.revision, "notifications/cancelled", json!({"requestId": ID})).notification();
    accepted(bench.client.send(sessionless).await).await;
}

/// Without a session anybody could name anybody's request.
async fn sessionless(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let cancel =
        |id: Value| Call::legacy(cx.revision, "notifications/cancelled", json!({"requestId": id})).notification();
    for sends in [0, 1] {
        let id = json!(if sends == 0 { json!(ID) } else { json!("a") });
        let call = Call::legacy(cx.revision, "x/work", json!({"sends": sends})).id(id.clone());
        let (asking, mut run) = bench.work(call).await;
        let (in_session, mut sessions_run) = bench.work(session.call("x/work", Value::Null).id(id.clone())).await;
        bench.life.take();
        for _ in 0..2 {
            accepted(bench.client.send(cancel(id.clone())).await).await;
        }
        goes_on(&mut run).await;
        goes_on(&mut sessions_run).await;
        // A session cancels its own, not what belongs to none.
        session.cancel(id).await;
        assert_eq!(sessions_run.end().await, End::Dropped);
        assert_withheld(in_session.await.expect("an answer")).await;
        goes_on(&mut run).await;
        assert_eq!(bench.life.take(), [cancelled(CancelCause::Requested)]);
        run.go(Then::Answer);
        assert!(asking.await.expect("an answer").text().await.contains("done"));
    }
}
