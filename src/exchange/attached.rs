//! Work that belongs to its exchange: every request of 2026-07-28, and legacy ones without a session.
//!
//! Dropping the exchange, or the stream it became, cancels the work.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::Answer;
use super::stream::AttachedStream;
use super::undecided::{Decision, Undecided};
use super::work::Work;

/// An exchange that polls its work in place for as long as its form is undecided: a quiet call spawns nothing. Once it
/// streams, the work moves to a task: a body is polled only while its client reads, and a handler inside it would
/// freeze with its locks held, out of reach of any deadline.
pub(crate) struct Attached {
    /// Gone once it is done.
    work: Option<Work>,
    undecided: Undecided,
}

impl Attached {
    pub(crate) fn new(work: Work) -> Self {
        let undecided = Undecided::new(work.subject().clone());
        Self { work: Some(work), undecided }
    }
}

impl Future for Attached {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Self { work, undecided } = &mut *self;
        if work.as_mut().is_some_and(|work| Pin::new(work).poll(cx).is_ready()) {
            *work = None;
        }
        Poll::Ready(match ready!(undecided.poll(cx)) {
            Decision::Json(status, body) => Answer::Json(status, body),
            Decision::Withheld => Answer::withheld(undecided.subject()),
            Decision::Stream => {
                let stream = AttachedStream::open(undecided.subject().clone());
                if let Some(work) = work.take() {
                    tokio::spawn(work);
                }
                Answer::Attached(stream)
            }
        })
    }
}
