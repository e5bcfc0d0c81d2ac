//! Embeddable server-side transport for the Model Context Protocol (MCP).
//!
//! Clients speak five revisions of the protocol, which differ in handshake, sessions, headers, batches and streams. An
//! application implements one trait, [`McpHandler`], and this crate serves it to all of them from one endpoint. The
//! handler sees JSON-RPC requests and writes results in the terms of the newest revision; what an older client reads is
//! the transport's business.
//!
//! ```no_run
//! use mcp_transport::{
//!     Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
//! };
//! use serde_json::json;
//!
//! struct Hello;
//!
//! impl McpHandler for Hello {
//!     fn server_info(&self) -> ServerInfo {
//!         ServerInfo::new("hello", "1.0.0")
//!     }
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::new().tools()
//!     }
//!     async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
//!         match request.method() {
//!             "tools/list" => Reply::of(json!({
//!                 "tools": [{ "name": "hello", "inputSchema": { "type": "object" } }],
//!             })),
//!             "tools/call" => Reply::of(json!({ "content": [{ "type": "text", "text": "Hello!" }] })),
//!             _ => Err(McpError::method_not_found()),
//!         }
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let app = axum::Router::new().route_service("/mcp", StreamableHttpService::new(Hello));
//!     axum::serve(tokio::net::TcpListener::bind("127.0.0.1:8080").await?, app).await
//! }
//! ```
//!
//! # Revisions
//!
//! Every message tells by itself which [`Era`] it belongs to, so clients of all revisions share one URL, or one stream.
//!
//! | revision | era | Streamable HTTP | byte streams |
//! |---|---|---|---|
//! | 2026-07-28 | modern | everything | everything |
//! | 2025-11-25, 2025-06-18 | legacy | everything, with a session or without | everything |
//! | 2025-03-26 | legacy | the same, and batches | everything |
//! | 2024-11-05 | legacy | the same, without batches; its own two-endpoint HTTP+SSE is not hosted | everything |
//!
//! [`Revisions`] chooses which revisions are served; the default is all. Two transports serve them:
//! [`StreamableHttpService`], and [`StdioTransport`] for the process's standard input and output or any other byte
//! stream. The same handler and the same [`Changes`] may be given to both at once.
//!
//! # Sessions
//!
//! A client up to 2025-11-25 opens a [`Session`] by `initialize`, unless [`Sessions`] says otherwise. It is bound to
//! its [`Principal`], keeps [values of the application's own](Session::insert), and ends when its client deletes it,
//! after [idle time](Limits::session_idle) or at the [cap](Limits::sessions). 2026-07-28 has none: there
//! [`RequestContext::session`] is `None`, as it is for older clients that never shook hands.
//!
//! # Changes
//!
//! A handler that declares it ([`Capabilities::tools_list_changed`] and its like,
//! [`Capabilities::resources_subscribe`]) publishes changes through [`Changes`], in [its
//! context](RequestContext::changes) or wherever the handle is. They reach the `subscriptions/listen` streams of
//! 2026-07-28 and the streams that older clients open by GET, each in its form; on a byte stream they reach whoever has
//! said `initialize`. Nothing is kept for a client that has no stream open, unless there is an [`EventStore`].
//!
//! # Asking the client
//!
//! [`RequestContext::ask`] asks the client's user, model or host, and waits for the answer, whatever the revision. On
//! 2026-07-28, where a server sends no requests, the handler runs again for every round of answers: what has an effect
//! comes after the last question.
//!
//! # How an answer travels
//!
//! An answer is one JSON object, unless something has to reach the client before it: the handler reports
//! [progress](RequestContext::progress), [logs](RequestContext::log) or [notifies](RequestContext::notify). Then it
//! becomes an event stream that ends with the same object. A handler that stays silent for 15 seconds
//! ([`Limits::commit_after`]) also gets a stream, kept alive with comments, so that no proxy gives up on it. Where a
//! client accepts only one of the two forms it gets that one; what cannot travel in it is dropped. The handler need not
//! know any of this. Sending waits while the client does not read. A client that sends no `Accept` takes both.
//!
//! # Cancellation
//!
//! When the client goes away, the [deadline](Limits::handler_time) passes or a [drain](Transport::drain) runs out of
//! time, the handler's future is dropped, wherever it is waiting. What has to be put right then belongs into a guard's
//! `Drop`. Tasks that the handler spawned are its own: they can wait for [`RequestContext::cancelled`], or live in a
//! `JoinSet` that is dropped with the future.
//!
//! In a session a lost connection is no cancellation: the client may be back, and its request goes on, unless the
//! client cancels it by `notifications/cancelled` or deletes the session. Then nothing is answered. With an
//! [`EventStore`] the client can resume the stream that it lost.
//!
//! # Many callers
//!
//! [`Limits`] bound what all callers hold together, and what one of them may: a caller that takes all it can get leaves
//! the rest to the others. It is known by its [`Principal`]; say with [`peer`](StreamableHttpBuilder::peer) how the
//! others are told apart, such as by their address.
//!
//! # Where to read on
//!
//! - [`guide`]: a page for each subject, and questions by symptom.
//! - [`McpHandler`]: what an application implements; [`Request`], [`Reply`] and [`McpError`]: what goes in and out.
//! - [`RequestContext`]: who asks, and the ways back to them.
//! - [`StreamableHttpService`] and its [builder](StreamableHttpBuilder): mounting; origins, hosts, principals and what
//!   they may.
//! - [`StdioTransport`]: byte streams, from a child process's to a socket's.
//! - [`Transport`] and [`drain_all`]: shutting down.
//! - [`Limits`]: the bounds and their defaults. [`Observer`]: logs and metrics.
//!
//! # Features
//!
//! - `state` (default): a sealed `requestState` carries answers from round to round ([`RequestContext::ask`] on
//!   2026-07-28). Without it nothing can be asked there.
//! - `stdio-guard` (default): on Unix, what else the process prints goes to standard error once a [`StdioTransport`]
//!   has standard output. Elsewhere, and without it, whatever else is printed there breaks the stream.
//! - `actix`: `actix::Endpoint` mounts the service in actix-web.
//! - `auth`: a resource server of OAuth, in the module `auth`. Without it [`StreamableHttpBuilder::principal`] and
//!   [`authorize`](StreamableHttpBuilder::authorize) are there all the same, for a layer of the application's own.
//! - `testing`: a client in process, for an application's own tests.
//! - `tracing`: a span of the `tracing` crate for every exchange, target `mcp_transport`, level info, in
//!   which the handler runs, with the fields of OpenTelemetry's semantic conventions for MCP, `era` and `outcome`: no
//!   params, no results and no session ids. Events: panics and internal errors (error), [`Misuse`] (warn), refusals and
//!   [`Pressure`] (debug).
//!
//! The `examples` directory of the repository has whole servers.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[cfg(feature = "actix")]
mod adapters;
mod admission;
#[cfg(feature = "auth")]
pub mod auth;
mod authorize;
mod cancel;
mod capabilities;
mod changes;
mod context;
mod error;
mod exchange;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(any(doc, doctest))]
pub mod guide;
mod handler;
mod http;
mod limits;
mod mcp_error;
mod observer;
mod panics;
mod principal;
mod protocol;
mod question;
mod reply;
mod request;
mod server;
mod session;
#[cfg(feature = "state")]
mod state;
mod stdio;
mod store;
mod subscribe;
mod sweeper;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
mod transport;
mod turn;

#[cfg(feature = "actix")]
pub use adapters::actix;

pub use crate::http::{
    ResponseBody, ResponseFuture, SecondGet, ServiceFuture, Sessions, StreamableHttpBuilder, StreamableHttpService,
};
pub use admission::PeerKey;
pub use authorize::{Attempt, Denied};
pub use cancel::CancelCause;
pub use capabilities::{Capabilities, ServerInfo};
pub use changes::Changes;
pub use context::{ClientCapabilities, ClientInfo, Progress, RequestContext, TraceContext};
pub use error::{Error, ErrorKind};
pub use exchange::Ask;
pub use handler::{McpHandler, ParameterSource};
pub use limits::Limits;
pub use mcp_error::McpError;
pub use observer::{Exchange, ExchangeEnd, Misuse, Observer, Pressure, StreamKind};
pub use principal::Principal;
pub use protocol::classify::classify;
pub use protocol::envelope::RequestId;
pub use protocol::ground::Rule;
pub use protocol::input::ElicitationAction;
pub use protocol::level::LogLevel;
pub use protocol::mirror::NameSource;
pub use protocol::parameter_headers::{AnnotationFault, ParameterHeaders};
pub use protocol::refusal::{Refusal, RefusalKind, Rung};
pub use protocol::revision::{Era, Revision, Revisions};
pub use question::{AskError, InputResponse, Question};
pub use reply::Reply;
pub use request::{Notification, Request};
pub use server::{ResultShape, ServerInfoStamp};
pub use session::{Session, SessionEnd};
#[cfg(feature = "state")]
pub use state::{ReplayGuard, StateId, StateKeys};
pub use stdio::{ServeEnd, StdioBuilder, StdioTransport};
pub use store::EventStore;
pub use transport::{Counts, DrainReport, Transport, drain_all};

/// The code in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
