//! The limits that came with sessions: each reached, and one just below.

mod bodies;
mod callers;
mod queued;
pub mod table;
mod unread;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::header::RETRY_AFTER;
use mcp_transport::{CancelCause, Capabilities, Limits, PeerKey, Principal, Revision, StreamableHttpService};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client, assert_error};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, SESSION_ID};
use crate::support::session::{self, ACCOUNT, Session, accepted};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("limit/each/defaults", Carriers::Clock, |_| async { defaults() });
    wire.any("limit/each/batch", Carriers::Every, batch);
    wire.legacy_part_of_any("limit/each/in-flight", Carriers::Every, in_flight);
    wire.legacy_part_of_any("limit/each/in-flight-by-default", Carriers::Clock, in_flight_by_default);
    wire.legacy_part_of_any("limit/each/in-flight-in-batches", Carriers::Every, in_flight_in_batches);
    wire.any("limit/each/in-flight-elsewhere", Carriers::Every, in_flight_elsewhere);
    wire.legacy_part_of_any("limit/each/sessions", Carriers::Clock, sessions);
    wire.legacy_part_of_any("limit/each/session-idle", Carriers::Clock, session_idle);
    wire.modern_part_of_any("limit/each/listeners", Carriers::Every, listeners);
    wire.modern_part_of_any("limit/each/listeners-by-caller", Carriers::Every, listeners_by_caller);
    wire.any("limit/each/listeners-elsewhere", Carriers::Every, listeners_elsewhere);
    wire.harness("limits-of-callers-are-checked", Carriers::Clock, |_| async { table::checked() });
    bodies::register(wire);
    callers::register(wire);
    queued::register(wire);
    unread::register(wire);
}

/// From which connection a request comes, as the services of these tests see it.
const PEER: &str = "x-peer";

fn serving(stage: &Stage, limits: Limits) -> StreamableHttpService {
    let capabilities = Capabilities::new().tools_list_changed();
    serves(stage.script().declaring(capabilities), limits)
}

fn serves(script: Script, limits: Limits) -> StreamableHttpService {
    let builder = StreamableHttpService::builder(script).limits(limits);
    let named = |head: &http::request::Parts, header: &str| Some(head.headers.get(header)?.to_str().ok()?.to_owned());
    let builder = builder.principal(move |head| Some(Principal::new(named(head, ACCOUNT)?)));
    let builder = builder.peer(move |head| Some(PeerKey::new(named(head, PEER)?)));
    builder.build().expect("a service")
}

/// 429 with the id of what it answers, where that was read, and when to come back.
async fn too_much(answer: Answer, id: Option<Value>) {
    assert_ne!(answer.header(RETRY_AFTER.as_str()), "");
    assert_eq!(answer.header(SESSION_ID), "");
    answer.error(StatusCode::TOO_MANY_REQUESTS, -32600, id.as_ref()).await;
}

/// A handler that sends as many messages as its `messages` says, of about as many bytes as its `pad` says, and then holds
/// its answer where its `hold` says so. Counts what it has sent.
fn filling(sent: &Arc<AtomicUsize>) -> Script {
    let sent = Arc::clone(sent);
    Script::new(move |request, cx| {
        let sent = Arc::clone(&sent);
        async move {
            let params: Value = request.params()?;
            let pad = "x".repeat(usize::try_from(params["pad"].as_u64().unwrap_or_default()).expect("a length"));
            for n in 0..params["messages"].as_u64().unwrap_or_default() {
                cx.notify("notifications/x", json!({"n": n, "pad": pad})).await?;
                sent.fetch_add(1, Ordering::SeqCst);
            }
            if params["hold"] == true {
                pending::<()>().await;
            }
            mcp_transport::Reply::of(json!({"done": true}))
        }
    })
}

/// 503 with the id of what it answers, and when to come back.
async fn too_busy(answer: Answer, id: impl Into<Value>) {
    assert_ne!(answer.header(RETRY_AFTER.as_str()), "");
    assert_eq!(answer.header(SESSION_ID), "");
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&id.into())).await;
}

fn defaults() {
    let told = format!("{:?}", Limits::default());
    let documented = [
        "batch: 100,",
        "body_bytes_by_caller: 67108864,",
        "body_bytes_in_all: 268435456,",
        "body_time: 30s,",
        "in_flight: 1024,",
        "in_flight_by_caller: 2048,",
        "in_flight_in_all: 16384,",
        "queue_bytes_by_caller: 67108864,",
        "queue_bytes_in_all: 268435456,",
        "unread_time: 300s,",
        "sessions_by_caller: 1000,",
        "listeners: 16384,",
        "listeners_by_caller: 1024,",
        "session_idle: 1800s,",
        "sessions: 10000,",
    ];
    for limit in documented {
        assert!(told.contains(limit), "{limit} in {told}");
    }
}

/// An array is as long as it may be, or one longer. Where there are no batches, it makes no difference.
async fn batch(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().batch(2))).await;
    let echo = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "x/echo", "params": {}});
    let like = |body: Value| {
        let mut call = Call::of(cx.revision, "x/echo", json!({}));
        call.body = body;
        call
    };
    let full = client.send(like(json!([echo(1), echo(2)]))).await;
    if cx.revision <= Revision::V2025_03_26 {
        // Without a header 2024-11-05 cannot be told from it.
        assert_eq!(full.json().await.as_array().map(Vec::len), Some(2));
        assert_eq!(stage.take_runs(), 2);
    } else {
        full.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    let over = client.send(like(json!([echo(1), echo(2), echo(3)]))).await;
    over.error(StatusCode::BAD_REQUEST, -32600, None).await;
    assert_eq!(stage.take_runs(), 0);
}

/// Requests that stay with the handler, of one session.
async fn hold(session: &Session, stage: &Stage, names: &[&str]) -> Vec<JoinHandle<Answer>> {
    let mut asking = Vec::new();
    for name in names {
        let (client, call) = (session.client.clone(), session.call("x/hold", json!({"name": name})).id(*name));
        asking.push(tokio::spawn(async move { client.send(call).await }));
        stage.entered(name).await;
    }
    asking
}

/// What is too much for a session is turned away; pings, notifications and cancellations pass.
async fn in_flight(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().in_flight(3))).await;
    let session = session::open(&client, cx.revision).await;
    let mut held = hold(&session, &stage, &["a", "b"]).await;
    // One below: there is room for one at a time.
    for _ in 0..3 {
        assert_eq!(session.result("x/echo", json!({"n": 1})).await, json!({"n": 1}));
    }
    held.extend(hold(&session, &stage, &["c"]).await);
    stage.take_runs();
    for method in ["x/echo", "tools/list", "logging/setLevel", "resources/subscribe"] {
        too_busy(client.send(session.call(method, json!({"level": "info"})).id(9)).await, 9).await;
    }
    let repeated = client.send(session.call("x/echo", json!({})).id("a")).await;
    repeated.error(StatusCode::BAD_REQUEST, -32600, Some(&"a".into())).await;
    assert_eq!(stage.take_runs(), 0);
    for _ in 0..5 {
        assert_eq!(session.result("ping", Value::Null).await, json!({}));
    }
    session.notify("notifications/x", Value::Null).await;

    // One answered, one cancelled: room for two.
    stage.release("a");
    held.remove(0).await.expect("an answer").result().await;
    session.cancel("b").await;
    assert_eq!(stage.dropped("b").await, Some(CancelCause::Requested));
    assert_eq!(held.remove(0).await.expect("an answer").events().await, [Value::Null; 0]);
    let more = hold(&session, &stage, &["d", "e"]).await;
    too_busy(session.request("x/echo", json!({})).await, ID).await;
    for name in ["c", "d", "e"] {
        stage.release(name);
    }
    for asking in held.into_iter().chain(more) {
        asking.await.expect("an answer").result().await;
    }
}

async fn in_flight_by_default(cx: Cx) {
    let entered = Arc::new(AtomicUsize::new(0));
    let script = Script::new({
        let entered = Arc::clone(&entered);
        move |_, _| {
            entered.fetch_add(1, Ordering::SeqCst);
            pending()
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let session = session::open(&client, cx.revision).await;
    let ask = |id: usize| {
        let (client, call) = (client.clone(), session.call("x/hold", json!({})).id(id));
        tokio::spawn(async move { client.send(call).await })
    };
    let held: Vec<_> = (1000..2024).map(ask).collect();
    while entered.load(Ordering::SeqCst) < 1024 {
        sleep(Duration::from_millis(1)).await;
    }
    too_busy(ask(2024).await.expect("an answer"), 2024).await;
    assert_eq!(session.result("ping", Value::Null).await, json!({}));
    session.end().await;
    for asking in held {
        assert_eq!(asking.await.expect("an answer").events().await, [Value::Null; 0]);
    }
}

/// Of a batch, the elements that find room run; the others get an error each. Pings pass.
async fn in_flight_in_batches(cx: Cx) {
    if cx.revision != Revision::V2025_03_26 {
        return;
    }
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().in_flight(2))).await;
    let session = session::open(&client, cx.revision).await;
    let request =
        |id: &str, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": id}});
    let elements = [request("a", "x/hold"), request("b", "x/hold"), request("c", "x/echo"), request("d", "ping")];
    let asking = tokio::spawn({
        let (client, call) = (client.clone(), session.post(json!(elements)));
        async move { client.send(call).await }
    });
    stage.entered("a").await;
    stage.entered("b").await;
    too_busy(session.request("x/echo", json!({})).await, ID).await;
    stage.release("a");
    stage.release("b");
    let answers = asking.await.expect("an answer").json().await;
    let mut answers = answers.as_array().expect("an array").clone();
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_error(answers.remove(2), -32603, Some(&"c".into()));
    assert!(answers.len() == 3 && answers.iter().all(|answer| answer.get("result").is_some()), "{answers:?}");
    assert_eq!(stage.take_runs(), 2);
}

/// The bound is each session's own; where there is no session, there is none.
async fn in_flight_elsewhere(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().in_flight(1))).await;
    let full = session::open(&client, Revision::V2025_11_25).await;
    let held = hold(&full, &stage, &["held"]).await;
    too_busy(full.request("x/echo", json!({})).await, ID).await;
    let (_other, mut asking) = if cx.modern() {
        (None, Vec::new())
    } else {
        let other = session::open(&client, cx.revision).await;
        let asking = hold(&other, &stage, &["other"]).await;
        (Some(other), asking)
    };
    for name in ["one", "two"] {
        let (client, call) = (client.clone(), Call::of(cx.revision, "x/hold", json!({"name": name})));
        asking.push(tokio::spawn(async move { client.send(call).await }));
        stage.entered(name).await;
    }
    for name in ["held", "other", "one", "two"] {
        stage.release(name);
    }
    for asking in held.into_iter().chain(asking) {
        asking.await.expect("an answer").result().await;
    }
}

/// At the cap a new session takes an old one's place, or is refused where none can go. Those without one are served.
async fn sessions(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().sessions(2));
    let client = cx.serve(service.clone()).await;
    let first = session::open(&client, cx.revision).await;
    let second = session::open(&client, cx.revision).await;
    assert!(first.is_open().await && second.is_open().await, "just below");
    // Both are ready and have just been used.
    too_busy(client.send(session::initialize(cx.revision)).await, ID).await;
    assert_eq!(service.counts().sessions, 2);
    client.send(Call::legacy(cx.revision, "x/echo", json!({}))).await.result().await;
    sleep(Duration::from_secs(9)).await;
    too_busy(client.send(session::initialize(cx.revision)).await, ID).await;
    assert!(second.is_open().await);
    sleep(Duration::from_secs(1)).await;
    let third = session::start(&client, cx.revision).await;
    assert!(!first.is_open().await, "idle for ten seconds");
    assert!(second.is_open().await && third.is_open().await);
    // One whose client never said that it is ready goes first, and at once.
    let fourth = session::open(&client, cx.revision).await;
    assert!(!third.is_open().await);
    assert!(second.is_open().await && fourth.is_open().await);
    // One that ends makes room.
    second.end().await;
    let fifth = session::open(&client, cx.revision).await;
    assert!(fourth.is_open().await && fifth.is_open().await);
    // One with work in flight stays, however long that takes.
    sleep(Duration::from_secs(5)).await;
    let held = hold(&fourth, &stage, &["held"]).await;
    sleep(Duration::from_secs(60)).await;
    let sixth = session::open(&client, cx.revision).await;
    assert!(!fifth.is_open().await);
    stage.release("held");
    for asking in held {
        asking.await.expect("an answer").events().await;
    }
    assert!(fourth.is_open().await && sixth.is_open().await);
    assert_eq!(service.counts().sessions, 2);
    client
        .send(session::initialize_with("1999-01-01", Value::Null))
        .await
        .error(StatusCode::OK, -32602, Some(&ID.into()))
        .await;
}

/// It ends once it has been idle for that long, and not a moment before.
async fn session_idle(cx: Cx) {
    let stage = Stage::default();
    for idle in [Duration::from_secs(60), Duration::from_millis(700)] {
        let service = serving(&stage, Limits::default().session_idle(idle));
        let client = cx.serve(service.clone()).await;
        let session = session::open(&client, cx.revision).await;
        for _ in 0..10 {
            sleep(idle - Duration::from_millis(1)).await;
            assert!(session.is_open().await);
        }
        sleep(idle - Duration::from_millis(1)).await;
        accepted(client.send(session.notification("notifications/x", Value::Null)).await).await;
        sleep(idle).await;
        assert!(!session.is_open().await);
        // Nobody has to ask: one that is forgotten is gone soon after.
        session::open(&client, cx.revision).await;
        assert_eq!(service.counts().sessions, 1);
        sleep(idle * 2).await;
        assert_eq!(service.counts().sessions, 0);
    }
}

fn listen(account: Option<&str>) -> Call {
    let call = Call::modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).id("sub");
    match account {
        Some(account) => call.header(ACCOUNT, account),
        None => call,
    }
}

async fn listening(client: &Client, account: Option<&str>) -> Answer {
    let mut stream = client.send(listen(account)).await;
    let acknowledged = stream.next_message().await.expect("an event");
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    stream
}

/// One too many is refused before its acknowledgement, as JSON; the end of one makes room.
async fn listeners(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().listeners(2).listeners_by_caller(2);
    let service = serving(&stage, limits);
    let client = cx.serve(service.clone()).await;
    let first = listening(&client, None).await;
    let mut second = listening(&client, Some("one")).await;
    for _ in 0..3 {
        too_busy(client.send(listen(None)).await, "sub").await;
        too_busy(client.send(listen(Some("one"))).await, "sub").await;
        too_busy(client.send(listen(Some("two")).header("accept", "text/event-stream")).await, "sub").await;
    }
    service.changes().tools_list_changed();
    assert_eq!(second.next_message().await.expect("an event")["method"], "notifications/tools/list_changed");
    drop(first);
    while service.counts().streams > 1 {
        sleep(Duration::from_millis(1)).await;
    }
    let third = listening(&client, Some("one")).await;
    too_busy(client.send(listen(None)).await, "sub").await;
    drop((second, third));
    while service.counts().streams > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    // What was refused has taken no place.
    let both = [listening(&client, Some("one")).await, listening(&client, Some("one")).await];
    too_busy(client.send(listen(Some("one"))).await, "sub").await;
    drop(both);
}

/// Each principal has as many of its own; nobody's are bounded by the total alone.
async fn listeners_by_caller(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().listeners_by_caller(1));
    let client = cx.serve(service.clone()).await;
    let one = listening(&client, Some("one")).await;
    let _two = listening(&client, Some("two")).await;
    for account in ["one", "two"] {
        too_busy(client.send(listen(Some(account))).await, "sub").await;
    }
    let _nobody = [listening(&client, None).await, listening(&client, None).await];
    drop(one);
    while service.counts().streams > 3 {
        sleep(Duration::from_millis(1)).await;
    }
    let _one = listening(&client, Some("one")).await;
    too_busy(client.send(listen(Some("one"))).await, "sub").await;
    let none = serving(&stage, Limits::default().listeners_by_caller(0));
    let client = cx.serve(none).await;
    too_busy(client.send(listen(Some("one"))).await, "sub").await;
}

/// Answers that stream do not count, and the general streams of sessions do.
async fn listeners_elsewhere(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().listeners(2));
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, Revision::V2025_06_18).await;
    let mut answer = client.send(Call::of(cx.revision, "x/hold", json!({"name": "held", "tell": 1}))).await;
    answer.next_message().await.expect("an event");
    let general = session.listen().await;
    let listener = listening(&client, None).await;
    too_busy(client.send(listen(None)).await, "sub").await;
    let other = session::open(&client, Revision::V2024_11_05).await;
    let refused = client.send(other.get()).await;
    assert_ne!(refused.header(RETRY_AFTER.as_str()), "");
    refused.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
    drop(general);
    while service.counts().streams > 2 {
        sleep(Duration::from_millis(1)).await;
    }
    drop((other.listen().await, listener));
    stage.release("held");
    assert_eq!(answer.events().await.len(), 1);
}
