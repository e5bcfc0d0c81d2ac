//! Which form an answer takes: JSON or an event stream, and when that is decided.

use std::future::pending;
use std::time::Duration;

use futures::FutureExt;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use mcp_transport::{CancelCause, Limits, LogLevel, McpError, Progress, Reply, StreamableHttpService};
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};

use super::{Ends, METHOD, Signal, is_drained, is_late, is_reply, limited, messages, reply, tell, told, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::handler::Script;
use crate::support::request::{Call, MCP_NAME};
use crate::support::sse::Frame;

pub fn register(wire: &mut Wire) {
    wire.any("answer/json-first", Carriers::Every, quiet_is_json);
    wire.any("answer/json-first/first-message", Carriers::Every, the_first_message_opens_a_stream);
    wire.any("answer/json-first/same-poll", Carriers::Every, messages_of_the_last_poll_precede_the_result);
    wire.any("answer/json-first/other-task", Carriers::Clock, another_task_opens_a_stream);
    wire.any("answer/json-first/hand-over", Carriers::Clock, what_happens_during_the_hand_over_is_not_lost);
    wire.any("answer/json-first/more-than-fits", Carriers::Every, more_than_fits_the_queue_in_one_go);
    wire.any("answer/clock", Carriers::Clock, silence_becomes_a_stream);
    wire.any("answer/clock/just-before", Carriers::Clock, just_before_it_is_json);
    wire.any("answer/clock/never", Carriers::Every, opening_requests_never_commit);
    wire.any("answer/clock/zero", Carriers::Every, no_silence_at_all_makes_every_answer_a_stream);
    wire.any("answer/accept", Carriers::Every, accept_decides);
    wire.any("answer/accept/json-drops", Carriers::Every, what_would_have_streamed_is_dropped);
    wire.any("answer/accept/not-200", Carriers::Every, only_200_is_ever_a_stream);
}

fn content_type(answer: &Answer) -> &str {
    answer.header(CONTENT_TYPE.as_str())
}

async fn quiet_is_json(cx: Cx) {
    let script = Script::new(|request, _| async move {
        #[derive(serde::Deserialize)]
        struct Params {
            yields: usize,
            fails: bool,
        }
        let Params { yields, fails } = request.params()?;
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        if fails { Err(McpError::new(7, "no")) } else { reply(yields) }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for yields in [0, 1, 5] {
        for fails in [false, true] {
            let mut call = work(cx);
            call.set("/params/yields", yields);
            call.set("/params/fails", fails);
            let answer = client.send(call).await;
            assert_eq!(answer.status, StatusCode::OK);
            // `json` asserts the content type, and that the body is one value.
            let response = answer.json().await;
            if fails {
                assert_eq!(response["error"], json!({"code": 7, "message": "no"}));
            } else {
                assert!(is_reply(&response, yields), "{response}");
            }
        }
    }
}

async fn the_first_message_opens_a_stream(cx: Cx) {
    let go = Signal::new();
    let script = Script::new({
        let go = go.clone();
        move |_, cx| {
            let go = go.clone();
            async move {
                tokio::task::yield_now().await;
                tell(&cx, 1).await;
                go.taken().await;
                tell(&cx, 2).await;
                go.taken().await;
                reply(3)
            }
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let mut answer = client.send(work(cx)).await;
    assert_eq!((answer.status, content_type(&answer)), (StatusCode::OK, "text/event-stream"));
    assert_eq!(answer.next_message().await, Some(told(1)));
    go.give();
    assert_eq!(answer.next_message().await, Some(told(2)));
    go.give();
    assert!(is_reply(&answer.next_message().await.expect("a response"), 3));
    assert_eq!(answer.frame().await, None);
}

async fn messages_of_the_last_poll_precede_the_result(cx: Cx) {
    let script = Script::new(|request, cx| async move {
        let streaming: bool = request.params::<Value>()?["streaming"] == true;
        tell(&cx, 1).await;
        if streaming {
            sleep(Duration::from_millis(1)).await;
        }
        tell(&cx, 2).await;
        cx.progress(Progress::new(1.0)).await;
        cx.log(LogLevel::Error, "three").await?;
        tell(&cx, 4).await;
        reply(5)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    for streaming in [false, true] {
        let mut call = work(cx);
        call.set("/params/streaming", streaming);
        let (sent, response) = messages(client.send(call).await).await;
        assert_eq!((&sent[0], &sent[1], &sent[4]), (&told(1), &told(2), &told(4)));
        assert_eq!(sent[2]["method"], "notifications/progress");
        assert_eq!(sent[3]["method"], "notifications/message");
        assert_eq!(sent.len(), 5);
        assert!(is_reply(&response, 5), "{response}");
    }
}

/// The handler itself does nothing that would wake the exchange.
async fn another_task_opens_a_stream(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            tell(&cx, 1).await;
        });
        pending::<()>().await;
        reply(0)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let start = Instant::now();
    let mut answer = client.send(work(cx)).await;
    assert_eq!(answer.next_message().await, Some(told(1)));
    assert!(start.elapsed() < Duration::from_secs(2), "after {:?}", start.elapsed());
}

/// When the answer becomes a stream the handler moves to a task. What happens before that task first runs wakes nobody
/// who still polls the handler.
async fn what_happens_during_the_hand_over_is_not_lost(cx: Cx) {
    let (go, ends) = (Signal::new(), Ends::new());
    let script = Script::new({
        let (go, ends) = (go.clone(), ends.clone());
        move |_, cx| {
            let (go, ends) = (go.clone(), ends.clone());
            async move {
                let _guard = ends.guard(&cx);
                tell(&cx, 1).await;
                go.taken().await;
                reply(2)
            }
        }
    });
    let service = limited(script, Limits::default().handler_time(Duration::from_secs(5)));
    let client = cx.serve(service.clone()).await;
    // One poll takes each as far as its stream, and nothing else has run since.
    let answer = client.send(work(cx)).now_or_never().expect("a head");
    go.give();
    assert!(is_reply(&messages(answer).await.1, 2));
    assert_eq!(ends.next().await, None);

    let answer = client.send(work(cx)).now_or_never().expect("a head");
    drop(answer);
    assert_eq!(ends.next().await, Some(CancelCause::Disconnected));

    let answer = client.send(work(cx)).now_or_never().expect("a head");
    advance(Duration::from_secs(5)).await;
    assert!(is_late(&messages(answer).await.1));
    assert_eq!(ends.next().await, Some(CancelCause::Deadline));

    let answer = client.send(work(cx)).now_or_never().expect("a head");
    let report = service.drain(Duration::ZERO).await;
    assert_eq!((report.in_flight, report.cut), (1, 1));
    assert!(is_drained(&messages(answer).await.1));
    assert_eq!(ends.next().await, Some(CancelCause::Drained));
}

async fn more_than_fits_the_queue_in_one_go(cx: Cx) {
    const MANY: usize = 1000;
    let script = Script::new(|_, cx| async move {
        for n in 0..MANY {
            tell(&cx, n).await;
        }
        reply(MANY)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let (sent, response) = messages(client.send(work(cx)).await).await;
    assert_eq!(sent, (0..MANY).map(told).collect::<Vec<_>>());
    assert!(is_reply(&response, MANY));
}

async fn silence_becomes_a_stream(cx: Cx) {
    let script = Script::new(|_, _| async {
        sleep(Duration::from_secs(50)).await;
        reply(1)
    });
    // The default commit time and the default keep-alive interval are 15 s both.
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let start = Instant::now();
    let mut answer = client.send(work(cx)).await;
    assert_eq!(content_type(&answer), "text/event-stream");
    // The clock of tokio counts whole milliseconds, and rounds up.
    let committed = start.elapsed().as_secs_f64();
    assert!((15.0..15.01).contains(&committed), "committed after {committed} s");
    let mut last = Instant::now();
    for _ in 0..2 {
        assert!(matches!(answer.frame().await, Some(Frame::Comment(_))));
        let silence = last.elapsed().as_secs_f64();
        assert!((13.5..16.51).contains(&silence), "a comment after {silence} s");
        last = Instant::now();
    }
    assert!(is_reply(&answer.next_message().await.expect("a response"), 1));
    assert!(start.elapsed() >= Duration::from_secs(50));
    assert_eq!(answer.frame().await, None);
}

async fn just_before_it_is_json(cx: Cx) {
    let script = Script::new(|_, _| async {
        sleep(Duration::from_millis(14_990)).await;
        reply(1)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    assert!(is_reply(&client.send(work(cx)).await.json().await, 1));

    let silent = Script::new(|_, _| async {
        sleep(Duration::from_secs(3600)).await;
        reply(1)
    });
    let client = cx.serve(StreamableHttpService::new(silent)).await;
    let only_json = work(cx).header(ACCEPT.as_str(), "application/json");
    assert!(is_reply(&client.send(only_json).await.json().await, 1), "JSON for as long as it takes");
}

async fn opening_requests_never_commit(cx: Cx) {
    let script = Script::new(|_, _| async {
        pending::<()>().await;
        reply(1)
    });
    let client = cx.serve(limited(script, Limits::default().commit_after(Duration::from_nanos(1)))).await;
    let opening = if cx.modern() {
        Call::modern("server/discover", json!({}))
    } else {
        let client_info = json!({"name": "wire", "version": "1"});
        let params = json!({"protocolVersion": cx.revision.as_str(), "capabilities": {}, "clientInfo": client_info});
        Call::legacy(cx.revision, "initialize", params)
    };
    assert!(client.send(opening).await.result().await["capabilities"].is_object());
    // All others commit at once under this limit.
    assert_eq!(content_type(&client.send(work(cx)).await), "text/event-stream");
}

async fn no_silence_at_all_makes_every_answer_a_stream(cx: Cx) {
    let script = Script::new(|request, _| async move {
        if request.params::<Value>()?["fails"] == true { Err(McpError::invalid_params("no")) } else { reply(1) }
    });
    let client = cx.serve(limited(script, Limits::default().commit_after(Duration::ZERO))).await;
    let answer = client.send(work(cx)).await;
    assert_eq!(content_type(&answer), "text/event-stream");
    let (sent, response) = messages(answer).await;
    assert!(sent.is_empty() && is_reply(&response, 1), "{response}");

    let only_json = work(cx).header(ACCEPT.as_str(), "application/json");
    assert!(is_reply(&client.send(only_json).await.json().await, 1));
    if cx.modern() {
        let mut fails = work(cx);
        fails.set("/params/fails", true);
        let answer = client.send(fails).await;
        assert_eq!((answer.status, content_type(&answer)), (StatusCode::BAD_REQUEST, "application/json"));
    }
}

async fn accept_decides(cx: Cx) {
    let script = Script::new(|request, cx| async move {
        if request.params::<Value>()?["talks"] == true {
            tell(&cx, 1).await;
        }
        reply(2)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    // What the client takes, and whether a quiet and a talkative answer are streams.
    let table = [
        (Some("application/json, text/event-stream"), false, true),
        (Some("text/event-stream, application/json"), false, true),
        (Some("Application/JSON , Text/Event-Stream"), false, true),
        (Some("*/*"), false, true),
        (Some("*/*;q=0.1"), false, true),
        (None, false, true),
        (Some("application/json"), false, false),
        (Some("APPLICATION/JSON"), false, false),
        (Some("application/*"), false, false),
        (Some("application/json, text/event-stream;q=0"), false, false),
        (Some("*/*, text/event-stream;q=0"), false, false),
        (Some("text/event-stream"), true, true),
        (Some("text/*"), true, true),
        (Some("text/event-stream, application/json;q=0"), true, true),
        (Some("text/event-stream, text/html"), true, true),
    ];
    for (accept, quiet_streams, talk_streams) in table {
        for (talks, streams) in [(false, quiet_streams), (true, talk_streams)] {
            let mut call = work(cx);
            call.set("/params/talks", talks);
            call = match accept {
                Some(accept) => call.header(ACCEPT.as_str(), accept),
                None => call.without(ACCEPT.as_str()),
            };
            let answer = client.send(call).await;
            let kind = if streams { "text/event-stream" } else { "application/json" };
            assert_eq!((answer.status, content_type(&answer)), (StatusCode::OK, kind), "{accept:?}, talks: {talks}");
            if !streams {
                assert!(is_reply(&answer.json().await, 2), "{accept:?}");
                continue;
            }
            let (sent, response) = messages(answer).await;
            assert_eq!(sent, if talks { vec![told(1)] } else { Vec::new() }, "{accept:?}");
            assert!(is_reply(&response, 2), "{accept:?}");
        }
    }
}

async fn what_would_have_streamed_is_dropped(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        // More than any queue holds: what is dropped must not make its sender wait.
        for n in 0..1000 {
            tell(&cx, n).await;
            cx.progress(Progress::new(1.0)).await;
            cx.log(LogLevel::Error, "x".repeat(10_000)).await?;
            tokio::task::yield_now().await;
        }
        reply(1)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let answer = client.send(work(cx).header(ACCEPT.as_str(), "application/json")).await;
    assert!(is_reply(&answer.json().await, 1));
}

/// A status tells more than the form: where it is not 200, the answer is JSON whatever the client takes.
async fn only_200_is_ever_a_stream(cx: Cx) {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let tools = json!([{"name": "t", "inputSchema": {"type": "object", "properties": {"region": region}}}]);
    let script = Script::new(move |request, _| {
        let answer = match request.params::<Value>().unwrap_or_default()["fails"].as_i64() {
            Some(code) => Err(McpError::new(i32::try_from(code).expect("a code"), "no")),
            None if request.method() == "tools/list" => Reply::of(json!({"tools": tools})),
            None => reply(1),
        };
        async { answer }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let only_streams = |call: Call| call.header(ACCEPT.as_str(), "text/event-stream");
    for (code, status) in [(-32602, 400), (-32601, 404), (-32600, 400), (-32700, 400), (-32603, 200), (7, 200)] {
        let mut call = only_streams(work(cx));
        call.set("/params/fails", code);
        let answer = client.send(call).await;
        if status == 200 || !cx.modern() {
            let (_, response) = messages(answer).await;
            assert_eq!(response["error"]["code"], code);
        } else {
            answer.error(StatusCode::from_u16(status).unwrap(), code, Some(&1.into())).await;
        }
    }
    let unread = only_streams(work(cx)).raw("{");
    client.send(unread).await.error(StatusCode::BAD_REQUEST, -32700, None).await;
    let nobody_answers = only_streams(Call::of(cx.revision, METHOD, json!({})).notification());
    assert_eq!(client.send(nobody_answers).await.status, StatusCode::ACCEPTED);
    if cx.modern() {
        // Judged against the listing, after the ladder.
        let call = Call::modern("tools/call", json!({"name": "t", "arguments": {"region": "eu"}}));
        let call = only_streams(call.header(MCP_NAME, "t").header("mcp-param-region", "us"));
        client.send(call).await.error(StatusCode::BAD_REQUEST, -32020, Some(&1.into())).await;
    }
}
