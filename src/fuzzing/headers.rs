//! The headers of a modern call against its body, at the service itself, and the Base64 form of their values.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::json;

use super::{header_map, part};
use crate::protocol::names::{header, meta};
use crate::protocol::sentinel;
use crate::{Capabilities, McpError, McpHandler, Reply, RequestContext, ServerInfo, StreamableHttpService};

struct Quiet;

impl McpHandler for Quiet {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("quiet", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new()
    }

    async fn request(&self, _: crate::Request, _: RequestContext) -> Result<Reply, McpError> {
        Reply::empty()
    }
}

static SERVICE: LazyLock<StreamableHttpService> = LazyLock::new(|| StreamableHttpService::new(Quiet));

/// The name of what is read, a NUL, the method, a NUL, headers.
pub fn headers(mut data: &[u8]) {
    let (name, method, lines) = (part(&mut data), part(&mut data), part(&mut data));
    value(name);
    let (Ok(name), Ok(method)) = (std::str::from_utf8(name), std::str::from_utf8(method)) else { return };
    let headers = header_map(lines);
    let about = json!({ meta::PROTOCOL_VERSION: "2026-07-28", meta::CLIENT_CAPABILITIES: {} });
    let params = json!({ "name": name, "uri": name, "_meta": about });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers.clone();
    let answer = SERVICE.handle(request).now_or_never().expect("nothing waits");
    if answer.status() != StatusCode::OK {
        assert!(answer.status().is_client_error(), "{}", answer.status());
        return;
    }
    // What an intermediary reads off the headers is what the server did.
    assert_eq!(only(&headers, header::PROTOCOL_VERSION.as_str()).as_deref(), Some("2026-07-28"));
    assert_eq!(only(&headers, header::MCP_METHOD.as_str()).as_deref(), Some(method));
    if matches!(method, "tools/call" | "prompts/get" | "resources/read") {
        let said = only(&headers, header::MCP_NAME.as_str()).expect("a name");
        assert_eq!(decoded(&said).as_deref(), Some(name));
    }
    let accept = headers.get_all("accept").iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let accept = accept.collect::<Vec<_>>().join(",").to_lowercase();
    assert!(accept.is_empty() || ["*/*", "application/", "text/"].iter().any(|range| accept.contains(range)));
    let origin = headers.get("origin").map(|origin| String::from_utf8_lossy(origin.as_bytes()).to_lowercase());
    let is_local =
        |origin: &String| ["://localhost", "://127.0.0.1", "://[::1]"].iter().any(|host| origin.contains(host));
    assert!(origin.as_ref().is_none_or(is_local), "a page of {origin:?} was let in");
}

/// The only value of a header, less the white space around it.
fn only(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = std::str::from_utf8(values.next()?.as_bytes()).ok()?;
    assert_eq!(values.next(), None, "{name} came twice");
    Some(value.trim_matches([' ', '\t']).to_owned())
}

/// The text that a value stands for.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// A text has one encoding, and what is no Base64 is itself.
fn value(value: &[u8]) {
    let header = HeaderValue::from_bytes(value).ok();
    let plain = header.as_ref().and_then(sentinel::plain);
    if let Some(Ok(text)) = plain.map(sentinel::decode) {
        let trimmed = std::str::from_utf8(value).unwrap().trim_matches([' ', '\t']);
        let encoded = format!("=?base64?{}?=", STANDARD.encode(&*text));
        assert!(text == trimmed || encoded == trimmed, "{trimmed:?} was taken for {text:?}");
    }
    #[cfg(feature = "testing")]
    if let Ok(text) = std::str::from_utf8(value) {
        let encoded = sentinel::encode(text);
        let header = HeaderValue::from_str(&encoded).unwrap();
        assert_eq!(sentinel::decode(sentinel::plain(&header).unwrap()).as_deref(), Ok(text), "it does not come back");
    }
}
