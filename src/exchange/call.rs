//! One message being answered: what it says, who sent it, and the way back.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::outbox::Outbox;
use super::requests::{self, Requests};
#[cfg(feature = "state")]
use super::rounds::Carried;
use super::rounds::{Round, Rounds};
use crate::admission::Account;
use crate::cancel::{CancelCause, Cancellation};
use crate::limits::from_now;
use crate::observer::{self, Pressure};
use crate::principal::Principal;
use crate::protocol::accept::Accepts;
use crate::protocol::envelope::{Kind, Message};
use crate::protocol::level::LogLevel;
use crate::protocol::names::method;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::sse::Frame;
use crate::server::Server;
use crate::session::SessionState;
use crate::store::queue::Queue;

/// One message being answered. Shared by the request, its context and whoever drives the handler: one allocation.
pub(crate) struct Call {
    pub(crate) message: Message,
    pub(crate) revision: Revision,
    pub(crate) via: Via,
    pub(crate) principal: Option<Principal>,
    /// From which whatever it takes is taken.
    pub(crate) account: Account,
    pub(crate) server: Arc<Server>,
    pub(crate) cancellation: Cancellation,
    /// Why the client cancelled, in its words.
    reason: OnceLock<Box<str>>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) form: Form,
    pub(crate) outlet: Outlet,
    pub(crate) session: Option<Arc<SessionState>>,
    /// The questions under way, up to 2025-11-25.
    pub(super) requests: Requests,
    /// The questions of this round, on 2026-07-28. `None` inside where the answer came before any.
    rounds: OnceLock<Option<Box<Rounds>>>,
    /// The bits of the last report of progress that was queued. Written under the lock of the queue.
    progress: AtomicU64,
    answered: AtomicBool,
}

/// The way back: a queue of the call's own, one it shares (with its batch, and with whoever resumes its stream), or a
/// byte stream.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // most calls own theirs, which lies in the call's one allocation
pub(crate) enum Outlet {
    Own(Queue),
    Shared(Arc<Queue>),
    Stream {
        outbox: Arc<Outbox>,
        /// Where an exchange over HTTP would look.
        unused: Queue,
    },
}

impl Outlet {
    /// Queues a message, waiting for room, if it is still wanted by then. Whether it was queued.
    async fn send(&self, frame: &Frame, is_wanted: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Own(queue) => queue.send(frame.event(), is_wanted).await,
            Self::Shared(queue) => queue.send(frame.event(), is_wanted).await,
            Self::Stream { outbox, .. } => outbox.send(frame.line(), is_wanted).await,
        }
    }

    /// Whether a message need not wait, as far as can be told from outside.
    fn has_room(&self, frame: &Frame) -> bool {
        match self {
            Self::Own(queue) => queue.has_room(&frame.event()),
            Self::Shared(queue) => queue.has_room(&frame.event()),
            Self::Stream { outbox, .. } => outbox.has_room(&frame.line()),
        }
    }

    /// Queues a message past the bound.
    fn push(&self, frame: &Frame) {
        match self {
            Self::Own(queue) => queue.push(&frame.event()),
            Self::Shared(queue) => queue.push(&frame.event()),
            Self::Stream { outbox, .. } => outbox.answer(frame.line(), 0),
        }
    }

    /// What an exchange over HTTP reads. On a byte stream nobody does.
    pub(crate) fn queue(&self) -> &Queue {
        match self {
            Self::Own(queue) => queue,
            Self::Shared(queue) => queue,
            Self::Stream { unused, .. } => unused,
        }
    }

    /// The same, where somebody else may read it after the exchange.
    pub(crate) fn shared(&self) -> Option<&Arc<Queue>> {
        match self {
            Self::Shared(queue) => Some(queue),
            Self::Own(_) | Self::Stream { .. } => None,
        }
    }
}

/// The way a message came.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // nearly every call has a head, and a box would be an allocation
pub(crate) enum Via {
    /// By HTTP, under this head.
    Http(http::request::Parts),
    /// On a byte stream, of which the application said this.
    Stream(Arc<http::Extensions>),
}

impl Via {
    /// The head of the HTTP request, where there was one.
    pub(crate) fn http(&self) -> Option<&http::request::Parts> {
        match self {
            Self::Http(head) => Some(head),
            Self::Stream(_) => None,
        }
    }

    /// What was left for the handler.
    pub(crate) fn extensions(&self) -> &http::Extensions {
        match self {
            Self::Http(head) => &head.extensions,
            Self::Stream(extensions) => extensions,
        }
    }
}

/// Who sent a message, and how they take the answer.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) revision: Revision,
    pub(crate) via: Via,
    pub(crate) principal: Option<Principal>,
    pub(crate) account: Account,
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
        let queue = Queue::counted(server.limits.queue_bytes, &caller.account);
        let is_resumable = caller.session.as_ref().is_some_and(|session| session.kept().is_some());
        let outlet = if is_resumable { Outlet::Shared(Arc::new(queue)) } else { Outlet::Own(queue) };
        Self::with(server, message, caller, outlet)
    }

    /// A call of a batch.
    pub(crate) fn in_batch(server: &Arc<Server>, message: Message, caller: Caller, queue: &Arc<Queue>) -> Self {
        Self::with(server, message, caller, Outlet::Shared(Arc::clone(queue)))
    }

    /// A call on a byte stream.
    pub(crate) fn on_stream(server: &Arc<Server>, message: Message, caller: Caller, outbox: &Arc<Outbox>) -> Self {
        let outlet = Outlet::Stream { outbox: Arc::clone(outbox), unused: Queue::new(0) };
        Self::with(server, message, caller, outlet)
    }

    fn with(server: &Arc<Server>, message: Message, caller: Caller, outlet: Outlet) -> Self {
        let Caller { revision, via, principal, account, session, form } = caller;
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
            via,
            principal,
            account,
            session,
            form,
            outlet,
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
        if self.form == Form::JsonOnly {
            self.server.observer.pressure(Pressure::MessageDropped);
            return false;
        }
        self.feel(frame);
        self.outlet.send(frame, || !self.is_over() && is_wanted()).await
    }

    /// Tells of a message that has to wait for room, or that nobody will read.
    fn feel(&self, frame: &Frame) {
        if self.is_over() {
            self.server.observer.pressure(Pressure::MessageDropped);
        } else if !self.outlet.has_room(frame) {
            self.server.observer.pressure(Pressure::QueueFull);
        }
    }

    /// Queues a message past the bound: one that takes back what was sent before, and cannot wait.
    pub(crate) fn push(&self, frame: &Frame) {
        if self.form != Form::JsonOnly && !self.is_answered() {
            self.outlet.push(frame);
        }
    }

    /// Lets the client's connection go, to be told on the way to come back after `retry`. Whether there is one to let
    /// go, and a way to come back.
    pub(crate) fn let_go(&self, retry: Duration) -> bool {
        let is_resumable = self.session.as_ref().is_some_and(|session| session.kept().is_some());
        let may_poll = is_resumable && self.revision.has_polling() && self.form != Form::JsonOnly;
        may_poll && !self.is_over() && self.outlet.queue().let_go(retry)
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

    /// Cancels in the client's name, which has said so by `notifications/cancelled`.
    pub(crate) fn cancel_requested(&self, notification: &Message) {
        #[derive(Deserialize)]
        struct Params {
            reason: Option<String>,
        }
        let params = notification.params().and_then(|json| serde_json::from_slice::<Params>(json).ok());
        if let Some(reason) = params.and_then(|params| params.reason) {
            // The first one stays, for as long as the call does: a stream that is not read, perhaps.
            let _ = self.reason.set(cut(&reason).into());
        }
        self.cancellation.cancel(CancelCause::Requested);
    }

    pub(crate) fn cancel_reason(&self) -> Option<&str> {
        self.reason.get().map(|reason| &**reason)
    }

    /// Queues a report of progress, as [`send`](Self::send) does, unless one that was queued before has come as far.
    pub(crate) async fn report(&self, progress: f64, frame: Frame) {
        if self.form == Form::JsonOnly {
            self.server.observer.pressure(Pressure::MessageDropped);
        } else {
            self.feel(&frame);
            let note = || {
                let rises = !self.is_over() && self.rises(progress);
                if rises {
                    self.progress.store(progress.to_bits(), Ordering::Relaxed);
                }
                rises
            };
            self.outlet.send(&frame, note).await;
        }
    }

    /// The answer is made: nothing that is sent from now on leaves.
    pub(crate) fn set_answered(&self) {
        self.answered.store(true, Ordering::Release);
    }

    fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Whether nothing more may leave: it is answered, or its client has cancelled it and wants to hear no more.
    fn is_over(&self) -> bool {
        self.is_answered() || self.cancellation.cause() == Some(CancelCause::Requested)
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
    #[inline]
    pub(crate) fn observed(&self) -> observer::Exchange<'_> {
        observer::Exchange {
            revision: self.revision,
            method: self.message.method(),
            principal: self.principal.as_ref(),
        }
    }
}

/// Bytes of a reason that are kept: what of a body is not counted either.
const MOST_REASON_BYTES: usize = 4 << 10;

fn cut(reason: &str) -> &str {
    let end = (0..=MOST_REASON_BYTES).rev().find(|end| reason.is_char_boundary(*end)).unwrap_or_default();
    if reason.len() <= MOST_REASON_BYTES { reason } else { reason.get(..end).unwrap_or_default() }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("observed", &self.observed()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let whole = "x".repeat(MOST_REASON_BYTES);
        assert_eq!(cut(&whole), whole);
        assert_eq!(cut(&format!("{whole}x")), whole);
        assert_eq!(cut(&format!("x{}", "\u{e9}".repeat(4 << 20))).len(), MOST_REASON_BYTES - 1);
        assert_eq!(cut(""), "");
    }
}
