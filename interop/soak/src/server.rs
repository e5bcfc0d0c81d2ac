//! The server of one round: a service on a real socket, and a byte stream for each client of that kind.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use mcp_transport::{
    Capabilities, Changes, EventStore, Limits, McpError, McpHandler, Question, Reply, Request, RequestContext,
    ServerInfo, StdioTransport, StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// Does what `params.do` says, and answers with `params.tag`.
pub struct Acts;

impl McpHandler for Acts {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("soak", "1")
    }

    fn capabilities(&self) -> Capabilities {
        let lists = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
        lists.resources_subscribe()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let params: Value = request.params()?;
        match params["do"].as_str().unwrap_or_default() {
            "wait" => sleep(Duration::from_millis(20)).await,
            "stream" => tell(&cx, 10, 100).await?,
            // More than a queue holds.
            "flood" => tell(&cx, 100, 4 << 10).await?,
            "hang" => sleep(Duration::from_secs(2)).await,
            "panic" => resume_unwind(Box::new("on purpose")),
            "ask" => {
                let question = Question::form("?", json!({"type": "object", "properties": {}}))?;
                cx.ask("q", question.timeout(Duration::from_millis(200))).await?;
            }
            "go" => {
                tell(&cx, 1, 10).await?;
                cx.close_connection(Duration::from_millis(10));
                tell(&cx, 2, 10).await?;
            }
            _ => {}
        }
        Reply::of(json!({"tag": params["tag"]}))
    }
}

async fn tell(cx: &RequestContext, messages: usize, bytes: usize) -> Result<(), McpError> {
    for _ in 0..messages {
        cx.notify("notifications/x", json!({"filler": "x".repeat(bytes)})).await?;
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

fn limits() -> Limits {
    let limits = Limits::default().session_idle(Duration::from_secs(1)).keep_alive(Duration::from_millis(100));
    limits.queue_bytes(64 << 10).stored_bytes(256 << 10).commit_after(Duration::from_millis(10))
}

/// A service, and the socket that it is served on.
pub struct Server {
    pub service: StreamableHttpService,
    pub address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    pub async fn start(changes: &Changes) -> Self {
        let builder = StreamableHttpService::builder(Arc::new(Acts)).limits(limits()).changes(changes);
        let service = builder.event_store(EventStore::InMemory).build().expect("a service");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let served = service.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(served.clone());
                connections.spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // A client that is gone is no fault of the server's.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { service, address, accepting }
    }

    /// Closes every connection.
    pub async fn stop(self) {
        self.accepting.abort();
        let _ = self.accepting.await;
    }
}

/// A transport on a byte stream.
pub fn stream(
    changes: &Changes,
    reader: impl AsyncRead + Send + 'static,
    writer: impl AsyncWrite + Send + 'static,
) -> StdioTransport {
    let limits = limits().drain_time(Duration::from_millis(200));
    let builder = StdioTransport::builder(Acts).io(reader, writer).limits(limits).changes(changes);
    builder.build().expect("a transport")
}
