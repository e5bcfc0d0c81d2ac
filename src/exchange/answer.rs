//! From what a handler made of a request to what its client reads: the one place where the two meet.

use http::StatusCode;

use super::call::Call;
use super::input_required::{self, Fault, INPUT_REQUIRED};
use super::{Failure, Outcome};
use crate::cancel::CancelCause;
use crate::mcp_error::McpError;
use crate::observer::{ExchangeEnd, Misuse};
use crate::protocol::names::{code, method};
use crate::protocol::refusal::Refusal;
use crate::protocol::revision::Era;
use crate::protocol::sse::Frame;
use crate::protocol::status::{self, HandlerCode};
use crate::reply::{CacheRule, Reply, Stamp};
use crate::server::ResultShape;

/// An answer, ready to leave.
#[derive(Debug)]
pub(crate) struct Finished {
    /// For as long as nothing has been sent.
    pub(crate) status: StatusCode,
    pub(crate) frame: Frame,
    pub(crate) end: ExchangeEnd,
}

impl Finished {
    /// A request that its client cancelled is not answered. Nor is one whose session it deleted: a client that is
    /// closing down may have nobody left to hand an answer to, and clients exist that fail over one.
    pub(crate) fn is_withheld(&self) -> bool {
        matches!(self.end, ExchangeEnd::Cancelled(CancelCause::Requested | CancelCause::SessionEnded))
    }
}

/// Makes the answer of a call, and tells the observer what its client is not told.
pub(crate) fn finish(call: &Call, outcome: Outcome) -> Finished {
    match outcome {
        Outcome::Answered(Ok(reply)) if reply.result_type().as_deref() == Some(INPUT_REQUIRED) => {
            input_required(call, input_required::seal(call, reply))
        }
        Outcome::Answered(Ok(reply)) => result(call, reply, ExchangeEnd::Result),
        Outcome::Asked(round) => input_required(call, input_required::of_round(call, &round)),
        Outcome::Answered(Err(Failure::Error(error))) => handler_error(call, &error),
        Outcome::Answered(Err(Failure::Refused(refusal))) => refused(call, refusal),
        Outcome::Answered(Err(Failure::Misused(misuse))) => misused(call, &misuse),
        Outcome::Answered(Err(Failure::Panicked(message))) => {
            call.server.observer.panicked(&call.observed(), &message);
            internal(call)
        }
        Outcome::Cancelled(cause) => cancelled(call, cause),
    }
}

/// Only some methods may answer that they need input first, and not every client can be asked for any.
fn input_required(call: &Call, reply: Result<Reply, Fault>) -> Finished {
    match reply {
        Ok(mut reply) => {
            reply.shape_questions(call.revision);
            result(call, reply, ExchangeEnd::InputRequired)
        }
        Err(Fault::Misuse(misuse)) => misused(call, &misuse),
        Err(Fault::Error(error)) => handler_error(call, &error),
    }
}

fn misused(call: &Call, misuse: &Misuse) -> Finished {
    call.server.observer.misuse(misuse);
    internal(call)
}

fn result(call: &Call, mut reply: Reply, end: ExchangeEnd) -> Finished {
    match (call.era(), call.server.shape) {
        (Era::Modern, _) => reply.stamp(&Stamp { server_info: call.server.stamped_info(), cache: cache_rule(call) }),
        (Era::Legacy, ResultShape::ClientRevision) => reply.shape(call.message.method(), call.revision),
        (Era::Legacy, ResultShape::AsWritten) => {}
    }
    Finished { status: StatusCode::OK, frame: reply.finish(call.id()), end }
}

/// The results that say for how long they may be kept (2026-07-28, Caching). Fixed per method, so that all pages of a
/// list agree.
fn cache_rule(call: &Call) -> CacheRule {
    let is_retry = call.message.input_responses().is_some() || call.message.request_state().is_some();
    match call.message.method() {
        // What a client's own answers went into is nobody else's, and not the resource itself.
        method::RESOURCES_READ if is_retry => CacheRule::Never,
        method if method::has_cache_hints(method) => CacheRule::Default,
        _ => CacheRule::None,
    }
}

fn handler_error(call: &Call, error: &McpError) -> Finished {
    if error.is_internal() {
        call.server.observer.internal_error(&call.observed(), error);
    }
    match error.code_for(call.era()) {
        HandlerCode::Reserved => {
            call.server.observer.misuse(&Misuse::ReservedErrorCode { code: error.code() });
            internal(call)
        }
        HandlerCode::Leaves(code) => Finished {
            status: status::of_error(call.era(), code),
            frame: Frame::error(Some(call.id()), code, error.message(), error.data_for(call.era())),
            end: ExchangeEnd::Error(code),
        },
    }
}

fn refused(call: &Call, refusal: Refusal) -> Finished {
    let refusal = refusal.with_id(call.message.id());
    call.server.observer.refused(&refusal);
    Finished {
        status: refusal.kind().status(),
        end: ExchangeEnd::Error(refusal.kind().code()),
        frame: refusal_frame(&refusal),
    }
}

/// A refusal as a JSON-RPC error; without an `id` member where none could be read.
pub(crate) fn refusal_frame(refusal: &Refusal) -> Frame {
    let id = refusal.id().map(|id| id.as_str().as_bytes());
    Frame::error(id, refusal.kind().code(), refusal.message(), refusal.data().as_deref())
}

const INTERNAL: &str = "Internal error";

/// What a client reads of whatever is the server's own fault.
pub(crate) fn internal_frame(id: &[u8]) -> Frame {
    Frame::error(Some(id), code::INTERNAL_ERROR, INTERNAL, None)
}

/// What a client reads of a request that was cancelled, where it reads anything.
fn cancelled(call: &Call, cause: CancelCause) -> Finished {
    let message = match cause {
        CancelCause::Deadline => "The request timed out",
        CancelCause::Drained => "The server is shutting down",
        CancelCause::Disconnected | CancelCause::Requested | CancelCause::SessionEnded | CancelCause::Unread => {
            INTERNAL
        }
    };
    Finished { end: ExchangeEnd::Cancelled(cause), ..failed(call, message) }
}

fn internal(call: &Call) -> Finished {
    failed(call, INTERNAL)
}

fn failed(call: &Call, message: &str) -> Finished {
    Finished {
        status: status::of_error(call.era(), code::INTERNAL_ERROR),
        frame: Frame::error(Some(call.id()), code::INTERNAL_ERROR, message, None),
        end: ExchangeEnd::Error(code::INTERNAL_ERROR),
    }
}
