//! Whether the one who asks may: decided by the application, once it is known what is asked.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::request;

use crate::principal::Principal;
use crate::protocol::challenge::{self, Challenge};
use crate::protocol::envelope::Message;
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;

/// What the application says to an attempt.
pub(crate) type Authorize = dyn Fn(&Attempt<'_>) -> Result<(), Denied> + Send + Sync;

/// What a client is about to do, for [`StreamableHttpBuilder::authorize`](crate::StreamableHttpBuilder::authorize) to
/// judge: a request or a notification that is well formed, in a revision that is served, and in a session of its own
/// principal, if in any.
pub struct Attempt<'a> {
    pub(crate) head: &'a request::Parts,
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) revision: Revision,
    /// None for a GET.
    pub(crate) message: Option<&'a Message>,
}

impl<'a> Attempt<'a> {
    /// Returns the method, such as `tools/call`. A GET, by which clients up to 2025-11-25 listen to changes, is
    /// `subscriptions/listen`, as the same is called since.
    pub fn method(&self) -> &'a str {
        self.message.map_or(method::LISTEN, Message::method)
    }

    /// Returns `params.name`: the tool or prompt that is asked for.
    pub fn name(&self) -> Option<&'a str> {
        self.message?.name()
    }

    /// Returns `params.uri`: the resource that is asked for.
    pub fn uri(&self) -> Option<&'a str> {
        self.message?.uri()
    }

    /// Returns the JSON text of `params`, where there are any.
    pub fn params_json(&self) -> Option<&'a [u8]> {
        self.message?.params()
    }

    /// Returns the revision that it is answered in.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns on whose behalf it comes, where that is known.
    pub const fn principal(&self) -> Option<&'a Principal> {
        self.principal
    }

    /// Returns the head of the HTTP request.
    pub const fn http(&self) -> &'a request::Parts {
        self.head
    }
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("method", &self.method()).field("name", &self.name()).finish_non_exhaustive()
    }
}

/// An attempt is not allowed: the client gets 403.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Denied {
    /// Those that would help. Nothing helps where there are none.
    scopes: Vec<String>,
    description: Option<Cow<'static, str>>,
}

impl Denied {
    /// Denies what no other access token would change.
    #[allow(clippy::new_without_default)] // to deny by default is no default
    pub const fn new() -> Self {
        Self { scopes: Vec::new(), description: None }
    }

    /// Denies for want of scopes, and names them: all that the attempt needs, so that the client asks for them at once
    /// (2026-07-28, "Scope Challenge Handling"). What cannot be a scope (RFC 6749, section 3.3) is left out.
    pub fn insufficient_scope(scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let scopes = scopes.into_iter().map(Into::into).filter(|scope| challenge::is_scope(scope));
        Self { scopes: scopes.collect(), description: None }
    }

    /// Says why, to whoever reads the client's error messages. Default: that it is not allowed.
    pub fn description(mut self, description: impl Into<Cow<'static, str>>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// What two attempts that come together need.
    pub(crate) fn and(mut self, other: Self) -> Self {
        if self.scopes.is_empty() || other.scopes.is_empty() {
            self.scopes.clear();
        } else {
            let more: Vec<_> = other.scopes.into_iter().filter(|scope| !self.scopes.contains(scope)).collect();
            self.scopes.extend(more);
        }
        self.description = self.description.or(other.description);
        self
    }

    /// As it is answered to a request of this head.
    pub(crate) fn refusal(self, head: &request::Parts) -> Refusal {
        let refusal = match &self.description {
            Some(description) => Refusal::because(RefusalKind::NotAuthorized, description.clone()),
            None => Refusal::new(RefusalKind::NotAuthorized),
        };
        if self.scopes.is_empty() {
            return refusal;
        }
        let challenge = Challenge::bearer().error("insufficient_scope", refusal.message());
        let challenge = challenge.with("scope", &self.scopes.join(" "));
        let challenge = match head.extensions.get::<MetadataUrl>() {
            Some(MetadataUrl(url)) => challenge.with("resource_metadata", url),
            None => challenge,
        };
        refusal.with_challenge(challenge.into_value())
    }
}

/// Where the metadata of the server lies. A layer in front leaves it in the head, for challenges to name it.
#[derive(Clone)]
#[cfg_attr(not(feature = "auth"), allow(dead_code))] // only the layer makes one
pub(crate) struct MetadataUrl(pub(crate) Arc<str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(denied: Denied) -> Option<String> {
        let (head, ()) = http::Request::new(()).into_parts();
        let refusal = denied.refusal(&head);
        refusal.challenge().map(|challenge| challenge.to_str().unwrap().to_owned())
    }

    #[test]
    fn scopes_are_named_and_nothing_else_is() {
        let denied = Denied::insufficient_scope(["files:write", "a\"b", "c d", "", "\u{e9}", "x"]);
        let expected = r#"Bearer error="insufficient_scope", error_description="Not allowed", scope="files:write x""#;
        assert_eq!(challenge(denied).as_deref(), Some(expected));
        assert_eq!(challenge(Denied::insufficient_scope(["a b"])), None);
        assert_eq!(challenge(Denied::new().description("Never")), None);
    }

    #[test]
    fn attempts_that_come_together_need_what_each_needs() {
        let both = Denied::insufficient_scope(["a", "b"]).and(Denied::insufficient_scope(["b", "c"]).description("C"));
        assert_eq!(both, Denied::insufficient_scope(["a", "b", "c"]).description("C"));
        assert_eq!(Denied::insufficient_scope(["a"]).and(Denied::new()), Denied::new());
        assert_eq!(Denied::new().and(Denied::insufficient_scope(["a"])), Denied::new());
    }
}
