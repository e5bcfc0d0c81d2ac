//! What one HTTP exchange is about: one call, or a batch of them with one way back.

use std::sync::Arc;

use super::call::{Call, Form};
use crate::cancel::CancelCause;
use crate::server::Server;
use crate::session::SessionState;
use crate::store::queue::Queue;

/// One call, or a batch.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    One(Arc<Call>),
    Batch(Arc<Batch>),
}

/// Calls that share a queue.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) server: Arc<Server>,
    pub(crate) form: Form,
    pub(crate) queue: Arc<Queue>,
    pub(crate) calls: Vec<Arc<Call>>,
    pub(crate) session: Option<Arc<SessionState>>,
}

impl Subject {
    pub(crate) fn queue(&self) -> &Queue {
        match self {
            Self::One(call) => call.outlet.queue(),
            Self::Batch(batch) => &batch.queue,
        }
    }

    /// The same, where somebody else may read it after the exchange.
    pub(crate) fn shared_queue(&self) -> Option<&Arc<Queue>> {
        match self {
            Self::One(call) => call.outlet.shared(),
            Self::Batch(batch) => Some(&batch.queue),
        }
    }

    pub(crate) fn session(&self) -> Option<&Arc<SessionState>> {
        match self {
            Self::One(call) => call.session.as_ref(),
            Self::Batch(batch) => batch.session.as_ref(),
        }
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        match self {
            Self::One(call) => &call.server,
            Self::Batch(batch) => &batch.server,
        }
    }

    pub(crate) fn form(&self) -> Form {
        match self {
            Self::One(call) => call.form,
            Self::Batch(batch) => batch.form,
        }
    }

    pub(crate) fn calls(&self) -> &[Arc<Call>] {
        match self {
            Self::One(call) => std::slice::from_ref(call),
            Self::Batch(batch) => &batch.calls,
        }
    }

    pub(crate) fn cancel(&self, cause: CancelCause) {
        for call in self.calls() {
            call.cancellation.cancel(cause);
        }
    }
}
