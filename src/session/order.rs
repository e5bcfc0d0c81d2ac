//! Which session gives way to a new one: looked up, never searched for.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::SessionState;

/// A session whose client is ready gives way to a new one only when it has been idle for this long: a flood of new ones
/// must not drown those who have just come.
const MINIMUM_IDLE: Duration = Duration::from_secs(10);

/// All sessions in the order in which they give way, among all and among those of their caller.
///
/// What happens in a session does not move it: where it stands is what was known of it last, and it stands too early if
/// anything. Whoever looks moves what stands wrong, and so no session more than once within [`MINIMUM_IDLE`].
#[derive(Debug, Default)]
pub(super) struct Order(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    in_all: BTreeMap<Standing, Arc<SessionState>>,
    /// The same by the number of the caller's account.
    by_caller: HashMap<u64, BTreeMap<Standing, Arc<SessionState>>>,
    /// Where each stands, by its address.
    places: HashMap<usize, (u64, Standing)>,
}

/// Where a session stands. Those whose client never said that it is ready stand before all others, by their birth; the
/// others by when they were last in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    rank: Rank,
    since: Instant,
    /// Tells apart what came at the same moment.
    session: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Unready,
    Ready,
}

/// Whose sessions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    All,
    /// Those of the account of this number.
    Caller(u64),
}

impl Order {
    pub(super) fn enter(&self, session: &Arc<SessionState>, caller: u64) {
        // Held still, for the application has yet to hear of it; but that does not last.
        let standing = Standing { rank: Rank::Unready, since: session.born(), session: address(session) };
        self.state().insert(caller, standing, Arc::clone(session));
    }

    pub(super) fn leave(&self, session: &SessionState) {
        // Dropped under no lock.
        let _left = self.state().remove(address(session));
    }

    /// The session that gives way first; `None` where none does.
    pub(super) fn first(&self, among: Among) -> Option<Arc<SessionState>> {
        let now = Instant::now();
        let mut state = self.state();
        loop {
            let (standing, session) = state.first(among)?;
            let is_young = now.saturating_duration_since(standing.since) < MINIMUM_IDLE;
            if standing.rank == Rank::Ready && is_young {
                // And so are all that stand behind it.
                return None;
            }
            let due = Standing::of(&session, now);
            if due == standing && !session.is_closed() {
                return Some(session);
            }
            // One that is closed is being taken out.
            let caller = state.remove(standing.session).map(|(caller, _)| caller);
            if let Some(caller) = caller.filter(|_| !session.is_closed()) {
                state.insert(caller, due, session);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let state = self.state();
        let by_caller: usize = state.by_caller.values().map(BTreeMap::len).sum();
        assert!(state.in_all.len() == state.places.len() && by_caller == state.places.len());
        assert!(state.by_caller.values().all(|sessions| !sessions.is_empty()));
        state.places.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn first(&self, among: Among) -> Option<(Standing, Arc<SessionState>)> {
        let sessions = match among {
            Among::All => &self.in_all,
            Among::Caller(caller) => self.by_caller.get(&caller)?,
        };
        sessions.first_key_value().map(|(standing, session)| (*standing, Arc::clone(session)))
    }

    fn insert(&mut self, caller: u64, standing: Standing, session: Arc<SessionState>) {
        self.places.insert(standing.session, (caller, standing));
        self.by_caller.entry(caller).or_default().insert(standing, Arc::clone(&session));
        self.in_all.insert(standing, session);
    }

    /// Returns whose it was, and the session, to be dropped under no lock.
    fn remove(&mut self, session: usize) -> Option<(u64, Arc<SessionState>)> {
        let (caller, standing) = self.places.remove(&session)?;
        if let Entry::Occupied(mut sessions) = self.by_caller.entry(caller) {
            sessions.get_mut().remove(&standing);
            if sessions.get().is_empty() {
                sessions.remove();
            }
        }
        self.in_all.remove(&standing).map(|session| (caller, session))
    }
}

impl Standing {
    fn of(session: &Arc<SessionState>, now: Instant) -> Self {
        let (rank, since) = match (session.is_held(), session.is_initialized()) {
            (true, _) => (Rank::Ready, now),
            (false, true) => (Rank::Ready, session.last_used()),
            (false, false) => (Rank::Unready, session.born()),
        };
        Self { rank, since, session: address(session) }
    }
}

/// Tells sessions apart for as long as they are kept here.
fn address(session: &SessionState) -> usize {
    std::ptr::from_ref(session).addr()
}
