//! On whose behalf a request comes.

use std::fmt;
use std::sync::Arc;

/// On whose behalf a request comes: an opaque, stable name such as an account id.
///
/// The transport compares principals and never reads them; what belongs to one is hidden from all others. Choose what
/// stays the same when a token is refreshed: the subject, not the token.
///
/// [`StreamableHttpBuilder::principal`](crate::StreamableHttpBuilder::principal) says where it comes from,
/// [`StdioBuilder::principal`](crate::StdioBuilder::principal) which one a byte stream has, and
/// [`RequestContext::principal`](crate::RequestContext::principal) gives it to the handler.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Names a principal.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Principal").field(&self.0).finish()
    }
}

/// Reads the principal from the head of an HTTP request.
pub(crate) type PrincipalOf = dyn Fn(&http::request::Parts) -> Option<Principal> + Send + Sync;
