//! The value encoding of mirrored headers: plain text, or Base64 between `=?base64?` and `?=` (2026-07-28).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// What stands between prefix and suffix is no Base64 of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotText;

/// Returns the text that a [`plain`] header value stands for.
///
/// Only the exact prefix and suffix, case included and sharing no byte, make it Base64; any other value is a literal.
pub(crate) fn decode(literal: &str) -> Result<Cow<'_, str>, NotText> {
    let Some(encoded) = literal.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
        return Ok(Cow::Borrowed(literal));
    };
    // STANDARD demands canonical padding and refuses stray trailing bits, so that each text has one encoding.
    let decoded = STANDARD.decode(encoded).map_err(|_| NotText)?;
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| NotText)
}

/// Returns the value that stands for a text: the text itself, or Base64 where a header cannot hold it as it is or
/// [`decode`] would read something else.
#[cfg(feature = "testing")]
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    let value = HeaderValue::from_str(text).ok();
    let is_literal = value.as_ref().and_then(plain) == Some(text)
        && decode(text).is_ok_and(|read| matches!(read, Cow::Borrowed(read) if read == text));
    if is_literal { Cow::Borrowed(text) } else { Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text))) }
}

/// Returns a header value less the white space around it, if it is visible ASCII, space and tab throughout.
pub(crate) fn plain(value: &HeaderValue) -> Option<&str> {
    // Exactly these bytes are what `http` takes for text.
    value.to_str().ok().map(|text| text.trim_matches([' ', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> String {
        let value = HeaderValue::from_str(value).unwrap();
        decode(plain(&value).unwrap()).unwrap_or_else(|_| panic!("{value:?}")).into_owned()
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
        assert!(matches!(decode("us-west1"), Ok(Cow::Borrowed("us-west1"))));
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
            assert_eq!(decode(value), Err(NotText), "{value}");
        }
    }

    #[test]
    fn bytes_outside_visible_ascii_are_refused() {
        let read = |bytes: &[u8]| HeaderValue::from_bytes(bytes).is_ok_and(|value| plain(&value).is_some());
        for byte in (0..=u8::MAX).filter(|byte| !matches!(byte, 0x20..=0x7e | 0x09)) {
            assert!(!read(&[b'a', byte, b'b']), "{byte:#x}");
            assert!(!read(&[byte]), "{byte:#x} is not trimmed away");
        }
        assert!(!read("世界".as_bytes()));
        assert_eq!(text("a\tb ~"), "a\tb ~");
    }
}
