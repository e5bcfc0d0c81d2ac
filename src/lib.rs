//! Embeddable server-side transport for the Model Context Protocol.

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

mod cancel;
mod capabilities;
mod changes;
mod context;
mod error;
mod exchange;
mod handler;
mod http;
mod limits;
mod mcp_error;
mod observer;
mod principal;
mod protocol;
mod reply;
mod request;
mod server;
#[cfg(feature = "testing")]
pub mod testing;
mod transport;

pub use crate::http::{ResponseBody, ResponseFuture, ServiceFuture, StreamableHttpBuilder, StreamableHttpService};
pub use cancel::CancelCause;
pub use capabilities::{Capabilities, ServerInfo};
pub use changes::Changes;
pub use context::{ClientCapabilities, ClientInfo, Progress, RequestContext};
pub use error::{Error, ErrorKind};
pub use handler::{McpHandler, ParameterSource};
pub use limits::Limits;
pub use mcp_error::McpError;
pub use observer::{Exchange, ExchangeEnd, Misuse, Observer};
pub use principal::Principal;
pub use protocol::classify::classify;
pub use protocol::envelope::RequestId;
pub use protocol::level::LogLevel;
pub use protocol::mirror::NameSource;
pub use protocol::parameter_headers::{AnnotationFault, ParameterHeaders};
pub use protocol::refusal::{Refusal, RefusalKind, Rung};
pub use protocol::revision::{Era, Revision, Revisions};
pub use reply::Reply;
pub use request::{Notification, Request};
pub use server::ServerInfoStamp;
pub use transport::{Counts, DrainReport, Transport, drain_all};
