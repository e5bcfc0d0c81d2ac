//! What the `Authorization` header of a request says (RFC 6750, section 2.1).

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::protocol::token::is_tchar;

/// Most bytes of a token. Longer ones are not looked at.
const TOKEN_LEN: usize = 16 * 1024;

/// The credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials<'a> {
    /// None, or some of another scheme.
    None,
    /// A token.
    Bearer(&'a str),
    /// Several, or none that can be read.
    Malformed,
}

impl<'a> Credentials<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut lines = headers.get_all(AUTHORIZATION).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Self::None,
            (Some(_), Some(_)) => Self::Malformed,
            (Some(line), None) => line.to_str().map_or(Self::Malformed, Self::read),
        }
    }

    fn read(line: &'a str) -> Self {
        let end = line.bytes().position(|byte| !is_tchar(byte)).unwrap_or(line.len());
        let (scheme, rest) = line.split_at(end);
        if scheme.is_empty() {
            return if line.is_empty() { Self::None } else { Self::Malformed };
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Self::None;
        }
        let token = rest.trim_start_matches(' ');
        // At least one space, and a token.
        if token.len() < rest.len() && is_token(token) { Self::Bearer(token) } else { Self::Malformed }
    }
}

/// `token68` (RFC 9110, section 11.2).
fn is_token(token: &str) -> bool {
    let text = token.trim_end_matches('=');
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
    token.len() <= TOKEN_LEN && !text.is_empty() && text.bytes().all(is_char)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[&[u8]]) -> HeaderMap {
        lines.iter().map(|line| (AUTHORIZATION, HeaderValue::from_bytes(line).unwrap())).collect()
    }

    #[test]
    fn one_token_is_read() {
        for (line, token) in [
            ("Bearer a", "a"),
            ("bearer a", "a"),
            ("BEARER a", "a"),
            ("bEaReR   a", "a"),
            ("Bearer aZ09-._~+/==", "aZ09-._~+/=="),
            ("Bearer eyJ0.eyJp.c2ln", "eyJ0.eyJp.c2ln"),
        ] {
            assert_eq!(Credentials::of(&headers(&[line.as_bytes()])), Credentials::Bearer(token), "{line}");
        }
        let longest = format!("Bearer {}", "a".repeat(TOKEN_LEN));
        assert!(matches!(Credentials::of(&headers(&[longest.as_bytes()])), Credentials::Bearer(_)));
        let longer = format!("{longest}a");
        assert_eq!(Credentials::of(&headers(&[longer.as_bytes()])), Credentials::Malformed);
    }

    #[test]
    fn other_schemes_are_none() {
        for lines in
            [&[][..], &[&b""[..]], &[b"Basic YTpi"], &[b"DPoP a"], &[b"BearerX a"], &[b"Bearer-X a"], &[b"Basic"]]
        {
            assert_eq!(Credentials::of(&headers(lines)), Credentials::None, "{lines:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_malformed() {
        for lines in [
            &[&b"Bearer"[..]][..],
            &[b"Bearer "],
            &[b"Bearer ="],
            &[b"Bearer =a"],
            &[b"Bearer a=b"],
            &[b"Bearer a b"],
            &[b"Bearer a "],
            &[b"Bearer a,"],
            &[b"Bearer a, Bearer b"],
            &[b"Bearer\ta"],
            &[b"Bearer \ta"],
            &[b"Bearer,a"],
            &[b"Bearer=a"],
            &[b"Bearer \"a\""],
            &[b"Bearer a\xc3\xa9"],
            &[b"Bearer a\xff"],
            &[b",Bearer a"],
            &[b"Bearer a", b"Bearer a"],
            &[b"Bearer a", b"Basic YTpi"],
            &[b"Basic YTpi", b"Bearer a"],
            &[b"", b"Bearer a"],
        ] {
            assert_eq!(Credentials::of(&headers(lines)), Credentials::Malformed, "{lines:?}");
        }
    }
}
