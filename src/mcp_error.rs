//! What a handler answers when it cannot answer with a result.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::protocol::names::code;
use crate::protocol::revision::Era;
use crate::protocol::status::{self, HandlerCode};

type BoxError = Box<dyn StdError + Send + Sync>;

/// A JSON-RPC error that a handler answers with.
///
/// It is written in the newest revision's terms; each client gets the form of its own revision. Codes from `-32020` to
/// `-32099` are reserved for the protocol: apart from [`missing_capabilities`](Self::missing_capabilities), and
/// `-32042` to clients up to 2025-11-25, one that a handler chooses leaves as an internal error and is reported to the
/// [`Observer`](crate::Observer). `-32002` reaches clients of 2026-07-28 as `-32602`.
///
/// ```
/// use mcp_transport::McpError;
///
/// let error = McpError::invalid_params("`city` must not be empty");
/// assert_eq!(error.code(), -32602);
/// ```
///
/// There is no blanket `From`: what an internal error says must not reach a client by accident. Use
/// [`McpError::internal`], which tells the application everything and the wire only "Internal error".
pub struct McpError(Box<Inner>);

struct Inner {
    kind: Kind,
    message: Cow<'static, str>,
    data: Option<Box<RawValue>>,
    source: Option<BoxError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code(i32),
    ResourceNotFound,
    MissingCapabilities,
}

impl McpError {
    /// An error with a code of the application's own. Choose one outside `-32768` to `-32000`. Over HTTP the status is
    /// 200.
    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Kind::Code(code), message)
    }

    /// `-32602`: the params are wrong. Over HTTP a client of 2026-07-28 sees status 400.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// `-32600`: the request cannot be answered as it stands. Over HTTP a client of 2026-07-28 sees status 400.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// `-32601`: there is no such method. Over HTTP a client of 2026-07-28 sees status 404.
    pub fn method_not_found() -> Self {
        Self::new(code::METHOD_NOT_FOUND, "Method not found")
    }

    /// There is no resource at `uri`: `-32602` from 2026-07-28 on, over HTTP with status 400; `-32002` before. Both
    /// carry `data.uri`.
    pub fn resource_not_found(uri: &str) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            uri: &'a str,
        }
        Self::of(Kind::ResourceNotFound, "Resource not found").with_data(Data { uri })
    }

    /// `-32021`: the request needs capabilities that the client did not declare. `required` is an object shaped like
    /// the client's capabilities, such as `{"sampling": {}}`. Over HTTP the status is 400. Before 2026-07-28, which
    /// defines the code, clients see an internal error.
    pub fn missing_capabilities(required: impl Serialize) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<T> {
            required_capabilities: T,
        }
        Self::of(Kind::MissingCapabilities, "Missing required client capability")
            .with_data(Data { required_capabilities: required })
    }

    /// `-32603`: something failed inside the application. The client reads "Internal error" and nothing else; the
    /// [`Observer`](crate::Observer) hears the whole of it.
    ///
    /// ```
    /// use mcp_transport::McpError;
    ///
    /// async fn read(path: &str) -> Result<String, McpError> {
    ///     std::fs::read_to_string(path).map_err(McpError::internal)
    /// }
    /// ```
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let mut error = Self::new(code::INTERNAL_ERROR, "Internal error");
        error.0.source = Some(source.into());
        error
    }

    /// `-32602`, with what the parser found: for the handler to read, and nobody else.
    pub(crate) fn unreadable(message: &'static str, source: serde_json::Error) -> Self {
        let mut error = Self::invalid_params(message);
        error.0.source = Some(Box::new(source));
        error
    }

    fn of(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), data: None, source: None }))
    }

    /// The same error with `error.data`. If `data` cannot be written as JSON, the result is an internal error that says
    /// so to the observer.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        match serde_json::value::to_raw_value(&data) {
            Ok(data) => {
                self.0.data = Some(data);
                self
            }
            Err(error) => Self::internal(error),
        }
    }

    /// Returns the code, as in the newest revision.
    pub fn code(&self) -> i32 {
        match self.0.kind {
            Kind::Code(code) => code,
            Kind::ResourceNotFound => code::INVALID_PARAMS,
            Kind::MissingCapabilities => code::MISSING_CLIENT_CAPABILITY,
        }
    }

    /// Returns the message that the client reads.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The code a client of this era reads.
    pub(crate) fn code_for(&self, era: Era) -> HandlerCode {
        match (self.0.kind, era) {
            (Kind::Code(code), era) => status::of_handler(era, code),
            (Kind::ResourceNotFound, Era::Legacy) => HandlerCode::Leaves(code::RESOURCE_NOT_FOUND),
            (Kind::ResourceNotFound, Era::Modern) => HandlerCode::Leaves(code::INVALID_PARAMS),
            (Kind::MissingCapabilities, Era::Legacy) => HandlerCode::Leaves(code::INTERNAL_ERROR),
            (Kind::MissingCapabilities, Era::Modern) => HandlerCode::Leaves(code::MISSING_CLIENT_CAPABILITY),
        }
    }

    /// `error.data` for a client of this era.
    pub(crate) fn data_for(&self, era: Era) -> Option<&RawValue> {
        match (self.0.kind, era) {
            (Kind::MissingCapabilities, Era::Legacy) => None,
            _ => self.0.data.as_deref(),
        }
    }

    /// Whether the application has to be told, since the client is not.
    pub(crate) fn is_internal(&self) -> bool {
        self.0.source.is_some() && self.code() == code::INTERNAL_ERROR
    }
}

impl fmt::Debug for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpError")
            .field("code", &self.code())
            .field("message", &self.0.message)
            .field("data", &self.0.data)
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for McpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0.message, self.code())
    }
}

impl StdError for McpError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
