//! How the answers of a batch travel: one array, or, if something had to stream, each as an event of its own.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{Limits, Progress, Reply, RequestContext, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::{BATCHED, Sender, request, responses, result, sorted};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, assert_error};
use crate::support::handler::Script;
use crate::support::sse::Frame;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.only(BATCHED, "batch/concurrent", Carriers::Every, at_once);
    wire.only(BATCHED, "batch/concurrent/each-its-own-end", Carriers::Every, own_ends);
    wire.only(BATCHED, "batch/concurrent/streams", Carriers::Every, streams);
    wire.only(BATCHED, "batch/concurrent/by-the-clock", Carriers::Clock, by_the_clock);
    wire.only(BATCHED, "batch/concurrent/json-only", Carriers::Every, json_only);
    wire.only(BATCHED, "batch/concurrent/sse-only", Carriers::Every, sse_only);
    wire.only(BATCHED, "batch/concurrent/progress", Carriers::Every, progress);
    wire.only(BATCHED, "batch/concurrent/chatty", Carriers::Every, chatty);
    wire.only(BATCHED, "batch/concurrent/late", Carriers::Every, late);
    wire.only(BATCHED, "batch/concurrent/back-pressure", Carriers::Clock, back_pressure);
}

const SSE: &str = "text/event-stream";

/// They can only end together, and one of them is answered by the transport.
async fn at_once(cx: Cx) {
    for which in [0, 1] {
        let client = cx.serve(StreamableHttpService::new(Stage::default().script())).await;
        let sender = &Sender::both(&client).await[which];
        let meet = |name: &str| request(name, "x/meet", json!({"name": name, "of": 3}));
        let all = sender.send(json!([meet("a"), request(1, "ping", json!({})), meet("b"), meet("c")])).await;
        let met = |name: &str| result(name, json!({"name": name}));
        assert_eq!(responses(all).await, [met("a"), met("b"), met("c"), result(1, json!({}))]);
    }
}

/// An error or a panic is its element's alone.
async fn own_ends(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    for sender in Sender::both(&client).await {
        let all = json!([
            request(1, "x/panic", json!({"name": "p"})),
            request(2, "x/fail", json!({})),
            request(3, "no/such", json!({})),
            request(4, "logging/setLevel", json!({"level": "loud"})),
            request(5, "x/echo", json!({"n": 5})),
            request(6, "tools/call", json!({"name": "none"})),
            request(7, "server/discover", json!({})),
        ]);
        let all = responses(sender.send(all).await).await;
        let code = |n: usize| all[n].1["error"]["code"].as_i64();
        let codes: Vec<_> = (0..all.len()).map(code).collect();
        let unknown = Some(-32601);
        assert_eq!(codes, [Some(-32603), Some(-7), unknown, Some(-32602), None, unknown, unknown]);
        assert_error(all[0].1.clone(), -32603, Some(&1.into()));
        assert_eq!(all[4], result(5, json!({"n": 5})));
    }
}

/// What an element sends turns the whole into a stream, and a reply leaves when it is there.
async fn streams(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    for (sender, name) in Sender::both(&client).await.into_iter().zip(["here", "there"]) {
        let all = json!([
            request("slow", "x/hold", json!({"name": name, "tell": 2})),
            request("quick", "x/echo", json!({"n": 1})),
            7,
            request("told", "x/echo", json!({"tell": 1, "name": "told"})),
        ]);
        let mut answer = sender.send(all).await;
        assert_eq!((answer.status, answer.header("cache-control")), (StatusCode::OK, "no-store"));
        assert_eq!(answer.header("x-accel-buffering"), "no");
        let mut told = Vec::new();
        let mut ended = Vec::new();
        while told.len() < 3 || ended.len() < 3 {
            let message = answer.next_message().await.expect("more");
            if message.get("method").is_some() { told.push(message) } else { ended.push(message) }
        }
        let told: Vec<_> =
            told.iter().map(|told| (told["params"]["name"].clone(), told["params"]["n"].clone())).collect();
        assert!(told.contains(&(json!("told"), json!(0))), "{told:?}");
        let own: Vec<_> = told.iter().filter(|(by, _)| by == name).map(|(_, n)| n.clone()).collect();
        assert_eq!(own, [json!(0), json!(1)], "in their order");
        let ended = sorted(ended);
        assert_eq!(ended[0].1["error"]["code"], -32600);
        assert_eq!(ended[1], result("quick", json!({"n": 1})));
        assert_eq!(ended[2], result("told", json!({"tell": 1, "name": "told"})));

        assert!(stage.is_in(name));
        stage.release(name);
        assert_eq!(answer.events().await, [result("slow", json!({"name": name})).1], "and then it ends");
    }
}

/// A silent batch becomes a stream by the clock, with the replies that were there; comments keep it alive.
async fn by_the_clock(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    for (sender, name) in Sender::both(&client).await.into_iter().zip(["here", "there"]) {
        let begun = Instant::now();
        let hold = request("slow", "x/hold", json!({"name": name}));
        let mut answer = sender.send(json!([hold, request(1, "ping", json!({}))])).await;
        assert_eq!(begun.elapsed().as_secs(), 15, "the commit time");
        assert_eq!(answer.header("content-type"), SSE);
        assert_eq!(answer.next_message().await, Some(result(1, json!({})).1));
        for _ in 0..3 {
            let before = Instant::now();
            assert!(matches!(answer.frame().await, Some(Frame::Comment(_))));
            assert!((13..=17).contains(&before.elapsed().as_secs()), "{:?}", before.elapsed());
        }
        stage.release(name);
        assert_eq!(answer.events().await, [result("slow", json!({"name": name})).1]);

        // A moment earlier, it is an array.
        let name = format!("{name}-quick");
        let hold = json!([request("slow", "x/hold", json!({"name": name})), request(1, "ping", json!({}))]);
        let asking = tokio::spawn({
            let sender = sender.clone();
            async move { sender.send(hold).await }
        });
        stage.entered(&name).await;
        tokio::time::sleep(Duration::from_millis(14_900)).await;
        stage.release(&name);
        let all = responses(asking.await.expect("an answer")).await;
        assert_eq!(all, [result("slow", json!({"name": name})), result(1, json!({}))]);
    }
}

/// A client that takes only JSON gets the array, however long it takes and whatever would have streamed.
async fn json_only(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().commit_after(Duration::from_millis(1));
    let service = StreamableHttpService::builder(stage.script()).limits(limits).build().expect("a service");
    let client = cx.serve(service).await;
    for (sender, name) in Sender::both(&client).await.into_iter().zip(["here", "there"]) {
        let hold = request("slow", "x/hold", json!({"name": name, "tell": 600}));
        let call =
            sender.batch(json!([hold, request(1, "x/echo", json!({"tell": 1})), request(2, "x/fail", json!({}))]));
        let asking = tokio::spawn({
            let client = client.clone();
            async move { client.send(call.header(ACCEPT.as_str(), "application/json")).await }
        });
        stage.entered(name).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!asking.is_finished());
        stage.release(name);
        let all = responses(asking.await.expect("an answer")).await;
        assert_eq!(all[..2], [result("slow", json!({"name": name})), result(1, json!({"tell": 1}))]);
        assert_eq!(all[2].1["error"]["code"], -7);
    }
}

/// A client that takes only event streams gets one, though nothing had to stream.
async fn sse_only(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    for sender in Sender::both(&client).await {
        let all =
            json!([request(1, "x/echo", json!({})), 7, request(2, "x/fail", json!({})), request(3, "ping", json!({}))]);
        for accept in [SSE, "text/*", "text/event-stream, application/json;q=0"] {
            let answer = sender.client.send(sender.batch(all.clone()).header(ACCEPT.as_str(), accept)).await;
            assert_eq!(answer.header("content-type"), SSE, "{accept}");
            let all = sorted(answer.events().await);
            let codes: Vec<_> =
                all.iter().map(|(id, answer)| (id.as_str(), answer["error"]["code"].as_i64())).collect();
            assert_eq!(codes, [("", Some(-32600)), ("1", None), ("2", Some(-7)), ("3", None)]);
        }
    }
}

/// Each element's progress goes by its own token, and before its own reply.
async fn progress(cx: Cx) {
    let script = Script::new(|request, cx: RequestContext| async move {
        for n in [1.0, 3.0, 2.0, 3.0, 4.0] {
            cx.progress(Progress::new(n)).await;
            yield_now().await;
        }
        Reply::of(request.params::<Value>()?)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for sender in Sender::both(&client).await {
        let with = |id: &str, token: Value| request(id, "x/y", json!({"_meta": {"progressToken": token}}));
        let all =
            json!([with("a", json!("t")), with("b", json!(7)), with("c", json!(1.5)), request("d", "x/y", json!({}))]);
        let events = sender.send(all).await.events().await;
        for (id, token) in [("a", json!("t")), ("b", json!(7))] {
            let end = events.iter().position(|event| event["id"] == id).expect("a reply");
            let of = |event: &&Value| event["params"]["progressToken"] == token;
            let before: Vec<_> =
                events[..end].iter().filter(of).map(|event| event["params"]["progress"].clone()).collect();
            assert_eq!(before, [json!(1), json!(3), json!(4)]);
        }
        assert_eq!(events.len(), 6 + 4, "{events:?}");
    }
}

/// An element that never stops sending does not hold back the reply of another.
async fn chatty(cx: Cx) {
    let stop = Arc::new(Notify::new());
    let script = Script::new({
        let stop = Arc::clone(&stop);
        move |request, cx: RequestContext| {
            let stop = Arc::clone(&stop);
            async move {
                let mut stopped = std::pin::pin!(stop.notified());
                if request.method() == "x/talk" {
                    while timeout(Duration::ZERO, stopped.as_mut()).await.is_err() {
                        cx.notify("notifications/x", json!({})).await?;
                    }
                } else {
                    cx.notify("notifications/y", json!({})).await?;
                    yield_now().await;
                }
                Reply::empty()
            }
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for sender in Sender::both(&client).await {
        let mut answer = sender.send(json!([request(1, "x/talk", json!({})), request(2, "x/y", json!({}))])).await;
        let mut messages = 0;
        while answer.next_message().await.expect("more").get("id") != Some(&json!(2)) {
            messages += 1;
            assert!(messages < 5000, "the reply waits for ever");
        }
        stop.notify_one();
        let rest = answer.events().await;
        assert_eq!(rest.last(), Some(&result(1, json!({})).1));
    }
}

/// What a task of an element sends after that element's reply is dropped, though the stream is open for the others.
async fn late(cx: Cx) {
    let (go, sent) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = Script::new({
        let (go, sent) = (Arc::clone(&go), Arc::clone(&sent));
        move |request, cx: RequestContext| {
            let (go, sent) = (Arc::clone(&go), Arc::clone(&sent));
            async move {
                if request.method() == "x/hold" {
                    cx.notify("notifications/x", json!({})).await?;
                    sent.notified().await;
                    cx.notify("notifications/z", json!({})).await?;
                } else {
                    tokio::spawn(async move {
                        go.notified().await;
                        for n in 0..1000 {
                            cx.notify("notifications/late", json!({})).await.expect("an object");
                            cx.progress(Progress::new(f64::from(n))).await;
                        }
                        sent.notify_one();
                    });
                }
                Reply::empty()
            }
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for sender in Sender::both(&client).await {
        let early = request(2, "x/y", json!({"_meta": {"progressToken": 1}}));
        let mut answer = sender.send(json!([request(1, "x/hold", json!({})), early])).await;
        let first = [answer.next_message().await.expect("an event"), answer.next_message().await.expect("an event")];
        assert!(first.iter().any(|message| message["method"] == "notifications/x"), "{first:?}");
        assert!(first.contains(&result(2, json!({})).1), "{first:?}");
        go.notify_one();
        let rest = answer.events().await;
        assert_eq!(rest.len(), 2, "{rest:?}");
        assert_eq!((&rest[0]["method"], &rest[1]), (&json!("notifications/z"), &result(1, json!({})).1));
    }
}

/// A client that does not read stops those who send, and nobody else; what was sent is all there when it reads again.
async fn back_pressure(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().queue_bytes(4096);
    let service = StreamableHttpService::builder(stage.script()).limits(limits).build().expect("a service");
    let client = cx.serve(service).await;
    for (sender, name) in Sender::both(&client).await.into_iter().zip(["here", "there"]) {
        let (talker, other) = (format!("{name}-talks"), format!("{name}-other"));
        let talk = request(1, "x/echo", json!({"name": talker, "tell": 1000}));
        let mut answer: Answer = sender.send(json!([talk, request(2, "x/hold", json!({"name": other}))])).await;
        stage.entered(&other).await;
        stage.release(&other);
        stage.answered(&other).await;
        assert!(stage.is_in(&talker), "it waits for room");
        let mut told = 0;
        let mut ended = Vec::new();
        while let Some(message) = answer.next_message().await {
            if message.get("method").is_some() { told += 1 } else { ended.push(message["id"].clone()) }
        }
        assert_eq!((told, ended), (1000, vec![json!(2), json!(1)]));
    }
}
