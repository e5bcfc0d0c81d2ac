//! What one caller holds.

use std::sync::Arc;

use super::{Book, CallerKey, Counts, What};
use crate::protocol::ground::Ground;
use crate::protocol::refusal::{Refusal, RefusalKind};

/// A caller's own share.
#[derive(Debug)]
pub(super) struct Share {
    book: Arc<Book>,
    number: u64,
    key: CallerKey,
    held: Counts,
}

impl Share {
    pub(super) fn new(book: &Arc<Book>, number: u64, key: CallerKey) -> Self {
        Self { book: Arc::clone(book), number, key, held: Counts::default() }
    }
}

impl Drop for Share {
    /// Nobody holds anything of it any more. A new one may stand in its place already.
    fn drop(&mut self) {
        let mut shard = self.book.shard(&self.key);
        if shard.get(&self.key).is_some_and(|share| share.strong_count() == 0) {
            shard.remove(&self.key);
        }
    }
}

/// What is left of a share or of the whole is not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The caller has as much of it as one caller may have.
    Share(What),
    /// All callers together have all there is of it.
    Whole(What),
}

impl Full {
    /// The limit, by the name of what sets it.
    pub(crate) const fn limit(self) -> &'static str {
        match self {
            Self::Share(what) => what.limit_by_caller(),
            Self::Whole(what) => what.limit_in_all(),
        }
    }
}

impl From<Full> for Refusal {
    fn from(full: Full) -> Self {
        let kind = match full {
            Full::Share(_) => RefusalKind::CallerLimit,
            Full::Whole(_) => RefusalKind::Overloaded,
        };
        Self::new(kind).on(Ground::Limit(full.limit()))
    }
}

/// A caller's account. Cheap to clone; one without a share of its own is the same for all such callers.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    book: Arc<Book>,
    share: Option<Arc<Share>>,
}

impl Account {
    pub(super) fn new(book: &Arc<Book>, share: Option<Arc<Share>>) -> Self {
        Self { book: Arc::clone(book), share }
    }

    /// Tells callers apart while they hold anything. 0 for all that have no share of their own.
    pub(crate) fn number(&self) -> u64 {
        self.share.as_ref().map_or(0, |share| share.number)
    }

    /// Takes an amount, until the hold is dropped.
    pub(crate) fn take(&self, what: What, amount: usize) -> Result<Hold, Full> {
        self.charge(what, amount)?;
        Ok(Hold { account: self.clone(), what, amount })
    }

    /// Takes a request's place. Whoever leaves too much unread of what was asked for before gets no more: answers go
    /// past the bounds of their queues, so nothing else would bound them. Those without a share answer for the whole.
    pub(crate) fn take_request(&self) -> Result<Hold, Full> {
        let most = self.book.most(What::QueueBytes);
        match &self.share {
            Some(share) if share.held.get(What::QueueBytes) > most.by_caller => Err(Full::Share(What::QueueBytes)),
            None if self.book.held.get(What::QueueBytes) > most.in_all => Err(Full::Whole(What::QueueBytes)),
            _ => self.take(What::Requests, 1),
        }
    }

    fn charge(&self, what: What, amount: usize) -> Result<(), Full> {
        let most = self.book.most(what);
        if let Some(share) = &self.share {
            if !share.held.take(what, amount, most.by_caller) {
                return Err(Full::Share(what));
            }
        }
        if !self.book.held.take(what, amount, most.in_all) {
            self.share.iter().for_each(|share| share.held.give_back(what, amount));
            return Err(Full::Whole(what));
        }
        Ok(())
    }

    /// Counts an amount that cannot be refused any more.
    pub(super) fn add(&self, what: What, amount: usize) {
        self.share.iter().for_each(|share| share.held.add(what, amount));
        self.book.held.add(what, amount);
    }

    pub(super) fn give_back(&self, what: What, amount: usize) {
        self.share.iter().for_each(|share| share.held.give_back(what, amount));
        self.book.held.give_back(what, amount);
    }

    /// Whether so much more would be too much, for the caller or in all.
    pub(super) fn would_overflow(&self, what: What, amount: usize) -> bool {
        let most = self.book.most(what);
        let past = |held: usize, most: usize| held.saturating_add(amount) > most;
        self.share.as_ref().is_some_and(|share| past(share.held.get(what), most.by_caller))
            || past(self.book.held.get(what), most.in_all)
    }

    /// How much the caller holds; `None` where it has no share of its own.
    #[cfg(test)]
    pub(crate) fn held(&self, what: What) -> Option<usize> {
        self.share.as_ref().map(|share| share.held.get(what))
    }
}

/// What a caller has taken, until dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    account: Account,
    what: What,
    amount: usize,
}

impl Hold {
    /// Takes more of the same.
    pub(crate) fn grow(&mut self, amount: usize) -> Result<(), Full> {
        self.account.charge(self.what, amount)?;
        self.amount += amount;
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.account.give_back(self.what, self.amount);
    }
}
