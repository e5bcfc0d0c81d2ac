//! The body of a POST, and what `params._meta` has to say.

use std::sync::Arc;

use mcp_transport::{LogLevel, Reply, RequestContext, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{INVALID_PARAMS, INVALID_REQUEST, MISMATCH, Site, Verdict, refused, refused_bare, tool_call};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::{
    CAPABILITIES, CLAIM, CLIENT_INFO, Call, ID, LOG_LEVEL, MCP_METHOD, MCP_NAME, PROTOCOL_VERSION, meta,
};

pub fn register(wire: &mut Wire) {
    wire.modern("body/no-batch", Carriers::Every, no_batch);
    wire.modern("body/no-response", Carriers::Every, no_response);
    wire.modern("meta/required", Carriers::Every, required);
    wire.modern("meta/required/names-the-key", Carriers::Clock, names_the_key);
    wire.modern("meta/log-level", Carriers::Every, log_level);
    wire.modern("notify/202", Carriers::Every, notifications);
    wire.modern("notify/202/too-many-hooks", Carriers::Clock, too_many_hooks);
    wire.modern("notify/202/hook-sends", Carriers::Every, hook_sends);
    wire.modern("headers/notification-exempt", Carriers::Every, exempt);
}

/// A message that says it is modern in its body.
fn claiming() -> Value {
    json!({"jsonrpc": "2.0", "id": ID, "method": "tools/list", "params": {"_meta": {CLAIM: "2026-07-28", CAPABILITIES: {}}}})
}

async fn no_batch(cx: Cx) {
    let site = Site::open(cx).await;
    let plain = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    for batch in [
        json!([]),
        json!([plain]),
        json!([plain, plain]),
        json!([notification]),
        json!([claiming()]),
        json!([1, "two", null]),
        json!([[claiming()]]),
    ] {
        let call = Call::post(batch.clone()).header(PROTOCOL_VERSION, "2026-07-28").header(MCP_METHOD, "tools/list");
        assert_eq!(site.verdict(call).await, refused_bare(400, INVALID_REQUEST), "{batch}");
    }
    // Without the header, a claim in any element is enough.
    for batch in [json!([claiming()]), json!([plain, notification, claiming()])] {
        assert_eq!(site.verdict(Call::post(batch.clone())).await, refused_bare(400, INVALID_REQUEST), "{batch}");
    }
}

async fn no_response(cx: Cx) {
    let site = Site::open(cx).await;
    for response in [
        json!({"jsonrpc": "2.0", "id": ID, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "a", "result": {"_meta": {CLAIM: "2026-07-28"}}}),
        json!({"jsonrpc": "2.0", "id": ID, "error": {"code": -1, "message": "no"}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -1, "message": "no"}}),
        json!({"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}}),
    ] {
        let call = Call::post(response.clone()).header(PROTOCOL_VERSION, "2026-07-28");
        assert_eq!(site.verdict(call).await, refused_bare(400, INVALID_REQUEST), "{response}");
    }
    let mut claimed = json!({"jsonrpc": "2.0", "id": ID, "result": {}});
    claimed["params"] = claiming()["params"].take();
    assert_eq!(site.verdict(Call::post(claimed)).await, refused_bare(400, INVALID_REQUEST));
}

async fn required(cx: Cx) {
    let site = Site::open(cx).await;
    for method in ["tools/call", "tools/list", "server/discover", "subscriptions/listen", "x/unknown"] {
        let call = || Call::modern(method, json!({}));
        let wrong = |what: &str, breaks: &dyn Fn(&mut Call)| {
            let mut call = call();
            breaks(&mut call);
            (format!("{method}: {what}"), call)
        };
        for (what, call) in [
            wrong("no claim", &|call| call.remove(&meta(CLAIM))),
            wrong("no capabilities", &|call| call.remove(&meta(CAPABILITIES))),
            wrong("capabilities null", &|call| call.set(&meta(CAPABILITIES), Value::Null)),
            wrong("capabilities array", &|call| call.set(&meta(CAPABILITIES), json!([]))),
            wrong("capabilities text", &|call| call.set(&meta(CAPABILITIES), "{}")),
            wrong("capabilities true", &|call| call.set(&meta(CAPABILITIES), true)),
            wrong("claim null", &|call| call.set(&meta(CLAIM), Value::Null)),
            wrong("claim number", &|call| call.set(&meta(CLAIM), 20_260_728)),
            wrong("claim array", &|call| call.set(&meta(CLAIM), json!(["2026-07-28"]))),
            wrong("_meta empty", &|call| call.set("/params/_meta", json!({}))),
            wrong("_meta null", &|call| call.set("/params/_meta", Value::Null)),
            wrong("_meta array", &|call| call.set("/params/_meta", json!([CLAIM]))),
            wrong("no _meta", &|call| call.remove("/params/_meta")),
            wrong("no params", &|call| call.remove("/params")),
        ] {
            site.refuses(INVALID_PARAMS, call, &what).await;
        }
    }
    // The keys stand in `params._meta`, nowhere else.
    let mut elsewhere = tool_call(json!({}));
    let moved = elsewhere.body["params"]["_meta"].take();
    elsewhere.set("/_meta", moved.clone());
    elsewhere.set("/params/_meta", json!({"_meta": moved}));
    site.refuses(INVALID_PARAMS, elsewhere, "elsewhere").await;

    for (what, info) in [("absent", None), ("null", Some(Value::Null)), ("text", Some("me".into()))] {
        let mut call = tool_call(json!({}));
        call.remove(&meta(CLIENT_INFO));
        info.into_iter().for_each(|info| call.set(&meta(CLIENT_INFO), info));
        site.passes(call, &format!("clientInfo {what}")).await;
    }
    let mut escaped = tool_call(json!({}));
    escaped.replace("/clientCapabilities", "\\/client\\u0043apabilities");
    escaped.replace("/protocolVersion", "\\u002fprotocolVersion");
    escaped.replace("\"2026-07-28\"", "\"2026\\u002d07-28\"");
    site.passes(escaped, "escaped keys and values").await;
    let mut rich = tool_call(json!({}));
    rich.set(&meta(CAPABILITIES), json!({"sampling": {}, "x": [1, {"y": null}]}));
    rich.set("/params/_meta/com.example~1own", 5);
    site.passes(rich, "more in _meta").await;
}

async fn names_the_key(cx: Cx) {
    let site = Site::open(cx).await;
    for key in [CLAIM, CAPABILITIES] {
        let mut call = tool_call(json!({}));
        call.remove(&meta(key));
        let error = site.client.send(call).await.json().await;
        assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains(key)), "{error}");
    }
    let mut call = tool_call(json!({}));
    call.set(&meta(LOG_LEVEL), "tremendous");
    let error = site.client.send(call).await.json().await;
    let text = error["error"]["message"].as_str().expect("a message");
    assert!(text.contains(LOG_LEVEL) && !text.contains("tremendous"), "{text}");
}

async fn log_level(cx: Cx) {
    let site = Site::open(cx).await;
    let leveled = |level: Value| {
        let mut call = tool_call(json!({}));
        call.set(&meta(LOG_LEVEL), level);
        call
    };
    for level in ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] {
        site.passes(leveled(level.into()), level).await;
    }
    let mut escaped = leveled("info".into());
    escaped.replace("\"info\"", "\"\\u0069nfo\"");
    site.passes(escaped, "escaped").await;
    for level in [
        json!("Info"),
        json!("warn"),
        json!("info "),
        json!(""),
        json!("x".repeat(2000)),
        json!(3),
        json!(null),
        json!(true),
        json!(["info"]),
        json!({"info": null}),
    ] {
        site.refuses(INVALID_PARAMS, leveled(level.clone()), &level.to_string()).await;
    }
    let mut both = leveled("loud".into());
    both.remove(&meta(CAPABILITIES));
    let error = site.client.send(both).await.json().await;
    assert!(error["error"]["message"].as_str().is_some_and(|text| text.contains(CAPABILITIES)), "capabilities first");
}

/// What a hook sends, it sends to nobody, and does not wait for anybody.
async fn hook_sends(cx: Cx) {
    let over = Arc::new(Notify::new());
    let script = Script::new(|_, _| async { Reply::empty() }).hearing({
        let over = Arc::clone(&over);
        move |_, cx: RequestContext| {
            let over = Arc::clone(&over);
            async move {
                for _ in 0..1000 {
                    cx.notify("notifications/x", json!({})).await.expect("an object");
                    cx.log(LogLevel::Error, "x").await.expect("text");
                }
                over.notify_one();
            }
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    assert_eq!(client.send(notification("notifications/x")).await.status, 202);
    over.notified().await;
}

/// A bare notification under the header that makes it modern.
fn notification(method: &str) -> Call {
    Call::post(json!({"jsonrpc": "2.0", "method": method})).header(PROTOCOL_VERSION, "2026-07-28")
}

async fn notifications(cx: Cx) {
    let site = Site::open(cx).await;
    for method in [
        "notifications/cancelled",
        "notifications/progress",
        "notifications/initialized",
        "notifications/roots/list_changed",
        "notifications/unheard/of",
        // Methods of requests, whatever they are for.
        "tools/call",
        "initialize",
        "ping",
        "server/discover",
        "",
    ] {
        assert_eq!(site.verdict(notification(method)).await, Verdict::Heard, "{method}");
        for accept in ["application/json", "text/event-stream"] {
            assert_eq!(site.verdict(notification(method).header("accept", accept)).await, Verdict::Heard, "{method}");
        }
    }
    // An id that is there makes it a request, whatever it is.
    let call = Call::modern("notifications/progress", json!({})).id(Value::Null);
    assert_eq!(site.verdict(call).await, refused_bare(400, INVALID_REQUEST));
}

async fn exempt(cx: Cx) {
    let site = Site::open(cx).await;
    let with_claim = |claim: Value| {
        let message = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": {CLAIM: claim}}});
        Call::post(message)
    };
    for (what, call) in [
        ("header, no claim", notification("notifications/x")),
        ("a later header, no claim", notification("notifications/x").header(PROTOCOL_VERSION, "2099-01-01")),
        ("claim, no header", with_claim("2026-07-28".into())),
        ("another claim, no header", with_claim("2099-01-01".into())),
        ("an old claim, no header", with_claim("2025-11-25".into())),
        ("both", with_claim("2026-07-28".into()).header(PROTOCOL_VERSION, "2026-07-28")),
        ("both, with space", with_claim("2026-07-28".into()).header(PROTOCOL_VERSION, "2026-07-28 ")),
        ("Mcp-Method differs", notification("notifications/x").header(MCP_METHOD, "tools/call")),
        ("Mcp-Method twice", notification("notifications/x").header(MCP_METHOD, "a").also(MCP_METHOD, "b")),
        ("Mcp-Method bad", notification("notifications/x").header(MCP_METHOD, b"\xff")),
        ("Mcp-Name differs", Call::modern("tools/call", json!({"name": "a"})).notification().header(MCP_NAME, "b")),
        ("a bad parameter", notification("notifications/x").header("mcp-param-region", b"\xff")),
    ] {
        assert_eq!(site.verdict(call).await, Verdict::Heard, "{what}");
    }
    for (what, call) in [
        ("disagree", with_claim("2026-07-28".into()).header(PROTOCOL_VERSION, "2099-01-01")),
        ("disagree, header old", with_claim("2026-07-28".into()).header(PROTOCOL_VERSION, "2025-11-25")),
        ("disagree, header empty", with_claim("2026-07-28".into()).header(PROTOCOL_VERSION, "")),
        ("disagree, claim empty", with_claim("".into()).header(PROTOCOL_VERSION, "2026-07-28")),
        ("a claim that is no text", with_claim(7.into()).header(PROTOCOL_VERSION, "2026-07-28")),
        ("a claim that is null", with_claim(Value::Null).header(PROTOCOL_VERSION, "2026-07-28")),
        ("doubled, claimed", {
            let call = with_claim("2026-07-28".into()).header(PROTOCOL_VERSION, "2026-07-28");
            call.also(PROTOCOL_VERSION, "2026-07-28")
        }),
        ("doubled, not claimed", notification("notifications/x").also(PROTOCOL_VERSION, "2026-07-28")),
        ("doubled, one of them old", notification("notifications/x").also(PROTOCOL_VERSION, "2025-11-25")),
        ("bad bytes", with_claim("2026-07-28".into()).header(PROTOCOL_VERSION, b"2026-07-28\xff")),
    ] {
        assert_eq!(site.verdict(call).await, refused_bare(400, MISMATCH), "{what}");
    }
    for version in ["2099-01-01", "2025-11-25", "DRAFT"] {
        let call = with_claim(version.into()).header(PROTOCOL_VERSION, version);
        let error = site.client.send(call).await.error(http::StatusCode::BAD_REQUEST, -32022, None).await;
        assert_eq!(error["data"], json!({"supported": ["2026-07-28"], "requested": version}));
    }
    // A request is not exempt.
    let request = with_claim("2026-07-28".into()).id(ID);
    assert_eq!(site.verdict(request).await, refused(400, MISMATCH));
}

/// The client waits for no hook, so those that wait are bounded.
async fn too_many_hooks(cx: Cx) {
    let script = Script::new(|_, _| async { Reply::empty() }).hearing(|_, _| std::future::pending());
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let send = async || client.send(Call::modern("notifications/x", json!({})).notification()).await.status;
    for _ in 0..1024 {
        assert_eq!(send().await, 202);
    }
    assert_eq!(send().await, 503);
    client.send(Call::modern("x/y", json!({}))).await.result().await;
}
