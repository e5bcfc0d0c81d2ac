//! What a transport holds of its application: the handler, what it declared, and how it is to be treated.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::admission::Admission;
use crate::capabilities::{Capabilities, Delivery};
use crate::changes::Changes;
use crate::error::Error;
use crate::exchange::lifecycle::Lifecycle;
use crate::handler::{ErasedHandler, McpHandler};
use crate::limits::Limits;
use crate::observer::{Deaf, Observer};
use crate::protocol::revision::{Era, Revision, Revisions};
#[cfg(feature = "state")]
use crate::state::{Sealer, StateSettings};
use crate::trace::traced;

/// Whether results of 2026-07-28 name the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerInfoStamp {
    /// Every result carries `_meta["io.modelcontextprotocol/serverInfo"]`, as the revision recommends.
    #[default]
    EveryResult,
    /// No result does, unless the handler writes it.
    Never,
}

/// Whether results get the shape of the client's revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultShape {
    /// What a handler writes in the newest shape, a client up to 2025-11-25 reads in its own:
    ///
    /// - `resultType`, where it is `complete`, and the cache hints are left out (all of these revisions);
    /// - `structuredContent` that is no object, and an `outputSchema` that is not an object's, are left out
    ///   (2025-06-18, 2025-11-25);
    /// - `structuredContent` becomes a text where there is no other content: before 2025-06-18, and wherever it is left
    ///   out;
    /// - a `resource_link` becomes a text with its name and URI (before 2025-06-18);
    /// - `audio` becomes a text that says so (before 2025-03-26).
    ///
    /// All else passes through byte by byte, also members that the revision does not know.
    #[default]
    ClientRevision,
    /// Every client reads what the handler wrote, which looks at [`revision`](crate::RequestContext::revision) itself.
    AsWritten,
}

/// The application, as a transport holds it.
pub(crate) struct Server {
    pub(crate) handler: Arc<dyn ErasedHandler>,
    pub(crate) capabilities: Capabilities,
    pub(crate) changes: Changes,
    pub(crate) limits: Limits,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) admission: Admission,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) revisions: Revisions,
    #[cfg(feature = "state")]
    pub(crate) sealer: Sealer,
    pub(crate) shape: ResultShape,
    stamp: ServerInfoStamp,
    /// Written once: it goes out with every result.
    info: Bytes,
    /// The members of `initialize` and `server/discover` that do not depend on who asks.
    session_face: Value,
    sessionless_face: Value,
    modern_face: Value,
}

impl Server {
    /// The name and version for a result's `_meta`, unless switched off.
    pub(crate) fn stamped_info(&self) -> Option<&[u8]> {
        match self.stamp {
            ServerInfoStamp::EveryResult => Some(&self.info),
            ServerInfoStamp::Never => None,
        }
    }

    /// Whether anything can be carried from one round of input to the next.
    #[allow(clippy::unused_self)] // a question to this server all the same
    pub(crate) const fn can_carry(&self) -> bool {
        cfg!(feature = "state")
    }

    /// The result of `initialize` but for the version.
    pub(crate) fn legacy_face(&self, delivery: Delivery) -> &Value {
        match delivery {
            Delivery::OnStreams => &self.session_face,
            Delivery::Nowhere => &self.sessionless_face,
        }
    }

    /// The result of `server/discover`.
    pub(crate) fn modern_face(&self) -> &Value {
        &self.modern_face
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("revisions", &self.revisions).finish_non_exhaustive()
    }
}

/// What every transport's builder sets.
pub(crate) struct ServerBuilder {
    handler: Arc<dyn ErasedHandler>,
    capabilities: Capabilities,
    info: Value,
    instructions: Option<String>,
    pub(crate) changes: Changes,
    pub(crate) limits: Limits,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) revisions: Revisions,
    pub(crate) stamp: ServerInfoStamp,
    pub(crate) shape: ResultShape,
    #[cfg(feature = "state")]
    pub(crate) state: StateSettings,
}

impl ServerBuilder {
    pub(crate) fn new(handler: impl McpHandler) -> Self {
        Self {
            capabilities: handler.capabilities(),
            info: json!(handler.server_info()),
            instructions: handler.instructions(),
            handler: Arc::new(handler),
            changes: Changes::new(),
            limits: Limits::default(),
            observer: Arc::new(Deaf),
            revisions: Revisions::all(),
            stamp: ServerInfoStamp::default(),
            shape: ResultShape::default(),
            #[cfg(feature = "state")]
            state: StateSettings::default(),
        }
    }

    /// Whether the configuration can be.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.revisions.is_empty() {
            return Err(Error::configuration("revisions", "at least one must be served"));
        }
        self.limits.check()
    }

    pub(crate) fn assemble(self) -> Server {
        let legacy_face = |delivery| {
            let capabilities = self.capabilities.to_json(Era::Legacy, delivery);
            self.instructed(json!({ "capabilities": capabilities, "serverInfo": self.info }))
        };
        let (session_face, sessionless_face) = (legacy_face(Delivery::OnStreams), legacy_face(Delivery::Nowhere));
        let versions: Vec<_> = self.revisions.of(Era::Modern).map(Revision::as_str).collect();
        let capabilities = self.capabilities.to_json(Era::Modern, Delivery::OnStreams);
        let modern_face = self.instructed(json!({ "supportedVersions": versions, "capabilities": capabilities }));
        Server {
            handler: self.handler,
            capabilities: self.capabilities,
            changes: self.changes,
            #[cfg(feature = "state")]
            sealer: Sealer::new(self.state, self.limits.state_bytes),
            admission: Admission::new(&self.limits),
            limits: self.limits,
            lifecycle: Lifecycle::default(),
            observer: traced(self.observer),
            revisions: self.revisions,
            shape: self.shape,
            stamp: self.stamp,
            info: Bytes::from(self.info.to_string()),
            session_face,
            sessionless_face,
            modern_face,
        }
    }

    fn instructed(&self, mut face: Value) -> Value {
        if let (Value::Object(members), Some(instructions)) = (&mut face, &self.instructions) {
            members.insert("instructions".to_owned(), json!(instructions));
        }
        face
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("revisions", &self.revisions).finish_non_exhaustive()
    }
}
