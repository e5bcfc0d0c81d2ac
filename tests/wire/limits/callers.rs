//! What one caller may have, and what all may have together: requests, sessions, streams, hooks.

use std::future::pending;
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{Limits, Misuse, Observer, Revision, StreamableHttpService};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{ACCOUNT, PEER, listen, listening, serves, serving, too_busy, too_much};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, ID};
use crate::support::session::{self, Session, accepted};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("limit/each/in-flight-by-caller", Carriers::Every, in_flight_by_caller);
    wire.legacy_part_of_any("limit/each/in-flight-by-caller-in-sessions", Carriers::Every, in_all_its_sessions);
    wire.any("limit/each/in-flight-in-all", Carriers::Every, in_flight_in_all);
    wire.legacy_part_of_any("limit/each/sessions-by-caller", Carriers::Clock, sessions_by_caller);
    wire.legacy_part_of_any("limit/each/sessions-of-strangers", Carriers::Clock, sessions_of_strangers);
    wire.legacy_part_of_any("limit/each/get-streams", Carriers::Every, get_streams);
    wire.modern_part_of_any("limit/each/listeners-by-peer", Carriers::Every, listeners_by_peer);
    wire.any("limit/each/hooks-by-caller", Carriers::Clock, hooks_by_caller);
    wire.legacy_part_of_any("limit/each/ids", Carriers::Every, ids);
    wire.any("fault/panic/who-calls", Carriers::Every, who_calls);
}

/// Whom a request comes from: by principal, by peer, or from nobody in particular.
const NAMED: [&str; 2] = [ACCOUNT, PEER];

fn by(call: Call, name: Option<(&str, &str)>) -> Call {
    match name {
        Some((header, name)) => call.header(header, name),
        None => call,
    }
}

async fn holding(client: &Client, stage: &Stage, call: Call, name: &str) -> JoinHandle<Answer> {
    let client = client.clone();
    let asking = tokio::spawn(async move { client.send(call).await });
    stage.entered(name).await;
    asking
}

async fn hold(cx: Cx, client: &Client, stage: &Stage, name: &str, who: Option<(&str, &str)>) -> JoinHandle<Answer> {
    let call = by(Call::of(cx.revision, "x/hold", json!({ "name": name })), who);
    holding(client, stage, call, name).await
}

/// A share is each caller's own, whether it is known by its principal or by its connection. Who is not known has none.
async fn in_flight_by_caller(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().in_flight_by_caller(2));
    let client = cx.serve(service.clone()).await;
    let echo = |who| by(Call::of(cx.revision, "x/echo", json!({"n": 1})), who);
    for header in NAMED {
        let who = |name: &'static str| Some((header, name));
        let mut held = vec![hold(cx, &client, &stage, &format!("{header} 1"), who("one")).await];
        client.send(echo(who("one"))).await.result().await;
        held.push(hold(cx, &client, &stage, &format!("{header} 2"), who("one")).await);
        stage.take_runs();
        for _ in 0..3 {
            too_much(client.send(echo(who("one"))).await, Some(ID.into())).await;
        }
        assert_eq!(stage.take_runs(), 0);
        if cx.modern() {
            // Clients take a 429 to it for a server that knows no newer revision than 2025-11-25.
            client.send(by(Call::modern("server/discover", json!({})), who("one"))).await.result().await;
        } else {
            // A ping shows that the server lives, and what takes back is never refused.
            client.send(by(Call::legacy(cx.revision, "ping", Value::Null), who("one"))).await.result().await;
            let cancel = Call::legacy(cx.revision, "notifications/cancelled", json!({"requestId": 1})).notification();
            accepted(client.send(by(cancel, who("one"))).await).await;
        }
        client.send(echo(who("two"))).await.result().await;
        for n in 3..6 {
            held.push(hold(cx, &client, &stage, &format!("{header} {n}"), None).await);
        }
        stage.release(&format!("{header} 1"));
        held.remove(0).await.expect("an answer").result().await;
        client.send(echo(who("one"))).await.result().await;
        (2..6).for_each(|n| stage.release(&format!("{header} {n}")));
        for asking in held {
            asking.await.expect("an answer").result().await;
        }
    }
    // Who has a principal is not told by its connection.
    let mut held = Vec::new();
    for (n, account) in ["one", "two", "three"].into_iter().enumerate() {
        let call = Call::of(cx.revision, "x/hold", json!({"name": n.to_string()})).header(PEER, "same");
        held.push(holding(&client, &stage, call.header(ACCOUNT, account), &n.to_string()).await);
    }
    (0..3).for_each(|n| stage.release(&n.to_string()));
    for asking in held {
        asking.await.expect("an answer").result().await;
    }
}

async fn session_of(client: &Client, revision: Revision, account: &str) -> Session {
    session::open_by(client, session::initialize(revision).header(ACCOUNT, account)).await
}

/// All sessions of a caller count together.
async fn in_all_its_sessions(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().in_flight_by_caller(2))).await;
    let sessions = [session_of(&client, cx.revision, "one").await, session_of(&client, cx.revision, "one").await];
    let mut held = Vec::new();
    for (name, session) in ["a", "b"].into_iter().zip(&sessions) {
        held.push(holding(&client, &stage, session.call("x/hold", json!({"name": name})).id(name), name).await);
    }
    for session in &sessions {
        too_much(session.request("x/echo", json!({})).await, Some(ID.into())).await;
        too_much(client.send(session.notification("notifications/x", Value::Null)).await, None).await;
        too_much(client.send(session::initialize(cx.revision).header(ACCOUNT, "one")).await, Some(ID.into())).await;
        assert_eq!(session.result("ping", Value::Null).await, json!({}));
        session.notify("notifications/initialized", Value::Null).await;
    }
    if cx.revision == Revision::V2025_03_26 {
        let element = |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
        let batch = sessions[0].post(json!([element(7, "x/echo"), element(8, "ping")]));
        let answers = client.send(batch).await.json().await;
        let code = |id| answers.as_array()?.iter().find(|answer| answer["id"] == id)?["error"]["code"].as_i64();
        assert_eq!((code(7), code(8)), (Some(-32600), None), "{answers}");
    }
    assert!(session_of(&client, cx.revision, "two").await.is_open().await);
    sessions[0].cancel("a").await;
    assert_eq!(held.remove(0).await.expect("an answer").events().await, [Value::Null; 0]);
    sessions[1].request("x/echo", json!({})).await.result().await;
    sessions[0].end().await;
    stage.release("b");
    held.remove(0).await.expect("an answer").result().await;
}

/// Where all there is is taken, everybody gets 503, whoever took it.
async fn in_flight_in_all(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().in_flight_in_all(2))).await;
    let mut held = vec![hold(cx, &client, &stage, "a", None).await];
    client.send(Call::of(cx.revision, "x/echo", json!({}))).await.result().await;
    held.push(hold(cx, &client, &stage, "b", Some((ACCOUNT, "one"))).await);
    for who in [None, Some((ACCOUNT, "one")), Some((PEER, "two"))] {
        too_busy(client.send(by(Call::of(cx.revision, "x/echo", json!({})), who)).await, ID).await;
    }
    if !cx.modern() {
        client.send(Call::legacy(cx.revision, "ping", Value::Null)).await.result().await;
    }
    stage.release("a");
    held.remove(0).await.expect("an answer").result().await;
    client.send(Call::of(cx.revision, "x/echo", json!({}))).await.result().await;
    stage.release("b");
    held.remove(0).await.expect("an answer").result().await;
}

/// Whoever opens sessions without end ends its own, or gets no more.
async fn sessions_by_caller(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().sessions_by_caller(2));
    let client = cx.serve(service.clone()).await;
    let other = session_of(&client, cx.revision, "two").await;
    let nobody = session::start(&client, cx.revision).await;
    sleep(Duration::from_secs(60)).await;
    let first = session_of(&client, cx.revision, "one").await;
    let second = session_of(&client, cx.revision, "one").await;
    assert!(first.is_open().await && second.is_open().await, "just below");
    let more = || session::initialize(cx.revision).header(ACCOUNT, "one");
    too_much(client.send(more()).await, Some(ID.into())).await;
    sleep(Duration::from_secs(9)).await;
    too_much(client.send(more()).await, Some(ID.into())).await;
    assert!(second.is_open().await);
    sleep(Duration::from_secs(1)).await;
    let third = session::start_by(&client, more()).await;
    assert!(!first.is_open().await && second.is_open().await, "the longest idle");
    // One whose client never said that it is ready goes first, and at once.
    for _ in 0..20 {
        session::start_by(&client, more()).await;
    }
    assert!(!third.is_open().await && second.is_open().await);
    assert_eq!(service.counts().sessions, 4);
    // One that is held stays, also while the flood goes on, and can go again afterwards.
    let held = holding(&client, &stage, second.call("x/hold", json!({"name": "held"})).id("held"), "held").await;
    sleep(Duration::from_secs(60)).await;
    session::open_by(&client, more()).await;
    too_much(client.send(more()).await, Some(ID.into())).await;
    // Not at the same moment as the other, or it would be chance which of the two goes first.
    sleep(Duration::from_secs(1)).await;
    stage.release("held");
    held.await.expect("an answer").events().await;
    sleep(Duration::from_secs(11)).await;
    session::start_by(&client, more()).await;
    session::open_by(&client, more()).await;
    assert!(second.is_open().await, "used after the other");
    assert!(other.is_open().await && nobody.is_open().await, "nobody else's goes for it");
}

/// Callers that have no share push out none of those who have one; those push out the longest idle of all.
async fn sessions_of_strangers(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().sessions(2))).await;
    let named = session_of(&client, cx.revision, "one").await;
    sleep(Duration::from_secs(3600 / 4)).await;
    let nobody = session::open(&client, cx.revision).await;
    sleep(Duration::from_secs(60)).await;
    let next = session::open(&client, cx.revision).await;
    assert!(!nobody.is_open().await && next.is_open().await);
    too_busy(client.send(session::initialize(cx.revision)).await, ID).await;
    sleep(Duration::from_secs(60)).await;
    assert!(next.is_open().await);
    let other = session_of(&client, cx.revision, "two").await;
    assert!(!named.is_open().await, "the longest idle");
    assert!(next.is_open().await && other.is_open().await);
}

/// The streams that GETs open count with those that listen.
async fn get_streams(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().listeners_by_caller(1));
    let client = cx.serve(service.clone()).await;
    let [first, second] =
        [session_of(&client, cx.revision, "one").await, session_of(&client, cx.revision, "one").await];
    let other = session_of(&client, cx.revision, "two").await;
    let open = first.listen().await;
    for _ in 0..3 {
        let refused = client.send(second.get()).await;
        assert_ne!(refused.header("retry-after"), "");
        refused.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
        too_busy(client.send(listen(Some("one"))).await, "sub").await;
    }
    let _other = other.listen().await;
    drop(open);
    while service.counts().streams > 1 {
        sleep(Duration::from_millis(1)).await;
    }
    let _open = second.listen().await;
}

async fn listeners_by_peer(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default().listeners_by_caller(1))).await;
    let subscribe = |peer: &str| listen(None).header(PEER, peer);
    let mut open = client.send(subscribe("one")).await;
    open.next_message().await.expect("an acknowledgement");
    too_busy(client.send(subscribe("one")).await, "sub").await;
    let mut other = client.send(subscribe("two")).await;
    other.next_message().await.expect("an acknowledgement");
    let _nobody = [listening(&client, None).await, listening(&client, None).await];
}

/// A hook may wait for ever, and its client waits for none of them.
async fn hooks_by_caller(cx: Cx) {
    let script = Stage::default().script().hearing(|_, _| pending());
    let client = cx.serve(serves(script, Limits::default())).await;
    let notify = |who| by(Call::of(cx.revision, "notifications/x", json!({})).notification(), who);
    for header in NAMED {
        for _ in 0..256 {
            accepted(client.send(notify(Some((header, "one")))).await).await;
        }
        too_much(client.send(notify(Some((header, "one")))).await, None).await;
        accepted(client.send(notify(Some((header, "two")))).await).await;
    }
    for _ in 0..(1024 - 2 * 257) {
        accepted(client.send(notify(None)).await).await;
    }
    for who in [None, Some((ACCOUNT, "two")), Some((PEER, "three"))] {
        client.send(notify(who)).await.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
    }
}

/// An id is kept beside its request, and so has a length.
async fn ids(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(serving(&stage, Limits::default())).await;
    let session = session::open(&client, cx.revision).await;
    // Quotes count.
    let (longest, longer) = ("i".repeat(1022), "i".repeat(1023));
    client.send(session.call("x/echo", json!({})).id(longest.clone())).await.result().await;
    let refused = client.send(session.call("x/echo", json!({})).id(longer.clone())).await;
    refused.error(StatusCode::BAD_REQUEST, -32600, Some(&longer.into())).await;
}

/// An application that panics over who the caller is lets nobody in, and the connection lives.
async fn who_calls(cx: Cx) {
    struct Heard(std::sync::mpsc::SyncSender<String>);
    impl Observer for Heard {
        fn misuse(&self, misuse: &Misuse) {
            let _ = self.0.try_send(misuse.to_string());
        }
    }
    for hook in ["principal", "peer"] {
        let (sender, heard) = std::sync::mpsc::sync_channel(100);
        let script = Script::new(|_, _| async { mcp_transport::Reply::empty() });
        let builder = StreamableHttpService::builder(script).observer(Heard(sender));
        let boom = |head: &http::request::Parts| {
            if head.headers.contains_key("x-panic") {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        };
        let builder = match hook {
            "principal" => builder.principal(move |head| {
                boom(head);
                None
            }),
            _ => builder.peer(move |head| {
                boom(head);
                None
            }),
        };
        let client = cx.serve(builder.build().expect("a service")).await;
        let answer = client.send(Call::of(cx.revision, "x/echo", json!({})).header("x-panic", "1")).await;
        assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
        let error = answer.json().await;
        assert_eq!(error["error"], json!({"code": -32603, "message": "Internal error"}));
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [format!("{hook} panicked: on purpose")]);
        if !cx.modern() {
            let session = session::open(&client, cx.revision).await;
            for call in [session.get(), session.call("x/echo", json!({}))] {
                let answer = client.send(call.header("x-panic", "1")).await;
                assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
            }
            assert!(session.is_open().await);
        }
        client.send(Call::of(cx.revision, "x/echo", json!({}))).await.result().await;
    }
}
