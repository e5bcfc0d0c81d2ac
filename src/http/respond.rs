//! Responses, from refusals and answers.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::ResponseBody;
use super::service::Shared;
use crate::exchange::Answer;
use crate::exchange::answer::refusal_frame;
use crate::protocol::refusal::{Refusal, RefusalKind};

/// Seconds after which a client that was turned away may try again: by then a restarted server is up.
pub(crate) const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Answers with a refusal, and tells the observer.
pub(super) fn refuse(shared: &Shared, refusal: &Refusal) -> Response<ResponseBody> {
    shared.server.observer.refused(refusal);
    let kind = refusal.kind();
    let mut response = json(kind.status(), refusal_frame(refusal).json());
    if let Some(challenge) = refusal.challenge() {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge.clone());
    }
    match kind {
        RefusalKind::MethodNotAllowed | RefusalKind::NoStream => {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(shared.gate.allowed_methods()));
        }
        RefusalKind::NotInThisEra => {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        _ if matches!(kind.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) => {
            response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
        }
        _ => {}
    }
    response
}

/// Answers with what an exchange became.
pub(super) fn answer(answer: Answer) -> Response<ResponseBody> {
    match answer {
        Answer::Json(status, body) => json(status, body),
        Answer::Attached(stream) => events(ResponseBody::attached(stream)),
        Answer::Detached(stream) => events(ResponseBody::detached(stream)),
        Answer::Nothing => empty(StatusCode::ACCEPTED),
    }
}

/// Answers with an event stream.
pub(super) fn events(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that buffer would hold events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response
}

fn json(status: StatusCode, body: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
