//! Event streams that nobody reads any more: found by one lazy sweeper and given up, as if their connection had broken.
//!
//! A stream whose client is there is polled at least for its comments. So none of them needs a timer of its own for
//! this: each poll leaves a trace, and the sweeper looks for fresh traces now and then.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, ready};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::limits::{Limits, NEVER};
use crate::server::Server;
use crate::sweeper::{self, Duty, Swept};
use crate::sync::{Shards, lock};

/// Looks at a stream without a fresh trace before it is given up.
const LOOKS: u32 = 4;

/// The streams that are watched.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    next: AtomicU64,
    streams: Shards<HashMap<u64, Seen>>,
    duty: Duty,
}

/// What the sweeper has seen of a stream.
#[derive(Debug)]
struct Seen {
    stream: Weak<Watched>,
    /// `None` before the first look.
    polls: Option<u32>,
    /// How often in a row there was no fresh trace.
    quiet: u32,
}

impl Seen {
    /// Whether this was one look too many.
    fn is_unread(&mut self, stream: &Watched) -> bool {
        let polls = Some(stream.polls.load(Ordering::Relaxed));
        self.quiet = if polls == self.polls { self.quiet + 1 } else { 0 };
        self.polls = polls;
        self.quiet >= LOOKS
    }
}

/// A stream that is watched.
pub(super) struct Watched {
    polls: AtomicU32,
    /// Whether it has been given up, or has ended.
    is_over: AtomicBool,
    /// What giving it up means. Dropped with the stream.
    give_up: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Watched {
    /// Somebody reads.
    pub(super) fn polled(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// It is over. Whether that is new.
    pub(super) fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::AcqRel)
    }

    /// What giving it up means, to be done once.
    pub(super) fn give_up(&self) -> Option<Box<dyn FnOnce() + Send>> {
        lock(&self.give_up).take()
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

impl Unread {
    /// Watches a stream. Returns the number under which to let it go.
    pub(super) fn watch(server: &Arc<Server>, give_up: impl FnOnce() + Send + 'static) -> (u64, Arc<Watched>) {
        let unread = &server.lifecycle.unread;
        let stream = Arc::new(Watched {
            polls: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            give_up: Mutex::new(Some(Box::new(give_up))),
        });
        let number = unread.next.fetch_add(1, Ordering::Relaxed);
        unread.streams.of(number).insert(number, Seen { stream: Arc::downgrade(&stream), polls: None, quiet: 0 });
        // Outside a runtime no stream gets as far as to wait.
        sweeper::start(server, interval(&server.limits));
        (number, stream)
    }

    pub(super) fn let_go(&self, number: u64) {
        self.streams.of(number).remove(&number);
    }

    /// How many are watched.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.streams.each(|streams| streams.len()).sum()
    }

    /// Takes out the streams that have gone unread for too long.
    fn look(&self) -> Vec<Arc<Watched>> {
        // Dropped under no lock: it may be the last of a stream.
        let mut read = Vec::new();
        let unread = self.streams.each(|streams| {
            let mut unread = Vec::new();
            streams.retain(|_, seen| {
                let stream = seen.stream.upgrade();
                let is_unread = stream.as_ref().is_some_and(|stream| seen.is_unread(stream));
                let is_kept = stream.is_some() && !is_unread;
                if is_unread { &mut unread } else { &mut read }.extend(stream);
                is_kept
            });
            unread
        });
        unread.flatten().collect()
    }

    fn is_empty(&self) -> bool {
        self.streams.each(|streams| streams.is_empty()).all(|is_empty| is_empty)
    }
}

/// Comments are due in between, or it could not be told whether anybody is there.
fn interval(limits: &Limits) -> Duration {
    let time = limits.unread_time.max(limits.keep_alive.saturating_mul(3)).min(NEVER);
    (time / LOOKS).max(Duration::from_millis(1))
}

impl Swept for Server {
    fn duty(&self) -> &Duty {
        &self.lifecycle.unread.duty
    }

    fn sweep(&self) -> impl Future<Output = ()> + Send {
        self.lifecycle.unread.look().iter().for_each(|stream| self.lifecycle.give_up(stream));
        ready(())
    }

    fn is_clean(&self) -> bool {
        self.lifecycle.unread.is_empty()
    }
}
