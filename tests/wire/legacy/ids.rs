//! Ids in flight: one request of a session at a time, and free again at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use futures::future::join_all;
use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{Limits, Reply, StreamableHttpService};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

use super::{Bench, End, Then};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::Call;
use crate::support::server;
use crate::support::session::{self, Session};

pub fn register(wire: &mut Wire) {
    wire.legacy("id/duplicate", Carriers::Every, duplicate);
    wire.legacy("id/duplicate/spelling", Carriers::Every, spelling);
    wire.legacy("id/duplicate/at-once", Carriers::Every, at_once);
    wire.legacy("id/duplicate/threads", Carriers::H1, threads);
    wire.legacy("delete/ends/threads", Carriers::H1, ends_in_a_race);
    wire.legacy("id/duplicate/free-again", Carriers::Every, free_again);
    wire.legacy("id/duplicate/free-after-deadline", Carriers::Clock, free_after_deadline);
    wire.legacy("id/duplicate/while-nobody-reads", Carriers::Every, while_nobody_reads);
}

/// A second request under an id that is being answered is refused, whatever it asks; the first goes on.
async fn duplicate(cx: Cx) {
    let bench = Bench::open(cx).await;
    let (session, other) = (bench.session(cx).await, bench.session(cx).await);
    for sends in [0, 1] {
        let (asking, mut run) = bench.work(session.call("x/work", json!({"tag": 1, "sends": sends}))).await;
        bench.life.take();
        for method in ["x/work", "x/quick", "ping", "logging/setLevel", "resources/subscribe", "server/discover"] {
            for accept in ["application/json, text/event-stream", "text/event-stream"] {
                let call = session.call(method, json!({"level": "debug", "uri": "a"}));
                let answer = bench.client.send(call.header(ACCEPT.as_str(), accept)).await;
                answer.error(StatusCode::BAD_REQUEST, -32600, Some(&json!(1))).await;
            }
        }
        assert_eq!(bench.life.take(), [""; 0]);
        // Another id, another session and no session are none of its business; nor are notifications, which have none.
        bench.client.send(session.call("x/quick", Value::Null).id(2)).await.result().await;
        other.result("x/quick", Value::Null).await;
        bench.client.send(Call::legacy(cx.revision, "x/quick", Value::Null)).await.result().await;
        session.notify("notifications/x", Value::Null).await;
        assert!(run.waits());
        run.go(Then::Answer);
        let answer = asking.await.expect("an answer");
        let last = if sends == 0 { answer.json().await } else { answer.events().await.pop().expect("a response") };
        assert_eq!(last["result"], json!({"done": 1}));
        session.result("x/quick", Value::Null).await;
    }
}

/// Ids are the same that say the same.
async fn spelling(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let spelled = |id: &str, method: &str| {
        let mut call = session.call(method, Value::Null).id("@");
        call.replace("\"@\"", id);
        call
    };
    for (id, same, different) in [
        ("1", &["1", "1.0"][..], &["\"1\"", "\"1.0\"", "10", "-1"][..]),
        ("7.0", &["7", "7.0"], &["\"7\"", "70"]),
        ("0", &["0.0", "-0", "-0.0"], &["\"0\"", "\"\""]),
        ("-0", &["0", "-0.0"], &["-1"]),
        ("-3", &["-3.0"], &["3"]),
        (
            "12345678901234567890123",
            &["12345678901234567890123.0"],
            &["12345678901234567890124", "12345678901234567890122"],
        ),
        ("9007199254740993", &["9007199254740993.0"], &["9007199254740992", "9007199254740994"]),
        ("\"a\"", &["\"\\u0061\"", "\"a\""], &["\"A\"", "\"a \"", "\"\\\\u0061\""]),
        ("\"\\u0000\\/\"", &["\"\\u0000/\""], &["\"\\u0000\"", "\"/\""]),
        ("\"\u{1f600}\"", &["\"\\ud83d\\ude00\"", "\"\\uD83D\\uDE00\""], &["\"\u{1f601}\""]),
        ("\"\\\"\"", &["\"\\u0022\""], &["\"\"", "\"'\""]),
        ("\"\"", &["\"\""], &["0", "\"\\u0000\""]),
    ] {
        let (asking, mut run) = bench.work(spelled(id, "x/work")).await;
        for same in same {
            let answer = bench.client.send(spelled(same, "x/quick")).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{id} and {same}");
            let text = answer.text().await;
            // As it was spelled by whoever is refused.
            assert!(text.contains("-32600") && text.contains(&format!("\"id\":{same}")), "{text}");
        }
        for different in different {
            let answer = bench.client.send(spelled(different, "x/quick")).await;
            assert_eq!(answer.status, StatusCode::OK, "{id} and {different}");
        }
        run.go(Then::Answer);
        assert!(asking.await.expect("an answer").text().await.contains(&format!("\"id\":{id}")));
    }
}

/// Of many sent at once exactly one runs.
async fn at_once(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for id in 0..5 {
        let asked: Vec<_> = (0..8).map(|_| bench.send(session.call("x/work", json!({"tag": id})).id(id))).collect();
        let mut run = bench.run().await;
        // All but the one that runs are answered before it is.
        let (answered, mut waiting) = wait_for(asked, 7).await;
        assert_eq!((answered.len(), waiting.len()), (7, 1));
        for answer in answered {
            answer.error(StatusCode::BAD_REQUEST, -32600, Some(&json!(id))).await;
        }
        run.go(Then::Answer);
        let result = waiting.remove(0).await.expect("an answer").result().await;
        assert_eq!(result, json!({"done": id}));
    }
}

type Asked = JoinHandle<Answer>;

/// Waits until so many have been answered, and returns them and the rest.
async fn wait_for(asked: Vec<Asked>, many: usize) -> (Vec<Answer>, Vec<Asked>) {
    while asked.iter().filter(|asking| asking.is_finished()).count() < many {
        sleep(Duration::from_millis(1)).await;
    }
    let (answered, waiting): (Vec<_>, Vec<_>) = asked.into_iter().partition(JoinHandle::is_finished);
    let answered = join_all(answered).await.into_iter().map(|answer| answer.expect("an answer")).collect();
    (answered, waiting)
}

/// The same from several threads, in process: whoever takes the id first has it.
async fn threads(cx: Cx) {
    const THREADS: usize = 4;
    const ROUNDS: usize = 50;
    let (entered, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let script = Script::new({
        let (entered, refused) = (Arc::clone(&entered), Arc::clone(&refused));
        move |request, _| {
            let (entered, refused) = (Arc::clone(&entered), Arc::clone(&refused));
            let is_raced = request.method() == "x/race";
            async move {
                if is_raced {
                    entered.fetch_add(1, Ordering::SeqCst);
                    while entered.load(Ordering::SeqCst) + refused.load(Ordering::SeqCst) < THREADS {
                        yield_now().await;
                    }
                }
                Reply::empty()
            }
        }
    });
    let client = Client::in_process(server::boxed(StreamableHttpService::new(script)));
    let session = session::open(&client, cx.revision).await;
    for id in 0..ROUNDS {
        entered.store(0, Ordering::SeqCst);
        refused.store(0, Ordering::SeqCst);
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| race(&session, id, &start, &refused));
            }
        });
        assert_eq!((entered.load(Ordering::SeqCst), refused.load(Ordering::SeqCst)), (1, THREADS - 1));
    }
}

fn race(session: &Session, id: usize, start: &Barrier, refused: &AtomicUsize) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    start.wait();
    let status =
        runtime.block_on(async { session.client.send(session.call("x/race", Value::Null).id(id)).await.status });
    match status {
        StatusCode::OK => {}
        StatusCode::BAD_REQUEST => {
            refused.fetch_add(1, Ordering::SeqCst);
        }
        other => panic!("{other}"),
    }
}

/// A session that ends while a request is being admitted either cancels it or was never there: none runs on.
async fn ends_in_a_race(cx: Cx) {
    let script = Script::new(|_, _| async { std::future::pending::<Result<Reply, _>>().await });
    let service = StreamableHttpService::new(script);
    let client = Client::in_process(server::boxed(service.clone()));
    for round in 0..100 {
        let session = session::open(&client, cx.revision).await;
        let start = Arc::new(Barrier::new(2));
        let asking = {
            let (session, start) = (session.clone(), Arc::clone(&start));
            std::thread::spawn(move || ask_until_it_ends(&session, &start))
        };
        start.wait();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_micros(5 * round) {
            std::hint::spin_loop();
        }
        session.end().await;
        asking.join().expect("every request is answered");
        assert_eq!(service.counts().in_flight, 0);
    }
}

/// Sends requests that are never answered by themselves, one upon another, until the session is gone.
fn ask_until_it_ends(session: &Session, start: &Barrier) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    start.wait();
    runtime.block_on(async {
        let mut asked = Vec::new();
        while asked.len() < 1000 && !asked.last().is_some_and(JoinHandle::is_finished) {
            asked.push(super::send(&session.client, session.call("x/y", Value::Null).id(asked.len())));
            yield_now().await;
        }
        for answer in timeout(Duration::from_secs(5), join_all(asked)).await.expect("an answer to each") {
            let status = answer.expect("an answer").status;
            assert!(matches!(status, StatusCode::OK | StatusCode::NOT_FOUND), "{status}");
        }
    });
}

/// However a request ends, its id is free when its client hears of that.
async fn free_again(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for accept in ["application/json", "text/event-stream", "application/json, text/event-stream"] {
        for sends in [0, 1] {
            for then in [Then::Answer, Then::Fail, Then::Panic] {
                let call = session.call("x/work", json!({"sends": sends})).header(ACCEPT.as_str(), accept);
                let (asking, mut run) = bench.work(call).await;
                run.go(then);
                let answer = asking.await.expect("an answer");
                assert!(!answer.text().await.is_empty());
                session.result("x/quick", Value::Null).await;
            }
            let call = session.call("x/work", json!({"sends": sends})).header(ACCEPT.as_str(), accept);
            let (asking, mut run) = bench.work(call).await;
            session.cancel(1).await;
            assert_eq!(run.end().await, End::Dropped);
            // At once, before the client has heard that nothing will come.
            session.result("x/quick", Value::Null).await;
            let text = asking.await.expect("an answer").text().await;
            assert!(!text.contains("result") && !text.contains("error"), "{text}");
            session.result("x/quick", Value::Null).await;
        }
    }
    // A request that was refused has taken nothing.
    session
        .request("logging/setLevel", json!({"level": "loud"}))
        .await
        .error(StatusCode::OK, -32602, Some(&json!(1)))
        .await;
    session.result("ping", Value::Null).await;
}

async fn free_after_deadline(cx: Cx) {
    let limits = Limits::default().handler_time(Duration::from_secs(5));
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    for sends in [0, 1] {
        let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": sends}))).await;
        assert_eq!(run.end().await, End::Dropped);
        let answer = asking.await.expect("an answer");
        let last = if sends == 0 { answer.json().await } else { answer.events().await.pop().expect("a response") };
        assert_eq!(last["error"]["code"], -32603);
        session.result("x/quick", Value::Null).await;
    }
}

/// The work decides, not the connection: an id is taken while its client is gone, and free though nobody reads.
async fn while_nobody_reads(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for sends in [0, 1] {
        let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": sends}))).await;
        if sends == 0 {
            asking.abort();
            assert!(asking.await.is_err());
        } else {
            drop(asking.await.expect("an answer"));
        }
        for _ in 0..20 {
            yield_now().await;
        }
        session.request("x/quick", Value::Null).await.error(StatusCode::BAD_REQUEST, -32600, Some(&json!(1))).await;
        run.go(Then::Answer);
        assert_eq!(run.end().await, End::Whole);
        session.result("x/quick", Value::Null).await;
    }
    // An event stream of which not one event is read.
    let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": 3}))).await;
    let unread = asking.await.expect("an answer");
    run.go(Then::Answer);
    assert_eq!(run.end().await, End::Whole);
    session.result("x/quick", Value::Null).await;
    assert_eq!(unread.events().await.len(), 4);
}
