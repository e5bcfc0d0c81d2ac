//! Ten thousand sessions opened and left: only what the limits allow stays, and after the idle time nothing does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use mcp_transport::{Limits, Revision, StreamableHttpService};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{advance, sleep};

use super::support::{Acts, LEGACY, bare, call, initialize, inside, messages, nothing_is_left, open, ready, send};

const MOST: usize = 300;
const COUNT: usize = 10_000;

fn serve(acts: &Arc<Acts>, sessions: usize) -> StreamableHttpService {
    let limits = Limits::default().sessions(sessions);
    StreamableHttpService::builder(Arc::clone(acts)).limits(limits).build().expect("a service")
}

/// Some are in use: those stay, whatever comes.
#[tokio::test(start_paused = true)]
async fn ten_thousand_left_by_clients_that_were_never_ready() {
    let acts = Arc::new(Acts::default());
    let service = serve(&acts, MOST);
    let mut streams = Vec::new();
    for revision in LEGACY {
        let session = open(&service, initialize(revision)).await;
        let mut stream = send(&service, bare(Method::GET, &session)).await.into_body();
        assert!(stream.frame().await.is_some());
        let subscribe = call(revision, "resources/subscribe", json!({"uri": "a"}), 1);
        assert_eq!(send(&service, inside(&session, subscribe)).await.status(), StatusCode::OK);
        streams.push((revision, session, stream));
    }
    for number in 0..COUNT {
        open(&service, initialize(LEGACY[number % 4])).await;
        assert_eq!(service.counts().sessions, (number + 1 + LEGACY.len()).min(MOST));
    }
    let (opened, closed) = (acts.opened.load(Ordering::SeqCst), acts.closed.load(Ordering::SeqCst));
    assert_eq!((opened, opened - closed), (COUNT + LEGACY.len(), MOST));
    assert_eq!(Arc::strong_count(&acts.trace), 1 + MOST, "what was kept in those that went is gone");
    for (revision, session, stream) in &mut streams {
        let answer = messages(send(&service, inside(session, call(*revision, "x/quick", json!({}), 1))).await).await;
        assert_eq!(answer[0]["result"]["did"], "x/quick");
        service.changes().resource_updated("a");
        assert!(stream.frame().await.is_some());
    }
    sleep(Duration::from_secs(31 * 60)).await;
    assert_eq!(service.counts().sessions, LEGACY.len(), "open streams hold theirs");
    drop(streams);
    sleep(Duration::from_secs(32 * 60)).await;
    nothing_is_left(service, acts);
}

/// Whoever was ready is not pushed aside by a flood: it has to wait until they have been idle for a while.
#[tokio::test(start_paused = true)]
async fn ten_thousand_left_by_clients_that_were_ready() {
    let acts = Arc::new(Acts::default());
    let service = serve(&acts, MOST);
    let mut turned_away = 0;
    for number in 0..COUNT {
        let revision = LEGACY[number % 4];
        let answer = send(&service, initialize(revision)).await;
        match answer.status() {
            StatusCode::OK => {
                let session = answer.headers()["mcp-session-id"].to_str().expect("an id").to_owned();
                ready(&service, revision, &session).await;
            }
            StatusCode::SERVICE_UNAVAILABLE => turned_away += 1,
            other => panic!("{other}"),
        }
        assert!(service.counts().sessions <= MOST);
        // A hundred a second.
        advance(Duration::from_millis(10)).await;
    }
    // In 100 s the places are taken anew every 10 s.
    let opened = acts.opened.load(Ordering::SeqCst);
    assert_eq!(opened + turned_away, COUNT);
    assert!((9 * MOST..=10 * MOST).contains(&opened), "{opened}");
    assert_eq!(service.counts().sessions, MOST);
    sleep(Duration::from_secs(32 * 60)).await;
    nothing_is_left(service, acts);
}

/// However many open at once, the limit holds at every moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_at_once() {
    let acts = Arc::new(Acts::default());
    let service = serve(&acts, 16);
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let service = service.clone();
        tasks.spawn(async move {
            for _ in 0..300 {
                assert_eq!(send(&service, initialize(Revision::V2025_11_25)).await.status(), StatusCode::OK);
                assert!(service.counts().sessions <= 16, "{:?}", service.counts());
            }
        });
    }
    tasks.join_all().await;
    let (opened, closed) = (acts.opened.load(Ordering::SeqCst), acts.closed.load(Ordering::SeqCst));
    assert_eq!((opened, closed), (2400, 2400 - 16));
}
