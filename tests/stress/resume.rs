//! Clients that break off and come back all the time, while several threads send: everything arrives once, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body_util::BodyExt;
use mcp_transport::{
    Capabilities, EventStore, Limits, McpError, McpHandler, Reply, RequestContext, ResponseBody, Revision, ServerInfo,
    StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::support::{LEGACY, Random, bare, call, initialize, inside, open, ready, send, until};

const COUNT: usize = 2000;

/// Counts as fast as it can.
struct Counts(Arc<AtomicUsize>);

impl McpHandler for Counts {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("stress", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().resources_subscribe()
    }

    async fn request(&self, request: mcp_transport::Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method() == "x/count" {
            for n in 0..COUNT {
                cx.notify("notifications/x", json!({ "n": n })).await?;
                if n % 50 == 0 {
                    cx.close_connection(std::time::Duration::ZERO);
                    tokio::task::yield_now().await;
                }
            }
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Reply::of(json!({ "n": COUNT }))
    }
}

fn serve() -> (StreamableHttpService, Arc<AtomicUsize>) {
    let counted = Arc::default();
    // Enough for all that is not read: what is pushed out could not be resumed.
    let limits = Limits::default().stored_events(10 * COUNT).stored_bytes(64 << 20).queue_bytes(8192);
    let builder = StreamableHttpService::builder(Counts(Arc::clone(&counted))).event_store(EventStore::InMemory);
    (builder.limits(limits).build().expect("a service"), counted)
}

/// What a client has read.
#[derive(Default)]
struct Reader {
    last: Option<String>,
    messages: Vec<Value>,
    pending: Vec<u8>,
}

impl Reader {
    /// Reads some messages, or to the end.
    async fn read(&mut self, mut body: ResponseBody, most: usize) {
        self.pending.clear();
        let enough = self.messages.len() + most;
        while self.messages.len() < enough {
            let Some(frame) = body.frame().await else { return };
            let frame = frame.unwrap_or_else(|never| match never {});
            self.pending.extend_from_slice(frame.data_ref().expect("data"));
            let text = String::from_utf8(std::mem::take(&mut self.pending)).expect("whole events");
            for event in text.split_terminator("\n\n") {
                self.take(event);
            }
        }
    }

    fn take(&mut self, event: &str) {
        for line in event.lines() {
            match line.split_once(": ") {
                Some(("id", id)) => self.last = Some(id.to_owned()),
                Some(("data", data)) if !data.is_empty() => {
                    self.messages.push(serde_json::from_str(data).expect("JSON"));
                }
                _ => {}
            }
        }
    }
}

fn after(session: &str, id: &str) -> Request<Bytes> {
    let mut request = bare(Method::GET, session);
    request.headers_mut().insert("last-event-id", HeaderValue::from_str(id).expect("an id"));
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_are_read_once_and_in_order() {
    let (service, counted) = serve();
    let random = Random::new();
    let mut clients = JoinSet::new();
    for number in 0..12 {
        let (service, mut random) = (service.clone(), random.fork(number));
        clients.spawn(async move {
            let revision = LEGACY[usize::try_from(number).expect("a few") % 4];
            let session = open(&service, initialize(revision)).await;
            ready(&service, revision, &session).await;
            let mut reader = Reader::default();
            let answer = send(&service, inside(&session, call(revision, "x/count", json!({}), 1))).await;
            reader.read(answer.into_body(), 1 + random.below(100)).await;
            while reader.messages.len() <= COUNT {
                let last = reader.last.clone().expect("an id");
                if random.one_in(3) {
                    // A rival with the same id, who takes the stream over and goes, at the same time or before.
                    let (service, request) = (service.clone(), after(&session, &last));
                    let rival = tokio::spawn(async move {
                        let answer = send(&service, request).await;
                        assert_eq!(answer.status(), 200);
                        Reader::default().read(answer.into_body(), 3).await;
                    });
                    if random.one_in(2) {
                        rival.await.expect("nobody panicked");
                    }
                }
                let answer = send(&service, after(&session, &last)).await;
                assert_eq!(answer.status(), 200);
                reader.read(answer.into_body(), 1 + random.below(300)).await;
            }
            let read: Vec<_> = reader.messages[..COUNT].iter().map(|message| message["params"]["n"].clone()).collect();
            assert_eq!(read, (0..COUNT).map(|n| json!(n)).collect::<Vec<_>>(), "{revision}");
            assert_eq!(reader.messages[COUNT]["result"]["n"], COUNT);
            assert_eq!(reader.messages.len(), COUNT + 1);
            assert_eq!(send(&service, bare(Method::DELETE, &session)).await.status(), 204);
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("nobody panicked");
    }
    assert_eq!(counted.load(Ordering::SeqCst), 12);
    until("rivals that go", || service.counts().streams == 0).await;
    assert_eq!((service.counts().in_flight, service.counts().sessions), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_are_heard_once_whoever_reads() {
    let (service, _) = serve();
    let mut random = Random::new();
    let revision = Revision::V2025_11_25;
    let session = open(&service, initialize(revision)).await;
    ready(&service, revision, &session).await;
    let uris: Vec<_> = (0..1500).map(|n| format!("x:{n}")).collect();
    for (n, uri) in uris.iter().enumerate() {
        let subscribe = call(revision, "resources/subscribe", json!({ "uri": uri }), n);
        assert_eq!(send(&service, inside(&session, subscribe)).await.status(), 200);
    }
    let mut reader = Reader::default();
    service.changes().resource_updated(&uris[0]);
    reader.read(send(&service, bare(Method::GET, &session)).await.into_body(), 1).await;
    let publishers: Vec<_> = (0..3)
        .map(|part| {
            let (changes, uris) = (service.changes().clone(), uris.clone());
            tokio::spawn(async move {
                for uri in uris[1..].iter().skip(part).step_by(3) {
                    changes.resource_updated(uri);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    while reader.messages.len() < uris.len() {
        let last = reader.last.clone().expect("an id");
        if random.one_in(3) {
            let (service, request) = (service.clone(), after(&session, &last));
            tokio::spawn(async move {
                let body = send(&service, request).await.into_body();
                // It may wait for ever, where the other one takes over and has all.
                Reader::default().read(body, 2).await;
            });
        }
        let left = uris.len() - reader.messages.len();
        let body = send(&service, after(&session, &last)).await.into_body();
        reader.read(body, (1 + random.below(40)).min(left)).await;
    }
    for publisher in publishers {
        publisher.await.expect("nobody panicked");
    }
    let mut heard: Vec<_> =
        reader.messages.iter().map(|message| message["params"]["uri"].as_str().expect("a URI")).collect();
    heard.sort_unstable();
    let mut expected: Vec<_> = uris.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(heard, expected);
}
