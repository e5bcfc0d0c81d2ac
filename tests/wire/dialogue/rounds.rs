//! The rounds of a question on 2026-07-28, with clients that answer well, badly, late or in part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{Limits, Question, Request, RequestContext};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep, timeout};

use super::{Bench, modern, text, told, wide, with_keys};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::assert_error;
use crate::support::dialogue::{Asked, asked, form, in_rounds, said, sampling};

pub fn register(wire: &mut Wire) {
    wire.modern("mrtr/answers", Carriers::Every, answers);
    wire.modern("mrtr/answers/wrong-shape", Carriers::Every, wrong_shape);
    wire.modern("mrtr/answers/no-map", Carriers::Every, no_map);
    wire.modern("mrtr/answers/no-state", Carriers::Every, no_state);
    wire.modern("mrtr/answers/foreign-keys", Carriers::Every, foreign_keys);
    wire.modern("mrtr/answers/volatile", Carriers::Every, volatile);
    wire.modern("mrtr/answers/most-rounds", Carriers::Every, most_rounds);
    wire.modern("mrtr/answers/own-time", Carriers::Clock, own_time);
    wire.modern("mrtr/answers/timers", Carriers::Clock, timers);
    wire.modern("mrtr/answers/other-work", Carriers::Every, other_work);
    wire.modern("mrtr/answers/unheard-task", Carriers::Every, unheard_task);
    wire.modern("mrtr/answers/late-task", Carriers::Every, late_task);
    wire.modern("mrtr/answers/not-reached", Carriers::Every, not_reached);
    wire.modern("mrtr/state/too-large", Carriers::Every, too_large);
}

/// Asks three things at once, of three kinds.
async fn three(_: Request, cx: RequestContext) -> Result<mcp_transport::Reply, mcp_transport::McpError> {
    let (a, b, c) = tokio::join!(cx.ask("a", form("a")), cx.ask("b", sampling("b")), cx.ask("c", Question::roots()?));
    text([a?, b?, c?].iter().map(said).collect::<Vec<_>>().join(" "))
}

/// The `inputRequests` of an answer, and its state.
async fn round(bench: &Bench, call: crate::support::request::Call) -> (Vec<Asked>, Value) {
    let result = bench.client.send(call).await.result().await;
    (asked(&result), result["requestState"].clone())
}

fn keys(asked: &[Asked]) -> Vec<&str> {
    asked.iter().filter_map(|asked| asked.key.as_deref()).collect()
}

/// What is missing is asked again under its key, and nothing else; keys that nobody asked for are ignored.
async fn answers(cx: Cx) {
    let bench = Bench::with(cx, three, with_keys).await;
    let (first, state) = round(&bench, modern()).await;
    assert_eq!(keys(&first), ["a", "b", "c"]);
    let mut call = modern();
    call.set("/params/requestState", state);
    call.set("/params/inputResponses", json!({"b": first[1].says("two"), "x": first[0].says("x"), "a#2": null}));
    let (second, state) = round(&bench, call).await;
    assert_eq!(second, [first[0].clone(), first[2].clone()]);
    let mut call = modern();
    call.set("/params/requestState", state);
    // One that is answered already stays answered.
    let responses = json!({"a": first[0].says("one"), "b": first[1].says("other"), "c": first[2].says("three")});
    call.set("/params/inputResponses", responses);
    let result = bench.client.send(call).await.result().await;
    assert_eq!(result["content"][0]["text"], "one two three");
    assert_eq!(bench.take_runs(), 3);
}

/// A wrong shape or null is no answer: it is asked again, and never completes a call.
async fn wrong_shape(cx: Cx) {
    let bench = Bench::with(cx, three, with_keys).await;
    let (first, state) = round(&bench, modern()).await;
    let good = |at: usize| first[at].says("x");
    for wrong in [
        json!(null),
        json!(7),
        json!("accept"),
        json!([]),
        json!({}),
        json!({"action": "ACCEPT"}),
        json!({"action": "accept", "content": []}),
        json!({"role": "assistant", "content": "x"}),
        json!({"roots": {}}),
        json!({"result": {"action": "accept"}}),
    ] {
        for at in 0..3 {
            for state in [Some(&state), None] {
                let mut responses = json!({"a": good(0), "b": good(1), "c": good(2)});
                responses[first[at].key.as_ref().expect("a key")] = wrong.clone();
                let mut call = modern();
                call.set("/params/inputResponses", responses);
                if let Some(state) = state {
                    call.set("/params/requestState", state.clone());
                }
                assert_eq!(round(&bench, call).await.0, [first[at].clone()], "{wrong}");
            }
        }
    }
}

/// Answers that are no map at all are none.
async fn no_map(cx: Cx) {
    let bench = Bench::with(cx, three, with_keys).await;
    let (first, state) = round(&bench, modern()).await;
    for responses in [json!(null), json!(7), json!([]), json!("a"), json!({}), json!([{"a": first[0].says("x")}])] {
        let mut call = modern();
        call.set("/params/requestState", state.clone());
        call.set("/params/inputResponses", responses.clone());
        assert_eq!(round(&bench, call).await.0, first, "{responses}");
    }
    // A state alone is a client that has nothing to say yet.
    let mut call = modern();
    call.set("/params/requestState", state);
    assert_eq!(round(&bench, call).await.0, first);
}

/// A client that does not keep states: its answers count by their keys, and it is asked no further than it remembers.
async fn no_state(cx: Cx) {
    let bench = Bench::with(cx, three, with_keys).await;
    let (first, _) = round(&bench, modern()).await;
    let mut call = modern();
    call.set(
        "/params/inputResponses",
        json!({"a": first[0].says("1"), "b": first[1].says("2"), "c": first[2].says("3")}),
    );
    assert_eq!(bench.client.send(call).await.result().await["content"][0]["text"], "1 2 3");

    // A loop of one question: every answer counts once.
    let handler = |_: Request, cx: RequestContext| async move {
        let first = said(&cx.ask("q", form("q")).await?);
        text(first + &said(&cx.ask("q", form("q")).await?))
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let (first, _) = round(&bench, modern()).await;
    let mut call = modern();
    call.set("/params/inputResponses", json!({"q": first[0].says("1")}));
    let (second, state) = round(&bench, call).await;
    assert_eq!(keys(&second), ["q#2"]);
    let mut call = modern();
    call.set("/params/inputResponses", json!({"q#2": first[0].says("2")}));
    call.set("/params/requestState", state);
    assert_eq!(bench.client.send(call).await.result().await["content"][0]["text"], "12");
}

/// With a state nothing is answered that was not asked.
async fn foreign_keys(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let first = said(&cx.ask("first", form("first")).await?);
        text(first + &said(&cx.ask("second", form("second")).await?))
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let (first, state) = round(&bench, modern()).await;
    let mut call = modern();
    call.set("/params/requestState", state);
    call.set("/params/inputResponses", json!({"first": first[0].says("1"), "second": first[0].says("2")}));
    assert_eq!(keys(&round(&bench, call).await.0), ["second"]);
}

/// A question that is another one in every run is asked until the limit, and the application hears why.
async fn volatile(cx: Cx) {
    for (limits, most) in [(Limits::default(), 8), (Limits::default().rounds(2), 2)] {
        let count = Arc::new(AtomicUsize::new(0));
        let handler = move |_: Request, cx: RequestContext| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            async move { text(told(&cx.ask("q", form(&format!("It is {number}"))).await)) }
        };
        let bench = Bench::with(cx, handler, |builder| with_keys(builder).limits(limits)).await;
        let played = in_rounds(std::slice::from_ref(&bench.client), modern, |asked| Some(asked.says("yes"))).await;
        assert_eq!(played.status, StatusCode::OK);
        assert_error(played.response, -32603, Some(&json!(most + 1)));
        assert_eq!(played.rounds.len(), most);
        let mut heard = bench.heard.take();
        let last = heard.pop();
        assert_eq!(last, Some(format!(r#"TooManyRounds {{ method: "tools/call", most: {most} }}"#)));
        assert_eq!(heard, vec!["input required: tools/call"; most]);
    }
}

/// As many rounds as the limit says are fine.
async fn most_rounds(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        for turn in 0..8 {
            cx.ask("q", form(&turn.to_string())).await?;
        }
        text("done")
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let played = in_rounds(std::slice::from_ref(&bench.client), modern, |asked| Some(asked.says("yes"))).await;
    assert_eq!((played.text(), played.rounds.len()), ("done", 8));
}

/// Nothing waits between rounds: it is when the client comes back that a question is late.
async fn own_time(cx: Cx) {
    for (own, outcome) in [(Duration::ZERO, "TimedOut"), (Duration::from_secs(3_600), "yes"), (Duration::MAX, "yes")] {
        let handler =
            move |_: Request, cx: RequestContext| async move { text(told(&cx.ask("q", form("q").timeout(own)).await)) };
        let bench = Bench::with(cx, handler, with_keys).await;
        for answers in [true, false] {
            let mut rounds = 0;
            let played = in_rounds(std::slice::from_ref(&bench.client), modern, |asked| {
                rounds += 1;
                (answers || rounds > 1).then(|| asked.says("yes"))
            })
            .await;
            let expected = if own == Duration::ZERO || answers { 1 } else { 2 };
            assert_eq!((played.text(), rounds), (outcome, expected), "{own:?}");
        }
    }
}

/// No timer around a question fires; the round is over at once.
async fn timers(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let asked = timeout(Duration::from_secs(5), cx.ask("q", form("q"))).await;
        text(asked.map_or_else(|_| "timer".to_owned(), |outcome| told(&outcome)))
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let begun = Instant::now();
    let (first, state) = round(&bench, modern()).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    sleep(Duration::from_secs(600)).await;
    let mut call = modern();
    call.set("/params/requestState", state);
    call.set("/params/inputResponses", json!({"q": first[0].says("yes")}));
    assert_eq!(bench.client.send(call).await.result().await["content"][0]["text"], "yes");
}

/// An open question ends the round whatever else the handler does: that is dropped, and done again.
async fn other_work(cx: Cx) {
    struct Work(Arc<AtomicUsize>);
    impl Drop for Work {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let drops = Arc::clone(&dropped);
    let handler = move |_: Request, cx: RequestContext| {
        let work = Work(Arc::clone(&drops));
        async move {
            let (answer, ()) = tokio::join!(cx.ask("q", form("q")), async {
                sleep(Duration::from_millis(20)).await;
                drop(work);
            });
            text(told(&answer))
        }
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let (first, state) = round(&bench, modern()).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "before the client hears of it");
    let mut call = modern();
    call.set("/params/requestState", state);
    call.set("/params/inputResponses", json!({"q": first[0].says("yes")}));
    assert_eq!(bench.client.send(call).await.result().await["content"][0]["text"], "yes");
}

/// A task that nobody waits for fails once the request is answered, whether it asked before or after.
async fn unheard_task(cx: Cx) {
    let (tell, mut outcomes) = unbounded_channel();
    let handler = move |request: Request, cx: RequestContext| {
        let tell = tell.clone();
        async move {
            let held = (request.name() == Some("held")).then(|| cx.ask("held", form("held")));
            tokio::spawn(async move {
                if let Some(held) = held {
                    let _ = tell.send(told(&held.await));
                }
                for _ in 0..3 {
                    let _ = tell.send(told(&cx.ask("q", form("q")).await));
                    tokio::task::yield_now().await;
                }
            });
            text("done")
        }
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    for (name, count) in [("t", 3), ("held", 4)] {
        let call = crate::support::dialogue::call("tools/call", json!({"name": name}));
        assert_eq!(bench.client.send(call).await.result().await["content"][0]["text"], "done");
        for _ in 0..count {
            let outcome = timeout(Duration::from_secs(5), outcomes.recv()).await.expect("it does not hang");
            assert_eq!(outcome.expect("an outcome"), "Unreachable");
        }
    }
}

/// One that asked while the handler waited for something else ends the round; in the round that is over it fails.
async fn late_task(cx: Cx) {
    let (tell, mut outcomes) = unbounded_channel();
    let handler = move |_: Request, cx: RequestContext| {
        let tell = tell.clone();
        async move {
            tokio::spawn(async move {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                let _ = tell.send(told(&cx.ask("q", form("q")).await));
            });
            std::future::pending::<()>().await;
            text("never")
        }
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let begun = Instant::now();
    let (first, _) = round(&bench, modern()).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "nothing else has to happen first");
    assert_eq!(keys(&first), ["q"]);
    let outcome = timeout(Duration::from_secs(5), outcomes.recv()).await.expect("it does not hang");
    assert_eq!(outcome.expect("an outcome"), "Unreachable");
}

/// An answer is kept though the run in which it came ends before anybody looks at it.
async fn not_reached(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        // A task is polled after its handler.
        let ask = |name: &'static str| {
            let cx = cx.clone();
            async move { told(&cx.ask(name, form(name)).await) }
        };
        let spawned = tokio::spawn(ask("spawned"));
        let own = ask("own").await;
        let more = ask("more").await;
        text(own + &more + &spawned.await.expect("a task"))
    };
    let bench = Bench::with(cx, handler, wide).await;
    let mut count = 0;
    let played = in_rounds(std::slice::from_ref(&bench.client), modern, |asked| {
        count += 1;
        Some(asked.says(asked.text()))
    })
    .await;
    assert_eq!((played.text(), count), ("ownmorespawned", 3), "{:?}", played.rounds);
}

/// Answers that a state cannot hold are an internal error, and the application hears why.
async fn too_large(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let first = said(&cx.ask("a", form("a")).await?);
        text(first + &said(&cx.ask("b", form("b")).await?))
    };
    for (limits, fits) in [(Limits::default(), 11 << 10), (Limits::default().state_bytes(4 << 10), 2 << 10)] {
        let bench = Bench::with(cx, handler, |builder| with_keys(builder).limits(limits)).await;
        for (length, is_good) in [(fits, true), (fits + (2 << 10), false)] {
            let played = in_rounds(std::slice::from_ref(&bench.client), modern, |asked| {
                Some(asked.says(&"x".repeat(if asked.text() == "a" { length } else { 1 })))
            })
            .await;
            if is_good {
                assert_eq!(played.text().len(), length + 1);
                bench.heard.take();
            } else {
                assert_error(played.response, -32603, Some(&json!(2)));
                assert_eq!(bench.heard.take().pop(), Some(r#"StateTooLarge { method: "tools/call" }"#.to_owned()));
            }
        }
    }
}
