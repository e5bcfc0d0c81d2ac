//! How a subscription stays alive, and how it ends: by the server, by its client, by a fault.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{
    CancelCause, Exchange, ExchangeEnd, Limits, Observer, RequestContext, ServerInfoStamp, StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout};

use super::{SUBSCRIPTION_ID, Site, TOOLS, all, all_tagged, ended, listen, script, tagged, until};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::request::{Call, ID};
use crate::support::sse::Frame;

pub fn register(wire: &mut Wire) {
    wire.modern("listen/alive", Carriers::Clock, alive);
    wire.modern("listen/end", Carriers::Every, end_by_drain);
    wire.modern("listen/end/unread", Carriers::Every, what_is_unread_comes_first);
    wire.modern("listen/end/stamp", Carriers::Every, end_without_server_info);
    wire.modern("listen/end/deciding", Carriers::Every, drained_while_the_hook_decides);
    wire.modern("listen/end/late", Carriers::Clock, drained_while_the_hook_never_decides);
    wire.modern("listen/end/deadline", Carriers::Clock, the_hook_takes_too_long);
    wire.modern("listen/end/panic", Carriers::Every, the_hook_panics);
    wire.modern("listen/cancel", Carriers::Every, the_client_closes);
    wire.modern("listen/cancel/connection", Carriers::Sockets, the_connection_goes);
    wire.modern("listen/cancel/deciding", Carriers::Every, the_client_leaves_before_the_grant);
    wire.modern("listen/cancel/not-by-id", Carriers::Every, not_by_id);
}

/// Comments come while there is nothing to say, however long that is, and a message puts the next one off.
async fn alive(cx: Cx) {
    for seconds in [15, 2] {
        let interval = Duration::from_secs(seconds);
        let limits = if seconds == 15 { Limits::default() } else { Limits::default().keep_alive(interval) };
        let site = Site::built(cx, script(), |builder| builder.limits(limits)).await;
        let (mut stream, _) = site.listen(listen(all(&["a"]))).await;
        for round in 0..20 {
            let mut since = Instant::now();
            if round % 5 == 4 {
                // Read all the while, so that the next comment is already being waited for.
                assert!(timeout(interval / 2, stream.frame()).await.is_err(), "too early");
                site.changes.tools_list_changed();
                assert_eq!(stream.next_message().await, Some(tagged(ID, TOOLS, json!({}))));
                since = Instant::now();
            }
            assert!(matches!(stream.frame().await, Some(Frame::Comment(_))));
            let silence = since.elapsed();
            assert!(silence >= interval.mul_f64(0.89) && silence <= interval.mul_f64(1.11), "{silence:?}");
        }
        assert_eq!(site.end(stream).await, [ended(ID)] as [Value; 1]);
    }
}

async fn end_by_drain(cx: Cx) {
    let site = Site::open(cx).await;
    let (mut one, _) = site.listen(listen(all(&["a"])).id("one")).await;
    let (mut two, _) = site.listen(listen(json!({})).id(2)).await;
    let service = site.service.clone();
    let drain = tokio::spawn(async move { service.drain(Duration::from_secs(15)).await });
    assert_eq!(one.next_message().await, Some(ended("one")));
    assert_eq!(one.frame().await, None);
    site.publish_all(&["a"]);
    assert_eq!(two.next_message().await, Some(ended(2)));
    assert_eq!(two.frame().await, None);
    drop((one, two));
    let started = Instant::now();
    let report = drain.await.expect("a report");
    assert_eq!((report.in_flight, report.cut), (0, 0), "a listener is no work");
    assert!(started.elapsed() < Duration::from_secs(5), "nobody is waited for who has read all");
    assert_eq!(site.service.counts().streams, 0);
    let answer = site.client.send(listen(json!({}))).await;
    assert_eq!(answer.header("retry-after"), "5");
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
}

async fn what_is_unread_comes_first(cx: Cx) {
    let site = Site::open(cx).await;
    let stream = site.client.send(listen(all(&["a"]))).await;
    site.publish_all(&["a"]);
    let mut messages = site.end(stream).await;
    let first = messages.remove(0);
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(messages.pop(), Some(ended(ID)));
    assert_eq!(messages, all_tagged(&["a"]));
}

async fn end_without_server_info(cx: Cx) {
    let site = Site::built(cx, script(), |builder| builder.server_info_stamp(ServerInfoStamp::Never)).await;
    let (stream, _) = site.listen(listen(json!({}))).await;
    let result = json!({"resultType": "complete", "_meta": { SUBSCRIPTION_ID: ID }});
    assert_eq!(site.end(stream).await, [json!({"jsonrpc": "2.0", "id": ID, "result": result})]);
}

/// What is known of a decision that the test holds back.
struct Held {
    site: Site,
    entered: Arc<Notify>,
    go: Arc<Notify>,
    /// The decision's future is dropped.
    dropped: oneshot::Receiver<()>,
    /// What a task of the hook's heard of it.
    cancelled: oneshot::Receiver<CancelCause>,
    told: Told,
}

impl Held {
    async fn open(cx: Cx, limits: Limits) -> Self {
        let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let ((gone, dropped), (cause, cancelled)) = (oneshot::channel::<()>(), oneshot::channel());
        let ends = Mutex::new(Some((gone, cause)));
        let script = script().deciding({
            let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
            move |_, cx: RequestContext| {
                let (gone, cause) = ends.lock().expect("nobody panicked").take().expect("asked once");
                let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
                tokio::spawn(async move {
                    let _ = cause.send(cx.cancelled().await);
                });
                async move {
                    let _gone = Gone(Some(gone));
                    entered.notify_one();
                    go.notified().await;
                    Ok(())
                }
            }
        });
        let told = Told::default();
        let site = Site::built(cx, script, |builder| builder.limits(limits).observer(told.clone())).await;
        Self { site, entered, go, dropped, cancelled, told }
    }

    /// Asks, and returns once the handler is deciding.
    async fn ask(&self) -> tokio::task::JoinHandle<Answer> {
        let client = self.site.client.clone();
        let asking = tokio::spawn(async move { client.send(listen(all(&["a"]))).await });
        self.entered.notified().await;
        asking
    }
}

/// Tells when it is dropped.
struct Gone(Option<oneshot::Sender<()>>);

impl Drop for Gone {
    fn drop(&mut self) {
        if let Some(gone) = self.0.take() {
            let _ = gone.send(());
        }
    }
}

/// What the application hears.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<(Vec<String>, Vec<ExchangeEnd>)>>);

impl Told {
    fn panics(&self) -> Vec<String> {
        self.0.lock().expect("nobody panicked").0.clone()
    }

    fn ends(&self) -> Vec<ExchangeEnd> {
        self.0.lock().expect("nobody panicked").1.clone()
    }
}

impl Observer for Told {
    fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
        assert_eq!(exchange.method(), "subscriptions/listen");
        self.0.lock().expect("nobody panicked").0.push(message.to_owned());
    }

    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        assert_eq!(exchange.method(), "subscriptions/listen");
        self.0.lock().expect("nobody panicked").1.push(end);
    }
}

/// A listener that was let in before the drain is granted what it asks for, and ended.
async fn drained_while_the_hook_decides(cx: Cx) {
    let held = Held::open(cx, Limits::default()).await;
    let asking = held.ask().await;
    held.site.publish_all(&["a"]);
    let drain = {
        let service = held.site.service.clone();
        tokio::spawn(async move { service.drain(Duration::from_secs(10)).await })
    };
    let refused = async |service: &StreamableHttpService| {
        let answer = service.handle(http::Request::from(listen(json!({})))).await;
        answer.status() == StatusCode::SERVICE_UNAVAILABLE
    };
    while !refused(&held.site.service).await {
        tokio::task::yield_now().await;
    }
    held.go.notify_one();
    let mut messages = asking.await.expect("a stream").events().await;
    let report = drain.await.expect("a report");
    assert_eq!((report.in_flight, report.cut), (1, 0));
    assert_eq!(messages.remove(0)["params"]["notifications"], all(&["a"]));
    assert_eq!(messages.pop(), Some(ended(ID)));
    assert_eq!(messages, all_tagged(&["a"]));
}

async fn drained_while_the_hook_never_decides(cx: Cx) {
    let held = Held::open(cx, Limits::default()).await;
    let asking = held.ask().await;
    let report = held.site.service.drain(Duration::from_secs(10)).await;
    assert_eq!((report.in_flight, report.cut), (1, 1));
    asking.await.expect("an answer").error(StatusCode::OK, -32603, Some(&ID.into())).await;
    assert_eq!(held.cancelled.await, Ok(CancelCause::Drained));
    held.dropped.await.expect("the decision was dropped");
    assert_eq!(held.told.ends(), [ExchangeEnd::Cancelled(CancelCause::Drained)]);
    assert_eq!(held.site.service.counts().streams, 0);
}

/// The time of a handler is the time of a decision too.
async fn the_hook_takes_too_long(cx: Cx) {
    for accept in ["application/json, text/event-stream", "text/event-stream"] {
        let limits = Limits::default().listeners(1).handler_time(Duration::from_secs(40));
        let held = Held::open(cx, limits).await;
        let started = Instant::now();
        let answer = held.site.client.send(listen(all(&["a"])).header("accept", accept)).await;
        assert_eq!(started.elapsed().as_secs(), 40);
        let error = if accept == "text/event-stream" {
            assert_eq!(answer.status, StatusCode::OK);
            let mut events = answer.events().await;
            assert_eq!(events.len(), 1, "{events:?}");
            events.remove(0)
        } else {
            answer.json().await
        };
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(ID), &json!(-32603)));
        assert_eq!(held.cancelled.await, Ok(CancelCause::Deadline));
        held.dropped.await.expect("the decision was dropped");
        assert_eq!(held.told.ends(), [ExchangeEnd::Cancelled(CancelCause::Deadline)]);
        // A granted one has all the time in the world, and the place is free.
        let (mut stream, _) = held.site.listen(listen(json!({}))).await;
        let quiet = timeout(Duration::from_secs(200), stream.next_message()).await;
        assert!(quiet.is_err(), "{quiet:?}");
    }
}

/// A panic is the request's own, and reported.
async fn the_hook_panics(cx: Cx) {
    let script = script().deciding(|uri, _| {
        assert_ne!(uri, "at once", "a panic before there is a future");
        async move {
            tokio::task::yield_now().await;
            assert_ne!(uri, "later", "a panic later");
            Ok(())
        }
    });
    let told = Told::default();
    let build = |builder: mcp_transport::StreamableHttpBuilder| {
        builder.observer(told.clone()).limits(Limits::default().listeners(2))
    };
    let site = Site::built(cx, script, build).await;
    let (mut stream, _) = site.listen(listen(all(&["a"]))).await;
    for uri in ["at once", "later", "at once", "later"] {
        let answer = site.client.send(listen(all(&["a", uri, "b"]))).await;
        let error = answer.error(StatusCode::OK, -32603, Some(&ID.into())).await;
        assert_eq!(error["message"], "Internal error");
        assert!(told.panics().last().expect("a report").contains("panic"));
    }
    let answer = site.client.send(listen(all(&["later"])).header("accept", "text/event-stream")).await;
    let events = answer.events().await;
    assert_eq!((events.len(), &events[0]["error"]["code"]), (1, &json!(-32603)), "{events:?}");
    assert_eq!(told.panics().len(), 5);
    site.streams(1).await;
    site.changes.tools_list_changed();
    assert_eq!(stream.next_message().await, Some(tagged(ID, TOOLS, json!({}))));
    // The places of those that failed are free.
    let (_, granted) = site.listen(listen(all(&["a"]))).await;
    assert_eq!(granted, all(&["a"]));
}

async fn the_client_closes(cx: Cx) {
    let limits = Limits::default().listeners(2);
    let site = Site::built(cx, script(), |builder| builder.limits(limits)).await;
    let (mut stays, _) = site.listen(listen(all(&["a"]))).await;
    for read in 0..5 {
        let (mut leaves, _) = site.listen(listen(all(&["a"]))).await;
        site.publish_all(&["a"]);
        for message in all_tagged(&["a"]).into_iter().take(read) {
            assert_eq!(leaves.next_message().await, Some(message));
        }
        drop(leaves);
        site.streams(1).await;
        site.publish_all(&["a"]);
        for message in all_tagged(&["a"]) {
            assert_eq!(stays.next_message().await, Some(message));
        }
        while let Ok(Some(_)) = timeout(Duration::from_millis(5), stays.next_message()).await {}
    }
    // One that was never read at all, not even its acknowledgement.
    let never_read = site.client.send(listen(all(&["a"]))).await;
    assert_eq!(never_read.status, StatusCode::OK);
    drop(never_read);
    site.streams(1).await;
    assert_eq!(site.end(stays).await, [ended(ID)] as [Value; 1]);
}

/// The connection goes, and every subscription on it.
async fn the_connection_goes(cx: Cx) {
    let site = Site::open(cx).await;
    let other = site.client.another();
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(other.send(listen(all(&["a"]))).await);
    }
    site.streams(5).await;
    drop((streams, other));
    site.streams(0).await;
    site.publish_all(&["a"]);
}

async fn the_client_leaves_before_the_grant(cx: Cx) {
    let held = Held::open(cx, Limits::default().listeners(1)).await;
    let asking = held.ask().await;
    asking.abort();
    held.dropped.await.expect("the decision was dropped");
    assert_eq!(held.cancelled.await, Ok(CancelCause::Disconnected));
    until(|| held.site.service.counts().in_flight == 0).await;
    assert_eq!(held.told.ends(), [ExchangeEnd::Cancelled(CancelCause::Disconnected)]);
    assert_eq!(held.site.service.counts().streams, 0);
    // The place is free.
    let (stream, _) = held.site.listen(listen(json!({}))).await;
    assert_eq!(held.site.end(stream).await, [ended(ID)] as [Value; 1]);
}

/// `notifications/cancelled` ends nothing over HTTP: another client may use the same id.
async fn not_by_id(cx: Cx) {
    let site = Site::open(cx).await;
    let (stream, _) = site.listen(listen(all(&["a"]))).await;
    let call = Call::modern("notifications/cancelled", json!({ "requestId": ID })).notification();
    assert_eq!(site.client.send(call).await.status, StatusCode::ACCEPTED);
    site.publish_all(&["a"]);
    let mut messages = all_tagged(&["a"]);
    messages.push(ended(ID));
    assert_eq!(site.end(stream).await, messages);
}
