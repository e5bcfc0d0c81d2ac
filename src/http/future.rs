//! The future of a response: the head is judged, the body read, the exchange driven.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{HeaderValue, Request, Response, request};
use http_body::Body;
use pin_project_lite::pin_project;

use super::admit::{self, Admitted};
use super::body::ResponseBody;
use super::listen::Listening;
use super::post::{self, Exchange, Posted};
use super::read::Reader;
use super::respond;
use super::service::Shared;
use crate::protocol::cors;
use crate::protocol::names::header;

pin_project! {
    /// The response of [`StreamableHttpService::handle`](crate::StreamableHttpService::handle).
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<B> {
        shared: Arc<Shared>,
        // The allowed origin of a page that waits for the answer.
        origin: Option<HeaderValue>,
        #[pin]
        state: State<B>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<B> {
        Ready { response: Option<Response<ResponseBody>> },
        Reading { #[pin] body: B, reader: Reader, parts: Option<request::Parts> },
        Answering { exchange: Exchange, session: Option<HeaderValue> },
        Listening { listening: Listening },
    }
}

impl<B: Body<Data: Buf>> ResponseFuture<B> {
    pub(super) fn new(shared: Arc<Shared>, request: Request<B>) -> Self {
        let (parts, body) = request.into_parts();
        let judged = shared.gate.origins.judge(&parts.headers);
        let origin = admit::cors_origin(judged);
        let state = match admit::admit(&shared, &parts, judged) {
            Admitted::Post => State::Reading { body, reader: Reader::default(), parts: Some(parts) },
            Admitted::Answered(response) => State::Ready { response: Some(response) },
        };
        Self { shared, origin, state }
    }
}

impl<B: Body<Data: Buf>> Future for ResponseFuture<B> {
    type Output = Response<ResponseBody>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<ResponseBody>> {
        let mut this = self.project();
        let mut response = loop {
            let next = match this.state.as_mut().project() {
                StateProjection::Ready { response } => match response.take() {
                    Some(response) => break response,
                    // Polled after its end.
                    None => return Poll::Pending,
                },
                StateProjection::Reading { body, reader, parts } => {
                    let Some(head) = parts else {
                        return Poll::Pending;
                    };
                    let read = ready!(reader.poll(body, this.shared, head, cx));
                    let posted = match (read, parts.take()) {
                        (Ok(bytes), Some(parts)) => post::post(this.shared, parts, bytes, cx),
                        (Err(refusal), _) => Posted::Answered(respond::refuse(this.shared, &refusal)),
                        (Ok(_), None) => return Poll::Pending,
                    };
                    match posted {
                        Posted::Answered(response) => State::Ready { response: Some(response) },
                        Posted::Exchange { exchange, session } => State::Answering { exchange, session },
                        Posted::Listening(listening) => State::Listening { listening },
                    }
                }
                StateProjection::Answering { exchange, session } => {
                    let mut response = respond::answer(ready!(exchange.poll(cx)));
                    if let Some(session) = session.take() {
                        response.headers_mut().insert(header::SESSION_ID, session);
                    }
                    State::Ready { response: Some(response) }
                }
                StateProjection::Listening { listening } => State::Ready { response: Some(ready!(listening.poll(cx))) },
            };
            this.state.set(next);
        };
        if let Some(origin) = this.origin {
            cors::decorate(response.headers_mut(), origin);
        }
        Poll::Ready(response)
    }
}

impl<B> fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

pin_project! {
    /// The response of the [`StreamableHttpService`](crate::StreamableHttpService) as a tower service.
    #[must_use = "futures do nothing unless polled"]
    pub struct ServiceFuture<B> {
        #[pin]
        response: ResponseFuture<B>,
    }
}

impl<B> ServiceFuture<B> {
    pub(super) const fn new(response: ResponseFuture<B>) -> Self {
        Self { response }
    }
}

impl<B: Body<Data: Buf>> Future for ServiceFuture<B> {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().response.poll(cx).map(Ok)
    }
}

impl<B> fmt::Debug for ServiceFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceFuture").finish_non_exhaustive()
    }
}
