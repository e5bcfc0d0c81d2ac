//! Handlers that make their rounds by hand: by a result that is `input_required`.

use http::StatusCode;
use mcp_transport::{Limits, Reply, Request, RequestContext};
use serde_json::{Value, json};

use super::{Bench, modern, text, told, with_keys};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::assert_error;
use crate::support::dialogue::{self, Played, in_rounds, in_session, sampling};
use crate::support::request::{CAPABILITIES, Call, meta};

pub fn register(wire: &mut Wire) {
    wire.legacy("ask/related/by-hand", Carriers::Every, by_hand);
    wire.modern("mrtr/kinds/by-hand", Carriers::Every, by_hand);
    wire.legacy("ask/related/state-only", Carriers::Every, state_only);
    wire.modern("mrtr/kinds/state-only", Carriers::Every, state_only);
    wire.legacy("ask/related/most-rounds", Carriers::Every, most_rounds);
    wire.modern("mrtr/kinds/most-rounds", Carriers::Every, most_rounds);
    wire.legacy("ask/related/mixed", Carriers::Every, mixed);
    wire.modern("mrtr/kinds/mixed", Carriers::Every, mixed);
    wire.legacy("ask/related/bad-by-hand", Carriers::Every, faults);
    wire.modern("mrtr/kinds/bad-by-hand", Carriers::Every, faults);
    wire.legacy("ask/capability/by-hand", Carriers::Every, undeclared);
    wire.modern("mrtr/kinds/undeclared", Carriers::Every, undeclared);
    wire.legacy("ask/sessionless/by-hand", Carriers::Every, sessionless);
    wire.modern("mrtr/state/by-hand", Carriers::Every, own_state);
    wire.modern("mrtr/state/no-state-by-hand", Carriers::Every, stateless);
}

/// The JSON text of a member of the context.
fn json_of(text: Option<&[u8]>) -> Value {
    text.map_or(Value::Null, |text| serde_json::from_slice(text).expect("JSON"))
}

/// Samplings, which clients of every revision know.
fn requests(texts: &[&str]) -> Value {
    let request = |text: &&str| {
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        let params = json!({"messages": [message], "maxTokens": 10});
        ((*text).to_owned(), json!({"method": "sampling/createMessage", "params": params}))
    };
    texts.iter().map(request).collect::<serde_json::Map<_, _>>().into()
}

async fn play(cx: Cx, bench: &Bench, answer: impl FnMut(&dialogue::Asked) -> Option<Value>) -> Played {
    if cx.modern() {
        in_rounds(std::slice::from_ref(&bench.client), modern, answer).await
    } else {
        let session = dialogue::open(&bench.client, cx.revision).await;
        in_session(&session, session.call("tools/call", json!({"name": "t"})), answer).await
    }
}

/// Two rounds with a state of its own; to an older client they are requests.
async fn by_hand(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let (state, responses) = (json_of(cx.request_state()), json_of(cx.input_responses()));
        match state.as_str() {
            None => {
                assert_eq!(responses, Value::Null);
                let requests = requests(&["a", "b"]);
                Reply::of(
                    json!({"resultType": "input_required", "inputRequests": requests, "requestState": "\u{e9}\"1"}),
                )
            }
            Some("\u{e9}\"1") => {
                let state = responses.to_string();
                let requests = requests(&["c"]);
                Reply::of(json!({"resultType": "input_required", "requestState": state, "inputRequests": requests}))
            }
            Some(before) => {
                let before: Value = serde_json::from_str(before).expect("the answers before");
                let texts =
                    [&before["a"], &before["b"], &responses["c"]].map(|answer| answer["content"]["text"].clone());
                text(json!(texts).to_string())
            }
        }
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let played = play(cx, &bench, |asked| Some(asked.says(&asked.text().to_uppercase()))).await;
    assert_eq!(played.text(), r#"["A","B","C"]"#);
    let rounds = if cx.modern() { vec![vec!["a", "b"], vec!["c"]] } else { vec![vec!["a"], vec!["b"], vec!["c"]] };
    assert_eq!(played.rounds, rounds);
    assert_eq!(bench.take_runs(), 3);
    let rounds = if cx.modern() { 2 } else { 0 };
    assert_eq!(bench.heard.take(), vec!["input required: tools/call"; rounds]);
}

/// A round without questions lets the client come again.
async fn state_only(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let state = json_of(cx.request_state());
        let turn = state.as_str().map_or(0, |state| state.parse().expect("a number"));
        if turn == 3 {
            return text(json_of(cx.input_responses()).to_string());
        }
        Reply::of(json!({"resultType": "input_required", "requestState": (turn + 1).to_string()}))
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let played = play(cx, &bench, |asked| panic!("{asked:?}")).await;
    assert_eq!((played.text(), bench.take_runs()), ("{}", 4));
}

/// As many rounds as the limit says, and not one more.
async fn most_rounds(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let state = json_of(cx.request_state());
        let turn: u32 = state.as_str().map_or(0, |state| state.parse().expect("a number"));
        if turn == 8 {
            return text("done");
        }
        let requests = requests(&["a"]);
        let state = (turn + 1).to_string();
        Reply::of(json!({"resultType": "input_required", "inputRequests": requests, "requestState": state}))
    };
    for (most, is_good) in [(8, true), (7, false)] {
        let limits = Limits::default().rounds(most);
        let bench = Bench::with(cx, handler, |builder| with_keys(builder).limits(limits)).await;
        let played = play(cx, &bench, |asked| Some(asked.says("yes"))).await;
        assert_eq!(u32::try_from(played.rounds.len()), Ok(most));
        if is_good {
            assert_eq!(played.text(), "done");
        } else {
            assert_error(played.response, -32603, Some(&json!(if cx.modern() { 8 } else { 1 })));
            let heard = bench.heard.take();
            let misuse = format!(r#"TooManyRounds {{ method: "tools/call", most: {most} }}"#);
            assert_eq!(heard.last(), Some(&misuse));
        }
    }
}

/// By hand and by `ask` in one handler: neither takes the other's answers.
async fn mixed(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        let asked = told(&cx.ask("a", sampling("asked")).await);
        let Some("mine") = json_of(cx.request_state()).as_str() else {
            let mut requests = requests(&["a"]);
            requests["a"]["params"]["messages"][0]["content"]["text"] = "by hand".into();
            return Reply::of(
                json!({"resultType": "input_required", "inputRequests": requests, "requestState": "mine"}),
            );
        };
        let by_hand = json_of(cx.input_responses())["a"]["content"]["text"].clone();
        let again = told(&cx.ask("b", sampling("again")).await);
        text(json!([asked, by_hand, again]).to_string())
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let played = play(cx, &bench, |asked| Some(asked.says(&asked.text().to_uppercase()))).await;
    if cx.modern() {
        // By the time of the last round the handler's own state is gone: a round by `ask` carries none.
        assert_eq!(played.rounds[..3], [vec!["asked"], vec!["by hand"], vec!["again"]]);
    } else {
        assert_eq!(played.text(), r#"["ASKED","BY HAND","AGAIN"]"#);
    }
}

/// What is no right result of this kind is the application's fault.
async fn faults(cx: Cx) {
    let handler = |request: Request, _: RequestContext| async move {
        let mut result = request.params::<Value>()?["arguments"].clone();
        result["resultType"] = "input_required".into();
        Reply::of(result)
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let session = if cx.modern() { None } else { Some(dialogue::open(&bench.client, cx.revision).await) };
    let send = async |method: &str, params: Value| {
        let call = match &session {
            Some(session) => session.call(method, params),
            None => dialogue::call(method, params),
        };
        let answer = bench.client.send(call).await;
        answer.error(StatusCode::OK, -32603, Some(&json!(1))).await;
        bench.heard.take()
    };
    let shape = "inputRequests is a map of {method, params}, and requestState a string";
    for (result, reason) in [
        (json!({}), "it needs inputRequests or a requestState"),
        (json!({"inputRequests": null}), "it needs inputRequests or a requestState"),
        (json!({"inputRequests": {}}), "inputRequests is empty"),
        (json!({"inputRequests": {}, "requestState": "x"}), "inputRequests is empty"),
        (json!({"inputRequests": []}), shape),
        (json!({"inputRequests": {"a": {}}}), shape),
        (json!({"inputRequests": requests(&["a"]), "requestState": 7}), shape),
        (
            json!({"inputRequests": {"a": {"method": "roots/list", "params": 7}}}),
            "the params of an input request are an object",
        ),
    ] {
        let heard = send("tools/call", json!({"name": "t", "arguments": result})).await;
        assert_eq!(heard, [format!("BadInputRequired {{ reason: {reason:?} }}")], "{result}");
    }
    let good = json!({"inputRequests": requests(&["a"])});
    for method in ["prompts/list", "completion/complete", "x/y"] {
        let heard = send(method, json!({"arguments": good})).await;
        assert_eq!(heard, [format!("InputNotAllowed {{ method: {method:?} }}")]);
    }
    if cx.modern() {
        let unknown = json!({"inputRequests": {"a": {"method": "x/y", "params": {}}}});
        let heard = send("tools/call", json!({"name": "t", "arguments": unknown})).await;
        assert!(heard.len() == 1 && heard[0].starts_with("internal: the client cannot be asked this"), "{heard:?}");
    }
}

/// What the client did not declare it is not asked.
async fn undeclared(cx: Cx) {
    let handler = |_: Request, _: RequestContext| async move {
        let mut requests = requests(&["a"]);
        requests["b"] = json!({"method": "roots/list"});
        Reply::of(json!({"resultType": "input_required", "inputRequests": requests}))
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let can = json!({"sampling": {}, "elicitation": {}});
    if cx.modern() {
        let mut call = modern();
        call.set(&meta(CAPABILITIES), can);
        let error = bench.client.send(call).await.error(StatusCode::BAD_REQUEST, -32021, Some(&json!(1))).await;
        assert_eq!(error["data"], json!({"requiredCapabilities": {"roots": {}}}));
    } else {
        let initialize = crate::support::session::initialize_with(cx.revision.as_str(), can);
        let session = crate::support::session::open_by(&bench.client, initialize).await;
        let answer = session.request("tools/call", json!({"name": "t"})).await;
        // Nothing has left: it is JSON still.
        answer.error(StatusCode::OK, -32603, Some(&json!(1))).await;
    }
}

/// Without a session nobody can be asked.
async fn sessionless(cx: Cx) {
    let handler = |_: Request, _: RequestContext| async move {
        Reply::of(json!({"resultType": "input_required", "inputRequests": requests(&["a"])}))
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let call = Call::legacy(cx.revision, "tools/call", json!({"name": "t"}));
    bench.client.send(call).await.error(StatusCode::OK, -32603, Some(&json!(1))).await;
    let heard = bench.heard.take();
    assert!(heard.len() == 1 && heard[0].starts_with("internal: there is no way to ask the client"), "{heard:?}");
    assert_eq!(bench.take_runs(), 1);
}

/// A state of its own is sealed like any other.
async fn own_state(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        match json_of(cx.request_state()).as_str() {
            Some(state) => text(state),
            None => Reply::of(
                json!({"resultType": "input_required", "inputRequests": requests(&["a"]), "requestState": "secret", "x": [1]}),
            ),
        }
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let first = bench.client.send(modern()).await.result().await;
    assert_eq!((&first["inputRequests"], &first["x"]), (&requests(&["a"]), &json!([1])));
    assert_eq!(bench.take_runs(), 1);
    let state = first["requestState"].as_str().expect("a state");
    assert_ne!(state, "secret");
    let mut call = modern();
    call.set("/params/requestState", state);
    assert_eq!(bench.client.send(call).await.result().await["content"][0]["text"], "secret");
    bench.take_runs();
    for bad in ["secret", &state[1..]] {
        let mut call = modern();
        call.set("/params/requestState", bad);
        let error = bench.client.send(call).await.error(StatusCode::BAD_REQUEST, -32602, Some(&json!(1))).await;
        assert_eq!(error["message"], "Invalid params.requestState");
        assert_eq!(bench.take_runs(), 0);
    }
    // One too long to be sealed.
    let handler = |_: Request, _: RequestContext| async move {
        Reply::of(json!({"resultType": "input_required", "requestState": "x".repeat(16 << 10)}))
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    bench.client.send(modern()).await.error(StatusCode::OK, -32603, Some(&json!(1))).await;
    assert_eq!(bench.heard.take(), [r#"StateTooLarge { method: "tools/call" }"#]);
}

/// Without one nothing is made up: the answers alone come back.
async fn stateless(cx: Cx) {
    let handler = |_: Request, cx: RequestContext| async move {
        match cx.input_responses() {
            Some(responses) => text(String::from_utf8_lossy(responses)),
            None => Reply::of(json!({"resultType": "input_required", "inputRequests": requests(&["a"])})),
        }
    };
    let bench = Bench::with(cx, handler, with_keys).await;
    let first = bench.client.send(modern()).await.result().await;
    assert!(first.get("requestState").is_none(), "{first}");
    let mut call = modern();
    call.set("/params/inputResponses", json!({"x": 1}));
    assert_eq!(bench.client.send(call).await.result().await["content"][0]["text"], r#"{"x":1}"#);
}
