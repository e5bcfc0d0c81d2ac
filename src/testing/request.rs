//! The right request of every revision, in one place.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::fail;
use crate::protocol::mirror::NameSource;
use crate::protocol::names::{header, meta};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::sentinel;

/// Where the endpoint is, unless told otherwise.
pub(super) const PATH: &str = "/mcp";

/// Writes the request that a client of `revision` sends: a POST to `/mcp` with the id 1 and every header and every
/// member of `_meta` that the revision asks for.
///
/// Up to 2025-11-25 it is a request outside any session; up to 2025-03-26 no header names the version, so 2024-11-05 is
/// taken for 2025-03-26. From 2026-07-28 on it declares no capabilities; what `_meta`
/// in `params` already says is left as it is. `Mcp-Param-*` headers, which take the tool's schema to write, are left to
/// you: see [`mirrored`]. So is `Host`, which is the connection's.
///
/// ```
/// use mcp_transport::Revision;
/// use mcp_transport::testing::request;
/// use serde_json::json;
///
/// let request = request(Revision::V2026_07_28, "prompts/get", json!({ "name": "greeting" }));
/// assert_eq!(request.headers()["mcp-method"], "prompts/get");
/// assert_eq!(request.headers()["mcp-name"], "greeting");
/// ```
///
/// # Panics
///
/// If `params` is neither an object nor null, or the method cannot stand in a header.
#[track_caller]
pub fn request(revision: Revision, method: &str, params: impl Serialize) -> http::Request<Bytes> {
    Draft { revision, method, params: object(params), id: Some(1), capabilities: &json!({}) }.write()
}

/// Writes a text as `Mcp-Name` and `Mcp-Param-*` headers carry it (2026-07-28): as it is, or Base64-encoded where a
/// header could not hold it or would be misread.
///
/// ```
/// use mcp_transport::testing::mirrored;
///
/// assert_eq!(mirrored("us-west1"), "us-west1");
/// assert_eq!(mirrored("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
/// ```
pub fn mirrored(text: &str) -> HeaderValue {
    value(&sentinel::encode(text))
}

/// A message that has yet to become a request.
pub(super) struct Draft<'a> {
    pub(super) revision: Revision,
    pub(super) method: &'a str,
    /// `None` where there are none.
    pub(super) params: Option<Map<String, Value>>,
    /// `None` for a notification.
    pub(super) id: Option<u64>,
    /// What the client declares, where each request says so.
    pub(super) capabilities: &'a Value,
}

impl Draft<'_> {
    #[track_caller]
    pub(super) fn write(mut self) -> http::Request<Bytes> {
        if self.revision.era() == Era::Modern {
            self.declare();
        }
        let headers = self.headers();
        let mut message = json!({ "jsonrpc": "2.0", "method": self.method });
        if let Value::Object(members) = &mut message {
            members.extend(self.id.map(|id| ("id".to_owned(), id.into())));
            members.extend(self.params.map(|params| ("params".to_owned(), params.into())));
        }
        let mut request = http::Request::new(Bytes::from(message.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static(PATH);
        *request.headers_mut() = headers;
        request
    }

    /// Adds what every request of 2026-07-28 says of its client.
    fn declare(&mut self) {
        let params = self.params.get_or_insert_default();
        if let Value::Object(members) = params.entry("_meta").or_insert_with(|| json!({})) {
            let client_info = json!({ "name": "mcp-transport testing", "version": env!("CARGO_PKG_VERSION") });
            members.entry(meta::PROTOCOL_VERSION).or_insert_with(|| self.revision.as_str().into());
            members.entry(meta::CLIENT_CAPABILITIES).or_insert_with(|| self.capabilities.clone());
            members.entry(meta::CLIENT_INFO).or_insert(client_info);
        }
    }

    #[track_caller]
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if self.revision >= Revision::V2025_06_18 {
            headers.insert(header::PROTOCOL_VERSION, HeaderValue::from_static(self.revision.as_str()));
        }
        if self.revision.era() == Era::Modern {
            headers.insert(header::MCP_METHOD, value(self.method));
            if let Some(name) = self.name() {
                headers.insert(header::MCP_NAME, mirrored(name));
            }
        }
        headers
    }

    /// The member of `params` that `Mcp-Name` mirrors.
    fn name(&self) -> Option<&str> {
        let member = match NameSource::of(self.method) {
            NameSource::None => return None,
            NameSource::Name => "name",
            NameSource::Uri => "uri",
            NameSource::TaskId => "taskId",
        };
        self.params.as_ref()?.get(member)?.as_str()
    }
}

/// The members of `params`.
#[track_caller]
pub(super) fn object(params: impl Serialize) -> Option<Map<String, Value>> {
    match serde_json::to_value(params) {
        Ok(Value::Object(members)) => Some(members),
        Ok(Value::Null) => None,
        Ok(other) => fail(format_args!("params must be an object, not {other}")),
        Err(error) => fail(format_args!("params cannot be written as JSON: {error}")),
    }
}

/// The value of a header.
#[track_caller]
pub(super) fn value(text: &str) -> HeaderValue {
    match HeaderValue::from_bytes(text.as_bytes()) {
        Ok(value) => value,
        Err(_) => fail(format_args!("{text:?} cannot stand in a header")),
    }
}
