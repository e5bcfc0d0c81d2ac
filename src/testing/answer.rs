//! What came back.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode, response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::Value;

use super::events::Events;
use super::fail;

/// The body of a response, whatever its type was; what it fails with is only shown.
pub(super) type Incoming = UnsyncBoxBody<Bytes, String>;

/// A whole answer.
///
/// JSON or an event stream: here it makes no difference.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// Every JSON-RPC message in the order in which it came. The response, where there is one, is the last; a batch has
    /// one for each request, in any order.
    pub messages: Vec<Value>,
    /// The body, where it was no JSON-RPC.
    text: String,
    /// Whether its stream was one that can be resumed.
    pub(super) is_resumable: bool,
}

impl Answer {
    /// Returns the JSON-RPC response, be it a result or an error.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[track_caller]
    pub fn response(&self) -> &Value {
        match self.messages.last() {
            Some(message) if is_response(message) => message,
            _ => fail(format_args!("no response in {self}")),
        }
    }

    /// Returns the `result` of the response.
    ///
    /// # Panics
    ///
    /// If the response is an error, or there is none.
    #[track_caller]
    pub fn result(&self) -> &Value {
        match self.response().get("result") {
            Some(result) => result,
            None => fail(format_args!("no result in {self}")),
        }
    }

    /// Returns the `error` of the response.
    ///
    /// # Panics
    ///
    /// If the response is a result, or there is none.
    #[track_caller]
    pub fn error(&self) -> &Value {
        match self.response().get("error") {
            Some(error) => error,
            None => fail(format_args!("no error in {self}")),
        }
    }

    /// Returns what came before the last response: progress, logs and notifications of the application's own, and in
    /// the answer to a batch the other responses.
    pub fn notifications(&self) -> &[Value] {
        match self.messages.split_last() {
            Some((last, before)) if is_response(last) => before,
            _ => &self.messages,
        }
    }
}

/// Writes status and messages, for the message of a failed test.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an answer with status {}", self.status)?;
        for message in &self.messages {
            write!(f, "\n{message}")?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(f, " and the body {:?}", self.text) }
    }
}

/// A response has no `method`.
fn is_response(message: &Value) -> bool {
    message.get("method").is_none()
}

/// An answer that is read message by message. Dropping it before its end is what a client does that leaves.
///
/// ```
/// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
/// # use mcp_transport::{StreamableHttpService};
/// # struct Ticker;
/// # impl McpHandler for Ticker {
/// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("ticker", "1") }
/// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
/// #     async fn request(&self, _: Request, cx: RequestContext) -> Result<Reply, McpError> {
/// #         loop { cx.notify("notifications/tick", json!({})).await?; }
/// #     }
/// # }
/// use mcp_transport::Revision;
/// use mcp_transport::testing::Client;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let service = StreamableHttpService::new(Ticker);
/// let client = Client::new(service.clone());
/// let mut stream = client.call(Revision::V2026_07_28, "ticker/watch", ()).stream().await;
/// assert_eq!(stream.next().await.unwrap()["method"], "notifications/tick");
///
/// drop(stream);
/// # tokio::task::yield_now().await;
/// assert_eq!(service.counts().in_flight, 0);
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct AnswerStream {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    reading: Reading,
    messages: VecDeque<Value>,
}

/// How the body is read.
#[derive(Debug)]
enum Reading {
    /// As an event stream.
    Events(Events),
    /// As one piece of JSON, or whatever else it is.
    Text(Vec<u8>),
}

impl AnswerStream {
    pub(super) fn new(response: http::Response<Incoming>) -> Self {
        let (response::Parts { status, headers, .. }, body) = response.into_parts();
        let is_stream = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let reading = if is_stream { Reading::Events(Events::default()) } else { Reading::Text(Vec::new()) };
        Self { status, headers, body, reading, messages: VecDeque::new() }
    }

    /// Waits for the next JSON-RPC message. `None` at the end of the answer.
    ///
    /// # Panics
    ///
    /// If the answer breaks off, or an event holds no JSON.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if dropped while waiting, no message is lost.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let Some(frame) = self.body.frame().await else {
                self.end();
                return self.messages.pop_front();
            };
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(data)) => self.read(&data),
                Ok(Err(_trailers)) => {}
                Err(error) => fail(format_args!("the answer broke off: {error}")),
            }
        }
    }

    /// Returns the id of the last event that had one: what a client sends as `Last-Event-ID` when it comes back for the
    /// rest (up to 2025-11-25, with an [`EventStore`](crate::EventStore)).
    pub fn last_event_id(&self) -> Option<&str> {
        match &self.reading {
            Reading::Events(events) => events.last_id(),
            Reading::Text(_) => None,
        }
    }

    /// Reads the rest.
    ///
    /// # Panics
    ///
    /// As [`next`](Self::next).
    pub async fn finish(mut self) -> Answer {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        let (text, is_resumable) = match &self.reading {
            Reading::Events(events) => (String::new(), events.is_resumable()),
            Reading::Text(bytes) => (String::from_utf8_lossy(bytes).into_owned(), false),
        };
        Answer { status: self.status, headers: self.headers, messages, text, is_resumable }
    }

    fn read(&mut self, data: &[u8]) {
        match &mut self.reading {
            Reading::Events(events) => {
                // One without data is there for its id alone.
                for event in events.read(data).into_iter().filter(|event| !event.is_empty()) {
                    match serde_json::from_str(&event) {
                        Ok(message) => self.messages.push_back(message),
                        Err(error) => fail(format_args!("an event that is no JSON ({error}): {event}")),
                    }
                }
            }
            Reading::Text(text) => text.extend_from_slice(data),
        }
    }

    /// Takes the body for JSON-RPC if it is any: a layer in front may answer with anything.
    fn end(&mut self) {
        let Reading::Text(text) = &mut self.reading else {
            return;
        };
        let messages = match serde_json::from_slice(text) {
            Ok(Value::Array(batch)) => batch,
            Ok(message) if message.get("jsonrpc").is_some() => vec![message],
            _ => return,
        };
        text.clear();
        self.messages.extend(messages);
    }
}
