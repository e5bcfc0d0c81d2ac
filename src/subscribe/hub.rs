//! From one publisher to all open streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use super::mailbox::{Addressee, Delivered, Mailbox};
use super::notice::{Notice, Updated};
use crate::changes::{Change, Changes, Listener};
use crate::observer::{Ear, Pressure};
use crate::principal::Principal;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::turn::Turn;

const SHARDS: usize = 16;

/// The open streams of one transport.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    ended: AtomicBool,
    next: AtomicU64,
    shards: [Mutex<HashMap<u64, Stream>>; SHARDS],
    observer: Ear,
    /// `subscriptions/listen` streams.
    listening: AtomicUsize,
    /// The same by principal.
    by_principal: Mutex<HashMap<Principal, usize>>,
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

    /// Adds the stream of a session: this turn of its mailbox.
    pub(crate) fn add(self: &Arc<Self>, mailbox: &Arc<Mailbox>, turn: Turn) -> Place {
        self.insert(mailbox, turn, None)
    }

    /// Adds a `subscriptions/listen` stream, unless there are too many, in all or for its principal.
    pub(crate) fn listen(
        self: &Arc<Self>,
        mailbox: &Arc<Mailbox>,
        turn: Turn,
        principal: Option<&Principal>,
        most: Most,
    ) -> Result<Place, Refusal> {
        let listening = Listening::enter(self, principal, most)?;
        Ok(self.insert(mailbox, turn, Some(listening)))
    }

    /// Adds a mailbox that keeps changes.
    pub(crate) fn keep(self: &Arc<Self>, mailbox: &Arc<Mailbox>) -> Standing {
        self.stand(mailbox, Addressee::Whoever)
    }

    fn insert(self: &Arc<Self>, mailbox: &Arc<Mailbox>, turn: Turn, listening: Option<Listening>) -> Place {
        let standing = self.stand(mailbox, Addressee::Turn(turn));
        Place { _standing: standing, mailbox: Arc::clone(mailbox), turn, _listening: listening }
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

    /// Everything that stands in it: streams, the principals who listen, and the places they take.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let streams: usize = self.shards.iter().map(|shard| lock(shard).len()).sum();
        streams + lock(&self.by_principal).len() + self.listening.load(Ordering::SeqCst)
    }

    fn shard(&self, number: u64) -> Option<MutexGuard<'_, HashMap<u64, Stream>>> {
        let index = usize::try_from(number).unwrap_or_default() % SHARDS;
        self.shards.get(index).map(lock)
    }
}

/// How many `subscriptions/listen` streams there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) in_all: usize,
    pub(crate) by_principal: usize,
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
    _listening: Option<Listening>,
}

impl Place {
    /// The next change; `None` where the stream has ended.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Notice>> {
        self.mailbox.poll_next(self.turn, cx)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.mailbox.close(self.turn);
    }
}

/// One of the counted streams.
#[derive(Debug)]
struct Listening {
    hub: Arc<Hub>,
    principal: Option<Principal>,
}

impl Listening {
    fn enter(hub: &Arc<Hub>, principal: Option<&Principal>, most: Most) -> Result<Self, Refusal> {
        let overloaded = || Refusal::new(RefusalKind::Overloaded);
        if let Some(principal) = principal {
            let mut counts = lock(&hub.by_principal);
            let count = counts.get(principal).copied().unwrap_or_default();
            if count >= most.by_principal {
                return Err(overloaded());
            }
            counts.insert(principal.clone(), count + 1);
        }
        // From here on the guard gives back what was taken.
        let entered = hub.listening.fetch_add(1, Ordering::AcqRel);
        let listening = Self { hub: Arc::clone(hub), principal: principal.cloned() };
        if entered >= most.in_all { Err(overloaded()) } else { Ok(listening) }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.hub.listening.fetch_sub(1, Ordering::AcqRel);
        let Some(principal) = &self.principal else {
            return;
        };
        let mut counts = lock(&self.hub.by_principal);
        if let Some(count) = counts.get_mut(principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(principal);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
