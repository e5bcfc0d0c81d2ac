//! Requests on their way from admission to their answer: `Undecided → Json | Sse → Done`.
//!
//! The first message that a handler sends, or the commit time, turns the answer into an event stream. Whose the work is
//! decides what a dropped connection means, and there are two types for it: [`Attached`] and [`Detached`].

pub(crate) mod answer;
mod ask;
mod attached;
mod attended;
mod builtin;
pub(crate) mod call;
mod carried;
mod detached;
mod drive;
mod input_required;
pub(crate) mod keep_alive;
pub(crate) mod lifecycle;
pub(crate) mod listening;
mod notified;
pub(crate) mod outbox;
mod requests;
mod rounds;
mod stream;
pub(crate) mod subject;
mod undecided;
mod unread;
mod work;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

pub use ask::Ask;
pub(crate) use attached::Attached;
use call::{Call, Form};
pub(crate) use detached::Detached;
pub(crate) use drive::Drive;
pub(crate) use input_required::Input;
pub(crate) use notified::{hear, heard};
use rounds::Round;
pub(crate) use stream::{AttachedStream, DetachedStream};
use subject::Subject;
pub(crate) use work::Work;

use crate::cancel::CancelCause;
use crate::context::RequestContext;
use crate::handler::Answering;
use crate::mcp_error::McpError;
use crate::observer::Misuse;
use crate::panics::caught_in;
use crate::protocol::refusal::Refusal;
#[cfg(feature = "state")]
use crate::protocol::revision::Era;
use crate::reply::Reply;
use crate::request::Request;

/// Why a request got no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The handler answered with an error.
    Error(McpError),
    /// The transport refused it after all.
    Refused(Refusal),
    /// The handler answered with what the protocol forbids.
    Misused(Misuse),
    /// The handler panicked, saying this.
    Panicked(String),
}

/// How the work on a request ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Result<Reply, Failure>),
    /// Its client has to be asked first.
    Asked(Round),
    Cancelled(CancelCause),
}

/// The handler's own answer, or the transport's where it gives one.
pub(crate) fn answering(call: &Arc<Call>) -> Answering {
    builtin::answer(call).or_else(|| resumed(call)).unwrap_or_else(|| {
        let (request, cx) = (Request::new(Arc::clone(call)), RequestContext::new(Arc::clone(call)));
        Arc::clone(&call.server.handler).request(request, cx)
    })
}

/// The handler's answer to a request that goes on from an earlier round (2026-07-28). Before it runs, the state that
/// its client kept is opened.
#[cfg(feature = "state")]
fn resumed(call: &Arc<Call>) -> Option<Answering> {
    if call.era() == Era::Legacy {
        return None;
    }
    carried::sent(call)?;
    let call = Arc::clone(call);
    Some(Box::pin(async move {
        let mut carried = carried::open(&call).await.map_err(Failure::Refused)?;
        let own = carried.own.take();
        call.resume(carried);
        let cx = RequestContext::with_input(Arc::clone(&call), Input::carried(&call, own.as_ref())?);
        Arc::clone(&call.server.handler).request(Request::new(Arc::clone(&call)), cx).await
    }))
}

/// Nothing is carried from round to round.
#[cfg(not(feature = "state"))]
fn resumed(_: &Arc<Call>) -> Option<Answering> {
    None
}

/// The answer to a request of the transport's own. `None` where it fails: the application is told of that as if a
/// client had asked.
pub(crate) async fn own_request(call: &Arc<Call>) -> Option<Reply> {
    let failure = match caught_in(async { answering(call).await }).await {
        Ok(Ok(reply)) => return Some(reply),
        Ok(Err(failure)) => failure,
        Err(message) => Failure::Panicked(message),
    };
    match failure {
        Failure::Error(error) if error.is_internal() => call.server.observer.internal_error(&call.observed(), &error),
        Failure::Panicked(message) => call.server.observer.panicked(&call.observed(), &message),
        Failure::Misused(misuse) => call.server.observer.misuse(&misuse),
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
