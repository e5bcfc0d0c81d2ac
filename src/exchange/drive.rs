//! The handler's future with what every place that polls it needs: panics, the deadline, cancellation, and its end.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep_until};

use super::answer::{self, Finished};
use super::call::Call;
use super::lifecycle::Ticket;
use super::{Failure, Outcome};
use crate::cancel::CancelCause;
use crate::handler::Answering;

/// Drives one handler to its answer, in the exchange or in a task of its own.
pub(crate) struct Drive {
    /// Gone once the answer is made.
    work: Option<Work>,
}

struct Work {
    answering: Answering,
    call: Arc<Call>,
    deadline: Option<Pin<Box<Sleep>>>,
    ticket: Ticket,
}

impl Drive {
    /// Starts the handler, which may panic before it has a future.
    pub(crate) fn start(call: &Arc<Call>, ticket: Ticket, start: impl FnOnce(&Arc<Call>) -> Answering) -> Self {
        call.server.observer.exchange_started(&call.observed());
        let answering = catch_unwind(AssertUnwindSafe(|| start(call))).unwrap_or_else(|panic| {
            let message = panic_message(&*panic);
            Box::pin(async move { Err(Failure::Panicked(message)) })
        });
        Self { work: Some(Work { answering, call: Arc::clone(call), deadline: None, ticket }) }
    }
}

impl Future for Drive {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Finished> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        match work.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => match self.work.take() {
                Some(work) => Poll::Ready(work.end(outcome)),
                None => Poll::Pending,
            },
        }
    }
}

impl Work {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(cause) = self.call.cancellation.cause() {
            return Poll::Ready(Outcome::Cancelled(cause));
        }
        match catch_unwind(AssertUnwindSafe(|| self.answering.as_mut().poll(cx))) {
            Err(panic) => {
                return Poll::Ready(Outcome::Answered(Err(Failure::Panicked(panic_message(&*panic)))));
            }
            Ok(Poll::Ready(answer)) => return Poll::Ready(Outcome::Answered(answer)),
            Ok(Poll::Pending) => {}
        }
        self.call.cancellation.register_driver(cx.waker());
        self.ticket.wait(&self.call);
        if self.is_late(cx) {
            self.call.cancellation.cancel(CancelCause::Deadline);
        }
        match self.call.cancellation.cause() {
            Some(cause) => Poll::Ready(Outcome::Cancelled(cause)),
            None => Poll::Pending,
        }
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = self.call.deadline else {
            return false;
        };
        self.deadline.get_or_insert_with(|| Box::pin(sleep_until(deadline))).as_mut().poll(cx).is_ready()
    }

    /// Drops the handler's future and makes the answer. Dropping first: what it still holds is given back before the
    /// client hears of the end.
    fn end(self, outcome: Outcome) -> Finished {
        let Self { answering, call, ticket, .. } = self;
        drop_quietly(answering, &call);
        call.set_answered();
        let finished = answer::finish(&call, outcome);
        call.server.observer.exchange_ended(&call.observed(), finished.end);
        drop(ticket);
        finished
    }
}

impl Drop for Drive {
    /// The exchange was dropped before its answer: the client is gone.
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            work.call.cancellation.cancel(CancelCause::Disconnected);
            work.end(Outcome::Cancelled(CancelCause::Disconnected));
        }
    }
}

/// A destructor that panics is reported like any panic of the handler, and does not take the connection along.
fn drop_quietly(answering: Answering, call: &Call) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(answering))) {
        call.server.observer.panicked(&call.observed(), &panic_message(&*panic));
    }
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic that carries no text").to_owned()
}
