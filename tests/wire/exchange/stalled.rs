//! A client that stops reading.

use std::time::Duration;

use mcp_transport::{CancelCause, Limits};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::{Ends, METHOD, Signal, all_quiet, is_drained, is_late, is_reply, limited, messages, reply, told, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;

pub fn register(wire: &mut Wire) {
    wire.any("answer/stalled-reader", Carriers::Sockets, writes_feel_back_pressure);
    wire.any("answer/stalled-reader/deadline", Carriers::Clock, the_deadline_reaches_the_handler);
    wire.any("answer/stalled-reader/drain", Carriers::Clock, a_drain_reaches_the_handler);
    wire.any("answer/stalled-reader/resumes", Carriers::Clock, the_handler_goes_on_once_it_is_read);
    wire.any("answer/stalled-reader/clock-runs", Carriers::Clock, the_handler_goes_on_while_there_is_room);
    wire.any("answer/stalled-reader/leaves", Carriers::Sockets, leaving_ends_the_wait);
}

/// Far more than the buffers of two sockets and an HTTP library hold.
const PIECES: usize = 1000;

/// Sends large pieces until it has to wait for a client that does not read, tells so, and answers with how many went.
fn pouring(waits: &Signal, ends: &Ends) -> Script {
    let (waits, ends) = (waits.clone(), ends.clone());
    Script::new(move |_, cx| {
        let (waits, ends) = (waits.clone(), ends.clone());
        async move {
            let _guard = ends.guard(&cx);
            let piece = "x".repeat(100_000);
            for n in 0..PIECES {
                let mut sent = std::pin::pin!(cx.notify(METHOD, json!({"n": n, "piece": piece})));
                if timeout(Duration::from_millis(100), sent.as_mut()).await.is_err() {
                    waits.give();
                    sent.await?;
                    return reply(n + 1);
                }
            }
            reply(PIECES)
        }
    })
}

async fn writes_feel_back_pressure(cx: Cx) {
    let waits = Signal::new();
    let client = cx.serve(limited(pouring(&waits, &Ends::new()), Limits::default())).await;
    let answer = client.send(work(cx)).await;
    // Without back-pressure all would fit in, and this would wait for ever.
    waits.taken().await;
    let (sent, response) = messages(answer).await;
    let numbers: Vec<_> = sent.iter().map(|message| message["params"]["n"].as_u64()).collect();
    assert_eq!(numbers, (0..sent.len() as u64).map(Some).collect::<Vec<_>>());
    assert!(is_reply(&response, sent.len()));
}

async fn leaving_ends_the_wait(cx: Cx) {
    let (waits, ends) = (Signal::new(), Ends::new());
    let service = limited(pouring(&waits, &ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let answer = client.send(work(cx)).await;
    waits.taken().await;
    drop(answer);
    assert_eq!(ends.next().await, Some(CancelCause::Disconnected));
    all_quiet(&service).await;
}

/// Sends one message more than the queue holds, and hangs there.
fn hanging(ends: &Ends) -> Script {
    let ends = ends.clone();
    Script::new(move |_, cx| {
        let ends = ends.clone();
        async move {
            let _guard = ends.guard(&cx);
            for n in 0..=256 {
                super::tell(&cx, n).await;
            }
            reply(1)
        }
    })
}

async fn the_deadline_reaches_the_handler(cx: Cx) {
    let ends = Ends::new();
    let service = limited(hanging(&ends), Limits::default().handler_time(Duration::from_secs(5)));
    let client = cx.serve(service.clone()).await;
    let start = Instant::now();
    let answer = client.send(work(cx)).await;
    assert_eq!(ends.next().await, Some(CancelCause::Deadline));
    let elapsed = start.elapsed().as_secs_f64();
    assert!((5.0..5.01).contains(&elapsed), "cut after {elapsed} s");
    assert_eq!(service.counts().in_flight, 0);
    // What fitted is still there to be read, and then the end.
    let (sent, response) = messages(answer).await;
    assert_eq!(sent, (0..256).map(told).collect::<Vec<_>>());
    assert!(is_late(&response), "{response}");
}

async fn a_drain_reaches_the_handler(cx: Cx) {
    let ends = Ends::new();
    let service = limited(hanging(&ends), Limits::default());
    let client = cx.serve(service.clone()).await;
    let answer = client.send(work(cx)).await;
    let start = Instant::now();
    let report = service.drain(Duration::from_secs(5)).await;
    assert_eq!((report.in_flight, report.cut), (1, 1));
    let elapsed = start.elapsed().as_secs_f64();
    assert!((5.0..5.01).contains(&elapsed), "drained after {elapsed} s");
    assert_eq!(ends.next().await, Some(CancelCause::Drained));
    let (sent, response) = messages(answer).await;
    assert_eq!(sent.len(), 256);
    assert!(is_drained(&response), "{response}");
}

async fn the_handler_goes_on_once_it_is_read(cx: Cx) {
    let ends = Ends::new();
    let client = cx.serve(limited(hanging(&ends), Limits::default())).await;
    let mut answer = client.send(work(cx)).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(ends.dropped.count(), 0, "the queue holds 256 messages, not one more");
    assert_eq!(answer.next_message().await, Some(told(0)));
    assert_eq!(ends.next().await, None);
    let (sent, response) = messages(answer).await;
    assert_eq!(sent, (1..=256).map(told).collect::<Vec<_>>());
    assert!(is_reply(&response, 1));
}

async fn the_handler_goes_on_while_there_is_room(cx: Cx) {
    let through = Signal::new();
    let script = Script::new({
        let through = through.clone();
        move |_, cx| {
            let through = through.clone();
            async move {
                for n in 0..10 {
                    super::tell(&cx, n).await;
                    sleep(Duration::from_secs(1)).await;
                }
                through.give();
                reply(10)
            }
        }
    });
    let client = cx.serve(limited(script, Limits::default())).await;
    let start = Instant::now();
    let answer = client.send(work(cx)).await;
    through.taken().await;
    assert!(start.elapsed() < Duration::from_secs(11));
    let (sent, response) = messages(answer).await;
    assert_eq!(sent, (0..10).map(told).collect::<Vec<_>>());
    assert!(is_reply(&response, 10));
}
