//! What is decided on the head of a request: everything for GET, DELETE and OPTIONS, the first rungs for POST.

use http::{HeaderValue, Method, Response, StatusCode, request};

use super::body::ResponseBody;
use super::respond;
use super::service::Shared;
use crate::protocol::accept::Accepts;
use crate::protocol::classify;
use crate::protocol::cors;
use crate::protocol::legacy::Headers;
use crate::protocol::origin::Verdict;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Era;

/// What becomes of a request once its head is judged.
pub(super) enum Admitted {
    /// Its body is read.
    Post,
    /// It is answered.
    Answered(Response<ResponseBody>),
}

/// Climbs the rungs of the head.
pub(super) fn admit(shared: &Shared, parts: &request::Parts) -> Admitted {
    let mut answered = match judge(shared, parts) {
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
pub(super) fn cors_origin(shared: &Shared, parts: &request::Parts) -> Option<HeaderValue> {
    match shared.gate.origins.judge(&parts.headers) {
        Verdict::Allowed(origin) => Some(origin.clone()),
        Verdict::Absent | Verdict::Refused => None,
    }
}

fn judge(shared: &Shared, parts: &request::Parts) -> Result<Option<Response<ResponseBody>>, Refusal> {
    if shared.server.lifecycle.is_draining() {
        return Err(Refusal::new(RefusalKind::Draining));
    }
    shared.gate.judge(parts)?;
    match parts.method {
        Method::POST => Ok(None),
        Method::GET => get(shared, parts).map(Some),
        Method::DELETE => delete(shared, parts).map(Some),
        _ => Ok(Some(preflight(shared, parts))),
    }
}

/// Opens the stream of a session. There is none to open yet: no session is ever minted.
fn get(shared: &Shared, parts: &request::Parts) -> Result<Response<ResponseBody>, Refusal> {
    not_modern(parts)?;
    if matches!(Accepts::of(&parts.headers), Accepts::JsonOnly | Accepts::Neither) {
        return Err(Refusal::because(RefusalKind::NotAcceptable, "Accept must admit text/event-stream"));
    }
    match Headers::read(&parts.headers, shared.gate.revisions)?.session {
        None => Err(Refusal::new(RefusalKind::NoStream)),
        Some(_) => Err(Refusal::new(RefusalKind::UnknownSession)),
    }
}

/// Ends a session.
fn delete(shared: &Shared, parts: &request::Parts) -> Result<Response<ResponseBody>, Refusal> {
    not_modern(parts)?;
    match Headers::read(&parts.headers, shared.gate.revisions)?.session {
        None => Err(Refusal::new(RefusalKind::SessionRequired)),
        Some(_) => Err(Refusal::new(RefusalKind::UnknownSession)),
    }
}

/// 2026-07-28 knows neither GET nor DELETE.
fn not_modern(parts: &request::Parts) -> Result<(), Refusal> {
    match classify::era(&parts.headers, false) {
        Era::Modern => Err(Refusal::new(RefusalKind::NotInThisEra)),
        Era::Legacy => Ok(()),
    }
}

fn preflight(shared: &Shared, parts: &request::Parts) -> Response<ResponseBody> {
    let origin = cors_origin(shared, parts);
    let methods = HeaderValue::from_static(shared.gate.allowed_methods());
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    *response.headers_mut() = cors::preflight(&parts.headers, origin.as_ref(), methods);
    response
}
