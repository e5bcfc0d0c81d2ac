//! Every limit, reached and missed by one.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body::Frame as BodyFrame;
use http_body_util::StreamBody;
use mcp_transport::{CancelCause, Limits, McpError, Reply, StreamableHttpService};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    Ends, METHOD, Signal, all_quiet, is_internal, is_late, is_reply, limited, messages, observed, reply, tell, told,
    work,
};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::Call;
use crate::support::sse::Frame;

pub fn register(wire: &mut Wire) {
    wire.any("limit/each/body", Carriers::Every, body);
    wire.any("limit/each/body-default", Carriers::Every, body_by_default);
    wire.any("limit/each/nesting", Carriers::Every, nesting);
    wire.any("limit/each/queue-messages", Carriers::Clock, queued_messages);
    wire.any("limit/each/queue-bytes", Carriers::Clock, queued_bytes);
    wire.modern_part_of_any("limit/each/listing-pages", Carriers::Every, listing_pages);
    wire.modern_part_of_any("limit/each/listing-tools", Carriers::Every, listing_tools);
    wire.any("limit/each/handler-time", Carriers::Clock, handler_time);
    wire.any("limit/each/handler-time-of-notifications", Carriers::Clock, handler_time_of_notifications);
    wire.any("limit/each/commit", Carriers::Clock, commit);
    wire.any("limit/each/keep-alive", Carriers::Clock, keep_alive);
    wire.any("limit/each/keep-alive-spread", Carriers::Clock, keep_alives_are_spread);
    wire.any("limit/each/endless", Carriers::Clock, any_time_may_be_endless);
    wire.harness("limits-are-checked", Carriers::Clock, |_| async { limits_are_checked() });
}

fn quiet() -> Script {
    Script::new(|_, _| async { reply(1) })
}

/// A request whose body is that many bytes long.
fn of_length(cx: Cx, length: usize) -> Call {
    let mut call = work(cx);
    call.set("/params/pad", "");
    call.edit(move |body| {
        let text = String::from_utf8(body).expect("JSON");
        let pad = "x".repeat(length - text.len());
        text.replace("\"pad\":\"\"", &format!("\"pad\":\"{pad}\"")).into_bytes()
    });
    call
}

/// The same request with a body of unknown length that comes in pieces.
fn in_pieces(call: Call, size: usize) -> http::Request<impl http_body::Body<Data = Bytes, Error = Infallible>> {
    let mut head = Call::bare(call.method.clone());
    head.headers = call.headers.clone();
    let mut rest = Bytes::from(call.into_bytes());
    let pieces = std::iter::from_fn(move || {
        let piece = rest.split_to(size.min(rest.len()));
        (!piece.is_empty()).then(|| Ok::<_, Infallible>(BodyFrame::data(piece)))
    });
    head.with_body(StreamBody::new(futures::stream::iter(pieces)))
}

async fn body(cx: Cx) {
    const LIMIT: usize = 3000;
    let (service, heard) = observed(quiet(), Limits::default().body_bytes(LIMIT));
    let client = cx.serve(service).await;
    for (length, fits) in [(LIMIT - 1, true), (LIMIT, true), (LIMIT + 1, false), (3 * LIMIT, false)] {
        for pieces in [None, Some(LIMIT * 4), Some(1000), Some(7)] {
            let answer = match pieces {
                None => client.send(of_length(cx, length)).await,
                Some(size) => client.send_body(in_pieces(of_length(cx, length), size)).await,
            };
            if fits {
                assert!(is_reply(&answer.json().await, 1), "{length} bytes");
            } else {
                answer.error(StatusCode::PAYLOAD_TOO_LARGE, -32600, None).await;
            }
        }
    }
    assert_eq!(heard.of("started").len(), 8, "no handler saw the others");
}

async fn body_by_default(cx: Cx) {
    const LIMIT: usize = 4 << 20;
    let client = cx.serve(StreamableHttpService::new(quiet())).await;
    assert!(is_reply(&client.send(of_length(cx, LIMIT)).await.json().await, 1));
    let answer = client.send(of_length(cx, LIMIT + 1)).await;
    answer.error(StatusCode::PAYLOAD_TOO_LARGE, -32600, None).await;
}

/// A request with that many containers open at once, of one kind or the other.
fn of_depth(cx: Cx, depth: usize, open: &str, close: &str) -> Call {
    let mut call = work(cx);
    call.set("/params/deep", "<deep>");
    let inner = depth - 2;
    call.replace("\"<deep>\"", &format!("{}{}", open.repeat(inner), close.repeat(inner)));
    call
}

async fn nesting(cx: Cx) {
    for (limits, most) in [(Limits::default(), 128), (Limits::default().nesting(8), 8)] {
        let (service, heard) = observed(quiet(), limits);
        let client = cx.serve(service).await;
        let kinds = [("[", "]"), ("{\"a\":", "}")];
        for (open, close) in kinds {
            let fits = |depth| {
                let mut call = of_depth(cx, depth, open, close);
                // An object needs a value inside.
                call.replace(":}", ":0}");
                call
            };
            let call = if open == "[" { of_depth(cx, most, open, close) } else { fits(most) };
            assert!(is_reply(&client.send(call).await.json().await, 1), "{most} times {open}");
            let call = if open == "[" { of_depth(cx, most + 1, open, close) } else { fits(most + 1) };
            client.send(call).await.error(StatusCode::BAD_REQUEST, -32700, None).await;
        }
        // Where nothing else of the message is deep either.
        let bare = Call::post(Value::Null).raw("[".repeat(100_000));
        client.send(bare).await.error(StatusCode::BAD_REQUEST, -32700, None).await;
        assert_eq!(heard.of("started").len(), 2, "no handler saw the others");
    }
}

/// Sends for as long as there is room, counting.
fn filling(sent: &Signal) -> Script {
    let sent = sent.clone();
    Script::new(move |request, cx| {
        let sent = sent.clone();
        async move {
            let params: Value = request.params()?;
            let pad = "x".repeat(usize::try_from(params["pad"].as_u64().unwrap_or_default()).expect("a length"));
            for _ in 0..params["messages"].as_u64().expect("a number") {
                cx.notify("notifications/pad", json!({"pad": pad})).await?;
                sent.give();
            }
            reply(1)
        }
    })
}

fn fill(cx: Cx, messages: usize, pad: usize) -> Call {
    let mut call = work(cx);
    call.set("/params/messages", messages);
    call.set("/params/pad", pad);
    call
}

/// How many messages a stream that nobody reads takes.
async fn room(cx: Cx, limits: Limits, many: usize, pad: usize) -> usize {
    let sent = Signal::new();
    let client = cx.serve(limited(filling(&sent), limits)).await;
    let answer = client.send(fill(cx, many, pad)).await;
    sleep(Duration::from_secs(200)).await;
    let room = sent.count();
    let (all, response) = messages(answer).await;
    assert_eq!(all.len(), many, "no message is lost");
    assert!(is_reply(&response, 1));
    room
}

async fn queued_messages(cx: Cx) {
    assert_eq!(room(cx, Limits::default(), 1000, 0).await, 256);
    assert_eq!(room(cx, Limits::default(), 1000, 3000).await, 256);
    assert_eq!(room(cx, Limits::default().queue_bytes(100_000), 1000, 0).await, 256);
    // As many as fit do not wait.
    let sent = Signal::new();
    let service = limited(filling(&sent), Limits::default());
    let client = cx.serve(service.clone()).await;
    let answer = client.send(fill(cx, 256, 0)).await;
    all_but_streams_quiet(&service).await;
    assert_eq!(sent.count(), 256);
    assert_eq!(messages(answer).await.0.len(), 256);
    // Each message that is read makes room for one.
    let mut answer = client.send(fill(cx, 300, 0)).await;
    sleep(Duration::from_secs(60)).await;
    for read in 1..=44 {
        assert_eq!(sent.count(), 256 + 256 + read - 1);
        answer.next_message().await.expect("a message");
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(messages(answer).await.0.len(), 256);
}

/// Waits until no handler is at work.
async fn all_but_streams_quiet(service: &StreamableHttpService) {
    while service.counts().in_flight > 0 {
        sleep(Duration::from_millis(1)).await;
    }
}

async fn queued_bytes(cx: Cx) {
    // The event around an empty pad.
    let client = cx.serve(limited(filling(&Signal::new()), Limits::default())).await;
    let mut answer = client.send(fill(cx, 1, 0)).await;
    let around = answer.chunk().await.expect("an event").len();
    for limit in [4000, 1 << 20] {
        let limits = || Limits::default().queue_bytes(limit);
        let half = usize::try_from(limit).expect("small") / 2;
        assert_eq!(room(cx, limits(), 5, half - around).await, 2, "two halves");
        assert_eq!(room(cx, limits(), 5, half - around + 1).await, 1, "a byte more than two halves");
        assert_eq!(room(cx, limits(), 5, 2 * half - around).await, 1, "all there is");
        // One that never fits goes when all room is free: it is not lost, and nothing hangs.
        assert_eq!(room(cx, limits(), 5, 2 * half).await, 1, "more than there is");
    }
}

/// Lists `pages` pages of `tools` tools each, the very last of which wants a header, and answers calls.
fn listing(pages: usize, tools: usize) -> Script {
    Script::new(move |request, _| {
        let answer = answer_listing(&request, pages, tools);
        async { answer }
    })
}

fn answer_listing(request: &mcp_transport::Request, pages: usize, tools: usize) -> Result<Reply, McpError> {
    if request.method() != "tools/list" {
        return reply(1);
    }
    let params: Value = request.params()?;
    let page = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("a cursor of ours"));
    let last_page = page + 1 == pages;
    let tool = |n: usize| {
        let region = json!({"type": "string", "x-mcp-header": "Region"});
        let last = last_page && n + 1 == tools;
        let name = if last { "last".to_owned() } else { format!("t{page}-{n}") };
        json!({"name": name, "inputSchema": {"type": "object", "properties": {"region": if last { region } else { json!({}) }}}})
    };
    let mut result = json!({"tools": (0..tools).map(tool).collect::<Vec<_>>()});
    if !last_page {
        result["nextCursor"] = (page + 1).to_string().into();
    }
    Reply::of(&result)
}

/// Calls the last tool. Where the transport does not know it, it cannot tell whether the header is right.
async fn assert_learns(cx: Cx, limits: Limits, pages: usize, tools: usize, learns: bool) {
    let client = cx.serve(limited(listing(pages, tools), limits)).await;
    let call = |header| {
        let call = Call::of(cx.revision, "tools/call", json!({"name": "last", "arguments": {"region": "eu"}}));
        client.send(call.header("mcp-param-region", header))
    };
    if !cx.modern() {
        // No header is mirrored there, so nothing is listed.
        assert!(is_reply(&call("us").await.json().await, 1));
    } else if learns {
        assert!(is_reply(&call("eu").await.json().await, 1), "{pages} pages, {tools} tools each");
        call("us").await.error(StatusCode::BAD_REQUEST, -32020, Some(&1.into())).await;
    } else {
        let answer = call("eu").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(is_internal(&answer.json().await), "{pages} pages, {tools} tools each");
    }
}

async fn listing_pages(cx: Cx) {
    assert_learns(cx, Limits::default(), 100, 1, true).await;
    assert_learns(cx, Limits::default(), 101, 1, false).await;
    let limits = || Limits::default().listing_pages(3);
    assert_learns(cx, limits(), 3, 2, true).await;
    assert_learns(cx, limits(), 4, 2, false).await;
}

async fn listing_tools(cx: Cx) {
    assert_learns(cx, Limits::default(), 1, 10_000, true).await;
    assert_learns(cx, Limits::default(), 1, 10_001, false).await;
    let limits = || Limits::default().listing_tools(6);
    assert_learns(cx, limits(), 3, 2, true).await;
    assert_learns(cx, limits(), 1, 7, false).await;
    assert_learns(cx, limits(), 7, 1, false).await;
}

/// Works for `params.ms` milliseconds, after a message if it is to stream.
fn working(ends: &Ends) -> Script {
    let ends = ends.clone();
    Script::new(move |request, cx| {
        let ends = ends.clone();
        async move {
            let _guard = ends.guard(&cx);
            let params: Value = request.params()?;
            if params["streams"] == true {
                tell(&cx, 1).await;
            }
            sleep(Duration::from_millis(params["ms"].as_u64().expect("milliseconds"))).await;
            reply(2)
        }
    })
}

fn for_millis(cx: Cx, ms: u64, streams: bool) -> Call {
    let mut call = work(cx);
    call.set("/params/ms", ms);
    call.set("/params/streams", streams);
    call
}

async fn handler_time(cx: Cx) {
    let ends = Ends::new();
    let service = limited(working(&ends), Limits::default().handler_time(Duration::from_secs(5)));
    let client = cx.serve(service.clone()).await;
    for streams in [false, true] {
        for (ms, late) in [(0, false), (4_990, false), (5_010, true), (86_400_000, true)] {
            let start = Instant::now();
            let answer = client.send(for_millis(cx, ms, streams)).await;
            assert_eq!(answer.status, StatusCode::OK);
            let response = if streams { messages(answer).await.1 } else { answer.json().await };
            let elapsed = start.elapsed().as_secs_f64();
            if late {
                assert!(is_late(&response), "{response}");
                assert!((5.0..5.01).contains(&elapsed), "cut after {elapsed} s");
                assert_eq!(ends.next().await, Some(CancelCause::Deadline));
            } else {
                assert!(is_reply(&response, 2), "{response}");
                assert_eq!(ends.next().await, None);
            }
        }
    }
    all_quiet(&service).await;
    // None by default, and the handler can ask.
    let script = Script::new(|_, cx| async move {
        let left = cx.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now().into_std()));
        Reply::of(json!({"n": 1, "left": left.map(|left| left.as_secs())}))
    });
    let client = cx.serve(limited(script.clone(), Limits::default())).await;
    assert_eq!(client.send(work(cx)).await.result().await["left"], Value::Null);
    let client = cx.serve(limited(script, Limits::default().handler_time(Duration::from_secs(5)))).await;
    assert_eq!(client.send(work(cx)).await.result().await["left"], 5);
}

async fn handler_time_of_notifications(cx: Cx) {
    let ends = Ends::new();
    let script = quiet().hearing({
        let ends = ends.clone();
        move |notification, cx| {
            let ends = ends.clone();
            async move {
                let _guard = ends.guard(&cx);
                let ms = notification.params::<Value>().expect("params")["ms"].as_u64().expect("milliseconds");
                sleep(Duration::from_millis(ms)).await;
            }
        }
    });
    let service = limited(script, Limits::default().handler_time(Duration::from_secs(5)));
    let client = cx.serve(service.clone()).await;
    for (ms, end) in [(4_990, None), (5_010, Some(CancelCause::Deadline))] {
        let call = Call::of(cx.revision, METHOD, json!({"ms": ms})).notification();
        assert_eq!(client.send(call).await.status, StatusCode::ACCEPTED);
        assert_eq!(ends.next().await, end);
        all_quiet(&service).await;
    }
}

async fn commit(cx: Cx) {
    let client = cx.serve(limited(working(&Ends::new()), Limits::default().commit_after(Duration::from_secs(2)))).await;
    for (ms, streams) in [(0, false), (1_990, false), (2_010, true)] {
        let start = Instant::now();
        let answer = client.send(for_millis(cx, ms, false)).await;
        if streams {
            let elapsed = start.elapsed().as_secs_f64();
            assert!((2.0..2.01).contains(&elapsed), "committed after {elapsed} s");
            let (sent, response) = messages(answer).await;
            assert_eq!(sent, Vec::<Value>::new());
            assert!(is_reply(&response, 2));
        } else {
            assert!(is_reply(&answer.json().await, 2), "{ms} ms");
        }
    }
}

async fn keep_alive(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        tell(&cx, 1).await;
        // Never silent for as long as that.
        for n in 2..12 {
            sleep(Duration::from_millis(3_500)).await;
            tell(&cx, n).await;
        }
        sleep(Duration::from_secs(400)).await;
        reply(2)
    });
    let client = cx.serve(limited(script, Limits::default().keep_alive(Duration::from_secs(4)))).await;
    let mut answer = client.send(work(cx)).await;
    for n in 1..12 {
        let Some(Frame::Event(event)) = answer.frame().await else {
            panic!("a comment though the stream was not silent");
        };
        assert_eq!(serde_json::from_str::<Value>(&event.data.expect("data")).unwrap(), told(n));
    }
    let (mut last, mut comments) = (Instant::now(), 0);
    while let Some(frame) = answer.frame().await {
        match frame {
            Frame::Comment(_) => {
                let silence = last.elapsed().as_secs_f64();
                assert!((3.6..4.41).contains(&silence), "a comment after {silence} s");
                (last, comments) = (Instant::now(), comments + 1);
            }
            Frame::Event(event) => {
                assert!(is_reply(&serde_json::from_str(&event.data.expect("data")).unwrap(), 2));
            }
        }
    }
    assert!((90..=111).contains(&comments), "{comments} comments in 400 s");
}

async fn keep_alives_are_spread(cx: Cx) {
    let client = cx.serve(limited(working(&Ends::new()), Limits::default())).await;
    let mut first = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let mut answer = client.send(for_millis(cx, 60_000, true)).await;
        assert!(matches!(answer.frame().await, Some(Frame::Event(_))));
        let start = Instant::now();
        assert!(matches!(answer.frame().await, Some(Frame::Comment(_))));
        first.insert(start.elapsed().as_millis());
    }
    assert!(first.len() > 3, "streams opened together would all speak together: {first:?}");
}

async fn any_time_may_be_endless(cx: Cx) {
    let limits = Limits::default().commit_after(Duration::MAX).keep_alive(Duration::MAX).handler_time(Duration::MAX);
    let ends = Ends::new();
    let service = limited(working(&ends), limits);
    let client = cx.serve(service.clone()).await;
    let answer = client.send(for_millis(cx, 86_400_000, false)).await;
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "application/json");
    assert!(is_reply(&answer.json().await, 2));
    let mut answer = client.send(for_millis(cx, 86_400_000, true).header(ACCEPT.as_str(), "*/*")).await;
    assert!(matches!(answer.frame().await, Some(Frame::Event(_))));
    assert!(matches!(answer.frame().await, Some(Frame::Event(_))), "no comment in a day");
    assert_eq!(answer.frame().await, None);
}

fn limits_are_checked() {
    let builds = |limits: Limits| StreamableHttpService::builder(quiet()).limits(limits).build().is_ok();
    let l = Limits::default;
    for good in [
        l().body_bytes(1),
        l().nesting(1),
        l().nesting(128),
        l().queue_bytes(256),
        l().queue_bytes(256 << 20),
        l().keep_alive(Duration::from_nanos(1)),
        l().handler_time(Duration::ZERO),
        l().commit_after(Duration::ZERO),
        l().listing_pages(0).listing_tools(0),
    ] {
        assert!(builds(good.clone()), "{good:?}");
    }
    for bad in [
        l().body_bytes(0),
        l().body_bytes(1 << 32),
        l().nesting(0),
        l().nesting(129),
        l().queue_bytes(255),
        l().queue_bytes((256 << 20) + 1),
        l().keep_alive(Duration::ZERO),
    ] {
        assert!(!builds(bad.clone()), "{bad:?}");
    }
}
