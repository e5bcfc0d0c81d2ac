//! All sessions of one transport: minted, found, evicted at the cap, expired by one lazy sweeper.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::order::{Among, Order};
use super::{Client, Kept, SessionEnd, SessionState, announce, farewell};
use crate::admission::{Account, Full, Hold, What};
use crate::principal::Principal;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;
use crate::server::Server;
use crate::store::Store;
use crate::subscribe::{Hub, Wants};
use crate::sweeper::{self, Duty, Swept};
use crate::sync::Shards;

/// Sessions that are looked at before others get their turn.
const BATCH: usize = 128;

type Shard = HashMap<Box<str>, Open>;

/// A session that is open, and what it takes of its caller's account until it ends.
#[derive(Debug)]
struct Open {
    state: Arc<SessionState>,
    _hold: Hold,
}

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
    order: Order,
    hasher: RandomState,
    shards: Shards<Shard>,
    duty: Duty,
}

impl Registry {
    pub(crate) fn new(server: Arc<Server>, keeping: Option<Keeping>) -> Arc<Self> {
        Arc::new(Self {
            server,
            keeping,
            order: Order::default(),
            hasher: RandomState::new(),
            shards: Shards::default(),
            duty: Duty::default(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.server.admission.held(What::Sessions)
    }

    /// Opens a session, of which the application has yet to hear.
    pub(crate) fn open(
        self: &Arc<Self>,
        account: &Account,
        principal: Option<Principal>,
        revision: Revision,
        client: Client,
    ) -> Result<Arc<SessionState>, Refusal> {
        let hold = self.take_place(account)?;
        let state = Arc::new(self.make(principal, revision, client)?);
        self.order.enter(&state, account.number());
        self.shard(state.id()).insert(state.id().into(), Open { state: Arc::clone(&state), _hold: hold });
        // Outside a runtime a session still expires, when it is next asked for.
        sweeper::start(self, sweep_interval(self.server.limits.session_idle));
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
        let found = self.shard(id).get(id).map(|open| Arc::clone(&open.state));
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
        self.order.leave(session);
        // Dropped under no lock.
        let open = self.shard(session.id()).remove(session.id());
        open.is_some()
    }

    /// Takes a place for a new session, before there is one: of many at once none gets past the cap. Where there is
    /// none, another session gives way: one of the caller's own, where it has its share; else anybody's. Callers that
    /// have no share push out none of those who have one.
    fn take_place(&self, account: &Account) -> Result<Hold, Refusal> {
        loop {
            let full = match account.take(What::Sessions, 1) {
                Ok(hold) => return Ok(hold),
                Err(full) => full,
            };
            let among = match (full, account.number()) {
                (Full::Whole(_), 1..) => Among::All,
                (Full::Share(_) | Full::Whole(_), number) => Among::Caller(number),
            };
            let session = self.order.first(among).ok_or_else(|| Refusal::from(full))?;
            // One that has come into use meanwhile stays, and the next look finds another.
            self.end_unused(&session, SessionEnd::Evicted);
        }
    }

    fn is_expired(&self, session: &SessionState, now: Instant) -> bool {
        let idle = now.saturating_duration_since(session.last_used());
        idle >= self.server.limits.session_idle && !session.is_held()
    }

    /// The event store, where there is one.
    #[cfg(test)]
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.keeping.as_ref().map(|keeping| &keeping.store)
    }

    /// How many sessions stand in the maps.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        assert_eq!(self.order.len(), self.all().len());
        self.all().len()
    }

    #[cfg(test)]
    fn all(&self) -> Vec<Arc<SessionState>> {
        self.shards.each(all).flatten().collect()
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, Shard> {
        self.shards.of(self.hasher.hash_one(id))
    }
}

impl Swept for Registry {
    fn duty(&self) -> &Duty {
        &self.duty
    }

    /// Ends what has expired, in batches: whatever else its thread has to do comes in between.
    async fn sweep(&self) {
        for sessions in self.shards.each(all) {
            for batch in sessions.chunks(BATCH) {
                let now = Instant::now();
                for session in batch {
                    session.kept().iter().for_each(|kept| kept.log.expire(now));
                    if self.is_expired(session, now) {
                        self.end_unused(session, SessionEnd::Expired);
                    }
                }
                if batch.len() == BATCH {
                    yield_now().await;
                }
            }
        }
    }

    fn is_clean(&self) -> bool {
        self.len() == 0
    }
}

fn all(shard: &mut Shard) -> Vec<Arc<SessionState>> {
    shard.values().map(|open| Arc::clone(&open.state)).collect()
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
