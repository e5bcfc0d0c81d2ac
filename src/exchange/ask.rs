//! A question on its way, in either era.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::call::Call;
use super::requests;
use super::rounds::Place;
use crate::protocol::input::Lack;
use crate::protocol::revision::Era;
use crate::question::{AskError, InputResponse, Question};

/// The answer to a [`Question`], on its way: what [`RequestContext::ask`](crate::RequestContext::ask) returns.
///
/// Dropping it takes the question back.
#[must_use = "futures do nothing unless polled"]
pub struct Ask(State);

enum State {
    /// Up to 2025-11-25: a request of the server's own.
    Request(Pin<Box<dyn Future<Output = Result<InputResponse, AskError>> + Send>>),
    /// 2026-07-28: part of a round.
    Round(InRound),
    Failed(AskError),
    Done,
}

struct InRound {
    call: Arc<Call>,
    question: Question,
    place: Place,
}

impl Ask {
    pub(crate) fn new(call: &Arc<Call>, name: &str, question: Question) -> Self {
        let asked = check(call, &question).and_then(|()| match call.era() {
            // The answers of one round could not be kept for the next.
            Era::Modern if !call.server.can_carry() => Err(AskError::Unsupported { capability: &[] }),
            Era::Legacy => Ok(State::Request(Box::pin(requests::ask(Arc::clone(call), question)))),
            Era::Modern => {
                let place = call.rounds().ok_or(AskError::Unreachable)?.place(name, &question);
                Ok(State::Round(InRound { call: Arc::clone(call), question, place }))
            }
        });
        Self(asked.unwrap_or_else(State::Failed))
    }
}

/// Whether this client can be asked this, while this call is answered.
pub(super) fn check(call: &Call, question: &Question) -> Result<(), AskError> {
    if call.era() == Era::Modern && !call.takes_input() {
        return Err(AskError::Unsupported { capability: &[] });
    }
    match question.kind().check(call.revision, call.client_capabilities().unwrap_or_default()) {
        Ok(()) => Ok(()),
        // Without a session nothing is declared either: what is missing is the way.
        Err(_) if call.era() == Era::Legacy && call.session.is_none() => Err(AskError::Unreachable),
        Err(Lack::Capability(capability)) => Err(AskError::Unsupported { capability }),
        Err(Lack::Revision) => Err(AskError::Unsupported { capability: &[] }),
    }
}

impl Future for Ask {
    type Output = Result<InputResponse, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = match &mut self.0 {
            State::Request(request) => request.as_mut().poll(cx),
            State::Round(round) => round.poll(cx),
            State::Failed(error) => Poll::Ready(Err(error.clone())),
            // Polled after its end.
            State::Done => return Poll::Ready(Err(AskError::Unreachable)),
        };
        if polled.is_ready() {
            self.0 = State::Done;
        }
        polled
    }
}

impl InRound {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<InputResponse, AskError>> {
        let Self { call, question, place } = self;
        let Some(rounds) = call.rounds() else {
            return Poll::Ready(Err(AskError::Unreachable));
        };
        let polled = rounds.poll(place, question, cx);
        if polled.is_pending() {
            // The round ends when whoever drives the handler looks. A task that the handler spawned has to call them.
            call.cancellation.wake_driver();
        }
        polled
    }
}

impl Drop for InRound {
    fn drop(&mut self) {
        if let Some(rounds) = self.call.rounds() {
            rounds.withdraw(&self.place);
        }
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Request(_) => "request",
            State::Round(_) => "round",
            State::Failed(_) => "failed",
            State::Done => "done",
        };
        f.debug_tuple("Ask").field(&state).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_anywhere() {
        fn goes_anywhere<T: Send + Unpin + 'static>() {}
        goes_anywhere::<Ask>();
    }
}
