//! From one publisher to all open streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use super::mailbox::{Addressee, Delivered, Mailbox};
use super::notice::{Notice, Updated};
use crate::changes::{Change, Changes, Listener};
use crate::observer::{Ear, Pressure};
use crate::turn::Turn;

const SHARDS: usize = 16;

/// The open streams of one transport.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    ended: AtomicBool,
    next: AtomicU64,
    shards: [Mutex<HashMap<u64, Stream>>; SHARDS],
    observer: Ear,
}

/// One open stream: a turn of a mailbox. One that has been superseded may still be here, and must not hear twice. Or a
/// mailbox that keeps changes, whichever stream reads them.
#[derive(Debug)]
struct Stream {
    mailbox: Arc<Mailbox>,
    addressee: Addressee,
}

impl Listener for Hub {
    fn changed(&self, change: Change<'_>) {
        let notice = match change {
            Change::Tools => Notice::Tools,
            Change::Prompts => Notice::Prompts,
            Change::Resources => Notice::Resources,
            Change::Resource(uri) => Notice::Updated(Arc::new(Updated::new(uri))),
        };
        for shard in &self.shards {
            // Woken when the lock is given back: a waker may drop a stream, which then leaves this shard.
            let mut readers = Vec::new();
            let mut merged = 0;
            for stream in lock(shard).values() {
                match stream.mailbox.deliver(stream.addressee, &notice) {
                    Delivered::Unwanted => {}
                    Delivered::Merged => merged += 1,
                    Delivered::Noted(reader) => readers.extend(reader),
                }
            }
            readers.into_iter().for_each(Waker::wake);
            (0..merged).for_each(|_| self.observer.pressure(Pressure::ChangeMerged));
        }
    }
}

impl Hub {
    /// Hears of what is published there.
    pub(crate) fn listening(changes: &Changes, observer: Ear) -> Arc<Self> {
        let hub = Arc::new(Self { observer, ..Self::default() });
        let listener: Weak<dyn Listener> = Arc::<Self>::downgrade(&hub);
        changes.listen(listener);
        hub
    }

    /// Ends every stream, and whatever opens from now on.
    pub(crate) fn end_all(&self) {
        self.ended.store(true, Ordering::SeqCst);
        for shard in &self.shards {
            let mailboxes: Vec<_> = lock(shard).values().map(|stream| Arc::clone(&stream.mailbox)).collect();
            mailboxes.iter().for_each(|mailbox| mailbox.end());
        }
    }

    /// Adds a stream: this turn of its mailbox.
    pub(crate) fn add(self: &Arc<Self>, mailbox: &Arc<Mailbox>, turn: Turn) -> Place {
        let standing = self.stand(mailbox, Addressee::Turn(turn));
        Place { _standing: standing, mailbox: Arc::clone(mailbox), turn }
    }

    /// Adds a mailbox that keeps changes.
    pub(crate) fn keep(self: &Arc<Self>, mailbox: &Arc<Mailbox>) -> Standing {
        self.stand(mailbox, Addressee::Whoever)
    }

    fn stand(self: &Arc<Self>, mailbox: &Arc<Mailbox>, addressee: Addressee) -> Standing {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(mut shard) = self.shard(number) {
            shard.insert(number, Stream { mailbox: Arc::clone(mailbox), addressee });
        }
        if self.ended.load(Ordering::SeqCst) {
            mailbox.end();
        }
        Standing { hub: Arc::clone(self), number }
    }

    /// How many streams stand in it.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn shard(&self, number: u64) -> Option<MutexGuard<'_, HashMap<u64, Stream>>> {
        let index = usize::try_from(number).unwrap_or_default() % SHARDS;
        self.shards.get(index).map(lock)
    }
}

/// What stands in the hub, until dropped.
#[derive(Debug)]
pub(crate) struct Standing {
    hub: Arc<Hub>,
    number: u64,
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Some(mut shard) = self.hub.shard(self.number) {
            shard.remove(&self.number);
        }
    }
}

/// A stream's place in the hub, from which it reads. Dropping it closes the stream.
#[derive(Debug)]
pub(crate) struct Place {
    _standing: Standing,
    mailbox: Arc<Mailbox>,
    turn: Turn,
}

impl Place {
    /// The next change; `None` where the stream has ended.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Notice>> {
        self.mailbox.poll_next(self.turn, cx)
    }
}

impl Place {
    /// What closes the stream though the place is still held.
    pub(crate) fn closing(&self) -> impl FnOnce() + Send + 'static {
        let (mailbox, turn) = (Arc::clone(&self.mailbox), self.turn);
        move || mailbox.close(turn)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.mailbox.close(self.turn);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
