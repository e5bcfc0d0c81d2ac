//! What an attempt says of its access token.

use super::token::AccessToken;
use crate::authorize::{Attempt, Denied};

impl<'a> Attempt<'a> {
    /// Returns the access token that an [`AuthLayer`](super::AuthLayer) in front has verified.
    pub fn token(&self) -> Option<&'a AccessToken> {
        self.head.extensions.get()
    }

    /// Requires that the access token has all of these scopes, each exactly as it is written. Where one scope implies
    /// another, look at the [token's](Self::token) instead.
    ///
    /// # Errors
    ///
    /// [`Denied::insufficient_scope`] with all of `scopes`, also those that the token has: the client asks once for
    /// what the operation needs.
    pub fn require(&self, scopes: &[&str]) -> Result<(), Denied> {
        let has = |scope: &&str| self.token().is_some_and(|token| token.scopes().contains(scope));
        if scopes.iter().all(has) { Ok(()) } else { Err(Denied::insufficient_scope(scopes.iter().copied())) }
    }
}
