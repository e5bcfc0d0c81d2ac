//! What a browser must be told so that an allowed page may read the answers.
//!
//! Credentials mode is never allowed: the protocol authenticates with `Authorization`, which a page sets itself, and a
//! cookie that the browser adds by itself is how one site acts in the name of another.

use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, AUTHORIZATION, CONTENT_TYPE,
    VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::names::header;

/// The request headers of the protocol; beside them, any `Mcp-Param-*` may be sent.
const ALLOWED: [HeaderName; 8] = [
    ACCEPT,
    AUTHORIZATION,
    CONTENT_TYPE,
    HeaderName::from_static("last-event-id"),
    header::MCP_METHOD,
    header::MCP_NAME,
    header::PROTOCOL_VERSION,
    header::SESSION_ID,
];

/// Most bytes of `Access-Control-Allow-Headers`; requested names past it are left out.
const ALLOWED_LEN: usize = 4096;

/// What a page may read besides the body: the session it was given, how to authorize, and when to come back.
const EXPOSED: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After");

/// Two hours, in seconds: the most Chromium keeps. Longer answers would do no harm, as every request is judged anew.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The headers of the 204 answer to an OPTIONS request.
///
/// `origin` is an allowed one, or `None` where the request has none; `methods` are those served, as in `Allow`.
pub(crate) fn preflight(request: &HeaderMap, origin: Option<&HeaderValue>, methods: HeaderValue) -> HeaderMap {
    let mut answer = HeaderMap::new();
    if let Some(origin) = origin {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(allowed) = allowed_headers(request) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    answer.insert(
        VARY,
        HeaderValue::from_static("Origin, Access-Control-Request-Method, Access-Control-Request-Headers"),
    );
    answer
}

/// Opens an answer, whatever its status, to the page of an allowed origin. Doing so twice changes nothing.
pub(crate) fn decorate(response: &mut HeaderMap, origin: &HeaderValue) {
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    if !varies_by_origin(response) {
        response.append(VARY, HeaderValue::from_static("Origin"));
    }
}

/// The requested header names that are allowed, or `None` if there are none.
fn allowed_headers(request: &HeaderMap) -> Option<HeaderValue> {
    let mut allowed = String::new();
    for name in elements(request, ACCESS_CONTROL_REQUEST_HEADERS) {
        // Only a valid header name goes back, in lower case, whatever the request held.
        let Some(name) = HeaderName::from_bytes(name).ok().filter(is_allowed) else {
            continue;
        };
        let separator = if allowed.is_empty() { "" } else { ", " };
        if allowed.len() + separator.len() + name.as_str().len() > ALLOWED_LEN {
            break;
        }
        allowed.push_str(separator);
        allowed.push_str(name.as_str());
    }
    HeaderValue::try_from(allowed).ok().filter(|allowed| !allowed.is_empty())
}

fn is_allowed(name: &HeaderName) -> bool {
    ALLOWED.contains(name) || name.as_str().strip_prefix(header::PARAM_PREFIX).is_some_and(|param| !param.is_empty())
}

fn varies_by_origin(response: &HeaderMap) -> bool {
    elements(response, VARY).any(|name| name == b"*" || name.eq_ignore_ascii_case(b"origin"))
}

/// The elements of a comma-separated list of names, over all its lines.
fn elements(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    headers.get_all(name).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use http::header::{ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_LENGTH};

    use super::*;

    const PAGE: HeaderValue = HeaderValue::from_static("http://localhost:6274");
    const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");

    fn asking(lines: &[&[u8]]) -> HeaderMap {
        let mut request: HeaderMap =
            lines.iter().map(|line| (ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_bytes(line).unwrap())).collect();
        request.insert(ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
        request
    }

    fn allowed(lines: &[&[u8]]) -> String {
        let answer = preflight(&asking(lines), Some(&PAGE), METHODS);
        answer.get(ACCESS_CONTROL_ALLOW_HEADERS).map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_preflight_is_answered_whole() {
        let answer = preflight(&asking(&[b"content-type"]), Some(&PAGE), METHODS);
        let expected = [
            (ACCESS_CONTROL_ALLOW_ORIGIN, "http://localhost:6274"),
            (ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, DELETE"),
            (ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
            (ACCESS_CONTROL_MAX_AGE, "7200"),
            (VARY, "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"),
        ];
        assert_eq!(answer, expected.map(|(name, value)| (name, HeaderValue::from_static(value))).into_iter().collect());
    }

    #[test]
    fn the_methods_are_those_served() {
        let answer = preflight(&asking(&[]), Some(&PAGE), HeaderValue::from_static("POST"));
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_METHODS], "POST");
    }

    #[test]
    fn without_origin_no_origin_is_allowed() {
        for request in [HeaderMap::new(), asking(&[b"content-type"])] {
            assert!(!preflight(&request, None, METHODS).contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
        }
    }

    #[test]
    fn the_known_ones_of_the_requested_headers_are_allowed() {
        for (lines, expected) in [
            (&[][..], ""),
            (&[&b""[..]], ""),
            (&[b"x-evil"], ""),
            (
                &[b"accept,authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-protocol-version,mcp-session-id"],
                "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, \
                 mcp-session-id",
            ),
            (&[b"Mcp-Session-ID, CONTENT-TYPE"], "mcp-session-id, content-type"),
            (&[b"mcp-param-region,Mcp-Param-A.b_c"], "mcp-param-region, mcp-param-a.b_c"),
            (&[b"accept, x-a", b"x-b,mcp-name", b"", b"authorization"], "accept, mcp-name, authorization"),
            (&[b" ,, \taccept\t ,,"], "accept"),
            (&[b"*"], ""),
            (&[b"accept, *, mcp-*, mcp-param-*"], "accept, mcp-param-*"),
            (&[b"cookie, host, origin, mcp-other, mcp-paramx, x-mcp-param-a, accept-language"], ""),
            // Not header names.
            (&[b"mcp-param-"], ""),
            (&[b"mcp-param-a b, mcp-param-\"a\", mcp-param-a;b, mcp-param-a:b, mcp-param-(a)"], ""),
            (&[b"mcp-param-\xff, mcp-param-\xc3\xa9, \xffaccept, accept"], "accept"),
            (&[b"accept mcp-name"], ""),
        ] {
            assert_eq!(allowed(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn the_allowed_headers_are_bounded() {
        let many = (0..20_000).map(|n| format!("mcp-param-{n}")).collect::<Vec<_>>().join(",");
        let answer = allowed(&[many.as_bytes()]);
        assert!(answer.starts_with("mcp-param-0, mcp-param-1, "));
        assert!((ALLOWED_LEN - 32..=ALLOWED_LEN).contains(&answer.len()), "{}", answer.len());

        let fits = format!("mcp-param-{}", "a".repeat(ALLOWED_LEN - 10));
        assert_eq!(allowed(&[fits.as_bytes()]), fits);
        assert_eq!(allowed(&[format!("{fits}a").as_bytes()]), "");
        assert_eq!(allowed(&[format!("mcp-param-{}", "a".repeat(1 << 17)).as_bytes()]), "");
        assert_eq!(allowed(&vec![&b"x"[..]; 10_000]), "");
    }

    #[test]
    fn an_answer_is_opened_to_its_page_only() {
        let mut response = HeaderMap::new();
        response.insert(CONTENT_LENGTH, HeaderValue::from_static("2"));
        decorate(&mut response, &PAGE);
        assert_eq!(response[ACCESS_CONTROL_ALLOW_ORIGIN], PAGE);
        assert_eq!(response[ACCESS_CONTROL_EXPOSE_HEADERS], "Mcp-Session-Id, WWW-Authenticate, Retry-After");
        assert_eq!(response[VARY], "Origin");
        assert_eq!(response[CONTENT_LENGTH], "2");
        assert!(!response.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS));

        let once = response.clone();
        decorate(&mut response, &PAGE);
        assert_eq!(response, once);
    }

    #[test]
    fn vary_names_the_origin_once_and_keeps_the_rest() {
        for (before, after) in [
            (&[][..], &["Origin"][..]),
            (&["Accept"], &["Accept", "Origin"]),
            (&["Accept", "accept-encoding, ORIGIN"], &["Accept", "accept-encoding, ORIGIN"]),
            (&["X-Origin"], &["X-Origin", "Origin"]),
            (&["*"], &["*"]),
        ] {
            let mut response: HeaderMap = before.iter().map(|line| (VARY, HeaderValue::from_static(line))).collect();
            decorate(&mut response, &PAGE);
            assert_eq!(response.get_all(VARY).iter().collect::<Vec<_>>(), after);
        }
        let mut preflight = preflight(&asking(&[]), Some(&PAGE), METHODS);
        decorate(&mut preflight, &PAGE);
        assert_eq!(preflight.get_all(VARY).iter().count(), 1);
    }
}
