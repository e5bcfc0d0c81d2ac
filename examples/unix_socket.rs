//! A server on a Unix socket: any number of clients, each known by the user it runs as.
//!
//!     cargo run --example unix_socket -- --socket /tmp/notes.sock
//!
//! The kernel says who is at the other end, so that is the principal; nobody has to prove anything.

#[cfg(not(unix))]
fn main() {
    eprintln!("This system has no Unix sockets.");
}

#[cfg(unix)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().skip_while(|argument| argument != "--socket").nth(1);
    unix::serve(path.as_deref().unwrap_or("/tmp/mcp.sock")).await
}

#[cfg(unix)]
mod unix {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    use mcp_transport::{
        Capabilities, Changes, McpError, McpHandler, Principal, Reply, Request, RequestContext, ServerInfo,
        StdioTransport,
    };
    use serde_json::json;
    use tokio::net::unix::UCred;
    use tokio::net::{UnixListener, UnixStream};

    /// How often each user has called.
    #[derive(Default)]
    struct Counter(Mutex<HashMap<Principal, u64>>);

    impl McpHandler for Counter {
        fn server_info(&self) -> ServerInfo {
            ServerInfo::new("unix_socket", env!("CARGO_PKG_VERSION"))
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::new().tools()
        }

        async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
            match request.method() {
                "tools/list" => Reply::of(json!({ "tools": [{
                    "name": "count",
                    "description": "Says how often you have called, and from which process you call now.",
                    "inputSchema": { "type": "object" },
                }] })),
                "tools/call" => {
                    let who = cx.principal().ok_or_else(|| McpError::internal("a stream without a principal"))?;
                    let mut counts = self.0.lock().unwrap();
                    let count = counts.entry(who.clone()).or_default();
                    *count += 1;
                    // What else is known of the peer stands in the stream's extensions.
                    let process = cx.extensions().get::<UCred>().and_then(UCred::pid).unwrap_or_default();
                    let text = format!("{} has called {count} times, now from process {process}", who.as_str());
                    Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
                }
                _ => Err(McpError::method_not_found()),
            }
        }
    }

    pub(super) async fn serve(path: &str) -> Result<(), Box<dyn std::error::Error>> {
        // One that an earlier run left behind.
        drop(std::fs::remove_file(path));
        let listener = UnixListener::bind(path)?;
        println!("listening on {path}");
        // One handler and one handle for changes, whoever comes; one transport for each stream.
        let (counter, changes) = (Arc::new(Counter::default()), Changes::new());
        loop {
            let (socket, _) = listener.accept().await?;
            let transport = transport(&counter, &changes, socket)?;
            tokio::spawn(async move {
                match transport.serve().await {
                    Ok(end) => println!("{end:?}"),
                    Err(error) => eprintln!("{error}"),
                }
            });
        }
    }

    fn transport(
        counter: &Arc<Counter>,
        changes: &Changes,
        socket: UnixStream,
    ) -> Result<StdioTransport, Box<dyn std::error::Error>> {
        let peer = socket.peer_cred()?;
        let mut extensions = http::Extensions::new();
        extensions.insert(peer);
        let (reader, writer) = socket.into_split();
        Ok(StdioTransport::builder(Arc::clone(counter))
            .io(reader, writer)
            .changes(changes)
            .principal(Principal::new(format!("user {}", peer.uid())))
            .extensions(extensions)
            .build()?)
    }
}
