//! The transport an application runs on a byte stream.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::builder::StdioBuilder;
use super::connection::Connection;
use super::process;
use super::serve::{Reader, Serving, Writer};
use crate::changes::Changes;
use crate::error::Error;
use crate::handler::McpHandler;
use crate::sync::lock;
use crate::transport::sealed::Sealed;
use crate::transport::{Counts, DrainReport, Transport};

/// Serves an [`McpHandler`] on a byte stream, one JSON-RPC message a line: the process's standard input and output, a
/// Unix socket, a TCP connection, any pair of [`AsyncRead`] and [`AsyncWrite`].
///
/// Every message tells by itself which revision it is of, so a client may speak 2026-07-28, shake hands by
/// `initialize`, or both on one stream. Requests run at once. There is one transport for each stream; a cheap clone of
/// it is the handle to [drain](Transport::drain) it and to count by.
///
/// With [`new`](Self::new) and [`stdio`](Self::stdio) all revisions are served, and [`Limits`](crate::Limits) hold at
/// their defaults.
///
/// # Examples
///
/// ```no_run
/// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
/// # struct Hello;
/// # impl McpHandler for Hello {
/// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
/// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
/// #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
/// # }
/// use mcp_transport::StdioTransport;
///
/// #[tokio::main]
/// async fn main() -> Result<(), mcp_transport::Error> {
///     StdioTransport::stdio(Hello).serve().await?;
///     Ok(())
/// }
/// ```
///
/// # The session
///
/// Up to 2025-11-25 the stream is the session: `initialize` opens it, [`RequestContext::session`] is that session's
/// from then on, and it ends with the stream. What comes before `initialize` is answered too, in the oldest revision
/// served, and has none. Messages of 2026-07-28 take nothing from a handshake on the same stream.
///
/// A [change](Changes) is told to the subscriptions of 2026-07-28, and after `initialize` without being asked for.
///
/// # The handler
///
/// A request is polled once where it is read, and moves to a task of its own if that was not enough. So one that blocks
/// its thread before it first waits holds up what comes after it on the stream: use
/// [`spawn_blocking`](tokio::task::spawn_blocking) for what takes long. Notifications are heard one after the other, in
/// their order.
///
/// # The end
///
/// When the input ends, no more is read. Subscriptions end, requests at work get
/// [`Limits::drain_time`](crate::Limits::drain_time) to answer, and then [`serve`](Self::serve) returns. A
/// host that cannot close the input sends SIGTERM; drain the transport then:
///
/// ```no_run
/// # async fn run(transport: mcp_transport::StdioTransport) -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tokio::signal::unix::{SignalKind, signal};
///
/// let mut terminated = signal(SignalKind::terminate())?;
/// let handle = transport.clone();
/// tokio::spawn(async move {
///     terminated.recv().await;
///     handle.drain(Duration::from_secs(5)).await;
/// });
/// transport.serve().await?;
/// # Ok(())
/// # }
/// ```
///
/// [`RequestContext::session`]: crate::RequestContext::session
#[derive(Clone)]
pub struct StdioTransport {
    connection: Arc<Connection>,
    io: Arc<Mutex<Option<Result<Io, Error>>>>,
}

/// The two directions of a stream.
pub(super) struct Io {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
}

impl Io {
    pub(super) fn of(reader: impl AsyncRead + Send + 'static, writer: impl AsyncWrite + Send + 'static) -> Self {
        Self { reader: Box::pin(reader), writer: Box::pin(writer) }
    }

    /// Those of the process.
    pub(super) fn of_process() -> Result<Self, Error> {
        let taken: io::Result<_> = process::take();
        taken.map(|(reader, writer)| Self::of(reader, writer)).map_err(|error| Error::io("stdio", error))
    }
}

/// Why [`StdioTransport::serve`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServeEnd {
    /// The input ended, and what was at work has answered, or was cancelled after
    /// [`Limits::drain_time`](crate::Limits::drain_time). How a client says that it is done.
    EndOfInput,
    /// The peer reads no more, or the stream broke: all that was at work was cancelled.
    PeerGone,
    /// The transport was [drained](Transport::drain).
    Drained,
}

impl StdioTransport {
    /// Serves a handler on the process's standard input and output, with the default configuration.
    ///
    /// From here on they are the transport's, for the life of the process. With the feature `stdio-guard`, which is on
    /// by default, this holds on Unix whatever else is in the process: what is printed to standard output, also by a
    /// library or by a child process, goes to standard error, and whoever reads standard input finds it empty. Without
    /// the feature, and on other systems, such text gets between the messages and breaks them: print to standard error.
    ///
    /// They are read and written on two threads of their own, so that nothing waits for a line that never comes when
    /// the process is to end. Where they cannot be had, because another transport has them, [`serve`](Self::serve) says
    /// so.
    pub fn stdio(handler: impl McpHandler) -> Self {
        StdioBuilder::new(handler).assemble()
    }

    /// Serves a handler on any byte stream, with the default configuration, which cannot fail to build.
    ///
    /// ```no_run
    /// # use mcp_transport::{McpHandler, StdioTransport};
    /// # async fn accept(handler: std::sync::Arc<impl McpHandler>) -> Result<(), Box<dyn std::error::Error>> {
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:7000").await?;
    /// loop {
    ///     let (reader, writer) = listener.accept().await?.0.into_split();
    ///     let transport = StdioTransport::new(handler.clone(), reader, writer);
    ///     tokio::spawn(async move { transport.serve().await });
    /// }
    /// # }
    /// ```
    pub fn new(
        handler: impl McpHandler,
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> Self {
        StdioBuilder::new(handler).io(reader, writer).assemble()
    }

    /// Serves a handler with a configuration of its own.
    pub fn builder(handler: impl McpHandler) -> StdioBuilder {
        StdioBuilder::new(handler)
    }

    pub(super) fn of(connection: Connection, io: Result<Io, Error>) -> Self {
        Self { connection: Arc::new(connection), io: Arc::new(Mutex::new(Some(io))) }
    }

    /// Serves the stream until its end, and says what that was. Needs a tokio runtime with its time driver.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Served`](crate::ErrorKind::Served) where this or a clone serves it already, or has;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where reading failed for another reason than that the peer is gone, or
    /// the process's streams could not be had.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the stream is closed and everything at work on it is cancelled.
    pub async fn serve(&self) -> Result<ServeEnd, Error> {
        let io = lock(&self.io).take();
        let Io { reader, writer } = io.unwrap_or_else(|| Err(Error::served()))?;
        Serving::new(&self.connection, reader, writer).run().await
    }

    /// See [`Transport::drain`].
    pub async fn drain(&self, within: Duration) -> DrainReport {
        let lifecycle = &self.connection.server.lifecycle;
        lifecycle.refuse_new();
        // What has no end of its own ends first.
        self.connection.hub.end_all();
        self.connection.outbox.wake();
        let report = lifecycle.drain(within).await;
        lifecycle.last_words().await;
        self.connection.set_over();
        report
    }

    /// See [`Transport::counts`].
    pub fn counts(&self) -> Counts {
        let is_open = self.connection.session().is_some_and(|session| !session.is_closed());
        Counts { sessions: usize::from(is_open), ..self.connection.server.lifecycle.counts() }
    }

    /// Returns the handle to publish list and resource changes with: the one the builder was given, or its own.
    pub fn changes(&self) -> &Changes {
        &self.connection.server.changes
    }
}

impl Sealed for StdioTransport {}

impl Transport for StdioTransport {
    fn counts(&self) -> Counts {
        self.counts()
    }

    fn drain(&self, within: Duration) -> Pin<Box<dyn Future<Output = DrainReport> + Send + '_>> {
        Box::pin(self.drain(within))
    }
}

impl fmt::Debug for StdioTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioTransport").field("server", &self.connection.server).finish_non_exhaustive()
    }
}
