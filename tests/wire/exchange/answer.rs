//! What an answer looks like on the wire, byte for byte, and that nothing follows it.

use std::time::Duration;

use futures::FutureExt;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use mcp_transport::{Limits, LogLevel, Progress, Reply, RequestContext, StreamableHttpService};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Signal, is_late, is_reply, limited, messages, reply, tell, told, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::handler::Script;

pub fn register(wire: &mut Wire) {
    wire.any("answer/sse-headers", Carriers::Every, headers_of_a_stream);
    wire.any("answer/frame", Carriers::Clock, every_event_is_one_chunk);
    wire.any("answer/frame/chunked", Carriers::H1, every_event_is_one_chunk_of_http);
    wire.any("answer/frame/at-once", Carriers::Clock, the_first_event_waits_for_nothing);
    wire.any("answer/after-end", Carriers::Every, nothing_follows_the_response);
    wire.any("answer/after-end/json", Carriers::Every, nothing_follows_a_json_answer);
    wire.any("answer/after-end/deadline", Carriers::Clock, nothing_follows_the_deadline);
}

async fn headers_of_a_stream(cx: Cx) {
    let go = Signal::new();
    let script = Script::new({
        let go = go.clone();
        move |request, cx| {
            let go = go.clone();
            async move {
                if request.params::<Value>()?["silent"] != true {
                    tell(&cx, 1).await;
                }
                go.taken().await;
                reply(1)
            }
        }
    });
    let limits = Limits::default().commit_after(Duration::from_millis(1));
    let client = cx.serve(limited(script, limits)).await;
    let mut silent = work(cx);
    silent.set("/params/silent", true);
    for call in [work(cx), work(cx).header(ACCEPT.as_str(), "text/event-stream"), silent] {
        let answer = client.send(call).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header(CONTENT_TYPE.as_str()), "text/event-stream");
        assert!(matches!(answer.header("cache-control"), "no-cache" | "no-store"));
        assert_eq!(answer.header("x-accel-buffering"), "no");
        assert!(!answer.headers.contains_key(CONTENT_LENGTH));
        go.give();
        assert!(is_reply(&messages(answer).await.1, 1));
    }
}

/// Text that would break a frame, were it not escaped.
const HOSTILE: &str = "a\nb\r\nc\rd\n\nevent: message\ndata: {}\n\n\u{2028}\u{2029}\u{85}\u{feff}\u{1f980}\0\\n";

/// Says everything there is to say, as hostile to frames as it can.
async fn say(cx: &RequestContext) {
    let broken =
        RawValue::from_string("{\r\n  \"a b\" : [ 1,\n\n\t2 ],\n\"c\\n\": \"d  e\"\n}".to_owned()).expect("JSON");
    cx.log(LogLevel::Error, HOSTILE).await.expect("a log message");
    cx.log_from(HOSTILE, LogLevel::Error, broken).await.expect("a log message");
    cx.progress(Progress::new(1.0).message(HOSTILE)).await;
    cx.notify("notifications/\n\nsaid", json!({HOSTILE: HOSTILE})).await.expect("a notification");
}

/// Whether the messages are those of [`say`].
fn assert_said(messages: &[Value]) {
    assert_eq!(messages[0]["params"]["data"], HOSTILE);
    assert_eq!(
        messages[1]["params"],
        json!({
            "level": "error", "logger": HOSTILE, "data": {"a b": [1, 2], "c\n": "d  e"}
        })
    );
    assert_eq!(messages[2]["params"]["message"], HOSTILE);
    assert_eq!(messages[3]["method"], "notifications/\n\nsaid");
    assert_eq!(messages[3]["params"], json!({HOSTILE: HOSTILE}));
    assert_eq!(messages.len(), 4);
}

#[derive(serde::Serialize)]
struct Said {
    n: usize,
    text: Box<RawValue>,
}

fn saying() -> Script {
    Script::new(|_, cx| async move {
        say(&cx).await;
        let broken = RawValue::from_string(format!("\n{}\r\n", json!(HOSTILE))).expect("JSON");
        Reply::of(&Said { n: 1, text: broken })
    })
}

/// The message of a chunk that is exactly one event.
fn one_event(chunk: &[u8]) -> Value {
    let text = std::str::from_utf8(chunk).expect("an event is UTF-8");
    let data = text.strip_prefix("event: message\ndata: ").and_then(|text| text.strip_suffix("\n\n"));
    let data = data.unwrap_or_else(|| panic!("not one event: {text:?}"));
    assert!(!data.contains(['\n', '\r']), "more than one line of data: {data:?}");
    serde_json::from_str(data).unwrap_or_else(|error| panic!("{error} in {data}"))
}

async fn every_event_is_one_chunk(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(saying())).await;
    let mut answer = client.send(work(cx)).await;
    let mut messages = Vec::new();
    while let Some(chunk) = answer.chunk().await {
        messages.push(one_event(&chunk));
    }
    let response = messages.pop().expect("a response");
    assert!(is_reply(&response, 1));
    assert_eq!(response["result"]["text"], HOSTILE);
    assert_said(&messages);
}

/// The same as bytes on a socket, where each chunk of the transfer coding is one event.
async fn every_event_is_one_chunk_of_http(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(saying())).await;
    let call = work(cx);
    let headers = call.headers.clone();
    let body = call.into_bytes();
    let mut head = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in &headers {
        head += &format!("{name}: {}\r\n", value.to_str().expect("ASCII"));
    }
    let mut raw = client.raw([head.as_bytes(), b"\r\n", &body].concat()).await;
    let text = raw.until("\r\n0\r\n\r\n").await;
    let (head, mut rest) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
    let mut messages = Vec::new();
    loop {
        let (size, after) = rest.split_once("\r\n").expect("the size of a chunk");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            break;
        }
        messages.push(one_event(&after.as_bytes()[..size]));
        rest = after[size..].strip_prefix("\r\n").expect("the end of a chunk");
    }
    assert!(is_reply(&messages.pop().expect("a response"), 1));
    assert_said(&messages);
}

/// Whoever writes the head can have the first event at once, and write both together.
async fn the_first_event_waits_for_nothing(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        tell(&cx, 1).await;
        sleep(Duration::from_secs(1)).await;
        reply(2)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let mut answer = client.send(work(cx)).await;
    let chunk = answer.chunk().now_or_never().expect("no wait").expect("an event");
    assert_eq!(one_event(&chunk), told(1));
    assert!(answer.chunk().now_or_never().is_none(), "the handler is still at work");
}

/// Goes on talking once the request is answered, more than any queue holds, and tells when it is through.
fn talk_on(cx: RequestContext, go: Signal, done: Signal) {
    tokio::spawn(async move {
        go.taken().await;
        for n in 1..1000_u32 {
            tell(&cx, 99).await;
            cx.progress(Progress::new(n.into())).await;
            cx.log(LogLevel::Error, "late").await.expect("dropped without a word");
        }
        done.give();
    });
}

fn talking_on(streams: bool, go: &Signal, done: &Signal) -> Script {
    let (go, done) = (go.clone(), done.clone());
    Script::new(move |_, cx| {
        let (go, done) = (go.clone(), done.clone());
        async move {
            talk_on(cx.clone(), go.clone(), done);
            if streams {
                tell(&cx, 1).await;
                tokio::task::yield_now().await;
            }
            // The talk begins as soon as this task is not polled any more.
            go.give();
            reply(2)
        }
    })
}

async fn nothing_follows_the_response(cx: Cx) {
    let (go, done) = (Signal::new(), Signal::new());
    let client = cx.serve(StreamableHttpService::new(talking_on(true, &go, &done))).await;
    let mut answer = client.send(work(cx)).await;
    assert_eq!(answer.next_message().await, Some(told(1)));
    done.taken().await;
    assert!(is_reply(&answer.next_message().await.expect("a response"), 2));
    assert_eq!(answer.frame().await, None);
}

async fn nothing_follows_a_json_answer(cx: Cx) {
    let (go, done) = (Signal::new(), Signal::new());
    let client = cx.serve(StreamableHttpService::new(talking_on(false, &go, &done))).await;
    let answer = client.send(work(cx)).await;
    // Nobody reads what it says: it must not wait for room.
    done.taken().await;
    assert!(is_reply(&answer.json().await, 2));
}

async fn nothing_follows_the_deadline(cx: Cx) {
    let (go, done) = (Signal::new(), Signal::new());
    let script = Script::new({
        let (go, done) = (go.clone(), done.clone());
        move |request, cx| {
            talk_on(cx.clone(), go.clone(), done.clone());
            async move {
                if request.params::<Value>()?["streams"] == true {
                    tell(&cx, 1).await;
                }
                sleep(Duration::from_secs(3600)).await;
                reply(2)
            }
        }
    });
    let client = cx.serve(limited(script, Limits::default().handler_time(Duration::from_secs(5)))).await;
    for streams in [false, true] {
        let mut call = work(cx);
        call.set("/params/streams", streams);
        let mut answer: Answer = client.send(call).await;
        if streams {
            assert_eq!(answer.next_message().await, Some(told(1)));
            sleep(Duration::from_secs(6)).await;
        }
        go.give();
        done.taken().await;
        if streams {
            assert!(is_late(&answer.next_message().await.expect("a response")));
            assert_eq!(answer.frame().await, None);
        } else {
            assert!(is_late(&answer.json().await));
        }
    }
}
