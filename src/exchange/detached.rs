//! Work that belongs to a session: a dropped connection does not stop it, `notifications/cancelled` does.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::Answer;
use super::stream::DetachedStream;
use super::subject::Subject;
use super::undecided::{Decision, Undecided};
use super::work::Work;

/// An exchange that waits for work of its session. The work is polled once in place, and moves to a task of its own if
/// that was not enough.
pub(crate) struct Detached {
    /// Until the first poll.
    work: Option<Work>,
    subject: Subject,
    undecided: Undecided,
    /// Whether the answer has been handed on, to a response or to the stream that reads on.
    decided: bool,
}

impl Detached {
    pub(crate) fn new(work: Work) -> Self {
        let subject = work.subject().clone();
        Self { subject, work: Some(work), undecided: Undecided::default(), decided: false }
    }
}

impl Future for Detached {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Self { work, subject, undecided, decided } = &mut *self;
        if let Some(mut work) = work.take() {
            if Pin::new(&mut work).poll(cx).is_pending() {
                tokio::spawn(work);
            }
        }
        let decision = ready!(undecided.poll(subject, cx));
        *decided = true;
        Poll::Ready(match decision {
            Decision::Json(status, body) => Answer::Json(status, body),
            Decision::Withheld => Answer::withheld(subject),
            Decision::Stream => Answer::Detached(DetachedStream::open(subject.clone())),
        })
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        if !self.decided {
            // Nobody will read: a handler that sends must not wait for room.
            self.subject.queue().abandon();
        }
    }
}
