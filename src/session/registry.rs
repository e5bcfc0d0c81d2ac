//! All sessions of one transport: minted, found, evicted at the cap, expired by one lazy sweeper.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::{Client, Kept, SessionEnd, SessionState, announce, farewell};
use crate::principal::Principal;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;
use crate::server::Server;
use crate::store::Store;
use crate::subscribe::{Hub, Wants};

const SHARDS: usize = 16;

/// A session whose client is ready gives way to a new one only when it has been idle for this long: a flood of new ones
/// must not drown those who have just come.
const MINIMUM_IDLE: Duration = Duration::from_secs(10);

type Shard = Mutex<HashMap<Box<str>, Arc<SessionState>>>;

/// What sessions that keep their streams have in common.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(crate) store: Arc<Store>,
    pub(crate) hub: Arc<Hub>,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Registry {
    server: Arc<Server>,
    keeping: Option<Keeping>,
    count: AtomicUsize,
    hasher: RandomState,
    shards: [Shard; SHARDS],
    is_swept: AtomicBool,
}

impl Registry {
    pub(crate) fn new(server: Arc<Server>, keeping: Option<Keeping>) -> Arc<Self> {
        Arc::new(Self {
            server,
            keeping,
            count: AtomicUsize::new(0),
            hasher: RandomState::new(),
            shards: Default::default(),
            is_swept: AtomicBool::new(false),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Opens a session, of which the application has yet to hear.
    pub(crate) fn open(
        self: &Arc<Self>,
        principal: Option<Principal>,
        revision: Revision,
        client: Client,
    ) -> Result<Arc<SessionState>, Refusal> {
        self.take_place()?;
        let state = self.make(principal, revision, client).inspect_err(|_| self.give_place_back())?;
        let state = Arc::new(state);
        self.shard(state.id()).insert(state.id().into(), Arc::clone(&state));
        self.start_sweeper();
        Ok(state)
    }

    fn make(&self, principal: Option<Principal>, revision: Revision, client: Client) -> Result<SessionState, Refusal> {
        let state = SessionState::new(mint()?, principal, revision, client);
        let Some(Keeping { store, hub }) = &self.keeping else {
            return Ok(state);
        };
        let kept = Kept::begin(store, hub, state.mailbox(), Wants::of(&self.server.capabilities));
        Ok(state.keeping(kept.ok_or_else(|| Refusal::new(RefusalKind::Overloaded))?))
    }

    /// Lets the application hear of a session that was opened. The handler may panic.
    pub(crate) fn announce(&self, state: &Arc<SessionState>) {
        announce(&self.server, state);
    }

    /// Forgets a session that could not be announced.
    pub(crate) fn forget(&self, state: &SessionState) {
        if self.remove(state) {
            state.close();
        }
    }

    /// Finds the live session of this id. One that belongs to somebody else is as unknown as one that never was.
    pub(crate) fn find(&self, id: &str, principal: Option<&Principal>) -> Result<Arc<SessionState>, Refusal> {
        let found = self.shard(id).get(id).cloned();
        let unknown = || Refusal::new(RefusalKind::UnknownSession);
        let session = found.filter(|session| session.principal() == principal).ok_or_else(unknown)?;
        if self.is_expired(&session, Instant::now()) && self.end_unused(&session, SessionEnd::Expired) {
            return Err(unknown());
        }
        session.touch();
        Ok(session)
    }

    /// Ends a session for its client, whatever is going on in it.
    pub(crate) fn delete(&self, session: &Arc<SessionState>) {
        if session.close() {
            self.ended(session, SessionEnd::Deleted);
        }
    }

    /// Ends a session unless something holds it open. Whether it did.
    fn end_unused(&self, session: &Arc<SessionState>, end: SessionEnd) -> bool {
        let ended = session.close_unused();
        if ended {
            self.ended(session, end);
        }
        ended
    }

    fn ended(&self, session: &Arc<SessionState>, end: SessionEnd) {
        self.remove(session);
        farewell(&self.server, session, end);
    }

    /// Takes a session out and gives its place back. Whether it was there.
    fn remove(&self, session: &SessionState) -> bool {
        let was_there = self.shard(session.id()).remove(session.id()).is_some();
        if was_there {
            self.give_place_back();
        }
        was_there
    }

    /// Takes a place for a new session, before there is one: of many at once none gets past the cap.
    fn take_place(&self) -> Result<(), Refusal> {
        let most = self.server.limits.sessions;
        let next = |count| (count < most).then_some(count + 1);
        while self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_err() {
            self.evict()?;
        }
        Ok(())
    }

    fn give_place_back(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }

    /// At the cap, sessions whose client never said it was ready give way first, then the longest idle.
    fn evict(&self) -> Result<(), Refusal> {
        let now = Instant::now();
        let idle = |session: &Arc<SessionState>| now.saturating_duration_since(session.last_used());
        let candidates = self.all().into_iter().filter(|session| !session.is_held());
        let (raw, ready): (Vec<_>, Vec<_>) = candidates.partition(|session| !session.is_initialized());
        let oldest_raw = raw.into_iter().min_by_key(|session| session.born());
        let longest_idle = ready.into_iter().max_by_key(idle).filter(|session| idle(session) >= MINIMUM_IDLE);
        let session = oldest_raw.or(longest_idle).ok_or_else(|| Refusal::new(RefusalKind::Overloaded))?;
        // One that has come into use meanwhile stays, and the next look finds another.
        self.end_unused(&session, SessionEnd::Evicted);
        Ok(())
    }

    fn is_expired(&self, session: &SessionState, now: Instant) -> bool {
        let idle = now.saturating_duration_since(session.last_used());
        idle >= self.server.limits.session_idle && !session.is_held()
    }

    /// One task for all sessions, which ends with the last of them or with the transport.
    fn start_sweeper(self: &Arc<Self>) {
        // Outside a runtime a session still expires, when it is next asked for.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if !self.is_swept.swap(true, Ordering::AcqRel) {
            runtime.spawn(sweep(Arc::downgrade(self), sweep_interval(self.server.limits.session_idle)));
        }
    }

    fn sweep(&self) {
        let now = Instant::now();
        for session in self.all() {
            session.kept().iter().for_each(|kept| kept.log.expire(now));
            if self.is_expired(&session, now) {
                self.end_unused(&session, SessionEnd::Expired);
            }
        }
    }

    /// The event store, where there is one.
    #[cfg(test)]
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.keeping.as_ref().map(|keeping| &keeping.store)
    }

    /// How many sessions stand in the maps.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> Vec<Arc<SessionState>> {
        let mut all = Vec::with_capacity(self.len());
        for shard in &self.shards {
            all.extend(shard.lock().unwrap_or_else(PoisonError::into_inner).values().cloned());
        }
        all
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, HashMap<Box<str>, Arc<SessionState>>> {
        let hash = self.hasher.hash_one(id);
        let [first, ..] = &self.shards;
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or_default();
        self.shards.get(index).unwrap_or(first).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 random bits, as 22 characters that are safe in a header.
pub(crate) fn mint() -> Result<Box<str>, Refusal> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|_| Refusal::new(RefusalKind::Overloaded))?;
    Ok(URL_SAFE_NO_PAD.encode(bits).into())
}

fn sweep_interval(idle: Duration) -> Duration {
    (idle / 8).clamp(Duration::from_millis(100), Duration::from_secs(60))
}

async fn sweep(registry: Weak<Registry>, interval: Duration) {
    let mut sweeper = Sweeper { registry, on_duty: true };
    loop {
        sleep(interval).await;
        let Some(registry) = sweeper.registry.upgrade() else {
            return;
        };
        registry.sweep();
        if registry.len() == 0 {
            // A swap, so that it reads what an opener wrote, and the count with it.
            registry.is_swept.swap(false, Ordering::AcqRel);
            // One that was opened in between saw a sweeper at work.
            if registry.len() == 0 || registry.is_swept.swap(true, Ordering::AcqRel) {
                sweeper.on_duty = false;
                return;
            }
        }
    }
}

/// The one at work. If its runtime is shut down, the next session that is opened finds another.
struct Sweeper {
    registry: Weak<Registry>,
    on_duty: bool,
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade().filter(|_| self.on_duty) {
            registry.is_swept.store(false, Ordering::Release);
        }
    }
}
