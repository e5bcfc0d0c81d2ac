//! Requests on their way from admission to their answer: `Undecided → Json | Sse → Done`.
//!
//! The first message that a handler sends, or the commit time, turns the answer into an event stream. Whose the work is
//! decides what a dropped connection means, and there are two types for it: [`Attached`] and [`Detached`].

pub(crate) mod answer;
mod attached;
mod attended;
mod builtin;
pub(crate) mod call;
mod detached;
mod drive;
pub(crate) mod keep_alive;
pub(crate) mod lifecycle;
mod notified;
pub(crate) mod queue;
mod stream;
pub(crate) mod subject;
mod undecided;
mod work;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::StatusCode;

pub(crate) use attached::Attached;
pub(crate) use attended::caught;
use attended::panic_message;
pub(crate) use builtin::InitializeParams;
use call::{Call, Form};
pub(crate) use detached::Detached;
pub(crate) use drive::Drive;
pub(crate) use notified::hear;
pub(crate) use stream::{AttachedStream, DetachedStream};
use subject::Subject;
pub(crate) use work::Work;

use crate::cancel::CancelCause;
use crate::context::RequestContext;
use crate::handler::Answering;
use crate::mcp_error::McpError;
use crate::protocol::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Request;

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
    builtin::answer(call).unwrap_or_else(|| {
        let (request, cx) = (Request::new(Arc::clone(call)), RequestContext::new(Arc::clone(call)));
        Arc::clone(&call.server.handler).request(request, cx)
    })
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

/// The form an answer took.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(StatusCode, Bytes),
    Attached(AttachedStream),
    Detached(DetachedStream),
    /// Nothing, to a client that takes only JSON.
    Nothing,
}

impl Answer {
    /// The answer to a request that its client cancelled: a stream that ends at once.
    fn withheld(subject: &Subject) -> Self {
        match subject.form() {
            Form::JsonOnly => Self::Nothing,
            Form::JsonFirst | Form::SseOnly => Self::Detached(DetachedStream::empty(subject.clone())),
        }
    }
}
