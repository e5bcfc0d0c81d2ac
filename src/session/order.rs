//! Which session gives way to a new one: looked up, never searched for.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::SessionState;
use crate::sync::lock;

/// A session whose client is ready gives way to a new one only when it has been idle for this long: a flood of new ones
/// must not drown those who have just come.
const MINIMUM_IDLE: Duration = Duration::from_secs(10);

/// All sessions in the order in which they give way, among all and among those of their caller.
///
/// What happens in a session does not move it: where it stands is what was known of it last, and it stands too early if
/// anything. Whoever looks moves what stands wrong, and so no session more than once within [`MINIMUM_IDLE`]. One that
/// is held open is set aside, until what held it is [gone](SetAside::released).
#[derive(Debug, Default)]
pub(super) struct Order {
    state: Mutex<State>,
    released: Arc<Released>,
}

/// The addresses of sessions that were set aside and are perhaps held no longer.
#[derive(Debug, Default)]
struct Released(Mutex<Vec<usize>>);

/// A session's way back from being set aside.
#[derive(Debug, Default)]
pub(crate) struct SetAside {
    is_set_aside: AtomicBool,
    released: OnceLock<Arc<Released>>,
}

impl SetAside {
    /// Something that held the session is gone. Cheap, unless the session was set aside.
    pub(super) fn released(&self, session: &SessionState) {
        // Either whoever sets it aside sees that it is held no longer, or this sees that it was set aside.
        fence(Ordering::SeqCst);
        if self.is_set_aside.load(Ordering::Relaxed) && self.is_set_aside.swap(false, Ordering::AcqRel) {
            if let Some(released) = self.released.get() {
                lock(&released.0).push(address(session));
            }
        }
    }
}

#[derive(Debug, Default)]
struct State {
    in_all: BTreeMap<Standing, Arc<SessionState>>,
    /// The same by the number of the caller's account.
    by_caller: HashMap<u64, BTreeMap<Standing, Arc<SessionState>>>,
    /// Where each stands, by its address.
    places: HashMap<usize, (u64, Standing)>,
}

/// Where a session stands. Those whose client never said that it is ready stand before all others, by their birth; the
/// others by when they were last in use; those that are held open behind them all.
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
    Held,
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
        let _ = session.set_aside().released.set(Arc::clone(&self.released));
        self.state().insert(caller, standing, Arc::clone(session));
    }

    pub(super) fn leave(&self, session: &SessionState) {
        // Dropped under no lock.
        let _left = self.state().remove(address(session));
    }

    /// The session that gives way first; `None` where none does.
    pub(super) fn first(&self, among: Among) -> Option<Arc<SessionState>> {
        let released = std::mem::take(&mut *lock(&self.released.0));
        let now = Instant::now();
        let mut state = self.state();
        released.into_iter().for_each(|session| state.stand_again(session));
        loop {
            let (standing, session) = state.first(among)?;
            let is_young = now.saturating_duration_since(standing.since) < MINIMUM_IDLE;
            if standing.rank == Rank::Held || standing.rank == Rank::Ready && is_young {
                // And so are all that stand behind it.
                return None;
            }
            if !session.is_closed() && Standing::of(&session) == standing {
                return Some(session);
            }
            state.stand_again(standing.session);
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
        lock(&self.state)
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

    /// Moves a session to where it belongs. One that is closed is being taken out.
    fn stand_again(&mut self, session: usize) {
        if let Some((caller, session)) = self.remove(session).filter(|(_, session)| !session.is_closed()) {
            self.insert(caller, Standing::of(&session), session);
        }
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
    /// Where a session belongs. One that is held is set aside by this.
    fn of(session: &Arc<SessionState>) -> Self {
        let is_set_aside = &session.set_aside().is_set_aside;
        let is_held = session.is_held() && {
            is_set_aside.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let is_held = session.is_held();
            is_set_aside.store(is_held, Ordering::Relaxed);
            is_held
        };
        let (rank, since) = match (is_held, session.is_initialized()) {
            (true, _) => (Rank::Held, session.born()),
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
