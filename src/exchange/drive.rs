//! A request's handler on the way to its answer, for every place that polls one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::answer::{self, Finished};
use super::attended::{Attended, End};
use super::call::Call;
use super::input_required::{self, Played};
use super::lifecycle::Ticket;
use super::{Failure, Outcome};
use crate::cancel::CancelCause;
use crate::handler::Answering;
use crate::panics::caught;
use crate::reply::Reply;
use crate::trace::CallSpan;

/// Drives one handler to its answer, in the exchange or in a task of its own.
pub(crate) struct Drive {
    /// Gone once the answer is made.
    work: Option<Attended<Result<Reply, Failure>>>,
}

impl Drive {
    /// Starts the handler, which may panic before it has a future.
    pub(crate) fn start(call: &Arc<Call>, ticket: Ticket, start: impl FnOnce(&Arc<Call>) -> Answering) -> Self {
        let span = CallSpan::of(call);
        let answering = span.run(|| {
            call.server.observer.exchange_started(&call.observed());
            caught(|| start(call))
                .unwrap_or_else(|message| Box::pin(std::future::ready(Err(Failure::Panicked(message)))))
        });
        Self { work: Some(Attended::new(answering, Arc::clone(call), ticket, span)) }
    }
}

impl Future for Drive {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Finished> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let outcome = loop {
            match work.poll(cx) {
                Poll::Pending => match work.call().end_round() {
                    Some(round) => break Outcome::Asked(round),
                    None => return Poll::Pending,
                },
                Poll::Ready(End::Output(answer)) => match input_required::play(work.call(), answer) {
                    Played::Over(answer) => break Outcome::Answered(answer),
                    Played::Next(round) => work.go_on(round),
                },
                Poll::Ready(End::Panicked(message)) => break Outcome::Answered(Err(Failure::Panicked(message))),
                Poll::Ready(End::Cancelled(cause)) => break Outcome::Cancelled(cause),
            }
        };
        match self.work.take() {
            Some(work) => Poll::Ready(end(work, outcome)),
            None => Poll::Pending,
        }
    }
}

impl Drop for Drive {
    /// The exchange was dropped before its answer: the client is gone.
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let cancellation = &work.call().cancellation;
            cancellation.cancel(CancelCause::Disconnected);
            let cause = cancellation.cause().unwrap_or(CancelCause::Disconnected);
            end(work, Outcome::Cancelled(cause));
        }
    }
}

/// Drops the handler's future and makes the answer. Dropping first: what it still holds is given back before the client
/// hears of the end.
fn end(work: Attended<Result<Reply, Failure>>, outcome: Outcome) -> Finished {
    let (call, ticket, span) = work.finish();
    span.run(|| {
        call.end_asks();
        call.set_answered();
        span.answered(&call, &outcome);
        let finished = answer::finish(&call, outcome);
        span.ended(finished.end);
        call.server.observer.exchange_ended(&call.observed(), finished.end);
        drop(ticket);
        finished
    })
}
