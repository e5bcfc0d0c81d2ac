//! A second GET: while one is open, after its connection is gone, and where the newest wins.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::header::HOST;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn as client;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use mcp_transport::{SecondGet, StreamableHttpService};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use super::{builder, ended, heard, list_changed, listening, serving, until};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::server;
use crate::support::session::{self, Session};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.legacy("get/second", Carriers::Every, second);
    wire.legacy("get/second/race", Carriers::Every, race);
    wire.legacy("get/second/after-it-is-gone", Carriers::Every, after_it_is_gone);
    wire.legacy("get/second/dead-peer", Carriers::Clock, dead_peer);
    wire.legacy("get/second/newest-wins", Carriers::Every, newest_wins);
    wire.legacy("get/second/newest-wins-unread", Carriers::Clock, newest_wins_unread);
}

async fn conflict(session: &Session) {
    session.client.send(session.get()).await.error(StatusCode::CONFLICT, -32600, None).await;
}

/// 409, and the first goes on as if nothing had been.
async fn second(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    for _ in 0..3 {
        conflict(&session).await;
        // From another connection too.
        let answer = client.another().send(session.get().header("last-event-id", "1")).await;
        answer.error(StatusCode::CONFLICT, -32600, None).await;
    }
    service.changes().tools_list_changed();
    assert_eq!(heard(&mut stream, &service).await, [list_changed("tools")]);
    assert_eq!(service.counts().streams, 1);
    let (_other, mut its_stream) = listening(&client, cx.revision).await;
    assert_eq!(heard(&mut its_stream, &service).await, [Value::Null; 0], "another session has one of its own");
}

/// Of many at once exactly one is opened.
async fn race(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    let answers = join_all((0..8).map(|_| client.send(session.get()))).await;
    let (opened, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == StatusCode::OK);
    assert_eq!(opened.len(), 1);
    for answer in refused {
        answer.error(StatusCode::CONFLICT, -32600, None).await;
    }
}

/// Its client gone, there is room at once: no keep-alive has to fail first.
async fn after_it_is_gone(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    for its_own_connection in [false, true] {
        for _ in 0..5 {
            let leaving = if its_own_connection { client.another() } else { client.clone() };
            let stream = Session { client: leaving.clone(), ..session.clone() }.listen().await;
            drop((stream, leaving));
            let begun = Instant::now();
            until(|| service.counts().streams == 0).await;
            let stream = session.listen().await;
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
            drop(stream);
            until(|| service.counts().streams == 0).await;
        }
    }
}

/// A peer that vanished without a word holds its place until a comment cannot be written.
async fn dead_peer(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    for h2 in [false, true] {
        let session = session::open(&client, cx.revision).await;
        let dead = Arc::new(AtomicBool::new(false));
        let stream = get_over(peer(&service, h2, &dead), h2, &session).await;
        sleep(Duration::from_secs(20)).await;
        conflict(&session).await;
        dead.store(true, Ordering::SeqCst);
        conflict(&session).await;
        let begun = Instant::now();
        until(|| service.counts().streams == 0).await;
        assert!(begun.elapsed() < Duration::from_secs(17), "at the next comment: {:?}", begun.elapsed());
        drop(session.listen().await);
        until(|| service.counts().streams == 0).await;
        drop(stream);
    }
}

/// Opens the stream of a session over one connection, which stays open as long as what is returned.
async fn get_over(ours: DuplexStream, h2: bool, session: &Session) -> impl Sized {
    let mut request = Request::<Full<Bytes>>::from(session.get());
    let io = TokioIo::new(ours);
    if h2 {
        *request.uri_mut() = "http://localhost/mcp".parse().expect("a URI");
        let (mut sender, connection) = client::http2::handshake(TokioExecutor::new(), io).await.expect("a handshake");
        tokio::spawn(connection);
        let response = sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        (response, Some(sender), None)
    } else {
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        let (mut sender, connection) = client::http1::handshake(io).await.expect("a handshake");
        tokio::spawn(connection);
        let response = sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        (response, None, Some(sender))
    }
}

/// Serves one connection, and returns the client's end of it.
fn peer(service: &StreamableHttpService, h2: bool, dead: &Arc<AtomicBool>) -> DuplexStream {
    let (ours, theirs) = duplex(1 << 16);
    let io = TokioIo::new(Mortal { stream: theirs, dead: Arc::clone(dead) });
    let service = server::boxed(service.clone());
    let service = service.map_request(|request: Request<Incoming>| request.map(server::body));
    let service = TowerToHyperService::new(service);
    tokio::spawn(async move {
        if h2 {
            let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
        } else {
            let _ = http1::Builder::new().serve_connection(io, service).await;
        }
    });
    ours
}

/// A connection whose peer may vanish: from then on nothing is read, not even its end, and nothing can be written.
struct Mortal {
    stream: DuplexStream,
    dead: Arc<AtomicBool>,
}

impl Mortal {
    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }
}

impl AsyncRead for Mortal {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_dead() { Poll::Pending } else { Pin::new(&mut self.stream).poll_read(cx, buffer) }
    }
}

impl AsyncWrite for Mortal {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_dead() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// By policy the newest is the general stream, and the one before it ends.
async fn newest_wins(cx: Cx) {
    let stage = Stage::default();
    let service = builder(&stage).second_get(SecondGet::TakesOver).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    for _ in 0..3 {
        service.changes().tools_list_changed();
        assert_eq!(heard(&mut stream, &service).await, [list_changed("tools")]);
        let newer = session.listen().await;
        assert_eq!(stream.events().await, [Value::Null; 0], "it ends, as it should");
        stream = newer;
    }
    until(|| service.counts().streams == 1).await;
    assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
    let (_other, mut its_stream) = listening(&client, cx.revision).await;
    assert_eq!(heard(&mut its_stream, &service).await, [Value::Null; 0], "only its own session's");
    assert!(timeout(Duration::from_millis(5), ended(stream)).await.is_err());
}

/// What the older one has not read goes to the newer one, and to that one only.
async fn newest_wins_unread(cx: Cx) {
    let stage = Stage::default();
    let service = builder(&stage).second_get(SecondGet::TakesOver).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    let (session, stream) = listening(&client, cx.revision).await;
    session.result("resources/subscribe", json!({"uri": "file:///a"})).await;
    service.changes().prompts_list_changed();
    service.changes().resource_updated("file:///a");
    let mut newer = session.listen().await;
    assert_eq!(heard(&mut newer, &service).await, [list_changed("prompts"), super::updated("file:///a")]);
    // Its end does not close the newer one.
    assert_eq!(stream.events().await, [Value::Null; 0]);
    service.changes().tools_list_changed();
    assert_eq!(heard(&mut newer, &service).await, [list_changed("tools")]);
    session.end().await;
    assert_eq!(newer.events().await, [Value::Null; 0]);
}
