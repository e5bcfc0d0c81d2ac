//! `initialize`: what it opens, when it opens nothing, and what it declares.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{Capabilities, Revision, Revisions, Sessions};
use serde_json::{Value, json};

use super::{Bench, print};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, ID, MCP_METHOD, PROTOCOL_VERSION, SESSION_ID};
use crate::support::session::{self, ACCOUNT, initialize, initialize_with};

pub fn register(wire: &mut Wire) {
    wire.legacy("initialize/mints", Carriers::Every, mints);
    wire.legacy("initialize/mints/random", Carriers::Every, random);
    wire.legacy("initialize/mints/failed", Carriers::Every, failed);
    wire.legacy("initialize/twice", Carriers::Every, twice);
    wire.legacy("initialize/declares", Carriers::Every, declares);
    wire.legacy("initialize/negotiates/session", Carriers::Every, negotiates);
    wire.legacy("initialize/extra-headers/session", Carriers::Every, extra_headers);
}

/// A session is there before the client hears of it, whatever form the answer takes.
async fn mints(cx: Cx) {
    let bench = Bench::open(cx).await;
    let forms = ["application/json", "text/event-stream", "application/json, text/event-stream", "*/*"];
    for (opened, accept) in (1..).zip(forms) {
        let answer = bench.client.send(initialize(cx.revision).header(ACCEPT.as_str(), accept)).await;
        assert_eq!(answer.status, StatusCode::OK);
        let id = answer.header(SESSION_ID).to_owned();
        assert!(!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id:?}");
        assert_eq!(bench.life.take(), [format!("opened {id}")]);
        assert_eq!(bench.service.counts().sessions, opened);
        let response = if accept == "text/event-stream" {
            let mut events = answer.events().await;
            assert_eq!(events.len(), 1);
            events.remove(0)
        } else {
            answer.json().await
        };
        assert_eq!(
            (&response["id"], &response["result"]["protocolVersion"]),
            (&json!(ID), &json!(cx.revision.as_str()))
        );
        let asked = Call::legacy(cx.revision, "x/quick", Value::Null).header(SESSION_ID, &id);
        let answer = bench.client.send(asked).await;
        assert_eq!(answer.header(SESSION_ID), "", "only initialize mints");
        let result = answer.result().await;
        assert_eq!(result, json!({"method": "x/quick", "revision": cx.revision.as_str(), "session": id}));
        assert_eq!(bench.life.take(), ["request x/quick"]);
    }
}

/// 128 random bits: every place of the id takes as many values as that needs.
async fn random(cx: Cx) {
    let bench = Bench::open(cx).await;
    let mut ids = BTreeSet::new();
    for _ in 0..400 {
        ids.insert(session::start(&bench.client, cx.revision).await.id);
    }
    assert_eq!(ids.len(), 400);
    let mut places: BTreeMap<usize, BTreeSet<u8>> = BTreeMap::new();
    for id in &ids {
        id.bytes().enumerate().for_each(|(place, byte)| {
            places.entry(place).or_default().insert(byte);
        });
    }
    #[allow(clippy::cast_precision_loss)] // a place has at most 94 values
    let bits: f64 = places.values().map(|values| (values.len() as f64).log2()).sum();
    // 400 of 64 values are all of them but one in a blue moon.
    assert!(bits > 126.0, "{bits} bits in {:?}", ids.first());
}

/// Whatever is not answered with a result opens nothing.
async fn failed(cx: Cx) {
    let bench = Bench::open(cx).await;
    let version = cx.revision.as_str();
    let lone = "\u{1}";
    for (params, edit) in [
        (Value::Null, None),
        (json!({}), None),
        (json!({"protocolVersion": version}), None),
        (json!({"capabilities": {}}), None),
        (json!({"protocolVersion": 7, "capabilities": {}}), None),
        (json!({"protocolVersion": null, "capabilities": {}}), None),
        (json!({"protocolVersion": [version], "capabilities": {}}), None),
        (json!({"protocolVersion": version, "capabilities": null}), None),
        (json!({"protocolVersion": version, "capabilities": []}), None),
        (json!({"protocolVersion": version, "capabilities": "{}"}), None),
        (json!({"protocolVersion": version, "capabilities": true}), None),
        (json!({"protocolVersion": version, "Capabilities": {}}), None),
        (json!({"protocolVersion": lone, "capabilities": {}}), Some(("\\u0001", "\\ud800"))),
    ] {
        let mut call = Call::legacy(cx.revision, "initialize", params);
        if let Some((old, new)) = edit {
            call.replace(old, new);
        }
        let answer = bench.client.send(call).await;
        assert_eq!(answer.header(SESSION_ID), "");
        answer.error(StatusCode::OK, -32602, Some(&ID.into())).await;
    }
    for (call, status) in [
        (initialize(cx.revision).header(PROTOCOL_VERSION, "DRAFT-1"), 400),
        (initialize(cx.revision).header(PROTOCOL_VERSION, "2026-07-28"), 400),
        (initialize(cx.revision).header(PROTOCOL_VERSION, version).also(PROTOCOL_VERSION, version), 400),
        (initialize(cx.revision).header(SESSION_ID, "none"), 404),
        (initialize(cx.revision).header(SESSION_ID, "none").also(SESSION_ID, "none"), 400),
        (initialize(cx.revision).header(ACCEPT.as_str(), "text/html"), 406),
        (initialize(cx.revision).id(Value::Null), 400),
        (initialize_with(version, json!({"experimental": {"x": "y".repeat(70_000)}})), 400),
        // Without an id it asks for nothing.
        (initialize(cx.revision).notification(), 202),
    ] {
        let answer = bench.client.send(call).await;
        assert_eq!((answer.status.as_u16(), answer.header(SESSION_ID)), (status, ""));
    }
    let life = bench.life.take();
    assert_eq!(life, ["notification initialize"]);
    assert_eq!(bench.service.counts().sessions, 0);

    bench.service.drain(Duration::ZERO).await;
    let answer = bench.client.send(initialize(cx.revision)).await;
    assert_eq!(answer.header(SESSION_ID), "");
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;

    let none = Bench::with(cx, |builder| builder.sessions(Sessions::Off)).await;
    let answer = none.client.send(initialize(cx.revision)).await;
    assert_eq!(answer.header(SESSION_ID), "");
    assert_eq!(answer.result().await["protocolVersion"], version);
    assert_eq!((none.life.take(), none.service.counts().sessions), (Vec::new(), 0));
}

/// A session is opened once. Naming one in `initialize` is a mistake, and changes nothing.
async fn twice(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let other = session::open_by(&bench.client, initialize(cx.revision).header(ACCOUNT, "ada")).await;
    bench.life.take();
    for call in [
        initialize(cx.revision),
        initialize_with("2099-01-01", json!({"roots": {}})),
        initialize(cx.revision).header(ACCEPT.as_str(), "text/event-stream"),
        initialize(cx.revision).header(PROTOCOL_VERSION, "2025-06-18"),
        initialize(cx.revision).header(MCP_METHOD, "initialize"),
        Call::legacy(cx.revision, "initialize", json!({})),
        Call::legacy(cx.revision, "initialize", Value::Null).id("a"),
    ] {
        let id = call.body["id"].clone();
        let answer = bench.client.send(session.sign(call)).await;
        assert_eq!(answer.header(SESSION_ID), "");
        answer.error(StatusCode::BAD_REQUEST, -32600, Some(&id)).await;
    }
    // The session is as it was.
    assert_eq!(session.result("x/quick", Value::Null).await["revision"], cx.revision.as_str());
    assert_eq!(bench.life.take(), ["request x/quick"]);
    assert_eq!(bench.service.counts().sessions, 2);

    let unknown = print(bench.client.send(initialize(cx.revision).header(SESSION_ID, "none")).await).await;
    assert_eq!(unknown.0, StatusCode::NOT_FOUND);
    let foreign = bench.client.send(initialize(cx.revision).header(SESSION_ID, &other.id)).await;
    assert_eq!(print(foreign).await, unknown);
    session.end().await;
    let ended = bench.client.send(session.sign(initialize(cx.revision))).await;
    assert_eq!(print(ended).await, unknown);
    assert_eq!(bench.service.counts().sessions, 1);
    // Naming none opens another, beside those that are there.
    let again = bench.session(cx).await;
    assert!(again.id != session.id && again.id != other.id);
}

/// `listChanged` and `subscribe` stand where changes can be delivered, and nowhere else.
async fn declares(cx: Cx) {
    let lists = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
    for (capabilities, declared, methods) in [
        (Capabilities::new(), json!({}), [false; 4]),
        (
            Capabilities::new().tools().prompts().resources().completions().logging(),
            json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}),
            [false; 4],
        ),
        (
            Capabilities::new().tools_list_changed().prompts(),
            json!({"tools": {"listChanged": true}, "prompts": {}}),
            [true, false, false, false],
        ),
        (
            Capabilities::new().resources_subscribe().tools(),
            json!({"tools": {}, "resources": {"subscribe": true}}),
            [false, false, false, true],
        ),
        (
            lists.clone(),
            json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "resources": {"listChanged": true}}),
            [true, true, true, false],
        ),
        (
            lists.resources_subscribe(),
            json!({
                "tools": {"listChanged": true},
                "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
            }),
            [true; 4],
        ),
    ] {
        let bench = Bench::of(cx, |script, _| script.declaring(capabilities.clone()), |builder| builder).await;
        let session = bench.session(cx).await;
        assert_eq!(session.initialized["capabilities"], declared);
        // What is declared is what is delivered.
        let mut stream = session.listen().await;
        let subscribed = session.request("resources/subscribe", json!({"uri": "file:///a"})).await.json().await;
        assert_eq!(subscribed.get("result").is_some(), methods[3], "{subscribed}");
        let changes = bench.service.changes();
        changes.tools_list_changed();
        changes.prompts_list_changed();
        changes.resources_list_changed();
        changes.resource_updated("file:///a");
        let names = ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"];
        for (name, _) in names.into_iter().zip(methods).filter(|(_, delivered)| *delivered) {
            assert_eq!(stream.next_message().await.expect("a change")["method"], format!("notifications/{name}"));
        }
        session.end().await;
        assert_eq!(stream.next_message().await, None, "nothing that was not declared");

        let none =
            Bench::of(cx, |script, _| script.declaring(capabilities), |builder| builder.sessions(Sessions::Off)).await;
        let result = none.client.send(initialize(cx.revision)).await.result().await;
        for (name, settings) in result["capabilities"].as_object().expect("capabilities") {
            assert!(declared.get(name).is_some() && settings == &json!({}), "{name}: {settings}");
        }
        assert_eq!(result["capabilities"].as_object().map(|all| all.len()), declared.as_object().map(|all| all.len()));
    }
}

/// A session speaks what was offered, also where that is not what was asked for.
async fn negotiates(cx: Cx) {
    for served in [Revisions::all(), Revisions::all().without(Revision::V2025_11_25), Revisions::only([cx.revision])] {
        let bench = Bench::with(cx, |builder| builder.revisions(served)).await;
        for asked in [cx.revision.as_str(), "2025-11-25", "2026-07-28", "2099-01-01", "x", ""] {
            let session = session::open_by(&bench.client, initialize_with(asked, json!({}))).await;
            let latest = served.iter().filter(|revision| *revision < Revision::V2026_07_28).max().expect("one");
            let is_served = asked < "2026" && Revision::parse(asked).is_some_and(|asked| served.contains(asked));
            assert_eq!(session.revision.as_str(), if is_served { asked } else { latest.as_str() }, "{asked}");
            let result = session.result("x/quick", Value::Null).await;
            assert_eq!(result["revision"], session.revision.as_str());
        }
    }
}

/// The headers of `initialize` leave no trace in its session.
async fn extra_headers(cx: Cx) {
    let bench = Bench::open(cx).await;
    for header in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let call = initialize(cx.revision).header(PROTOCOL_VERSION, header).header(MCP_METHOD, "initialize");
        let session = session::open_by(&bench.client, call).await;
        assert_eq!(session.revision, cx.revision);
        assert_eq!(session.result("x/quick", Value::Null).await["revision"], cx.revision.as_str());
    }
}
