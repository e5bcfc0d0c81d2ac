//! From one publisher to all open streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::mailbox::{Addressee, Delivered, Mailbox};
use super::notice::{Notice, Updated};
use crate::changes::{Change, Changes, Listener};
use crate::observer::{Ear, Pressure};
use crate::sync::Shards;
use crate::turn::Turn;

/// The open streams of one transport.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    ended: AtomicBool,
    next: AtomicU64,
    streams: Shards<HashMap<u64, Stream>>,
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
        // Woken when the lock is given back: a waker may drop a stream, which then leaves its shard.
        for (readers, merged) in self.streams.each(|streams| deliver(streams, &notice)) {
            readers.into_iter().for_each(Waker::wake);
            (0..merged).for_each(|_| self.observer.pressure(Pressure::ChangeMerged));
        }
    }
}

/// Returns whom to wake, and how many had an equal change yet to read.
fn deliver(streams: &HashMap<u64, Stream>, notice: &Notice) -> (Vec<Waker>, usize) {
    let (mut readers, mut merged) = (Vec::new(), 0);
    for stream in streams.values() {
        match stream.mailbox.deliver(stream.addressee, notice) {
            Delivered::Unwanted => {}
            Delivered::Merged => merged += 1,
            Delivered::Noted(reader) => readers.extend(reader),
        }
    }
    (readers, merged)
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
        let mailbox = |stream: &Stream| Arc::clone(&stream.mailbox);
        for mailboxes in self.streams.each(|streams| streams.values().map(mailbox).collect::<Vec<_>>()) {
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
        self.streams.of(number).insert(number, Stream { mailbox: Arc::clone(mailbox), addressee });
        if self.ended.load(Ordering::SeqCst) {
            mailbox.end();
        }
        Standing { hub: Arc::clone(self), number }
    }

    /// How many streams stand in it.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.streams.each(|streams| streams.len()).sum()
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
        // Dropped under no lock.
        let _left = self.hub.streams.of(self.number).remove(&self.number);
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

#[cfg(test)]
mod tests;
