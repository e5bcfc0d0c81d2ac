//! Which era a message belongs to, and what follows from that: section 2 of the contract.

mod classifier;
mod contract;
mod matrix;
mod policy;

use std::sync::Arc;

use http::{Method, StatusCode};
use mcp_transport::{Era, Reply, Revision, Revisions, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use self::contract::Case;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::handler::Script;
use crate::support::request::{CAPABILITIES, CLAIM, Call, ID, MCP_METHOD, PROTOCOL_VERSION, SESSION_ID, meta};
use crate::support::seen::Seen;

pub fn register(wire: &mut Wire) {
    classifier::register(wire);
    matrix::register(wire);
    policy::register(wire);
    wire.any("era/claim-is-modern", Carriers::Every, claim_is_modern);
    wire.any("era/claim-is-modern/array", Carriers::Every, claim_in_array);
    wire.any("era/header-is-modern", Carriers::Every, header_is_modern);
    wire.any("era/else-legacy", Carriers::Every, else_legacy);
    wire.any("era/else-legacy/claims", Carriers::Every, no_claim);
    wire.any("era/removed-methods", Carriers::Every, removed_methods);
    wire.any("era/one-endpoint", Carriers::Every, at_once);
    wire.any("era/one-endpoint/in-turn", Carriers::Every, in_turn);
    wire.any("era/unsupported-has-data", Carriers::Every, unsupported_has_data);
}

/// A service of these revisions, and what reached its handler.
fn serving(revisions: Revisions) -> (StreamableHttpService, Seen) {
    let seen = Seen::default();
    let builder = StreamableHttpService::builder(seen.script()).revisions(revisions);
    (builder.build().expect("a service"), seen)
}

/// The answer is 400 `-32022` with exactly this data.
async fn unsupported(answer: Answer, supported: &[String], requested: &str, id: Option<&Value>) {
    let error = answer.error(StatusCode::BAD_REQUEST, -32022, id).await;
    assert_eq!(contract::versions(&error["data"]), (supported.to_vec(), requested.to_owned()));
}

/// Whatever it claims, under whichever header, and however it is spelled.
async fn claim_is_modern(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let headers = [vec![], vec![cx.revision.as_str().as_bytes().to_vec()], vec![b"DRAFT-1".to_vec()]];
    let texts = ["2026-07-28", "2099-01-01", "2025-11-25", "2024-11-05", "DRAFT-1", "x", ""].map(Value::from);
    let others = [json!(null), json!(7), json!(false), json!([]), json!({})];
    for claim in texts.into_iter().chain(others) {
        for versions in headers.clone() {
            let claim = Some(claim.clone());
            let case = Case { served: Revisions::all(), versions, claim, method: "prompts/list", asked: "" };
            case.check(client.send(case.call()).await, &seen).await;
            let mut escaped = case.call();
            escaped.replace("\"_meta\"", "\"\\u005fmeta\"");
            escaped.replace("/protocolVersion", "\\u002fprotocolVersion");
            case.check(client.send(escaped).await, &seen).await;
        }
    }
    // A notification of 2026-07-28 is not asked for more, one of another version is refused for its header alone.
    let mut notification = Call::post(json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": {}}}));
    notification.set(&meta(CLAIM), "1999-01-01");
    assert_eq!(client.send(notification).await.status, StatusCode::ACCEPTED);
    assert_eq!(seen.take(), [("notifications/x".to_owned(), Revision::V2026_07_28)]);
}

/// In whichever element, a message or not. Where only modern messages are served an array of old ones lacks its header.
async fn claim_in_array(cx: Cx) {
    let (service, seen) = serving(Revisions::modern_only());
    let client = cx.serve(service).await;
    let (whole, all_seen) = serving(Revisions::all());
    let whole = cx.serve(whole).await;
    let plain = || json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {}}});
    let claiming = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {CLAIM: cx.revision.as_str()}}}),
        json!({"jsonrpc": "2.0", "method": "x", "params": {"_meta": {CLAIM: null}}}),
        json!({"params": {"_meta": {CLAIM: 7}}}),
    ];
    client.send(Call::post(json!([plain()]))).await.error(StatusCode::BAD_REQUEST, -32020, None).await;
    for element in claiming {
        for (at, length) in [(0, 1), (0, 3), (2, 3), (99, 100), (100, 101), (299, 300)] {
            let mut elements = vec![plain(); length];
            elements[at] = element.clone();
            for client in [&client, &whole] {
                let answer = client.send(Call::post(elements.clone().into())).await;
                answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
            }
        }
    }
    assert_eq!((seen.methods(), all_seen.methods()), (vec![], vec![]));
}

/// Version headers that are modern by their date alone.
const MODERN_DATES: [&str; 10] = [
    "2026-07-28",
    "2026-07-29",
    "2026-07-31",
    "2026-08-01",
    "2026-10-10",
    "2026-12-31",
    "2027-01-01",
    "2027-02-31",
    "9999-12-31",
    " \t2030-06-15\t ",
];

async fn header_is_modern(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    for date in MODERN_DATES {
        // What a client of the trial's revision sends, but for its header.
        let mut call = Call::of(cx.revision, "prompts/list", json!({"_meta": {}})).header(PROTOCOL_VERSION, date);
        if cx.modern() {
            call.remove(&meta(CLAIM));
        }
        let answer = client.send(call).await;
        let id = Some(&Value::from(ID));
        if date == "2026-07-28" {
            let error = answer.error(StatusCode::BAD_REQUEST, -32602, id).await;
            assert!(error["message"].as_str().expect("a text").contains(CLAIM), "{error}");
        } else {
            unsupported(answer, &["2026-07-28".to_owned()], date.trim(), id).await;
        }
        for verb in [Method::GET, Method::DELETE] {
            for session in [None, Some("none")] {
                let mut call = Call::get().header(PROTOCOL_VERSION, date);
                call.method = verb.clone();
                session.into_iter().for_each(|session| call.put(SESSION_ID, session));
                let answer = client.send(call).await;
                assert_eq!(answer.header("allow"), "POST", "{date}");
                answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
            }
        }
    }
    assert_eq!(seen.methods(), [""; 0]);
}

/// Version headers that name no revision and are no date from 2026-07-28 on, though some stand behind one in order.
const NO_DATES: [&str; 24] = [
    "abc",
    "DRAFT-1",
    "DRAFT-2026-v1",
    "draft",
    "zzzz-99-99",
    "2026-13-45",
    "2026-13-01",
    "2026-12-32",
    "2026-08-00",
    "2026-00-10",
    "2026-7-28",
    "2026-07-8",
    "02026-07-28",
    "99999-01-01",
    "2026-07-280",
    "2026-07-28T00",
    "2026-07-28 x",
    "2026/07/28",
    "20260728",
    "+026-07-28",
    "2026-07-27",
    "2025-12-31",
    "1999-01-01",
    "",
];

async fn else_legacy(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let supported = contract::names(Revisions::all(), Era::Legacy);
    for version in NO_DATES {
        let requested: String = version.chars().filter(char::is_ascii_graphic).collect();
        let mut call = Call::of(cx.revision, "prompts/list", json!({"_meta": {}})).header(PROTOCOL_VERSION, version);
        if cx.modern() {
            call.remove(&meta(CLAIM));
        }
        unsupported(client.send(call).await, &supported, &requested, Some(&ID.into())).await;
        for verb in [Method::GET, Method::DELETE] {
            let mut call = Call::get().header(PROTOCOL_VERSION, version);
            call.method = verb;
            unsupported(client.send(call).await, &supported, &requested, None).await;
        }
    }
    assert_eq!(seen.methods(), [""; 0]);
}

/// What is near a claim is none.
async fn no_claim(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let version = cx.revision.as_str();
    let near = [
        json!({}),
        json!({"protocolVersion": version}),
        json!({CLAIM: version}),
        json!({"_meta": {"protocolVersion": version}}),
        json!({"_meta": {CLAIM.to_uppercase(): version}}),
        json!({"_meta": {format!("{CLAIM} "): version}}),
        json!({"_meta": {"io.modelcontextprotocol": {"protocolVersion": version}}}),
        json!({"_meta": {CAPABILITIES: {}}}),
        json!({"_meta": [{CLAIM: version}]}),
        json!({"_meta": version}),
        json!({"_META": {CLAIM: version}}),
        json!({"arguments": {"_meta": {CLAIM: version}}}),
    ];
    for params in near {
        let mut call = Call::post(json!({"jsonrpc": "2.0", "id": ID, "method": "prompts/list", "params": params}));
        call.set("/_meta", json!({CLAIM: version}));
        let answer = client.send(call.header(MCP_METHOD, "prompts/list")).await;
        assert_eq!(answer.result().await["revision"], "2025-03-26", "{params}");
    }
    assert_eq!(seen.take().len(), 12);
}

/// Each era is without what only the other has.
async fn removed_methods(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let id = Some(&Value::from(ID));
    let removed = [
        ("initialize", json!({"protocolVersion": "2026-07-28", "capabilities": {}})),
        ("ping", json!({})),
        ("logging/setLevel", json!({"level": "info"})),
        ("resources/subscribe", json!({"uri": "file:///a"})),
        ("resources/unsubscribe", json!({"uri": "file:///a"})),
        ("tasks/list", json!({})),
        ("tasks/result", json!({"taskId": "a"})),
    ];
    let added = ["server/discover", "subscriptions/listen"];
    if cx.modern() {
        for (method, params) in removed {
            let answer = client.send(Call::modern(method, params.clone())).await;
            answer.error(StatusCode::NOT_FOUND, -32601, id).await;
            let mut escaped = Call::modern(method, params);
            let last = method.chars().next_back().expect("a letter");
            let spelled = format!("{}\\u{:04x}", &method[..method.len() - 1], u32::from(last));
            escaped.replace(&format!("\"{method}\""), &format!("\"{spelled}\""));
            client.send(escaped).await.error(StatusCode::NOT_FOUND, -32601, id).await;
        }
        assert_eq!(seen.methods(), [""; 0]);
        // Not these: the handler may know them.
        for method in ["completion/complete", "tasks/get", "tasks/cancel", "Ping", "initialize2", "x/initialize"] {
            let answer = client.send(Call::modern(method, json!({"taskId": "a"}))).await;
            assert_eq!(answer.result().await["method"], method);
        }
        assert_eq!(seen.methods().len(), 6);
        return;
    }
    for method in added {
        for params in [json!({}), json!({"notifications": {"toolsListChanged": true}})] {
            let answer = client.send(Call::legacy(cx.revision, method, params)).await;
            answer.error(StatusCode::OK, -32601, id).await;
        }
        let mut named = Call::legacy(cx.revision, method, json!({}));
        named.put(PROTOCOL_VERSION, cx.revision.as_str());
        client.send(named).await.error(StatusCode::OK, -32601, id).await;
    }
    assert_eq!(seen.methods(), [""; 0]);
    client.send(Call::legacy(cx.revision, "ping", json!({}))).await.result().await;
}

/// The revision that a trial's is mixed with: one of the other era.
fn other(cx: Cx) -> Revision {
    if cx.modern() { Revision::V2025_11_25 } else { Revision::V2026_07_28 }
}

/// An answer has the shape of its revision and names it.
fn assert_shape(result: &Value, revision: Revision) {
    assert_eq!(result["revision"], revision.as_str(), "{result}");
    assert_eq!(result.get("resultType").is_some(), revision.era() == Era::Modern, "{result}");
    assert_eq!(result.get("_meta").is_some(), revision.era() == Era::Modern, "{result}");
}

/// The revision a request outside any session is answered in.
fn answered(revision: Revision) -> Revision {
    // Older ones do not say which they are.
    if revision < Revision::V2025_06_18 { Revision::V2025_03_26 } else { revision }
}

/// Two requests with one id, one of each era, both at work at once; whoever cancels that id cancels neither.
async fn at_once(cx: Cx) {
    let (entered, leave) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let script = {
        let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
        Script::new(move |request, cx| {
            let (entered, leave) = (Arc::clone(&entered), Arc::clone(&leave));
            async move {
                entered.add_permits(1);
                leave.acquire().await.expect("never closed").forget();
                Reply::of(json!({"method": request.method(), "revision": cx.revision().as_str()}))
            }
        })
    };
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let both = [cx.revision, other(cx)];
    let calls = both.map(|revision| {
        let client = client.clone();
        tokio::spawn(async move { client.send(Call::of(revision, "x/ask", json!({}))).await })
    });
    entered.acquire_many(2).await.expect("never closed").forget();
    for revision in both {
        let cancel = Call::of(revision, "notifications/cancelled", json!({"requestId": ID})).notification();
        assert_eq!(client.send(cancel).await.status, StatusCode::ACCEPTED);
    }
    leave.add_permits(2);
    for (call, revision) in calls.into_iter().zip(both) {
        let result = call.await.expect("an answer").result().await;
        assert_shape(&result, answered(revision));
    }
}

/// One connection, one path, both eras by turns: what the one did changes nothing for the other.
async fn in_turn(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let initialize = json!({"protocolVersion": cx.revision.as_str(), "capabilities": {"sampling": {}}});
    let initialize = || Call::legacy(Revision::V2024_11_05, "initialize", initialize.clone());
    let before = [
        client.send(Call::modern("server/discover", json!({}))).await.result().await,
        client.send(initialize()).await.result().await,
    ];
    for _ in 0..2 {
        for revision in [other(cx), cx.revision, other(cx)] {
            let result = client.send(Call::of(revision, "x/ask", json!({}))).await.result().await;
            assert_shape(&result, answered(revision));
        }
        client.send(Call::legacy(Revision::V2025_11_25, "logging/setLevel", json!({"level": "debug"}))).await;
        client.send(Call::modern_as("2099-01-01", "x/ask", json!({}))).await;
        client.send(Call::legacy(Revision::V2025_11_25, "x/ask", json!({})).header(SESSION_ID, "none")).await;
    }
    let after = [
        client.send(Call::modern("server/discover", json!({}))).await.result().await,
        client.send(initialize()).await.result().await,
    ];
    assert_eq!(before, after);
    assert_eq!(seen.methods().len(), 6);
}

/// However the wrong version was told, and whatever it looks like.
async fn unsupported_has_data(cx: Cx) {
    let long = "2".repeat(100);
    let odd = ["2024-10-07", "1", "2024 10 07", "{\"a\": [1]}", "", &long, "\x7e\x21", "a\tb"];
    let revisions = [Revisions::all(), Revisions::only([cx.revision]), Revisions::all().without(cx.revision)];
    for served in revisions {
        let (service, seen) = serving(served);
        let client = cx.serve(service).await;
        let of = |era| contract::names(served, era);
        let legacy = if of(Era::Legacy).is_empty() { of(Era::Modern) } else { of(Era::Legacy) };
        let id = Some(&Value::from(ID));
        for version in odd {
            let requested: String = version.chars().filter(char::is_ascii_graphic).take(64).collect();
            let call = || Call::legacy(Revision::V2024_11_05, "x/ask", json!({})).header(PROTOCOL_VERSION, version);
            unsupported(client.send(call()).await, &legacy, &requested, id).await;
            unsupported(client.send(call().notification()).await, &legacy, &requested, None).await;
            if !of(Era::Legacy).is_empty() {
                for verb in [Method::GET, Method::DELETE] {
                    let mut call = Call::get().header(PROTOCOL_VERSION, version);
                    call.method = verb;
                    unsupported(client.send(call).await, &legacy, &requested, None).await;
                }
            } else {
                let params = json!({"protocolVersion": version, "capabilities": {}});
                let initialize = Call::legacy(Revision::V2024_11_05, "initialize", params);
                unsupported(client.send(initialize).await, &legacy, &requested, id).await;
            }
            if !of(Era::Modern).is_empty() {
                let call = || Call::modern_as(version, "x/ask", json!({}));
                unsupported(client.send(call()).await, &of(Era::Modern), &requested, id).await;
                unsupported(client.send(call().notification()).await, &of(Era::Modern), &requested, None).await;
            }
        }
        let bytes = Call::legacy(Revision::V2024_11_05, "x/ask", json!({})).header(PROTOCOL_VERSION, b"\xff2024");
        unsupported(client.send(bytes).await, &legacy, "", id).await;
        assert_eq!(seen.methods(), [""; 0]);
    }
}
