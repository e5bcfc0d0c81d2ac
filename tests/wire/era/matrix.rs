//! Header against claim against method, and then what else `_meta` holds.

use http::StatusCode;
use mcp_transport::{Revision, Revisions};
use serde_json::{Value, json};

use super::contract::{Case, Outcome};
use super::serving;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{CAPABILITIES, CLAIM, Call, ID, LOG_LEVEL, PROTOCOL_VERSION, meta};

pub fn register(wire: &mut Wire) {
    wire.any("era/matrix", Carriers::Every, |cx| matrix(cx, Revisions::all()));
    wire.any("era/matrix/one-each", Carriers::Every, |cx| {
        matrix(cx, Revisions::only([legacy(cx), Revision::V2026_07_28]))
    });
    wire.any("era/matrix/meta", Carriers::Every, envelope);
    wire.any("era/matrix/order", Carriers::Every, order);
}

/// The revision of the trial, or the last one where that is modern.
fn legacy(cx: Cx) -> Revision {
    if cx.modern() { Revision::V2025_11_25 } else { cx.revision }
}

fn header_values(cx: Cx) -> Vec<Vec<Vec<u8>>> {
    let old = legacy(cx).as_str();
    let one = |value: &[u8]| vec![value.to_vec()];
    let two = |first: &str, second: &str| vec![first.into(), second.into()];
    vec![
        Vec::new(),
        one(b"2026-07-28"),
        one(b" \t2026-07-28 "),
        one(b"2099-01-01"),
        one(b"2026-07-29"),
        one(old.as_bytes()),
        one(b"2024-10-07"),
        one(b"DRAFT-2026"),
        one(b""),
        one(b"2026-07-28, 2026-07-28"),
        one(b"2026-07-28\xe9"),
        one(b"\"2026-07-28\""),
        two("2026-07-28", "2026-07-28"),
        two(old, "2026-07-28"),
        two(old, old),
    ]
}

fn claims(cx: Cx) -> Vec<Option<Value>> {
    let old = legacy(cx).as_str();
    let texts =
        ["2026-07-28", "2099-01-01", old, "2024-10-07", "DRAFT-2026", "", "2026-07-28 ", "2026-07-28, 2026-07-28"];
    let others = [json!(null), json!(20_260_728), json!(["2026-07-28"]), json!({"version": "2026-07-28"}), json!(true)];
    std::iter::once(None).chain(texts.map(|text| Some(json!(text)))).chain(others.map(Some)).collect()
}

async fn matrix(cx: Cx, served: Revisions) {
    let (service, seen) = serving(served);
    let client = cx.serve(service).await;
    let mut outcomes = Vec::new();
    for versions in header_values(cx) {
        for claim in claims(cx) {
            for method in ["prompts/list", "initialize", "server/discover", "ping"] {
                let (versions, claim) = (versions.clone(), claim.clone());
                let case = Case { served, versions, claim, method, asked: cx.revision.as_str() };
                case.check(client.send(case.call()).await, &seen).await;
                outcomes.push(case.outcome());
            }
        }
    }
    // The table reaches every answer that the rules have.
    for code in [-32020, -32022, -32600, -32601, -32602] {
        let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(refused) if refused.code == code);
        assert!(outcomes.iter().any(refused), "{code}");
    }
    assert!(outcomes.contains(&Outcome::Handled(Revision::V2026_07_28)));
    assert!(outcomes.contains(&Outcome::MethodNotFound));
}

/// A modern request with these members of `_meta`; `Null` stands for none.
fn with(cx: Cx, capabilities: &Value, level: &Value) -> Call {
    let mut call = Call::modern("prompts/list", json!({}));
    // As a client does that has just learnt the modern form, and still says so.
    call.set("/params/protocolVersion", cx.revision.as_str());
    let absent = json!("absent");
    if *capabilities == absent {
        call.remove(&meta(CAPABILITIES));
    } else {
        call.set(&meta(CAPABILITIES), capabilities.clone());
    }
    if *level != absent {
        call.set(&meta(LOG_LEVEL), level.clone());
    }
    call
}

/// Capabilities are an object, a log level is one of eight; the first wrong one is named.
async fn envelope(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    let good = levels.map(Value::from).into_iter().chain([json!("absent")]).map(|level| (level, true));
    let bad =
        [json!("loud"), json!("INFO"), json!(""), json!(" info"), json!(7), json!(null), json!({}), json!(["info"])];
    let levels: Vec<_> = good.chain(bad.map(|level| (level, false))).collect();
    let capabilities = [
        (json!({}), true),
        (json!({"sampling": {}, "x": null}), true),
        (json!("absent"), false),
        (json!([]), false),
        (json!("{}"), false),
        (json!(null), false),
        (json!(true), false),
    ];
    for (capabilities, has_capabilities) in &capabilities {
        for (level, has_level) in &levels {
            let answer = client.send(with(cx, capabilities, level)).await;
            let key = match (has_capabilities, has_level) {
                (true, true) => {
                    assert_eq!(answer.result().await["method"], "prompts/list");
                    assert_eq!(seen.methods(), ["prompts/list"]);
                    continue;
                }
                (true, false) => LOG_LEVEL,
                (false, _) => CAPABILITIES,
            };
            let error = answer.error(StatusCode::BAD_REQUEST, -32602, Some(&ID.into())).await;
            assert!(error["message"].as_str().expect("a text").contains(key), "{error}");
            assert_eq!(seen.methods(), [""; 0]);
        }
    }
}

/// The versions are judged before the rest of `_meta`.
async fn order(cx: Cx) {
    let (service, _) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let broken = || with(cx, &json!([]), &json!("loud"));
    let expect = async |call: Call, code: i64, names: &str| {
        let error = client.send(call).await.error(StatusCode::BAD_REQUEST, code, Some(&ID.into())).await;
        assert!(error["message"].as_str().expect("a text").contains(names), "{error}");
    };
    expect(broken().without(PROTOCOL_VERSION), -32020, "").await;
    expect(broken().header(PROTOCOL_VERSION, "2025-11-25"), -32020, "").await;
    let mut unserved = broken().header(PROTOCOL_VERSION, "2099-01-01");
    unserved.set(&meta(CLAIM), "2099-01-01");
    expect(unserved, -32022, "").await;
    let mut unclaimed = broken();
    unclaimed.remove(&meta(CLAIM));
    expect(unclaimed, -32602, CLAIM).await;
    let mut escaped = Call::modern("prompts/list", json!({}));
    escaped.replace("/protocolVersion\":\"2026-07-28\"", "\\/protocol\\u0056ersion\":\"2026\\u002d07-28\"");
    let answer = client.send(escaped).await.result().await;
    assert_eq!(answer["revision"], "2026-07-28");
}
