//! An in-process client for the tests of an application (feature `testing`).
//!
//! No socket, no port, no server task: a [`Client`] calls the service as a framework would, in the shape of any
//! revision, and hands over every JSON-RPC message of the answer.
//!
//! ```
//! # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
//! # use serde::Deserialize;
//! # struct Calculator;
//! # #[derive(Deserialize)]
//! # struct Add { a: i64, b: i64 }
//! # impl McpHandler for Calculator {
//! #     fn server_info(&self) -> ServerInfo { ServerInfo::new("calculator", "1") }
//! #     fn capabilities(&self) -> Capabilities { Capabilities::new().tools() }
//! #     async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
//! #         if request.method() == "tools/list" { return Reply::of(json!({ "tools": [] })); }
//! #         let Add { a, b } = request.arguments()?;
//! #         Reply::of(json!({ "content": [{ "type": "text", "text": (a + b).to_string() }] }))
//! #     }
//! # }
//! use mcp_transport::testing::Client;
//! use mcp_transport::{Revision, StreamableHttpService};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let client = Client::new(StreamableHttpService::new(Calculator));
//! for revision in Revision::ALL {
//!     let sum = json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
//!     let answer = client.call(revision, "tools/call", sum).await;
//!     assert_eq!(answer.result()["content"][0]["text"], "3");
//! }
//! # }
//! ```
//!
//! A whole stack can be tested the same way, authentication and all: anything that serves HTTP requests and can be
//! cloned will do, such as an `axum::Router` with its layers. For a stack behind a socket, or a client of another
//! make, [`request`] writes the right request and leaves the sending to you.
//!
//! [`everywhere`](fn@everywhere) runs a handler under every revision on every transport, compares what clients read,
//! and looks for words of the wrong era.
//!
//! [`Client::session`] opens a session. What the server asks is answered by [`Call::answering`]; up to 2025-11-25 that
//! takes a session. Any other request, right or wrong, goes through [`Client::send`].
//!
//! A byte stream needs no client of ours: give the transport one end of a pipe, and write and read lines at the other.
//!
//! ```
//! # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
//! # struct Hello;
//! # impl McpHandler for Hello {
//! #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
//! #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
//! #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
//! # }
//! use mcp_transport::StdioTransport;
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (ours, theirs) = duplex(64 * 1024);
//! let (reader, writer) = split(theirs);
//! let transport = StdioTransport::new(Hello, reader, writer);
//! tokio::spawn(async move { transport.serve().await });
//!
//! let (reader, mut writer) = split(ours);
//! writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
//! let mut line = String::new();
//! BufReader::new(reader).read_line(&mut line).await?;
//! let response: serde_json::Value = serde_json::from_str(&line)?;
//! assert_eq!((&response["id"], &response["result"]), (&serde_json::json!(1), &serde_json::json!({})));
//! # Ok(())
//! # }
//! ```
//!
//! Under `#[tokio::test(start_paused = true)]` time passes only when everything waits, so that commit times, keep-alive
//! comments and deadlines are tested without waiting for them.
//!
//! What a test cannot go on without, the items here panic over, as the assertions of a test do.

mod answer;
mod answering;
mod client;
mod events;
mod everywhere;
mod request;
mod session;
#[cfg(test)]
mod tests;

use std::fmt;

pub use self::answer::{Answer, AnswerStream};
pub use self::client::{Body, Call, Client};
pub use self::everywhere::{Carrier, Everywhere, Outcome, Place, everywhere};
pub use self::request::{mirrored, request};
pub use self::session::ClientSession;

/// Ends the test that cannot go on.
#[track_caller]
#[allow(clippy::panic)] // this is the assertion of a test: it is nobody's server that ends here
fn fail(why: impl fmt::Display) -> ! {
    panic!("{why}")
}
