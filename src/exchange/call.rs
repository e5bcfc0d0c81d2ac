//! One message being answered: what it says, who sent it, and the way back.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::queue::Queue;
use super::requests::{self, Requests};
#[cfg(feature = "state")]
use super::rounds::Carried;
use super::rounds::{Round, Rounds};
use crate::cancel::{CancelCause, Cancellation};
use crate::limits::from_now;
use crate::observer;
use crate::principal::Principal;
use crate::protocol::accept::Accepts;
use crate::protocol::envelope::{Kind, Message};
use crate::protocol::level::LogLevel;
use crate::protocol::names::method;
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
    /// The questions under way, up to 2025-11-25.
    pub(super) requests: Requests,
    /// The questions of this round, on 2026-07-28. `None` inside where the answer came before any.
    rounds: OnceLock<Option<Box<Rounds>>>,
    /// The bits of the last report of progress that was queued. Written under the lock of the queue.
    progress: AtomicU64,
    answered: AtomicBool,
}

/// The way back: a queue of the call's own, or the one it shares with its batch.
#[derive(Debug)]
pub(crate) enum Outlet {
    Own(Queue),
    Shared(Arc<Queue>),
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
        Self::with(server, message, caller, Outlet::Own(Queue::new(server.limits.queue_bytes)))
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
            requests: Requests::default(),
            rounds: OnceLock::new(),
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
        self.send_if(frame, || true).await
    }

    /// The same for a message that may not be wanted any more once its turn has come.
    pub(crate) async fn send_if(&self, frame: &Frame, is_wanted: impl FnOnce() -> bool) -> bool {
        self.form != Form::JsonOnly && self.queue.send(frame.event(), || !self.is_answered() && is_wanted()).await
    }

    /// Queues a message past the bound, as [`Queue::push`] does.
    pub(crate) fn push(&self, frame: &Frame) {
        if self.form != Form::JsonOnly && !self.is_answered() {
            self.queue.push(frame.event());
        }
    }

    /// Whether it may be answered with questions, up to 2025-11-25 by a result that stands for them. A notification of
    /// such a name is not answered at all.
    pub(super) fn takes_input(&self) -> bool {
        let is_request = self.message.kind == Kind::Request;
        is_request && matches!(self.message.method(), method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ)
    }

    /// The questions of this round. Without a state that was carried, those of a first one. `None` where the answer was
    /// made before anybody asked.
    pub(super) fn rounds(&self) -> Option<&Rounds> {
        let first = || Some(Box::new(Rounds::first(self.message.input_responses())));
        self.rounds.get_or_init(first).as_deref()
    }

    /// Goes on from what was carried. Before the handler runs.
    #[cfg(feature = "state")]
    pub(super) fn resume(&self, carried: Carried) {
        let _ = self.rounds.set(Some(Box::new(Rounds::resume(carried, self.message.input_responses()))));
    }

    /// The round that is over, where the handler waits for its client.
    pub(super) fn end_round(&self) -> Option<Round> {
        self.rounds.get()?.as_ref()?.end_round()
    }

    /// The answer is about to be made: questions that are held elsewhere fail, and so do those that are still to come.
    pub(super) fn end_asks(&self) {
        requests::end(self);
        if let Some(rounds) = self.rounds.get_or_init(|| None) {
            rounds.end();
        }
    }

    /// What the client said that it can do, as JSON.
    pub(crate) fn client_capabilities(&self) -> Option<&[u8]> {
        match (self.era(), &self.session) {
            (Era::Legacy, Some(session)) => Some(&session.client().capabilities),
            _ => self.message.client_capabilities(),
        }
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
