//! The revisions served are a policy: every set of them.

use http::{Method, StatusCode};
use mcp_transport::{Era, Revision, Revisions, StreamableHttpService};
use serde_json::{Value, json};

use super::contract::{self, Case};
use super::{serving, unsupported};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::request::{Call, ID, PROTOCOL_VERSION, SESSION_ID};
use crate::support::seen::Seen;

pub fn register(wire: &mut Wire) {
    wire.any("era/policy", Carriers::Every, every_set);
    wire.any("era/policy/default", Carriers::Every, default);
    wire.any("era/modern-only", Carriers::Every, modern_only);
    wire.any("era/legacy-only", Carriers::Every, legacy_only);
}

/// Every set of revisions but the empty one.
fn sets() -> impl Iterator<Item = Revisions> {
    (1_u32..32).map(|bits| {
        let all = Revision::ALL.into_iter().enumerate();
        Revisions::only(all.filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, revision)| revision))
    })
}

/// A client of the trial's revision, before each set.
async fn every_set(cx: Cx) {
    for served in sets() {
        let (service, seen) = serving(served);
        let client = cx.serve(service).await;
        probe(cx, served, &client, &seen).await;
    }
    let none = StreamableHttpService::builder(Seen::default().script()).revisions(Revisions::only([])).build();
    assert!(none.is_err(), "a server has to serve something");
}

async fn default(cx: Cx) {
    let seen = Seen::default();
    let client = cx.serve(StreamableHttpService::new(seen.script())).await;
    probe(cx, Revisions::all(), &client, &seen).await;
    assert_eq!(Revisions::default(), Revisions::all());
}

async fn probe(cx: Cx, served: Revisions, client: &Client, seen: &Seen) {
    let name = cx.revision.as_str();
    let header = vec![name.as_bytes().to_vec()];
    let claim = Some(Value::from(name));
    for method in ["prompts/list", "initialize", "ping", "server/discover", "subscriptions/listen"] {
        for (versions, claim) in [(header.clone(), claim.clone()), (header.clone(), None), (Vec::new(), None)] {
            for asked in [name, "1999-01-01", "2026-07-28"] {
                if method == "subscriptions/listen" && claim.is_some() {
                    continue; // a stream of its own
                }
                let (versions, claim) = (versions.clone(), claim.clone());
                let case = Case { served, versions, claim, method, asked };
                case.check(client.send(case.call()).await, seen).await;
            }
        }
    }
    let legacy = contract::names(served, Era::Legacy);
    for (verb, nowhere) in [(Method::GET, StatusCode::METHOD_NOT_ALLOWED), (Method::DELETE, StatusCode::BAD_REQUEST)] {
        let call = |session: bool| {
            let mut call = Call::get().header(PROTOCOL_VERSION, name);
            call.method = verb.clone();
            if session { call.header(SESSION_ID, "none") } else { call }
        };
        for session in [false, true] {
            let answer = client.send(call(session)).await;
            match cx.revision.era() {
                _ if legacy.is_empty() => drop(answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await),
                Era::Modern => drop(answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await),
                Era::Legacy if !served.contains(cx.revision) => unsupported(answer, &legacy, name, None).await,
                Era::Legacy if session => drop(answer.error(StatusCode::NOT_FOUND, -32600, None).await),
                Era::Legacy => drop(answer.error(nowhere, -32600, None).await),
            }
        }
    }
    if served.contains(Revision::V2026_07_28) {
        let discovered = client.send(Call::modern("server/discover", json!({}))).await.result().await;
        assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    }
}

/// A client of the trial's revision, before a server of 2026-07-28 alone.
async fn modern_only(cx: Cx) {
    let (service, seen) = serving(Revisions::modern_only());
    let client = cx.serve(service).await;
    let supported = ["2026-07-28".to_owned()];
    let with_session = |call: Call| call.header(SESSION_ID, "none");
    let id = Some(&Value::from(ID));

    let initialize = |version: Value| {
        let call = Call::post(json!({"jsonrpc": "2.0", "id": ID, "method": "initialize"}));
        let mut call = call.header("mcp-method", "initialize");
        call.set("/params", json!({"protocolVersion": version, "capabilities": {}}));
        call
    };
    let name = cx.revision.as_str();
    for call in [initialize(json!(name)), with_session(initialize(json!(name)))] {
        unsupported(client.send(call).await, &supported, name, id).await;
    }
    if !cx.modern() {
        let headed = initialize(json!("1999-01-01")).header(PROTOCOL_VERSION, name);
        unsupported(client.send(headed).await, &supported, "1999-01-01", id).await;
    }
    // Whatever else is wrong with it, the client learns what to speak.
    for odd in [json!(7), json!(null), json!("")] {
        unsupported(client.send(initialize(odd)).await, &supported, "", id).await;
    }
    let mut bare = initialize(json!(name));
    bare.remove("/params");
    unsupported(client.send(bare).await, &supported, "", id).await;
    let mut escaped = initialize(json!(name));
    escaped.replace("\"initialize\"", "\"initi\\u0061lize\"");
    unsupported(client.send(escaped).await, &supported, name, id).await;

    for method in ["tools/list", "ping", "server/discover", "no/such"] {
        let call = |version: Option<&str>| {
            let call = Call::post(json!({"jsonrpc": "2.0", "id": ID, "method": method})).header("mcp-method", method);
            version.into_iter().fold(call, |call, version| call.header(PROTOCOL_VERSION, version))
        };
        for make in [|call: Call| call, |call: Call| call.header(SESSION_ID, "none")] {
            let answer = client.send(make(call(None))).await;
            answer.error(StatusCode::BAD_REQUEST, -32020, id).await;
            let answer = client.send(make(call(None)).notification()).await;
            answer.error(StatusCode::BAD_REQUEST, -32020, None).await;
            for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "DRAFT-1", ""] {
                unsupported(client.send(make(call(Some(version)))).await, &supported, version, id).await;
                let notification = make(call(Some(version))).notification();
                unsupported(client.send(notification).await, &supported, version, None).await;
            }
        }
    }
    for body in
        [json!([{"jsonrpc": "2.0", "id": ID, "method": "ping"}]), json!({"jsonrpc": "2.0", "id": 9, "result": {}})]
    {
        client.send(Call::post(body)).await.error(StatusCode::BAD_REQUEST, -32020, None).await;
    }
    for verb in [Method::GET, Method::DELETE] {
        let mut call = Call::get().header(PROTOCOL_VERSION, name);
        call.method = verb;
        let answer = client.send(with_session(call)).await;
        assert_eq!(answer.header("allow"), "POST");
        answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
    }
    assert_eq!(seen.methods(), [""; 0]);

    // And what it does serve knows of no session, were it named twice.
    let twice = Call::modern("prompts/list", json!({})).header(SESSION_ID, "a").also(SESSION_ID, b"\xff");
    let answer = client.send(twice).await;
    assert_eq!(answer.header(SESSION_ID), "");
    assert_eq!(answer.result().await["revision"], "2026-07-28");
}

/// A client of 2026-07-28, or of the next one, before a server of the trial's revision, or of all before 2026-07-28.
async fn legacy_only(cx: Cx) {
    let served = if cx.modern() { Revisions::legacy_only() } else { Revisions::only([cx.revision]) };
    let (service, seen) = serving(served);
    let client = cx.serve(service).await;
    let id = Some(&Value::from(ID));
    for version in ["2026-07-28", "2099-01-01"] {
        for method in ["server/discover", "tools/list", "initialize", "ping", "no/such"] {
            let calls = [
                Call::modern_as(version, method, json!({})),
                Call::modern_as(version, method, json!({})).without(PROTOCOL_VERSION),
                Call::modern_as(version, method, json!({})).header(PROTOCOL_VERSION, "2025-11-25"),
                Call::modern_as(version, method, json!({})).also(PROTOCOL_VERSION, version),
                Call::modern_as(version, method, json!({})).without("mcp-method"),
                Call::modern_as(version, method, json!({"_meta": {super::CAPABILITIES: 7}})).header(SESSION_ID, "none"),
                Call::post(json!({"jsonrpc": "2.0", "id": ID, "method": method})).header(PROTOCOL_VERSION, version),
            ];
            for call in calls {
                let error = client.send(call).await.error(StatusCode::BAD_REQUEST, -32600, id).await;
                assert_eq!(error.get("data"), None, "{error}");
            }
            let notification = Call::modern_as(version, method, json!({})).notification();
            client.send(notification).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
        }
        for body in [
            json!([]),
            json!([{"jsonrpc": "2.0", "id": ID, "method": "ping"}]),
            json!({"jsonrpc": "2.0", "id": ID, "result": {}}),
            json!({"jsonrpc": "2.0", "id": ID, "error": {"code": 1, "message": ""}}),
        ] {
            let call = Call::post(body).header(PROTOCOL_VERSION, version);
            client.send(call).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
        }
        for verb in [Method::GET, Method::DELETE] {
            let mut call = Call::get().header(PROTOCOL_VERSION, version);
            call.method = verb;
            client.send(call).await.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
        }
    }
    assert_eq!(seen.methods(), [""; 0]);

    let fallback = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let fallback = Call::legacy(Revision::V2024_11_05, "initialize", fallback);
    let latest = contract::names(served, Era::Legacy).pop().expect("a revision");
    assert_eq!(client.send(fallback).await.result().await["protocolVersion"], latest);
}
