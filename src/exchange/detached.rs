//! Work that belongs to a session: a dropped connection does not stop it, `notifications/cancelled` does.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::Answer;
use super::stream::DetachedStream;
use super::undecided::{Decision, Undecided};
use super::work::Work;

/// An exchange that waits for work of its session. The work is polled once in place, and moves to a task of its own if
/// that was not enough.
pub(crate) struct Detached {
    /// Until the first poll.
    work: Option<Work>,
    undecided: Undecided,
}

impl Detached {
    pub(crate) fn new(work: Work) -> Self {
        let undecided = Undecided::new(work.subject().clone());
        Self { work: Some(work), undecided }
    }
}

impl Future for Detached {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Self { work, undecided } = &mut *self;
        if let Some(mut work) = work.take() {
            if Pin::new(&mut work).poll(cx).is_pending() {
                tokio::spawn(work);
            }
        }
        Poll::Ready(match ready!(undecided.poll(cx)) {
            Decision::Json(status, body) => Answer::Json(status, body),
            Decision::Withheld => Answer::withheld(undecided.subject()),
            Decision::Stream => Answer::Detached(DetachedStream::open(undecided.subject().clone())),
        })
    }
}
