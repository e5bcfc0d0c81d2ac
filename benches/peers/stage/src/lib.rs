//! The stage that is the same for all servers: one thread, hyper's HTTP/1, and what a tool says and hears.
//!
//! The server prints its port. With `NAGLE` in its environment Nagle's algorithm stays on; with `ONE_CONNECTION` it ends
//! with its first connection, so that a profiler sees a whole run.

use std::borrow::Cow;
use std::error::Error;
use std::io::Write;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// The arguments of every tool.
#[derive(Deserialize)]
pub struct Arguments<'a> {
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// The result of every tool.
#[derive(Serialize)]
pub struct CallResult<'a> {
    pub content: [Text<'a>; 1],
}

/// Its content.
#[derive(Serialize)]
pub struct Text<'a> {
    pub r#type: &'static str,
    pub text: &'a str,
}

impl<'a> CallResult<'a> {
    /// What echoes a text.
    pub fn echo(text: &'a str) -> Self {
        Self { content: [Text { r#type: "text", text }] }
    }
}

/// Serves every connection until the process is killed.
pub fn serve<S>(make: impl FnOnce() -> S)
where
    S: HttpService<Incoming, Future: Send> + Clone + Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::ResBody: Send + 'static,
    <S::ResBody as Body>::Data: Send,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(accept(make()));
}

async fn accept<S>(service: S)
where
    S: HttpService<Incoming, Future: Send> + Clone + Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::ResBody: Send + 'static,
    <S::ResBody as Body>::Data: Send,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let has = |name| std::env::var_os(name).is_some();
    let (nagle, one_connection) = (has("NAGLE"), has("ONE_CONNECTION"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    std::io::stdout().flush().expect("a reader");
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        socket.set_nodelay(!nagle).expect("a socket");
        let service = service.clone();
        let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(socket), service);
        if one_connection {
            let _ = connection.await;
            return;
        }
        tokio::spawn(connection);
    }
}
