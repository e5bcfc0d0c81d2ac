//! The handlers of one exchange at work: driven until every answer is queued.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::answer::Finished;
use super::drive::Drive;
use super::subject::{Batch, Subject};
use crate::store::queue::AnswerFrame;

/// Drives one handler, or all of a batch at once. Ready once the queue has ended.
pub(crate) struct Work {
    subject: Subject,
    drives: Drives,
}

enum Drives {
    One(Drive),
    Batch(FuturesUnordered<Drive>),
}

impl Work {
    pub(crate) fn one(subject: Subject, drive: Drive) -> Self {
        Self { subject, drives: Drives::One(drive) }
    }

    /// A batch, of which some elements may have been answered already.
    pub(crate) fn batch(batch: Arc<Batch>, drives: impl IntoIterator<Item = Drive>) -> Self {
        Self { subject: Subject::Batch(batch), drives: Drives::Batch(drives.into_iter().collect()) }
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }
}

impl Future for Work {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { subject, drives } = &mut *self;
        match drives {
            Drives::One(drive) => match answer(ready!(Pin::new(drive).poll(cx))) {
                Some(answer) => subject.queue().finish(answer),
                None => subject.queue().end(),
            },
            Drives::Batch(drives) => {
                while let Some(finished) = ready!(drives.poll_next_unpin(cx)) {
                    if let Some(answer) = answer(finished) {
                        subject.queue().answer(answer);
                    }
                }
                subject.queue().end();
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Work {
    /// However it ends, no client waits for work that is gone: not where an observer panicked, nor where the runtime
    /// was shut down.
    fn drop(&mut self) {
        self.subject.queue().end();
    }
}

fn answer(finished: Finished) -> Option<AnswerFrame> {
    (!finished.is_withheld()).then_some(AnswerFrame { status: finished.status, frame: finished.frame })
}
