//! Clients that do anything, and go at any moment: nothing is left of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use http::{HeaderValue, Method};

use super::left::settled;
use super::*;
use crate::admission::What;
use crate::{Denied, EventStore, PeerKey, Principal, Session, SessionEnd};

/// The same numbers for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())].clone()
    }

    fn one_in(&mut self, parts: u64) -> bool {
        self.below(parts) == 0
    }
}

/// Does what the method says. Counts the sessions it has heard of.
#[derive(Default)]
struct Anything {
    sessions: Arc<Mutex<BTreeMap<String, (u32, u32)>>>,
    opened: AtomicU32,
}

fn panic() -> ! {
    std::panic::resume_unwind(Box::new("on purpose"))
}

impl McpHandler for Anything {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("anything", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed().resources_subscribe()
    }

    async fn request(&self, request: crate::Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "x/wait" => std::future::pending().await,
            "x/panic" => panic(),
            "x/yield" => tokio::task::yield_now().await,
            "x/ask" => {
                let question = crate::Question::form("?", json!({"type": "object", "properties": {}}))?;
                let _ = cx.ask("a", question).await;
            }
            "x/stream" | "x/stream-wait" | "x/stream-panic" => {
                for _ in 0..20 {
                    cx.notify("notifications/said", json!({"x": "y".repeat(300)})).await?;
                }
                match request.method() {
                    "x/stream-wait" => std::future::pending().await,
                    "x/stream-panic" => panic(),
                    _ => {}
                }
            }
            _ => {}
        }
        Reply::of(json!({"tools": [], "pad": "x".repeat(2000)}))
    }

    async fn notification(&self, notification: crate::Notification, _: RequestContext) {
        match notification.method() {
            "x/wait" => std::future::pending().await,
            "x/panic" => panic(),
            "x/yield" => tokio::task::yield_now().await,
            _ => {}
        }
    }

    async fn subscribe(&self, uri: String, _: RequestContext) -> Result<(), McpError> {
        match uri.as_str() {
            "wait" => std::future::pending().await,
            "panic" => panic(),
            "yield" => tokio::task::yield_now().await,
            _ => {}
        }
        Ok(())
    }

    fn session_opened(&self, session: &Session) {
        if self.opened.fetch_add(1, Ordering::SeqCst) % 5 == 4 {
            panic();
        }
        self.sessions.lock().unwrap().entry(session.id().to_owned()).or_default().0 += 1;
    }

    fn session_closed(&self, session: &Session, _: SessionEnd) {
        self.sessions.lock().unwrap().entry(session.id().to_owned()).or_default().1 += 1;
    }
}

/// A body that comes in pieces, not at once, and perhaps not to its end.
struct Slow {
    pieces: VecDeque<Result<Bytes, &'static str>>,
    waits: bool,
    is_stuck: bool,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.waits = !self.waits;
        if self.waits {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.pieces.pop_front() {
            None if self.is_stuck => Poll::Pending,
            piece => Poll::Ready(piece.map(|piece| piece.map(Frame::data))),
        }
    }
}

#[derive(Default)]
struct Seen {
    sessions: Vec<HeaderValue>,
    events: Vec<String>,
}

const METHODS: [&str; 23] = [
    "x/now",
    "x/wait",
    "x/panic",
    "x/yield",
    "x/stream",
    "x/stream-wait",
    "x/stream-panic",
    "x/ask",
    "x/denied",
    "x/authpanic",
    "ping",
    "tools/list",
    "tools/call",
    "initialize",
    "initialize",
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "subscriptions/listen",
    "notifications/cancelled",
    "notifications/initialized",
];

fn message(chance: &mut Chance, is_modern: bool) -> Value {
    if chance.one_in(30) {
        return json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    }
    let uri = chance.of(&["wait", "panic", "yield", "a", "b"]);
    let mut params = json!({
        "name": "t",
        "uri": uri,
        "protocolVersion": chance.of(&["2025-11-25", "2025-03-26", "2024-11-05"]),
        "capabilities": {"elicitation": {}},
        "requestId": chance.below(6),
        "notifications": {"toolsListChanged": true, "resourceSubscriptions": [uri]},
        "pad": "p".repeat(chance.of(&[0, 0, 0, 0, 5000, 9000, 30_000])),
    });
    if is_modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        });
    }
    let method = if chance.one_in(8) { "initialize" } else { chance.of(&METHODS) };
    let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if !chance.one_in(4) {
        message["id"] = chance.below(6).into();
    }
    message
}

fn request(chance: &mut Chance, seen: &Seen) -> Request<Slow> {
    let method = match chance.below(10) {
        0 if chance.one_in(3) => Method::DELETE,
        1 | 2 => Method::GET,
        _ => Method::POST,
    };
    let mut head = Request::builder().uri("/mcp").header("content-type", "application/json");
    head = head.header("x-peer", chance.of(&["a", "a", "b", "b", "none", "none", "fresh", "fresh", "panic"]));
    head = head.header("accept", chance.of(&["*/*", "*/*", "*/*", "application/json", "text/event-stream"]));
    let is_modern = method == Method::POST && chance.one_in(3);
    if !is_modern && !seen.sessions.is_empty() && !chance.one_in(4) {
        head = head.header("mcp-session-id", chance.of(&seen.sessions));
    }
    if method == Method::GET && !seen.events.is_empty() && chance.one_in(2) {
        head = head.header("last-event-id", chance.of(&seen.events));
    }
    let body = if is_modern {
        let message = message(chance, true);
        head = head.header("mcp-protocol-version", "2026-07-28");
        head = head.header("mcp-method", message["method"].as_str().unwrap_or_default()).header("mcp-name", "t");
        message
    } else if chance.one_in(5) {
        (0..chance.below(5)).map(|_| message(chance, false)).collect()
    } else {
        message(chance, false)
    };
    let mut request = head.method(method).body(slow(chance, &Bytes::from(body.to_string()))).unwrap();
    if chance.one_in(5) {
        request.extensions_mut().insert(Principal::new(chance.of(&["one", "two"])));
    }
    request
}

fn slow(chance: &mut Chance, text: &Bytes) -> Slow {
    let mut pieces: VecDeque<_> = text.chunks(3000).map(|piece| Ok(text.slice_ref(piece))).collect();
    let mut is_stuck = false;
    match chance.below(40) {
        0 => pieces.push_back(Err("broken")),
        1 => is_stuck = true,
        2 => drop(pieces.pop_back()),
        _ => {}
    }
    Slow { pieces, waits: chance.one_in(2), is_stuck }
}

/// Limits that are reached all the time.
fn limits() -> Limits {
    let limits = Limits::default().handler_time(Duration::from_secs(200)).ask_time(Duration::from_secs(50));
    let limits = limits.in_flight(4).in_flight_by_caller(6).in_flight_in_all(14);
    let limits = limits.listeners_by_caller(3).listeners(7).sessions_by_caller(3).sessions(8);
    let limits = limits.body_bytes(25_000).body_bytes_by_caller(30_000).body_bytes_in_all(60_000);
    limits.queue_bytes(2560).queue_bytes_by_caller(6000).queue_bytes_in_all(15_000)
}

fn serve(handler: Anything, keeps: bool) -> StreamableHttpService {
    let fresh = AtomicU32::new(0);
    let builder = StreamableHttpService::builder(handler)
        .limits(limits())
        .peer(move |head| match head.headers["x-peer"].to_str().unwrap() {
            "none" => None,
            "panic" => panic(),
            "fresh" => Some(PeerKey::new(fresh.fetch_add(1, Ordering::SeqCst).to_string())),
            name => Some(PeerKey::new(name)),
        })
        .authorize(|attempt| match attempt.method() {
            "x/denied" => Err(Denied::new()),
            "x/authpanic" => panic(),
            _ => Ok(()),
        });
    if keeps { builder.event_store(EventStore::InMemory).build().unwrap() } else { builder.build().unwrap() }
}

/// What is under way.
struct Crowd {
    service: StreamableHttpService,
    chance: Chance,
    seen: Seen,
    pending: Vec<Pin<Box<ResponseFuture<Slow>>>>,
    bodies: Vec<Pin<Box<ResponseBody>>>,
}

impl Crowd {
    async fn step(&mut self) {
        match self.chance.below(12) {
            0..=4 => {
                let request = request(&mut self.chance, &self.seen);
                self.pending.push(Box::pin(self.service.handle(request)));
            }
            5 if !self.pending.is_empty() => drop(self.pending.swap_remove(self.chance.index(self.pending.len()))),
            6 if !self.bodies.is_empty() => drop(self.bodies.swap_remove(self.chance.index(self.bodies.len()))),
            7 => {
                let seconds = self.chance.of(&[0, 0, 0, 0, 1, 1, 1, 11, 11, 40, 400]);
                tokio::time::sleep(Duration::from_secs(seconds)).await;
            }
            8 => self.service.changes().tools_list_changed(),
            9 => self.service.changes().resource_updated("a"),
            _ => tokio::task::yield_now().await,
        }
        self.wait();
        self.read();
    }

    /// Polls some of those that wait for an answer.
    fn wait(&mut self) {
        for mut future in std::mem::take(&mut self.pending) {
            if self.chance.one_in(3) {
                self.pending.push(future);
                continue;
            }
            match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => self.pending.push(future),
                Poll::Ready(response) => {
                    self.seen.sessions.extend(response.headers().get("mcp-session-id").cloned());
                    self.bodies.push(Box::pin(response.into_body()));
                }
            }
        }
    }

    /// Reads an event of some answers.
    fn read(&mut self) {
        for mut body in std::mem::take(&mut self.bodies) {
            if self.chance.one_in(2) {
                self.bodies.push(body);
                continue;
            }
            match body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => self.bodies.push(body),
                Poll::Ready(None) => {}
                Poll::Ready(Some(frame)) => {
                    let data = frame.unwrap().into_data().unwrap();
                    let text = String::from_utf8_lossy(&data);
                    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
                    self.seen.events.extend(ids.map(str::to_owned));
                    self.bodies.push(body);
                }
            }
        }
    }

    /// All leave, perhaps while the server is drained.
    async fn leave(mut self) {
        let mut drained = None;
        if self.chance.one_in(2) {
            let (service, within) = (self.service.clone(), Duration::from_secs(self.chance.of(&[0, 1, 100_000])));
            drained = Some(tokio::spawn(async move { service.drain(within).await }));
            settled().await;
        }
        drop((self.pending, self.bodies));
        if let Some(drained) = drained {
            tokio::time::timeout(Duration::from_secs(3000), drained).await.expect("a drain ends").unwrap();
        }
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
        settled().await;
    }
}

async fn run(seed: u64) {
    let handler = Anything::default();
    let sessions = Arc::clone(&handler.sessions);
    let service = serve(handler, seed % 2 == 0);
    let chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut crowd = Crowd { service: service.clone(), chance, seen: Seen::default(), pending: vec![], bodies: vec![] };
    for _ in 0..400 {
        crowd.step().await;
    }
    crowd.leave().await;

    let shared = &service.shared;
    let (admission, lifecycle) = (&shared.server.admission, &shared.server.lifecycle);
    let all = [What::Requests, What::BodyBytes, What::Listeners, What::Sessions, What::Hooks, What::QueueBytes];
    assert_eq!(all.map(|what| admission.held(what)), [0; 6], "{seed}");
    assert_eq!((admission.accounts(), lifecycle.unread.len(), lifecycle.waiting()), (0, 0, 0), "{seed}");
    assert_eq!((shared.hub.len(), shared.sessions.kept()), (0, 0), "{seed}");
    assert_eq!(service.counts(), crate::Counts::default(), "{seed}");
    assert!(shared.sessions.store().is_none_or(|store| store.kept() == (0, 0)), "{seed}");
    let sessions = sessions.lock().unwrap();
    assert!(sessions.values().all(|heard| *heard == (1, 1)), "{seed}: the beginning and the end, once: {sessions:?}");
}

#[test]
fn whatever_clients_do_nothing_is_left() {
    for seed in 1..=10 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(seed));
    }
}
