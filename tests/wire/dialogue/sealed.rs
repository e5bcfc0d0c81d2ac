//! The state between two rounds: what is not as it was made is refused, all in the same words.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use mcp_transport::{
    Limits, Principal, RefusalKind, ReplayGuard, Request, RequestContext, StateId, StateKeys, StreamableHttpBuilder,
};
use serde_json::{Value, json};

use super::{Bench, modern, text, with_keys};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::dialogue::{self, asked, everything, form, said};
use crate::support::request::{CAPABILITIES, Call, meta};
use crate::support::seen::Refusals;
use crate::support::session::ACCOUNT;

pub fn register(wire: &mut Wire) {
    wire.modern("mrtr/state", Carriers::Every, altered);
    wire.modern("mrtr/state/moved", Carriers::Every, moved);
    wire.modern("mrtr/state/rewritten", Carriers::Every, rewritten);
    wire.modern("mrtr/state/expired", Carriers::Every, expired);
    wire.modern("mrtr/state/over-long", Carriers::Every, over_long);
    wire.modern("mrtr/state/keys", Carriers::Every, keys);
    wire.modern("mrtr/state/null", Carriers::Every, null);
    wire.modern("mrtr/state/guard", Carriers::Every, guard);
    wire.modern("mrtr/state/elsewhere", Carriers::Every, elsewhere);
}

async fn ask(_: Request, cx: RequestContext) -> Result<mcp_transport::Reply, mcp_transport::McpError> {
    text(said(&cx.ask("q", form("q")).await?))
}

fn by_account(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    with_keys(builder).principal(|head| Some(Principal::new(head.headers.get(ACCOUNT)?.to_str().ok()?)))
}

/// The state of a first round.
async fn state(bench: &Bench, call: Call) -> String {
    let result = bench.client.send(call).await.result().await;
    assert_eq!(asked(&result).len(), 1);
    bench.take_runs();
    result["requestState"].as_str().expect("a state").to_owned()
}

fn with(mut call: Call, state: impl Into<Value>) -> Call {
    call.set("/params/requestState", state);
    call.set("/params/inputResponses", json!({"q": {"action": "accept", "content": {"text": "yes"}}}));
    call
}

/// 400 in the one text that there is; no handler has run.
async fn refused(bench: &Bench, call: Call) {
    let error = bench.client.send(call).await.error(StatusCode::BAD_REQUEST, -32602, Some(&json!(1))).await;
    assert_eq!(error, json!({"code": -32602, "message": "Invalid params.requestState"}));
    assert_eq!(bench.take_runs(), 0, "no handler has run");
}

async fn taken(bench: &Bench, call: Call) {
    let result = bench.client.send(call).await.result().await;
    assert_eq!((result["content"][0]["text"].as_str(), bench.take_runs()), (Some("yes"), 1), "{result}");
}

/// Every character counts, and so does every length and every type.
async fn altered(cx: Cx) {
    let refusals = Refusals::default();
    let bench = Bench::with(cx, ask, |builder| with_keys(builder).observer(refusals.clone())).await;
    let state = state(&bench, modern()).await;
    for at in (0..state.len()).step_by(if cx.carrier == crate::harness::Carrier::Clock { 1 } else { 17 }) {
        let mut other = state.clone().into_bytes();
        other[at] = if other[at] == b'A' { b'B' } else { b'A' };
        refused(&bench, with(modern(), String::from_utf8(other).expect("a text"))).await;
        refused(&bench, with(modern(), &state[..at])).await;
        refused(&bench, with(modern(), &state[at + 1..])).await;
    }
    let padded = format!("{state}=");
    let doubled = state.clone() + &state;
    for other in [json!(padded), json!(doubled), json!(format!(" {state}")), json!(""), json!("mine"), json!("\u{0}")] {
        refused(&bench, with(modern(), other)).await;
    }
    for other in [json!(7), json!(true), json!([state.clone()]), json!({"state": state.clone()})] {
        refused(&bench, with(modern(), other)).await;
    }
    let refusals = refusals.take();
    assert!(!refusals.is_empty() && refusals.iter().all(|kind| *kind == RefusalKind::InvalidState), "{refusals:?}");
    taken(&bench, with(modern(), state.clone())).await;
    // It may come back more than once.
    taken(&bench, with(modern(), state)).await;
}

/// It belongs to its principal, method and params.
async fn moved(cx: Cx) {
    let bench = Bench::with(cx, ask, by_account).await;
    let mine = || modern().header(ACCOUNT, "one");
    let state = state(&bench, mine()).await;
    refused(&bench, with(modern(), state.clone())).await;
    refused(&bench, with(modern().header(ACCOUNT, "two"), state.clone())).await;
    for (pointer, value) in [
        ("/params/arguments/a", json!(2)),
        ("/params/arguments/a", json!("1")),
        ("/params/arguments/b", json!([2, {"c": 3}])),
        ("/params/arguments/x", json!(null)),
        ("/params/arguments", json!({})),
        ("/params/other", json!(1)),
    ] {
        let mut call = with(mine(), state.clone());
        call.set(pointer, value);
        refused(&bench, call).await;
    }
    let arguments = modern().body["params"]["arguments"].clone();
    let other_tool = dialogue::call("tools/call", json!({"name": "T", "arguments": arguments}));
    refused(&bench, with(other_tool.header(ACCOUNT, "one"), state.clone())).await;
    let other_method = dialogue::call("prompts/get", json!({"name": "t", "arguments": arguments}));
    refused(&bench, with(other_method.header(ACCOUNT, "one"), state.clone())).await;
    taken(&bench, with(mine(), state)).await;
    // One of nobody's is nobody's.
    let nobodys = self::state(&bench, modern()).await;
    refused(&bench, with(mine(), nobodys.clone())).await;
    taken(&bench, with(modern(), nobodys)).await;
}

/// Params count by what they say: a client may write them anew, and `_meta` is another in every request.
async fn rewritten(cx: Cx) {
    let bench = Bench::with(cx, ask, with_keys).await;
    let state = state(&bench, modern()).await;
    let mut call = with(modern(), state.clone());
    call.replace(r#""a":1,"b":[2,{"c":3,"d":4}]"#, "\"b\" : [ 2 , {\"\\u0064\":4,\r\n\t\"c\":3} ] , \"a\":1");
    call.set("/params/_meta/progressToken", 7);
    call.set("/params/_meta/x", json!({"y": 1}));
    let mut capabilities = everything();
    capabilities["experimental"] = json!({});
    call.set(&meta(CAPABILITIES), capabilities);
    taken(&bench, call.id(1)).await;
    // The state is a text, however it is written.
    let mut call = with(modern(), state.clone());
    let escaped: String = state.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    call.replace(&state, &escaped);
    taken(&bench, call).await;
}

/// It expires, by the system's clock.
async fn expired(cx: Cx) {
    let bench = Bench::with(cx, ask, |builder| with_keys(builder).state_lifetime(Duration::ZERO)).await;
    let state = state(&bench, modern()).await;
    refused(&bench, with(modern(), state.clone())).await;
    // How long it holds, the one who made it decides.
    let other = Bench::with(cx, ask, with_keys).await;
    refused(&other, with(modern(), state)).await;
    let good = self::state(&other, modern()).await;
    taken(&bench, with(modern(), good)).await;
}

/// One longer than any that was made.
async fn over_long(cx: Cx) {
    let bench = Bench::with(cx, ask, with_keys).await;
    let limit = 16 << 10;
    let state = state(&bench, modern()).await;
    for length in [limit - 1, limit, limit + 1, 1 << 20] {
        let mut long = state.clone();
        long.push_str(&"A".repeat(length - state.len()));
        refused(&bench, with(modern(), long)).await;
    }
    // One that is right, to a server that makes no such long ones.
    let small = Bench::with(cx, ask, |builder| with_keys(builder).limits(Limits::default().state_bytes(64))).await;
    refused(&small, with(modern(), state)).await;
}

/// Nodes open what they share the key of; without any, each has its own.
async fn keys(cx: Cx) {
    let alone = Bench::open(cx, ask).await;
    let state = state(&alone, modern()).await;
    taken(&alone, with(modern(), state.clone())).await;
    refused(&Bench::open(cx, ask).await, with(modern(), state)).await;

    let (old, new) = (StateKeys::new([1; 32]), StateKeys::new([2; 32]));
    let both = StateKeys::new([2; 32]).also_accepts([1; 32]);
    let bench = async |keys: StateKeys| Bench::with(cx, ask, move |builder| builder.state_keys(&keys)).await;
    let (old, new, both) = (bench(old).await, bench(new).await, bench(both).await);
    let (by_old, by_both) = (self::state(&old, modern()).await, self::state(&both, modern()).await);
    taken(&both, with(modern(), by_old.clone())).await;
    refused(&new, with(modern(), by_old)).await;
    taken(&new, with(modern(), by_both.clone())).await;
    refused(&old, with(modern(), by_both)).await;
}

/// null is no state: the handler runs as in a first round.
async fn null(cx: Cx) {
    let bench = Bench::with(cx, ask, with_keys).await;
    taken(&bench, with(modern(), Value::Null)).await;
}

/// The application may let each state in once.
async fn guard(cx: Cx) {
    #[derive(Default)]
    struct Once(Mutex<BTreeSet<StateId>>);
    impl ReplayGuard for Once {
        async fn admit(&self, state: StateId, expires: SystemTime) -> bool {
            assert!(expires > SystemTime::now());
            tokio::task::yield_now().await;
            self.0.lock().expect("nobody panicked").insert(state)
        }
    }
    let bench = Bench::with(cx, ask, |builder| with_keys(builder).replay_guard(Once::default())).await;
    let state = state(&bench, modern()).await;
    // What is wrong with it is judged before it counts as used.
    let mut other = with(modern(), state.clone());
    other.set("/params/arguments/a", 2);
    refused(&bench, other).await;
    taken(&bench, with(modern(), state.clone())).await;
    refused(&bench, with(modern(), state)).await;
}

/// Where no round can be, the member means nothing.
async fn elsewhere(cx: Cx) {
    let bench = Bench::with(cx, |_, _| async { text("yes") }, with_keys).await;
    for method in ["x/y", "completion/complete", "prompts/list"] {
        for state in [json!("x"), json!(7), json!(null)] {
            let mut call = dialogue::call(method, json!({}));
            call.set("/params/requestState", state);
            let result = bench.client.send(call).await.result().await;
            assert_eq!(result["content"][0]["text"], "yes", "{method}");
        }
    }
}
