//! The reading end of an answer that became an event stream.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::keep_alive::KeepAlive;
use super::lifecycle::OpenStream;
use super::subject::Subject;
use crate::admission::Hold;
use crate::cancel::CancelCause;
use crate::observer::StreamKind;
use crate::protocol::sse;
use crate::server::Server;
use crate::session::{AnswerStream, Session, SessionState};
use crate::store::queue::{Opening, Queue};
use crate::turn::Turn;

/// The events of an answer that belongs to its exchange. Dropping it before its end cancels the work.
#[derive(Debug)]
pub(crate) struct AttachedStream(Events);

/// The events of an answer that belongs to a session. Dropping it leaves the work alone.
#[derive(Debug)]
pub(crate) struct DetachedStream(Events);

impl AttachedStream {
    pub(super) fn open(subject: Subject) -> Self {
        let unread = subject.clone();
        Self(Events::open(subject, move || {
            unread.cancel(CancelCause::Unread);
            unread.queue().leave(Turn::FIRST);
        }))
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
        match &self.0.source {
            Source::Exchange(subject) if !self.is_done() => subject.cancel(CancelCause::Disconnected),
            _ => {}
        }
    }
}

impl DetachedStream {
    /// From now on what is sent has ids, where the session keeps its streams.
    pub(super) fn open(subject: Subject) -> Self {
        let session = subject.session();
        let kept = session.and_then(|session| session.kept());
        if let (Some(kept), Some(queue), Some(session)) = (kept, subject.shared_queue(), session) {
            let opening = if session.revision().has_polling() { Opening::Marked } else { Opening::Plain };
            queue.record(&kept.log, opening);
        }
        Self::of(subject)
    }

    /// A stream that ends at once, and that nobody has to resume.
    pub(super) fn empty(subject: Subject) -> Self {
        Self::of(subject)
    }

    /// Given up, it is as if its connection had broken.
    fn of(subject: Subject) -> Self {
        let (unread, holds) = (subject.clone(), subject.session().map(AnswerStream::of));
        Self(Events::open(subject, move || {
            unread.queue().leave(Turn::FIRST);
            drop(holds);
        }))
    }

    /// The rest of a stream, for a client that has come back.
    pub(crate) fn resume(
        server: &Arc<Server>,
        session: &Arc<SessionState>,
        (queue, turn): (Arc<Queue>, Turn),
        hold: Hold,
    ) -> Self {
        let (unread, holds) = (Arc::clone(&queue), AnswerStream::of(session));
        // What it takes of its caller's account goes with it.
        let open = OpenStream::of(server, StreamKind::Resumed).watched(move || {
            unread.leave(turn);
            drop((holds, hold));
        });
        server.observer.stream_resumed(&Session::new(Arc::clone(session)));
        let events = Events {
            open,
            source: Source::Resumed(queue),
            turn,
            keep_alive: KeepAlive::default(),
            // The first byte goes out at once, as on every stream that a GET opens.
            greeting: Some(Bytes::from_static(sse::KEEP_ALIVE)),
        };
        Self(events)
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_next(cx)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.is_done()
    }
}

/// The events, with comments while there are none.
#[derive(Debug)]
struct Events {
    open: OpenStream,
    source: Source,
    turn: Turn,
    keep_alive: KeepAlive,
    greeting: Option<Bytes>,
}

/// Where events come from.
#[derive(Debug)]
enum Source {
    Exchange(Subject),
    Resumed(Arc<Queue>),
}

impl Source {
    fn queue(&self) -> &Queue {
        match self {
            Self::Exchange(subject) => subject.queue(),
            Self::Resumed(queue) => queue,
        }
    }
}

impl Events {
    fn open(subject: Subject, give_up: impl FnOnce() + Send + 'static) -> Self {
        let open = OpenStream::of(subject.server(), StreamKind::Answer).watched(give_up);
        if let Some(call) = subject.calls().first() {
            open.server().observer.stream_opened(&call.observed());
        }
        let source = Source::Exchange(subject);
        Self { open, source, turn: Turn::FIRST, keep_alive: KeepAlive::default(), greeting: None }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.open.polled();
        if self.open.is_given_up() {
            return Poll::Ready(None);
        }
        if let Some(greeting) = self.greeting.take() {
            return Poll::Ready(Some(greeting));
        }
        match self.source.queue().poll_next(self.turn, cx) {
            Poll::Ready(event) => {
                self.keep_alive.restart();
                Poll::Ready(event)
            }
            Poll::Pending => self.keep_alive.poll(self.open.server().limits.keep_alive, cx).map(Some),
        }
    }

    /// Whether the answer has been read to its end.
    fn is_done(&self) -> bool {
        self.open.is_given_up() || self.greeting.is_none() && self.source.queue().is_drained(self.turn)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.source.queue().leave(self.turn);
    }
}
