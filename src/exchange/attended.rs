//! A future of the handler's, with what every place that polls one needs: panics, the deadline and cancellation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep_until};

use super::call::Call;
use super::lifecycle::Ticket;
use crate::cancel::CancelCause;
use crate::panics::caught;
use crate::trace::CallSpan;

/// A future of the handler's at work on a call.
pub(super) struct Attended<T> {
    future: Pin<Box<dyn Future<Output = T> + Send>>,
    call: Arc<Call>,
    deadline: Option<Pin<Box<Sleep>>>,
    ticket: Ticket,
    span: CallSpan,
}

/// How it ended.
pub(super) enum End<T> {
    Output(T),
    /// It panicked, saying this.
    Panicked(String),
    Cancelled(CancelCause),
}

impl<T> Attended<T> {
    pub(super) fn new(
        future: Pin<Box<dyn Future<Output = T> + Send>>,
        call: Arc<Call>,
        ticket: Ticket,
        span: CallSpan,
    ) -> Self {
        Self { future, call, deadline: None, ticket, span }
    }

    pub(super) fn call(&self) -> &Arc<Call> {
        &self.call
    }

    /// Goes on with another future, in the place of one that is ready.
    pub(super) fn go_on(&mut self, future: Pin<Box<dyn Future<Output = T> + Send>>) {
        self.future = future;
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End<T>> {
        if let Some(cause) = self.call.cancellation.cause() {
            return Poll::Ready(End::Cancelled(cause));
        }
        match self.span.run(|| caught(|| self.future.as_mut().poll(cx))) {
            Err(message) => return Poll::Ready(End::Panicked(message)),
            Ok(Poll::Ready(output)) => return Poll::Ready(End::Output(output)),
            Ok(Poll::Pending) => {}
        }
        self.call.cancellation.register_driver(cx.waker());
        self.ticket.wait(&self.call);
        if self.is_late(cx) {
            self.call.cancellation.cancel(CancelCause::Deadline);
        }
        match self.call.cancellation.cause() {
            Some(cause) => Poll::Ready(End::Cancelled(cause)),
            None => Poll::Pending,
        }
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = self.call.deadline else {
            return false;
        };
        self.deadline.get_or_insert_with(|| Box::pin(sleep_until(deadline))).as_mut().poll(cx).is_ready()
    }

    /// Drops the future, and gives back what is left. A destructor that panics is reported like any panic of the
    /// handler, and takes nobody along.
    pub(super) fn finish(self) -> (Arc<Call>, Ticket, CallSpan) {
        let Self { future, call, ticket, span, .. } = self;
        span.run(|| {
            if let Err(message) = caught(|| drop(future)) {
                call.server.observer.panicked(&call.observed(), &message);
            }
        });
        (call, ticket, span)
    }
}
