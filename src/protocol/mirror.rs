//! The routing headers of 2026-07-28, which mirror members of the body: `Mcp-Method` and `Mcp-Name`.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName};

use super::names::{header, method};
use super::sentinel;

/// Checks that `Mcp-Method` names the request's method, exactly and unencoded.
pub(crate) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), MirrorFault> {
    let judged = match single(headers, &header::MCP_METHOD) {
        Mirrored::Missing => Err(MirrorFaultKind::Missing),
        Mirrored::Twice => Err(MirrorFaultKind::Twice),
        Mirrored::Bytes => Err(MirrorFaultKind::Bytes),
        Mirrored::Value(value) if value == method => Ok(()),
        Mirrored::Value(_) => Err(MirrorFaultKind::Different),
    };
    judged.map_err(|what| MirrorFault::new("Mcp-Method", what))
}

/// Checks `Mcp-Name` against the member of `params` that it mirrors, given where that is a string.
///
/// The header is required though the body lacks the member: an intermediary that routes by it must find it.
pub(crate) fn check_name(headers: &HeaderMap, source: NameSource, value: Option<&str>) -> Result<(), MirrorFault> {
    let tolerates_missing = match source {
        NameSource::None => return Ok(()),
        NameSource::Name | NameSource::Uri => false,
        NameSource::TaskId => true,
    };
    let judged = match (decoded(headers, &header::MCP_NAME), value) {
        (Err(what), _) => Err(what),
        (Ok(None), _) if !tolerates_missing => Err(MirrorFaultKind::Missing),
        (Ok(None), _) => Ok(()),
        (Ok(Some(_)), None) => Err(MirrorFaultKind::Unexpected),
        (Ok(Some(name)), Some(value)) if name == value => Ok(()),
        (Ok(Some(_)), Some(_)) => Err(MirrorFaultKind::Different),
    };
    judged.map_err(|what| MirrorFault::new("Mcp-Name", what))
}

/// Which member of `params` the `Mcp-Name` header of a method mirrors (2026-07-28).
///
/// The header lets intermediaries route a request without reading its body; the transport refuses a request whose
/// header and body disagree with error `-32020`. The methods of the specification have their source by themselves, so
/// this is for the methods of extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameSource {
    /// The method mirrors no name: its `Mcp-Name` header is ignored.
    #[default]
    None,
    /// `params.name`, as for `tools/call` and `prompts/get`. The header is required.
    Name,
    /// `params.uri`, as for `resources/read`. The header is required.
    Uri,
    /// `params.taskId`, as for the methods of the tasks extension. The header may be missing, but not differ.
    TaskId,
}

impl NameSource {
    /// The source of a method of the specification or of its tasks extension.
    pub(crate) fn of(method: &str) -> Self {
        match method {
            method::TOOLS_CALL | method::PROMPTS_GET => Self::Name,
            method::RESOURCES_READ => Self::Uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => Self::TaskId,
            _ => Self::None,
        }
    }
}

/// What the headers say where one value is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mirrored<'a> {
    Missing,
    /// The header is there more than once, so a proxy may have read another copy.
    Twice,
    /// A byte outside visible ASCII, space and tab.
    Bytes,
    /// The value less the white space around it; it may be empty.
    Value(&'a str),
}

/// Reads a header that may stand in a request once.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Mirrored<'a> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Mirrored::Missing;
    };
    if values.next().is_some() {
        return Mirrored::Twice;
    }
    sentinel::plain(value).map_or(Mirrored::Bytes, Mirrored::Value)
}

/// Reads a header that may be Base64-encoded; `None` if it is missing.
pub(crate) fn decoded<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<Cow<'a, str>>, MirrorFaultKind> {
    match single(headers, name) {
        Mirrored::Missing => Ok(None),
        Mirrored::Twice => Err(MirrorFaultKind::Twice),
        Mirrored::Bytes => Err(MirrorFaultKind::Bytes),
        Mirrored::Value(value) => sentinel::decode(value).map(Some).map_err(|_| MirrorFaultKind::Encoding),
    }
}

/// A header that does not mirror the body, error `-32020`. Its text names the header and repeats no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MirrorFault {
    /// The header's name as the specification or the tool's schema spells it.
    pub(crate) header: Cow<'static, str>,
    pub(crate) what: MirrorFaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MirrorFaultKind {
    /// Not there, though the body has a value.
    Missing,
    /// There more than once.
    Twice,
    /// A byte outside visible ASCII, space and tab.
    Bytes,
    /// Base64 that decodes to no text.
    Encoding,
    /// Not the body's value.
    Different,
    /// There, though the body has no value.
    Unexpected,
    /// The body's value is an integer beyond ±(2^53 − 1), which no header may mirror.
    OutOfRange,
}

impl MirrorFault {
    pub(crate) fn new(header: impl Into<Cow<'static, str>>, what: MirrorFaultKind) -> Self {
        Self { header: header.into(), what }
    }
}

impl fmt::Display for MirrorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            MirrorFaultKind::Missing => "is missing",
            MirrorFaultKind::Twice => "is there more than once",
            MirrorFaultKind::Bytes => "holds a byte outside visible ASCII, space and tab",
            MirrorFaultKind::Encoding => "is not valid Base64 of UTF-8 text",
            MirrorFaultKind::Different => "differs from the body",
            MirrorFaultKind::Unexpected => "is there, but the body has no such value",
            MirrorFaultKind::OutOfRange => "cannot mirror an integer outside the safe range",
        };
        write!(f, "Header mismatch: {} {what}", self.header)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    fn method(pairs: &[(&str, &[u8])], method: &str) -> Option<MirrorFaultKind> {
        check_method(&headers(pairs), method).err().map(|fault| {
            assert_eq!(fault.header, "Mcp-Method");
            fault.what
        })
    }

    fn name(pairs: &[(&str, &[u8])], source: NameSource, value: Option<&str>) -> Option<MirrorFaultKind> {
        check_name(&headers(pairs), source, value).err().map(|fault| {
            assert_eq!(fault.header, "Mcp-Name");
            fault.what
        })
    }

    #[test]
    fn method_must_match_exactly() {
        let list = "tools/list";
        assert_eq!(method(&[("Mcp-Method", b"tools/list")], list), None);
        assert_eq!(method(&[("MCP-METHOD", b" \ttools/list ")], list), None);
        assert_eq!(method(&[], list), Some(MirrorFaultKind::Missing));
        assert_eq!(method(&[("mcp-method", b"")], list), Some(MirrorFaultKind::Different));
        assert_eq!(method(&[("mcp-method", b"prompts/list")], list), Some(MirrorFaultKind::Different));
        assert_eq!(method(&[("mcp-method", b"TOOLS/LIST")], list), Some(MirrorFaultKind::Different));
        assert_eq!(method(&[("mcp-method", b"tools/list\xff")], list), Some(MirrorFaultKind::Bytes));
    }

    #[test]
    fn method_twice_is_refused_even_when_both_agree() {
        let both: &[(&str, &[u8])] = &[("mcp-method", b"ping"), ("Mcp-Method", b"ping")];
        assert_eq!(method(both, "ping"), Some(MirrorFaultKind::Twice));
    }

    #[test]
    fn method_knows_no_sentinel() {
        let encoded: &[(&str, &[u8])] = &[("mcp-method", b"=?base64?cGluZw==?=")];
        assert_eq!(method(encoded, "ping"), Some(MirrorFaultKind::Different));
        assert_eq!(method(encoded, "=?base64?cGluZw==?="), None);
    }

    #[test]
    fn name_is_demanded_whatever_the_body_has() {
        for source in [NameSource::Name, NameSource::Uri] {
            assert_eq!(name(&[("mcp-name", b" add\t")], source, Some("add")), None);
            assert_eq!(name(&[], source, Some("add")), Some(MirrorFaultKind::Missing));
            assert_eq!(name(&[("mcp-name", b"Add")], source, Some("add")), Some(MirrorFaultKind::Different));
            assert_eq!(name(&[("mcp-name", b"")], source, Some("add")), Some(MirrorFaultKind::Different));
            assert_eq!(name(&[("mcp-name", b"")], source, Some("")), None);
            assert_eq!(name(&[], source, None), Some(MirrorFaultKind::Missing));
            assert_eq!(name(&[("mcp-name", b"add")], source, None), Some(MirrorFaultKind::Unexpected));
            assert_eq!(name(&[("mcp-name", b"")], source, None), Some(MirrorFaultKind::Unexpected));
        }
    }

    #[test]
    fn name_is_decoded() {
        let check = |value: &'static [u8], body| name(&[("mcp-name", value)], NameSource::Name, Some(body));
        assert_eq!(check(b"=?base64?5LiW55WM?=", "世界"), None);
        assert_eq!(check(b"=?base64?YWRk?=", "add"), None);
        assert_eq!(check(b"=?base64?YWRk?=", "=?base64?YWRk?="), Some(MirrorFaultKind::Different));
        assert_eq!(check(b"=?base64?SGVsbG8=", "=?base64?SGVsbG8="), None);
        assert_eq!(check(b"=?base64?SGVsbG8?=", "Hello"), Some(MirrorFaultKind::Encoding));
        assert_eq!(check(b"\xe4\xb8\x96", "世"), Some(MirrorFaultKind::Bytes));
    }

    #[test]
    fn name_twice_is_refused() {
        let both: &[(&str, &[u8])] = &[("mcp-name", b"add"), ("mcp-name", b"add")];
        assert_eq!(name(both, NameSource::Name, Some("add")), Some(MirrorFaultKind::Twice));
        assert_eq!(name(both, NameSource::TaskId, Some("add")), Some(MirrorFaultKind::Twice));
    }

    #[test]
    fn a_task_may_leave_its_header_out() {
        assert_eq!(name(&[], NameSource::TaskId, Some("t1")), None);
        assert_eq!(name(&[("mcp-name", b"t1")], NameSource::TaskId, Some("t1")), None);
        assert_eq!(name(&[("mcp-name", b"t2")], NameSource::TaskId, Some("t1")), Some(MirrorFaultKind::Different));
    }

    #[test]
    fn name_is_ignored_without_a_source() {
        let junk: &[(&str, &[u8])] = &[("mcp-name", b"\xff"), ("mcp-name", b"x")];
        assert_eq!(name(junk, NameSource::None, Some("add")), None);
    }

    #[test]
    fn sources_of_the_methods() {
        assert_eq!(NameSource::of("tools/call"), NameSource::Name);
        assert_eq!(NameSource::of("prompts/get"), NameSource::Name);
        assert_eq!(NameSource::of("resources/read"), NameSource::Uri);
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            assert_eq!(NameSource::of(method), NameSource::TaskId);
        }
        for method in ["tools/list", "server/discover", "Tools/Call", "tasks/list", ""] {
            assert_eq!(NameSource::of(method), NameSource::None);
        }
    }

    #[test]
    fn text_names_the_header_and_repeats_no_value() {
        let fault = check_name(&headers(&[("mcp-name", b"secret")]), NameSource::Name, Some("hidden")).unwrap_err();
        assert_eq!(fault.to_string(), "Header mismatch: Mcp-Name differs from the body");
    }
}
