//! Locks, and maps in parts with a lock each.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What a panic has poisoned is whole all the same: under no lock does anything run that is not this crate's
/// own.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SHARDS: usize = 16;

/// What many threads at once take from and put into: in parts with a lock each, so that they seldom meet.
#[derive(Debug)]
pub(crate) struct Shards<T>([Mutex<T>; SHARDS]);

impl<T> Shards<T> {
    /// The part in which everything of this number, or of this hash, is.
    pub(crate) fn of(&self, number: u64) -> MutexGuard<'_, T> {
        let [first, ..] = &self.0;
        let index = usize::try_from(number % SHARDS as u64).unwrap_or_default();
        lock(self.0.get(index).unwrap_or(first))
    }

    /// Looks at every part under its lock. What it returns comes under none.
    pub(crate) fn each<R>(&self, mut look: impl FnMut(&mut T) -> R) -> impl Iterator<Item = R> {
        self.0.iter().map(move |part| look(&mut lock(part)))
    }
}

impl<T: Default> Default for Shards<T> {
    fn default() -> Self {
        Self(Default::default())
    }
}
