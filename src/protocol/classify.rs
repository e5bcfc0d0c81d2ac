//! Which era a message belongs to: the one rule that everything else follows from.

use http::{HeaderMap, HeaderValue, Method};

use super::envelope::{self, Body};
use super::names::header;
use super::revision::Era;
use super::scan::Caps;

/// The first modern revision. A version header that is a date from here on is modern, even where this crate does not
/// implement it, so that a client of the future is told which versions are served instead of being taken for an old
/// one.
const FIRST_MODERN: &[u8] = b"2026-07-28";

/// Tells the era of an HTTP message from its method, headers and body, as [`StreamableHttpService`] does.
///
/// A POST whose body carries `params._meta["io.modelcontextprotocol/protocolVersion"]` is modern, and so is any message
/// whose `MCP-Protocol-Version` is a date at or after 2026-07-28. Everything else is legacy, `initialize` included,
/// whatever version its body names. In an array, one element that carries the key is enough.
///
/// A body that is no JSON-RPC message carries nothing, so its headers decide.
///
/// [`StreamableHttpService`]: crate::StreamableHttpService
///
/// ```
/// use http::{HeaderMap, Method};
/// use mcp_transport::{Era, classify};
///
/// let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28"}}"#;
/// assert_eq!(classify(&Method::POST, &HeaderMap::new(), initialize), Era::Legacy);
/// ```
pub fn classify(method: &Method, headers: &HeaderMap, body: &[u8]) -> Era {
    let claimed = *method == Method::POST
        && envelope::read(bytes::Bytes::copy_from_slice(body), Caps::default()).is_ok_and(|body| claims(&body));
    era(headers, claimed)
}

/// Whether a body claims the modern era.
pub(crate) fn claims(body: &Body) -> bool {
    match body {
        Body::Message(message) => message.has_claim(),
        Body::Batch(batch) => batch.claims_modern(),
    }
}

/// The era of a message that came without headers.
pub(crate) fn era_of(message: &envelope::Message) -> Era {
    if message.has_claim() { Era::Modern } else { Era::Legacy }
}

/// The rule itself.
pub(crate) fn era(headers: &HeaderMap, claimed: bool) -> Era {
    if claimed || headers.get_all(header::PROTOCOL_VERSION).iter().any(is_modern) { Era::Modern } else { Era::Legacy }
}

fn is_modern(version: &HeaderValue) -> bool {
    let version = version.as_bytes().trim_ascii();
    is_date(version) && version >= FIRST_MODERN
}

/// `dddd-dd-dd` with a month and a day that can be. Only then is the order of the bytes the order of the dates.
fn is_date(text: &[u8]) -> bool {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return false;
    };
    let digits = [y1, y2, y3, y4, m1, m2, d1, d2].iter().all(u8::is_ascii_digit);
    digits && (*b"01"..=*b"12").contains(&[m1, m2]) && (*b"01"..=*b"31").contains(&[d1, d2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_version(version: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::PROTOCOL_VERSION, HeaderValue::from_str(version).unwrap())])
    }

    #[test]
    fn only_a_date_from_the_first_modern_one_on_is_modern() {
        for version in ["2026-07-28", " 2026-07-28 ", "2026-12-31", "2027-01-01", "9999-12-31"] {
            assert_eq!(era(&with_version(version), false), Era::Modern, "{version}");
        }
        for version in [
            "",
            "abc",
            "DRAFT-1",
            "draft",
            "2026-13-45",
            "2026-7-28",
            "2026-07-27",
            "2025-11-25",
            "2026-07-32",
            "2026-08-00",
            "2026-00-10",
            "20260728",
            "2026-07-281",
            "2026/07/28",
            "99999-01-01",
        ] {
            assert_eq!(era(&with_version(version), false), Era::Legacy, "{version}");
        }
    }

    #[test]
    fn a_claim_is_modern_whatever_it_says() {
        for claim in [r#""2026-07-28""#, r#""2024-11-05""#, "7", "null"] {
            let one = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":{claim}}}}}}}"#
            );
            assert_eq!(classify(&Method::POST, &HeaderMap::new(), one.as_bytes()), Era::Modern, "{claim}");
            let batch = format!(r#"[{{"jsonrpc":"2.0","id":2,"method":"x"}},{one}]"#);
            assert_eq!(classify(&Method::POST, &HeaderMap::new(), batch.as_bytes()), Era::Modern, "{claim}");
            assert_eq!(classify(&Method::GET, &HeaderMap::new(), one.as_bytes()), Era::Legacy, "a GET has no body");
        }
    }
}
