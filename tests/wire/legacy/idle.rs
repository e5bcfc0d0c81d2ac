//! How sessions end by themselves: idle for too long, or in the way of new ones.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::header::RETRY_AFTER;
use mcp_transport::{Limits, Misuse, Observer, Reply, StreamableHttpService};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use super::{Bench, Then};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::{ID, SESSION_ID};
use crate::support::session::{self, ACCOUNT, Session, initialize};

pub fn register(wire: &mut Wire) {
    wire.legacy("session/idle", Carriers::Clock, |cx| expires(cx, None));
    wire.legacy("session/idle/configured", Carriers::Clock, |cx| expires(cx, Some(Duration::from_secs(5))));
    wire.legacy("session/idle/swept", Carriers::Clock, swept);
    wire.legacy("session/idle/hook-panics", Carriers::Clock, a_hook_that_panics);
    wire.legacy("session/idle/used", Carriers::Clock, used);
    wire.legacy("session/idle/at-work", Carriers::Clock, at_work);
    wire.legacy("session/idle/stream", Carriers::Clock, stream);
    wire.legacy("session/idle/unread", Carriers::Clock, unread);
    wire.legacy("session/idle/cap-raw-first", Carriers::Clock, never_initialized_go_first);
    wire.legacy("session/idle/cap-longest-idle", Carriers::Clock, longest_idle_goes);
    wire.legacy("session/idle/cap-none-to-spare", Carriers::Every, none_to_spare);
    wire.legacy("session/idle/cap-held", Carriers::Clock, the_held_stay);
    wire.legacy("session/idle/cap-room", Carriers::Every, room_again);
}

const DEFAULT: Duration = Duration::from_secs(30 * 60);

const MOMENT: Duration = Duration::from_millis(10);

async fn expiring(cx: Cx, idle: Duration) -> Bench {
    Bench::with(cx, |builder| builder.limits(Limits::default().session_idle(idle))).await
}

async fn capped(cx: Cx, sessions: usize) -> Bench {
    Bench::with(cx, |builder| builder.limits(Limits::default().sessions(sessions))).await
}

/// Alive until the idle time is over, gone then; using it begins the time anew.
async fn expires(cx: Cx, idle: Option<Duration>) {
    let bench = match idle {
        Some(idle) => expiring(cx, idle).await,
        None => Bench::open(cx).await,
    };
    let idle = idle.unwrap_or(DEFAULT);
    let session = bench.session(cx).await;
    for _ in 0..3 {
        advance(idle - MOMENT).await;
        assert!(session.is_open().await);
    }
    advance(idle).await;
    bench.life.take();
    session.request("x/quick", Value::Null).await.error(StatusCode::NOT_FOUND, -32600, Some(&ID.into())).await;
    assert_eq!(bench.life.take(), [format!("closed {} Expired", session.id)]);
    assert_eq!(bench.service.counts().sessions, 0);
    // One whose client never said that it was ready is no other.
    let raw = session::start(&bench.client, cx.revision).await;
    advance(idle - MOMENT).await;
    assert!(raw.is_open().await);
    advance(idle).await;
    assert!(!raw.is_open().await);
}

/// Nobody has to ask: a session goes soon after its time is over, each by its own time.
async fn swept(cx: Cx) {
    for idle in [DEFAULT, Duration::from_secs(8)] {
        let bench = expiring(cx, idle).await;
        let first = bench.session(cx).await;
        sleep(idle / 2).await;
        let second = bench.session(cx).await;
        bench.life.take();
        sleep(idle / 2 - MOMENT).await;
        assert_eq!(bench.service.counts().sessions, 2);
        sleep(idle / 4).await;
        assert_eq!(bench.life.take(), [format!("closed {} Expired", first.id)]);
        assert_eq!(bench.service.counts().sessions, 1);
        sleep(idle / 2).await;
        assert_eq!(bench.life.take(), [format!("closed {} Expired", second.id)]);
        assert_eq!(bench.service.counts().sessions, 0);
        // After a time with none at all there are new ones, which go as well.
        sleep(idle * 3).await;
        let third = bench.session(cx).await;
        bench.life.take();
        sleep(idle + idle / 4).await;
        assert_eq!(bench.life.take(), [format!("closed {} Expired", third.id)]);
    }
}

/// A hook of the application's that panics stops neither the sessions nor their end, and is reported.
async fn a_hook_that_panics(cx: Cx) {
    let panics = Arc::new(AtomicUsize::new(0));
    let reported = Reported(Arc::clone(&panics));
    let script = Script::new(|_, _| async { Reply::empty() });
    let script = script.watching(|_| {}, |_, _| resume_unwind(Box::new("as the test says")));
    let service = StreamableHttpService::builder(script).observer(reported).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    for round in 1..3 {
        let sessions = [session::open(&client, cx.revision).await, session::open(&client, cx.revision).await];
        let deleted = session::open(&client, cx.revision).await;
        deleted.end().await;
        assert!(sessions[0].is_open().await && sessions[1].is_open().await && !deleted.is_open().await);
        sleep(DEFAULT + DEFAULT / 4).await;
        assert_eq!((service.counts().sessions, panics.load(Ordering::SeqCst)), (0, round * 3));
    }
}

struct Reported(Arc<AtomicUsize>);

impl Observer for Reported {
    fn misuse(&self, misuse: &Misuse) {
        assert_eq!(misuse.to_string(), "session_closed panicked: as the test says");
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whatever is said in a session is a use of it, and what others say is none.
async fn used(cx: Cx) {
    let idle = Duration::from_secs(60);
    let bench = expiring(cx, idle).await;
    let by = |account| initialize(cx.revision).header(ACCOUNT, account);
    let session = session::open_by(&bench.client, by("ada")).await;
    let foreign = Session { account: None, ..session.clone() };
    let bystander = session::open_by(&bench.client, by("ada")).await;
    for call in [
        session.call("x/quick", Value::Null),
        session.notification("notifications/x", Value::Null),
        session.notification("notifications/cancelled", json!({"requestId": 1})),
        session.post(json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        session.call("no/such", Value::Null),
        session.call("initialize", Value::Null),
        session.get(),
    ] {
        advance(idle - MOMENT).await;
        let answer = bench.client.send(call).await;
        assert_ne!(answer.status, StatusCode::NOT_FOUND);
        drop(answer);
        if bystander.is_open().await {
            continue;
        }
        panic!("its own use keeps it");
    }
    for call in [foreign.call("x/quick", Value::Null), foreign.get(), foreign.delete()] {
        advance(idle / 4).await;
        assert_eq!(bench.client.send(call).await.status, StatusCode::NOT_FOUND);
    }
    advance(idle / 4).await;
    assert!(!session.is_open().await, "what was none of theirs did not keep it");
}

/// Work in flight holds a session open, also when its client is gone; then the idle time begins.
async fn at_work(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for leaves in [false, true] {
        let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": 1}))).await;
        let mut answer = Some(asking.await.expect("an answer"));
        if leaves {
            answer = None;
        }
        bench.life.take();
        sleep(DEFAULT * 3).await;
        assert_eq!(bench.life.take(), [""; 0]);
        run.go(Then::Answer);
        run.end().await;
        if let Some(answer) = answer {
            assert_eq!(answer.events().await.len(), 2);
        }
        advance(DEFAULT - MOMENT).await;
        assert!(session.is_open().await);
    }
    let asking = bench.send(session.call("x/work", json!({"sends": 0})));
    let mut run = bench.run().await;
    sleep(DEFAULT * 3).await;
    session.cancel(ID).await;
    run.end().await;
    drop(asking.await);
    advance(DEFAULT - MOMENT).await;
    assert!(session.is_open().await);
    advance(DEFAULT).await;
    assert!(!session.is_open().await);
}

/// An open general stream holds it too, read or not.
async fn stream(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut stream = session.listen().await;
    bench.life.take();
    for _ in 0..1000 {
        assert!(stream.frame().await.is_some());
    }
    sleep(DEFAULT * 3).await;
    assert_eq!(bench.life.take(), [""; 0]);
    drop(stream);
    sleep(DEFAULT - MOMENT).await;
    assert_eq!(bench.service.counts().sessions, 1);
    sleep(DEFAULT / 4).await;
    assert_eq!(bench.life.take(), [format!("closed {} Expired", session.id)]);
}

/// So does the stream of an answer that is made and not yet read.
async fn unread(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": 1}))).await;
    let answer = asking.await.expect("an answer");
    run.go(Then::Answer);
    run.end().await;
    bench.life.take();
    sleep(DEFAULT * 3).await;
    assert_eq!(bench.life.take(), [""; 0]);
    assert_eq!(answer.events().await.len(), 2);
    sleep(DEFAULT - MOMENT).await;
    assert_eq!(bench.service.counts().sessions, 1);
    sleep(DEFAULT / 4).await;
    assert_eq!(bench.life.take(), [format!("closed {} Expired", session.id)]);
}

/// Opens a session at the cap, and returns who went for it.
async fn displaced(bench: &Bench, cx: Cx) -> (Session, Vec<String>) {
    bench.life.take();
    let session = session::start(&bench.client, cx.revision).await;
    let mut life = bench.life.take();
    assert_eq!(life.pop(), Some(format!("opened {}", session.id)));
    let evicted = life.iter().map(|what| {
        let id = what.strip_prefix("closed ").and_then(|what| what.strip_suffix(" Evicted"));
        id.unwrap_or_else(|| panic!("{what}")).to_owned()
    });
    (session, evicted.collect())
}

/// At the cap, sessions whose client never said that it was ready go first, the oldest first, however busy they were.
async fn never_initialized_go_first(cx: Cx) {
    let bench = capped(cx, 4).await;
    let ready = bench.session(cx).await;
    advance(Duration::from_secs(20)).await;
    let first = session::start(&bench.client, cx.revision).await;
    advance(Duration::from_secs(20)).await;
    let second = session::start(&bench.client, cx.revision).await;
    let also_ready = bench.session(cx).await;
    advance(Duration::from_secs(20)).await;
    first.result("x/quick", Value::Null).await;
    let (third, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, std::slice::from_ref(&first.id));
    advance(Duration::from_secs(20)).await;
    let (fourth, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, std::slice::from_ref(&second.id));
    for (session, is_open) in [(&ready, true), (&also_ready, true), (&first, false), (&second, false), (&third, true)] {
        assert_eq!(session.is_open().await, is_open);
    }
    assert!(fourth.is_open().await);
    assert_eq!(bench.service.counts().sessions, 4);
}

/// Then the one that has been idle for longest goes, unless that is not even ten seconds.
async fn longest_idle_goes(cx: Cx) {
    let bench = capped(cx, 3).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(bench.session(cx).await);
        advance(Duration::from_secs(20)).await;
    }
    // The oldest has been used last.
    sessions[0].notify("notifications/x", Value::Null).await;
    advance(Duration::from_secs(1)).await;
    let (fourth, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, [sessions[1].id.clone()]);
    fourth.notify("notifications/initialized", Value::Null).await;
    let (fifth, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, [sessions[2].id.clone()]);
    fifth.notify("notifications/initialized", Value::Null).await;
    // One second, and nothing: all are too young.
    for wait in [0, 8] {
        advance(Duration::from_secs(wait)).await;
        let answer = bench.client.send(initialize(cx.revision)).await;
        answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&ID.into())).await;
    }
    advance(Duration::from_secs(1)).await;
    let (_, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, [sessions[0].id.clone()], "ten seconds are enough");
    assert!(fourth.is_open().await && fifth.is_open().await);
}

/// Else the new one has to come again, and nobody goes.
async fn none_to_spare(cx: Cx) {
    let bench = capped(cx, 2).await;
    let sessions = [bench.session(cx).await, bench.session(cx).await];
    bench.life.take();
    for id in [json!(1), json!("a")] {
        let answer = bench.client.send(initialize(cx.revision).id(id.clone())).await;
        assert_eq!(answer.header(SESSION_ID), "");
        let seconds: u64 = answer.header(RETRY_AFTER.as_str()).parse().expect("seconds");
        assert!(seconds > 0);
        answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&id)).await;
    }
    // What opens no session needs no room.
    bench
        .client
        .send(initialize(cx.revision).header(SESSION_ID, &sessions[0].id))
        .await
        .error(StatusCode::BAD_REQUEST, -32600, Some(&ID.into()))
        .await;
    let mut failing = initialize(cx.revision);
    failing.remove("/params/capabilities");
    bench.client.send(failing).await.error(StatusCode::OK, -32602, Some(&ID.into())).await;
    assert_eq!(bench.life.take(), [""; 0]);
    assert_eq!(bench.service.counts().sessions, 2);
    assert!(sessions[0].is_open().await && sessions[1].is_open().await);
}

/// Work in flight and open streams hold a session at the cap too, ready or not.
async fn the_held_stay(cx: Cx) {
    let bench = capped(cx, 3).await;
    let (busy, listening) = (session::start(&bench.client, cx.revision).await, bench.session(cx).await);
    let (asking, mut run) = bench.work(busy.call("x/work", Value::Null)).await;
    let stream = listening.listen().await;
    let spare = bench.session(cx).await;
    advance(Duration::from_secs(60)).await;
    let (new, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, [spare.id]);
    new.notify("notifications/initialized", Value::Null).await;
    let answer = bench.client.send(initialize(cx.revision)).await;
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&ID.into())).await;
    run.go(Then::Answer);
    asking.await.expect("an answer").text().await;
    let (newer, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, [busy.id]);
    newer.notify("notifications/initialized", Value::Null).await;
    // A stream that has just closed was a use of its session.
    drop(stream);
    let answer = bench.client.send(initialize(cx.revision)).await;
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&ID.into())).await;
    advance(Duration::from_secs(10)).await;
    new.result("x/quick", Value::Null).await;
    newer.result("x/quick", Value::Null).await;
    let (_, gone) = displaced(&bench, cx).await;
    assert_eq!(gone, [listening.id]);
}

/// A session that has ended has made room.
async fn room_again(cx: Cx) {
    let bench = capped(cx, 1).await;
    for _ in 0..3 {
        let session = bench.session(cx).await;
        let answer = bench.client.send(initialize(cx.revision)).await;
        answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&ID.into())).await;
        session.end().await;
        assert_eq!(bench.service.counts().sessions, 0);
    }
}
