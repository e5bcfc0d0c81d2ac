//! Streams that nobody reads are given up.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use mcp_transport::{CancelCause, Capabilities, Limits, StreamableHttpService};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::{filling, serves};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::request::Call;
use crate::support::session::{self, Session};
use crate::support::sse::Frame;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("limit/each/unread-time", Carriers::Clock, answers);
    wire.legacy_part_of_any("limit/each/unread-time-of-gets", Carriers::Clock, gets);
    wire.modern_part_of_any("limit/each/unread-time-of-listeners", Carriers::Clock, listeners);
    wire.any("limit/each/unread-time-frees", Carriers::Clock, frees);
}

fn serving(stage: &Stage, limits: Limits) -> StreamableHttpService {
    let capabilities = Capabilities::new().tools_list_changed();
    let builder = StreamableHttpService::builder(stage.script().declaring(capabilities));
    builder.limits(limits).build().expect("a service")
}

const TIME: Duration = Duration::from_secs(5 * 60);

/// Reads comments for this long.
async fn read_for(stream: &mut Answer, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        assert!(matches!(stream.frame().await, Some(Frame::Comment(_))));
    }
}

async fn held(cx: Cx, client: &Client, name: &str) -> (Option<Session>, Answer) {
    let session = if cx.modern() { None } else { Some(session::open(client, cx.revision).await) };
    let params = json!({"name": name, "tell": 1});
    let call = match &session {
        Some(session) => session.call("x/hold", params),
        None => Call::of(cx.revision, "x/hold", params),
    };
    let mut stream = client.send(call).await;
    stream.next_message().await.expect("an event");
    (session, stream)
}

/// Not a moment before its time, and not much after it: the request is cancelled, or in a session goes on.
async fn answers(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default());
    let client = cx.serve(service.clone()).await;
    let (_read_in, mut read) = held(cx, &client, "read").await;
    let (session, unread) = held(cx, &client, "unread").await;
    let loose = client.send(Call::of(cx.revision, "x/hold", json!({"name": "loose", "tell": 1}))).await;
    read_for(&mut read, TIME).await;
    assert_eq!(service.counts().streams, 3);
    read_for(&mut read, TIME / 4 + Duration::from_secs(20)).await;
    assert_eq!(service.counts().streams, 1, "the one that is read");
    assert_eq!(stage.dropped("loose").await, Some(CancelCause::Unread));
    match &session {
        Some(_) => assert!(stage.is_in("unread"), "what is done in a session is the session's"),
        None => assert_eq!(stage.dropped("unread").await, Some(CancelCause::Unread)),
    }
    stage.release("unread");
    // Whoever comes to read at last is told no more.
    assert!(unread.events().await.is_empty() && loose.events().await.is_empty());
    read_for(&mut read, 12 * TIME).await;
    stage.release("read");
    assert_eq!(read.events().await.len(), 1);
    assert_eq!(service.counts().streams, 0);
}

/// As if the connection had broken: another GET takes its place.
async fn gets(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().listeners(1).session_idle(4 * TIME));
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    let unread = session.listen().await;
    service.changes().tools_list_changed();
    sleep(TIME).await;
    assert_eq!(service.counts().streams, 1);
    sleep(TIME / 4 + Duration::from_secs(1)).await;
    assert_eq!(service.counts().streams, 0);
    let mut again = session.listen().await;
    assert!(unread.events().await.is_empty());
    service.changes().tools_list_changed();
    assert_eq!(again.next_message().await.expect("an event")["method"], "notifications/tools/list_changed");
    read_for(&mut again, 3 * TIME).await;
    assert!(session.is_open().await);
}

async fn listeners(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage, Limits::default().listeners(1).unread_time(Duration::from_secs(120)));
    let client = cx.serve(service.clone()).await;
    let listen = || super::listen(None);
    let unread = client.send(listen()).await;
    sleep(Duration::from_secs(119)).await;
    super::too_busy(client.send(listen()).await, "sub").await;
    sleep(Duration::from_secs(35)).await;
    let mut read = client.send(listen()).await;
    read.next_message().await.expect("an acknowledgement");
    assert!(unread.events().await.is_empty());
    read_for(&mut read, Duration::from_secs(3600)).await;
    // What cannot be told from a client that is there is not given up.
    let limits = Limits::default().keep_alive(Duration::from_secs(600)).unread_time(Duration::from_secs(1));
    let service = serving(&stage, limits);
    let client = cx.serve(service.clone()).await;
    let mut read = client.send(listen()).await;
    read.next_message().await.expect("an acknowledgement");
    read_for(&mut read, Duration::from_secs(6000)).await;
}

/// What waited in it waits no more, and counts no more.
async fn frees(cx: Cx) {
    let sent = Arc::new(AtomicUsize::new(0));
    let limits = Limits::default().queue_bytes_in_all(30_000);
    let service = serves(filling(&sent), limits);
    let client = cx.serve(service.clone()).await;
    let fill = || Call::of(cx.revision, "x/fill", json!({"messages": 50, "pad": 10_000}));
    let _unread = client.send(fill()).await;
    sleep(2 * TIME).await;
    assert_eq!((service.counts().streams, service.counts().in_flight), (0, 0));
    let before = sent.load(std::sync::atomic::Ordering::SeqCst);
    let second = client.send(fill()).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(sent.load(std::sync::atomic::Ordering::SeqCst) - before, 2, "as many as before");
    let read = timeout(Duration::from_secs(60), second.events()).await.expect("an end");
    assert_eq!(read.len(), 51);
}
