//! A client that leaves cancels its request; nothing else does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_transport::{CancelCause, ExchangeEnd, Progress, Reply, RequestContext, StreamableHttpService};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::Heard;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{CAPABILITIES, CLAIM, Call, ID, PROTOCOL_VERSION};

pub fn register(wire: &mut Wire) {
    wire.modern("cancel/disconnect", Carriers::Every, before_the_first_byte);
    wire.modern("cancel/disconnect/quiet-json", Carriers::Every, json_only);
    wire.modern("cancel/disconnect/first-event", Carriers::Every, after_the_first_event);
    wire.modern("cancel/disconnect/quiet-stream", Carriers::Every, on_a_quiet_stream);
    wire.modern("cancel/disconnect/full-queue", Carriers::Every, while_it_cannot_send);
    wire.modern("cancel/disconnect/neighbours", Carriers::Every, neighbours);
    wire.modern("cancel/disconnect/connection", Carriers::H2, whole_connection);
    wire.modern("cancel/disconnect/half-closed", Carriers::H1, half_closed);
    wire.modern("cancel/disconnect/answered", Carriers::Every, answered);
    wire.modern("cancel/disconnect/keep-alive", Carriers::Clock, between_keep_alives);
    wire.modern("cancel/not-by-id", Carriers::Every, not_by_id);
}

/// How the handler goes about its work.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    /// Waits for ever.
    Waits,
    /// Sends an event first.
    Sends,
    /// Sends for ever.
    Floods,
}

/// What one run of the handler leaves behind.
struct Run {
    /// Its future is dropped.
    dropped: oneshot::Receiver<()>,
    /// A task that outlives it has seen the cancellation.
    token: oneshot::Receiver<CancelCause>,
    /// That task has then sent all it could, and each of these calls came back.
    spoke: oneshot::Receiver<()>,
    cx: RequestContext,
}

/// A server whose handler works on until it is cancelled.
struct Busy {
    client: Client,
    service: StreamableHttpService,
    heard: Heard,
    runs: tokio::sync::Mutex<tokio::sync::mpsc::UnboundedReceiver<Run>>,
    dropped: Arc<AtomicUsize>,
}

/// Tells when it is dropped.
struct Guard(Option<oneshot::Sender<()>>, Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
        if let Some(gone) = self.0.take() {
            let _ = gone.send(());
        }
    }
}

impl Busy {
    async fn open(cx: Cx, work: Work) -> Self {
        let (started, runs) = tokio::sync::mpsc::unbounded_channel();
        let dropped = Arc::new(AtomicUsize::new(0));
        let script = Script::new({
            let dropped = Arc::clone(&dropped);
            move |_, cx: RequestContext| {
                let (started, dropped) = (started.clone(), Arc::clone(&dropped));
                async move {
                    let (gone, was_dropped) = oneshot::channel();
                    let (cancelled, token) = oneshot::channel();
                    let (silent, spoke) = oneshot::channel();
                    let _guard = Guard(Some(gone), dropped);
                    tokio::spawn(outlive(cx.clone(), cancelled, silent));
                    let _ = started.send(Run { dropped: was_dropped, token, spoke, cx: cx.clone() });
                    if work != Work::Waits {
                        cx.notify("notifications/x", json!({"n": 1})).await?;
                    }
                    if work == Work::Floods {
                        loop {
                            cx.notify("notifications/x", json!({"filler": "x".repeat(10_000)})).await?;
                        }
                    }
                    std::future::pending().await
                }
            }
        });
        let heard = Heard::default();
        let service = StreamableHttpService::builder(script).observer(heard.clone()).build().expect("a service");
        let client = cx.serve(service.clone()).await;
        Self { client, service, heard, runs: runs.into(), dropped }
    }

    fn send(&self) -> tokio::task::JoinHandle<Answer> {
        let client = self.client.clone();
        tokio::spawn(async move { client.send(call()).await })
    }

    async fn run(&self) -> Run {
        self.runs.lock().await.recv().await.expect("a run")
    }

    /// The handler is at work, and nothing has happened to it yet.
    fn is_at_work(&self, run: &mut Run) {
        assert_eq!(self.dropped.load(Ordering::SeqCst), 0);
        assert!(run.token.try_recv().is_err(), "not cancelled yet");
        assert_eq!(run.cx.cancel_cause(), None);
        assert_eq!(self.service.counts().in_flight, 1);
    }

    /// After its client left, everything of the run goes.
    async fn is_cancelled(&self, run: Run) {
        run.dropped.await.expect("the future was dropped");
        assert_eq!(run.token.await, Ok(CancelCause::Disconnected));
        assert_eq!(run.cx.cancel_cause(), Some(CancelCause::Disconnected));
        assert_eq!(run.cx.cancelled().await, CancelCause::Disconnected, "also for who asks late");
        run.spoke.await.expect("what is sent afterwards does not wait for anybody");
        assert_eq!(self.heard.end().await, ("x/y".to_owned(), ExchangeEnd::Cancelled(CancelCause::Disconnected)));
        let counts = self.service.counts();
        assert_eq!((counts.in_flight, counts.streams), (0, 0));
        assert_eq!(self.dropped.load(Ordering::SeqCst), 1);
    }
}

/// Waits for the cancellation, as a task does that the handler spawned, and then tries to say more.
async fn outlive(cx: RequestContext, cancelled: oneshot::Sender<CancelCause>, silent: oneshot::Sender<()>) {
    let cause = cx.cancelled().await;
    let _ = cancelled.send(cause);
    for step in 0..1000 {
        cx.notify("notifications/late", json!({})).await.expect("an object");
        cx.progress(Progress::new(f64::from(step))).await;
    }
    let _ = silent.send(());
}

fn call() -> Call {
    let mut call = Call::modern("x/y", json!({}));
    call.set("/params/_meta/progressToken", "t");
    call
}

async fn before_the_first_byte(cx: Cx) {
    let busy = Busy::open(cx, Work::Waits).await;
    let asking = busy.send();
    let mut run = busy.run().await;
    busy.is_at_work(&mut run);
    asking.abort();
    busy.is_cancelled(run).await;
}

async fn json_only(cx: Cx) {
    let busy = Busy::open(cx, Work::Sends).await;
    let client = busy.client.clone();
    let asking = tokio::spawn(async move { client.send(call().header("accept", "application/json")).await });
    let mut run = busy.run().await;
    busy.is_at_work(&mut run);
    asking.abort();
    busy.is_cancelled(run).await;
}

async fn after_the_first_event(cx: Cx) {
    let busy = Busy::open(cx, Work::Sends).await;
    let mut answer = busy.send().await.expect("an answer");
    assert_eq!(answer.next_message().await.expect("an event")["params"], json!({"n": 1}));
    let mut run = busy.run().await;
    busy.is_at_work(&mut run);
    assert_eq!(busy.service.counts().streams, 1);
    drop(answer);
    busy.is_cancelled(run).await;
}

/// The head is there and not one event, for nothing was sent but what only an event stream can carry.
async fn on_a_quiet_stream(cx: Cx) {
    let busy = Busy::open(cx, Work::Sends).await;
    let answer = busy.send().await.expect("an answer");
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let mut run = busy.run().await;
    busy.is_at_work(&mut run);
    drop(answer);
    busy.is_cancelled(run).await;
}

/// The handler is stuck in sending to a client that does not read, and then that client leaves.
async fn while_it_cannot_send(cx: Cx) {
    let busy = Busy::open(cx, Work::Floods).await;
    let mut answer = busy.send().await.expect("an answer");
    assert_eq!(answer.next_message().await.expect("an event")["params"], json!({"n": 1}));
    let mut run = busy.run().await;
    busy.is_at_work(&mut run);
    drop(answer);
    busy.is_cancelled(run).await;
}

/// A minute of nothing but comments, and then the client leaves.
async fn between_keep_alives(cx: Cx) {
    let busy = Busy::open(cx, Work::Waits).await;
    let mut answer = busy.send().await.expect("an answer");
    let mut run = busy.run().await;
    for _ in 0..4 {
        assert!(matches!(answer.frame().await, Some(crate::support::sse::Frame::Comment(_))));
    }
    busy.is_at_work(&mut run);
    drop(answer);
    busy.is_cancelled(run).await;
}

/// Of several requests only the one whose client left is cancelled, over HTTP/2 on the same connection too.
async fn neighbours(cx: Cx) {
    let go = Arc::new(Notify::new());
    let dropped = Arc::new(AtomicUsize::new(0));
    let script = Script::new({
        let (go, dropped) = (Arc::clone(&go), Arc::clone(&dropped));
        move |_, cx: RequestContext| {
            let (go, dropped) = (Arc::clone(&go), Arc::clone(&dropped));
            async move {
                let mut guard = Guard(None, dropped);
                cx.notify("notifications/x", json!({})).await?;
                go.notified().await;
                guard.1 = Arc::default();
                Reply::of(json!({"cancelled": cx.cancel_cause().is_some()}))
            }
        }
    });
    let heard = Heard::default();
    let service = StreamableHttpService::builder(script).observer(heard.clone()).build().expect("a service");
    let client = cx.serve(service).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let mut answer = client.send(call()).await;
        assert!(answer.next_message().await.is_some());
        answers.push(answer);
    }
    drop(answers.remove(1));
    assert_eq!(heard.end().await.1, ExchangeEnd::Cancelled(CancelCause::Disconnected));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    go.notify_waiters();
    for mut answer in answers {
        let response = answer.next_message().await.expect("a response");
        assert_eq!(response["result"]["cancelled"], false);
        assert_eq!(heard.end().await.1, ExchangeEnd::Result);
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// The connection goes, and every exchange on it.
async fn whole_connection(cx: Cx) {
    let busy = Busy::open(cx, Work::Waits).await;
    let other = busy.client.another();
    let asking: Vec<_> = (0..3)
        .map(|_| {
            let client = other.clone();
            tokio::spawn(async move { client.send(call()).await })
        })
        .collect();
    let runs = [busy.run().await, busy.run().await, busy.run().await];
    assert_eq!(busy.service.counts().in_flight, 3);
    drop(other);
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    for run in runs {
        run.dropped.await.expect("the future was dropped");
        assert_eq!(run.token.await, Ok(CancelCause::Disconnected));
    }
    for _ in 0..3 {
        assert_eq!(busy.heard.end().await.1, ExchangeEnd::Cancelled(CancelCause::Disconnected));
    }
    assert_eq!(busy.service.counts().in_flight, 0);
}

/// A client that says it is done, yet goes on reading, reads nothing more: no event, no response, no end of a body.
async fn half_closed(cx: Cx) {
    for work in [Work::Waits, Work::Sends] {
        let busy = Busy::open(cx, work).await;
        let body = String::from_utf8(call().into_bytes()).expect("text");
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: x/y\r\nContent-Length: {}\r\n\r\n{body}",
            body.len(),
        );
        let mut raw = busy.client.raw(request).await;
        let mut run = busy.run().await;
        let before = if work == Work::Sends { raw.until("\"n\":1}}\n\n").await } else { String::new() };
        assert_eq!(before.is_empty(), work == Work::Waits);
        busy.is_at_work(&mut run);
        raw.finish().await;
        busy.is_cancelled(run).await;
        let after = raw.until("never sent").await;
        let rest = after.strip_prefix(&before).expect("what was read before");
        assert_eq!(rest.trim(), "", "nothing more is written");
    }
}

/// Leaving after the answer cancels nothing.
async fn answered(cx: Cx) {
    let heard = Heard::default();
    let (kept, mut contexts) = tokio::sync::mpsc::unbounded_channel();
    let script = Script::new(move |request, cx: RequestContext| {
        let kept = kept.clone();
        async move {
            let params: Value = request.params()?;
            if params["stream"] == true {
                cx.notify("notifications/x", json!({})).await?;
            }
            let _ = kept.send(cx);
            Reply::empty()
        }
    });
    let service = StreamableHttpService::builder(script).observer(heard.clone()).build().expect("a service");
    let client = cx.serve(service).await;
    for stream in [false, true] {
        let mut answer = client.send(Call::modern("x/y", json!({ "stream": stream }))).await;
        while answer.chunk().await.is_some() {}
        drop(answer);
        assert_eq!(heard.end().await.1, ExchangeEnd::Result);
        let context = contexts.recv().await.expect("a context");
        // Something else goes through, so that whatever the server had to do is done.
        client.send(Call::modern("server/discover", json!({}))).await.result().await;
        heard.end().await;
        assert_eq!(context.cancel_cause(), None, "stream: {stream}");
    }
}

/// Over HTTP, an id is known to its own exchange only: another caller may use the same one.
async fn not_by_id(cx: Cx) {
    let (go, entered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let told = Arc::new(AtomicUsize::new(0));
    let script = Script::new({
        let (go, entered) = (Arc::clone(&go), Arc::clone(&entered));
        move |request, cx: RequestContext| {
            let (go, entered) = (Arc::clone(&go), Arc::clone(&entered));
            async move {
                if request.params::<Value>()?["stream"] == true {
                    cx.notify("notifications/x", json!({})).await?;
                }
                entered.notify_one();
                tokio::select! {
                    () = go.notified() => Reply::of(json!({"cancelled": cx.cancel_cause().is_some()})),
                    cause = cx.cancelled() => panic!("cancelled: {cause:?}"),
                }
            }
        }
    })
    .hearing({
        let told = Arc::clone(&told);
        move |notification, _| {
            told.fetch_add(usize::from(notification.method() == "notifications/cancelled"), Ordering::SeqCst);
            async {}
        }
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let mut sent = 0;
    for (stream, id) in [(false, json!(ID)), (true, json!(ID)), (false, json!("a")), (true, json!("a"))] {
        let asking = {
            let (client, id) = (client.clone(), id.clone());
            let call = Call::modern("x/y", json!({ "stream": stream })).id(id);
            tokio::spawn(async move { client.send(call).await })
        };
        entered.notified().await;
        for meta in [json!({}), json!({CLAIM: "2026-07-28", CAPABILITIES: {}})] {
            let params = json!({"requestId": id, "reason": "enough", "_meta": meta});
            let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            let answer = client.send(Call::post(message).header(PROTOCOL_VERSION, "2026-07-28")).await;
            assert_eq!(answer.status, 202);
            sent += 1;
        }
        go.notify_one();
        let answer = timeout(Duration::from_secs(10), asking).await.expect("in time").expect("an answer");
        let response = match stream {
            false => answer.json().await,
            true => answer.events().await.pop().expect("a response"),
        };
        assert_eq!((&response["id"], &response["result"]["cancelled"]), (&id, &json!(false)));
    }
    assert_eq!(told.load(Ordering::SeqCst), sent, "the application may still hear of it");
}
