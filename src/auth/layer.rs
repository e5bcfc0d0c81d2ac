//! The configuration, and the judgement on a request.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use http::{HeaderValue, Method, Response, request};

use super::credentials::Credentials;
use super::metadata::{self, MetadataService, ResourceMetadata};
use super::resource::{Resource, WELL_KNOWN};
use super::service::AuthService;
use super::token::{AccessToken, TokenError, TokenVerifier};
use crate::authorize::MetadataUrl;
use crate::error::Error;
use crate::exchange::answer::refusal_frame;
use crate::http::{RETRY_SECONDS, ResponseBody, StreamsEnd};
use crate::observer::{Deaf, Misuse, Observer};
use crate::panics::caught_in;
use crate::protocol::challenge::Challenge;
use crate::protocol::refusal::{Refusal, RefusalKind};

/// Demands an access token of every request, and verifies it: a [`tower_layer::Layer`] for a
/// [`StreamableHttpService`](crate::StreamableHttpService) or any other tower service. See the [module](super).
pub struct AuthLayer<V> {
    auth: Arc<Auth<V>>,
}

/// What all clones share.
pub(super) struct Auth<V> {
    verifier: V,
    resource: Resource,
    audiences: Vec<String>,
    scope: String,
    streams: OpenStreams,
    metadata: MetadataService,
    observer: Arc<dyn Observer>,
}

/// What becomes of a stream of changes (`subscriptions/listen` on 2026-07-28, before that what GET opens) when the
/// access token expires that opened it. An answer that is being made is made in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenStreams {
    /// It ends as when the server closes it, with its response: who may not come in any more hears no more. Up to
    /// 2025-11-25 clients open another by themselves. On 2026-07-28 that is left to the application that uses the
    /// client: where its users would miss changes that everybody may hear of, choose the other.
    #[default]
    EndAtExpiry,
    /// It goes on until either side closes it.
    GoOn,
}

/// Configures an [`AuthLayer`].
#[must_use = "a builder does nothing until `build`"]
pub struct AuthLayerBuilder<V> {
    metadata: ResourceMetadata,
    verifier: V,
    audiences: Vec<String>,
    initial_scopes: Vec<String>,
    streams: OpenStreams,
    observer: Arc<dyn Observer>,
}

impl<V: TokenVerifier> AuthLayer<V> {
    /// A layer with the default configuration.
    ///
    /// # Errors
    ///
    /// As [`AuthLayerBuilder::build`].
    pub fn new(metadata: ResourceMetadata, verifier: V) -> Result<Self, Error> {
        Self::builder(metadata, verifier).build()
    }

    /// A layer with a configuration of its own.
    pub fn builder(metadata: ResourceMetadata, verifier: V) -> AuthLayerBuilder<V> {
        AuthLayerBuilder {
            metadata,
            verifier,
            audiences: Vec::new(),
            initial_scopes: Vec::new(),
            streams: OpenStreams::default(),
            observer: Arc::new(Deaf),
        }
    }
}

impl<V> AuthLayer<V> {
    /// Returns the service that answers with the [`ResourceMetadata`].
    pub fn metadata_service(&self) -> MetadataService {
        self.auth.metadata.clone()
    }

    /// Returns the path where clients look for it, such as `/.well-known/oauth-protected-resource/mcp`.
    pub fn metadata_path(&self) -> &str {
        self.auth.resource.metadata_path()
    }

    /// Returns the URI that names the server.
    pub fn resource(&self) -> &Resource {
        &self.auth.resource
    }
}

impl<S, V> tower_layer::Layer<S> for AuthLayer<V> {
    type Service = AuthService<S, V>;

    fn layer(&self, inner: S) -> AuthService<S, V> {
        AuthService::new(Arc::clone(&self.auth), inner)
    }
}

impl<V> Clone for AuthLayer<V> {
    fn clone(&self) -> Self {
        Self { auth: Arc::clone(&self.auth) }
    }
}

impl<V> fmt::Debug for AuthLayer<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthLayer").field("resource", &self.auth.resource).finish_non_exhaustive()
    }
}

impl<V: TokenVerifier> AuthLayerBuilder<V> {
    /// The scopes that a client without a valid token is told to ask for. They are not demanded: that is up to
    /// [`authorize`](crate::StreamableHttpBuilder::authorize). Default: none, and the client asks for those of
    /// [`ResourceMetadata::scopes_supported`].
    pub fn initial_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.initial_scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Another name that the authorization server has for this server, such as `api://files`: tokens for it are
    /// accepted too. Default: only the URI of the [`ResourceMetadata`].
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// What becomes of streams of changes when the token expires. Default: they end.
    pub fn open_streams(mut self, streams: OpenStreams) -> Self {
        self.streams = streams;
        self
    }

    /// Hears of the requests that the layer refuses, and of a verifier that panics. Default: nobody does. What gets
    /// through the layer, the service's own observer hears.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Arc::new(observer);
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) where a URI or a scope cannot be one. The message
    /// names the setting.
    pub fn build(self) -> Result<AuthLayer<V>, Error> {
        metadata::judge_scopes("initial_scopes", &self.initial_scopes)?;
        let (resource, document) = self.metadata.read()?;
        let auth = Auth {
            verifier: self.verifier,
            resource,
            audiences: self.audiences,
            scope: self.initial_scopes.join(" "),
            streams: self.streams,
            metadata: MetadataService::new(document),
            observer: self.observer,
        };
        Ok(AuthLayer { auth: Arc::new(auth) })
    }
}

impl<V> fmt::Debug for AuthLayerBuilder<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthLayerBuilder").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

/// What becomes of a request, as far as its head says it at once.
pub(super) enum Judged {
    /// It is answered.
    Answered(Response<ResponseBody>),
    /// It goes through as it is.
    Open,
    /// Its token, a copy, is to be verified.
    Token(String),
}

impl<V> Auth<V> {
    pub(super) fn judge(&self, head: &request::Parts) -> Judged {
        if self.is_metadata(head.uri.path()) {
            return Judged::Answered(self.metadata.answer(&head.method));
        }
        if is_preflight(head) {
            return Judged::Open;
        }
        match Credentials::of(&head.headers) {
            Credentials::Bearer(token) => Judged::Token(token.to_owned()),
            Credentials::None => Judged::Answered(self.refuse(RefusalKind::Unauthenticated, head)),
            Credentials::Malformed => Judged::Answered(self.refuse(RefusalKind::MalformedCredentials, head)),
        }
    }

    fn is_metadata(&self, path: &str) -> bool {
        path.strip_prefix(WELL_KNOWN).is_some_and(|rest| rest.is_empty() || path == self.resource.metadata_path())
    }

    /// Leaves what the token says in the head, and takes the token out of it.
    fn admit(&self, token: AccessToken, head: &mut request::Parts) {
        head.headers.remove(AUTHORIZATION);
        let extensions = &mut head.extensions;
        extensions.insert(MetadataUrl(self.resource.shared_metadata_url()));
        extensions.insert(token.principal().clone());
        extensions.remove::<StreamsEnd>();
        if let Some(expiry) = token.expiry().filter(|_| self.streams == OpenStreams::EndAtExpiry) {
            extensions.insert(StreamsEnd(expiry));
        }
        extensions.insert(token);
    }

    fn refuse(&self, kind: RefusalKind, head: &request::Parts) -> Response<ResponseBody> {
        let refusal = Refusal::new(kind);
        self.observer.refused(&refusal);
        let body = match head.method {
            Method::HEAD => ResponseBody::empty(),
            _ => ResponseBody::full(refusal_frame(&refusal).json()),
        };
        let mut response = Response::new(body);
        *response.status_mut() = kind.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.challenge(&refusal) {
            Some(challenge) => headers.insert(WWW_AUTHENTICATE, challenge),
            None => headers.insert(RETRY_AFTER, RETRY_SECONDS),
        };
        // It says nothing that the document does not tell everybody. Which pages may talk to the service it says
        // itself.
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("WWW-Authenticate, Retry-After"));
        response
    }

    /// How to come in, where the client could do something about it. Who has brought no token has made no error.
    fn challenge(&self, refusal: &Refusal) -> Option<HeaderValue> {
        let challenge = Challenge::bearer();
        let challenge = match refusal.kind() {
            RefusalKind::VerifierUnavailable => return None,
            RefusalKind::Unauthenticated => challenge,
            RefusalKind::MalformedCredentials => challenge.error("invalid_request", refusal.message()),
            _ => challenge.error("invalid_token", refusal.message()),
        };
        let challenge = challenge.with("resource_metadata", self.resource.metadata_url());
        let challenge = if self.scope.is_empty() { challenge } else { challenge.with("scope", &self.scope) };
        Some(challenge.into_value())
    }
}

impl<V: TokenVerifier> Auth<V> {
    /// The head of a request that may go through, or the answer to it.
    pub(super) async fn verify(
        self: Arc<Self>,
        token: String,
        mut head: request::Parts,
    ) -> Result<request::Parts, Response<ResponseBody>> {
        match self.judge_token(&token, &head).await {
            Ok(token) => {
                self.admit(token, &mut head);
                Ok(head)
            }
            Err(kind) => Err(self.refuse(kind, &head)),
        }
    }

    async fn judge_token(&self, token: &str, head: &request::Parts) -> Result<AccessToken, RefusalKind> {
        let verified = async { self.verifier.verify(token, &self.resource, head).await };
        let verified = caught_in(verified).await.unwrap_or_else(|message| {
            self.observer.misuse(&Misuse::HookPanicked { hook: "TokenVerifier::verify", message });
            Err(TokenError::Unavailable)
        });
        let token = verified.map_err(|error| match error {
            TokenError::Invalid => RefusalKind::InvalidToken,
            TokenError::Expired => RefusalKind::ExpiredToken,
            TokenError::Unavailable => RefusalKind::VerifierUnavailable,
        })?;
        if !token.is_for(|audience| self.resource.is(audience) || self.audiences.iter().any(|own| own == audience)) {
            return Err(RefusalKind::WrongAudience);
        }
        match token.expiry() {
            Some(expiry) if expiry <= SystemTime::now() => Err(RefusalKind::ExpiredToken),
            _ => Ok(token),
        }
    }
}

/// Whether a browser asks what a page may send: it does so without credentials.
fn is_preflight(head: &request::Parts) -> bool {
    head.method == Method::OPTIONS
        && head.headers.contains_key(http::header::ORIGIN)
        && head.headers.contains_key(http::header::ACCESS_CONTROL_REQUEST_METHOD)
}
