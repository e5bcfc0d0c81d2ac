//! A handler that does what the method says, requests of every revision, and answers taken apart.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mcp_transport::testing::request;
use mcp_transport::{
    Capabilities, Era, Exchange, McpError, McpHandler, Misuse, Notification, Observer, Principal, Reply,
    RequestContext, ResponseBody, Revision, ServerInfo, Session, SessionEnd, StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

pub const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// Random numbers, the same again for the same seed.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Drawn from the clock, or given by `STRESS_SEED`. Printed where the test fails.
    pub fn new() -> Self {
        let given = std::env::var("STRESS_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
        let seed = given.unwrap_or_else(|| u64::from(now()));
        println!("STRESS_SEED={seed}");
        Self::seeded(seed)
    }

    /// Another sequence for each number.
    pub fn fork(&self, number: u64) -> Self {
        Self::seeded(self.0 ^ number.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % most
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Does what the method says, and panics where a name says so.
#[derive(Default)]
pub struct Acts {
    pub opened: AtomicUsize,
    pub closed: AtomicUsize,
    /// Goes into every session.
    pub trace: Arc<()>,
}

/// What the application keeps in a session.
struct Kept(#[allow(dead_code)] Arc<()>);

/// Panics past the hook that would write to the log of the tests.
fn boom() -> ! {
    resume_unwind(Box::new("on purpose"))
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        boom();
    }
}

impl McpHandler for Acts {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("stress", "1")
    }

    fn capabilities(&self) -> Capabilities {
        let lists = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
        lists.resources_subscribe().logging()
    }

    // Not an `async fn`, so that it can panic before there is a future.
    #[allow(clippy::manual_async_fn)]
    fn request(
        &self,
        request: mcp_transport::Request,
        cx: RequestContext,
    ) -> impl Future<Output = Result<Reply, McpError>> + Send {
        if request.method() == "panic/once" {
            boom();
        }
        async move {
            match request.method() {
                "x/slow" => sleep(Duration::from_millis(20)).await,
                "x/later" | "panic/later" => {
                    for _ in 0..3 {
                        tokio::task::yield_now().await;
                    }
                    sleep(Duration::from_millis(1)).await;
                }
                "x/stream" | "panic/stream" => tell(&cx, 5, 10).await?,
                // More than any queue holds.
                "x/flood" => tell(&cx, 200, 16 << 10).await?,
                "x/late-flood" => {
                    sleep(Duration::from_millis(5)).await;
                    tell(&cx, 200, 16 << 10).await?;
                }
                // For ever, unless it is cancelled.
                "x/wait" => pending::<()>().await,
                "x/hang" => {
                    tell(&cx, 1, 10).await?;
                    pending::<()>().await;
                }
                "panic/drop" => {
                    let _bomb = Bomb;
                    pending::<()>().await;
                }
                _ => {}
            }
            if request.method().starts_with("panic/") {
                boom();
            }
            Reply::of(json!({"tools": [], "did": request.method()}))
        }
    }

    async fn notification(&self, notification: Notification, _: RequestContext) {
        if notification.method().starts_with("panic/") {
            boom();
        }
    }

    async fn subscribe(&self, uri: String, _: RequestContext) -> Result<(), McpError> {
        tokio::task::yield_now().await;
        if uri.starts_with("panic/") {
            boom();
        }
        Ok(())
    }

    fn session_opened(&self, session: &Session) {
        if session.principal().map(Principal::as_str) == Some("panic/opened") {
            boom();
        }
        self.opened.fetch_add(1, Ordering::SeqCst);
        session.insert(Kept(Arc::clone(&self.trace)));
    }

    fn session_closed(&self, session: &Session, _: SessionEnd) {
        self.closed.fetch_add(1, Ordering::SeqCst);
        if session.principal().map(Principal::as_str) == Some("panic/closed") {
            boom();
        }
    }
}

async fn tell(cx: &RequestContext, messages: usize, bytes: usize) -> Result<(), McpError> {
    for _ in 0..messages {
        cx.notify("notifications/x", json!({"filler": "x".repeat(bytes)})).await?;
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Counts the panics that the application is told of.
#[derive(Clone, Default)]
pub struct Panics(Arc<AtomicUsize>);

impl Panics {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Observer for Panics {
    fn panicked(&self, _: &Exchange<'_>, message: &str) {
        assert_eq!(message, "on purpose");
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn misuse(&self, misuse: &Misuse) {
        assert!(matches!(misuse, Misuse::HookPanicked { .. }), "{misuse}");
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A request of `revision` in its right form, with this id.
pub fn call(revision: Revision, method: &str, params: Value, id: usize) -> Request<Bytes> {
    edited(request(revision, method, params), |message| message["id"] = json!(id))
}

/// The same as a notification.
pub fn notify(revision: Revision, method: &str) -> Request<Bytes> {
    edited(request(revision, method, json!({})), |message| {
        message.as_object_mut().expect("an object").remove("id");
    })
}

fn edited(request: Request<Bytes>, edit: impl FnOnce(&mut Value)) -> Request<Bytes> {
    request.map(|body| {
        let mut message = serde_json::from_slice(&body).expect("a message");
        edit(&mut message);
        Bytes::from(message.to_string())
    })
}

pub fn listen(uris: &[&str], id: usize) -> Request<Bytes> {
    let filter = json!({"toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": uris});
    call(Revision::V2026_07_28, "subscriptions/listen", json!({ "notifications": filter }), id)
}

pub fn initialize(revision: Revision) -> Request<Bytes> {
    let client = json!({"name": "stress", "version": "1"});
    let params = json!({"protocolVersion": revision.as_str(), "capabilities": {"roots": {}}, "clientInfo": client});
    call(Revision::V2024_11_05, "initialize", params, 1)
}

/// Puts a request into a session.
pub fn inside(session: &str, mut request: Request<Bytes>) -> Request<Bytes> {
    request.headers_mut().insert("mcp-session-id", HeaderValue::from_str(session).expect("an id"));
    request
}

/// A GET or DELETE of a session.
pub fn bare(method: Method, session: &str) -> Request<Bytes> {
    let request = Request::builder().method(method).uri("/mcp").header("accept", "text/event-stream");
    inside(session, request.body(Bytes::new()).expect("a request"))
}

/// In the name of this principal.
pub fn named(name: &str, mut request: Request<Bytes>) -> Request<Bytes> {
    request.extensions_mut().insert(Principal::new(name));
    request
}

pub async fn send(service: &StreamableHttpService, request: Request<Bytes>) -> Response<ResponseBody> {
    service.handle(request.map(Full::new)).await
}

/// Opens a session and returns its id.
pub async fn open(service: &StreamableHttpService, initialize: Request<Bytes>) -> String {
    let answer = send(service, initialize).await;
    assert_eq!(answer.status(), StatusCode::OK);
    answer.headers()["mcp-session-id"].to_str().expect("an id").to_owned()
}

/// Says that the session's client is ready.
pub async fn ready(service: &StreamableHttpService, revision: Revision, session: &str) {
    let answer = send(service, inside(session, notify(revision, "notifications/initialized"))).await;
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
}

/// The messages of an answer that ends.
pub async fn messages(answer: Response<ResponseBody>) -> Vec<Value> {
    let body = answer.into_body().collect().await.unwrap_or_else(|never| match never {}).to_bytes();
    let text = std::str::from_utf8(&body).expect("UTF-8");
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let texts: Vec<_> = if text.starts_with('{') { vec![text] } else { events.collect() };
    texts.into_iter().map(|text| serde_json::from_str(text).expect("JSON")).collect()
}

/// Waits for what must come about.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(15), waiting).await.unwrap_or_else(|_| panic!("in vain for {what}"));
}

/// Lets go of a service at whose counts there is nothing left to see: its handler goes, and all it kept in sessions.
pub fn nothing_is_left(service: StreamableHttpService, acts: Arc<Acts>) {
    let counts = service.counts();
    assert_eq!((counts.in_flight, counts.streams, counts.sessions), (0, 0, 0));
    assert_eq!(acts.opened.load(Ordering::SeqCst), acts.closed.load(Ordering::SeqCst));
    let trace = Arc::clone(&acts.trace);
    drop(service);
    assert!(Arc::into_inner(acts).is_some(), "something holds on to the service");
    assert_eq!(Arc::strong_count(&trace), 1, "something holds on to a session");
}

pub fn is_modern(revision: Revision) -> bool {
    revision.era() == Era::Modern
}
