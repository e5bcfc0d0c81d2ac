//! One request on its way from admission to its answer: `Undecided → Json | Sse → Done`.
//!
//! While undecided, the handler is polled in place, by whoever polls the exchange: a quiet call spawns nothing and makes
//! no timer before the handler is first pending. The first message it sends, or the commit time, turns the answer into
//! an event stream, and the handler moves to a task of its own: a body is polled only while its client reads, and a
//! handler inside it would freeze with its locks held, out of reach of any deadline.
//!
//! The work belongs to the exchange: dropping the exchange, or the stream it became, cancels it.

pub(crate) mod answer;
mod attended;
mod builtin;
pub(crate) mod call;
mod drive;
pub(crate) mod lifecycle;
mod notified;
mod queue;
mod stream;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use http::StatusCode;
use tokio::time::{Sleep, sleep};

use crate::cancel::CancelCause;
use crate::context::RequestContext;
use crate::handler::Answering;
use crate::mcp_error::McpError;
use crate::protocol::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Request;
use answer::Finished;
use attended::panic_message;
pub(crate) use builtin::InitializeParams;
use call::{Call, Form};
use drive::Drive;
use lifecycle::Ticket;
pub(crate) use notified::hear;
pub(crate) use stream::Stream;

/// Why a request got no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The handler answered with an error.
    Error(McpError),
    /// The transport refused it after all.
    Refused(Refusal),
    /// The handler panicked, saying this.
    Panicked(String),
}

/// How the work on a request ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Result<Reply, Failure>),
    Cancelled(CancelCause),
}

/// The handler's own answer, or the transport's where it gives one.
pub(crate) fn answering(call: &Arc<Call>) -> Answering {
    match builtin::answer(call) {
        Some(answer) => Box::pin(std::future::ready(answer.map_err(Failure::Error))),
        None => {
            let (request, cx) = (Request::new(Arc::clone(call)), RequestContext::new(Arc::clone(call)));
            Arc::clone(&call.server.handler).request(request, cx)
        }
    }
}

/// The answer to a request of the transport's own. `None` where it fails: the application is told of that as if a client
/// had asked.
pub(crate) async fn ask(call: &Arc<Call>) -> Option<Reply> {
    let failure = match AssertUnwindSafe(async { answering(call).await }).catch_unwind().await {
        Ok(Ok(reply)) => return Some(reply),
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::Panicked(panic_message(panic)),
    };
    match failure {
        Failure::Error(error) if error.is_internal() => call.server.observer.internal_error(&call.observed(), &error),
        Failure::Panicked(message) => call.server.observer.panicked(&call.observed(), &message),
        Failure::Error(_) | Failure::Refused(_) => {}
    }
    None
}

/// An exchange whose form is not decided yet.
pub(crate) struct Exchange {
    call: Arc<Call>,
    /// Gone once decided.
    drive: Option<Drive>,
    commit: Option<Pin<Box<Sleep>>>,
}

/// The form it took.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(StatusCode, Bytes),
    Sse(Stream),
}

impl Exchange {
    /// Begins to answer a call with what `start` makes of it.
    pub(crate) fn start(call: Arc<Call>, ticket: Ticket, start: impl FnOnce(&Arc<Call>) -> Answering) -> Self {
        let drive = Drive::start(&call, ticket, start);
        Self { call, drive: Some(drive), commit: None }
    }

    fn decide(&self, finished: Finished) -> Answer {
        let Finished { status, frame, .. } = finished;
        // Answers that are not 200 are JSON, whatever the client takes.
        let may_be_json = self.call.form != Form::SseOnly || status != StatusCode::OK;
        if may_be_json && self.call.queue.end_unused() {
            return Answer::Json(status, frame.json());
        }
        let stream = Stream::open(Arc::clone(&self.call));
        self.call.queue.finish(frame.event());
        Answer::Sse(stream)
    }

    /// Whether the answer has to become a stream though the handler is still at work.
    fn must_stream(&mut self, cx: &mut Context<'_>) -> bool {
        if self.call.form == Form::JsonOnly {
            return false;
        }
        if self.call.queue.poll_filled(cx) {
            return true;
        }
        let after = self.call.server.limits.commit_after;
        self.commit.get_or_insert_with(|| Box::pin(sleep(after))).as_mut().poll(cx).is_ready()
    }
}

impl Future for Exchange {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(drive) = &mut self.drive else {
            return Poll::Pending;
        };
        if let Poll::Ready(finished) = Pin::new(drive).poll(cx) {
            self.drive = None;
            return Poll::Ready(self.decide(finished));
        }
        if !self.must_stream(cx) {
            return Poll::Pending;
        }
        let Some(drive) = self.drive.take() else {
            return Poll::Pending;
        };
        let stream = Stream::open(Arc::clone(&self.call));
        let ending = Ending(Arc::clone(&self.call));
        tokio::spawn(async move { ending.0.queue.finish(drive.await.frame.event()) });
        Poll::Ready(Answer::Sse(stream))
    }
}

impl Drop for Exchange {
    /// Dropped before its answer, it has no reader: whoever still sends must not wait for one.
    fn drop(&mut self) {
        if self.drive.is_some() {
            self.call.queue.abandon();
        }
    }
}

/// Ends the stream however its task ends, so that no client waits for a task that is gone: one whose observer panicked,
/// or whose runtime was shut down.
struct Ending(Arc<Call>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.queue.end();
    }
}
