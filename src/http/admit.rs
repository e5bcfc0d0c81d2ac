//! What is decided on the head of a request: everything for GET, DELETE and OPTIONS, the first rungs for POST.

use std::sync::Arc;

use http::{HeaderValue, Method, Response, StatusCode, request};

use super::body::ResponseBody;
use super::respond;
use super::resume;
use super::service::Shared;
use crate::exchange::listening;
use crate::protocol::accept::{self, Accepts};
use crate::protocol::classify;
use crate::protocol::cors;
use crate::protocol::legacy::Headers;
use crate::protocol::origin::Verdict;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Era;
use crate::session::SessionState;

/// What becomes of a request once its head is judged.
#[allow(clippy::large_enum_variant)] // gone as soon as it is looked at, and a box would be an allocation
pub(super) enum Admitted {
    /// Its body is read.
    Post,
    /// It is answered.
    Answered(Response<ResponseBody>),
}

/// Climbs the rungs of the head.
pub(super) fn admit(shared: &Shared, parts: &request::Parts, origin: Verdict<'_>) -> Admitted {
    let mut answered = match judge(shared, parts, origin) {
        Ok(None) => return Admitted::Post,
        Ok(Some(response)) => response,
        Err(refusal) => respond::refuse(shared, &refusal),
    };
    if parts.method == Method::HEAD {
        // The answer to it ends with its head. Over HTTP/2 nobody but us leaves out the body.
        *answered.body_mut() = ResponseBody::empty();
    }
    Admitted::Answered(answered)
}

/// The origin that a browser must be told is allowed.
pub(super) fn cors_origin(origin: Verdict<'_>) -> Option<HeaderValue> {
    match origin {
        Verdict::Allowed(origin) => Some(origin.clone()),
        Verdict::Absent | Verdict::Refused => None,
    }
}

fn judge(
    shared: &Shared,
    parts: &request::Parts,
    origin: Verdict<'_>,
) -> Result<Option<Response<ResponseBody>>, Refusal> {
    if shared.server.lifecycle.is_draining() && !is_exempt(shared, parts) {
        return Err(Refusal::new(RefusalKind::Draining));
    }
    shared.gate.judge(parts, origin)?;
    match parts.method {
        Method::POST => Ok(None),
        Method::GET => get(shared, parts).map(Some),
        Method::DELETE => delete(shared, parts).map(Some),
        _ => Ok(Some(preflight(shared, parts, origin))),
    }
}

/// While draining, a live session may still be deleted, its client may read on what it has begun to read, and it may
/// answer and cancel: whether a POST is that, its body will tell.
fn is_exempt(shared: &Shared, parts: &request::Parts) -> bool {
    let session = || session(shared, parts).ok().flatten();
    match parts.method {
        Method::POST | Method::DELETE => session().is_some(),
        Method::GET if resume::last_event_id(parts).is_some() => {
            session().is_some_and(|session| session.kept().is_some())
        }
        _ => false,
    }
}

/// Opens a stream of a session.
fn get(shared: &Shared, parts: &request::Parts) -> Result<Response<ResponseBody>, Refusal> {
    not_modern(parts)?;
    if matches!(Accepts::of(&parts.headers), Accepts::JsonOnly | Accepts::Neither) {
        return Err(accept::stream_not_accepted());
    }
    let session = session(shared, parts)?.ok_or_else(|| Refusal::new(RefusalKind::NoStream))?;
    shared.authorize_get(parts, session.revision())?;
    let hold = listening::take_place(&shared.account(parts, session.principal())?)?;
    resume::open(shared, &session, parts, hold).map(respond::events)
}

/// Ends a session.
fn delete(shared: &Shared, parts: &request::Parts) -> Result<Response<ResponseBody>, Refusal> {
    not_modern(parts)?;
    let session = session(shared, parts)?.ok_or_else(|| Refusal::new(RefusalKind::SessionRequired))?;
    shared.sessions.delete(&session);
    Ok(respond::empty(StatusCode::NO_CONTENT))
}

/// The live session that a request names.
fn session(shared: &Shared, parts: &request::Parts) -> Result<Option<Arc<SessionState>>, Refusal> {
    let Some(id) = Headers::read(&parts.headers, shared.gate.revisions)?.session else {
        return Ok(None);
    };
    shared.sessions.find(id, shared.principal(parts)?.as_ref()).map(Some)
}

/// 2026-07-28 knows neither GET nor DELETE.
fn not_modern(parts: &request::Parts) -> Result<(), Refusal> {
    match classify::era(&parts.headers, false) {
        Era::Modern => Err(Refusal::new(RefusalKind::NotInThisEra)),
        Era::Legacy => Ok(()),
    }
}

fn preflight(shared: &Shared, parts: &request::Parts, origin: Verdict<'_>) -> Response<ResponseBody> {
    let origin = cors_origin(origin);
    let methods = HeaderValue::from_static(shared.gate.allowed_methods());
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    *response.headers_mut() = cors::preflight(&parts.headers, origin.as_ref(), methods);
    response
}
