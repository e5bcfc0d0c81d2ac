//! The application's say over a state that has opened.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::SystemTime;

/// Decides whether a `requestState` (2026-07-28) may be used: a hook for handlers whose effects must happen at most
/// once.
///
/// Sealing keeps a client from changing a state, not from sending it twice: it may repeat the last round of a request
/// as often as it likes until the state expires, and the handler runs each time. Where that must not be, remember each
/// [`StateId`] until it expires, in a place that all nodes share, and admit it only the first time. Mind that a client
/// whose connection broke cannot repeat its last round either then: it has to begin again.
///
/// It is asked once for each request with a state, after the state has opened and before the handler runs. A state that
/// is not admitted is refused in the same words as an altered or expired one (400, `-32602`).
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use std::time::SystemTime;
/// use mcp_transport::{ReplayGuard, StateId};
///
/// /// For a single node. Several would share a table, and insert where there is no such row.
/// #[derive(Default)]
/// struct Once(Mutex<HashMap<StateId, SystemTime>>);
///
/// impl ReplayGuard for Once {
///     async fn admit(&self, state: StateId, expires: SystemTime) -> bool {
///         let Ok(mut seen) = self.0.lock() else { return false };
///         let now = SystemTime::now();
///         seen.retain(|_, expires| *expires > now);
///         seen.insert(state, expires).is_none()
///     }
/// }
/// ```
pub trait ReplayGuard: Send + Sync + 'static {
    /// Whether the state may be used. It is of no use to anybody from `expires` on.
    fn admit(&self, state: StateId, expires: SystemTime) -> impl Future<Output = bool> + Send;
}

/// What one `requestState` is known by: 24 random bytes, new with each that is sealed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub(super) [u8; 24]);

impl StateId {
    /// Returns the bytes, such as to store them.
    pub const fn as_bytes(&self) -> &[u8; 24] {
        &self.0
    }
}

/// Writes the bytes in hexadecimal.
impl fmt::Debug for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateId(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// A guard without its type.
pub(crate) trait ErasedGuard: Send + Sync {
    fn admit(&self, state: StateId, expires: SystemTime) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

impl<G: ReplayGuard> ErasedGuard for G {
    fn admit(&self, state: StateId, expires: SystemTime) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(ReplayGuard::admit(self, state, expires))
    }
}
