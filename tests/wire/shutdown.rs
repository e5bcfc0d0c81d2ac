//! The end of a transport: what a drain still lets in, what it ends and in which order, and what it reports.

mod load;
mod sessions;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use http::StatusCode;
use http::header::RETRY_AFTER;
use mcp_transport::{CancelCause, Capabilities, DrainReport, StreamableHttpService, drain_all};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::harness::{Carrier, Carriers, Cx, Wire};
use crate::support::client::{Answer, Client, assert_error};
use crate::support::request::{Call, SESSION_ID};
use crate::support::server::Server;
use crate::support::session::{self, Session};
use crate::support::sse::Frame;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("shutdown/drain", Carriers::Every, drain);
    wire.any("shutdown/drain/deadline", Carriers::Clock, deadline);
    wire.any("shutdown/drain/twice", Carriers::Every, twice);
    wire.any("shutdown/drain/idle", Carriers::Every, idle);
    wire.any("shutdown/drain/all", Carriers::Every, all);
    wire.any("shutdown/drain/unread", Carriers::Clock, unread);
    wire.any("shutdown/drain/axum", Carriers::Sockets, under_axum);
    load::register(wire);
    sessions::register(wire);
}

fn serving(stage: &Stage) -> StreamableHttpService {
    let capabilities = Capabilities::new().tools_list_changed().resources_subscribe();
    StreamableHttpService::new(stage.script().declaring(capabilities))
}

/// A client of either era that listens for changes: in a session, or by `subscriptions/listen`.
struct Listener {
    client: Client,
    session: Option<Session>,
    cx: Cx,
    stream: Answer,
}

impl Listener {
    async fn open(cx: Cx, client: &Client) -> Self {
        let client = client.clone();
        if cx.modern() {
            let filter = json!({"notifications": {"toolsListChanged": true}});
            let mut stream = client.send(Call::modern("subscriptions/listen", filter).id("sub")).await;
            let acknowledged = stream.next_message().await.expect("an event");
            assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
            Self { client, session: None, cx, stream }
        } else {
            let session = session::open(&client, cx.revision).await;
            let stream = session.listen().await;
            Self { client, session: Some(session), cx, stream }
        }
    }

    fn call(&self, method: &str, params: Value) -> Call {
        match &self.session {
            Some(session) => session.call(method, params),
            None => Call::of(self.cx.revision, method, params),
        }
    }

    /// Sends a request that stays with the handler, and returns once it is there.
    async fn hold(&self, stage: &Stage, name: &str, tell: usize) -> JoinHandle<Answer> {
        let call = self.call("x/hold", json!({"name": name, "tell": tell})).id(name);
        let client = self.client.clone();
        let asking = tokio::spawn(async move { client.send(call).await });
        stage.entered(name).await;
        asking
    }

    /// Reads the stream to the end that a server gives it: with a result, tagged, where it answers a request.
    async fn ends(self) {
        let rest = self.stream.events().await;
        if self.cx.modern() {
            let [end] = &rest[..] else { panic!("one response: {rest:?}") };
            assert_eq!(end["id"], "sub");
            assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
        } else {
            assert_eq!(rest, [Value::Null; 0]);
        }
    }
}

/// 503, and when to come back.
async fn turned_away(client: &Client, call: Call) {
    let answer = client.send(call).await;
    assert_eq!(answer.header(SESSION_ID), "");
    assert_ne!(answer.header(RETRY_AFTER.as_str()), "");
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
}

/// Polls a future once, which must not end it.
async fn begin(mut future: Pin<&mut impl Future<Output = DrainReport>>) {
    assert!(poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await, "there is something to wait for");
}

/// New work is turned away, streams end, requests go on; then the rest is cut and answered, and counted.
async fn drain(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let listener = Listener::open(cx, &client).await;
    let finishes = listener.hold(&stage, "finishes", 0).await;
    let streams = listener.hold(&stage, "streams", 1).await;
    let quiet = listener.hold(&stage, "quiet", 0).await;
    let session = listener.session.clone();
    let sessions = service.counts().sessions;

    let mut drain = pin!(service.drain(Duration::from_millis(500)));
    begin(drain.as_mut()).await;
    let mut new = vec![
        listener.call("x/echo", json!({})),
        listener.call("ping", json!({})),
        listener.call("notifications/x", json!({})).notification(),
        Call::of(cx.revision, "x/echo", json!({})),
        Call::modern("subscriptions/listen", json!({"notifications": {}})),
        Call::modern("server/discover", json!({})),
        session::initialize(mcp_transport::Revision::V2025_06_18),
        Call::get(),
    ];
    new.extend(session.as_ref().map(Session::get));
    for call in new {
        turned_away(&client, call).await;
    }
    assert_eq!(service.counts().sessions, sessions);
    // Streams have no end of their own: they end first, while requests are still being answered.
    listener.ends().await;
    service.changes().tools_list_changed();
    stage.release("finishes");
    finishes.await.expect("an answer").result().await;
    assert!(stage.is_in("streams") && stage.is_in("quiet"));

    let (report, (streams, quiet)) = tokio::join!(drain, async {
        let mut streams = streams.await.expect("an answer");
        assert_eq!(streams.next_message().await.expect("an event")["method"], "notifications/x");
        (streams.events().await, quiet.await.expect("an answer"))
    });
    for name in ["streams", "quiet"] {
        assert_eq!(stage.dropped(name).await, Some(CancelCause::Drained));
    }
    assert_error(streams[0].clone(), -32603, Some(&"streams".into()));
    quiet.error(StatusCode::OK, -32603, Some(&"quiet".into())).await;
    assert_eq!((report.in_flight, report.cut), (3, 2));
    let counts = service.counts();
    assert_eq!((counts.in_flight, counts.streams), (0, 0));
    turned_away(&client, Call::of(cx.revision, "x/echo", json!({}))).await;
    assert_eq!(stage.take_runs(), 3);
}

/// It waits exactly as long as it was given, and not at all once nothing is left.
async fn deadline(cx: Cx) {
    for (leaves, seconds) in [(None, 30), (Some(12), 12)] {
        let stage = Stage::default();
        let service = serving(&stage);
        let client = cx.serve(service.clone()).await;
        let listener = Listener::open(cx, &client).await;
        let held = listener.hold(&stage, "held", 0).await;
        let begun = Instant::now();
        let releasing = async {
            if let Some(after) = leaves {
                sleep(Duration::from_secs(after)).await;
                stage.release("held");
            }
        };
        let ended_at = async {
            listener.ends().await;
            begun.elapsed()
        };
        let answering = async {
            // The commit time passes: it is a stream by then.
            let answer = held.await.expect("an answer");
            if leaves.is_some() { answer.json().await } else { answer.events().await.remove(0) }
        };
        let draining = async {
            let report = service.drain(Duration::from_secs(30)).await;
            (report, begun.elapsed())
        };
        let ((report, took), ended_at, answer, ()) = tokio::join!(draining, ended_at, answering, releasing);
        assert_eq!(ended_at, Duration::ZERO);
        assert_eq!(took.as_secs(), seconds, "{took:?}");
        assert_eq!((report.in_flight, report.cut), (1, usize::from(leaves.is_none())));
        assert_eq!(answer.get("result").is_some(), leaves.is_some(), "{answer}");
    }
}

/// Every drain waits for the same work; the shortest time cuts it, for all of them. Afterwards there is nothing to do.
async fn twice(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let listener = Listener::open(cx, &client).await;
    let held = listener.hold(&stage, "held", 0).await;
    let begun = Instant::now();
    let (long, short, answer, ()) = tokio::join!(
        service.drain(Duration::from_secs(600)),
        service.drain(Duration::from_millis(200)),
        held,
        listener.ends()
    );
    answer.expect("an answer").error(StatusCode::OK, -32603, Some(&"held".into())).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!([long.in_flight, short.in_flight], [1, 1]);
    assert_eq!([long.cut, short.cut], [1, 1]);
    for _ in 0..2 {
        let again = service.drain(Duration::from_secs(600)).await;
        assert_eq!((again.in_flight, again.cut), (0, 0));
        turned_away(&client, Call::of(cx.revision, "x/echo", json!({}))).await;
    }
}

/// With nothing in flight it does not wait; a stream ends though nobody asked it to before.
async fn idle(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let listener = Listener::open(cx, &client).await;
    let (report, ()) = tokio::join!(service.drain(Duration::from_secs(600)), listener.ends());
    assert_eq!((report.in_flight, report.cut), (0, 0));
    // One that nobody has ever talked to.
    assert_eq!(serving(&stage).drain(Duration::from_secs(600)).await.in_flight, 0);
}

/// Several at once, each with a report of its own.
async fn all(cx: Cx) {
    let stage = Stage::default();
    let (one, other) = (serving(&stage), serving(&stage));
    let (first, second) = (cx.serve(one.clone()).await, cx.serve(other.clone()).await);
    let (first, second) = (Listener::open(cx, &first).await, Listener::open(cx, &second).await);
    let held = first.hold(&stage, "held", 0).await;
    let transports: [&dyn mcp_transport::Transport; 2] = [&one, &other];
    let (reports, answer, (), ()) =
        tokio::join!(drain_all(&transports, Duration::from_millis(100)), held, first.ends(), second.ends());
    answer.expect("an answer").error(StatusCode::OK, -32603, Some(&"held".into())).await;
    let reports: Vec<_> = reports.iter().map(|report| (report.in_flight, report.cut)).collect();
    assert_eq!(reports, [(1, 1), (0, 0)]);
}

/// A client that does not read its stream does not hold up the end for longer than the deadline and a second.
async fn unread(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let listener = Listener::open(cx, &client).await;
    let begun = Instant::now();
    let report = service.drain(Duration::from_secs(5)).await;
    assert!((5..=6).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!((report.in_flight, report.cut), (0, 0));
    // When it reads at last, it finds the end.
    listener.ends().await;
}

/// Drained in the future that axum waits for, open streams do not keep axum from ending, and requests are answered.
async fn under_axum(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on loopback");
    let address = listener.local_addr().expect("the port's address");
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = axum::serve(listener, Router::new().route_service("/mcp", service.clone()));
    let serving = serving.with_graceful_shutdown(async move {
        let _ = stopped.await;
        service.drain(Duration::from_secs(600)).await;
    });
    let (ended, end) = oneshot::channel();
    let server = Server::adopt(address, async move {
        serving.await.expect("axum does not fail");
        let _ = ended.send(());
    });
    let client = if cx.carrier == Carrier::H2 { Client::h2(server) } else { Client::h1(server) };
    // One that reads, one that only holds its connection, and one in the other era.
    let reads = Listener::open(cx, &client).await;
    let mut holds = Listener::open(cx, &client.another()).await;
    let other = if cx.modern() { mcp_transport::Revision::V2025_11_25 } else { mcp_transport::Revision::V2026_07_28 };
    let mixed = Listener::open(Cx { revision: other, ..cx }, &client).await;
    let held = reads.hold(&stage, "held", 0).await;
    stop.send(()).expect("axum waits");
    tokio::join!(reads.ends(), mixed.ends());
    assert!(stage.is_in("held"));
    stage.release("held");
    held.await.expect("an answer").result().await;
    timeout(Duration::from_secs(10), end).await.expect("axum ends at once").expect("it said so");
    while let Some(frame) = holds.stream.frame().await {
        assert!(matches!(frame, Frame::Event(_)) && cx.modern());
    }
}
