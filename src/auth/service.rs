//! The layer at work.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{Request, Response, request};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::AuthBody;
use super::layer::{Auth, Judged};
use super::token::TokenVerifier;
use crate::http::{ResponseBody, StreamableHttpService};

/// A service behind an [`AuthLayer`](super::AuthLayer).
///
/// Requests whose token is accepted reach the service, with the [`Principal`](crate::Principal) and the
/// [`AccessToken`](super::AccessToken) in their extensions and without their `Authorization` header; so do the
/// preflights of browsers, as they come. The layer answers all others itself. It passes on what the service answers,
/// and its errors.
pub struct AuthService<S, V> {
    auth: Arc<Auth<V>>,
    inner: S,
}

impl<S, V> AuthService<S, V> {
    pub(super) fn new(auth: Arc<Auth<V>>, inner: S) -> Self {
        Self { auth, inner }
    }

    /// Returns the service behind the layer.
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<V: TokenVerifier> AuthService<StreamableHttpService, V> {
    /// Answers one HTTP request, as the tower service does, for frameworks that do not speak tower. The body need not
    /// be `Send`; the future is where the body is.
    ///
    /// # Cancel safety
    ///
    /// As for [`StreamableHttpService::handle`].
    pub fn handle<B>(&self, request: Request<B>) -> AuthFuture<StreamableHttpService, B>
    where
        B: Body<Data: Buf>,
    {
        AuthFuture::new(&self.auth, self.inner.clone(), request)
    }
}

impl<S, V, B, R> Service<Request<B>> for AuthService<S, V>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    V: TokenVerifier,
    R: Body<Data = Bytes>,
{
    type Response = Response<AuthBody<R>>;
    type Error = S::Error;
    type Future = AuthFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> AuthFuture<S, B> {
        // The one that has said it is ready answers.
        let fresh = self.inner.clone();
        AuthFuture::new(&self.auth, mem::replace(&mut self.inner, fresh), request)
    }
}

impl<S: Clone, V> Clone for AuthService<S, V> {
    fn clone(&self) -> Self {
        Self { auth: Arc::clone(&self.auth), inner: self.inner.clone() }
    }
}

impl<S: fmt::Debug, V> fmt::Debug for AuthService<S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// The head of a request that may go through, or the answer to it.
type Verifying = Pin<Box<dyn Future<Output = Result<request::Parts, Response<ResponseBody>>> + Send>>;

pin_project! {
    /// The response of an [`AuthService`].
    #[must_use = "futures do nothing unless polled"]
    pub struct AuthFuture<S: Service<Request<B>>, B> {
        #[pin]
        state: State<S, B, S::Future>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B, F> {
        Answered { response: Option<Response<ResponseBody>> },
        // The body waits outside, for it need not be `Send`.
        Verifying { verifying: Verifying, waiting: Option<(S, B)> },
        Inner { #[pin] future: F },
    }
}

impl<S: Service<Request<B>>, B> AuthFuture<S, B> {
    fn new<V: TokenVerifier>(auth: &Arc<Auth<V>>, mut inner: S, request: Request<B>) -> Self {
        let (head, body) = request.into_parts();
        let state = match auth.judge(&head) {
            Judged::Answered(response) => State::Answered { response: Some(response) },
            Judged::Open => State::Inner { future: inner.call(Request::from_parts(head, body)) },
            Judged::Token(token) => {
                let verifying = Box::pin(Arc::clone(auth).verify(token, head));
                State::Verifying { verifying, waiting: Some((inner, body)) }
            }
        };
        Self { state }
    }
}

impl<S, B, R> Future for AuthFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<AuthBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Answered { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response.map(AuthBody::own))),
                    // Polled after its end.
                    None => return Poll::Pending,
                },
                StateProjection::Verifying { verifying, waiting } => {
                    match (ready!(verifying.as_mut().poll(cx)), waiting.take()) {
                        (Ok(head), Some((mut inner, body))) => {
                            State::Inner { future: inner.call(Request::from_parts(head, body)) }
                        }
                        (Err(response), _) => State::Answered { response: Some(response) },
                        (Ok(_), None) => State::Answered { response: None },
                    }
                }
                StateProjection::Inner { future } => {
                    return future.poll(cx).map(|answered| answered.map(|response| response.map(AuthBody::inner)));
                }
            };
            state.set(next);
        }
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for AuthFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthFuture").finish_non_exhaustive()
    }
}
