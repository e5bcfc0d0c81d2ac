//! Who holds how much: the one place where a transport decides whether a caller may have more.
//!
//! Whatever a peer can pile up is taken from its [`Account`], and given back by dropping the [`Hold`]. Each caller has
//! a share, and all callers together have the whole. A caller is known by its principal, else by the key that the
//! application gives to its connection. Those that have neither cannot be told apart: a share for them would be
//! everybody's, so they have none, and draw on the whole.

mod account;
mod counted;
mod gauge;
mod peer;

pub(crate) use account::{Account, Full, Hold};
pub(crate) use counted::{Counted, UNCOUNTED};
pub(crate) use gauge::Gauge;
pub use peer::PeerKey;
pub(crate) use peer::PeerOf;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use crate::limits::Limits;
use crate::principal::Principal;
use crate::sync::Shards;
use account::Share;

/// What can be piled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Requests being answered.
    Requests,
    /// Bytes of bodies that are read or held.
    BodyBytes,
    /// Streams that listen for changes.
    Listeners,
    /// Sessions open.
    Sessions,
    /// Notification hooks that wait.
    Hooks,
    /// Bytes that wait to be read by clients.
    QueueBytes,
}

impl What {
    /// What bounds it for one caller.
    const fn limit_by_caller(self) -> &'static str {
        match self {
            Self::Requests => "Limits::in_flight_by_caller",
            Self::BodyBytes => "Limits::body_bytes_by_caller",
            Self::Listeners => "Limits::listeners_by_caller",
            Self::Sessions => "Limits::sessions_by_caller",
            Self::Hooks => HOOKS,
            Self::QueueBytes => "Limits::queue_bytes_by_caller",
        }
    }

    /// What bounds it for all callers together.
    const fn limit_in_all(self) -> &'static str {
        match self {
            Self::Requests => "Limits::in_flight_in_all",
            Self::BodyBytes => "Limits::body_bytes_in_all",
            Self::Listeners => "Limits::listeners",
            Self::Sessions => "Limits::sessions",
            Self::Hooks => HOOKS,
            Self::QueueBytes => "Limits::queue_bytes_in_all",
        }
    }
}

/// Where the bounds of notification hooks are documented.
pub(crate) const HOOKS: &str = "McpHandler::notification";

/// How many kinds there are.
const KINDS: usize = 6;

/// How much there may be of one kind.
#[derive(Clone, Copy, Debug)]
struct Most {
    by_caller: usize,
    in_all: usize,
}

/// Notification hooks that may wait at once in one transport.
pub(crate) const MOST_HOOKS: usize = 1024;

/// The same for one caller, however many sessions it has. A hook may ask its client, which need not answer: nobody is
/// to take all places from the others.
const MOST_HOOKS_BY_CALLER: usize = 256;

impl Most {
    fn of(limits: &Limits, what: What) -> Self {
        let (by_caller, in_all) = match what {
            What::Requests => (limits.in_flight_by_caller, limits.in_flight_in_all),
            What::BodyBytes => (limits.body_bytes_by_caller, limits.body_bytes_in_all),
            What::Listeners => (limits.listeners_by_caller, limits.listeners),
            What::Sessions => (limits.sessions_by_caller, limits.sessions),
            What::Hooks => (MOST_HOOKS_BY_CALLER, MOST_HOOKS),
            What::QueueBytes => (limits.queue_bytes_by_caller, limits.queue_bytes_in_all),
        };
        Self { by_caller, in_all }
    }
}

/// By what a caller is known. A principal and a peer key of the same name are two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallerKey {
    Principal(Principal),
    Peer(PeerKey),
    /// The peer of a byte stream, which has a transport of its own.
    Stream,
}

/// How much is held, by kind.
#[derive(Debug, Default)]
struct Counts([AtomicUsize; KINDS]);

impl Counts {
    fn of(&self, what: What) -> &AtomicUsize {
        let Self([requests, body_bytes, listeners, sessions, hooks, queue_bytes]) = self;
        match what {
            What::Requests => requests,
            What::BodyBytes => body_bytes,
            What::Listeners => listeners,
            What::Sessions => sessions,
            What::Hooks => hooks,
            What::QueueBytes => queue_bytes,
        }
    }

    fn get(&self, what: What) -> usize {
        self.of(what).load(Ordering::Acquire)
    }

    /// Takes an amount unless that would be more than `most`: of many at once none gets past it.
    fn take(&self, what: What, amount: usize, most: usize) -> bool {
        let next = |held: usize| held.checked_add(amount).filter(|held| *held <= most);
        self.of(what).fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    fn add(&self, what: What, amount: usize) {
        self.of(what).fetch_add(amount, Ordering::AcqRel);
    }

    fn give_back(&self, what: What, amount: usize) {
        self.of(what).fetch_sub(amount, Ordering::AcqRel);
    }
}

/// The accounts of all callers of one transport. Only those that hold something are kept.
#[derive(Debug)]
struct Book {
    limits: Limits,
    held: Counts,
    next: AtomicU64,
    hasher: RandomState,
    callers: Shards<HashMap<CallerKey, Weak<Share>>>,
}

impl Book {
    fn shard(&self, key: &CallerKey) -> MutexGuard<'_, HashMap<CallerKey, Weak<Share>>> {
        self.callers.of(self.hasher.hash_one(key))
    }

    fn most(&self, what: What) -> Most {
        Most::of(&self.limits, what)
    }
}

/// What all callers of one transport hold, and who they are.
#[derive(Clone, Debug)]
pub(crate) struct Admission(Arc<Book>);

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self(Arc::new(Book {
            limits: limits.clone(),
            held: Counts::default(),
            next: AtomicU64::new(1),
            hasher: RandomState::new(),
            callers: Shards::default(),
        }))
    }

    /// The account of a caller: the one it has while it holds anything, else a new one.
    pub(crate) fn account(&self, key: Option<CallerKey>) -> Account {
        let share = key.map(|key| {
            let mut shard = self.0.shard(&key);
            let open = shard.get(&key).and_then(Weak::upgrade);
            open.unwrap_or_else(|| {
                let number = self.0.next.fetch_add(1, Ordering::Relaxed);
                let share = Arc::new(Share::new(&self.0, number, key.clone()));
                shard.insert(key, Arc::downgrade(&share));
                share
            })
        });
        Account::new(&self.0, share)
    }

    /// How much all hold together.
    pub(crate) fn held(&self, what: What) -> usize {
        self.0.held.get(what)
    }

    /// How many callers have an account.
    #[cfg(test)]
    pub(crate) fn accounts(&self) -> usize {
        self.0.callers.each(|callers| callers.len()).sum()
    }
}

#[cfg(test)]
mod tests;
