//! Batches, which are part of 2025-03-26 alone: who may send one, what of it runs, and what is answered.

mod ends;
mod streams;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{Era, Limits, Revision, Revisions, Sessions, StreamableHttpService};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client, assert_error};
use crate::support::request::{Call, MCP_METHOD, PROTOCOL_VERSION, SESSION_ID};
use crate::support::seen::Seen;
use crate::support::session::{self, Session, accepted};
use crate::support::stage::Stage;

/// The one revision that has batches.
const BATCHED: Revision = Revision::V2025_03_26;

pub fn register(wire: &mut Wire) {
    wire.only(BATCHED, "batch/accepted", Carriers::Every, where_accepted);
    wire.only(BATCHED, "batch/accepted/not-in-others", Carriers::Every, not_in_others);
    wire.only(BATCHED, "batch/accepted/by-policy", Carriers::Every, by_policy);
    wire.only(BATCHED, "batch/quiet", Carriers::Every, quiet);
    wire.only(BATCHED, "batch/initialize", Carriers::Every, initialize_inside);
    wire.only(BATCHED, "batch/bad", Carriers::Every, bad_elements);
    wire.only(BATCHED, "batch/bad/empty", Carriers::Every, empty);
    wire.only(BATCHED, "batch/bad/syntax", Carriers::Every, syntax);
    wire.only(BATCHED, "batch/bad/repeated-id", Carriers::Every, repeated_id);
    wire.only(BATCHED, "batch/bad/repeated-id-without-session", Carriers::Every, repeated_id_without_session);
    wire.only(BATCHED, "batch/bad/cap", Carriers::Every, cap);
    streams::register(wire);
    ends::register(wire);
}

/// Whoever sends a batch: a client in a session, or one that has none.
#[derive(Clone)]
struct Sender {
    client: Client,
    session: Option<Session>,
}

impl Sender {
    /// One of each kind.
    async fn both(client: &Client) -> [Self; 2] {
        let session = Some(session::open(client, BATCHED).await);
        [Self { client: client.clone(), session }, Self { client: client.clone(), session: None }]
    }

    fn batch(&self, elements: Value) -> Call {
        match &self.session {
            Some(session) => session.post(elements),
            None => Call::post(elements),
        }
    }

    async fn send(&self, elements: Value) -> Answer {
        self.client.send(self.batch(elements)).await
    }
}

/// A request of a batch.
fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut request = notification(method, params);
    request["id"] = id.into();
    request
}

fn notification(method: &str, params: Value) -> Value {
    let mut notification = json!({"jsonrpc": "2.0", "method": method});
    notification["params"] = params;
    notification
}

fn cancellation(id: impl Into<Value>) -> Value {
    notification("notifications/cancelled", json!({"requestId": id.into()}))
}

/// The responses of an answer that came as one JSON array, by the text of their ids.
async fn responses(answer: Answer) -> Vec<(String, Value)> {
    assert_eq!(answer.status, StatusCode::OK);
    let Value::Array(responses) = answer.json().await else {
        panic!("a batch is answered with an array");
    };
    sorted(responses)
}

fn sorted(responses: Vec<Value>) -> Vec<(String, Value)> {
    let id = |response: &Value| response.get("id").map_or_else(String::new, Value::to_string);
    let mut responses: Vec<_> = responses.into_iter().map(|response| (id(&response), response)).collect();
    responses.sort_by(|one, other| one.0.cmp(&other.0));
    responses
}

fn result(id: impl Into<Value>, result: Value) -> (String, Value) {
    let mut response = json!({"jsonrpc": "2.0", "id": id.into()});
    response["result"] = result;
    (response["id"].to_string(), response)
}

/// In a session the negotiated revision decides, whatever the header says; without one the header, and its absence.
async fn where_accepted(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let batch = || json!([request(1, "x/echo", json!({"n": 1})), request("a", "x/echo", json!({"n": 2}))]);
    let both = [result("a", json!({"n": 2})), result(1, json!({"n": 1}))];

    let session = session::open(&client, BATCHED).await;
    assert_eq!(responses(client.send(session.post(batch())).await).await, both);
    for named in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
        let call = session.post(batch()).header(PROTOCOL_VERSION, named.as_str());
        assert_eq!(responses(client.send(call).await).await, both, "{named}");
    }
    for call in [Call::post(batch()), Call::post(batch()).header(PROTOCOL_VERSION, "2025-03-26")] {
        assert_eq!(responses(client.send(call).await).await, both);
    }
    // One element makes an array too, and what stands around it does not matter.
    let one = || json!([request(1.0, "x/echo", json!({}))]);
    assert_eq!(client.send(Call::post(one())).await.json().await, json!([{"jsonrpc": "2.0", "id": 1.0, "result": {}}]));
    let spaced = format!("\u{feff} \r\n{}\t\n", one());
    assert_eq!(client.send(Call::post(Value::Null).raw(spaced)).await.json().await.as_array().map(Vec::len), Some(1));
    let typed =
        Call::post(one()).header("content-type", "Application/JSON; charset=utf-8").header(MCP_METHOD, "x/echo");
    assert_eq!(client.send(typed).await.status, StatusCode::OK);
    stage.take_runs();
}

/// Everywhere else an array is refused whole, and nothing of it runs.
async fn not_in_others(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let bodies = [
        json!([request(1, "x/echo", json!({}))]),
        json!([request(1, "x/echo", json!({})), notification("notifications/x", json!({}))]),
        json!([notification("notifications/x", json!({}))]),
        json!([{"jsonrpc": "2.0", "id": 1, "result": {}}]),
        json!([request(1, "initialize", json!({}))]),
        json!([7]),
        json!([]),
    ];
    let others = Revision::ALL.into_iter().filter(|revision| *revision != BATCHED && revision.era() == Era::Legacy);
    for revision in others {
        let session = session::open(&client, revision).await;
        for body in &bodies {
            let named = Call::post(body.clone()).header(PROTOCOL_VERSION, revision.as_str());
            let unnamed = session.post(body.clone());
            let misnamed = session.post(body.clone()).header(PROTOCOL_VERSION, "2025-03-26");
            for call in [named, unnamed, misnamed] {
                client.send(call).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
            }
        }
    }
    for body in &bodies {
        let modern = Call::post(body.clone()).header(PROTOCOL_VERSION, "2026-07-28").header(MCP_METHOD, "x/echo");
        client.send(modern).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    let claim = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let session = session::open(&client, BATCHED).await;
    let claimed = json!([request(1, "x/echo", json!({})), request(2, "x/echo", json!({"_meta": claim}))]);
    for call in [Call::post(claimed.clone()), session.post(claimed)] {
        client.send(call).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    // What is wrong with its head comes first.
    let batch = || json!([request(1, "x/echo", json!({}))]);
    let unknown = Call::post(batch()).header(SESSION_ID, "none");
    client.send(unknown).await.error(StatusCode::NOT_FOUND, -32600, None).await;
    for version in ["2025-03-27", "1", ""] {
        let unserved = session.post(batch()).header(PROTOCOL_VERSION, version);
        client.send(unserved).await.error(StatusCode::BAD_REQUEST, -32022, None).await;
    }
    let doubled = session.post(batch()).also(SESSION_ID, &session.id);
    client.send(doubled).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    assert_eq!(stage.take_runs(), 0);
}

/// Where 2025-03-26 is not served there are no batches; where sessions are demanded there are none without.
async fn by_policy(cx: Cx) {
    let stage = Stage::default();
    let batch = || json!([request(1, "x/echo", json!({}))]);
    let serving = |revisions, sessions| {
        let builder = StreamableHttpService::builder(stage.script()).revisions(revisions).sessions(sessions);
        builder.build().expect("a service")
    };
    let without = serving(Revisions::all().without(BATCHED), Sessions::Optional);
    let client = cx.serve(without).await;
    for call in [Call::post(batch()), Call::post(batch()).header(PROTOCOL_VERSION, "2025-03-26")] {
        let error = client.send(call).await.error(StatusCode::BAD_REQUEST, -32022, None).await;
        assert_eq!(error["data"]["requested"], "2025-03-26");
    }
    let asked = session::start_by(&client, session::initialize(BATCHED)).await;
    assert_eq!(asked.revision, Revision::V2025_11_25);
    client.send(asked.post(batch())).await.error(StatusCode::BAD_REQUEST, -32600, None).await;

    let client = cx.serve(serving(Revisions::all(), Sessions::Required)).await;
    client.send(Call::post(batch())).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    assert_eq!(stage.take_runs(), 0);
    let session = session::open(&client, BATCHED).await;
    assert_eq!(responses(client.send(session.post(batch())).await).await, [result(1, json!({}))]);

    let client = cx.serve(serving(Revisions::all(), Sessions::Off)).await;
    assert_eq!(responses(client.send(Call::post(batch())).await).await, [result(1, json!({}))]);
    let alone = serving(Revisions::only([BATCHED]), Sessions::Optional);
    let client = cx.serve(alone).await;
    assert_eq!(responses(client.send(Call::post(batch())).await).await, [result(1, json!({}))]);
}

/// Nothing to answer: 202, whatever the client accepts. Notifications are heard in order, responses are dropped.
async fn quiet(cx: Cx) {
    let seen = Seen::default();
    let client = cx.serve(StreamableHttpService::new(seen.script())).await;
    for sender in Sender::both(&client).await {
        seen.take();
        let told = json!([
            notification("notifications/a", json!({})),
            {"jsonrpc": "2.0", "id": 5, "result": {}},
            {"jsonrpc": "2.0", "method": "notifications/\u{62}"},
            {"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}},
            {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}},
            notification("notifications/cancelled", json!({"requestId": 77})),
            notification("notifications/cancelled", json!({})),
            notification("notifications/initialized", json!({})),
            notification("notifications/roots/list_changed", json!({})),
            notification("initialize", json!({})),
        ]);
        for accept in ["application/json", "text/event-stream", "application/json, text/event-stream"] {
            accepted(sender.client.send(sender.batch(told.clone()).header(ACCEPT.as_str(), accept)).await).await;
            let heard = ["notifications/a", "notifications/b", "notifications/roots/list_changed", "initialize"];
            let heard: Vec<_> = heard.into_iter().map(|method| (method.to_owned(), BATCHED)).collect();
            assert_eq!(seen.take(), heard);
        }
        accepted(sender.send(json!([{"jsonrpc": "2.0", "id": 5, "result": {}}])).await).await;
        assert_eq!(seen.take(), []);
        // One request beside them, and there is something to say: to that one alone.
        let mut mixed = told;
        mixed.as_array_mut().expect("an array").insert(3, request(9, "ping", json!({})));
        assert_eq!(responses(sender.send(mixed).await).await, [result(9, json!({}))]);
    }
}

/// It is refused as that element, opens no session, and the rest runs.
async fn initialize_inside(cx: Cx) {
    let stage = Stage::default();
    let service = StreamableHttpService::new(stage.script());
    let client = cx.serve(service.clone()).await;
    for sender in Sender::both(&client).await {
        let params =
            json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        let inside = request("i", "initialize", params);
        let answer =
            sender.send(json!([request(1, "x/echo", json!({"n": 1})), inside, request(2, "ping", json!({}))])).await;
        assert_eq!(answer.header(SESSION_ID), "");
        let [(_, refused), rest @ ..] = &responses(answer).await[..] else { panic!("no answer") };
        assert_error(refused.clone(), -32600, Some(&"i".into()));
        assert_eq!(rest, [result(1, json!({"n": 1})), result(2, json!({}))]);

        let escaped =
            sender.batch(json!([inside])).raw(json!([inside]).to_string().replace("initialize", r"initi\u0061lize"));
        for call in [sender.batch(json!([inside])), escaped] {
            let answer = sender.client.send(call).await;
            assert_eq!(answer.header(SESSION_ID), "");
            let [(_, refused)] = &responses(answer).await[..] else { panic!("one answer") };
            assert_error(refused.clone(), -32600, Some(&"i".into()));
        }
    }
    assert_eq!(service.counts().sessions, 1, "the one that was opened by itself");
}

async fn empty(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    for sender in Sender::both(&client).await {
        for body in ["[]", "[ ]", "\u{feff}[\n]\n"] {
            for accept in ["application/json", "text/event-stream", "*/*"] {
                let call = sender.batch(Value::Null).raw(body).header(ACCEPT.as_str(), accept);
                sender.client.send(call).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
            }
        }
    }
}

/// What is no JSON is no batch: nothing of it runs, however right its beginning is.
async fn syntax(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let right = request(1, "x/echo", json!({}));
    for sender in Sender::both(&client).await {
        for body in
            [format!("[{right}"), format!("[{right},]"), format!("[{right}] 1"), format!("[{right},{{\"id\":}}]")]
        {
            let call = sender.batch(Value::Null).raw(body);
            sender.client.send(call).await.error(StatusCode::BAD_REQUEST, -32700, None).await;
        }
        let deep = format!("[{right},{}{}]", "[".repeat(200), "]".repeat(200));
        let call = sender.batch(Value::Null).raw(deep);
        sender.client.send(call).await.error(StatusCode::BAD_REQUEST, -32700, None).await;
    }
    assert_eq!(stage.take_runs(), 0);
}

/// Each element that is no message, and the id that its refusal carries.
const BAD: [(&str, &str); 18] = [
    ("1", ""),
    ("null", ""),
    ("\"ping\"", ""),
    ("[]", ""),
    (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, ""),
    ("{}", ""),
    (r#"{"id":"a","method":"x/echo"}"#, r#""a""#),
    (r#"{"jsonrpc":"1.0","id":"b","method":"x/echo"}"#, r#""b""#),
    (r#"{"jsonrpc":2.0,"id":"c","method":"x/echo"}"#, r#""c""#),
    (r#"{"jsonrpc":"2.0","id":"d","method":7}"#, r#""d""#),
    (r#"{"jsonrpc":"2.0","id":"e","method":"x/echo","params":[]}"#, r#""e""#),
    (r#"{"jsonrpc":"2.0","id":null,"method":"x/echo"}"#, ""),
    (r#"{"jsonrpc":"2.0","id":1.5,"method":"x/echo"}"#, ""),
    (r#"{"jsonrpc":"2.0","id":7,"i\u0064":8,"method":"x/echo"}"#, ""),
    (
        r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"x/echo","method":"x/echo"}"#,
        "12345678901234567890123",
    ),
    (r#"{"jsonrpc":"2.0","method":"notifications/x","params":7}"#, ""),
    (r#"{"jsonrpc":"2.0","id":"f"}"#, r#""f""#),
    (r#"{"jsonrpc":"2.0","id":"g","result":{},"error":{"code":1,"message":"x"}}"#, r#""g""#),
];

/// Each gets an error of its own, and the rest runs.
async fn bad_elements(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    for sender in Sender::both(&client).await {
        for (bad, id) in BAD {
            let (first, last) = (request("y", "x/echo", json!({"n": 1})), request("z", "x/echo", json!({"n": 2})));
            for body in [
                format!("[{bad},{first},{last}]"),
                format!("[{first},{bad},{last}]"),
                format!("[{first},{last},{bad}]"),
            ] {
                let text = sender.client.send(sender.batch(Value::Null).raw(body)).await.text().await;
                let refusal =
                    if id.is_empty() { r#"{"jsonrpc":"2.0","error":"#.to_owned() } else { format!(r#""id":{id}"#) };
                assert_eq!(text.matches(&refusal).count(), 1, "{bad}: {text}");
                let all: Vec<Value> = serde_json::from_str(&text).expect("an array");
                let (refused, ran): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|answer| answer.get("error").is_some());
                assert_eq!(sorted(ran), [result("y", json!({"n": 1})), result("z", json!({"n": 2}))], "{bad}");
                let [refused] = &refused[..] else { panic!("{bad} gets one error: {refused:?}") };
                assert_eq!(refused["error"]["code"], -32600, "{bad}");
                assert_eq!(refused.get("id").is_some(), !id.is_empty(), "{bad}");
                assert_eq!(stage.take_runs(), 2, "{bad}");
            }
        }
        // All at once: still an answer, and no status but 200.
        let all: Vec<_> = BAD.iter().map(|(bad, _)| *bad).collect();
        let body = format!("[{}]", all.join(","));
        let refused = responses(sender.client.send(sender.batch(Value::Null).raw(body.clone())).await).await;
        assert_eq!(refused.len(), BAD.len());
        assert!(refused.iter().all(|(_, refused)| refused["error"]["code"] == -32600));
        let call = sender.batch(Value::Null).raw(body).header(ACCEPT.as_str(), "text/event-stream");
        assert_eq!(sender.client.send(call).await.events().await.len(), BAD.len());
        assert_eq!(stage.take_runs(), 0);
    }
}

/// An id being answered in the session, by this batch or another POST, is refused to the second; then it is free again.
/// Nothing is in flight between POSTs without a session, but within one the id is.
async fn repeated_id_without_session(cx: Cx) {
    let stage = Stage::default();
    let client = cx.serve(StreamableHttpService::new(stage.script())).await;
    let twice =
        json!([request(4, "x/echo", json!({})), request(4.0, "x/echo", json!({})), request("4", "x/echo", json!({}))]);
    let answer = client.send(Call::post(twice)).await;
    let all: Vec<Value> = serde_json::from_str(&answer.text().await).expect("an array");
    let (refused, ran): (Vec<_>, Vec<_>) = all.into_iter().partition(|answer| answer.get("error").is_some());
    assert_eq!((refused.len(), ran.len()), (1, 2), "{refused:?}");
    assert_error(refused[0].clone(), -32600, Some(&json!(4.0)));
}

async fn repeated_id(cx: Cx) {
    let stage = Stage::default();
    let service = StreamableHttpService::new(stage.script());
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, BATCHED).await;
    let hold = session.call("x/hold", json!({"name": "held"})).id("one");
    let held = tokio::spawn({
        let client = client.clone();
        async move { client.send(hold).await.result().await }
    });
    stage.entered("held").await;
    stage.take_runs();
    let body =
        |id: &str| format!(r#"[{{"jsonrpc":"2.0","id":{id},"method":"x/echo"}},{}]"#, request(2, "ping", json!({})));
    for id in [r#""one""#, r#""\u006fne""#] {
        let all = responses(client.send(session.post(Value::Null).raw(body(id))).await).await;
        let [(_, refused), (_, pong)] = &all[..] else { panic!("two answers") };
        assert_error(refused.clone(), -32600, Some(&"one".into()));
        assert_eq!(pong["id"], 2);
    }
    // Another session has ids of its own, and so has a number.
    let other = session::open(&client, BATCHED).await;
    for sender in [&other, &session] {
        let id = if sender.id == session.id { json!(1) } else { json!("one") };
        let all = responses(client.send(sender.post(json!([request(id, "x/echo", json!({}))]))).await).await;
        assert!(all[0].1.get("result").is_some());
    }
    stage.take_runs();
    let twice =
        json!([request(4, "x/echo", json!({})), request(4.0, "x/echo", json!({})), request("4", "x/echo", json!({}))]);
    let all: Vec<Value> = serde_json::from_str(&client.send(session.post(twice)).await.text().await).expect("an array");
    let (refused, ran): (Vec<_>, Vec<_>) = all.into_iter().partition(|answer| answer.get("error").is_some());
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_error(refused[0].clone(), -32600, Some(&4.0.into()));
    assert_eq!((ran.len(), stage.take_runs()), (2, 2));

    stage.release("held");
    held.await.expect("an answer");
    let again = json!([request("one", "x/echo", json!({})), request(4, "x/echo", json!({}))]);
    assert!(
        responses(client.send(session.post(again)).await)
            .await
            .iter()
            .all(|(_, answer)| answer.get("result").is_some())
    );
}

/// The cap counts every element, and is judged before anything runs.
async fn cap(cx: Cx) {
    let stage = Stage::default();
    let limits = Limits::default().batch(3);
    let small = StreamableHttpService::builder(stage.script()).limits(limits).build().expect("a service");
    for (service, most) in [(small, 3), (StreamableHttpService::new(stage.script()), 100)] {
        let client = cx.serve(service).await;
        for sender in Sender::both(&client).await {
            let echo = |n: usize| request(n, "x/echo", json!({}));
            let full: Vec<_> = (0..most).map(echo).collect();
            assert_eq!(responses(sender.send(json!(full)).await).await.len(), most);
            assert_eq!(stage.take_runs(), most);
            let quiet = notification("notifications/x", json!({}));
            for one_more in [echo(most), quiet, json!(7), json!({"jsonrpc": "2.0", "id": 1, "result": {}}), json!({})] {
                for at in [0, most] {
                    let mut long = full.clone();
                    long.insert(at, one_more.clone());
                    let answer = sender.send(json!(long)).await;
                    answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
                }
            }
            sender.send(json!(vec![1; 50_000])).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
            assert_eq!(stage.take_runs(), 0);
        }
    }
}
