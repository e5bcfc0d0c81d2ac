//! The reading end of an answer that became an event stream.

use std::task::{Context, Poll};

use bytes::Bytes;

use super::keep_alive::KeepAlive;
use super::subject::Subject;
use crate::cancel::CancelCause;
use crate::session::AnswerStream;

/// The events of an answer that belongs to its exchange. Dropping it before its end cancels the work.
#[derive(Debug)]
pub(crate) struct AttachedStream(Events);

/// The events of an answer that belongs to a session. Dropping it leaves the work alone.
#[derive(Debug)]
pub(crate) struct DetachedStream {
    events: Events,
    _holds: Option<AnswerStream>,
}

impl AttachedStream {
    pub(super) fn open(subject: Subject) -> Self {
        Self(Events::open(subject))
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_next(cx)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.is_done()
    }
}

impl Drop for AttachedStream {
    fn drop(&mut self) {
        if !self.is_done() {
            self.0.subject.cancel(CancelCause::Disconnected);
        }
    }
}

impl DetachedStream {
    pub(super) fn open(subject: Subject) -> Self {
        let session = subject.calls().first().and_then(|call| call.session.as_ref());
        Self { _holds: session.map(AnswerStream::of), events: Events::open(subject) }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.poll_next(cx)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.events.is_done()
    }
}

/// The events, with comments while there are none.
#[derive(Debug)]
struct Events {
    subject: Subject,
    keep_alive: KeepAlive,
}

impl Events {
    fn open(subject: Subject) -> Self {
        let server = subject.server();
        server.lifecycle.stream_opened();
        if let Some(call) = subject.calls().first() {
            server.observer.stream_opened(&call.observed());
        }
        Self { subject, keep_alive: KeepAlive::default() }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.subject.queue().poll_next(cx) {
            Poll::Ready(event) => {
                self.keep_alive.restart();
                Poll::Ready(event)
            }
            Poll::Pending => self.keep_alive.poll(self.subject.server().limits.keep_alive, cx).map(Some),
        }
    }

    /// Whether the answer has been read to its end.
    fn is_done(&self) -> bool {
        self.subject.queue().is_drained()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.subject.queue().abandon();
        self.subject.server().lifecycle.stream_closed();
    }
}
