//! One message being answered: what it says, who sent it, and the way back.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use super::queue::Queue;
use crate::cancel::Cancellation;
use crate::limits::from_now;
use crate::observer;
use crate::principal::Principal;
use crate::protocol::accept::Accepts;
use crate::protocol::envelope::Message;
use crate::protocol::level::LogLevel;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::sse::Frame;
use crate::server::Server;

/// One message being answered. Shared by the request, its context and whoever drives the handler: one allocation.
pub(crate) struct Call {
    pub(crate) message: Message,
    pub(crate) revision: Revision,
    pub(crate) http: http::request::Parts,
    pub(crate) principal: Option<Principal>,
    pub(crate) server: Arc<Server>,
    pub(crate) cancellation: Cancellation,
    pub(crate) deadline: Option<Instant>,
    pub(crate) form: Form,
    pub(crate) queue: Queue,
    /// The bits of the last report of progress that was queued. Written under the lock of the queue.
    progress: AtomicU64,
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
    pub(crate) fn new(
        server: Arc<Server>,
        message: Message,
        revision: Revision,
        http: http::request::Parts,
        principal: Option<Principal>,
        form: Form,
    ) -> Self {
        Self {
            deadline: server.limits.handler_time.map(from_now),
            queue: Queue::new(server.limits.queue_bytes),
            cancellation: Cancellation::default(),
            progress: AtomicU64::new(f64::NEG_INFINITY.to_bits()),
            message,
            revision,
            http,
            principal,
            server,
            form,
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
    /// once the answer is made.
    pub(crate) async fn send(&self, frame: Frame) {
        if self.form != Form::JsonOnly {
            self.queue.send(frame.event(), || true).await;
        }
    }

    /// Queues a report of progress, as [`send`](Self::send) does, unless one that was queued before has come as far.
    pub(crate) async fn report(&self, progress: f64, frame: Frame) {
        if self.form != Form::JsonOnly {
            let note = || {
                let rises = self.rises(progress);
                if rises {
                    self.progress.store(progress.to_bits(), Ordering::Relaxed);
                }
                rises
            };
            self.queue.send(frame.event(), note).await;
        }
    }

    /// Whether a report of progress rises above all that were queued.
    pub(crate) fn rises(&self, progress: f64) -> bool {
        progress.is_finite() && progress > f64::from_bits(self.progress.load(Ordering::Relaxed))
    }

    /// Whether the client is to see a log message of this level.
    pub(crate) fn wants_log(&self, level: LogLevel) -> bool {
        let least = match self.era() {
            Era::Modern => self.message.log_level().and_then(LogLevel::from_json),
            Era::Legacy => Some(LogLevel::Info),
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
