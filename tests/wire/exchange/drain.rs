//! The end of a transport: no new work, time for what is in flight, and then an end to that too.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use mcp_transport::{CancelCause, Counts, DrainReport, Limits, StreamableHttpService, drain_all};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::{Ends, Signal, is_drained, is_late, is_reply, limited, messages, observed, reply, tell, told, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client, assert_error};
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("shutdown/drain/refuses", Carriers::Every, new_work_is_refused);
    wire.any("shutdown/drain/idle", Carriers::Every, an_idle_transport_is_drained_at_once);
    wire.any("shutdown/drain/lets-finish", Carriers::Clock, what_is_in_flight_may_finish);
    wire.any("shutdown/drain/cuts", Carriers::Clock, the_rest_is_cut_at_the_deadline);
    wire.any("shutdown/drain/cuts-sockets", Carriers::Sockets, what_is_cut_is_answered);
    wire.any("shutdown/drain/notification", Carriers::Clock, notification_hooks_count_too);
    wire.any("shutdown/drain/twice", Carriers::Clock, every_drain_waits_for_the_same_work);
    wire.any("shutdown/drain/dropped", Carriers::Clock, a_dropped_drain_cuts_nothing);
    wire.any("shutdown/drain/half-a-body", Carriers::Every, a_request_not_read_yet_is_new_work);
    wire.any("shutdown/drain/not-polled", Carriers::Clock, a_connection_that_sleeps_does_not_hold_it_up);
    wire.any("shutdown/drain/for-ever", Carriers::Clock, any_time_will_do);
    wire.any("shutdown/drain/all", Carriers::Clock, several_at_once);
    wire.any("shutdown/drain/left-already", Carriers::Clock, clients_that_leave_are_not_cut);
}

/// Works for `params.seconds`, after a message if it is to stream.
fn working(entered: &Signal, ends: &Ends) -> Script {
    let (entered, ends) = (entered.clone(), ends.clone());
    Script::new(move |request, cx| {
        let (entered, ends) = (entered.clone(), ends.clone());
        async move {
            let _guard = ends.guard(&cx);
            let params: Value = request.params()?;
            if params["streams"] == true {
                tell(&cx, 1).await;
            }
            entered.give();
            match params["seconds"].as_u64() {
                Some(seconds) => sleep(Duration::from_secs(seconds)).await,
                None => pending().await,
            }
            reply(2)
        }
    })
}

fn for_seconds(cx: Cx, seconds: Option<u64>, streams: bool) -> Call {
    let mut call = work(cx);
    call.set("/params/seconds", seconds);
    call.set("/params/streams", streams);
    call
}

/// Sends a request from a task of its own, and returns once its handler is at work.
async fn ask(client: &Client, call: Call, entered: &Signal) -> JoinHandle<Answer> {
    let client = client.clone();
    let asking = tokio::spawn(async move { client.send(call).await });
    entered.taken().await;
    asking
}

async fn assert_turned_away(answer: Answer) {
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.header(RETRY_AFTER.as_str()).parse::<u32>().is_ok_and(|seconds| seconds > 0));
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "application/json");
    assert!(!answer.headers.contains_key(ALLOW));
    assert_error(answer.json().await, -32603, None);
}

async fn new_work_is_refused(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let (service, heard) = observed(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let mut open = ask(&client, for_seconds(cx, None, true), &entered).await.await.expect("a head");
    assert_eq!(open.next_message().await, Some(told(1)));
    let draining = tokio::spawn({
        let service = service.clone();
        async move { service.drain(Duration::from_secs(3600)).await }
    });
    // The drain has begun once its task was polled.
    while client.send(Call::get()).await.status != StatusCode::SERVICE_UNAVAILABLE {
        tokio::task::yield_now().await;
    }
    let hears = Call::of(cx.revision, "notifications/x", json!({})).notification();
    for call in [work(cx), hears, Call::get(), Call::bare(Method::DELETE), Call::bare(Method::PUT), work(cx).raw("{")] {
        assert_turned_away(client.send(call).await).await;
    }
    assert_eq!(entered.count(), 0, "no handler ran");
    assert!(heard.of("refused").iter().filter(|kind| *kind == "Draining").count() >= 6);
    assert_eq!(service.counts().in_flight, 1, "what is in flight goes on");
    assert_eq!(ends.dropped.count(), 0);
    drop(open);
    assert_eq!(ends.next().await, Some(CancelCause::Disconnected));
    let report = draining.await.expect("a report");
    assert_eq!((report.in_flight, report.cut), (1, 0));
    assert_turned_away(client.send(work(cx)).await).await;
}

async fn an_idle_transport_is_drained_at_once(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    assert!(is_reply(&client.send(for_seconds(cx, Some(0), false)).await.json().await, 2));
    let report = service.drain(Duration::from_secs(3600)).now_or_never().expect("at once");
    assert_eq!(report, DrainReport::default());
    assert_turned_away(client.send(work(cx)).await).await;
    // And again, with no time at all.
    assert_eq!(service.drain(Duration::ZERO).now_or_never(), Some(DrainReport::default()));
}

async fn what_is_in_flight_may_finish(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let quiet = ask(&client, for_seconds(cx, Some(3), false), &entered).await;
    let streaming = ask(&client, for_seconds(cx, Some(5), true), &entered).await;
    // A drain also waits for what has been answered to be read.
    let reading = tokio::spawn(async move { messages(streaming.await.expect("an answer")).await });
    let start = Instant::now();
    let report = service.drain(Duration::from_secs(30)).await;
    assert_eq!((report.in_flight, report.cut), (2, 0));
    let elapsed = start.elapsed().as_secs_f64();
    assert!((5.0..5.1).contains(&elapsed), "as soon as all is done: {elapsed} s");
    assert!(is_reply(&quiet.await.expect("an answer").json().await, 2));
    let (sent, response) = reading.await.expect("no panic");
    assert_eq!(sent, [told(1)]);
    assert!(is_reply(&response, 2));
    assert_eq!((ends.next().await, ends.next().await), (None, None));
}

async fn the_rest_is_cut_at_the_deadline(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let (service, heard) = observed(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let just_in_time = ask(&client, for_seconds(cx, Some(9), false), &entered).await;
    let quiet = ask(&client, for_seconds(cx, None, false), &entered).await;
    let only_json = for_seconds(cx, None, true).header("accept", "application/json");
    let only_json = ask(&client, only_json, &entered).await;
    let streaming = ask(&client, for_seconds(cx, None, true), &entered).await;
    let start = Instant::now();
    let report = service.drain(Duration::from_secs(10)).await;
    assert_eq!((report.in_flight, report.cut), (4, 3));
    let elapsed = start.elapsed().as_secs_f64();
    assert!((10.0..10.1).contains(&elapsed), "{elapsed} s");
    assert!(is_reply(&just_in_time.await.expect("an answer").json().await, 2));
    for cut in [quiet, only_json] {
        let answer = cut.await.expect("an answer");
        assert_eq!(answer.status, StatusCode::OK);
        assert!(is_drained(&answer.json().await));
    }
    let (sent, response) = messages(streaming.await.expect("an answer")).await;
    assert_eq!(sent, [told(1)]);
    assert!(is_drained(&response));
    let causes = [ends.next().await, ends.next().await, ends.next().await, ends.next().await];
    assert_eq!(causes, [None, Some(CancelCause::Drained), Some(CancelCause::Drained), Some(CancelCause::Drained)]);
    assert_eq!(heard.of("ended")[1..], ["Cancelled(Drained)", "Cancelled(Drained)", "Cancelled(Drained)"]);
    assert_eq!(service.counts().in_flight, 0);
}

async fn what_is_cut_is_answered(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let quiet = ask(&client, for_seconds(cx, None, false), &entered).await;
    let streaming = ask(&client, for_seconds(cx, None, true), &entered).await;
    let report = service.drain(Duration::ZERO).await;
    assert_eq!((report.in_flight, report.cut), (2, 2));
    assert!(is_drained(&quiet.await.expect("an answer").json().await));
    let (sent, response) = messages(streaming.await.expect("an answer")).await;
    assert_eq!(sent, [told(1)]);
    assert!(is_drained(&response));
}

/// Hears one notification for `seconds`.
fn hearing(seconds: Option<u64>, ends: &Ends) -> Script {
    let ends = ends.clone();
    Script::new(|_, _| async { reply(1) }).hearing(move |_, cx| {
        let ends = ends.clone();
        async move {
            let _guard = ends.guard(&cx);
            match seconds {
                Some(seconds) => sleep(Duration::from_secs(seconds)).await,
                None => pending().await,
            }
        }
    })
}

async fn notification_hooks_count_too(cx: Cx) {
    for (seconds, took, cut) in [(Some(3), 3.0, 0), (None, 10.0, 1)] {
        let ends = Ends::new();
        let service = limited(hearing(seconds, &ends), Limits::default());
        let client = cx.serve(service.clone()).await;
        let hears = Call::of(cx.revision, "notifications/x", json!({})).notification();
        assert_eq!(client.send(hears).await.status, StatusCode::ACCEPTED);
        assert_eq!(service.counts().in_flight, 1);
        let start = Instant::now();
        let report = service.drain(Duration::from_secs(10)).await;
        assert_eq!((report.in_flight, report.cut), (1, cut));
        let elapsed = start.elapsed().as_secs_f64();
        assert!((took..took + 0.1).contains(&elapsed), "{elapsed} s");
        assert_eq!(ends.next().await, (cut == 1).then_some(CancelCause::Drained));
        assert_eq!(service.counts(), Counts::default());
    }
}

async fn every_drain_waits_for_the_same_work(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let cut = ask(&client, for_seconds(cx, None, false), &entered).await;
    let start = Instant::now();
    let drain = |seconds| {
        let service = service.clone();
        async move { (service.drain(Duration::from_secs(seconds)).await, start.elapsed().as_secs_f64()) }
    };
    // The shorter one cuts for both, and both say so.
    let (long, short) = tokio::join!(drain(60), drain(5));
    for (report, elapsed) in [long, short] {
        assert_eq!((report.in_flight, report.cut), (1, 1));
        assert!((5.0..5.1).contains(&elapsed), "{elapsed} s");
    }
    assert!(is_drained(&cut.await.expect("an answer").json().await));
    assert_eq!(service.drain(Duration::from_secs(5)).now_or_never(), Some(DrainReport::default()));
}

async fn a_dropped_drain_cuts_nothing(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let quiet = ask(&client, for_seconds(cx, Some(10), false), &entered).await;
    let streaming = ask(&client, for_seconds(cx, Some(60), true), &entered).await;
    let given_up = tokio::time::timeout(Duration::from_secs(1), service.drain(Duration::from_secs(2))).await;
    assert!(given_up.is_err());
    assert_turned_away(client.send(work(cx)).await).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!((service.counts().in_flight, ends.dropped.count()), (2, 0));
    // A drain that is only made and never polled does nothing.
    drop(service.drain(Duration::ZERO));
    assert!(is_reply(&quiet.await.expect("an answer").json().await, 2));
    let report = service.drain(Duration::from_secs(1)).await;
    assert_eq!((report.in_flight, report.cut), (1, 1));
    assert!(is_drained(&messages(streaming.await.expect("an answer")).await.1));
}

/// Its head was taken before the drain began, its body came later: no handler of it has run yet.
async fn a_request_not_read_yet_is_new_work(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let (pieces, mut body) = mpsc::unbounded_channel::<Bytes>();
    let read = Signal::new();
    let body = StreamBody::new(futures::stream::poll_fn({
        let read = read.clone();
        move |cx| {
            read.give();
            body.poll_recv(cx).map(|piece| piece.map(|piece| Ok::<_, Infallible>(Frame::data(piece))))
        }
    }));
    let call = for_seconds(cx, Some(0), false);
    let mut head = Call::bare(Method::POST);
    head.headers = call.headers.clone();
    let bytes = Bytes::from(call.into_bytes());
    pieces.send(bytes.slice(..5)).expect("a reader");
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.send_body(head.with_body(body)).await }
    });
    read.taken().await;
    read.taken().await;
    // The server has the head once it has answered another request that came after it, over the same connection or not.
    client.send(Call::get()).await;
    sleep(Duration::from_millis(50)).await;
    assert_eq!(service.drain(Duration::from_secs(5)).await, DrainReport::default());
    pieces.send(bytes.slice(5..)).expect("a reader");
    drop(pieces);
    assert_turned_away(asking.await.expect("an answer")).await;
    assert_eq!(entered.count(), 0, "no handler ran");
}

async fn a_connection_that_sleeps_does_not_hold_it_up(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    // Polled until the handler is at work, and not again.
    let mut asleep = Box::pin(client.send(for_seconds(cx, None, false)));
    assert!(asleep.as_mut().now_or_never().is_none());
    entered.taken().await;
    let start = Instant::now();
    let report = service.drain(Duration::from_secs(5)).await;
    assert_eq!((report.in_flight, report.cut), (1, 1));
    let elapsed = start.elapsed().as_secs_f64();
    assert!((5.0..6.1).contains(&elapsed), "{elapsed} s");
    // It wakes up to an answer.
    assert!(is_drained(&asleep.await.json().await));
    assert_eq!(ends.next().await, Some(CancelCause::Drained));
}

async fn any_time_will_do(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let service = limited(working(&entered, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let quiet = ask(&client, for_seconds(cx, Some(86_400), false).header("accept", "application/json"), &entered).await;
    let report = service.drain(Duration::MAX).await;
    assert_eq!((report.in_flight, report.cut), (1, 0));
    assert!(is_reply(&quiet.await.expect("an answer").json().await, 2));
}

async fn several_at_once(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let services: Vec<StreamableHttpService> =
        (0..3).map(|_| limited(working(&entered, &ends), Limits::default())).collect();
    let mut asked = Vec::new();
    for (service, seconds) in services.iter().zip([Some(1), None, None]) {
        let client = cx.serve(service.clone()).await;
        asked.push(ask(&client, for_seconds(cx, seconds, false), &entered).await);
    }
    let start = Instant::now();
    let transports: Vec<&dyn mcp_transport::Transport> =
        services.iter().map(|service| service as &dyn mcp_transport::Transport).collect();
    let reports = drain_all(&transports, Duration::from_secs(5)).await;
    assert_eq!(
        reports.iter().map(|report| (report.in_flight, report.cut)).collect::<Vec<_>>(),
        [(1, 0), (1, 1), (1, 1)]
    );
    assert!(start.elapsed() < Duration::from_millis(5_100), "side by side");
    assert!(is_reply(&asked.remove(0).await.expect("an answer").json().await, 2));
}

/// A client that left, and one whose time is up, were not cut by the drain.
async fn clients_that_leave_are_not_cut(cx: Cx) {
    let (entered, ends) = (Signal::new(), Ends::new());
    let limits = Limits::default().handler_time(Duration::from_secs(3));
    let service = limited(working(&entered, &ends), limits);
    let client = cx.serve(service.clone()).await;
    let leaves = ask(&client, for_seconds(cx, None, false), &entered).await;
    let late = ask(&client, for_seconds(cx, None, true), &entered).await;
    let mut draining = Box::pin(service.drain(Duration::from_secs(10)));
    assert!((&mut draining).now_or_never().is_none());
    leaves.abort();
    assert_eq!(ends.next().await, Some(CancelCause::Disconnected));
    let report = draining.await;
    assert_eq!((report.in_flight, report.cut), (2, 0));
    assert_eq!(ends.next().await, Some(CancelCause::Deadline));
    assert!(is_late(&messages(late.await.expect("an answer")).await.1));
}
