//! The requests of a session that are being answered, by id.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::SessionState;
use crate::exchange::call::Call;
use crate::protocol::envelope::RequestId;
use crate::protocol::ground::Ground;
use crate::protocol::kept_id;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::sync::lock;

/// The requests being answered. Two ids are one if they say the same, however they are written.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashMap<String, Weak<Call>>>);

impl InFlight {
    /// Takes an id for a request. `limit` is how many there may be at once.
    pub(crate) fn take(&self, id: &RequestId, call: &Arc<Call>, limit: usize) -> Result<String, Refusal> {
        kept_id::judge(id.as_str().as_bytes(), "a request")?;
        let mut calls = self.calls();
        let is_full = calls.len() >= limit;
        match calls.entry(id.canonical()) {
            Entry::Occupied(_) => Err(Refusal::new(RefusalKind::DuplicateId)),
            Entry::Vacant(_) if is_full => {
                Err(Refusal::new(RefusalKind::Overloaded).on(Ground::Limit("Limits::in_flight")))
            }
            Entry::Vacant(free) => {
                let key = free.key().clone();
                free.insert(Arc::downgrade(call));
                Ok(key)
            }
        }
    }

    /// Gives an id back.
    pub(crate) fn release(&self, key: &str) {
        self.calls().remove(key);
    }

    pub(crate) fn find(&self, id: &RequestId) -> Option<Arc<Call>> {
        self.calls().get(&id.canonical())?.upgrade()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Call>> {
        self.calls().values().filter_map(Weak::upgrade).collect()
    }

    /// Decides something of the session while no request can come in. `false` where one is being answered.
    pub(crate) fn if_none(&self, decide: impl FnOnce() -> bool) -> bool {
        let calls = self.calls();
        calls.is_empty() && decide()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls().len()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Weak<Call>>> {
        lock(&self.0)
    }
}

/// A request's hold on its id and on its session, until it is answered.
#[derive(Debug)]
pub(crate) struct Lease {
    session: Arc<SessionState>,
    key: String,
}

impl Lease {
    /// Takes the id of a call in its session.
    pub(crate) fn take(session: &Arc<SessionState>, call: &Arc<Call>, limit: usize) -> Result<Self, Refusal> {
        let id = call.message.id().ok_or_else(|| Refusal::new(RefusalKind::Shape))?;
        let key = session.in_flight().take(&id, call, limit)?;
        let lease = Self { session: Arc::clone(session), key };
        // Looked at after the id was taken: a session that ended before cancels what it finds, and did not find this.
        if session.is_closed() { Err(Refusal::new(RefusalKind::UnknownSession)) } else { Ok(lease) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Used until now: a look in between must not find it idle since the request came.
        self.session.touch();
        self.session.in_flight().release(&self.key);
        self.session.released();
    }
}
