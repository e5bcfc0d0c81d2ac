//! Cancellation of one exchange: an atomic cause, and those who wait for it.

use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use futures::task::AtomicWaker;
use tokio::sync::Notify;

/// Why a request was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelCause {
    /// The client went away before it had the whole answer: it closed the connection, or the HTTP/2 stream.
    Disconnected,
    /// The handler took longer than [`Limits::handler_time`](crate::Limits::handler_time).
    Deadline,
    /// The transport was drained, and the time that [`drain`](crate::Transport::drain) was given is over; or the input
    /// of a byte stream has ended, and so has [`Limits::drain_time`](crate::Limits::drain_time).
    Drained,
    /// The client cancelled it with `notifications/cancelled`. Nothing is answered.
    Requested,
    /// Its session ended: the client deleted it. Nothing is answered.
    SessionEnded,
    /// The client has read nothing of the answer's event stream for
    /// [`Limits::unread_time`](crate::Limits::unread_time).
    Unread,
}

/// Set once; whoever comes first decides the cause.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    cause: AtomicU8,
    /// The application's waiters. A list of wakers instead would grow under `select!` loops.
    waiters: Notify,
    /// Whoever polls the handler.
    driver: AtomicWaker,
}

impl Cancellation {
    /// Cancels, and wakes the waiters and the driver. Does nothing if somebody has cancelled before; tells whether it
    /// did.
    pub(crate) fn cancel(&self, cause: CancelCause) -> bool {
        let is_first = self.cause.compare_exchange(0, encode(cause), Ordering::AcqRel, Ordering::Acquire).is_ok();
        if is_first {
            self.waiters.notify_waiters();
            self.driver.wake();
        }
        is_first
    }

    pub(crate) fn cause(&self) -> Option<CancelCause> {
        decode(self.cause.load(Ordering::Acquire))
    }

    /// Has the driver woken when the exchange is cancelled. Look at the cause after this, not before.
    pub(crate) fn register_driver(&self, waker: &Waker) {
        self.driver.register(waker);
    }

    /// Has whoever polls the handler look again.
    pub(crate) fn wake_driver(&self) {
        self.driver.wake();
    }

    pub(crate) async fn cancelled(&self) -> CancelCause {
        loop {
            let mut waiter = pin!(self.waiters.notified());
            // Enlisted before the look, so that a cause set in between is not missed.
            waiter.as_mut().enable();
            if let Some(cause) = self.cause() {
                return cause;
            }
            waiter.await;
        }
    }
}

const fn encode(cause: CancelCause) -> u8 {
    match cause {
        CancelCause::Disconnected => 1,
        CancelCause::Deadline => 2,
        CancelCause::Drained => 3,
        CancelCause::Requested => 4,
        CancelCause::SessionEnded => 5,
        CancelCause::Unread => 6,
    }
}

const fn decode(cause: u8) -> Option<CancelCause> {
    match cause {
        1 => Some(CancelCause::Disconnected),
        2 => Some(CancelCause::Deadline),
        3 => Some(CancelCause::Drained),
        4 => Some(CancelCause::Requested),
        5 => Some(CancelCause::SessionEnded),
        6 => Some(CancelCause::Unread),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Wake};

    use futures::FutureExt;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_first_cause_stays() {
        for cause in [CancelCause::Disconnected, CancelCause::Deadline, CancelCause::Drained] {
            let cancellation = Cancellation::default();
            assert_eq!(cancellation.cause(), None);
            assert!(cancellation.cancelled().now_or_never().is_none());
            assert!(cancellation.cancel(cause));
            for later in [CancelCause::Drained, CancelCause::Disconnected, cause] {
                assert!(!cancellation.cancel(later));
            }
            assert_eq!(cancellation.cause(), Some(cause));
            assert_eq!(cancellation.cancelled().now_or_never(), Some(cause));
        }
    }

    #[test]
    fn all_who_wait_are_woken_and_so_is_the_driver() {
        let cancellation = Cancellation::default();
        let woken: [Arc<Woken>; 3] = Default::default();
        let wakers: Vec<_> = woken.iter().map(|woken| Waker::from(Arc::clone(woken))).collect();
        let mut waiters = [Box::pin(cancellation.cancelled()), Box::pin(cancellation.cancelled())];
        for (waiter, waker) in waiters.iter_mut().zip(&wakers) {
            assert!(waiter.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        // Only the last driver polls the handler: others have handed it on.
        cancellation.register_driver(Waker::noop());
        cancellation.register_driver(&wakers[2]);
        assert!(cancellation.cancel(CancelCause::Deadline));
        assert!(!cancellation.cancel(CancelCause::Drained));
        assert!(woken.iter().all(|woken| woken.0.load(Ordering::SeqCst) == 1));
        for waiter in waiters {
            assert_eq!(waiter.now_or_never(), Some(CancelCause::Deadline));
        }
    }

    /// A waiter that is made anew at every turn of a `select!` loop leaves nothing behind.
    #[test]
    fn one_that_gives_up_is_not_woken() {
        let cancellation = Cancellation::default();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        for _ in 0..3 {
            assert!(pin!(cancellation.cancelled()).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        cancellation.cancel(CancelCause::Disconnected);
        assert_eq!((woken.0.load(Ordering::SeqCst), Arc::strong_count(&woken)), (0, 2));
    }
}
