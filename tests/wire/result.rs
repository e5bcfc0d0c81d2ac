//! What becomes of one result, written in the newest shape, at the clients of each revision.

use http::StatusCode;
use mcp_transport::{
    Capabilities, Question, Reply, RequestContext, ResultShape, Revision, StreamableHttpBuilder, StreamableHttpService,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::peer::{Peer, initialize, request};
use crate::support::request::Call;
use crate::support::session;

pub fn register(wire: &mut Wire) {
    wire.any("result/shape", Carriers::Every, shaped);
    wire.any("result/shape/as-written", Carriers::Every, as_written);
    wire.any("result/shape/stdio", Carriers::Clock, on_stdio);
    wire.any("result/shape/untouched", Carriers::Every, untouched);
    wire.any_legacy("result/shape/batch", Carriers::Every, in_a_batch);
    wire.any_legacy("result/shape/elicitation-id", Carriers::Every, elicitation_id);
    wire.any_legacy("result/shape/sampling", Carriers::Every, sampling);
}

/// A method, what its handler writes, and what clients of a revision read.
type Case = (&'static str, Value, fn(Revision) -> Value);

const OLD: Revision = Revision::V2024_11_05;
const UNSTRUCTURED: [Revision; 2] = [OLD, Revision::V2025_03_26];

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn audio() -> Value {
    json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"})
}

fn link() -> Value {
    json!({"type": "resource_link", "name": "notes", "uri": "file:///notes", "title": "Notes"})
}

/// The content blocks of [`link`] and [`audio`] as clients of a revision read them.
fn blocks(revision: Revision) -> [Value; 2] {
    let link = if UNSTRUCTURED.contains(&revision) { text("notes: file:///notes") } else { link() };
    let audio = if revision == OLD { text("[Audio: audio/wav]") } else { audio() };
    [link, audio]
}

fn tool(output: Option<Value>) -> Value {
    let mut tool = json!({"name": "t", "inputSchema": {"type": "object"}});
    if let Some(output) = output {
        tool["outputSchema"] = output;
    }
    tool
}

/// Every rule of the edge once. The handler of a client of 2026-07-28 is never edited.
fn cases() -> Vec<Case> {
    let object = || Some(json!({"type": "object", "properties": {}}));
    vec![
        ("tools/call", json!({"content": [link(), text("a"), audio()], "isError": false}), |revision| {
            let [link, audio] = blocks(revision);
            json!({"content": [link, text("a"), audio], "isError": false})
        }),
        (
            "prompts/get",
            json!({"messages": [{"role": "user", "content": link()}, {"role": "user", "content": audio()}]}),
            {
                |revision| {
                    let message = |content| json!({"role": "user", "content": content});
                    json!({"messages": blocks(revision).map(message)})
                }
            },
        ),
        ("tools/call", json!({"content": [], "structuredContent": {"n": 1}}), |revision| {
            if UNSTRUCTURED.contains(&revision) {
                return json!({"content": [text(r#"{"n":1}"#)]});
            }
            json!({"content": [], "structuredContent": {"n": 1}})
        }),
        ("tools/call", json!({"content": [text("a")], "structuredContent": [1]}), |revision| match revision {
            Revision::V2025_06_18 | Revision::V2025_11_25 => json!({"content": [text("a")]}),
            _ => json!({"content": [text("a")], "structuredContent": [1]}),
        }),
        ("tools/list", json!({"tools": [tool(object()), tool(Some(json!({"type": "array"})))], "ttlMs": 5}), {
            move |revision| {
                let array = Some(json!({"type": "array"}));
                let array = if UNSTRUCTURED.contains(&revision) { array } else { None };
                json!({"tools": [tool(Some(json!({"type": "object", "properties": {}}))), tool(array)]})
            }
        }),
        (
            "resources/read",
            json!({"contents": [], "ttlMs": 5, "cacheScope": "public", "resultType": "complete"}),
            |_| json!({"contents": []}),
        ),
        (
            "x/y",
            json!({"resultType": "complete", "ttlMs": 5, "content": [audio()]}),
            |_| json!({"ttlMs": 5, "content": [audio()]}),
        ),
    ]
}

/// A handler that answers the case its params name; with `streams`, on a stream.
fn script() -> Script {
    let script = Script::new(|request, cx: RequestContext| async move {
        let params: Value = request.params()?;
        if params["streams"] == true {
            cx.notify("notifications/x", json!({})).await?;
        }
        let case = usize::try_from(params["case"].as_u64().unwrap_or_default()).expect("a small number");
        Reply::of(&cases()[case].1)
    });
    script.declaring(Capabilities::new().tools().prompts().resources())
}

fn service(configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> StreamableHttpService {
    configure(StreamableHttpService::builder(script())).build().expect("a service")
}

/// The result of a case, in every way it can travel to a client of the revision, and the revision it is read in.
async fn results(cx: Cx, client: &Client, case: usize, method: &str) -> Vec<(Revision, Value)> {
    let params = |streams| json!({"name": "t", "uri": "a:b", "case": case, "streams": streams});
    let mut calls = Vec::new();
    for streams in [false, true] {
        calls.push((sessionless(cx.revision), Call::of(cx.revision, method, params(streams))));
    }
    if !cx.modern() {
        let session = session::open(client, cx.revision).await;
        calls.extend([false, true].map(|streams| (cx.revision, session.call(method, params(streams)))));
    }
    let mut results = Vec::new();
    for (revision, call) in calls {
        let answer = client.send(call).await;
        let response = match answer.header("content-type") {
            "text/event-stream" => answer.events().await.pop().expect("a response"),
            _ => answer.json().await,
        };
        results.push((revision, response["result"].clone()));
    }
    results
}

/// The first revision has no version header: outside a session its clients are taken for the next one's.
fn sessionless(revision: Revision) -> Revision {
    if revision == OLD { Revision::V2025_03_26 } else { revision }
}

async fn shaped(cx: Cx) {
    let client = cx.serve(service(|builder| builder)).await;
    for (case, (method, written, read)) in cases().into_iter().enumerate() {
        for (revision, mut result) in results(cx, &client, case, method).await {
            let mut expected = read(revision);
            if cx.modern() {
                expected = written.clone();
                unstamp(&mut result, &mut expected);
            }
            assert_eq!(result, expected, "{method}");
        }
    }
}

async fn as_written(cx: Cx) {
    let client = cx.serve(service(|builder| builder.result_shape(ResultShape::AsWritten))).await;
    for (case, (method, written, _)) in cases().into_iter().enumerate() {
        for (_, mut result) in results(cx, &client, case, method).await {
            let mut expected = written.clone();
            if cx.modern() {
                unstamp(&mut result, &mut expected);
            }
            assert_eq!(result, expected, "{method}");
        }
    }
}

/// Before the handshake in the shape of the oldest revision, then in that of the negotiated one.
async fn on_stdio(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, script());
    for opened in [false, true] {
        if opened && !cx.modern() {
            peer.ask(initialize("open", cx.revision)).await;
        }
        for (case, (method, written, read)) in cases().into_iter().enumerate() {
            let params = json!({"name": "t", "uri": "a:b", "case": case});
            let mut result = peer.ask(request(cx.revision, case, method, params)).await;
            let mut expected = read(if opened { cx.revision } else { OLD });
            if cx.modern() {
                expected = written.clone();
                unstamp(&mut result, &mut expected);
            }
            assert_eq!(result, expected, "{method}");
        }
    }
    let mut peer = Peer::built(cx.revision, script(), 1 << 20, |builder| builder.result_shape(ResultShape::AsWritten));
    let result = peer.ask(request(cx.revision, 1, "x/y", json!({"case": 6}))).await;
    assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(5)));
}

/// Leaves out what 2026-07-28 has on every result.
fn unstamp(result: &mut Value, expected: &mut Value) {
    for name in ["_meta", "resultType", "ttlMs", "cacheScope"] {
        for value in [&mut *result, &mut *expected] {
            value.as_object_mut().expect("an object").remove(name);
        }
    }
}

/// What need not change keeps its bytes, beside what does change too.
async fn untouched(cx: Cx) {
    let script = Script::new(|request, _| async move {
        let edited = request.params::<Value>()?["edited"] == true;
        let block = if edited { r#"{"type":"audio"}"# } else { r#"{"type":"text","text":"\u0061"}"# };
        let json = format!(r#"{{"x":12345678901234567890123.450e+1,"content":[{block}],"\u0079":[ 1.0 ]}}"#);
        Reply::of(RawValue::from_string(json).expect("JSON"))
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for edited in [false, true] {
        let params = json!({"name": "t", "edited": edited});
        let call = match cx.modern() {
            true => Call::of(cx.revision, "tools/call", params),
            false => session::open(&client, cx.revision).await.call("tools/call", params),
        };
        let text = client.send(call).await.text().await;
        let block = match (edited, cx.revision) {
            (false, _) => r#"{"type":"text","text":"\u0061"}"#,
            (true, OLD) => r#"{"type":"text","text":"[Audio]"}"#,
            (true, _) => r#"{"type":"audio"}"#,
        };
        let rest = format!(r#""result":{{"x":12345678901234567890123.450e+1,"content":[{block}],"\u0079":[ 1.0 ]"#);
        assert!(text.contains(&rest), "{text}");
    }
}

async fn in_a_batch(cx: Cx) {
    if cx.revision != Revision::V2025_03_26 {
        return; // no other has batches
    }
    let client = cx.serve(service(|builder| builder)).await;
    let session = session::open(&client, cx.revision).await;
    let params = json!({"name": "t", "case": 2});
    let batch = json!([{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}]);
    let answer = client.send(session.post(batch)).await.json().await;
    assert_eq!(answer[0]["result"], json!({"content": [text(r#"{"n":1}"#)]}));
}

/// A client of a session that declared everything, and the handler's one question to it.
async fn asked(cx: Cx, question: fn() -> Question) -> Option<Value> {
    let script = Script::new(move |_, cx: RequestContext| async move {
        cx.ask("q", question()).await?;
        Reply::empty()
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let capabilities = json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}});
    let session = session::open_by(&client, session::initialize_with(cx.revision.as_str(), capabilities)).await;
    let mut answer = session.request("tools/call", json!({"name": "t"})).await;
    if answer.header("content-type") != "text/event-stream" {
        assert_eq!(answer.json().await["error"]["code"], -32603);
        return None;
    }
    let asked = answer.next_message().await.expect("a question");
    let refused = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}});
    assert_eq!(client.send(session.post(refused)).await.status, StatusCode::ACCEPTED);
    assert_eq!(answer.events().await.len(), 1);
    Some(asked["params"].clone())
}

/// 2025-11-25 wants an id; the handler need not know.
async fn elicitation_id(cx: Cx) {
    let question = || Question::url("Sign in", "https://example.com/in").expect("a question");
    let (Some(mut one), Some(other)) = (asked(cx, question).await, asked(cx, question).await) else {
        assert_ne!(cx.revision, Revision::V2025_11_25);
        return;
    };
    assert_eq!(cx.revision, Revision::V2025_11_25);
    let id = one.as_object_mut().and_then(|params| params.remove("elicitationId")).expect("an id");
    assert!(id.as_str().is_some_and(|id| id.len() >= 16), "{id}");
    assert_ne!(id, other["elicitationId"]);
    assert_eq!(one, json!({"mode": "url", "message": "Sign in", "url": "https://example.com/in"}));
}

async fn sampling(cx: Cx) {
    let question = || {
        let content = json!([text("a"), audio()]);
        let params = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 9});
        Question::sampling(params).expect("a question")
    };
    let asked = asked(cx, question).await.expect("every revision samples");
    let message = |content| json!({"role": "user", "content": content});
    let [_, audio_read] = blocks(cx.revision);
    let messages = match cx.revision {
        Revision::V2025_11_25 => json!([message(json!([text("a"), audio()]))]),
        _ => json!([message(text("a")), message(audio_read)]),
    };
    assert_eq!(asked, json!({"messages": messages, "maxTokens": 9}));
}
