//! The service an application mounts.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http::{Request, Response, request};
use http_body::Body;

use super::body::ResponseBody;
use super::builder::StreamableHttpBuilder;
use super::future::{ResponseFuture, ServiceFuture};
use super::general::SecondGet;
use super::parameter_source::ParameterSources;
use crate::admission::{Account, CallerKey, PeerOf};
use crate::authorize::{Attempt, Authorize, Denied};
use crate::changes::Changes;
use crate::handler::McpHandler;
use crate::observer::Misuse;
use crate::panics::caught;
use crate::principal::{Principal, PrincipalOf};
use crate::protocol::envelope::{Batch, Message};
use crate::protocol::ladder::Gate;
use crate::protocol::mirror::NameSource;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;
use crate::server::Server;
use crate::session::Registry;
use crate::subscribe::Hub;
use crate::transport::sealed::Sealed;
use crate::transport::{Counts, DrainReport, Transport};

/// Serves an [`McpHandler`] over Streamable HTTP to clients of every revision, from one endpoint.
///
/// It is a [`tower_service::Service`] that never fails, so it mounts wherever one does: axum's `route_service`, hyper
/// behind `TowerToHyperService`, any tower stack. It serves whatever path it is mounted on. Cloning is cheap, and all
/// clones are one transport.
///
/// With [`new`](Self::new), pages from other origins than this machine's own are refused (see
/// [`allow_origin`](StreamableHttpBuilder::allow_origin)), all revisions are served, and [`Limits`](crate::Limits) hold
/// at their defaults.
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
/// # async fn run() -> std::io::Result<()> {
/// use mcp_transport::StreamableHttpService;
///
/// let app = axum::Router::new().route_service("/mcp", StreamableHttpService::new(Hello));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// axum::serve(listener, app).await
/// # }
/// ```
///
/// # Mounting
///
/// - It can be made outside a runtime. A request that waits for anything, and an event stream, need a tokio runtime
///   with its time driver.
/// - Set `TCP_NODELAY` on the sockets, or small answers wait for the peer's acknowledgement.
/// - The limit of a body is [`Limits::body_bytes`](crate::Limits::body_bytes); axum's own does not apply here. Layers
///   that time out or compress responses must leave `text/event-stream` alone.
/// - To shut down, [drain](Transport::drain) it first, and then let the server close its connections: with axum, await
///   the drain in the future that `with_graceful_shutdown` is given. A server that is told to stop without it waits for
///   every open stream.
#[derive(Clone)]
pub struct StreamableHttpService {
    pub(super) shared: Arc<Shared>,
}

/// What all clones share.
pub(super) struct Shared {
    pub(super) server: Arc<Server>,
    pub(super) gate: Gate,
    pub(super) names: Vec<(String, NameSource)>,
    pub(super) parameters: Arc<ParameterSources>,
    pub(super) hub: Arc<Hub>,
    pub(super) policy: Sessions,
    pub(super) second_get: SecondGet,
    pub(super) sessions: Arc<Registry>,
    pub(super) principal_of: Option<Box<PrincipalOf>>,
    pub(super) authorize: Option<Box<Authorize>>,
    pub(super) peer_of: Option<Box<PeerOf>>,
}

/// Whether clients up to 2025-11-25 get sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sessions {
    /// `initialize` opens one; requests that belong to none are served too.
    #[default]
    Optional,
    /// `initialize` opens one; requests that belong to none get 400.
    Required,
    /// None is ever opened: no changes, no `resources/subscribe`, no GET stream, no cancelling by notification.
    Off,
}

impl Shared {
    /// On whose behalf a request comes.
    pub(super) fn principal(&self, parts: &request::Parts) -> Result<Option<Principal>, Refusal> {
        match &self.principal_of {
            Some(principal_of) => self.ask("principal", || principal_of(parts)),
            None => Ok(parts.extensions.get().cloned()),
        }
    }

    /// Whether a message may be acted upon. What brings to an end what is under way always may.
    pub(super) fn authorize(
        &self,
        head: &request::Parts,
        principal: Option<&Principal>,
        revision: Revision,
        message: &Message,
    ) -> Result<(), Refusal> {
        match &self.authorize {
            Some(authorize) if !message.settles() => {
                let attempt = Attempt { head, principal, revision, message: Some(message) };
                self.ask("authorize", || authorize(&attempt))?.map_err(|denied| denied.refusal(head))
            }
            _ => Ok(()),
        }
    }

    /// The same for the messages of a batch: all of them, or none.
    pub(super) fn authorize_all(
        &self,
        head: &request::Parts,
        principal: Option<&Principal>,
        revision: Revision,
        batch: &Batch,
    ) -> Result<(), Refusal> {
        let Some(authorize) = &self.authorize else {
            return Ok(());
        };
        let mut all: Option<Denied> = None;
        for message in batch.elements.iter().flatten().filter(|message| !message.settles()) {
            let attempt = Attempt { head, principal, revision, message: Some(message) };
            if let Err(denied) = self.ask("authorize", || authorize(&attempt))? {
                all = Some(match all {
                    Some(others) => others.and(denied),
                    None => denied,
                });
            }
        }
        all.map_or(Ok(()), |denied| Err(denied.refusal(head)))
    }

    /// The same for a GET.
    pub(super) fn authorize_get(&self, head: &request::Parts, revision: Revision) -> Result<(), Refusal> {
        let Some(authorize) = &self.authorize else {
            return Ok(());
        };
        let principal = self.principal(head)?;
        let attempt = Attempt { head, principal: principal.as_ref(), revision, message: None };
        self.ask("authorize", || authorize(&attempt))?.map_err(|denied| denied.refusal(head))
    }

    /// The account of whom a request comes from.
    pub(super) fn account(&self, parts: &request::Parts, principal: Option<&Principal>) -> Result<Account, Refusal> {
        let key = match (principal, &self.peer_of) {
            (None, Some(peer_of)) => self.ask("peer", || peer_of(parts))?.map(CallerKey::Peer),
            (principal, _) => principal.cloned().map(CallerKey::Principal),
        };
        Ok(self.server.admission.account(key))
    }

    /// Asks the application who the caller is, and whether it may. If that panics, nobody is let in.
    fn ask<T>(&self, hook: &'static str, ask: impl FnOnce() -> T) -> Result<T, Refusal> {
        caught(ask).map_err(|message| {
            self.server.observer.misuse(&Misuse::HookPanicked { hook, message });
            Refusal::new(RefusalKind::HookPanicked)
        })
    }

    /// Which member of `params` the `Mcp-Name` of a method mirrors.
    pub(super) fn name_source(&self, method: &str) -> NameSource {
        let declared = self.names.iter().find(|(name, _)| name == method);
        declared.map_or_else(|| NameSource::of(method), |(_, source)| *source)
    }
}

impl StreamableHttpService {
    /// Serves a handler with the default configuration, which cannot fail to build.
    pub fn new(handler: impl McpHandler) -> Self {
        StreamableHttpBuilder::new(handler).assemble()
    }

    /// Serves a handler with a configuration of its own.
    pub fn builder(handler: impl McpHandler) -> StreamableHttpBuilder {
        StreamableHttpBuilder::new(handler)
    }

    pub(super) fn from_shared(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Answers one HTTP request, as the tower service does, for frameworks that do not speak tower.
    ///
    /// The body need not be `Send`; the future is where the body is. What fails is answered, so there is no error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, or the response's body before its end, means that the client went away: a request of
    /// 2026-07-28, or one without a session, is cancelled. One in a session goes on.
    pub fn handle<B>(&self, request: Request<B>) -> ResponseFuture<B>
    where
        B: Body<Data: Buf>,
    {
        ResponseFuture::new(Arc::clone(&self.shared), request)
    }

    /// See [`Transport::drain`].
    pub async fn drain(&self, within: Duration) -> DrainReport {
        self.shared.server.lifecycle.refuse_new();
        // What has no end of its own ends first.
        self.shared.hub.end_all();
        self.shared.server.lifecycle.drain(within).await
    }

    /// See [`Transport::counts`].
    pub fn counts(&self) -> Counts {
        Counts { sessions: self.shared.sessions.len(), ..self.shared.server.lifecycle.counts() }
    }

    /// Returns the handle to publish list and resource changes with: the one the builder was given, or its own.
    pub fn changes(&self) -> &Changes {
        &self.shared.server.changes
    }
}

impl<B> tower_service::Service<Request<B>> for StreamableHttpService
where
    B: Body<Data: Buf>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ServiceFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ServiceFuture<B> {
        ServiceFuture::new(self.handle(request))
    }
}

impl Sealed for StreamableHttpService {}

impl Transport for StreamableHttpService {
    fn counts(&self) -> Counts {
        self.counts()
    }

    fn drain(&self, within: Duration) -> Pin<Box<dyn Future<Output = DrainReport> + Send + '_>> {
        Box::pin(self.drain(within))
    }
}

impl fmt::Debug for StreamableHttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamableHttpService").field("server", &self.shared.server).finish_non_exhaustive()
    }
}
