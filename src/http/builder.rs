//! The configuration of the service.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
#[cfg(feature = "state")]
use std::time::Duration;

use super::general::SecondGet;
use super::parameter_source::ParameterSources;
use super::service::{Sessions, Shared, StreamableHttpService};
use crate::admission::{PeerKey, PeerOf};
use crate::authorize::{Attempt, Authorize, Denied};
use crate::changes::Changes;
use crate::error::Error;
use crate::handler::McpHandler;
use crate::limits::Limits;
use crate::observer::{Ear, Observer};
use crate::principal::{Principal, PrincipalOf};
use crate::protocol::ladder::Gate;
use crate::protocol::mirror::NameSource;
use crate::protocol::origin::Loopback;
use crate::protocol::revision::Revisions;
use crate::server::{ResultShape, ServerBuilder, ServerInfoStamp};
use crate::session::{Keeping, Registry};
#[cfg(feature = "state")]
use crate::state::{ReplayGuard, StateKeys};
use crate::store::{EventStore, Store};
use crate::subscribe::Hub;

/// Configures a [`StreamableHttpService`].
///
/// ```
/// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
/// # struct Hello;
/// # impl McpHandler for Hello {
/// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
/// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
/// #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
/// # }
/// use mcp_transport::{Limits, StreamableHttpService};
///
/// let service = StreamableHttpService::builder(Hello)
///     .allow_origin("https://app.example.com")
///     .limits(Limits::default().body_bytes(1 << 20))
///     .build()?;
/// # Ok::<(), mcp_transport::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct StreamableHttpBuilder {
    server: ServerBuilder,
    hosts: Vec<String>,
    loopback: Loopback,
    names: Vec<(String, NameSource)>,
    origins: Vec<String>,
    own_addresses: Vec<SocketAddr>,
    policy: Sessions,
    principal: Option<Box<PrincipalOf>>,
    authorize: Option<Box<Authorize>>,
    peer: Option<Box<PeerOf>>,
    second_get: SecondGet,
    event_store: EventStore,
}

impl StreamableHttpBuilder {
    pub(super) fn new(handler: impl McpHandler) -> Self {
        Self {
            server: ServerBuilder::new(handler),
            hosts: Vec::new(),
            loopback: Loopback::default(),
            names: Vec::new(),
            origins: Vec::new(),
            own_addresses: Vec::new(),
            policy: Sessions::default(),
            principal: None,
            authorize: None,
            peer: None,
            second_get: SecondGet::default(),
            event_store: EventStore::default(),
        }
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

    /// The handle through which list and resource changes are published. Default: one of the service's own.
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

    /// The keys that seal a `requestState` (2026-07-28). Default: a random one, of this service alone. Give all nodes
    /// the same ones where any of them may get the next round of a request.
    #[cfg(feature = "state")]
    pub fn state_keys(mut self, keys: &StateKeys) -> Self {
        self.server.state.keys = Some(keys.clone());
        self
    }

    /// How long a `requestState` (2026-07-28) may be used after it was made: the time a user has to answer the
    /// questions of one round. Default 1 hour, counted in whole seconds by the system's clock. An expired one gets 400
    /// and `-32602`.
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

    /// Reads on whose behalf a request comes, from its head: most often from what an authentication layer in front left
    /// in its extensions. Default: the [`Principal`] that such a layer left there itself, where it did; else nobody.
    ///
    /// ```
    /// # use mcp_transport::{Principal, StreamableHttpBuilder};
    /// #[derive(Clone)]
    /// struct Account(String);
    ///
    /// # fn f(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    /// builder.principal(|head| {
    ///     let account = head.extensions.get::<Account>()?;
    ///     Some(Principal::new(account.0.as_str()))
    /// })
    /// # }
    /// ```
    pub fn principal(
        mut self,
        principal: impl Fn(&http::request::Parts) -> Option<Principal> + Send + Sync + 'static,
    ) -> Self {
        self.principal = Some(Box::new(principal));
        self
    }

    /// Decides whether the one who asks may, by method, tool and whatever else there is to know. Default: everyone may.
    ///
    /// It is asked once a message has passed all rungs of the ladder, before anything is done or sent: for requests and
    /// notifications, also those that the transport answers itself (`initialize`, `subscriptions/listen`,
    /// `resources/subscribe`, `ping`), and for a GET that opens or resumes a stream. It is not asked for what brings to
    /// an end what is under way: responses, cancellations and the DELETE of a session. A batch (2025-03-26) is allowed
    /// as a whole or not at all; the responses and cancellations in it count either way. Each round of a request with
    /// questions (2026-07-28) is a request of its own. What the transport asks the handler for by itself, the list of
    /// tools to check a call's headers against, is no attempt of the client's.
    ///
    /// What is denied gets 403. With [`Denied::insufficient_scope`] the answer says which scopes to ask for
    /// (2026-07-28, "Step-Up Authorization Flow"); behind an `AuthLayer` (feature `auth`) it also says where.
    ///
    /// It is on the path of every request and must not block. Where the answer takes time, let the layer in front find
    /// out, or the handler.
    ///
    /// ```
    /// # use mcp_transport::{Denied, StreamableHttpBuilder};
    /// #[derive(Clone)]
    /// struct Admin;
    ///
    /// # fn f(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    /// builder.authorize(|attempt| match (attempt.method(), attempt.name()) {
    ///     ("tools/call", Some("delete")) if attempt.http().extensions.get::<Admin>().is_none() => {
    ///         Err(Denied::new().description("Only administrators delete"))
    ///     }
    ///     _ => Ok(()),
    /// })
    /// # }
    /// ```
    pub fn authorize(mut self, authorize: impl Fn(&Attempt<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        self.authorize = Some(Box::new(authorize));
        self
    }

    /// Reads from a request's head how callers without a [`Principal`] are told apart, so that each of them has a share
    /// of the [`Limits`], and one that takes all it can get leaves something to the others. Default: they are not, and
    /// have no shares.
    ///
    /// Choose what a client cannot: the address of the connection. A header only where a proxy of yours sets it and
    /// nobody gets past that proxy; else whoever changes it with every request has a share for every request.
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use axum::extract::ConnectInfo;
    /// use mcp_transport::PeerKey;
    ///
    /// # fn f(builder: mcp_transport::StreamableHttpBuilder) -> mcp_transport::StreamableHttpBuilder {
    /// builder.peer(|head| {
    ///     // There under `into_make_service_with_connect_info::<SocketAddr>()`.
    ///     let ConnectInfo(address) = head.extensions.get::<ConnectInfo<SocketAddr>>()?;
    ///     Some(PeerKey::of_address(address.ip()))
    /// })
    /// # }
    /// ```
    pub fn peer(mut self, peer: impl Fn(&http::request::Parts) -> Option<PeerKey> + Send + Sync + 'static) -> Self {
        self.peer = Some(Box::new(peer));
        self
    }

    /// Allows pages of this origin, such as `https://app.example.com`, to talk to the server. Others get 403, with two
    /// exceptions: pages from `localhost`, `127.0.0.1` and `[::1]` at any port, unless
    /// [`refuse_loopback_origins`](Self::refuse_loopback_origins), and requests without an `Origin`, which no browser
    /// sends across origins.
    ///
    /// The service answers the browser's preflight (`OPTIONS`) itself and adds the headers of CORS to every answer. A
    /// layer in front that wants credentials must let `OPTIONS` through, for it carries none.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Refuses pages from this machine too, unless they are listed.
    pub fn refuse_loopback_origins(mut self) -> Self {
        self.loopback = Loopback::Listed;
        self
    }

    /// An address this server listens on, whose own pages may talk to it. An unspecified one (`0.0.0.0`, `::`) adds
    /// nothing.
    pub fn own_address(mut self, address: SocketAddr) -> Self {
        self.own_addresses.push(address);
        self
    }

    /// Allows requests to this host, such as `mcp.example.com` (at any port) or `localhost:8080`. Once one is listed,
    /// requests whose `Host` or `:authority` is not get 403. Default: no host is judged.
    ///
    /// List what the server is called. Else a page whose own name was made to point here (DNS rebinding) has only its
    /// `Origin` to be told by.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Declares which member of `params` the `Mcp-Name` header of an extension's method mirrors (2026-07-28). Default:
    /// as the revision says for `tools/call`, `prompts/get` and `resources/read`, and as the tasks extension says for
    /// `tasks/get`, `tasks/update` and `tasks/cancel`.
    ///
    /// ```
    /// # use mcp_transport::{NameSource, StreamableHttpBuilder};
    /// # fn f(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    /// builder.mirrored_name("com.example/run", NameSource::Name)
    /// # }
    /// ```
    pub fn mirrored_name(mut self, method: impl Into<String>, source: NameSource) -> Self {
        self.names.push((method.into(), source));
        self
    }

    /// Whether clients up to 2025-11-25 get sessions. Default: they may have one, and need none.
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.policy = sessions;
        self
    }

    /// What becomes of a second GET while the GET stream of its session is open. Default: 409.
    pub fn second_get(mut self, second_get: SecondGet) -> Self {
        self.second_get = second_get;
        self
    }

    /// Whether the event streams of sessions can be resumed. Default: they cannot.
    ///
    /// ```
    /// # use mcp_transport::{EventStore, StreamableHttpBuilder};
    /// # fn f(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    /// builder.event_store(EventStore::InMemory)
    /// # }
    /// ```
    pub fn event_store(mut self, store: EventStore) -> Self {
        self.event_store = store;
        self
    }

    /// Builds the service.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) where an origin or host cannot be one, a limit is
    /// out of its range, or no revision is served. The message names the setting.
    pub fn build(self) -> Result<StreamableHttpService, Error> {
        self.server.check()?;
        let mut gate = Gate { revisions: self.server.revisions, ..Gate::default() };
        gate.origins.loopback(self.loopback);
        for origin in &self.origins {
            gate.origins.add(origin).map_err(|error| Error::configuration("allow_origin", error))?;
        }
        for address in &self.own_addresses {
            gate.origins.add_address(*address);
        }
        for host in &self.hosts {
            gate.hosts.add(host).map_err(|error| Error::configuration("allow_host", error))?;
        }
        Ok(self.share(gate))
    }

    /// As [`build`](Self::build), for a configuration nobody has touched.
    pub(super) fn assemble(self) -> StreamableHttpService {
        let gate = Gate { revisions: self.server.revisions, ..Gate::default() };
        self.share(gate)
    }

    fn share(self, gate: Gate) -> StreamableHttpService {
        let server = Arc::new(self.server.assemble());
        let hub = Hub::listening(&server.changes, Ear::of(&server.observer));
        let keeping = match self.event_store {
            EventStore::None => None,
            EventStore::InMemory => {
                let store = Store::new(&server.limits, Ear::of(&server.observer));
                Some(Keeping { store, hub: Arc::clone(&hub) })
            }
        };
        StreamableHttpService::from_shared(Shared {
            gate,
            hub,
            names: self.names,
            parameters: ParameterSources::new(&server.changes),
            policy: self.policy,
            principal_of: self.principal,
            authorize: self.authorize,
            peer_of: self.peer,
            second_get: self.second_get,
            sessions: Registry::new(Arc::clone(&server), keeping),
            server,
        })
    }
}

impl fmt::Debug for StreamableHttpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamableHttpBuilder")
            .field("server", &self.server)
            .field("origins", &self.origins)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}
