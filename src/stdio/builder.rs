//! The configuration of a byte stream.

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "state")]
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::Connection;
use super::transport::{Io, StdioTransport};
use crate::changes::Changes;
use crate::error::Error;
use crate::handler::McpHandler;
use crate::limits::Limits;
use crate::observer::{Ear, Observer};
use crate::principal::Principal;
use crate::protocol::revision::Revisions;
use crate::server::{ResultShape, ServerBuilder, ServerInfoStamp};
#[cfg(feature = "state")]
use crate::state::{ReplayGuard, StateKeys};
use crate::subscribe::Hub;

/// Configures a [`StdioTransport`].
///
/// ```no_run
/// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
/// # struct Hello;
/// # impl McpHandler for Hello {
/// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
/// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
/// #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
/// # }
/// use std::time::Duration;
/// use mcp_transport::{Limits, StdioTransport};
///
/// let transport = StdioTransport::builder(Hello)
///     .limits(Limits::default().drain_time(Duration::from_secs(5)))
///     .build()?;
/// # Ok::<(), mcp_transport::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct StdioBuilder {
    server: ServerBuilder,
    extensions: http::Extensions,
    principal: Option<Principal>,
    io: Option<Io>,
}

impl StdioBuilder {
    pub(super) fn new(handler: impl McpHandler) -> Self {
        Self { server: ServerBuilder::new(handler), extensions: http::Extensions::new(), principal: None, io: None }
    }

    /// The streams to read from and to write to. Default: the process's standard input and output.
    pub fn io(mut self, reader: impl AsyncRead + Send + 'static, writer: impl AsyncWrite + Send + 'static) -> Self {
        self.io = Some(Io::of(reader, writer));
        self
    }

    /// The protocol revisions served. Default: all five.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.server.revisions = revisions;
        self
    }

    /// The bounds kept. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.server.limits = limits;
        self
    }

    /// Hears of refusals, panics and the life of exchanges. Default: nobody does.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.server.observer = Arc::new(observer);
        self
    }

    /// The handle through which list and resource changes are published. Default: one of the transport's own.
    pub fn changes(mut self, changes: &Changes) -> Self {
        self.server.changes = changes.clone();
        self
    }

    /// Whether results of 2026-07-28 name the server. Default: every one does. What the name is comes from
    /// [`McpHandler::server_info`].
    pub fn server_info_stamp(mut self, stamp: ServerInfoStamp) -> Self {
        self.server.stamp = stamp;
        self
    }

    /// Whether results get the shape of the client's revision. Default: they do.
    pub fn result_shape(mut self, shape: ResultShape) -> Self {
        self.server.shape = shape;
        self
    }

    /// The keys that seal a `requestState` (2026-07-28). Default: a random one, of this transport alone. Give it the
    /// keys of others where the next round of a request may come to one of them.
    #[cfg(feature = "state")]
    pub fn state_keys(mut self, keys: &StateKeys) -> Self {
        self.server.state.keys = Some(keys.clone());
        self
    }

    /// How long a `requestState` (2026-07-28) may be used after it was made: the time a user has to answer the
    /// questions of one round. Default 1 hour, counted in whole seconds by the system's clock. An expired one gets
    /// `-32602`.
    #[cfg(feature = "state")]
    pub fn state_lifetime(mut self, lifetime: Duration) -> Self {
        self.server.state.lifetime = lifetime;
        self
    }

    /// Decides whether a `requestState` (2026-07-28) may be used, such as only once. Default: as often as it comes,
    /// until it expires.
    #[cfg(feature = "state")]
    pub fn replay_guard(mut self, guard: impl ReplayGuard) -> Self {
        self.server.state.guard = Some(Arc::new(guard));
        self
    }

    /// What every request finds in [`RequestContext::extensions`](crate::RequestContext::extensions): whatever the
    /// application knows of this stream. Default: nothing.
    pub fn extensions(mut self, extensions: http::Extensions) -> Self {
        self.extensions = extensions;
        self
    }

    /// On whose behalf everything on this stream comes. Default: nobody's.
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = Some(principal);
        self
    }

    /// Builds the transport.
    ///
    /// Without [`io`](Self::io) it takes the process's standard input and output, as [`StdioTransport::stdio`] does.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) where a limit is out of its range or no revision
    /// is served. The message names the setting.
    pub fn build(self) -> Result<StdioTransport, Error> {
        self.server.check()?;
        Ok(self.assemble())
    }

    /// As [`build`](Self::build), for a configuration nobody has touched.
    pub(super) fn assemble(self) -> StdioTransport {
        let server = Arc::new(self.server.assemble());
        let hub = Hub::listening(&server.changes, Ear::of(&server.observer));
        let connection = Connection::new(server, hub, Arc::new(self.extensions), self.principal);
        StdioTransport::of(connection, self.io.map_or_else(Io::of_process, Ok))
    }
}

impl fmt::Debug for StdioBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioBuilder")
            .field("server", &self.server)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}
