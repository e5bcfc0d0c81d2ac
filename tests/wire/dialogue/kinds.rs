//! What a client may be asked at all.

use std::time::Duration;

use http::StatusCode;
use mcp_transport::{AskError, ElicitationAction, McpError, Question, Reply, Request, RequestContext, Revision};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, timeout};

use super::related::{answer, next, result};
use super::{Bench, modern, text, told, with_keys};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::dialogue::{self, asked, everything, finish, form, in_rounds, in_session, question, sampling};
use crate::support::handler::Script;
use crate::support::request::{CAPABILITIES, Call, meta};
use crate::support::session;

pub fn register(wire: &mut Wire) {
    wire.legacy("ask/capability", Carriers::Every, capability);
    wire.legacy("ask/capability/initialized", Carriers::Every, initialized);
    wire.legacy("ask/capability/as-error", Carriers::Every, as_error);
    wire.legacy("ask/sessionless", Carriers::Every, sessionless);
    wire.modern("mrtr/kinds", Carriers::Every, kinds);
    wire.modern("mrtr/kinds/methods", Carriers::Every, methods);
    wire.modern("mrtr/kinds/params", Carriers::Every, params);
    wire.modern("mrtr/kinds/as-error", Carriers::Every, as_error);
    wire.modern("mrtr/kinds/elsewhere", Carriers::Every, elsewhere);
    wire.modern("requests/none/asks", Carriers::Every, no_requests);
}

/// A question by what its arguments say.
fn of(request: &Request) -> Result<Question, McpError> {
    let kind: String = request.arguments()?;
    Ok(match kind.as_str() {
        "form" => form("?"),
        "url" => Question::url("?", "https://example.test/")?,
        "sampling" => sampling("?"),
        "tools" => Question::sampling(json!({"messages": [], "maxTokens": 1, "tools": []}))?,
        "roots" => Question::roots()?,
        other => Question::new(other.to_owned(), json!({}))?,
    })
}

/// What the client has to declare, the first revision that has the question, and the error where it cannot be asked.
const KINDS: [(&str, Revision, &str); 5] = [
    ("form", Revision::V2025_06_18, r#"["elicitation", "form"]"#),
    ("url", Revision::V2025_11_25, r#"["elicitation", "url"]"#),
    ("sampling", Revision::V2024_11_05, r#"["sampling"]"#),
    ("tools", Revision::V2024_11_05, r#"["sampling", "tools"]"#),
    ("roots", Revision::V2024_11_05, r#"["roots"]"#),
];

/// What clients declare, and which questions can be asked of them then.
fn declared() -> Vec<(Value, &'static [&'static str])> {
    vec![
        (json!({}), &[]),
        (everything(), &["form", "url", "sampling", "tools", "roots"]),
        (json!({"elicitation": {}, "roots": {"listChanged": true}}), &["form", "roots"]),
        (json!({"elicitation": {"url": {}}, "sampling": {}}), &["url", "sampling"]),
        (json!({"elicitation": null, "sampling": null, "roots": false, "experimental": {"x": {}}}), &[]),
    ]
}

fn unsupported(cx: Cx, kind: &str) -> String {
    let (_, first, capability) = KINDS.iter().find(|(name, ..)| *name == kind).expect("a kind");
    let capability = if cx.revision < *first { "[]" } else { capability };
    format!("Unsupported {{ capability: {capability} }}")
}

fn first(kind: &str) -> Revision {
    KINDS.iter().find(|(name, ..)| *name == kind).expect("a kind").1
}

/// Only what the revision has and the client declared is sent.
async fn capability(cx: Cx) {
    let bench = Bench::open(cx, |request, cx| async move {
        let question = of(&request)?;
        text(told(&cx.ask("q", question).await))
    })
    .await;
    for (capabilities, can) in declared() {
        let initialize = session::initialize_with(cx.revision.as_str(), capabilities.clone());
        let session = session::open_by(&bench.client, initialize).await;
        for (kind, ..) in KINDS {
            let call = session.call("tools/call", json!({"name": "t", "arguments": kind}));
            let can = can.contains(&kind) && cx.revision >= first(kind);
            let mut sent = Vec::new();
            let played = in_session(&session, call, |asked| {
                sent.push(asked.clone());
                let url = asked.params["mode"] == "url";
                Some(if url { json!({"action": "decline"}) } else { asked.says("yes") })
            })
            .await;
            let expected = match kind {
                _ if !can => unsupported(cx, kind),
                "url" => "Decline".to_owned(),
                _ => "yes".to_owned(),
            };
            assert_eq!((played.text(), sent.len()), (&*expected, usize::from(can)), "{kind} of {capabilities}");
        }
        // Whether it knows another method, the application has to know.
        let call = session.call("tools/call", json!({"name": "t", "arguments": "x/y"}));
        let played = in_session(&session, call, |asked| {
            assert_eq!((&*asked.method, &asked.params), ("x/y", &json!({})));
            Some(json!({"content": {"text": "yes"}}))
        })
        .await;
        assert_eq!(played.text(), "yes");
    }
}

/// A client that has not said that it is initialized is not asked yet.
async fn initialized(cx: Cx) {
    let (tell, mut outcomes) = unbounded_channel();
    let script = Script::new(|_, cx| async move { text(told(&cx.ask("q", question(&cx, "q")).await)) });
    let script = script.hearing(move |_, cx| {
        let tell = tell.clone();
        async move {
            let _ = tell.send(told(&cx.ask("q", question(&cx, "q")).await));
        }
    });
    let bench = Bench::of(cx, script, |builder| builder).await;
    let initialize = session::initialize_with(cx.revision.as_str(), everything());
    let session = session::start_by(&bench.client, initialize).await;
    let general = session.listen().await;
    let call = || session.call("tools/call", json!({"name": "t"}));
    let early = session.client.send(call()).await.result().await;
    assert_eq!(early["content"][0]["text"], "Unreachable");
    session.notify("notifications/x", Value::Null).await;
    assert_eq!(outcomes.recv().await.expect("an outcome"), "Unreachable");
    session.notify("notifications/initialized", Value::Null).await;
    let mut stream = session.client.send(call()).await;
    let (id, asked) = next(&mut stream).await;
    answer(&session, &id, asked.says("yes")).await;
    assert_eq!(result(stream).await, "yes");
    session.end().await;
    assert_eq!(general.events().await, [Value::Null; 0]);
}

/// A handler that uses `?`: on 2026-07-28 the client reads what it would have to declare; an older one nothing.
async fn as_error(cx: Cx) {
    let bench = Bench::with(
        cx,
        |request, cx| async move {
            let question = of(&request)?;
            text(told(&Ok(cx.ask("q", question).await?)))
        },
        with_keys,
    )
    .await;
    for (kind, required) in [
        ("form", json!({"elicitation": {"form": {}}})),
        ("url", json!({"elicitation": {"url": {}}})),
        ("sampling", json!({"sampling": {}})),
        ("tools", json!({"sampling": {"tools": {}}})),
        ("roots", json!({"roots": {}})),
    ] {
        let params = json!({"name": "t", "arguments": kind});
        if cx.modern() {
            let answer = bench.client.send(Call::modern("tools/call", params)).await;
            let error = answer.error(StatusCode::BAD_REQUEST, -32021, Some(&json!(1))).await;
            assert_eq!(error["data"], json!({"requiredCapabilities": required}));
        } else {
            let session = session::open(&bench.client, cx.revision).await;
            let answer = session.request("tools/call", params).await;
            let error = answer.error(StatusCode::OK, -32603, Some(&json!(1))).await;
            assert!(error.get("data").is_none(), "{error}");
        }
    }
}

/// Without a session there is nobody to hand an answer to.
async fn sessionless(cx: Cx) {
    let bench = Bench::open(cx, |request, cx| async move {
        match request.name() {
            Some("tell") => text(told(&cx.ask("q", of(&request)?).await)),
            _ => text(told(&Ok(cx.ask("q", of(&request)?).await?))),
        }
    })
    .await;
    let begun = Instant::now();
    for kind in ["form", "url", "sampling", "tools", "roots", "x/y"] {
        let call = |name| Call::legacy(cx.revision, "tools/call", json!({"name": name, "arguments": kind}));
        let told = bench.client.send(call("tell")).await.result().await;
        assert_eq!(told["content"][0]["text"], "Unreachable", "{kind}");
        bench.client.send(call("fail")).await.error(StatusCode::OK, -32603, Some(&json!(1))).await;
        assert_eq!(bench.heard.take(), [format!("internal: {}", AskError::Unreachable)]);
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "at once");
}

/// On 2026-07-28 only what the client declared in this very request is asked, in the right form.
async fn kinds(cx: Cx) {
    let bench = Bench::with(
        cx,
        |request, cx| async move {
            let question = of(&request)?;
            text(told(&cx.ask("q", question).await))
        },
        with_keys,
    )
    .await;
    for (capabilities, can) in declared() {
        for (kind, ..) in KINDS {
            let mut call = Call::modern("tools/call", json!({"name": "t", "arguments": kind}));
            call.set(&meta(CAPABILITIES), capabilities.clone());
            let result = bench.client.send(call).await.result().await;
            if can.contains(&kind) {
                let [one] = &asked(&result)[..] else { panic!("one question: {result}") };
                assert_eq!(one.key.as_deref(), Some("q"));
            } else {
                assert_eq!(result["content"][0]["text"], unsupported(cx, kind), "{kind} of {capabilities}");
            }
        }
        let mut call = Call::modern("tools/call", json!({"name": "t", "arguments": "x/y"}));
        call.set(&meta(CAPABILITIES), capabilities);
        let result = bench.client.send(call).await.result().await;
        assert_eq!(result["content"][0]["text"], "Unsupported { capability: [] }");
    }
}

/// Three methods may be answered with questions; in others asking fails at once.
async fn methods(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move { text(told(&cx.ask("q", form("q")).await)) };
    let bench = Bench::with(cx, handler, with_keys).await;
    for (method, params) in [
        ("tools/call", json!({"name": "t"})),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "file:///a"})),
    ] {
        let clients = [bench.client.clone()];
        let played =
            in_rounds(&clients, || dialogue::call(method, params.clone()), |asked| Some(asked.says("yes"))).await;
        assert_eq!((played.text(), played.rounds.len()), ("yes", 1), "{method}");
        assert_eq!(bench.heard.take(), [format!("input required: {method}")]);
        // What a client's own answers went into is nobody else's.
        let hints = json!([played.result()["ttlMs"], played.result()["cacheScope"]]);
        assert_eq!(hints, if method == "resources/read" { json!([0, "private"]) } else { json!([null, null]) });
    }
    let bench = Bench::of(cx, Script::new(handler), with_keys).await;
    for method in ["tools/list", "prompts/list", "resources/list", "completion/complete", "x/y"] {
        let result = bench.client.send(dialogue::call(method, json!({}))).await.result().await;
        assert_eq!(result["content"][0]["text"], "Unsupported { capability: [] }", "{method}");
    }
}

/// What leaves is the question alone, beside a state; results that are not complete are not for keeping.
async fn params(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let url = Question::url("Visit", "https://example.test/?a=1")?;
        let _ = tokio::join!(cx.ask("a b", form("A?")), cx.ask("", Question::roots()?), cx.ask("u", url));
        text("")
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let call = dialogue::call("resources/read", json!({"uri": "file:///a"}));
    let mut result = bench.client.send(call).await.result().await;
    let state = result.as_object_mut().expect("a result").remove("requestState").expect("a state");
    let state = state.as_str().expect("a text");
    assert!(state.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'), "{state}");
    result.as_object_mut().expect("a result").remove("_meta");
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let visit = json!({"mode": "url", "message": "Visit", "url": "https://example.test/?a=1"});
    assert_eq!(
        result,
        json!({"resultType": "input_required", "inputRequests": {
            "": {"method": "roots/list", "params": {}},
            "a b": {"method": "elicitation/create", "params": {"message": "A?", "requestedSchema": schema}},
            "u": {"method": "elicitation/create", "params": visit},
        }})
    );
}

/// A notification hook has nobody to ask.
async fn elsewhere(cx: Cx) {
    let (tell, mut outcomes) = unbounded_channel();
    let script = Script::new(|_, _| async { Reply::empty() }).hearing(move |_, cx| {
        let tell = tell.clone();
        async move {
            let _ = tell.send(told(&cx.ask("q", form("q")).await));
        }
    });
    let bench = Bench::of(cx, script, with_keys).await;
    for method in ["notifications/x", "tools/call"] {
        let call = dialogue::call(method, json!({"name": "t"})).notification();
        session::accepted(bench.client.send(call).await).await;
        let outcome = timeout(Duration::from_secs(5), outcomes.recv()).await.expect("it does not hang");
        assert_eq!(outcome.expect("an outcome"), "Unsupported { capability: [] }", "{method}");
    }
}

/// Whatever streams before it: what a round ends with is its response, and no request.
async fn no_requests(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        for text in ["a", "b"] {
            cx.notify("notifications/x", json!({"before": text})).await?;
            let answer = cx.ask(text, form(text)).await?;
            assert_eq!(answer.action(), Some(ElicitationAction::Accept));
        }
        text("done")
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let (status, messages) = finish(bench.client.send(modern()).await).await;
    assert_eq!(status, StatusCode::OK);
    let [before, response] = &messages[..] else { panic!("two messages: {messages:?}") };
    assert_eq!(before["params"], json!({"before": "a"}));
    assert_eq!(response["result"]["resultType"], "input_required");
    let played = in_rounds(std::slice::from_ref(&bench.client), modern, |asked| Some(asked.says("yes"))).await;
    assert_eq!((played.text(), played.told.len()), ("done", 1 + 2 + 2));
}
