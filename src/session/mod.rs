//! Sessions of the legacy era: what `initialize` opens and DELETE, idle time or the cap ends.

mod application;
mod hooks;
mod in_flight;
mod order;
mod registry;
mod state;
mod waiters;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub(crate) use hooks::{announce, farewell};
pub(crate) use in_flight::{InFlight, Lease};
pub(crate) use registry::{Keeping, Registry, mint};
pub(crate) use state::{AnswerStream, Client, Kept, SessionState};

use crate::principal::Principal;
use crate::protocol::revision::Revision;

/// A client's session, from its `initialize` to its end. Only clients up to 2025-11-25 have one.
///
/// Cheap to clone; keeping one does not keep the session open.
#[derive(Clone)]
pub struct Session(Arc<SessionState>);

impl Session {
    pub(crate) fn new(state: Arc<SessionState>) -> Self {
        Self(state)
    }

    /// Returns the id, as it stands in `Mcp-Session-Id`. Whoever knows it and is the same principal is in the session:
    /// keep it out of logs. On a byte stream it is a name that no client sees.
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }

    /// Returns whose session it is.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.principal()
    }

    /// Returns the application's value of this type, where there is one.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.application().get()
    }

    /// Keeps a value of the application's until the last handle of the session is gone, and returns the one of the same
    /// type that was there.
    pub fn insert<T: Any + Send + Sync>(&self, value: T) -> Option<Arc<T>> {
        self.0.application().insert(Arc::new(value))
    }

    /// Returns the application's value of this type, and makes it first if there is none. Of two made at once the first
    /// stays.
    ///
    /// ```
    /// # use mcp_transport::Session;
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// # fn f(session: &Session) {
    /// #[derive(Default)]
    /// struct Calls(AtomicU64);
    ///
    /// session.get_or_insert_with(Calls::default).0.fetch_add(1, Ordering::Relaxed);
    /// # }
    /// ```
    pub fn get_or_insert_with<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.0.application().get_or_insert_with(make)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("revision", &self.revision())
            .field("principal", &self.principal())
            .finish_non_exhaustive()
    }
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEnd {
    /// Its client deleted it.
    Deleted,
    /// It was idle for longer than [`Limits::session_idle`](crate::Limits::session_idle).
    Expired,
    /// The byte stream that it was has ended.
    Disconnected,
    /// It gave way to a new one at [`Limits::sessions`](crate::Limits::sessions) or
    /// [`Limits::sessions_by_caller`](crate::Limits::sessions_by_caller).
    Evicted,
}
