//! What `WWW-Authenticate` says (RFC 6750, section 3; RFC 9728, section 5.1).

use http::HeaderValue;

/// Most characters of a text for people.
const DESCRIPTION_LEN: usize = 256;

/// A challenge of the scheme `Bearer`, parameter by parameter.
#[derive(Debug)]
pub(crate) struct Challenge(String);

impl Challenge {
    pub(crate) fn bearer() -> Self {
        Self("Bearer".to_owned())
    }

    /// With a parameter. What RFC 6750 does not let stand in a value becomes `?`: neither a quotation mark nor a
    /// backslash may, not even escaped, so a value never ends before its end, whoever reads it.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.0.push_str(if self.0.contains('=') { ", " } else { " " });
        self.0.push_str(name);
        self.0.push_str("=\"");
        self.0.extend(value.chars().map(|char| if is_quotable(char) { char } else { '?' }));
        self.0.push('"');
        self
    }

    /// The error, and what people are told of it, cut to a sensible length.
    #[must_use]
    pub(crate) fn error(self, error: &'static str, description: &str) -> Self {
        let cut = description.char_indices().nth(DESCRIPTION_LEN).map_or(description, |(at, _)| &description[..at]);
        self.with("error", error).with("error_description", cut)
    }

    pub(crate) fn into_value(self) -> HeaderValue {
        // Visible ASCII and spaces are a value, always.
        HeaderValue::try_from(self.0).unwrap_or(HeaderValue::from_static("Bearer"))
    }
}

/// The characters of `error_description`; those of a URI and of scopes are among them.
const fn is_quotable(char: char) -> bool {
    matches!(char, ' '..='~') && char != '"' && char != '\\'
}

/// Whether it is a `scope-token` (RFC 6749, section 3.3).
pub(crate) fn is_scope(token: &str) -> bool {
    !token.is_empty() && token.chars().all(|char| is_quotable(char) && char != ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_in_their_order() {
        assert_eq!(Challenge::bearer().into_value(), "Bearer");
        let challenge = Challenge::bearer().error("invalid_token", "It has expired").with("scope", "a b");
        let expected = r#"Bearer error="invalid_token", error_description="It has expired", scope="a b""#;
        assert_eq!(challenge.into_value(), expected);
    }

    #[test]
    fn no_value_ends_before_its_end() {
        for (value, shown) in [
            ("a\", error=\"x", "a?, error=?x"),
            ("a\\", "a?"),
            ("a\r\nSet-Cookie: b", "a??Set-Cookie: b"),
            ("\0\t\u{7f}\u{e9}\u{2028}", "?????"),
            ("it's [all] right: ~!", "it's [all] right: ~!"),
        ] {
            assert_eq!(Challenge::bearer().with("p", value).into_value(), format!("Bearer p=\"{shown}\""), "{value:?}");
        }
    }

    #[test]
    fn a_description_has_its_length() {
        let long = Challenge::bearer().error("e", &"\u{e9}".repeat(300)).into_value();
        assert_eq!(long, format!("Bearer error=\"e\", error_description=\"{}\"", "?".repeat(256)));
    }

    #[test]
    fn scopes_are_tokens() {
        for scope in ["a", "files:read", "https://example.com/auth/x?y=1#z", "!#[]~"] {
            assert!(is_scope(scope), "{scope}");
        }
        for scope in ["", "a b", " a", "a\"b", "a\\b", "a\n", "\u{e9}", "a\t", "\u{7f}"] {
            assert!(!is_scope(scope), "{scope:?}");
        }
    }
}
