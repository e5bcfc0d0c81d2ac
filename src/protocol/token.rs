//! What HTTP calls a token (RFC 9110, section 5.6.2): scheme names, header names, and the keys of W3C Baggage.

/// `tchar`.
pub(crate) const fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`')
        || matches!(byte, b'|' | b'~')
}
