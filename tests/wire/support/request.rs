//! Right requests of every revision, made to be broken in exactly one place.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;
use mcp_transport::{Era, Revision, testing};
use serde_json::{Value, json};

pub const MCP_METHOD: &str = "mcp-method";
pub const MCP_NAME: &str = "mcp-name";
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
pub const SESSION_ID: &str = "mcp-session-id";

/// Keys of `_meta`.
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLAIM: &str = "io.modelcontextprotocol/protocolVersion";
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The id of every request that [`testing::request`] writes.
pub const ID: u64 = 1;

/// An HTTP request that is still being written.
pub struct Call {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub extensions: http::Extensions,
    /// The message. `Null` is an empty body.
    pub body: Value,
    edits: Vec<Edit>,
}

/// A change to the bytes of the body that no JSON value could express.
type Edit = Box<dyn FnOnce(Vec<u8>) -> Vec<u8> + Send>;

impl Call {
    /// The right request of `revision`, outside any session. `params` may be `Null`.
    pub fn of(revision: Revision, method: &str, params: Value) -> Self {
        let (head, body) = testing::request(revision, method, params).into_parts();
        let body = serde_json::from_slice(&body).expect("a message");
        let mut call = Self { headers: head.headers, path: head.uri.to_string(), body, ..Self::bare(head.method) };
        if revision.era() == Era::Modern {
            call.set(&meta(CLIENT_INFO), json!({"name": "wire", "version": "1"}));
        }
        call
    }

    /// A request of 2026-07-28, with everything that revision wants.
    pub fn modern(method: &str, params: Value) -> Self {
        Self::of(Revision::V2026_07_28, method, params)
    }

    /// A request in the form of 2026-07-28 that names any version, in header and claim.
    pub fn modern_as(version: &str, method: &str, params: Value) -> Self {
        let mut call = Self::modern(method, params).header(PROTOCOL_VERSION, version);
        call.set(&meta(CLAIM), version);
        call
    }

    /// A request outside any session, as a client of a revision up to 2025-11-25 sends it. `params` may be `Null`.
    pub fn legacy(revision: Revision, method: &str, params: Value) -> Self {
        assert_eq!(revision.era(), Era::Legacy);
        Self::of(revision, method, params)
    }

    /// A POST of any JSON, without a word about versions.
    pub fn post(body: Value) -> Self {
        let call = Self { body, ..Self::bare(Method::POST) };
        call.header(CONTENT_TYPE.as_str(), "application/json")
            .header(ACCEPT.as_str(), "application/json, text/event-stream")
    }

    /// A GET for an event stream.
    pub fn get() -> Self {
        Self::bare(Method::GET).header(ACCEPT.as_str(), "text/event-stream")
    }

    /// A request without body and headers.
    pub fn bare(method: Method) -> Self {
        Self {
            method,
            path: "/mcp".to_owned(),
            headers: HeaderMap::new(),
            extensions: http::Extensions::new(),
            body: Value::Null,
            edits: Vec::new(),
        }
    }

    /// Makes it a notification: the same without `id`.
    pub fn notification(mut self) -> Self {
        self.remove("/id");
        self
    }

    /// Gives the message another id.
    pub fn id(mut self, id: impl Into<Value>) -> Self {
        self.body["id"] = id.into();
        self
    }

    /// [`put`](Self::put) for chaining.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.put(name, value);
        self
    }

    /// [`add`](Self::add) for chaining.
    pub fn also(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.add(name, value);
        self
    }

    /// [`take`](Self::take) for chaining.
    pub fn without(mut self, name: &str) -> Self {
        self.take(name);
        self
    }

    /// Sets a header, in place of any of that name. The value may hold any byte that HTTP can carry.
    pub fn put(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.headers.insert(header_name(name), header_value(value.as_ref()));
    }

    /// Adds a header beside any of that name.
    pub fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.headers.append(header_name(name), header_value(value.as_ref()));
    }

    /// Removes a header.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn take(&mut self, name: &str) {
        self.headers.remove(name).unwrap_or_else(|| panic!("there is no {name} to remove"));
    }

    /// Sets what a JSON pointer leads to; the last step may be a new member. Steps spell `/` as `~1`.
    pub fn set(&mut self, pointer: &str, value: impl Into<Value>) {
        let (parent, key) = self.place(pointer);
        parent.insert(key, value.into());
    }

    /// Removes the member a JSON pointer leads to.
    pub fn remove(&mut self, pointer: &str) {
        let (parent, key) = self.place(pointer);
        parent.remove(&key).unwrap_or_else(|| panic!("there is no {pointer} to remove"));
    }

    /// Changes the bytes of the body when all else is done.
    pub fn edit(&mut self, edit: impl FnOnce(Vec<u8>) -> Vec<u8> + Send + 'static) {
        self.edits.push(Box::new(edit));
    }

    /// Replaces the first `old` in the body's text when all else is done.
    ///
    /// # Panics
    ///
    /// Then, if there is none.
    pub fn replace(&mut self, old: &str, new: &str) {
        let (old, new) = (old.to_owned(), new.to_owned());
        self.edit(move |body| {
            // Other edits may have left bytes that are no text.
            let at = body.windows(old.len()).position(|window| window == old.as_bytes());
            let at = at.unwrap_or_else(|| panic!("no {old} in {}", String::from_utf8_lossy(&body)));
            [&body[..at], new.as_bytes(), &body[at + old.len()..]].concat()
        });
    }

    /// The bytes of the body, if it has any, in place of the message.
    pub fn raw(mut self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        self.edit(move |_| body);
        self
    }

    /// The finished body.
    pub fn into_bytes(self) -> Vec<u8> {
        let body = if self.body.is_null() { Vec::new() } else { self.body.to_string().into_bytes() };
        self.edits.into_iter().fold(body, |body, edit| edit(body))
    }

    /// The finished request with another body than its own.
    pub fn with_body<B>(self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().expect("a path");
        *request.headers_mut() = self.headers;
        *request.extensions_mut() = self.extensions;
        request
    }

    fn place(&mut self, pointer: &str) -> (&mut serde_json::Map<String, Value>, String) {
        let (parent, key) = pointer.rsplit_once('/').expect("a JSON pointer");
        let object = self.body.pointer_mut(parent).and_then(Value::as_object_mut);
        let object = object.unwrap_or_else(|| panic!("{parent} leads to no object"));
        (object, key.replace("~1", "/").replace("~0", "~"))
    }
}

impl From<Call> for Request<Full<Bytes>> {
    fn from(mut call: Call) -> Self {
        let bare = Call::bare(Method::POST);
        let body = Call { body: call.body.take(), edits: std::mem::take(&mut call.edits), ..bare }.into_bytes();
        call.with_body(Full::from(body))
    }
}

/// The JSON pointer of a key of the request's `_meta`.
pub fn meta(key: &str) -> String {
    format!("/params/_meta/{}", key.replace('/', "~1"))
}

/// A value as a mirrored header carries it: as it is where that is safe, else in the base64 form.
pub fn mirrored(value: &str) -> String {
    testing::mirrored(value).to_str().expect("visible ASCII").to_owned()
}

fn header_name(name: &str) -> HeaderName {
    HeaderName::from_bytes(name.as_bytes()).expect("a header name")
}

fn header_value(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value).expect("a header value")
}
