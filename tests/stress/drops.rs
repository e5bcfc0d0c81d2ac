//! A thousand connections that break off anywhere: inside the request, before the answer, inside it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mcp_transport::{Changes, Limits, Revision, StreamableHttpService};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::support::{
    Acts, LEGACY, Random, bare, call, initialize, inside, listen, nothing_is_left, notify, open, ready, send, until,
};

const TASKS: usize = 10;
const EACH: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_break_off() {
    let random = Random::new();
    let (acts, changes) = (Arc::new(Acts::default()), Changes::new());
    let limits = Limits::default().session_idle(Duration::from_secs(2)).keep_alive(Duration::from_millis(50));
    let service = StreamableHttpService::builder(Arc::clone(&acts)).limits(limits).changes(&changes).build();
    let service = service.expect("a service");
    let (address, server) = serve(service.clone()).await;
    let mut sessions = Vec::new();
    for number in 0..12 {
        let revision = LEGACY[number % 4];
        let session = open(&service, initialize(revision)).await;
        ready(&service, revision, &session).await;
        let subscribe = call(revision, "resources/subscribe", json!({"uri": "a"}), 1);
        send(&service, inside(&session, subscribe)).await;
        sessions.push((revision, session));
    }
    let (sessions, answered) = (Arc::new(sessions), Arc::new(AtomicUsize::new(0)));
    let publishing = tokio::spawn(async move {
        loop {
            changes.tools_list_changed();
            changes.resource_updated("a");
            sleep(Duration::from_millis(1)).await;
        }
    });
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (mut random, sessions) = (random.fork(task as u64), Arc::clone(&sessions));
        let answered = Arc::clone(&answered);
        tasks.spawn(async move {
            for number in 0..EACH {
                let request = any(&mut random, &sessions, task * EACH + number);
                let got = break_off(address, &wire(&request), &mut random).await;
                answered.fetch_add(usize::from(got > 0), Ordering::SeqCst);
            }
        });
    }
    tasks.join_all().await;
    publishing.abort();
    let answered = answered.load(Ordering::SeqCst);
    assert!(answered > TASKS * EACH / 10 && answered < TASKS * EACH, "{answered} began to read: that is no mixture");
    until("quiet", || service.counts().in_flight == 0 && service.counts().streams == 0).await;
    // The service works on as if nothing had happened, for whoever is still there.
    for revision in Revision::ALL {
        assert_eq!(send(&service, call(revision, "x/stream", json!({}), 1)).await.status(), 200);
    }
    // Sessions whose client is gone are left to their idle time.
    until("the end of the sessions", || service.counts().sessions == 0).await;
    server.abort();
    until("the end of the server", || server.is_finished()).await;
    until("the end of what was read last", || service.counts().streams == 0).await;
    nothing_is_left(service, acts);
}

async fn serve(service: StreamableHttpService) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on loopback");
    let address = listener.local_addr().expect("an address");
    let accepting = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            while connections.try_join_next().is_some() {}
        }
    });
    (address, accepting)
}

/// Any request there is.
fn any(random: &mut Random, sessions: &[(Revision, String)], id: usize) -> Request<Bytes> {
    // What is done in a session goes on without its client, and has to come to an end.
    let endless = random.of(&["x/quick", "x/stream", "x/flood", "x/wait", "x/hang"]);
    let method = random.of(&["x/quick", "x/later", "x/stream", "x/slow", "x/flood", "x/late-flood", "tools/list"]);
    let (revision, session) = &sessions[random.below(sessions.len())];
    match random.below(12) {
        0..=2 => call(Revision::V2026_07_28, endless, json!({}), id),
        3 => listen(&["a", "b"], id),
        4 => call(random.of(&LEGACY), endless, json!({}), id),
        5..=7 => inside(session, call(*revision, method, json!({}), id)),
        8 => bare(Method::GET, session),
        9 => initialize(random.of(&LEGACY)),
        10 => match random.below(3) {
            0 => inside(session, notify(*revision, "notifications/x")),
            1 => notify(Revision::V2026_07_28, "notifications/x"),
            _ => bare(Method::DELETE, "no such session"),
        },
        _ => {
            let element = |n: usize| json!({"jsonrpc": "2.0", "id": format!("{id}-{n}"), "method": method});
            let batch = json!([element(1), {"jsonrpc": "2.0", "method": "notifications/x"}, element(2), 7]);
            let request = call(Revision::V2025_03_26, "x", json!({}), 1).map(|_| Bytes::from(batch.to_string()));
            let place = sessions.iter().find(|(revision, _)| *revision == Revision::V2025_03_26);
            if random.one_in(2) { request } else { inside(&place.expect("one of each").1, request) }
        }
    }
}

/// The bytes of a request.
fn wire(request: &Request<Bytes>) -> Vec<u8> {
    let mut text = format!("{} /mcp HTTP/1.1\r\nhost: localhost\r\n", request.method());
    for (name, value) in request.headers() {
        text += &format!("{name}: {}\r\n", value.to_str().expect("visible ASCII"));
    }
    text += &format!("content-length: {}\r\n\r\n", request.body().len());
    [text.as_bytes(), request.body()].concat()
}

/// Writes as much of a request as chance wills, reads as much of the answer, and is gone, one way or the other. Returns
/// how much it read.
async fn break_off(address: SocketAddr, request: &[u8], random: &mut Random) -> usize {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let whole = random.below(10) < 7;
    let cut = if whole { request.len() } else { random.below(request.len()) };
    let _ = stream.write_all(&request[..cut]).await;
    let mut read = 0;
    if whole {
        let wanted = random.of(&[0, 1, 100, 500, 5_000, 500_000]);
        let mut buffer = vec![0; 4096];
        let reading = async {
            while read < wanted {
                match stream.read(&mut buffer).await {
                    Ok(bytes @ 1..) => read += bytes,
                    _ => break,
                }
            }
        };
        let _ = timeout(Duration::from_millis(1 + random.below(20) as u64), reading).await;
    }
    match random.below(3) {
        // Half closed, for a moment.
        0 => {
            let _ = stream.shutdown().await;
            tokio::task::yield_now().await;
        }
        // Reset.
        1 => {
            let _ = stream.set_zero_linger();
        }
        _ => {}
    }
    read
}
