//! The server that clients walk against, on the crate's public API: `interop-server` serves `/mcp` on a free port,
//! `interop-server --stdio DIRECTORY` one client on its standard input and output.
//!
//! On stdio it keeps what it has seen in a file of the directory, once it ends.
//!
//! `/state` tells what is open, and what the clients have done so far. Whatever a server should not have to see — a
//! message refused, a handler that fails — goes to stderr.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request as HttpRequest;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use mcp_transport::{
    Capabilities, EventStore, Exchange, Limits, LogLevel, McpError, McpHandler, Misuse, Observer, Progress, Refusal,
    Reply, Request, RequestContext, ServerInfo, Session, SessionEnd, StdioTransport, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// How often what happened.
#[derive(Clone, Default)]
struct Tally(Arc<Mutex<BTreeMap<String, u64>>>);

impl Tally {
    fn add(&self, what: impl Into<String>) {
        *self.counts().entry(what.into()).or_default() += 1;
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of everything whose name begins so.
    fn sum(&self, prefix: &str) -> u64 {
        self.counts().iter().filter(|(what, _)| what.starts_with(prefix)).map(|(_, count)| count).sum()
    }
}

struct Tools {
    tally: Tally,
    cut: Cut,
}

/// Whether the answer that is read next breaks off.
#[derive(Clone, Default)]
struct Cut(Arc<AtomicBool>);

/// The resource that clients may subscribe to.
const RESOURCE: &str = "interop://resource";

#[derive(Deserialize)]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct Count {
    to: u32,
    interval_ms: u64,
}

#[derive(Deserialize)]
struct Sleep {
    ms: u64,
}

impl McpHandler for Tools {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("interop", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed().resources_subscribe().logging()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let text = match (request.method(), request.name()) {
            ("tools/list", _) => return Reply::of(tools()),
            ("resources/list", _) => {
                return Reply::of(json!({ "resources": [{ "uri": RESOURCE, "name": "resource" }] }));
            }
            ("tools/call", Some("echo")) => request.arguments::<Echo>()?.text,
            ("tools/call", Some("count")) => count(request.arguments()?, &cx).await?,
            ("tools/call", Some("poll")) => poll(request.arguments()?, &cx).await,
            ("tools/call", Some("break")) => self.break_off(request.arguments()?, &cx).await,
            ("tools/call", Some("sleep")) => self.sleep(request.arguments()?, cx).await,
            ("tools/call", Some("cancelled")) => self.tally.sum("cancelled").to_string(),
            ("tools/call", Some("finished")) => self.tally.sum("finished").to_string(),
            ("tools/call", Some("change")) => {
                cx.changes().tools_list_changed();
                cx.changes().resource_updated(RESOURCE);
                "changed".to_owned()
            }
            ("tools/call", _) => return Err(McpError::invalid_params("There is no such tool")),
            _ => return Err(McpError::method_not_found()),
        };
        Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
    }
}

impl Tools {
    /// Breaks the connection at the second report of progress.
    async fn break_off(&self, Count { to, interval_ms }: Count, cx: &RequestContext) -> String {
        for step in 1..=to {
            tokio::time::sleep(Duration::from_millis(interval_ms)).await;
            self.cut.0.store(step == 2, Ordering::SeqCst);
            cx.progress(Progress::new(f64::from(step)).total(f64::from(to))).await;
        }
        apart(interval_ms).await;
        format!("broke off before {to}")
    }

    async fn sleep(&self, Sleep { ms }: Sleep, cx: RequestContext) -> String {
        let _asleep = Asleep { cx, tally: self.tally.clone() };
        tokio::time::sleep(Duration::from_millis(ms)).await;
        format!("slept {ms} ms")
    }
}

/// Notes how a sleep ends.
struct Asleep {
    cx: RequestContext,
    tally: Tally,
}

impl Drop for Asleep {
    fn drop(&mut self) {
        match self.cx.cancel_cause() {
            Some(cause) => self.tally.add(format!("cancelled {cause:?}")),
            None => self.tally.add("finished"),
        }
    }
}

async fn count(Count { to, interval_ms }: Count, cx: &RequestContext) -> Result<String, McpError> {
    for step in 1..=to {
        tokio::time::sleep(Duration::from_millis(interval_ms)).await;
        cx.progress(Progress::new(f64::from(step)).total(f64::from(to))).await;
        cx.log(LogLevel::Info, format!("{step} of {to}")).await?;
    }
    apart(interval_ms).await;
    Ok(format!("counted to {to}"))
}

/// Keeps the last report and the answer apart. Where a client reads both at once, those of TypeScript forget the report:
/// they look at notifications only after all that came with them.
async fn apart(interval_ms: u64) {
    tokio::time::sleep(Duration::from_millis(interval_ms)).await;
}

/// Lets the connection go before each report of progress.
async fn poll(Count { to, interval_ms }: Count, cx: &RequestContext) -> String {
    let interval = Duration::from_millis(interval_ms);
    for step in 1..=to {
        cx.close_connection(interval / 2);
        tokio::time::sleep(interval).await;
        cx.progress(Progress::new(f64::from(step)).total(f64::from(to))).await;
    }
    apart(interval_ms).await;
    format!("polled to {to}")
}

fn tools() -> Value {
    let number = json!({ "type": "integer", "minimum": 0 });
    let tool = |name, properties: Value| {
        let required: Vec<_> = properties.as_object().into_iter().flat_map(|all| all.keys().cloned()).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        json!({ "name": name, "inputSchema": schema })
    };
    json!({ "tools": [
        tool("echo", json!({ "text": { "type": "string" } })),
        tool("count", json!({ "to": number, "interval_ms": number })),
        tool("poll", json!({ "to": number, "interval_ms": number })),
        tool("break", json!({ "to": number, "interval_ms": number })),
        tool("sleep", json!({ "ms": number })),
        tool("cancelled", json!({})),
        tool("finished", json!({})),
        tool("change", json!({})),
    ] })
}

/// Counts the life of sessions, and complains.
struct Watch(Tally);

impl Observer for Watch {
    fn refused(&self, refusal: &Refusal) {
        eprintln!("refused: {refusal}");
    }

    fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
        eprintln!("panicked in {}: {message}", exchange.method());
    }

    fn internal_error(&self, exchange: &Exchange<'_>, error: &McpError) {
        eprintln!("failed in {}: {error}", exchange.method());
    }

    fn misuse(&self, misuse: &Misuse) {
        eprintln!("misuse: {misuse}");
    }

    fn session_opened(&self, _: &Session) {
        self.0.add("session opened");
    }

    fn session_closed(&self, _: &Session, end: SessionEnd) {
        self.0.add(format!("session {end:?}"));
    }
}

/// Counts requests by method, whether they name a session, and status. A GET with the id of an event counts as another
/// method.
async fn count_request(tally: Tally, cut: Cut, request: HttpRequest, next: Next) -> Response {
    let session = if request.headers().contains_key("mcp-session-id") { "with a session" } else { "without a session" };
    let resuming = if request.headers().contains_key("last-event-id") { "resuming " } else { "" };
    let method = request.method().clone();
    let response = next.run(request).await;
    tally.add(format!("{resuming}{method} {session} {}", response.status().as_u16()));
    if method == "POST" { response.map(|body| Body::new(Breaking { body, cut })) } else { response }
}

/// A body that breaks off when it is told to, and its connection with it.
struct Breaking {
    body: Body,
    cut: Cut,
}

impl HttpBody for Breaking {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        if self.cut.0.swap(false, Ordering::SeqCst) {
            return Poll::Ready(Some(Err(axum::Error::new("as the tool says"))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [stdio, directory] if stdio == "--stdio" => serve_stdio(Path::new(directory)).await,
        _ => serve_http().await,
    }
}

/// Serves the client that started this process.
async fn serve_stdio(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let tally = Tally::default();
    // Hosts wait for about two seconds before they kill.
    let limits = Limits::default().drain_time(Duration::from_secs(1));
    let watch = Watch(tally.clone());
    let transport = StdioTransport::builder(Tools { tally: tally.clone(), cut: Cut::default() })
        .observer(watch)
        .limits(limits)
        .build()?;
    println!("printed");
    let end = transport.serve().await?;
    let report = json!({ "end": format!("{end:?}"), "seen": *tally.counts() });
    std::fs::write(directory.join(format!("{}.json", std::process::id())), report.to_string())?;
    Ok(())
}

async fn serve_http() -> Result<(), Box<dyn std::error::Error>> {
    let tally = Tally::default();
    let cut = Cut::default();
    let tools = Tools { tally: tally.clone(), cut: cut.clone() };
    let builder = StreamableHttpService::builder(tools).observer(Watch(tally.clone()));
    let service = builder.event_store(EventStore::InMemory).build()?;
    let state = {
        let (service, tally) = (service.clone(), tally.clone());
        move || async move {
            let counts = service.counts();
            let open = json!({
                "requests": counts.in_flight, "streams": counts.streams, "sessions": counts.sessions,
            });
            json!({ "open": open, "seen": *tally.counts() }).to_string()
        }
    };
    let app = Router::new()
        .route_service("/mcp", service)
        .layer(from_fn(move |request, next| count_request(tally.clone(), cut.clone(), request, next)))
        .route("/state", get(state));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    // Without it, small answers wait for the peer's acknowledgement.
    axum::serve(listener.tap_io(|socket| drop(socket.set_nodelay(true))), app).await?;
    Ok(())
}
