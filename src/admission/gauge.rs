//! The bytes that wait in one queue, counted with those of all others.

use super::{Account, What};

/// What one queue adds to the bytes that wait to be read. Counted also past the bound: that is where the pressure
/// shows.
#[derive(Debug)]
pub(crate) struct Gauge(Option<Account>);

impl Gauge {
    /// Counts for a caller.
    pub(crate) fn of(account: &Account) -> Self {
        Self(Some(account.clone()))
    }

    /// Counts nothing.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Whether so many bytes more would be too much, for the caller or in all.
    pub(crate) fn is_pressed(&self, bytes: usize) -> bool {
        self.0.as_ref().is_some_and(|account| account.would_overflow(What::QueueBytes, bytes))
    }

    pub(crate) fn add(&self, bytes: usize) {
        if let (Some(account), 1..) = (&self.0, bytes) {
            account.add(What::QueueBytes, bytes);
        }
    }

    pub(crate) fn take_off(&self, bytes: usize) {
        if let (Some(account), 1..) = (&self.0, bytes) {
            account.give_back(What::QueueBytes, bytes);
        }
    }
}
