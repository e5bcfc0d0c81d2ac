//! What the transport writes into results: their type, who made them, and for how long they keep.

use mcp_transport::{Capabilities, Reply, Revisions, ServerInfoStamp, StreamableHttpService};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::{Call, ID};

pub fn register(wire: &mut Wire) {
    wire.modern("discover/answered", Carriers::Every, discover);
    wire.modern("result/type", Carriers::Every, result_type);
    wire.modern("result/type/raw", Carriers::Every, raw);
    wire.modern("result/cache", Carriers::Every, cache);
    wire.modern("result/cache/own", Carriers::Every, own_hints);
    wire.modern("result/cache/retried", Carriers::Every, retried);
    wire.modern("result/cache/others", Carriers::Every, others);
}

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Answers with the JSON text in `params.answer`.
fn parrot() -> Script {
    Script::new(|request, _| async move {
        let params: Value = request.params()?;
        let text = params["answer"].as_str().unwrap_or("{}").to_owned();
        if params["raw"] == true {
            return Reply::of(RawValue::from_string(text).expect("JSON"));
        }
        Reply::of(serde_json::from_str::<Value>(&text).expect("JSON"))
    })
}

/// A request that is answered with this result.
fn wanting(method: &str, answer: &Value) -> Call {
    let mut params = json!({"answer": answer.to_string()});
    match method {
        "tools/call" | "prompts/get" => params["name"] = "a".into(),
        "resources/read" => params["uri"] = "file:///a".into(),
        _ => {}
    }
    Call::modern(method, params)
}

async fn ask(client: &Client, method: &str, answer: Value) -> Value {
    client.send(wanting(method, &answer)).await.result().await
}

async fn discover(cx: Cx) {
    let capabilities =
        Capabilities::new().tools().logging().experimental("x", json!({"y": 1})).extension("com.example/e", json!({}));
    let script = || Script::new(|_, _| async { panic!("the transport answers it") }).declaring(capabilities.clone());
    let service = StreamableHttpService::new(script().instructing("Be \"kind\".\n"));
    let client = cx.serve(service.clone()).await;
    let expected = json!({
        "supportedVersions": ["2026-07-28"],
        "capabilities": {
            "tools": {}, "logging": {}, "experimental": {"x": {"y": 1}}, "extensions": {"com.example/e": {}},
        },
        "instructions": "Be \"kind\".\n",
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {SERVER_INFO: {"name": "wire", "version": "1"}},
    });
    for id in [json!(1), json!("a"), json!(-7)] {
        let answer = client.send(Call::modern("server/discover", json!({})).id(id.clone())).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.headers.contains_key("mcp-session-id"));
        assert_eq!(answer.json().await, json!({"jsonrpc": "2.0", "id": id, "result": expected}));
    }
    let sse = Call::modern("server/discover", json!({})).header("accept", "text/event-stream");
    let events = client.send(sse).await.events().await;
    assert_eq!(events, [json!({"jsonrpc": "2.0", "id": ID, "result": expected})]);
    // Nothing is left behind.
    assert_eq!((service.counts().in_flight, service.counts().streams), (0, 0));

    // No instructions, no member; only modern versions, whatever else is served.
    for revisions in [Revisions::all(), Revisions::modern_only()] {
        let service = StreamableHttpService::builder(script()).revisions(revisions).build().expect("a service");
        let result = cx.serve(service).await.send(Call::modern("server/discover", json!({}))).await.result().await;
        assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
        assert!(result.get("instructions").is_none(), "{result}");
    }
}

async fn result_type(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(parrot())).await;
    let info = json!({"name": "wire", "version": "1"});
    for method in ["tools/call", "prompts/get", "completion/complete", "x/unknown"] {
        let result = ask(&client, method, json!({})).await;
        assert_eq!(result, json!({"resultType": "complete", "_meta": {SERVER_INFO: info}}), "{method}");
    }
    for method in ["tools/list", "resources/read", "server/discover"] {
        let result = ask(&client, method, json!({})).await;
        assert_eq!((&result["resultType"], &result["_meta"][SERVER_INFO]), (&json!("complete"), &info), "{method}");
    }
    // On a stream too.
    let answer = client.send(wanting("tools/call", &json!({})).header("accept", "text/event-stream")).await;
    let events = answer.events().await;
    assert_eq!(events[0]["result"], json!({"resultType": "complete", "_meta": {SERVER_INFO: info}}));

    // What the handler says stays, and nothing comes twice.
    for (own, expected) in [
        (json!({"resultType": "task"}), json!({"resultType": "task", "_meta": {SERVER_INFO: info}})),
        (json!({"resultType": "complete"}), json!({"resultType": "complete", "_meta": {SERVER_INFO: info}})),
        (json!({"resultType": ""}), json!({"resultType": "", "_meta": {SERVER_INFO: info}})),
        (
            json!({"_meta": {SERVER_INFO: {"name": "other"}}}),
            json!({"resultType": "complete", "_meta": {SERVER_INFO: {"name": "other"}}}),
        ),
        (json!({"_meta": {SERVER_INFO: null}}), json!({"resultType": "complete", "_meta": {SERVER_INFO: null}})),
        (
            json!({"_meta": {"a": {SERVER_INFO: 1}}, "resulttype": 1}),
            json!({"resultType": "complete", "resulttype": 1, "_meta": {"a": {SERVER_INFO: 1}, SERVER_INFO: info}}),
        ),
        (
            json!({"a": {"resultType": "x", "_meta": 7}}),
            json!({"resultType": "complete", "a": {"resultType": "x", "_meta": 7}, "_meta": {SERVER_INFO: info}}),
        ),
    ] {
        let text = client.send(wanting("tools/call", &own)).await.text().await;
        let response: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(response["result"], expected, "{own}");
        let twice = |key: &str, most: usize| text.matches(&format!("\"{key}\"")).count() <= most;
        assert!(twice("resultType", 2) && twice("_meta", 2) && twice(SERVER_INFO, 2), "{text}");
    }
    // What is no result is an internal error.
    for bad in [json!(7), json!([]), json!(null), json!({"resultType": 7}), json!({"_meta": 7}), json!({"_meta": []})] {
        let answer = client.send(wanting("tools/call", &bad)).await;
        assert_eq!(answer.json().await["error"]["code"], -32603, "{bad}");
    }

    let service = StreamableHttpService::builder(parrot()).server_info_stamp(ServerInfoStamp::Never).build();
    let client = cx.serve(service.expect("a service")).await;
    assert_eq!(ask(&client, "tools/call", json!({})).await, json!({"resultType": "complete"}));
    let own = json!({"_meta": {SERVER_INFO: {"name": "own"}}});
    assert_eq!(ask(&client, "tools/call", own.clone()).await["_meta"], own["_meta"]);
    assert!(ask(&client, "server/discover", json!({})).await.get("_meta").is_none());
}

/// Results that the handler hands over as JSON text, written as oddly as JSON allows.
async fn raw(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(parrot())).await;
    let info = json!({"name": "wire", "version": "1"});
    let ask = |method: &'static str, text: &'static str| {
        let client = client.clone();
        let call = Call::modern(method, json!({"answer": text, "raw": true}));
        async move { client.send(call).await.json().await["result"].take() }
    };
    for (text, expected) in [
        ("{ }", json!({"resultType": "complete", "_meta": {SERVER_INFO: info}})),
        ("{\n\t\"a\" : 1\r\n}", json!({"a": 1, "resultType": "complete", "_meta": {SERVER_INFO: info}})),
        ("{\"\\u0072esultType\":\"task\"}", json!({"resultType": "task", "_meta": {SERVER_INFO: info}})),
        (
            "{\"_meta\" : { \"io.modelcontextprotocol\\/serverInfo\" : 1 } }",
            json!({"resultType": "complete", "_meta": {SERVER_INFO: 1}}),
        ),
        ("{\"_meta\":{ }}", json!({"resultType": "complete", "_meta": {SERVER_INFO: info}})),
        (
            "{\"a\":\"}\",\"b\":\"\\\"_meta\\\":{}\"}",
            json!({"a": "}", "b": "\"_meta\":{}", "resultType": "complete", "_meta": {SERVER_INFO: info}}),
        ),
    ] {
        assert_eq!(ask("x/y", text).await, expected, "{text}");
    }
    let cached = ask("tools/list", "{\"ttl\\u004ds\": 5 , \"tools\":[] }").await;
    assert_eq!((&cached["ttlMs"], &cached["cacheScope"]), (&json!(5), &json!("private")));
    let replaced = ask("tools/list", "{\"tools\":[],\"ttlMs\":\n-1,\"cacheScope\":\"\\u0070ublic\"}").await;
    assert_eq!((&replaced["ttlMs"], &replaced["cacheScope"]), (&json!(0), &json!("public")));
    // A member that comes twice could be read either way.
    let answer = client.send(Call::modern("x/y", json!({"answer": "{\"ttlMs\":1,\"ttlMs\":2}", "raw": true}))).await;
    assert_eq!(answer.json().await["error"]["code"], -32603);
}

const CACHED: [&str; 5] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];

fn hints(result: &Value) -> (Option<&Value>, Option<&Value>) {
    (result.get("ttlMs"), result.get("cacheScope"))
}

async fn cache(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(parrot())).await;
    let defaults = (json!(0), json!("private"));
    for method in CACHED.into_iter().chain(["server/discover"]) {
        let result = ask(&client, method, json!({"items": []})).await;
        assert_eq!(hints(&result), (Some(&defaults.0), Some(&defaults.1)), "{method}");
    }
    // The same for every page.
    for page in [json!({"tools": [], "nextCursor": "2"}), json!({"tools": []})] {
        for cursor in [json!({}), json!({"cursor": "2"})] {
            let mut call = wanting("tools/list", &page);
            cursor.as_object().into_iter().flatten().for_each(|(key, value)| {
                call.set(&format!("/params/{key}"), value.clone());
            });
            let result = client.send(call).await.result().await;
            assert_eq!(hints(&result), (Some(&defaults.0), Some(&defaults.1)), "{page} {cursor}");
            assert_eq!(result.get("nextCursor"), page.get("nextCursor"));
        }
    }
}

async fn own_hints(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(parrot())).await;
    for method in CACHED {
        for ttl in [json!(0), json!(1), json!(5000), json!(u64::from(u32::MAX) + 1), json!(9_007_199_254_740_991_u64)] {
            let result = ask(&client, method, json!({ "ttlMs": ttl })).await;
            assert_eq!(hints(&result), (Some(&ttl), Some(&json!("private"))), "{method}");
        }
        for scope in [json!("public"), json!("private")] {
            let result = ask(&client, method, json!({ "cacheScope": scope })).await;
            assert_eq!(hints(&result), (Some(&json!(0)), Some(&scope)), "{method}");
            let result = ask(&client, method, json!({"ttlMs": 7, "cacheScope": scope, "more": 1})).await;
            assert_eq!(hints(&result), (Some(&json!(7)), Some(&scope)), "{method}");
            assert_eq!(result["more"], 1);
        }
        for ttl in [json!(-1), json!(1.5), json!("5"), json!(null), json!(true), json!([]), json!({}), json!(-0.5)] {
            let result = ask(&client, method, json!({"ttlMs": ttl, "cacheScope": "public"})).await;
            assert_eq!(hints(&result), (Some(&json!(0)), Some(&json!("public"))), "{method}: {ttl}");
        }
        for scope in [json!("shared"), json!("Public"), json!(""), json!(null), json!(7), json!(["public"])] {
            let result = ask(&client, method, json!({"ttlMs": 7, "cacheScope": scope})).await;
            assert_eq!(hints(&result), (Some(&json!(7)), Some(&json!("private"))), "{method}: {scope}");
        }
        // A result that is said to be complete is as complete as one that is silent about it; any other is not cached.
        let result = ask(&client, method, json!({"resultType": "complete"})).await;
        assert_eq!(hints(&result), (Some(&json!(0)), Some(&json!("private"))), "{method}");
        let result = ask(&client, method, json!({"resultType": "task"})).await;
        assert_eq!(hints(&result), (None, None), "{method}");
        let result = ask(&client, method, json!({"resultType": "task", "ttlMs": -1, "cacheScope": 7})).await;
        assert_eq!(hints(&result), (Some(&json!(-1)), Some(&json!(7))), "{method}: nothing is stripped");
    }
}

async fn retried(cx: Cx) {
    // Asks for another round first, wherever the client sends no state.
    let stateful = Script::new(|request, cx| async move {
        let params: Value = request.params()?;
        if params["rounds"] == true && cx.request_state().is_none() {
            return Reply::of(json!({"resultType": "input_required", "requestState": "s", "ttlMs": 1}));
        }
        Reply::of(serde_json::from_str::<Value>(params["answer"].as_str().unwrap_or("{}")).expect("JSON"))
    });
    let client = cx.serve(StreamableHttpService::new(stateful)).await;
    let own = json!({"ttlMs": 5000, "cacheScope": "public"});
    for answer in [&own, &json!({})] {
        let retry = |rounds: bool| {
            let mut call = wanting("resources/read", answer);
            call.set("/params/rounds", rounds);
            call
        };
        let first = client.send(retry(true)).await.result().await;
        // Not a word more on what is not complete.
        assert_eq!(hints(&first), (Some(&json!(1)), None), "{first}");
        let with_state = ("requestState", first["requestState"].clone());
        for (key, value) in
            [("inputResponses", json!({"a": {"action": "accept"}})), ("inputResponses", json!({})), with_state]
        {
            let retry = || {
                let mut call = retry(key == "requestState");
                call.set(&format!("/params/{key}"), value.clone());
                call
            };
            let result = client.send(retry()).await.result().await;
            assert_eq!(hints(&result), (Some(&json!(0)), Some(&json!("private"))), "{key}");
            let mut call = retry();
            call.replace(&format!("\"{key}\""), &format!("\"\\u{:04x}{}\"", key.as_bytes()[0], &key[1..]));
            let result = client.send(call).await.result().await;
            assert_eq!(hints(&result), (Some(&json!(0)), Some(&json!("private"))), "{key}, escaped");
        }
    }
    let mut elsewhere = wanting("resources/read", &own);
    elsewhere.set("/params/more", json!({"inputResponses": {}, "requestState": "x"}));
    elsewhere.set("/requestState", "x");
    let result = client.send(elsewhere).await.result().await;
    assert_eq!(hints(&result), (Some(&json!(5000)), Some(&json!("public"))), "the words elsewhere mean nothing");
}

async fn others(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(parrot())).await;
    for method in ["tools/call", "prompts/get", "completion/complete", "x/unknown", "Tools/list", "tools/list/more"] {
        let result = ask(&client, method, json!({"a": 1})).await;
        assert_eq!(hints(&result), (None, None), "{method}");
        let own = json!({"ttlMs": -1, "cacheScope": "mine"});
        let result = ask(&client, method, own.clone()).await;
        assert_eq!(hints(&result), (Some(&own["ttlMs"]), Some(&own["cacheScope"])), "{method}");
    }
}
