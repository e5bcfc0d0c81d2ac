//! The server under test, whose handler keeps record of every call, and stand-ins for what may stand in its place.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mcp_transport::{
    CancelCause, Capabilities, Era, McpError, McpHandler, Progress, Question, Reply, Request, RequestContext,
    Revisions, ServerInfo, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::http1::{Connector, Stream};
use crate::proxy::tcp;

/// One run of the handler.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub era: Era,
    /// How it ended, and when.
    pub end: Option<(End, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Answered,
    /// Its future was dropped, and what its context said was the cause.
    Dropped(Option<CancelCause>),
}

/// All runs of `tools/call`, in the order of their beginning.
#[derive(Clone, Default)]
pub struct Runs(Arc<Mutex<Vec<Run>>>);

impl Runs {
    pub fn list(&self) -> Vec<Run> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Run>> {
        self.0.lock().expect("nobody panicked")
    }
}

/// One tool, `work`: it reports progress `tell` times, pauses before each report and before its answer, asks whether the
/// client is there if it is to `ping`, and answers with its `word`.
struct Worker(Runs);

#[derive(Deserialize)]
struct Work {
    word: String,
    tell: u32,
    pause_ms: u64,
    #[serde(default)]
    ping: bool,
}

impl McpHandler for Worker {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("dual", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => Reply::of(json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})),
            "tools/call" => {
                let Work { word, tell, pause_ms, ping } = request.arguments()?;
                let mut presence = Presence::enter(&self.0, &cx);
                for step in 0..tell {
                    tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                    cx.progress(Progress::new(f64::from(step))).await;
                }
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
                if ping {
                    cx.ask("there", Question::new("ping", json!({}))?).await?;
                }
                presence.end = End::Answered;
                Reply::of(json!({"content": [{"type": "text", "text": word}]}))
            }
            _ => Err(McpError::method_not_found()),
        }
    }
}

struct Presence {
    runs: Runs,
    number: usize,
    cx: RequestContext,
    end: End,
}

impl Presence {
    fn enter(runs: &Runs, cx: &RequestContext) -> Self {
        let mut list = runs.lock();
        list.push(Run { era: cx.era(), end: None });
        Self { runs: runs.clone(), number: list.len() - 1, cx: cx.clone(), end: End::Dropped(None) }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let end = match self.end {
            End::Dropped(_) => End::Dropped(self.cx.cancel_cause()),
            End::Answered => End::Answered,
        };
        self.runs.lock()[self.number].end = Some((end, Instant::now()));
    }
}

/// A server of its own, and the record of its handler.
#[derive(Clone)]
pub struct Server {
    pub service: StreamableHttpService,
    pub runs: Runs,
}

impl Server {
    pub fn new(revisions: Revisions) -> Self {
        let runs = Runs::default();
        let service = StreamableHttpService::builder(Worker(runs.clone())).revisions(revisions).build();
        Self { service: service.expect("a service"), runs }
    }

    /// The way to it, in memory.
    pub fn connector(&self) -> Connector {
        let server = self.clone();
        by_hand(move |stream| server.clone().connection(stream))
    }

    /// The way to it, over a socket.
    pub async fn listen(&self) -> Connector {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port on loopback");
        let address = listener.local_addr().expect("the port's address");
        let server = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("TCP_NODELAY");
                tokio::spawn(server.clone().connection(Box::new(stream)));
            }
        });
        tcp(address)
    }

    async fn connection(self, stream: Box<dyn Stream>) {
        let service = TowerToHyperService::new(self.service);
        // One that ends in an error was cut by the test.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }
}

/// A server that treats each connection so.
pub fn by_hand<F, Fut>(serve: F) -> Connector
where
    F: Fn(Box<dyn Stream>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Arc::new(move || {
        let (near, far) = duplex(1 << 16);
        tokio::spawn(serve(Box::new(far)));
        Box::pin(async move { Ok(Box::new(near) as Box<dyn Stream>) })
    })
}

/// A stand-in that gives every request this answer.
pub fn answering(status: u16, body: impl Into<String>) -> Connector {
    let body = body.into();
    by_hand(move |mut stream| {
        let body = body.clone();
        async move {
            read_request(&mut stream).await;
            respond(&mut stream, status, &body).await;
        }
    })
}

/// Nobody listens.
pub fn refusing() -> Connector {
    Arc::new(|| Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) }))
}

/// It takes connections and says nothing.
pub fn silent() -> Connector {
    by_hand(|mut stream| async move {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
    })
}

/// One address where first one server is, then the next; the last one stays.
pub fn one_after_another(connectors: impl IntoIterator<Item = Connector>) -> Connector {
    let connectors = Mutex::new(connectors.into_iter().collect::<VecDeque<_>>());
    Arc::new(move || {
        let mut connectors = connectors.lock().expect("nobody panicked");
        if connectors.len() > 1 {
            return connectors.pop_front().expect("one that goes")();
        }
        connectors.front().expect("one that stays")()
    })
}

/// Reads one request, and returns its message.
pub async fn read_request(stream: &mut Box<dyn Stream>) -> Value {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (_, rest) = head.split_once("Content-Length: ").expect("a length");
            let length: usize = rest.lines().next().and_then(|length| length.parse().ok()).expect("a length");
            if body.len() == length {
                return serde_json::from_str(body).expect("a message");
            }
        }
        assert_ne!(stream.read_buf(&mut bytes).await.expect("a request"), 0);
    }
}

/// Writes an answer of JSON.
pub async fn respond(stream: &mut Box<dyn Stream>, status: u16, body: &str) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).await.expect("a client");
}
