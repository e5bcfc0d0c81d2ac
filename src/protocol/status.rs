//! Which HTTP status stands beside an answer, and which error code may leave in which era.

use http::StatusCode;

use super::names::code;
use super::revision::Era;

/// The status of an error answer while nothing has been sent: one function of its code, whoever made it.
///
/// Legacy errors are in band. 2026-07-28 asks for 400 and 404 where an intermediary can act on them.
pub(crate) const fn of_error(era: Era, code: i32) -> StatusCode {
    if let Era::Legacy = era {
        return StatusCode::OK;
    }
    match code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::UNSUPPORTED_VERSION
        | code::MISSING_CLIENT_CAPABILITY
        | code::HEADER_MISMATCH
        | code::INVALID_PARAMS
        | code::INVALID_REQUEST
        | code::PARSE_ERROR => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// What becomes of an error code that a handler chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerCode {
    /// It may leave, as this.
    Leaves(i32),
    /// It is reserved for the protocol: an internal error leaves in its place.
    Reserved,
}

/// Judges a handler's error code (2026-07-28, Overview, "Error Codes").
pub(crate) const fn of_handler(era: Era, code: i32) -> HandlerCode {
    match (era, code) {
        (Era::Modern, code::RESOURCE_NOT_FOUND) => HandlerCode::Leaves(code::INVALID_PARAMS),
        // A code of 2025-11-25, whose clients know it.
        (Era::Legacy, code::URL_ELICITATION_REQUIRED) => HandlerCode::Leaves(code),
        (_, -32099..=-32020) => HandlerCode::Reserved,
        (_, _) => HandlerCode::Leaves(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_codes_do_not_leave() {
        for code in [-32020, -32021, -32022, -32023, -32050, -32099] {
            for era in [Era::Legacy, Era::Modern] {
                assert_eq!(of_handler(era, code), HandlerCode::Reserved, "{code}");
            }
        }
        for code in [-32000, -32019, -32100, 7, -32601] {
            assert_eq!(of_handler(Era::Modern, code), HandlerCode::Leaves(code));
        }
        assert_eq!(of_handler(Era::Modern, -32042), HandlerCode::Reserved);
        assert_eq!(of_handler(Era::Legacy, -32042), HandlerCode::Leaves(-32042));
        assert_eq!(of_handler(Era::Modern, -32002), HandlerCode::Leaves(-32602));
        assert_eq!(of_handler(Era::Legacy, -32002), HandlerCode::Leaves(-32002));
    }
}
