//! The value encoding of mirrored headers: plain text, or Base64 between `=?base64?` and `?=` (2026-07-28).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Why a header value stands for no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentinelFault {
    /// It holds a byte outside visible ASCII, space and tab.
    Bytes,
    /// What stands between prefix and suffix is no Base64 of UTF-8.
    Encoding,
}

/// Returns the text that a header value stands for.
///
/// Only the exact prefix and suffix, case included and sharing no byte, make it Base64; any other value is a literal.
pub(crate) fn decode(value: &[u8]) -> Result<Cow<'_, str>, SentinelFault> {
    let literal = plain(value).ok_or(SentinelFault::Bytes)?;
    let Some(encoded) = literal.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
        return Ok(Cow::Borrowed(literal));
    };
    // STANDARD demands canonical padding and refuses stray trailing bits, so that each text has one encoding.
    let decoded = STANDARD.decode(encoded).map_err(|_| SentinelFault::Encoding)?;
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| SentinelFault::Encoding)
}

/// Returns the value that stands for a text: the text itself, or Base64 where a header cannot hold it as it is or
/// [`decode`] would read something else.
#[cfg(feature = "testing")]
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    let is_literal = decode(text.as_bytes()).is_ok_and(|read| matches!(read, Cow::Borrowed(read) if read == text));
    if is_literal { Cow::Borrowed(text) } else { Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text))) }
}

/// Returns a header value less the white space around it, if it is visible ASCII, space and tab throughout.
pub(crate) fn plain(value: &[u8]) -> Option<&str> {
    let allowed = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    let text = std::str::from_utf8(value).ok().filter(|_| value.iter().all(allowed))?;
    Some(text.trim_matches([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> String {
        decode(value.as_bytes()).unwrap_or_else(|fault| panic!("{value}: {fault:?}")).into_owned()
    }

    #[test]
    fn examples_of_the_specification_decode() {
        assert_eq!(text("us-west1"), "us-west1");
        assert_eq!(text("=?base64?SGVsbG8sIOS4lueVjA==?="), "Hello, 世界");
        assert_eq!(text("=?base64?IHBhZGRlZCA=?="), " padded ");
        assert_eq!(text("=?base64?bGluZTEKbGluZTI=?="), "line1\nline2");
        assert_eq!(text("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="), "=?base64?literal?=");
    }

    #[test]
    fn a_value_without_both_markers_is_a_literal() {
        for literal in [
            "SGVsbG8=",
            "=?base64?SGVsbG8=",
            "SGVsbG8=?=",
            "=?BASE64?SGVsbG8=?=",
            "=?Base64?SGVsbG8=?=",
            "=?base64?=",
            "=?base64?",
            "?=",
            "x=?base64?SGVsbG8=?=",
            "=?base64?SGVsbG8=?=x",
            "",
        ] {
            assert_eq!(text(literal), literal);
        }
    }

    #[test]
    fn literals_are_borrowed() {
        assert!(matches!(decode(b" us-west1 "), Ok(Cow::Borrowed("us-west1"))));
    }

    #[test]
    fn an_empty_text_may_be_encoded() {
        assert_eq!(text("=?base64??="), "");
    }

    #[test]
    fn white_space_around_a_value_is_not_part_of_it() {
        assert_eq!(text(" \t us west1\t "), "us west1");
        assert_eq!(text("\t=?base64?SGVsbG8=?= "), "Hello");
        assert_eq!(text(" \t"), "");
    }

    #[test]
    #[cfg(feature = "testing")]
    fn what_is_encoded_decodes_to_itself() {
        for (plain, encoded) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a\tb ~", "a\tb ~"),
            ("=?base64?=", "=?base64?="),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
        ] {
            assert_eq!(encode(plain), encoded);
            assert_eq!(text(encoded), plain);
        }
    }

    #[test]
    fn base64_is_strict() {
        for value in [
            "=?base64?SGVsbG8?=",          // padding missing
            "=?base64?SGVsbG8==?=",        // too much of it
            "=?base64?SGVs!!!bG8=?=",      // outside the alphabet
            "=?base64?SGVs bG8=?=",        // space inside
            "=?base64?_-8=?=",             // the URL alphabet
            "=?base64?SGVsbG9=?=",         // stray trailing bits
            "=?base64?=?=",                // padding alone
            "=?base64?SGVsbG8=SGVsbG8=?=", // padding inside
            "=?base64?/w==?=",             // 0xff: not UTF-8
            "=?base64?7aCA?=",             // a surrogate: not UTF-8
        ] {
            assert_eq!(decode(value.as_bytes()), Err(SentinelFault::Encoding), "{value}");
        }
    }

    #[test]
    fn bytes_outside_visible_ascii_are_refused() {
        for byte in (0..=u8::MAX).filter(|byte| !matches!(byte, 0x20..=0x7e | 0x09)) {
            assert_eq!(decode(&[b'a', byte, b'b']), Err(SentinelFault::Bytes), "{byte:#x}");
            assert_eq!(decode(&[byte]), Err(SentinelFault::Bytes), "{byte:#x} is not trimmed away");
        }
        assert_eq!(decode("世界".as_bytes()), Err(SentinelFault::Bytes));
        assert_eq!(text("a\tb ~"), "a\tb ~");
    }
}
