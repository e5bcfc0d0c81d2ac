//! What an outcome looks like from outside: its status, its error code, and the stream it may travel on.

use std::sync::Arc;
use std::time::Duration;

use mcp_transport::{
    Capabilities, Limits, LogLevel, McpError, Misuse, Progress, Reply, Request, RequestContext, StreamableHttpService,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::{Heard, INTERNAL};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client, assert_error};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, LOG_LEVEL, meta};

pub fn register(wire: &mut Wire) {
    wire.modern("status/table", Carriers::Every, table);
    wire.modern("status/table/whoever-made-it", Carriers::Every, whoever_made_it);
    wire.modern("status/table/accept", Carriers::Every, accept);
    wire.modern("status/committed", Carriers::Every, committed);
    wire.modern("status/committed/by-the-clock", Carriers::Clock, committed_by_the_clock);
    wire.modern("errors/reserved", Carriers::Every, reserved);
    wire.modern("errors/reserved/own-codes", Carriers::Every, own_codes);
    wire.modern("stream/ends-with-answer", Carriers::Every, ends_with_answer);
    wire.modern("stream/ends-with-answer/late", Carriers::Every, late);
    wire.modern("stream/ends-with-answer/cut", Carriers::Clock, ends_with_answer_when_cut);
    wire.modern("requests/none", Carriers::Every, no_requests);
    wire.modern("requests/none/notify", Carriers::Every, not_to_be_sent);
    wire.modern("log/gated", Carriers::Every, gated);
    wire.modern("log/gated/own-stream", Carriers::Every, own_stream);
    wire.modern("log/gated/undeclared", Carriers::Every, undeclared);
}

/// A request for whatever `ask` stands for.
fn ask(what: &str) -> Call {
    Call::modern("x/ask", json!({ "ask": what }))
}

fn asked(request: &Request) -> String {
    let params: Value = request.params().expect("params");
    params["ask"].as_str().unwrap_or_default().to_owned()
}

/// A handler that answers with the error whose code it is asked for, after an event if `stream` is set.
fn erring() -> Script {
    Script::new(|request, cx| async move {
        let params: Value = request.params()?;
        if params["stream"] == true {
            cx.notify("notifications/x", json!({})).await?;
        }
        if params["pending"] == true {
            yield_now().await;
        }
        let code = params["code"].as_i64().and_then(|code| i32::try_from(code).ok()).expect("a code");
        Err(McpError::new(code, "the handler's own words").with_data(json!({"why": "because"})))
    })
}

/// Codes that a handler may answer with, and the status beside each.
const TABLE: [(i64, u16); 16] = [
    (-32602, 400),
    (-32600, 400),
    (-32700, 400),
    (-32601, 404),
    (-32603, 200),
    (-32000, 200),
    (-32001, 200),
    (-32019, 200),
    (-32100, 200),
    (-32768, 200),
    (-32604, 200),
    (-1, 200),
    (0, 200),
    (1, 200),
    (404, 200),
    (i32::MAX as i64, 200),
];

async fn table(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(erring())).await;
    for (code, status) in TABLE {
        for pending in [false, true] {
            let answer = client.send(Call::modern("x/y", json!({"code": code, "pending": pending}))).await;
            assert_eq!(answer.status, status, "{code}");
            let error = assert_error(answer.json().await, code, Some(&ID.into()));
            assert_eq!(error["message"], "the handler's own words");
            assert_eq!(error["data"], json!({"why": "because"}));
        }
    }
    let missing = Script::new(|_, _| async { Err(McpError::missing_capabilities(json!({"sampling": {}}))) });
    let client = cx.serve(StreamableHttpService::new(missing)).await;
    let answer = client.send(ask("")).await;
    assert_eq!(answer.status, 400);
    let error = assert_error(answer.json().await, -32021, Some(&ID.into()));
    assert_eq!(error["data"], json!({"requiredCapabilities": {"sampling": {}}}));
}

/// The same code has the same status, whether the transport or the handler chose it.
async fn whoever_made_it(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(erring())).await;
    let judge = |call: Call| {
        let client = client.clone();
        async move {
            let answer = client.send(call).await;
            let status = answer.status.as_u16();
            (answer.json().await["error"]["code"].as_i64().expect("an error"), status)
        }
    };
    assert_eq!(judge(Call::modern("ping", json!({}))).await, (-32601, 404));
    assert_eq!(judge(Call::modern("subscriptions/unlisten", json!({"code": -32601}))).await, (-32601, 404));
    assert_eq!(judge(Call::modern("x/y", json!({"code": 1})).without("mcp-method")).await, (-32020, 400));
    assert_eq!(judge(Call::modern_as("2099-01-01", "x/y", json!({}))).await, (-32022, 400));
    let mut envelope = Call::modern("x/y", json!({}));
    envelope.remove(&meta(crate::support::request::CAPABILITIES));
    assert_eq!(judge(envelope).await, (-32602, 400));
    assert_eq!(judge(Call::modern("x/y", json!({})).raw("{")).await, (-32700, 400));
    let mut shape = Call::modern("x/y", json!({}));
    shape.set("/jsonrpc", "1");
    assert_eq!(judge(shape).await, (-32600, 400));
    // A panic is an internal error.
    assert_eq!(judge(Call::modern("x/y", json!({}))).await, (-32603, 200));
}

/// What is no 200 is JSON, whatever the client takes. What is, comes as it is wanted.
async fn accept(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(erring())).await;
    for pending in [false, true] {
        let call = |code: i64| {
            let call = Call::modern("x/y", json!({"code": code, "pending": pending}));
            call.header("accept", "text/event-stream")
        };
        for (code, status) in TABLE.into_iter().filter(|(_, status)| *status != 200) {
            let answer = client.send(call(code)).await;
            assert_eq!(answer.status, status, "{code}");
            assert_error(answer.json().await, code, Some(&ID.into()));
        }
        let answer = client.send(call(-32603)).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
        let events = answer.events().await;
        assert_eq!((events.len(), &events[0]["error"]["code"]), (1, &json!(-32603)));
    }
}

async fn committed(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(erring())).await;
    for (code, _) in TABLE {
        for pending in [false, true] {
            let call = Call::modern("x/y", json!({"code": code, "stream": true, "pending": pending}));
            let answer = client.send(call).await;
            assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"), "{code}");
            let mut events = answer.events().await;
            assert_eq!(events.len(), 2, "{events:?}");
            assert_eq!(events[0], json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {}}));
            let error = assert_error(events.remove(1), code, Some(&ID.into()));
            assert_eq!(error["data"], json!({"why": "because"}));
        }
    }
    // Where only JSON is taken, there is no stream, and the status tells.
    let call = Call::modern("x/y", json!({"code": -32602, "stream": true})).header("accept", "application/json");
    let answer = client.send(call).await;
    assert_eq!(answer.status, 400);
    assert_error(answer.json().await, -32602, Some(&ID.into()));
}

async fn committed_by_the_clock(cx: Cx) {
    let script = Script::new(|_, _| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Err(McpError::method_not_found())
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let answer = client.send(ask("")).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
    let mut events = answer.events().await;
    assert_eq!(events.len(), 1);
    assert_error(events.remove(0), -32601, Some(&ID.into()));
}

async fn reserved(cx: Cx) {
    let heard = Heard::default();
    let service = StreamableHttpService::builder(erring()).observer(heard.clone()).build().expect("a service");
    let client = cx.serve(service).await;
    for code in [-32042, -32020, -32021, -32022, -32023, -32050, -32098, -32099] {
        for stream in [false, true] {
            let answer = client.send(Call::modern("x/y", json!({"code": code, "stream": stream}))).await;
            assert_eq!(answer.status, 200, "{code}");
            let response = match stream {
                false => answer.json().await,
                true => answer.events().await.pop().expect("a response"),
            };
            let error = assert_error(response, INTERNAL, Some(&ID.into()));
            assert_eq!(error, json!({"code": INTERNAL, "message": "Internal error"}), "nothing of {code} is left");
            let told = Misuse::ReservedErrorCode { code }.to_string();
            assert!(told.contains(&code.to_string()));
            assert_eq!(heard.misuses(), [told], "{code}");
        }
    }
    // What earlier revisions said of a resource that is not there.
    let answer = client.send(Call::modern("x/y", json!({"code": -32002}))).await;
    assert_eq!(answer.status, 400);
    let error = assert_error(answer.json().await, -32602, Some(&ID.into()));
    assert_eq!((&error["message"], &error["data"]), (&json!("the handler's own words"), &json!({"why": "because"})));
    let answer = client.send(Call::modern("x/y", json!({"code": -32002, "stream": true}))).await;
    assert_eq!(answer.events().await[1]["error"]["code"], -32602);
    assert_eq!(heard.misuses(), [""; 0]);

    let missing = Script::new(|_, _| async { Err(McpError::resource_not_found("file:///x")) });
    let answer = cx.serve(StreamableHttpService::new(missing)).await.send(ask("")).await;
    assert_eq!(answer.status, 400);
    let error = assert_error(answer.json().await, -32602, Some(&ID.into()));
    assert_eq!(error["data"], json!({"uri": "file:///x"}));
}

/// The transport never uses the codes that are left to applications: -32000 to -32019.
async fn own_codes(cx: Cx) {
    let script = Script::new(|request, _| async move {
        match asked(&request).as_str() {
            "panic" => panic!("oh"),
            "internal" => Err(McpError::internal("oh")),
            "bad reply" => Reply::of(7),
            "input" => Reply::of(json!({"resultType": "input_required"})),
            other => Err(McpError::new(other.parse().expect("a code"), "mine")),
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for what in ["panic", "internal", "bad reply", "input"] {
        let answer = client.send(ask(what)).await;
        assert_eq!(answer.status, 200);
        let error = assert_error(answer.json().await, INTERNAL, Some(&ID.into()));
        assert_eq!(error, json!({"code": INTERNAL, "message": "Internal error"}), "{what}");
    }
    for code in [-32000, -32019] {
        let error = client.send(ask(&code.to_string())).await.json().await;
        assert_eq!((&error["error"]["code"], &error["error"]["message"]), (&json!(code), &json!("mine")));
    }
    for call in [
        Call::modern("ping", json!({})),
        ask("-1").without("mcp-method"),
        ask("-1").without("content-type"),
        ask("-1").header("accept", "text/html"),
        ask("-1").header("origin", "http://evil.test"),
        Call::get().header("mcp-protocol-version", "2026-07-28"),
        Call::modern_as("2099-01-01", "x/ask", json!({})),
        Call::modern("x/ask", json!({})).raw("["),
        Call::modern("x/ask", json!({})).raw("7"),
    ] {
        let response = client.send(call).await.json().await;
        let code = response["error"]["code"].as_i64().expect("an error");
        assert!(!(-32019..=-32000).contains(&code), "{response}");
    }
}

/// Sends an event, then ends as it is asked to.
fn ending() -> Script {
    Script::new(|request, cx| async move {
        let how = asked(&request);
        cx.notify("notifications/x", json!({"n": 1})).await?;
        match how.as_str() {
            "at once" => {}
            "hang" => std::future::pending().await,
            _ => yield_now().await,
        }
        match how.as_str() {
            "error" => Err(McpError::invalid_params("no")),
            "panic" => panic!("oh"),
            "bad reply" => Reply::of([1]),
            _ => Reply::empty(),
        }
    })
}

/// Reads a stream that has to be one notification, then the response, and then nothing.
async fn whole(answer: Answer) -> Value {
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let mut events = answer.events().await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0]["params"], json!({"n": 1}));
    let response = events.remove(1);
    assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(ID)));
    assert!(response.get("method").is_none(), "{response}");
    response
}

async fn ends_with_answer(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(ending())).await;
    for (how, code) in [
        ("at once", None),
        ("later", None),
        ("error", Some(-32602)),
        ("panic", Some(INTERNAL)),
        ("bad reply", Some(INTERNAL)),
    ] {
        let response = whole(client.send(ask(how)).await).await;
        assert_eq!(response["error"]["code"].as_i64(), code, "{how}");
        assert_eq!(response.get("result").is_some(), code.is_none(), "{how}");
    }
    // Of an answer that is a stream for no other reason than that nothing else is accepted.
    let silent = cx.serve(StreamableHttpService::new(Script::new(|_, _| async { Reply::empty() }))).await;
    let events = silent.send(ask("").header("accept", "text/event-stream")).await.events().await;
    assert_eq!((events.len(), &events[0]["id"]), (1, &json!(ID)));
}

/// What a task that outlives the answer still sends comes too late, and does not wait.
async fn late(cx: Cx) {
    let (late, sent) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = Script::new({
        let (late, sent) = (Arc::clone(&late), Arc::clone(&sent));
        move |request, cx: RequestContext| {
            let (late, sent) = (Arc::clone(&late), Arc::clone(&sent));
            async move {
                if asked(&request) == "stream" {
                    cx.notify("notifications/x", json!({"n": 1})).await?;
                }
                tokio::spawn(async move {
                    late.notified().await;
                    for _ in 0..1000 {
                        cx.notify("notifications/x", json!({"n": 2})).await.expect("an object");
                        cx.progress(Progress::new(2.0)).await;
                    }
                    sent.notify_one();
                });
                Reply::empty()
            }
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let mut answer = client.send(ask("stream")).await;
    assert_eq!(answer.next_message().await.expect("an event")["params"], json!({"n": 1}));
    late.notify_one();
    sent.notified().await;
    assert!(answer.next_message().await.expect("the response").get("result").is_some());
    assert_eq!(answer.next_message().await, None);

    let answer = client.send(ask("json")).await;
    late.notify_one();
    sent.notified().await;
    answer.result().await;
}

async fn ends_with_answer_when_cut(cx: Cx) {
    let limits = Limits::default().handler_time(Duration::from_secs(5));
    let service = StreamableHttpService::builder(ending()).limits(limits).build().expect("a service");
    let response = whole(cx.serve(service).await.send(ask("hang")).await).await;
    assert_eq!(response["error"], json!({"code": INTERNAL, "message": "The request timed out"}));

    let service = StreamableHttpService::new(ending());
    let answer = cx.serve(service.clone()).await.send(ask("hang")).await;
    let (report, response) = tokio::join!(service.drain(Duration::from_secs(5)), whole(answer));
    assert_eq!(response["error"], json!({"code": INTERNAL, "message": "The server is shutting down"}));
    assert_eq!((report.in_flight, report.cut), (1, 1));
}

async fn no_requests(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        cx.progress(Progress::new(1.0)).await;
        cx.log(LogLevel::Error, json!({"id": 1, "method": "roots/list"})).await?;
        // Whatever it is called, it is a notification.
        cx.notify("sampling/createMessage", json!({"id": 7})).await?;
        yield_now().await;
        cx.notify("ping", json!({})).await?;
        Reply::of(json!({"id": 9, "method": "elicitation/create", "params": {}}))
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let mut call = ask("");
    call.set("/params/_meta/progressToken", 1);
    call.set(&meta(LOG_LEVEL), "debug");
    call.set(&meta(crate::support::request::CAPABILITIES), json!({"roots": {}, "sampling": {}, "elicitation": {}}));
    let mut events = client.send(call).await.events().await;
    let response = events.pop().expect("a response");
    assert_eq!(events.len(), 4);
    for event in events {
        assert!(event.get("id").is_none() && event["method"].is_string(), "{event}");
    }
    assert!(response.get("method").is_none(), "{response}");
    assert_eq!(response["id"], ID);
    assert_eq!(response["result"]["method"], "elicitation/create", "inside a result it is nobody's request");
}

/// What goes another way, or is no notification, is not sent.
async fn not_to_be_sent(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        for method in [
            "notifications/progress",
            "notifications/message",
            "notifications/cancelled",
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
            "notifications/subscriptions/acknowledged",
        ] {
            assert!(cx.notify(method, json!({})).await.is_err(), "{method}");
        }
        for params in [json!(7), json!([]), json!("x"), json!(null), json!(true)] {
            assert!(cx.notify("notifications/x", &params).await.is_err(), "{params}");
        }
        assert!(cx.notify("notifications/x", RawValue::from_string(" [1]".to_owned()).expect("JSON")).await.is_err());
        Reply::empty()
    });
    cx.serve(StreamableHttpService::new(script)).await.send(ask("")).await.result().await;
    let script = Script::new(|_, cx| async move {
        let params = RawValue::from_string(" {\"a\":\n1}".to_owned()).expect("JSON");
        cx.notify("notifications/x", params).await?;
        Reply::empty()
    });
    let answer = cx.serve(StreamableHttpService::new(script)).await.send(ask("")).await;
    assert_eq!(answer.events().await[0]["params"], json!({"a": 1}));
}

const LEVELS: [(&str, LogLevel); 8] = [
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("notice", LogLevel::Notice),
    ("warning", LogLevel::Warning),
    ("error", LogLevel::Error),
    ("critical", LogLevel::Critical),
    ("alert", LogLevel::Alert),
    ("emergency", LogLevel::Emergency),
];

/// Says something at every level.
fn talkative() -> Script {
    Script::new(|request, cx| async move {
        for (word, level) in LEVELS {
            cx.log(level, word).await?;
            cx.log_from("named", level, json!({"who": asked(&request)})).await?;
        }
        Reply::empty()
    })
}

fn at_level(who: &str, level: Option<&str>) -> Call {
    let mut call = ask(who);
    level.into_iter().for_each(|level| call.set(&meta(LOG_LEVEL), level));
    call
}

async fn gated(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(talkative())).await;
    let answer = client.send(at_level("a", None)).await;
    answer.result().await; // as JSON: nothing was sent before it
    for (at, (word, _)) in LEVELS.iter().enumerate() {
        let mut events = client.send(at_level("a", Some(word))).await.events().await;
        assert!(events.pop().expect("a response").get("result").is_some());
        let expected = LEVELS[at..].iter().flat_map(|(word, _)| {
            [
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": word, "data": word}}),
                json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": word, "logger": "named", "data": {"who": "a"}}}),
            ]
        });
        assert_eq!(events, expected.collect::<Vec<_>>(), "{word}");
    }
    // The level was that request's alone.
    client.send(at_level("a", None)).await.result().await;
    let only_json = at_level("a", Some("debug")).header("accept", "application/json");
    client.send(only_json).await.result().await;
}

/// Two requests at once: what one of them logs is on its own stream, at its own level.
async fn own_stream(cx: Cx) {
    let (first, second) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = Script::new({
        let (first, second) = (Arc::clone(&first), Arc::clone(&second));
        move |request, cx: RequestContext| {
            let (first, second) = (Arc::clone(&first), Arc::clone(&second));
            async move {
                let who = asked(&request);
                let (mine, other) = if who == "one" { (&first, &second) } else { (&second, &first) };
                other.notify_one();
                mine.notified().await;
                cx.log(LogLevel::Debug, &who).await?;
                cx.log(LogLevel::Error, &who).await?;
                Reply::empty()
            }
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let levels = |client: Client, who: &'static str, level: &'static str| async move {
        let mut events = client.send(at_level(who, Some(level))).await.events().await;
        assert!(events.pop().expect("a response").get("result").is_some());
        assert!(events.iter().all(|event| event["params"]["data"] == who), "{events:?}");
        events.len()
    };
    let both = tokio::join!(levels(client.clone(), "one", "error"), levels(client.clone(), "two", "debug"));
    assert_eq!(both, (1, 2));
}

async fn undeclared(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(talkative().declaring(Capabilities::new().tools()))).await;
    client.send(at_level("a", Some("debug"))).await.result().await;
}
