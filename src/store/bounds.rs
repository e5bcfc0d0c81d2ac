//! What all sessions of a transport may keep together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::log::Log;
use crate::limits::Limits;
use crate::observer::{Ear, Pressure};
use crate::sync::lock;

/// The bounds of what is kept, and which session has kept the oldest.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) events: usize,
    pub(super) bytes: usize,
    pub(super) time: Duration,
    in_all: usize,
    kept: AtomicUsize,
    next: AtomicU64,
    /// The logs that hold anything, each once, in the order of their oldest events. A log may stand before its turn,
    /// for what it stood for may be gone: then it is put back in its place when its turn comes.
    order: Mutex<BTreeMap<Place, Weak<Log>>>,
    observer: Ear,
}

/// A log's place in the order. The number tells those of one moment apart.
pub(super) type Place = (Instant, u64);

impl Store {
    pub(crate) fn new(limits: &Limits, observer: Ear) -> Arc<Self> {
        Arc::new(Self {
            observer,
            events: limits.stored_events,
            bytes: limits.stored_bytes,
            time: limits.stored_for,
            in_all: limits.stored_bytes_in_all,
            kept: AtomicUsize::new(0),
            next: AtomicU64::new(0),
            order: Mutex::default(),
        })
    }

    /// Counts what a log keeps more, or less.
    pub(super) fn count(&self, added: usize, removed: usize) {
        self.kept.fetch_add(added, Ordering::AcqRel);
        self.kept.fetch_sub(removed, Ordering::AcqRel);
    }

    pub(super) fn enter(&self, log: &Weak<Log>, oldest: Instant) -> Place {
        let place = (oldest, self.next.fetch_add(1, Ordering::Relaxed));
        self.order().insert(place, Weak::clone(log));
        place
    }

    pub(super) fn leave(&self, place: Place) {
        self.order().remove(&place);
    }

    /// Tells of events that went for newer ones. Call it under no log's lock.
    pub(super) fn evicted(&self, events: usize) {
        (0..events).for_each(|_| self.observer.pressure(Pressure::EventEvicted));
    }

    /// Lets the oldest go until all is within bounds. Call it under no log's lock.
    pub(super) fn trim(&self) {
        while self.kept.load(Ordering::Acquire) > self.in_all {
            let Some(((moment, _), log)) = self.order().pop_first() else {
                return;
            };
            if let Some(log) = log.upgrade() {
                log.yield_oldest(moment);
            }
        }
    }

    /// What is kept, and in how many logs.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.kept.load(Ordering::Acquire), self.order().len())
    }

    fn order(&self) -> MutexGuard<'_, BTreeMap<Place, Weak<Log>>> {
        lock(&self.order)
    }
}
