//! What holds for clients of revisions up to 2025-11-25 before there is a session, or where none is.

use std::panic::resume_unwind;

use http::header::{ACCEPT, ALLOW, ORIGIN};
use http::{Method, StatusCode};
use mcp_transport::{Era, McpError, Reply, Revision, Revisions, StreamableHttpService};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, MCP_METHOD, MCP_NAME, PROTOCOL_VERSION, SESSION_ID};
use crate::support::seen::Seen;

pub fn register(wire: &mut Wire) {
    wire.legacy("version/unsupported", Carriers::Every, version_unsupported);
    wire.legacy("version/absent", Carriers::Every, version_absent);
    wire.legacy("initialize/negotiates", Carriers::Every, negotiates);
    wire.legacy("initialize/negotiates/odd", Carriers::Every, negotiates_odd);
    wire.legacy("initialize/extra-headers", Carriers::Every, extra_headers);
    wire.legacy("initialize/twice/unknown", Carriers::Every, initialize_unknown);
    wire.legacy("status/in-band", Carriers::Every, in_band);
    wire.legacy("session/unknown/never-there", Carriers::Every, never_there);
    wire.legacy("get/no-session", Carriers::Every, get_without_session);
    wire.only(Revision::V2024_11_05, "http/no-sse-transport", Carriers::Every, no_sse_transport);
}

fn serving(revisions: Revisions) -> (StreamableHttpService, Seen) {
    let seen = Seen::default();
    let builder = StreamableHttpService::builder(seen.script()).revisions(revisions);
    (builder.build().expect("a service"), seen)
}

/// The served revisions up to 2025-11-25, sorted.
fn legacy(served: Revisions) -> Vec<Revision> {
    let all = Revision::ALL.into_iter();
    all.filter(|revision| revision.era() == Era::Legacy && served.contains(*revision)).collect()
}

/// The sets of revisions that these rows are tried with.
fn policies(cx: Cx) -> [Revisions; 4] {
    let all = Revisions::all();
    [all, Revisions::legacy_only(), all.without(cx.revision), all.without(Revision::V2025_11_25)]
}

async fn assert_unsupported(answer: Answer, served: Revisions, requested: &str, id: Option<&Value>) {
    let error = answer.error(StatusCode::BAD_REQUEST, -32022, id).await;
    assert_eq!(error["data"].as_object().map(serde_json::Map::len), Some(2), "{error}");
    let mut supported: Vec<_> = error["data"]["supported"].as_array().expect("a list").clone();
    supported.sort_by_key(ToString::to_string);
    assert_eq!(supported, legacy(served).iter().map(|revision| json!(revision.as_str())).collect::<Vec<_>>());
    assert_eq!(error["data"]["requested"], requested, "{error}");
}

/// A request without a word about versions.
fn unversioned(method: &str) -> Call {
    Call::legacy(Revision::V2024_11_05, method, json!({"level": "info"}))
}

fn initialize(version: impl Into<Value>) -> Call {
    let params =
        json!({"protocolVersion": version.into(), "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    Call::legacy(Revision::V2024_11_05, "initialize", params)
}

/// Before anything else is asked, on every message and method.
async fn version_unsupported(cx: Cx) {
    for served in policies(cx) {
        let (service, seen) = serving(served);
        let client = cx.serve(service).await;
        let unserved = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy);
        let unserved = unserved.filter(|revision| !served.contains(*revision)).map(Revision::as_str);
        for version in unserved.chain(["2024-10-07", "2025-03-27", "DRAFT-1", "latest", "2025-6-18", "v2025-06-18", ""])
        {
            for headed in [|call: Call| call, |call: Call| call.header(SESSION_ID, "none")] {
                let call = |method| headed(unversioned(method).header(PROTOCOL_VERSION, version));
                for method in ["x/ask", "tools/call", "ping", "server/discover", "logging/setLevel"] {
                    assert_unsupported(client.send(call(method)).await, served, version, Some(&ID.into())).await;
                    assert_unsupported(client.send(call(method).notification()).await, served, version, None).await;
                }
                // The body of `initialize` names a served one: the header is judged nevertheless.
                let open = headed(initialize(cx.revision.as_str()).header(PROTOCOL_VERSION, version));
                assert_unsupported(client.send(open).await, served, version, Some(&ID.into())).await;
                for body in [
                    json!([]),
                    json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]),
                    json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
                ] {
                    let call = headed(Call::post(body).header(PROTOCOL_VERSION, version));
                    assert_unsupported(client.send(call).await, served, version, None).await;
                }
                for verb in [Method::GET, Method::DELETE] {
                    let mut call = headed(Call::get().header(PROTOCOL_VERSION, version));
                    call.method = verb;
                    assert_unsupported(client.send(call).await, served, version, None).await;
                }
            }
        }
        let bytes = unversioned("x/ask").header(PROTOCOL_VERSION, b"2025-06-18\xff");
        assert_unsupported(client.send(bytes).await, served, "", Some(&ID.into())).await;
        assert_eq!(seen.methods(), [""; 0]);
        // White space around a served one is not part of it.
        for revision in legacy(served) {
            let padded = unversioned("x/ask").header(PROTOCOL_VERSION, format!(" {revision}\t"));
            let result = client.send(padded).await.result().await;
            assert_eq!(result["revision"], revision.as_str());
        }
    }
}

/// Whoever does not say which revision it speaks speaks 2025-03-26.
async fn version_absent(cx: Cx) {
    let assumed = Revision::V2025_03_26;
    for served in policies(cx).into_iter().chain([Revisions::only([cx.revision]), Revisions::all().without(assumed)]) {
        let (service, seen) = serving(served);
        let client = cx.serve(service).await;
        for method in ["x/ask", "tools/list", "ping", "logging/setLevel"] {
            let answer = client.send(unversioned(method)).await;
            if !served.contains(assumed) {
                assert_unsupported(answer, served, "2025-03-26", Some(&ID.into())).await;
                continue;
            }
            let result = answer.result().await;
            if seen.methods() == [method] {
                assert_eq!(result["revision"], "2025-03-26");
            }
        }
        let answer = client.send(unversioned("notifications/x").notification()).await;
        if served.contains(assumed) {
            assert_eq!(answer.status, StatusCode::ACCEPTED);
            assert_eq!(seen.take(), [("notifications/x".to_owned(), assumed)]);
        } else {
            assert_unsupported(answer, served, "2025-03-26", None).await;
            assert_eq!(seen.methods(), [""; 0]);
        }
        // Whoever does say so is taken at its word, and `initialize` says so in its body.
        for revision in legacy(served) {
            let named = unversioned("x/ask").header(PROTOCOL_VERSION, revision.as_str());
            assert_eq!(client.send(named).await.result().await["revision"], revision.as_str());
            let result = client.send(initialize(revision.as_str())).await.result().await;
            assert_eq!(result["protocolVersion"], revision.as_str());
        }
    }
}

/// A served version is echoed; for any other the latest that is served is offered, and never an error.
async fn negotiates(cx: Cx) {
    for served in policies(cx).into_iter().chain([Revisions::only([cx.revision])]) {
        let (service, seen) = serving(served);
        let client = cx.serve(service).await;
        let latest = *legacy(served).last().expect("a revision");
        for asked in Revision::ALL {
            let offered = if legacy(served).contains(&asked) { asked } else { latest };
            let result = client.send(initialize(asked.as_str())).await.result().await;
            assert_eq!(result["protocolVersion"], offered.as_str(), "{asked} of {served:?}");
            assert!(result["capabilities"].is_object(), "{result}");
            assert_eq!(result["serverInfo"], json!({"name": "wire", "version": "1"}));
        }
        let long = "2".repeat(10_000);
        for unknown in ["2024-10-07", "2099-01-01", "DRAFT-2025-v3", "", " ", "2025-11-25 ", "\u{e9}\n", &long] {
            let result = client.send(initialize(unknown)).await.result().await;
            assert_eq!(result["protocolVersion"], latest.as_str(), "{unknown}");
        }
        assert_eq!(seen.methods(), [""; 0]);
    }
}

/// The same where the request is spelled oddly.
async fn negotiates_odd(cx: Cx) {
    let (service, _) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let version = cx.revision.as_str();
    let result = async |call: Call| client.send(call).await.result().await["protocolVersion"].clone();
    for (old, new) in [
        ("\"initialize\"".to_owned(), "\"\\u0069nitialize\"".to_owned()),
        ("protocolVersion".to_owned(), "protocol\\u0056ersion".to_owned()),
        (version.to_owned(), version.replace('-', "\\u002d")),
        ("{".to_owned(), "\u{feff}\n{".to_owned()),
        ("\"id\":1".to_owned(), "\"id\":\"\\u0000\"".to_owned()),
    ] {
        let mut call = initialize(version);
        call.replace(&old, &new);
        assert_eq!(result(call).await, version, "{new}");
    }
    let mut more = initialize(version);
    more.set("/params/more", json!({"protocolVersion": "x"}));
    more.set("/params/_meta", json!({"progressToken": 1, "protocolVersion": "x"}));
    assert_eq!(result(more).await, version);
}

/// Nothing but its body speaks for `initialize`.
async fn extra_headers(cx: Cx) {
    for served in [Revisions::all(), Revisions::only([cx.revision, Revision::V2025_06_18])] {
        let (service, _) = serving(served);
        let client = cx.serve(service).await;
        for asked in [cx.revision.as_str(), "2099-01-01", "2026-07-28"] {
            let plain = client.send(initialize(asked)).await.result().await;
            let mut calls: Vec<_> = legacy(served)
                .into_iter()
                .map(|header| initialize(asked).header(PROTOCOL_VERSION, header.as_str()))
                .collect();
            calls.extend([
                initialize(asked).header(MCP_METHOD, "initialize"),
                initialize(asked).header(MCP_METHOD, "tools/call"),
                initialize(asked).header(MCP_METHOD, ""),
                initialize(asked).header(MCP_METHOD, "initialize").also(MCP_METHOD, b"\xff"),
                initialize(asked)
                    .header(MCP_NAME, "=?base64?!?=")
                    .header("mcp-param-x", "1")
                    .header("last-event-id", "1"),
                initialize(asked).header(PROTOCOL_VERSION, cx.revision.as_str()).header(MCP_METHOD, "ping"),
            ]);
            for call in calls {
                let headers = format!("{:?}", call.headers);
                assert_eq!(client.send(call).await.result().await, plain, "{headers}");
            }
        }
    }
}

async fn initialize_unknown(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let answer = client.send(initialize(cx.revision.as_str()).header(SESSION_ID, "none")).await;
    answer.error(StatusCode::NOT_FOUND, -32600, Some(&ID.into())).await;
    assert_eq!(seen.methods(), [""; 0]);
}

/// Whatever a handler answers, it is an answer.
async fn in_band(cx: Cx) {
    type Make = fn() -> McpError;
    let errors: [(&str, Make, i64); 13] = [
        ("x/method", McpError::method_not_found, -32601),
        ("x/params", || McpError::invalid_params("no"), -32602),
        ("x/internal", || McpError::internal("secret"), -32603),
        ("x/resource", || McpError::resource_not_found("file:///a"), -32002),
        ("x/capability", || McpError::missing_capabilities(json!({"sampling": {}})), -32603),
        ("x/parse", || McpError::new(-32700, "no"), -32700),
        ("x/request", || McpError::new(-32600, "no"), -32600),
        ("x/own", || McpError::new(-1, "no"), -1),
        ("x/four-hundred", || McpError::new(404, "no"), 404),
        ("x/grandfather", || McpError::new(-32000, "no"), -32000),
        ("x/url", || McpError::new(-32042, "no"), -32042),
        ("x/mismatch", || McpError::new(-32020, "no"), -32603),
        ("x/version", || McpError::new(-32022, "no"), -32603),
    ];
    let script = Script::new(move |request, _| {
        let made = errors.into_iter().find(|(method, _, _)| *method == request.method()).map(|(_, make, _)| make());
        async move { made.map_or_else(|| resume_unwind(Box::new("a handler's mistake")), Err::<Reply, _>) }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let id = Value::from(ID);
    let panics = ("x/panic", -32603);
    for (method, code) in errors.into_iter().map(|(method, _, code)| (method, code)).chain([panics]) {
        for accept in ["application/json", "application/json, text/event-stream", "*/*"] {
            let call = Call::legacy(cx.revision, method, Value::Null).header(ACCEPT.as_str(), accept);
            client.send(call).await.error(StatusCode::OK, code, Some(&id)).await;
        }
        let call = Call::legacy(cx.revision, method, Value::Null).header(ACCEPT.as_str(), "text/event-stream");
        let answer = client.send(call).await;
        assert_eq!(answer.status, StatusCode::OK);
        let events = answer.events().await;
        assert_eq!((events.len(), &events[0]["error"]["code"], &events[0]["id"]), (1, &code.into(), &id));
    }
    // So are the transport's own errors about what a right message asks.
    for (method, params, code) in [
        ("server/discover", json!({}), -32601),
        ("logging/setLevel", json!({"level": "loud"}), -32602),
        ("logging/setLevel", json!({}), -32602),
        ("initialize", json!({}), -32602),
    ] {
        let answer = client.send(Call::legacy(cx.revision, method, params)).await;
        answer.error(StatusCode::OK, code, Some(&id)).await;
    }
}

/// Sends everything that a session could be named with, and none of it reaches the handler.
async fn never_there(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let uuid = "1f0f2a52-7f0e-4e1c-9f8b-0d8d0e6a9b11";
    let long = "a".repeat(4000);
    for session in [b"none".as_slice(), uuid.as_bytes(), b"", b"0", b"a b", b"\xff\xfe", b"../..", long.as_bytes()] {
        let named = |call: Call| call.header(SESSION_ID, session);
        for method in ["x/ask", "tools/call", "ping", "initialize", "no/such", "server/discover"] {
            let params = json!({"name": "a", "protocolVersion": cx.revision.as_str(), "capabilities": {}});
            let call = || named(Call::legacy(cx.revision, method, params.clone()));
            unknown(&client, call(), Some(&ID.into())).await;
            unknown(&client, call().notification(), None).await;
        }
        unknown(&client, named(Call::post(json!({"jsonrpc": "2.0", "id": 7, "result": {}}))), None).await;
        unknown(&client, named(Call::get()), None).await;
        unknown(&client, named(Call::get()).header("last-event-id", "1"), None).await;
        unknown(&client, named(Call::bare(Method::DELETE)), None).await;
        if cx.revision >= Revision::V2025_06_18 {
            let version = cx.revision.as_str();
            unknown(&client, named(Call::get()).header(PROTOCOL_VERSION, version), None).await;
            unknown(&client, named(Call::bare(Method::DELETE)).header(PROTOCOL_VERSION, version), None).await;
        }
    }
    assert_eq!(seen.methods(), [""; 0]);
}

async fn unknown(client: &Client, call: Call, id: Option<&Value>) {
    let answer = client.send(call).await;
    assert_eq!(answer.header(SESSION_ID), "");
    answer.error(StatusCode::NOT_FOUND, -32600, id).await;
}

/// There is no stream that belongs to nobody.
async fn get_without_session(cx: Cx) {
    let (service, _) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let get = || {
        let call = Call::get();
        let named = cx.revision >= Revision::V2025_06_18;
        if named { call.header(PROTOCOL_VERSION, cx.revision.as_str()) } else { call }
    };
    let calls = || {
        [
            get(),
            get().without(ACCEPT.as_str()),
            get().header(ACCEPT.as_str(), "*/*"),
            get().header(ACCEPT.as_str(), "text/*;q=0.1"),
            get().header(ACCEPT.as_str(), "application/json, Text/Event-Stream"),
            get().header("last-event-id", "1"),
            get().header("last-event-id", ""),
            get().header(ORIGIN.as_str(), "http://localhost:3000"),
            get().header(MCP_METHOD, "subscriptions/listen"),
        ]
    };
    for call in calls() {
        let answer = client.send(call).await;
        assert_eq!(answer.header(ALLOW.as_str()), "POST, GET, DELETE");
        answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
    }
    for call in calls() {
        unknown(&client, call.header(SESSION_ID, "none"), None).await;
    }
}

/// The GET with which a client of the old transport opens, to learn where to post: it must see that it is not here.
async fn no_sse_transport(cx: Cx) {
    let (service, seen) = serving(Revisions::all());
    let client = cx.serve(service).await;
    let (alone, _) = serving(Revisions::only([cx.revision]));
    let alone = cx.serve(alone).await;
    for path in ["/mcp", "/sse", "/", "/sse?sessionId=1"] {
        for client in [&client, &alone] {
            let mut call = Call::get().header("cache-control", "no-cache");
            path.clone_into(&mut call.path);
            let answer = client.send(call).await;
            assert_eq!(answer.header(ALLOW.as_str()), "POST, GET, DELETE");
            answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
        }
    }
    assert_eq!(seen.methods(), [""; 0]);
}
