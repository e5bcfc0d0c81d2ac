//! Access tokens, and who can read them.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use http::{Extensions, request};

use super::resource::Resource;
use crate::principal::Principal;

/// Verifies access tokens: by a signature, or by asking the authorization server.
///
/// # Security
///
/// **A token that was issued for another server must not be accepted** (2026-07-28, "Access Token Privilege
/// Restriction"): else whoever runs that server can use its clients' tokens here. Hand what the token says of its
/// audience to [`AccessToken::audience`]; the layer refuses a token that does not name `resource`, or none at all. It
/// can compare only what it is told, so never tell it what the token does not say.
///
/// Beside that a verifier checks the signature, with a fixed list of algorithms, or the answer of the authorization
/// server; the issuer; and `exp` and `nbf`. Never hand the token on to another service ("token passthrough" is
/// forbidden): ask for one of your own there. The layer takes the `Authorization` header away, so nothing behind it
/// can.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::request;
/// use mcp_transport::auth::{AccessToken, Resource, TokenError, TokenVerifier};
/// # struct Claims { iss: String, sub: String, aud: Vec<String>, scope: String, exp: u64 }
/// # async fn introspect(_: &str) -> std::io::Result<Option<Claims>> { Ok(None) }
///
/// struct Introspection;
///
/// impl TokenVerifier for Introspection {
///     async fn verify(&self, token: &str, _: &Resource, _: &request::Parts) -> Result<AccessToken, TokenError> {
///         let claims = introspect(token).await.map_err(|_| TokenError::Unavailable)?.ok_or(TokenError::Invalid)?;
///         Ok(AccessToken::new(&claims.iss, &claims.sub)
///             .audience(claims.aud)
///             .scope(&claims.scope)
///             .expires_at(SystemTime::UNIX_EPOCH + Duration::from_secs(claims.exp)))
///     }
/// }
/// ```
pub trait TokenVerifier: Send + Sync + 'static {
    /// Verifies a token that came with a request of this head, for the server that `resource` names.
    ///
    /// It has no time limit but its own. A panic counts as [`TokenError::Unavailable`].
    ///
    /// # Errors
    ///
    /// Whatever keeps the token from being accepted. Nothing of the reason but its kind reaches the client.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the client goes away.
    fn verify(
        &self,
        token: &str,
        resource: &Resource,
        head: &request::Parts,
    ) -> impl Future<Output = Result<AccessToken, TokenError>> + Send;
}

impl<V: TokenVerifier> TokenVerifier for Arc<V> {
    fn verify(
        &self,
        token: &str,
        resource: &Resource,
        head: &request::Parts,
    ) -> impl Future<Output = Result<AccessToken, TokenError>> + Send {
        V::verify(self, token, resource, head)
    }
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenError {
    /// It is none of ours, was revoked, or is not valid yet. The client gets 401 and `invalid_token`.
    Invalid,
    /// It was valid once. The client gets 401 and `invalid_token`, and is told that it has expired.
    Expired,
    /// It cannot be told now, such as because the authorization server does not answer. The client gets 503 and may
    /// come back with the same token.
    Unavailable,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "the access token is invalid",
            Self::Expired => "the access token has expired",
            Self::Unavailable => "the access token cannot be verified now",
        })
    }
}

impl std::error::Error for TokenError {}

/// What a verified access token says.
///
/// The [`AuthLayer`](super::AuthLayer) leaves it in the extensions of the request, where
/// [`Attempt::token`](crate::Attempt::token) and [`RequestContext::extensions`](crate::RequestContext::extensions) find
/// it. It does not hold the token itself.
#[derive(Clone)]
#[must_use]
pub struct AccessToken {
    principal: Principal,
    audience: Arc<[String]>,
    scopes: Scopes,
    expires_at: Option<SystemTime>,
    claims: Extensions,
}

impl AccessToken {
    /// A token of this issuer (`iss`) for this subject (`sub`). Both together are its [`Principal`]: subjects are
    /// unique to their issuer, and neither changes when a token is refreshed. Where your issuer's `sub` names a client
    /// and not a user, all users of that client are one principal; use [`of`](Self::of) then.
    pub fn new(issuer: &str, subject: &str) -> Self {
        // As JSON, which says where one ends and the other begins.
        Self::of(Principal::new(serde_json::json!([issuer, subject]).to_string()))
    }

    /// A token for a principal of the application's own, which must stay the same when the token is refreshed.
    pub fn of(principal: Principal) -> Self {
        let (audience, claims) = (Arc::default(), Extensions::new());
        Self { principal, audience, scopes: Scopes::default(), expires_at: None, claims }
    }

    /// For whom the token was issued (`aud`). Default: for nobody, and nobody accepts it.
    pub fn audience(self, audience: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { audience: audience.into_iter().map(Into::into).collect(), ..self }
    }

    /// What the token allows, separated by spaces, as in the claim `scope`. Default: nothing in particular.
    pub fn scope(self, scope: &str) -> Self {
        Self { scopes: Scopes(scope.into()), ..self }
    }

    /// When the token expires: from then on the layer refuses it. Default: never. Where clocks differ, add the leeway
    /// here.
    pub fn expires_at(self, time: SystemTime) -> Self {
        Self { expires_at: Some(time), ..self }
    }

    /// With a value of the application's own, such as the other claims, by its type.
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.claims.insert(value);
        self
    }

    /// Returns on whose behalf it is used.
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns what it allows.
    pub const fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Returns when it expires.
    pub const fn expiry(&self) -> Option<SystemTime> {
        self.expires_at
    }

    /// Returns the value of this type that the verifier [left](Self::with) in it.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.claims.get()
    }

    pub(super) fn is_for(&self, names: impl Fn(&str) -> bool) -> bool {
        self.audience.iter().any(|audience| names(audience))
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { principal, audience, scopes, expires_at, claims: _ } = self;
        f.debug_struct("AccessToken")
            .field("principal", principal)
            .field("audience", audience)
            .field("scopes", scopes)
            .field("expires_at", expires_at)
            .finish_non_exhaustive()
    }
}

/// The scopes of an access token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Arc<str>);

impl Scopes {
    /// Returns whether this scope is among them. Scopes are compared letter by letter.
    pub fn contains(&self, scope: &str) -> bool {
        self.iter().any(|granted| granted == scope)
    }

    /// Returns each.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|scope| !scope.is_empty())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_an_issuer_and_a_subject() {
        let name = |issuer, subject| AccessToken::new(issuer, subject).principal().clone();
        assert_eq!(name("https://a", "b"), name("https://a", "b"));
        assert_eq!(name("https://a", "b").as_str(), r#"["https://a","b"]"#);
        for (issuer, subject) in [("https://a\",\"b", ""), ("https://a", "b "), ("https://", "ab"), ("", "https://ab")]
        {
            assert_ne!(name(issuer, subject), name("https://a", "b"));
        }
    }

    #[test]
    fn scopes_are_whole_words() {
        let token = AccessToken::new("i", "s").scope("files:read  x");
        assert_eq!(token.scopes().iter().collect::<Vec<_>>(), ["files:read", "x"]);
        assert!(token.scopes().contains("x") && token.scopes().contains("files:read"));
        for scope in ["", " ", "files", "read", "X", "files:read  x", "files:read x"] {
            assert!(!token.scopes().contains(scope), "{scope:?}");
        }
        assert!(!AccessToken::new("i", "s").scopes().contains(""));
    }

    #[test]
    fn claims_are_found_by_their_type() {
        #[derive(Clone, Debug, PartialEq)]
        struct Tenant(u8);
        let token = AccessToken::new("i", "s").with(Tenant(1));
        assert_eq!(token.get::<Tenant>(), Some(&Tenant(1)));
        assert_eq!(token.get::<u8>(), None);
    }
}
