//! The harness tried on a service of its own, so that a red trial is the library's fault and not the harness's.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame as BodyFrame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::request::{Call, MCP_NAME, PROTOCOL_VERSION, mirrored};
use super::server::{Body, body};
use super::sse::{Decoder, Event, Frame};
use crate::harness::{Carrier, Carriers, Cx, Wire, run};
use crate::ledger;

pub fn register(wire: &mut Wire) {
    wire.harness("echo", Carriers::Every, echo);
    wire.harness("stream", Carriers::Every, stream);
    wire.harness("leave-before-the-head", Carriers::Every, leave_before_the_head);
    wire.harness("leave-a-stream", Carriers::Every, leave_a_stream);
    wire.harness("raw", Carriers::H1, raw);
    wire.harness("clock", Carriers::Clock, clock);
    wire.harness("decoder", Carriers::Clock, |_| async { decoder() });
    wire.harness("requests", Carriers::Clock, |_| async { requests() });
    wire.harness("trials", Carriers::Clock, |_| async { trials() });
    wire.harness("ledger", Carriers::Clock, |_| async { ledger_compares() });
}

/// Answers with what it was sent.
async fn echo_service(request: Request<Body>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
    let host = head.headers.get("host").and_then(|host| host.to_str().ok()).map(str::to_owned);
    let seen = json!({
        "method": head.method.as_str(),
        "path": head.uri.path(),
        "authority": host.or_else(|| head.uri.authority().map(ToString::to_string)),
        "version": head.headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok()),
        "body": serde_json::from_slice::<Value>(&body).unwrap_or_default(),
    });
    let response = Response::builder().header("content-type", "application/json");
    Ok(response.body(Full::from(seen.to_string())).expect("a response"))
}

async fn echo(cx: Cx) {
    let client = cx.serve(service_fn(echo_service)).await;
    let answer = client.send(Call::modern("tools/call", json!({"name": "a"}))).await;
    assert_eq!(answer.status, StatusCode::OK);
    let seen = answer.json().await;
    assert_eq!(seen["method"], "POST");
    assert_eq!(seen["path"], "/mcp");
    assert_eq!(seen["version"], "2026-07-28");
    assert_eq!(seen["body"]["params"]["name"], "a");

    let named = client.send(Call::get().header("host", "example.test")).await.json().await;
    assert_eq!((named["method"].as_str(), named["authority"].as_str()), (Some("GET"), Some("example.test")));
}

/// Sends one event and is then quiet for as long as `held` lives.
fn streaming(held: Arc<Guard>) -> Response<Body> {
    let first = Bytes::from_static(b": hello\n\nevent: message\ndata: {\"n\":1}\n\n");
    let frames = futures::stream::unfold(Some((first, held)), |state| async {
        match state {
            Some((bytes, held)) if !bytes.is_empty() => {
                Some((Ok::<_, Infallible>(BodyFrame::data(bytes)), Some((Bytes::new(), held))))
            }
            Some((_, held)) => {
                held.end.notified().await;
                None
            }
            None => None,
        }
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(body(StreamBody::new(frames))).expect("a response")
}

/// Tells when it was dropped.
#[derive(Default)]
struct Guard {
    end: Notify,
    gone: Arc<Gone>,
}

#[derive(Default)]
struct Gone {
    count: AtomicUsize,
    notify: Notify,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.gone.count.fetch_add(1, Ordering::SeqCst);
        self.gone.notify.notify_one();
    }
}

async fn stream(cx: Cx) {
    let service = service_fn(|_: Request<Body>| async {
        let guard = Arc::new(Guard::default());
        guard.end.notify_one();
        Ok::<_, Infallible>(streaming(guard))
    });
    let client = cx.serve(service).await;
    assert_eq!(client.send(Call::get()).await.events().await, [json!({"n": 1})]);

    let mut answer = client.send(Call::get()).await;
    assert_eq!(answer.frame().await, Some(Frame::Comment("hello".to_owned())));
    assert!(matches!(answer.frame().await, Some(Frame::Event(Event { id: None, .. }))));
    assert_eq!(answer.frame().await, None);
}

async fn leave_before_the_head(cx: Cx) {
    let gone = Arc::new(Gone::default());
    let entered = Arc::new(Notify::new());
    let service = service_fn({
        let (gone, entered) = (Arc::clone(&gone), Arc::clone(&entered));
        move |_: Request<Body>| {
            let guard = Guard { end: Notify::new(), gone: Arc::clone(&gone) };
            let entered = Arc::clone(&entered);
            async move {
                entered.notify_one();
                guard.end.notified().await;
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
            }
        }
    });
    let client = cx.serve(service).await;
    let other = client.clone();
    let asking = tokio::spawn(async move { other.send(Call::get()).await });
    entered.notified().await;
    assert_eq!(gone.count.load(Ordering::SeqCst), 0);
    asking.abort();
    gone.notify.notified().await;
}

async fn leave_a_stream(cx: Cx) {
    let gone = Arc::new(Gone::default());
    let service = service_fn({
        let gone = Arc::clone(&gone);
        move |_: Request<Body>| {
            let guard = Arc::new(Guard { end: Notify::new(), gone: Arc::clone(&gone) });
            async move { Ok::<_, Infallible>(streaming(guard)) }
        }
    });
    let client = cx.serve(service).await;
    let mut answer = client.send(Call::get()).await;
    assert_eq!(answer.next_message().await, Some(json!({"n": 1})));
    assert_eq!(gone.count.load(Ordering::SeqCst), 0);
    drop(answer);
    gone.notify.notified().await;
}

async fn raw(cx: Cx) {
    let client = cx.serve(service_fn(echo_service)).await;
    let mut raw = client.raw("GET /raw HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(raw.status().await, Some(StatusCode::OK));
    assert!(raw.until("\"/raw\"").await.contains("\"/raw\""));
    let mut cut = client.raw("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc").await;
    cut.finish().await;
    cut.until("nothing").await;
}

async fn clock(cx: Cx) {
    assert_eq!(cx.carrier, Carrier::Clock);
    let service = service_fn(|_: Request<Body>| async {
        sleep(Duration::from_secs(3600)).await;
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let (client, start) = (cx.serve(service).await, Instant::now());
    client.send(Call::get()).await;
    assert!(start.elapsed() >= Duration::from_secs(3600));
}

fn decoder() {
    let decode = |text: &str| -> Result<Vec<Frame>, String> {
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for byte in text.bytes() {
            decoder.push(&[byte]);
            frames.extend(decoder.next()?);
        }
        decoder.finish().map(|()| frames)
    };
    let event = Event { id: Some("7".into()), retry: Some(Duration::from_millis(10)), data: Some("x: y".into()) };
    let text = ":\n\nevent: message\nid: 7\nretry: 10\ndata: x: y\n\n";
    assert_eq!(decode(text), Ok(vec![Frame::Comment(String::new()), Frame::Event(event)]));
    let bad =
        ["event: other\ndata: 1\n\n", "data: 1\ndata: 2\n\n", "data: 1\r\n\n", "note: 1\n\n", "data: 1\n", "\n\n"];
    for text in bad {
        assert!(decode(text).is_err(), "decoded {text:?}");
    }
}

fn requests() {
    assert_eq!(mirrored("echo"), "echo");
    assert_eq!(mirrored("\u{e4}"), "=?base64?w6Q=?=");
    assert_eq!(mirrored(" a"), "=?base64?IGE=?=");
    assert_eq!(mirrored("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    let call = Call::modern("resources/read", json!({"uri": "file:///a"}));
    assert_eq!(call.headers[MCP_NAME], "file:///a");
    let mut call = Call::post(json!({"id": 1}));
    call.replace("1", "1.0");
    call.set("/x~1y", 2);
    assert_eq!(call.into_bytes(), br#"{"id":1.0,"x/y":2}"#);
}

fn trials() {
    let patience = Duration::from_millis(50);
    assert!(run("good".into(), Duration::from_secs(10), || {}).is_ok());
    let hangs = run("hangs".into(), patience, || {
        loop {
            std::thread::park();
        }
    });
    assert!(hangs.is_err_and(|failed| format!("{failed:?}").contains("it hangs")));
    let panics = run("panics".into(), Duration::from_secs(10), || resume_unwind(Box::new("on purpose")));
    assert!(panics.is_err_and(|failed| format!("{failed:?}").contains("on purpose")));
}

fn ledger_compares() {
    let rows = |rows: &[&str]| rows.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let text = "# note\n\nany/a/b core done says so\nmodern/a/c stdio open says so\n";
    assert_eq!(ledger::compare(text, &rows(&["any/a/b"])), Ok(()));
    assert_eq!(ledger::compare(text, &rows(&["any/a/b", "modern/a/c"])), Ok(()));
    let fault = |text, names: &[&str]| ledger::compare(text, &rows(names)).expect_err("a fault");
    assert!(fault(text, &[]).contains("any/a/b: done, yet no test"));
    assert!(fault(text, &["any/a/b", "any/a/c"]).contains("any/a/c: a test without a row"));
    assert!(fault("a/b/c core open x\na/b/c core open x", &[]).contains("twice"));
    for line in ["a/b core open x", "a/b/c nobody open x", "a/b/c core half x", "a/b/c core open"] {
        assert!(fault(line, &[]).contains("not a line"), "{line}");
    }
}
