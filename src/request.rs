//! What a handler is given to answer.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::exchange::call::Call;
use crate::mcp_error::McpError;
use crate::protocol::envelope::RequestId;

/// A request that the handler has to answer.
///
/// It owns the bytes the client sent, and reads from them what it is asked for. Types that borrow are fine, but use
/// `Cow<'_, str>` rather than `&str`: a client may escape any character, and a `&str` cannot hold one that was.
///
/// ```
/// use std::borrow::Cow;
/// use mcp_transport::{McpError, Reply, Request};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Add {
///     a: f64,
///     b: f64,
/// }
///
/// fn call_tool(request: &Request) -> Result<Reply, McpError> {
///     match request.name() {
///         Some("add") => {
///             let Add { a, b } = request.arguments()?;
///             let text = (a + b).to_string();
///             Reply::of(serde_json::json!({ "content": [{ "type": "text", "text": text }] }))
///         }
///         _ => Err(McpError::invalid_params("no such tool")),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Request(Arc<Call>);

impl Request {
    pub(crate) fn new(call: Arc<Call>) -> Self {
        Self(call)
    }

    /// Returns the method, such as `tools/call`.
    pub fn method(&self) -> &str {
        self.0.message.method()
    }

    /// Returns the id, exactly as the client wrote it. Every request has one.
    pub fn id(&self) -> RequestId {
        RequestId::of(&self.0.message)
    }

    /// Returns `params.name`: the tool or prompt that is asked for.
    pub fn name(&self) -> Option<&str> {
        self.0.message.name()
    }

    /// Returns `params.uri`: the resource that is asked for.
    pub fn uri(&self) -> Option<&str> {
        self.0.message.uri()
    }

    /// Reads `params`, `_meta` included. Absent ones read as `{}`.
    ///
    /// # Errors
    ///
    /// `-32602` where they are not what `T` expects. What the parser found is the error's
    /// [`source`](std::error::Error::source), for you to log or to tell the model; it goes to nobody by itself.
    pub fn params<'de, T: Deserialize<'de>>(&'de self) -> Result<T, McpError> {
        read(self.0.message.params(), "Invalid params")
    }

    /// Reads `params.arguments`: those of a tool or prompt. Absent ones read as `{}`.
    ///
    /// # Errors
    ///
    /// `-32602` where they are not what `T` expects, as for [`params`](Self::params).
    pub fn arguments<'de, T: Deserialize<'de>>(&'de self) -> Result<T, McpError> {
        read(self.0.message.arguments(), "Invalid arguments")
    }

    /// Returns the JSON text of `params`, where there are any.
    pub fn params_json(&self) -> Option<&[u8]> {
        self.0.message.params()
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method()).field("id", &self.id()).finish_non_exhaustive()
    }
}

/// A notification from the client. Nothing is answered.
#[derive(Clone)]
pub struct Notification(Arc<Call>);

impl Notification {
    pub(crate) fn new(call: Arc<Call>) -> Self {
        Self(call)
    }

    /// Returns the method, such as `notifications/roots/list_changed`.
    pub fn method(&self) -> &str {
        self.0.message.method()
    }

    /// Reads `params`. Absent ones read as `{}`.
    ///
    /// # Errors
    ///
    /// `-32602` where they are not what `T` expects. It can only be logged: nobody waits for an answer.
    pub fn params<'de, T: Deserialize<'de>>(&'de self) -> Result<T, McpError> {
        read(self.0.message.params(), "Invalid params")
    }

    /// Returns the JSON text of `params`, where there are any.
    pub fn params_json(&self) -> Option<&[u8]> {
        self.0.message.params()
    }
}

impl fmt::Debug for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notification").field("method", &self.method()).finish_non_exhaustive()
    }
}

fn read<'de, T: Deserialize<'de>>(json: Option<&'de [u8]>, otherwise: &'static str) -> Result<T, McpError> {
    serde_json::from_slice(json.unwrap_or(b"{}")).map_err(|error| McpError::unreadable(otherwise, error))
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn what_the_parser_found_is_the_source_and_no_internal_error() {
        let error = read::<u8>(Some(b"-1"), "Invalid params").unwrap_err();
        assert_eq!((error.code(), error.message()), (-32602, "Invalid params"));
        assert!(error.source().unwrap().to_string().contains("-1"));
        assert!(!error.is_internal());
    }
}
