//! What is in flight in one transport: counted always, reachable once it waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{timeout, timeout_at};

use super::call::Call;
use super::unread::{Unread, Watched};
use crate::admission::Hold;
use crate::cancel::CancelCause;
use crate::limits::from_now;
use crate::observer::StreamKind;
use crate::panics::caught;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::server::Server;
use crate::session::Lease;
use crate::sync::Shards;
use crate::transport::{Counts, DrainReport};

/// After the deadline every exchange is cancelled and needs one more poll to answer. An exchange whose connection never
/// polls it again must not hold up the application's end.
pub(crate) const LAST_POLL: Duration = Duration::from_secs(1);

/// What is in flight.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    in_flight: AtomicUsize,
    streams: AtomicUsize,
    draining: AtomicBool,
    /// The deadline of a drain has passed: what shows itself from now on is cancelled at once.
    cut: AtomicBool,
    /// How many exchanges drains have cut so far.
    cuts: AtomicUsize,
    idle: Notify,
    /// The event streams over HTTP, as far as they are read.
    pub(crate) unread: Unread,
    next: AtomicU64,
    waiting: Shards<HashMap<u64, Weak<Call>>>,
}

impl Lifecycle {
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            in_flight: self.in_flight.load(Ordering::SeqCst),
            streams: self.streams.load(Ordering::SeqCst),
            ..Counts::default()
        }
    }

    /// Does what giving a stream up means. From then on it does not count.
    pub(super) fn give_up(&self, stream: &Watched) {
        if stream.end() {
            // It may wake whoever sends, and with them anything.
            stream.give_up().into_iter().for_each(|give_up| drop(caught(give_up)));
            self.stream_is_over();
        }
    }

    fn stream_is_over(&self) {
        self.streams.fetch_sub(1, Ordering::SeqCst);
        self.wake_drains();
    }

    fn wake_drains(&self) {
        if self.is_draining() {
            self.idle.notify_waiters();
        }
    }

    /// Lets no new work in.
    pub(crate) fn refuse_new(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// See [`Transport::drain`](crate::Transport::drain).
    pub(crate) async fn drain(&self, within: Duration) -> DrainReport {
        self.refuse_new();
        let in_flight = self.in_flight.load(Ordering::SeqCst);
        let cut_before = self.cuts.load(Ordering::SeqCst);
        if timeout_at(from_now(within), self.idle()).await.is_err() {
            self.cut_all();
            let _ = timeout(LAST_POLL, self.at_rest()).await;
        }
        // Also those that another drain cut meanwhile.
        DrainReport { in_flight, cut: self.cuts.load(Ordering::SeqCst) - cut_before }
    }

    /// Gives what a drain has cut time to be written.
    pub(crate) async fn last_words(&self) {
        let _ = timeout(LAST_POLL, self.idle()).await;
    }

    /// Waits until no handler is at work and every stream has been read: an answer that is queued has not arrived yet.
    async fn idle(&self) {
        self.until(|| self.counts() == Counts::default()).await;
    }

    /// Waits until no handler is at work.
    async fn at_rest(&self) {
        self.until(|| self.in_flight.load(Ordering::SeqCst) == 0).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let mut woken = std::pin::pin!(self.idle.notified());
            woken.as_mut().enable();
            if is_so() {
                return;
            }
            woken.await;
        }
    }

    pub(crate) fn cut_all(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for calls in self.waiting.each(|calls| calls.values().filter_map(Weak::upgrade).collect::<Vec<_>>()) {
            calls.iter().for_each(|call| self.cut(call));
        }
    }

    /// Cancels a call, and counts it unless it was cancelled already.
    fn cut(&self, call: &Call) {
        if call.cancellation.cancel(CancelCause::Drained) {
            self.cuts.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// One exchange in flight, until dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    server: Arc<Server>,
    number: Option<u64>,
    lease: Option<Lease>,
    hold: Option<Hold>,
}

impl Ticket {
    /// Lets work in, unless the transport is draining. Counted before it looks, so that no drain can end in between.
    pub(crate) fn take(server: &Arc<Server>) -> Result<Self, Refusal> {
        server.lifecycle.in_flight.fetch_add(1, Ordering::SeqCst);
        let ticket = Self { server: Arc::clone(server), number: None, lease: None, hold: None };
        if server.lifecycle.is_draining() { Err(Refusal::new(RefusalKind::Draining)) } else { Ok(ticket) }
    }

    /// Keeps what the request takes of its caller's account for as long.
    pub(crate) fn keep_hold(&mut self, hold: Hold) {
        self.hold = Some(hold);
    }

    /// Keeps the request's place in its session for as long.
    pub(crate) fn keep_lease(&mut self, lease: Lease) {
        self.lease = Some(lease);
    }

    /// Makes the exchange reachable by a drain. Only one that waits needs to be: a quiet call never gets here.
    pub(crate) fn wait(&mut self, call: &Arc<Call>) {
        if self.number.is_some() {
            return;
        }
        let lifecycle = &self.server.lifecycle;
        let number = lifecycle.next.fetch_add(1, Ordering::Relaxed);
        lifecycle.waiting.of(number).insert(number, Arc::downgrade(call));
        self.number = Some(number);
        if lifecycle.cut.load(Ordering::SeqCst) {
            lifecycle.cut(call);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let lifecycle = &self.server.lifecycle;
        if let Some(number) = self.number {
            lifecycle.waiting.of(number).remove(&number);
        }
        lifecycle.in_flight.fetch_sub(1, Ordering::SeqCst);
        lifecycle.wake_drains();
    }
}

/// One open stream, until dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    server: Arc<Server>,
    kind: StreamKind,
    /// Over HTTP, where it may go unread.
    watched: Option<(u64, Arc<Watched>)>,
}

impl OpenStream {
    pub(crate) fn of(server: &Arc<Server>, kind: StreamKind) -> Self {
        server.lifecycle.streams.fetch_add(1, Ordering::AcqRel);
        let open = Self { server: Arc::clone(server), kind, watched: None };
        open.server.observer.stream_began(kind);
        open
    }

    /// The same stream, which is given up if it goes unread for too long. What `give_up` holds goes with the stream at
    /// the latest.
    pub(crate) fn watched(mut self, give_up: impl FnOnce() + Send + 'static) -> Self {
        self.watched = Some(Unread::watch(&self.server, give_up));
        self
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Somebody reads.
    pub(crate) fn polled(&self) {
        self.watched.iter().for_each(|(_, watched)| watched.polled());
    }

    /// Whether it went unread for too long.
    pub(crate) fn is_given_up(&self) -> bool {
        self.watched.as_ref().is_some_and(|(_, watched)| watched.is_over())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        // Whoever drops it may be unwinding.
        let _ = caught(|| self.server.observer.stream_ended(self.kind));
        let lifecycle = &self.server.lifecycle;
        let is_counted = self.watched.take().is_none_or(|(number, watched)| {
            lifecycle.unread.let_go(number);
            watched.end()
        });
        if is_counted {
            lifecycle.stream_is_over();
        }
    }
}

#[cfg(test)]
mod tests;
