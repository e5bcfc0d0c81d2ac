//! What stays open and says nothing.

use std::time::Duration;

use crate::case::{INITIALIZE, INITIALIZED, post};
use crate::client::Client;
use crate::server::Server;

/// How many of each.
pub const COUNT: usize = 9_000;

/// Bytes of resident memory for each of so many idle things, opened by `open`.
async fn each(server: &Server, mut open: impl AsyncFnMut() -> Option<Client>) -> f64 {
    let mut open_ones = Vec::new();
    // The first ones make the process grow to its working size.
    for _ in 0..COUNT / 10 {
        open_ones.extend(open().await);
    }
    let before = server.resident();
    for _ in 0..COUNT {
        open_ones.extend(open().await);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    (server.resident() - before) / COUNT as f64
}

/// Idle sessions, all opened on one connection.
pub async fn sessions(path: &str) -> f64 {
    let server = Server::start(path, &[]);
    let mut client = Client::connect(server.port).await;
    each(&server, async || {
        client.open_session().await;
        None
    })
    .await
}

/// Idle connections that have had an answer.
pub async fn connections(path: &str, request: &[u8]) -> f64 {
    let server = Server::start(path, &[]);
    let port = server.port;
    each(&server, async || {
        let mut client = Client::connect(port).await;
        client.ask(request).await;
        client.shrink();
        Some(client)
    })
    .await
}

/// Idle `subscriptions/listen` streams of 2026-07-28, one a connection.
pub async fn listens(path: &str) -> f64 {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
    let request = post("/mcp", headers, body);
    let server = Server::start(path, &[]);
    let port = server.port;
    each(&server, async || {
        let mut client = Client::connect(port).await;
        client.begin(&request, true).await;
        Some(client)
    })
    .await
}

/// Idle GET streams, each of a session of its own, which was opened on the same connection.
pub async fn gets(path: &str) -> f64 {
    let server = Server::start(path, &[]);
    let port = server.port;
    each(&server, async || {
        let mut client = Client::connect(port).await;
        let session = client.open_session().await;
        client.begin(&get(&format!("mcp-session-id: {session}\r\n")), false).await;
        Some(client)
    })
    .await
}

/// Idle streams of the floor, on connections that have had two POSTs before, as those of a session have.
pub async fn floor_gets(path: &str) -> f64 {
    let server = Server::start(path, &[]);
    let port = server.port;
    let (initialize, initialized) = (post("/raw", "", INITIALIZE), post("/raw", "", &with_id(INITIALIZED)));
    each(&server, async || {
        let mut client = Client::connect(port).await;
        client.ask(&initialize).await;
        client.ask(&initialized).await;
        client.begin(&get(""), false).await;
        Some(client)
    })
    .await
}

/// The floor knows no notifications.
fn with_id(notification: &str) -> String {
    notification.replace(r#""method""#, r#""id":1,"params":{},"method""#)
}

fn get(headers: &str) -> Vec<u8> {
    format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost\r\nuser-agent: load/0\r\naccept: text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n{headers}\r\n"
    )
    .into_bytes()
}
