//! One message being answered: what it says, who sent it, and the way back.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::queue::Queue;
use crate::cancel::{CancelCause, Cancellation};
use crate::limits::from_now;
use crate::observer;
use crate::principal::Principal;
use crate::protocol::accept::Accepts;
use crate::protocol::envelope::Message;
use crate::protocol::level::LogLevel;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::sse::Frame;
use crate::server::Server;
use crate::session::SessionState;

/// One message being answered. Shared by the request, its context and whoever drives the handler: one allocation.
pub(crate) struct Call {
    pub(crate) message: Message,
    pub(crate) revision: Revision,
    pub(crate) http: http::request::Parts,
    pub(crate) principal: Option<Principal>,
    pub(crate) server: Arc<Server>,
    pub(crate) cancellation: Cancellation,
    /// Why the client cancelled, in its words.
    reason: OnceLock<Box<str>>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) form: Form,
    pub(crate) queue: Outlet,
    pub(crate) session: Option<Arc<SessionState>>,
    /// The bits of the last report of progress that was queued. Written under the lock of the queue.
    progress: AtomicU64,
    answered: AtomicBool,
}

/// The way back: a queue of the call's own, or one it shares: with its batch, and with whoever resumes its stream.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // most calls own theirs, which lies in the call's one allocation
pub(crate) enum Outlet {
    Own(Queue),
    Shared(Arc<Queue>),
}

impl Outlet {
    pub(crate) fn shared(&self) -> Option<&Arc<Queue>> {
        match self {
            Self::Own(_) => None,
            Self::Shared(queue) => Some(queue),
        }
    }
}

impl Deref for Outlet {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        match self {
            Self::Own(queue) => queue,
            Self::Shared(queue) => queue,
        }
    }
}

/// Who sent a message, and how they take the answer.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) revision: Revision,
    pub(crate) http: http::request::Parts,
    pub(crate) principal: Option<Principal>,
    pub(crate) session: Option<Arc<SessionState>>,
    pub(crate) form: Form,
}

/// The forms of answer that the client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// JSON, or an event stream if anything has to be sent before the answer.
    JsonFirst,
    /// JSON; what would have streamed is dropped.
    JsonOnly,
    /// An event stream.
    SseOnly,
}

impl Form {
    /// The form for an `Accept` that has passed the ladder.
    pub(crate) const fn of(accepts: Accepts) -> Self {
        match accepts {
            Accepts::JsonOnly => Self::JsonOnly,
            Accepts::SseOnly => Self::SseOnly,
            Accepts::Either | Accepts::Neither => Self::JsonFirst,
        }
    }
}

impl Call {
    /// A call with a queue of its own.
    pub(crate) fn new(server: &Arc<Server>, message: Message, caller: Caller) -> Self {
        let queue = Queue::new(server.limits.queue_bytes);
        let is_resumable = caller.session.as_ref().is_some_and(|session| session.kept().is_some());
        let outlet = if is_resumable { Outlet::Shared(Arc::new(queue)) } else { Outlet::Own(queue) };
        Self::with(server, message, caller, outlet)
    }

    /// A call of a batch.
    pub(crate) fn in_batch(server: &Arc<Server>, message: Message, caller: Caller, queue: &Arc<Queue>) -> Self {
        Self::with(server, message, caller, Outlet::Shared(Arc::clone(queue)))
    }

    fn with(server: &Arc<Server>, message: Message, caller: Caller, queue: Outlet) -> Self {
        let Caller { revision, http, principal, session, form } = caller;
        Self {
            deadline: server.limits.handler_time.map(from_now),
            server: Arc::clone(server),
            cancellation: Cancellation::default(),
            reason: OnceLock::new(),
            answered: AtomicBool::new(false),
            progress: AtomicU64::new(f64::NEG_INFINITY.to_bits()),
            message,
            revision,
            http,
            principal,
            session,
            form,
            queue,
        }
    }

    pub(crate) fn era(&self) -> Era {
        self.revision.era()
    }

    /// The id as the client wrote it; empty for a notification.
    pub(crate) fn id(&self) -> &[u8] {
        self.message.raw_id().unwrap_or_default()
    }

    /// Queues a message for the client. Waits while the queue is full. Dropped where the client takes only JSON, and
    /// once the answer is made. Whether it was queued.
    pub(crate) async fn send(&self, frame: &Frame) -> bool {
        self.form != Form::JsonOnly && self.queue.send(frame.event(), || !self.is_answered()).await
    }

    /// Queues a message past the bound, as [`Queue::push`] does.
    pub(crate) fn push(&self, frame: &Frame) {
        if self.form != Form::JsonOnly && !self.is_answered() {
            self.queue.push(frame.event());
        }
    }

    /// Lets the client's connection go, to be told on the way to come back after `retry`. Whether there is one to let go,
    /// and a way to come back.
    pub(crate) fn let_go(&self, retry: Duration) -> bool {
        let is_resumable = self.session.as_ref().is_some_and(|session| session.kept().is_some());
        let may_poll = is_resumable && self.revision.has_polling() && self.form != Form::JsonOnly;
        may_poll && !self.is_answered() && self.queue.let_go(retry)
    }

    /// Cancels in the client's name.
    pub(crate) fn cancel_requested(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            // The first one stays.
            let _ = self.reason.set(reason.into());
        }
        self.cancellation.cancel(CancelCause::Requested);
    }

    pub(crate) fn cancel_reason(&self) -> Option<&str> {
        self.reason.get().map(|reason| &**reason)
    }

    /// Queues a report of progress, as [`send`](Self::send) does, unless one that was queued before has come as far.
    pub(crate) async fn report(&self, progress: f64, frame: Frame) {
        if self.form != Form::JsonOnly {
            let note = || {
                let rises = !self.is_answered() && self.rises(progress);
                if rises {
                    self.progress.store(progress.to_bits(), Ordering::Relaxed);
                }
                rises
            };
            self.queue.send(frame.event(), note).await;
        }
    }

    /// The answer is made: nothing that is sent from now on leaves.
    pub(crate) fn set_answered(&self) {
        self.answered.store(true, Ordering::Release);
    }

    fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Whether a report of progress rises above all that were queued.
    pub(crate) fn rises(&self, progress: f64) -> bool {
        progress.is_finite() && progress > f64::from_bits(self.progress.load(Ordering::Relaxed))
    }

    /// Whether the client is to see a log message of this level.
    pub(crate) fn wants_log(&self, level: LogLevel) -> bool {
        let least = match self.era() {
            Era::Modern => self.message.log_level().and_then(LogLevel::from_json),
            Era::Legacy => Some(self.session.as_ref().map_or(LogLevel::Info, |session| session.log_level())),
        };
        self.server.capabilities.declares("logging") && least.is_some_and(|least| level >= least)
    }

    /// As the observer sees it.
    pub(crate) fn observed(&self) -> observer::Exchange<'_> {
        observer::Exchange {
            revision: self.revision,
            method: self.message.method(),
            principal: self.principal.as_ref(),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("observed", &self.observed()).finish_non_exhaustive()
    }
}
