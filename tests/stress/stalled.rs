//! Streams that nobody reads beside a session that is busy: it needs not one poll and not one moment more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body::Body;
use http_body_util::Full;
use mcp_transport::{ResponseBody, Revision, StreamableHttpService};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::support::{Acts, LEGACY, bare, call, initialize, inside, listen, open, ready, send};

/// Counts how often a future is polled.
struct Polls<F> {
    future: Pin<Box<F>>,
    polls: usize,
}

impl<F: Future> Polls<F> {
    fn of(future: F) -> Self {
        Self { future: Box::pin(future), polls: 0 }
    }
}

impl<F: Future> Future for Polls<F> {
    type Output = (F::Output, usize);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.polls += 1;
        let polls = self.polls;
        self.future.as_mut().poll(cx).map(|output| (output, polls))
    }
}

/// What one call took: polls for its head, polls for its body, bytes, time.
pub type Cost = (usize, usize, usize, Duration);

pub async fn cost(service: &StreamableHttpService, request: Request<Bytes>) -> Cost {
    let since = Instant::now();
    let (answer, head) = Polls::of(service.handle(request.map(Full::new))).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let mut body = answer.into_body();
    let read = async {
        let mut bytes = 0;
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            bytes += frame.unwrap_or_else(|never| match never {}).into_data().expect("data").len();
        }
        bytes
    };
    let (bytes, polls) = Polls::of(read).await;
    (head, polls, bytes, since.elapsed())
}

/// Everything that can be opened and left unread.
async fn stall(service: &StreamableHttpService) -> Vec<ResponseBody> {
    let mut unread = Vec::new();
    for revision in LEGACY {
        let session = open(service, initialize(revision)).await;
        ready(service, revision, &session).await;
        let subscribe = call(revision, "resources/subscribe", json!({"uri": "a"}), 1);
        assert_eq!(send(service, inside(&session, subscribe)).await.status(), StatusCode::OK);
        unread.push(send(service, bare(Method::GET, &session)).await.into_body());
        // Its handler writes until there is no room, and then waits for ever.
        let flood = call(revision, "x/flood", json!({}), 2);
        unread.push(send(service, inside(&session, flood)).await.into_body());
    }
    for id in 0..4 {
        unread.push(send(service, listen(&["a"], id)).await.into_body());
        unread.push(send(service, call(Revision::V2026_07_28, "x/flood", json!({}), id)).await.into_body());
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(service.counts().in_flight, 8, "the handlers that flood are stuck");
    unread
}

async fn busy(revision: Revision, with_stalled: bool) -> Vec<Cost> {
    let service = StreamableHttpService::new(Arc::new(Acts::default()));
    let session = open(&service, initialize(revision)).await;
    ready(&service, revision, &session).await;
    let unread = if with_stalled { stall(&service).await } else { Vec::new() };
    let mut costs = Vec::new();
    for id in 0..100 {
        service.changes().tools_list_changed();
        service.changes().resource_updated("a");
        let method = ["x/quick", "x/later", "x/stream", "x/slow", "ping"][id % 5];
        costs.push(cost(&service, inside(&session, call(revision, method, json!({}), id))).await);
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(unread.len(), if with_stalled { 16 } else { 0 });
    costs
}

#[tokio::test(start_paused = true)]
async fn what_is_stalled_costs_others_nothing() {
    for revision in LEGACY {
        let (alone, beside) = (busy(revision, false).await, busy(revision, true).await);
        assert_eq!(alone, beside, "{revision}");
        let total: usize = alone.iter().map(|(head, body, ..)| head + body).sum();
        assert!(total > 200, "{total} polls: nothing was counted");
    }
}
