//! What clients of the handshake era see outside any session.

use std::future::pending;
use std::sync::{Arc, Mutex};

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use mcp_transport::{CancelCause, Capabilities, Limits, LogLevel, McpError, Progress, Reply, StreamableHttpService};
use serde_json::{Value, json};

use super::{Ends, METHOD, Signal, all_quiet, is_reply, limited, messages, reply, tell, told, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Client, assert_error};
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.legacy("ping/prompt/sessionless", Carriers::Every, ping_is_answered_at_once);
    wire.legacy("log/level/sessionless", Carriers::Every, a_level_is_accepted_without_effect);
    wire.legacy("cancel/disconnect/sessionless", Carriers::Sockets, a_dropped_connection_cancels);
    wire.legacy("cancel/ignored/sessionless", Carriers::Every, a_cancellation_by_id_cancels_nothing);
    wire.legacy("answer/notification/sessionless", Carriers::Every, notifications_are_taken);
    wire.legacy("leak/modern-words/sessionless", Carriers::Every, no_modern_words);
    wire.legacy("not-found/code/sessionless", Carriers::Every, one_error_two_codes);
}

fn ask(cx: Cx, method: &str, params: Value) -> Call {
    Call::legacy(cx.revision, method, params)
}

/// A handler that never answers.
fn hanging(entered: &Signal, ends: &Ends) -> Script {
    let (entered, ends) = (entered.clone(), ends.clone());
    Script::new(move |request, cx| {
        let (entered, ends) = (entered.clone(), ends.clone());
        async move {
            let _guard = ends.guard(&cx);
            assert_eq!(request.method(), METHOD, "the transport answers the others");
            if request.params::<Value>()?["streams"] == true {
                tell(&cx, 1).await;
            }
            entered.give();
            pending::<()>().await;
            reply(0)
        }
    })
}

async fn ping_is_answered_at_once(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(hanging(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let ping = |params| ask(cx, "ping", params);
    // Before anything else.
    let answer = client.send(ping(Value::Null)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    // Beside calls that hang.
    let running: Vec<_> = (0..20)
        .map(|_| {
            let (client, call) = (client.clone(), work(cx));
            tokio::spawn(async move { client.send(call).await.status })
        })
        .collect();
    for _ in &running {
        entered.taken().await;
    }
    for params in [Value::Null, json!({}), json!({"_meta": {"progressToken": 1}}), json!({"more": [1]})] {
        assert_eq!(client.send(ping(params)).await.result().await, json!({}));
    }
    let only_stream = ping(Value::Null).header(ACCEPT.as_str(), "text/event-stream").id("p");
    assert_eq!(client.send(only_stream).await.events().await, [json!({"jsonrpc": "2.0", "id": "p", "result": {}})]);
    assert_eq!((service.counts().in_flight, ends.dropped.count()), (20, 0));
    running.iter().for_each(tokio::task::JoinHandle::abort);
    all_quiet(&service).await;
}

async fn a_level_is_accepted_without_effect(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Emergency] {
            cx.log(level, level).await?;
        }
        reply(1)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let set = |params| ask(cx, "logging/setLevel", params);
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    for level in levels {
        let answer = client.send(set(json!({"level": level}))).await;
        assert_eq!(answer.result().await, json!({}));
    }
    let mut escaped = set(json!({"level": "info"}));
    escaped.replace("\"info\"", "\"inf\\u006f\"");
    assert_eq!(client.send(escaped).await.result().await, json!({}));
    let bad = [
        json!({"level": "Info"}),
        json!({"level": "trace"}),
        json!({"level": ""}),
        json!({"level": 3}),
        json!({"level": null}),
        json!({"level": ["info"]}),
        json!({}),
        Value::Null,
    ];
    for params in bad {
        let answer = client.send(set(params.clone())).await;
        assert_eq!(answer.status, StatusCode::OK, "{params}");
        assert_error(answer.json().await, -32602, Some(&1.into()));
    }
    // `info` and above goes out all the same, on the stream of the answer.
    assert_eq!(client.send(set(json!({"level": "emergency"}))).await.result().await, json!({}));
    let (sent, response) = messages(client.send(ask(cx, METHOD, json!({}))).await).await;
    let said: Vec<_> = sent.iter().map(|message| message["params"].clone()).collect();
    assert_eq!(said, [json!({"level": "info", "data": "info"}), json!({"level": "emergency", "data": "emergency"})]);
    assert!(is_reply(&response, 1));
}

async fn a_dropped_connection_cancels(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(hanging(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    for (accept, streams) in [
        ("application/json, text/event-stream", false),
        ("application/json, text/event-stream", true),
        ("application/json", true),
        ("text/event-stream", true),
    ] {
        let mut call = work(cx).header(ACCEPT.as_str(), accept);
        call.set("/params/streams", streams);
        // Over HTTP/2 a connection of its own, to drop it whole.
        let other = client.another();
        let asking = tokio::spawn(async move { other.send(call).await });
        entered.taken().await;
        assert_eq!(ends.dropped.count(), 0);
        if streams && accept.contains("stream") {
            let mut answer = asking.await.expect("a head");
            assert_eq!(answer.next_message().await, Some(told(1)));
            drop(answer);
        } else {
            asking.abort();
        }
        assert_eq!(ends.next().await, Some(CancelCause::Disconnected), "{accept}, streams: {streams}");
        all_quiet(&service).await;
    }
}

async fn a_cancellation_by_id_cancels_nothing(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(hanging(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let mut call = work(cx);
    call.set("/params/streams", true);
    let running = client.send(call).await;
    entered.taken().await;
    for params in [json!({"requestId": 1, "reason": "no"}), json!({"requestId": "x"}), json!({}), Value::Null] {
        let answer = client.send(ask(cx, "notifications/cancelled", params).notification()).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
        assert_eq!(answer.text().await, "");
    }
    assert_eq!((service.counts().in_flight, ends.dropped.count()), (1, 0));
    drop(running);
    assert_eq!(ends.next().await, Some(CancelCause::Disconnected));
}

async fn notifications_are_taken(cx: Cx) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let script = Script::new(|_, _| async { panic!("a notification is no request") }).hearing({
        let heard = Arc::clone(&heard);
        move |notification, _| {
            heard.lock().unwrap().push((notification.method().to_owned(), notification.params::<Value>().ok()));
            async {}
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let all =
        ["notifications/initialized", "notifications/roots/list_changed", "notifications/progress", "unknown", ""];
    for method in all {
        for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
            let call = ask(cx, method, json!({"a": 1})).notification().header(ACCEPT.as_str(), accept);
            let answer = client.send(call).await;
            assert_eq!(answer.status, StatusCode::ACCEPTED, "{method}");
            assert!(!answer.headers.contains_key(CONTENT_TYPE));
            assert_eq!(answer.text().await, "");
        }
    }
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    // The first is the transport's own.
    let wanted = all.iter().skip(1).flat_map(|method| vec![((*method).to_owned(), Some(json!({"a": 1}))); 3]);
    assert_eq!(heard, wanted.collect::<Vec<_>>());
    // One that looks like a request of the transport's own is still only heard.
    for method in ["ping", "initialize", "logging/setLevel", "server/discover"] {
        let answer = client.send(ask(cx, method, json!({})).notification()).await;
        assert_eq!((answer.status, answer.text().await), (StatusCode::ACCEPTED, String::new()));
    }
}

/// Words that no client of this era may read as a member, and the codes it does not know.
const WORDS: [&str; 8] = [
    "resultType",
    "ttlMs",
    "cacheScope",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/subscriptionId",
    "requestState",
    "supportedVersions",
    "supported",
];

/// Asserts that none of [`WORDS`] is the name of a member anywhere in a message.
fn assert_no_modern_words(value: &Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                assert!(!WORDS.contains(&name.as_str()), "{name} in {members:?}");
                assert_no_modern_words(value);
            }
        }
        Value::Array(values) => values.iter().for_each(assert_no_modern_words),
        _ => {}
    }
}

/// Answers everything, and fails in every way that 2026-07-28 has a code for.
fn modern_at_heart() -> Script {
    let script = Script::new(|request, cx| async move {
        cx.progress(Progress::new(1.0)).await;
        cx.log(LogLevel::Error, "resultType, ttlMs").await?;
        match request.name() {
            Some("missing") => Err(McpError::missing_capabilities(json!({"sampling": {}}))),
            Some("mismatch") => Err(McpError::new(-32020, "no").with_data(json!({"supported": []}))),
            Some("version") => Err(McpError::new(-32022, "no").with_data(json!({"supported": []}))),
            Some("input") => Reply::of(json!({"resultType": "input_required", "inputRequests": {"a": {}}})),
            _ => Reply::of(json!({
                "tools": [], "resources": [], "contents": [], "messages": [],
                "content": [{"type": "text", "text": "{\"resultType\": \"ttlMs\"}"}],
                "unknown": {"nested": [1.0, "\u{e4}"]}, "_meta": {"example.com/a": true},
            })),
        }
    });
    let capabilities = Capabilities::new().tools().prompts().resources().logging().completions();
    let capabilities = capabilities.experimental("odd", json!({"a": 1}));
    let capabilities = capabilities.extension("example.com/modern", json!({}));
    script.declaring(capabilities.extension_in_both_eras("example.com/both", json!({"b": 2})))
}

async fn no_modern_words(cx: Cx) {
    let client: Client = cx.serve(StreamableHttpService::new(modern_at_heart())).await;
    let params = json!({"protocolVersion": cx.revision.as_str(), "capabilities": {}, "clientInfo": {"name": "wire"}});
    let hello = client.send(ask(cx, "initialize", params)).await.result().await;
    assert_no_modern_words(&hello);
    assert_eq!(hello["serverInfo"], json!({"name": "wire", "version": "1"}));
    assert_eq!(hello["capabilities"]["extensions"], json!({"example.com/both": {"b": 2}}));
    assert_eq!(hello["capabilities"]["experimental"], json!({"odd": {"a": 1}}));
    assert_eq!(hello["protocolVersion"], cx.revision.as_str());
    for method in ["ping", "logging/setLevel"] {
        let answer = client.send(ask(cx, method, json!({"level": "info"}))).await;
        assert_eq!(answer.result().await, json!({}));
    }
    let methods = ["tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read"];
    for method in methods.into_iter().chain(["resources/templates/list", METHOD, "example.com/own"]) {
        let params = json!({"name": "n", "uri": "u", "_meta": {"progressToken": 1}});
        let (sent, response) = messages(client.send(ask(cx, method, params)).await).await;
        sent.iter().chain([&response]).for_each(assert_no_modern_words);
        assert_eq!(sent.len(), 2, "{method}");
        assert_eq!(response["result"]["unknown"], json!({"nested": [1.0, "\u{e4}"]}));
        assert_eq!(response["result"]["_meta"], json!({"example.com/a": true}));
        assert_eq!(response["result"]["content"][0]["text"], "{\"resultType\": \"ttlMs\"}");
    }
    for name in ["missing", "mismatch", "version", "input"] {
        let only_json = ask(cx, "tools/call", json!({"name": name})).header(ACCEPT.as_str(), "application/json");
        let answer = client.send(only_json).await;
        assert_eq!(answer.status, StatusCode::OK, "{name}");
        let error = assert_error(answer.json().await, -32603, Some(&1.into()));
        assert_no_modern_words(&error);
        assert_eq!(error.get("data"), None, "{name}");
    }
    for method in ["server/discover", "subscriptions/listen"] {
        let answer = client.send(ask(cx, method, json!({}))).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_no_modern_words(&assert_error(answer.json().await, -32601, Some(&1.into())));
    }
}

async fn one_error_two_codes(cx: Cx) {
    let script = Script::new(|request, _| async move {
        let uri = request.uri().unwrap_or_default().to_owned();
        Err(McpError::resource_not_found(&uri))
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for uri in ["file:///a", "odd:\"\\\n\u{e4}"] {
        let params = json!({"uri": uri});
        let answer = client.send(ask(cx, "resources/read", params.clone())).await;
        assert_eq!(answer.status, StatusCode::OK);
        let error = assert_error(answer.json().await, -32002, Some(&1.into()));
        assert_eq!(error["data"], params);
        let answer = client.send(Call::modern("resources/read", params.clone())).await;
        let error = answer.error(StatusCode::BAD_REQUEST, -32602, Some(&1.into())).await;
        assert_eq!(error["data"], params);
    }
}
