//! Peers that take all they can get. What they hold stays within what `Limits` say, what is too much is refused as it is
//! documented, and nobody else needs one poll more for it.
//!
//! Memory is counted by an allocator, on the one thread that everything runs on.

use std::any::Any;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use allocation_counter::measure;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, join_all};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::Full;
use mcp_transport::{EventStore, Limits, PeerKey, ResponseBody, Revision, StreamableHttpService};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use super::stalled::{Cost, cost};
use super::support::{Acts, bare, call, initialize, inside, listen, named, open, send};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;
const MIB: u64 = 1 << 20;

/// What an attack goes on holding.
type Held = Vec<Box<dyn Any>>;
type Attack = for<'a> fn(&'a StreamableHttpService) -> LocalBoxFuture<'a, Held>;

/// The peer of a request, where it says who it is.
#[derive(Clone)]
struct From(&'static str);

fn service(limits: Limits) -> StreamableHttpService {
    let builder = StreamableHttpService::builder(Arc::new(Acts::default())).limits(limits);
    let builder = builder.event_store(EventStore::InMemory);
    let builder = builder.peer(|head| Some(PeerKey::new(head.extensions.get::<From>()?.0)));
    builder.build().expect("a service")
}

/// In the name of the hostile peer.
fn hostile<B>(mut request: Request<B>) -> Request<B> {
    request.extensions_mut().insert(From("hostile"));
    request
}

/// Runs on one thread, and returns the most bytes that were held at once.
fn counted<T>(paused: bool, test: impl Future<Output = T>) -> (T, u64) {
    let mut output = None;
    let bytes = measure(|| {
        let runtime = Builder::new_current_thread().enable_all().start_paused(paused).build().expect("a runtime");
        output = Some(runtime.block_on(test));
    });
    (output.expect("an output"), bytes.bytes_max)
}

/// A body that gives what it has in pieces, and then waits for ever, or ends.
struct Pieces {
    left: u64,
    piece: Bytes,
    every: Option<Duration>,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    ends: bool,
}

impl Pieces {
    fn new(left: u64, piece: Bytes, every: Option<Duration>, ends: bool) -> Self {
        Self { left, piece, every, timer: None, ends }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(every) = self.every {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(every)));
            std::task::ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
        if self.left == 0 {
            return if self.ends { Poll::Ready(None) } else { Poll::Pending };
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
    }
}

/// A request whose body comes in pieces.
fn sending(pieces: Pieces) -> Request<Pieces> {
    hostile(call(MODERN, "x/quick", json!({}), 1).map(|_| pieces))
}

/// Bodies of which a byte comes now and then.
fn slowloris(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        let trickle = || Pieces::new(u64::MAX, Bytes::from_static(b" "), Some(Duration::from_secs(1)), false);
        let mut held = Held::new();
        for _ in 0..500 {
            let mut asking = Box::pin(service.handle(sending(trickle())));
            assert!(asking.as_mut().now_or_never().is_none());
            held.push(Box::new(tokio::spawn(async move {
                assert_eq!(asking.await.status(), StatusCode::REQUEST_TIMEOUT);
            })));
        }
        held
    }
    .boxed_local()
}

/// POSTs that stop in the middle, each holding what it has sent, until there is no more room for this peer.
fn stopping(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        let mut held = Held::new();
        let mut refused = 0;
        for _ in 0..200 {
            let half = Pieces::new(32, Bytes::from(vec![b' '; 64 << 10]), None, false);
            let mut asking = Box::pin(service.handle(sending(half)));
            match asking.as_mut().now_or_never() {
                Some(answer) => {
                    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
                    refused += 1;
                }
                None => held.push(Box::new(tokio::spawn(async move {
                    assert_eq!(asking.await.status(), StatusCode::REQUEST_TIMEOUT);
                }))),
            }
        }
        assert_eq!(held.len() + refused, 200);
        assert_eq!(held.len(), 32, "2 MiB each, of 64");
        held
    }
    .boxed_local()
}

/// Streams whose client reads nothing.
fn unread(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        let mut held = Held::new();
        for id in 0..100 {
            let answer = send(service, hostile(call(MODERN, "x/flood", json!({}), id))).await;
            match answer.status() {
                StatusCode::OK => held.push(Box::new(answer.into_body())),
                status => assert_eq!(status, StatusCode::TOO_MANY_REQUESTS),
            }
        }
        sleep(Duration::from_secs(2)).await;
        held
    }
    .boxed_local()
}

fn idle(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        let mut held = Held::new();
        for id in 0..10_000 {
            let answer = send(service, listen(&["file:///a"], id)).await;
            assert_eq!(answer.status(), StatusCode::OK);
            let mut body = answer.into_body();
            settle(&mut body);
            held.push(Box::new(body));
        }
        held
    }
    .boxed_local()
}

/// As a connection does: reads until there is nothing to read.
fn settle(body: &mut ResponseBody) {
    while http_body_util::BodyExt::frame(body).now_or_never().is_some() {}
}

/// Sessions without end.
async fn sessions(service: &StreamableHttpService, many: usize) {
    let theirs = open(service, named("somebody", initialize(LEGACY))).await;
    let mut statuses = BTreeMap::new();
    for n in 0..many {
        let answer = send(service, hostile(initialize(LEGACY))).await;
        *statuses.entry(answer.status().as_u16()).or_insert(0) += 1;
        if answer.status() == StatusCode::OK && n % 2 == 0 {
            let id = answer.headers()["mcp-session-id"].to_str().expect("an id").to_owned();
            ready_of(service, &id).await;
        }
    }
    // At its cap: its own unready ones go; where all are ready and new, it gets no more.
    assert!(statuses.keys().all(|status| [200, 429].contains(status)), "{statuses:?}");
    assert_eq!(service.counts().sessions, 1001);
    let ping = named("somebody", inside(&theirs, call(LEGACY, "ping", json!({}), 1)));
    assert_eq!(send(service, ping).await.status(), StatusCode::OK, "nobody else's gives way");
}

async fn ready_of(service: &StreamableHttpService, session: &str) {
    let ready = inside(session, super::support::notify(LEGACY, "notifications/initialized"));
    assert_eq!(send(service, hostile(ready)).await.status(), StatusCode::ACCEPTED);
}

fn many_sessions(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        sessions(service, 5_000).await;
        Held::new()
    }
    .boxed_local()
}

/// GETs without end on one session: for its general stream, and for the rest of an answer.
fn get_storm(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        let session = open(service, hostile(initialize(LEGACY))).await;
        ready_of(service, &session).await;
        let mut held = Held::new();
        let answer = send(service, hostile(inside(&session, call(LEGACY, "x/hang", json!({}), 1)))).await;
        let mut body = answer.into_body();
        let mut first = None;
        while let Some(Some(Ok(frame))) = http_body_util::BodyExt::frame(&mut body).now_or_never() {
            let text = String::from_utf8(frame.into_data().expect("data").to_vec()).expect("UTF-8");
            let id = text.lines().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned);
            first = first.or(id);
        }
        held.push(Box::new(body));
        let id = HeaderValue::from_str(&first.expect("an id")).expect("a header");
        let mut statuses = BTreeMap::new();
        for n in 0..4_000 {
            let mut get = bare(Method::GET, &session);
            if n % 2 == 0 {
                get.headers_mut().insert("last-event-id", id.clone());
            }
            let answer = send(service, hostile(get)).await;
            *statuses.entry(answer.status().as_u16()).or_insert(0) += 1;
            if answer.status() == StatusCode::OK {
                held.push(Box::new(answer.into_body()));
            }
        }
        // One general stream; the others are read by nobody, and count as long as they are held.
        assert_eq!(statuses[&200], 1024, "{statuses:?}");
        assert!(statuses[&409] > 0 && statuses[&503] > 0, "{statuses:?}");
        held
    }
    .boxed_local()
}

/// Bodies that are too much at once: too long, too deep, too many.
fn bodies(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        let piece = Bytes::from(vec![b' '; 64 << 10]);
        let endless = Pieces::new((1 << 30) / (64 << 10), piece, None, true);
        assert_eq!(service.handle(sending(endless)).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let deep = "[".repeat(50_000) + &"]".repeat(50_000);
        let inside = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{deep}}}}}"#);
        let many = format!("[{}1]", "1,".repeat(1_000_000 - 1));
        let element = r#"{"jsonrpc":"2.0","id":1,"method":"x"},"#;
        let calls = format!("[{}1]", element.repeat(100_000));
        for body in [deep, inside, many, calls] {
            let request = hostile(call(LEGACY, "x", json!({}), 1).map(|_| Full::<Bytes>::from(body)));
            assert_eq!(service.handle(request).await.status(), StatusCode::BAD_REQUEST);
        }
        Held::new()
    }
    .boxed_local()
}

/// Heads as large as a server lets them be, and larger.
fn heads(service: &StreamableHttpService) -> LocalBoxFuture<'_, Held> {
    async move {
        let long = HeaderValue::from_bytes(&vec![b'a'; 1 << 20]).expect("a value");
        let accepts = HeaderValue::from_str(&"application/json;q=0.1,".repeat(40_000)).expect("a value");
        for (name, value) in [("accept", accepts), ("mcp-session-id", long.clone()), ("mcp-name", long.clone())] {
            let mut request = hostile(call(LEGACY, "x/quick", json!({}), 1));
            request.headers_mut().insert(name, value);
            assert!(!send(service, request).await.status().is_server_error());
        }
        let mut request = hostile(call(MODERN, "x/quick", json!({}), 1));
        for n in 0..20_000 {
            let name = HeaderName::from_bytes(format!("mcp-param-{n}").as_bytes()).expect("a name");
            request.headers_mut().append(name, HeaderValue::from_static("1"));
        }
        assert_eq!(send(service, request).await.status(), StatusCode::OK);
        let mut request = hostile(call(MODERN, "x/quick", json!({}), 1));
        for _ in 0..20_000 {
            request.headers_mut().append("mcp-method", HeaderValue::from_static("x/quick"));
        }
        assert_eq!(send(service, request).await.status(), StatusCode::BAD_REQUEST);
        Held::new()
    }
    .boxed_local()
}

/// Each attack, and the MiB that it may come to hold: what `Limits` say, and a half more for what the test itself holds.
const ATTACKS: [(&str, Attack, u64); 8] = [
    // 500 heads, readers and tasks.
    ("slowloris", slowloris, 8),
    // `body_bytes_by_caller`, twice since they come in pieces.
    ("stopping", stopping, 2 * 64 + 64),
    // `queue_bytes_by_caller`, what the handlers hold, and a message for each stream.
    ("unread", unread, 64 + 24),
    // Of each its mailbox with one URI, its body and a timer.
    ("idle", idle, 24),
    // `stored_bytes` and 1,024 streams that are read by nobody.
    ("gets", get_storm, 8),
    // 1,000, each with a log of its events.
    ("sessions", many_sessions, 8),
    // Four bodies of up to 4 MiB, one after the other, which the test holds too.
    ("bodies", bodies, 24),
    ("heads", heads, 12),
];

/// What others do meanwhile, and what each of their exchanges takes.
async fn others(service: &StreamableHttpService) -> Vec<Cost> {
    let session = open(service, named("other", initialize(LEGACY))).await;
    let mut costs = Vec::new();
    ready_named(service, &session).await;
    for id in 0..10 {
        let method = ["x/quick", "x/later", "x/stream", "x/slow", "ping"][id % 5];
        let mine = named("other", inside(&session, call(LEGACY, method, json!({}), id)));
        costs.push(cost(service, mine).await);
        let method = ["x/quick", "x/later", "x/stream", "x/slow"][id % 4];
        costs.push(cost(service, call(MODERN, method, json!({}), id)).await);
        sleep(Duration::from_millis(10)).await;
    }
    costs
}

async fn ready_named(service: &StreamableHttpService, session: &str) {
    let ready = inside(session, super::support::notify(LEGACY, "notifications/initialized"));
    assert_eq!(send(service, named("other", ready)).await.status(), StatusCode::ACCEPTED);
}

#[test]
fn others_need_not_one_poll_more() {
    let (alone, _) = counted(true, async { others(&service(Limits::default())).await });
    for (name, attack, most) in ATTACKS {
        let (beside, bytes) = counted(true, async {
            let service = service(Limits::default());
            let held = attack(&service).await;
            let beside = others(&service).await;
            drop(held);
            beside
        });
        assert_eq!(alone, beside, "{name}");
        println!("{name}: {} KiB at most", bytes / 1024);
        assert!(bytes < most * MIB, "{name} holds {bytes} bytes");
    }
}

/// The same by the wall clock, all attacks at once.
#[test]
fn others_finish_beside_all_of_it() {
    let ((), bytes) = counted(false, async {
        let service = service(Limits::default());
        let mut held = Held::new();
        // Those that take all of a share come last, or the others would be refused for it.
        let order: [Attack; 8] = [bodies, heads, slowloris, idle, get_storm, many_sessions, stopping, unread];
        for attack in order {
            held.extend(attack(&service).await);
        }
        let many = join_all((0..10).map(|_| others(&service)));
        let costs = timeout(Duration::from_secs(60), many).await.expect("all finish");
        assert!(costs.iter().all(|costs| costs.len() == 20));
        drop(held);
    });
    let most = ATTACKS.iter().map(|(.., most)| most).sum::<u64>();
    assert!(bytes < most * MIB, "{bytes} bytes");
}

/// What goes unread is given up, and what trickles is cut off: nothing of it is left.
#[test]
fn nothing_of_it_stays() {
    let ((), _) = counted(true, async {
        let service = service(Limits::default());
        let mut held = slowloris(&service).await;
        held.extend(stopping(&service).await);
        held.extend(unread(&service).await);
        held.extend(get_storm(&service).await);
        sleep(Duration::from_secs(400)).await;
        let counts = service.counts();
        // `x/hang` is a session's, and goes on.
        assert_eq!((counts.streams, counts.in_flight), (0, 1));
        for task in held {
            if let Ok(task) = task.downcast::<tokio::task::JoinHandle<()>>() {
                timeout(Duration::from_secs(1), task).await.expect("it has ended").expect("no panic");
            }
        }
        let again = unread(&service).await;
        assert!(again.len() > 50, "there is room again");
    });
}

#[test]
#[ignore = "takes a minute or two"]
fn a_hundred_thousand_sessions_of_one_peer() {
    let ((), bytes) = counted(true, async { sessions(&service(Limits::default()), 100_000).await });
    assert!(bytes < 24 * MIB, "{bytes} bytes");
}
