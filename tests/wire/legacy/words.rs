//! What stands on the wire of a client up to 2025-11-25, and what never does.

use http::StatusCode;
use mcp_transport::{Capabilities, McpError, Progress, Reply, RequestContext, Sessions, StreamableHttpService};
use serde_json::{Value, json};

use super::Bench;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, PROTOCOL_VERSION};
use crate::support::session::{self, Session, initialize_with};

pub fn register(wire: &mut Wire) {
    wire.legacy("leak/modern-words", Carriers::Every, modern_words);
    wire.legacy("leak/modern-words/codes", Carriers::Every, modern_codes);
    wire.legacy("leak/modern-words/pass-through", Carriers::Every, pass_through);
    wire.legacy("leak/modern-words/extensions", Carriers::Every, extensions);
    wire.legacy("leak/modern-words/changes", Carriers::Every, changes);
    wire.legacy("not-found/code", Carriers::Every, not_found);
}

/// Names of members that no message up to 2025-11-25 has.
const WORDS: [&str; 6] = [
    "resultType",
    "ttlMs",
    "cacheScope",
    "supportedVersions",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/subscriptionId",
];

/// All members of all objects in a value.
fn members(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            found.push(name.clone());
            members(value, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| members(value, found)),
        _ => {}
    }
}

/// Neither a modern member nor a modern code.
fn assert_legacy(message: &Value) {
    let mut found = Vec::new();
    members(message, &mut found);
    assert!(found.iter().all(|name| !WORDS.contains(&name.as_str())), "{message}");
    assert!(!matches!(message["error"]["code"].as_i64(), Some(-32020 | -32021)), "{message}");
}

async fn ask(session: &Session, call: Call) -> Vec<Value> {
    let answer = session.client.send(call).await;
    if answer.header("content-type") == "text/event-stream" { answer.events().await } else { vec![answer.json().await] }
}

/// The transport puts nothing of 2026-07-28 into any answer.
async fn modern_words(cx: Cx) {
    let script = Script::new(|request, cx: RequestContext| async move {
        cx.progress(Progress::new(0.5)).await;
        match request.method() {
            "tools/list" => Reply::of(json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]})),
            "x/meta" => Reply::of(json!({"_meta": {"mine": 1}})),
            _ => Reply::empty(),
        }
    });
    let lists = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
    let script = script.declaring(lists.resources_subscribe().completions().logging()).instructing("Be kind.");
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let session = session::open(&client, cx.revision).await;
    assert_legacy(&session.initialized);
    let members: Vec<_> = session.initialized.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(members.len(), 4, "{members:?}");
    for method in [
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "completion/complete",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "x/meta",
        "x/other",
    ] {
        let params =
            json!({"uri": "file:///a", "name": "a", "level": "info", "notifications": {"toolsListChanged": true}});
        for token in [None, Some("t")] {
            let mut params = params.clone();
            if let Some(token) = token {
                params["_meta"] = json!({"progressToken": token});
            }
            let calls = [session.call(method, params.clone()), Call::legacy(cx.revision, method, params)];
            for call in calls {
                for message in ask(&session, call).await {
                    assert_legacy(&message);
                }
            }
        }
    }
    // What a result holds is what the handler wrote, and nothing else.
    assert_eq!(session.result("x/meta", Value::Null).await, json!({"_meta": {"mine": 1}}));
    assert_eq!(session.result("resources/read", json!({"uri": "a"})).await, json!({}));
    let tools = json!([{"name": "a", "inputSchema": {"type": "object"}}]);
    assert_eq!(session.result("tools/list", Value::Null).await, json!({ "tools": tools }));
    for call in [session.call("x", Value::Null).header(PROTOCOL_VERSION, "2024-10-07"), session.post(json!(7))] {
        assert_legacy(&client.send(call).await.json().await);
    }
}

/// A code that these clients do not know becomes one that they do.
async fn modern_codes(cx: Cx) {
    let script = Script::new(|request, cx: RequestContext| async move {
        if request.params::<Value>()?["streams"] == true {
            cx.notify("notifications/x", json!({})).await?;
        }
        match request.method() {
            "x/capability" => Err::<Reply, _>(McpError::missing_capabilities(json!({"sampling": {}}))),
            "x/input" => Reply::of(json!({"resultType": "input_required", "inputRequests": {}})),
            "x/mismatch" => Err(McpError::new(-32020, "no")),
            "x/capability-by-number" => Err(McpError::new(-32021, "no")),
            _ => Err(McpError::new(-32099, "no")),
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let session = session::open(&client, cx.revision).await;
    for method in ["x/capability", "x/input", "x/mismatch", "x/capability-by-number", "x/reserved"] {
        for streams in [false, true] {
            let calls =
                |params| [session.call(method, params), Call::legacy(cx.revision, method, json!({"streams": streams}))];
            for call in calls(json!({"streams": streams})) {
                let last = ask(&session, call).await.pop().expect("a response");
                assert_legacy(&last);
                assert_eq!(last["error"]["code"], -32603, "{method}");
                assert_eq!(last["error"].get("data"), None, "{last}");
            }
        }
    }
}

/// What a handler writes that nobody knows passes through, and so does any word inside content.
async fn pass_through(cx: Cx) {
    let result = json!({
        "content": [{"type": "text", "text": "{\"resultType\":\"complete\",\"ttlMs\":1,\"cacheScope\":\"public\",-32020}"}],
        "structuredContent": {"resultType": 1, "ttlMs": [2], "nested": {"cacheScope": null}},
        "com.example/own": {"a": [1, 2, {"b": null}]},
        "_meta": {"com.example/x": "y"},
        "isError": false,
        "2099": "later",
    });
    let whole = result.clone();
    let script = Script::new(move |request, cx: RequestContext| {
        let whole = whole.clone();
        async move {
            if request.method() == "x/streams" {
                cx.notify("notifications/com.example/own", json!({"resultType": "mine", "n": 1})).await?;
            }
            Reply::of(whole)
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let session = session::open(&client, cx.revision).await;
    assert_eq!(session.result("tools/call", json!({"name": "a"})).await, result);
    let events = ask(&session, session.call("x/streams", Value::Null)).await;
    assert_eq!(events[0]["params"], json!({"resultType": "mine", "n": 1}));
    assert_eq!(events[1], json!({"jsonrpc": "2.0", "id": ID, "result": result}));
}

/// The server's extensions are told where the handler says that they serve these clients; the client's always reach it.
async fn extensions(cx: Cx) {
    let (modern, both) = ("com.example/modern", "com.example/both");
    let capabilities = || Capabilities::new().tools().extension(modern, json!({"a": 1}));
    let declared = json!({"extensions": {"com.example/client": {"x": [1]}, modern: {}}});
    for (capabilities, told) in [
        (Capabilities::new().tools(), None),
        (capabilities(), None),
        (capabilities().extension_in_both_eras(both, json!({"b": 2})), Some(json!({both: {"b": 2}}))),
    ] {
        let script = Script::new(|_, cx: RequestContext| async move {
            Reply::of(json!({"declared": cx.client_capabilities().parse::<Value>()}))
        });
        for policy in [Sessions::Optional, Sessions::Off] {
            let script = script.clone().declaring(capabilities.clone());
            let service = StreamableHttpService::builder(script).sessions(policy).build().expect("a service");
            let client = cx.serve(service).await;
            let initialize = || initialize_with(cx.revision.as_str(), declared.clone());
            let result = client.send(initialize()).await.result().await;
            assert_eq!(result["capabilities"].get("extensions").cloned(), told);
            if policy == Sessions::Optional {
                let session = session::open_by(&client, initialize()).await;
                assert_eq!(session.result("x/y", Value::Null).await["declared"], declared);
            }
        }
    }
}

/// Changes are told in their old form.
async fn changes(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    session.result("resources/subscribe", json!({"uri": "file:///a"})).await;
    let mut stream = session.listen().await;
    bench.service.changes().tools_list_changed();
    bench.service.changes().resource_updated("file:///a");
    let method = |name: &str| format!("notifications/{name}");
    assert_eq!(stream.next_message().await, Some(json!({"jsonrpc": "2.0", "method": method("tools/list_changed")})));
    let updated = json!({"jsonrpc": "2.0", "method": method("resources/updated"), "params": {"uri": "file:///a"}});
    assert_eq!(stream.next_message().await, Some(updated));
}

/// One error of the handler's, in the words of each era.
async fn not_found(cx: Cx) {
    let script = Script::new(|request, cx: RequestContext| async move {
        if request.params::<Value>()?["streams"] == true {
            cx.notify("notifications/x", json!({})).await?;
        }
        Err::<Reply, _>(McpError::resource_not_found(request.uri().unwrap_or_default()))
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let session = session::open(&client, cx.revision).await;
    for uri in ["file:///none", "", "x:\u{e9}\"\n\u{1f600}"] {
        let params = json!({ "uri": uri });
        for call in [
            session.call("resources/read", params.clone()),
            Call::legacy(cx.revision, "resources/read", params.clone()),
        ] {
            let error = client.send(call).await.error(StatusCode::OK, -32002, Some(&ID.into())).await;
            assert_eq!(error["data"], json!({ "uri": uri }));
        }
        let streamed = session.call("resources/read", json!({"uri": uri, "streams": true}));
        let last = ask(&session, streamed).await.pop().expect("a response");
        assert_eq!((&last["error"]["code"], &last["error"]["data"]["uri"]), (&json!(-32002), &json!(uri)));
        let modern = Call::modern("resources/read", params);
        let error = client.send(modern).await.error(StatusCode::BAD_REQUEST, -32602, Some(&ID.into())).await;
        assert_eq!(error["data"], json!({ "uri": uri }));
    }
}
