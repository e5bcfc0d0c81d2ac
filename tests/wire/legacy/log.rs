//! `logging/setLevel`, and which log messages a client up to 2025-11-25 gets.

use http::StatusCode;
use mcp_transport::{Capabilities, LogLevel, Reply, RequestContext, StreamableHttpService};
use serde_json::{Value, json};

use super::{Bench, Then};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, ID};
use crate::support::session;

pub fn register(wire: &mut Wire) {
    wire.legacy("log/level", Carriers::Every, levels);
    wire.legacy("log/level/unknown", Carriers::Every, unknown);
    wire.legacy("log/level/whose", Carriers::Every, whose);
    wire.legacy("log/level/sessionless", Carriers::Every, sessionless);
    wire.legacy("log/level/stream", Carriers::Every, rides_its_answer);
    wire.legacy("log/level/while-running", Carriers::Every, while_running);
}

const LEVELS: [(&str, LogLevel); 8] = [
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("notice", LogLevel::Notice),
    ("warning", LogLevel::Warning),
    ("error", LogLevel::Error),
    ("critical", LogLevel::Critical),
    ("alert", LogLevel::Alert),
    ("emergency", LogLevel::Emergency),
];

/// Logs at every level, the most severe first.
fn logging() -> Script {
    Script::new(|_, cx: RequestContext| async move {
        for (name, level) in LEVELS.into_iter().rev() {
            cx.log_from("here", level, json!({ "at": name })).await?;
        }
        Reply::empty()
    })
}

/// The levels of the messages that came before the response.
async fn heard(answer: Answer) -> Vec<String> {
    assert_eq!(answer.status, StatusCode::OK);
    if answer.header("content-type") == "application/json" {
        assert_eq!(answer.result().await, json!({}));
        return Vec::new();
    }
    let mut events = answer.events().await;
    let response = events.pop().expect("a response");
    assert_eq!(response["result"], json!({}));
    let level = |event: &Value| {
        let level = event["params"]["level"].clone();
        assert_eq!(
            event,
            &json!({
                "jsonrpc": "2.0",
                "method": "notifications/message",
                "params": {"level": level, "logger": "here", "data": {"at": level}},
            })
        );
        level.as_str().expect("a level").to_owned()
    };
    events.iter().map(level).collect()
}

/// The names of a level and of all above it, the most severe first.
fn from(level: &str) -> Vec<&'static str> {
    let least = LEVELS.iter().position(|(name, _)| *name == level).expect("a level");
    LEVELS[least..].iter().rev().map(|(name, _)| *name).collect()
}

/// Before any level is set `info` and above goes out; a level that is set holds until the next.
async fn levels(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(logging())).await;
    let session = session::open(&client, cx.revision).await;
    assert_eq!(heard(session.request("x/y", Value::Null).await).await, from("info"));
    for (name, _) in LEVELS.into_iter().chain(LEVELS.into_iter().rev()) {
        assert_eq!(session.result("logging/setLevel", json!({ "level": name })).await, json!({}));
        for _ in 0..2 {
            assert_eq!(heard(session.request("x/y", Value::Null).await).await, from(name));
        }
    }
    // Oddly spelled, it is the same level.
    let mut odd = session.call("logging/setLevel", json!({"level": "alert", "_meta": {}, "more": 1}));
    odd.replace("\"alert\"", "\"\\u0061lert\"");
    assert_eq!(client.send(odd).await.result().await, json!({}));
    assert_eq!(heard(session.request("x/y", Value::Null).await).await, from("alert"));
}

/// What is no level is refused in band, and the level stays what it was.
async fn unknown(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(logging())).await;
    let session = session::open(&client, cx.revision).await;
    session.result("logging/setLevel", json!({"level": "error"})).await;
    for params in [
        Value::Null,
        json!({}),
        json!({"level": "loud"}),
        json!({"level": "Error"}),
        json!({"level": "warn"}),
        json!({"level": "debug "}),
        json!({"level": ""}),
        json!({"level": 0}),
        json!({"level": null}),
        json!({"level": ["debug"]}),
        json!({"level": {"debug": null}}),
        json!({"Level": "debug"}),
    ] {
        let sessionless = Call::legacy(cx.revision, "logging/setLevel", params.clone());
        for call in [session.call("logging/setLevel", params), sessionless] {
            client.send(call).await.error(StatusCode::OK, -32602, Some(&ID.into())).await;
        }
    }
    assert_eq!(heard(session.request("x/y", Value::Null).await).await, from("error"));
}

/// A level is its session's.
async fn whose(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(logging())).await;
    let (loud, quiet) = (session::open(&client, cx.revision).await, session::start(&client, cx.revision).await);
    loud.result("logging/setLevel", json!({"level": "debug"})).await;
    quiet.result("logging/setLevel", json!({"level": "emergency"})).await;
    let other = session::open(&client, cx.revision).await;
    assert_eq!(heard(loud.request("x/y", Value::Null).await).await, from("debug"));
    assert_eq!(heard(quiet.request("x/y", Value::Null).await).await, from("emergency"));
    assert_eq!(heard(other.request("x/y", Value::Null).await).await, from("info"));
    assert_eq!(heard(client.send(Call::legacy(cx.revision, "x/y", Value::Null)).await).await, from("info"));

    // Whoever does not declare logging sends nothing, whatever the client asks for.
    let mute = cx.serve(StreamableHttpService::new(logging().declaring(Capabilities::new().tools()))).await;
    let session = session::open(&mute, cx.revision).await;
    let _ = session.request("logging/setLevel", json!({"level": "debug"})).await.text().await;
    assert_eq!(heard(session.request("x/y", Value::Null).await).await, [""; 0]);
}

/// Without a session there is nothing that a level could hold for.
async fn sessionless(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(logging())).await;
    let ask = async |client: &Client| heard(client.send(Call::legacy(cx.revision, "x/y", Value::Null)).await).await;
    for (name, _) in LEVELS {
        let set = Call::legacy(cx.revision, "logging/setLevel", json!({ "level": name }));
        assert_eq!(client.send(set).await.result().await, json!({}));
        assert_eq!(ask(&client).await, from("info"));
    }
}

/// What is logged while a request is answered goes to whoever sent that request, and nowhere else.
async fn rides_its_answer(cx: Cx) {
    let script = Script::new(|request, cx: RequestContext| async move {
        let tag = request.params::<Value>()?["tag"].clone();
        for _ in 0..2 {
            cx.log(LogLevel::Warning, &tag).await?;
            tokio::task::yield_now().await;
        }
        Reply::of(json!({ "tag": tag }))
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let (session, other) = (session::open(&client, cx.revision).await, session::open(&client, cx.revision).await);
    let (mut general, mut others) = (session.listen().await, other.listen().await);
    let calls = [("a", &session), ("b", &session), ("c", &other)]
        .map(|(tag, session)| super::send(&client, session.call("x/y", json!({ "tag": tag })).id(tag)));
    for (answer, tag) in calls.into_iter().zip(["a", "b", "c"]) {
        let events = answer.await.expect("an answer").events().await;
        assert_eq!(events.len(), 3);
        assert!(events[..2].iter().all(|event| event["params"] == json!({"level": "warning", "data": tag})));
        assert_eq!((&events[2]["id"], &events[2]["result"]["tag"]), (&json!(tag), &json!(tag)));
    }
    // Where only JSON is taken they are dropped, not sent another way.
    let json_only = session.call("x/y", json!({"tag": "d"})).header("accept", "application/json");
    assert_eq!(client.send(json_only).await.result().await["tag"], "d");
    session.end().await;
    other.end().await;
    assert_eq!((general.next_event().await, others.next_event().await), (None, None));
}

/// A level that is set while a request is being answered holds for the rest of its answer.
async fn while_running(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (asking, mut run) = bench.work(session.call("x/work", json!({"sends": 1}))).await;
    let mut answer = asking.await.expect("an answer");
    assert_eq!(answer.next_message().await.expect("an event")["method"], "notifications/x");
    for (level, logged) in [("error", LogLevel::Warning), ("debug", LogLevel::Debug)] {
        session.client.send(session.call("logging/setLevel", json!({ "level": level })).id(2)).await.result().await;
        run.cx.log(logged, level).await.expect("a text");
    }
    run.go(Then::Answer);
    let events = answer.events().await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["params"], json!({"level": "debug", "data": "debug"}));
}
