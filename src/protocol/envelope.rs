//! What a body says: one message or an array of them, each a request, a notification or a response.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use super::names::method;
use super::scan::{self, Caps, Duplicate, Element, Fault, Members, Scanned, Span};

#[cfg(test)]
mod tests;

/// Reads a body. A byte order mark in front is skipped.
pub(crate) fn read(bytes: Bytes, caps: Caps) -> Result<Body, BodyFault> {
    if std::str::from_utf8(&bytes).is_err() {
        return Err(BodyFault::unread(BodyFaultKind::NotUtf8));
    }
    match scan::scan(&bytes, caps) {
        Ok(Scanned::Object(members)) => Message::judge(bytes, members).map(Body::Message),
        Ok(Scanned::Array(elements)) => Ok(Body::Batch(Batch::new(&bytes, &elements))),
        Ok(Scanned::Other) => Err(BodyFault::unread(BodyFaultKind::NotAnObject)),
        Err(Fault::Syntax) => Err(BodyFault::unread(BodyFaultKind::Syntax)),
        Err(Fault::Nesting) => Err(BodyFault::unread(BodyFaultKind::Nesting)),
    }
}

/// A body that is JSON, and a message or an array.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // nearly every body is a message, and a box would be an allocation
pub(crate) enum Body {
    Message(Message),
    Batch(Batch),
}

impl Body {
    /// The id that a refusal of the body carries: a request's. That of a response is one of ours, and an error with it
    /// would answer a request nobody made.
    pub(crate) fn request_id(&self) -> Option<RequestId> {
        match self {
            Self::Message(message) if message.kind == Kind::Request => message.id(),
            Self::Message(_) | Self::Batch(_) => None,
        }
    }

    /// Whether all it can do is to bring what is under way to its end.
    pub(crate) fn settles(&self) -> bool {
        match self {
            Self::Message(message) => message.settles(),
            Self::Batch(batch) => {
                let settles = |element: &Result<Message, BodyFault>| element.as_ref().is_ok_and(Message::settles);
                !batch.is_empty() && batch.elements.len() == batch.len && batch.elements.iter().all(settles)
            }
        }
    }
}

/// One well-formed JSON-RPC message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Its text, and nothing but white space or a byte order mark around it.
    pub(crate) bytes: Bytes,
    /// Where in `bytes` its members are.
    pub(crate) members: Members,
    pub(crate) kind: Kind,
    method: Word,
    name: Word,
    uri: Word,
}

/// A string of the message that is read often: unescaped once, where it needs to be.
#[derive(Clone, Debug)]
enum Word {
    /// There is none, or it is no text.
    None,
    /// As it stands in the message.
    Plain,
    /// One of the protocol's own.
    Known(&'static str),
    Unescaped(Box<str>),
}

/// What a message is: one with a `method` asks, with an `id` for an answer; one without is an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Notification,
    Response,
}

impl Message {
    fn judge(bytes: Bytes, members: Members) -> Result<Self, BodyFault> {
        let kind = Kind::of(&members);
        let mut message = Self { bytes, members, kind, method: Word::None, name: Word::None, uri: Word::None };
        let judged = match kind {
            _ if members.duplicate.is_some() => Err(BodyFaultKind::Duplicate),
            _ if !message.is_2_0() => Err(BodyFaultKind::Jsonrpc),
            Kind::Request | Kind::Notification => message.judge_request(),
            Kind::Response => message.judge_response(),
        };
        match judged {
            Ok(()) => Ok(message),
            Err(fault) => Err(BodyFault { kind: fault, id: message.id(), meant: message.meant() }),
        }
    }

    /// What a broken message was meant to be. One that neither asks nor answers may have been either.
    fn meant(&self) -> Option<Kind> {
        let answers = self.members.result.is_some() || self.members.error.is_some();
        Some(self.kind).filter(|kind| *kind != Kind::Response || answers)
    }

    /// Whether `jsonrpc` says what it must.
    fn is_2_0(&self) -> bool {
        let jsonrpc = self.members.jsonrpc;
        self.raw(jsonrpc) == Some(b"\"2.0\"") || self.text(jsonrpc).as_deref() == Some("2.0")
    }

    fn judge_request(&mut self) -> Result<(), BodyFaultKind> {
        let method = self.members.method;
        self.method = match self.raw(method).and_then(unquoted).and_then(method::known) {
            Some(known) => Word::Known(known),
            None => match self.word(method) {
                Word::None => return Err(BodyFaultKind::Method),
                word => word,
            },
        };
        self.name = self.word(self.members.name);
        self.uri = self.word(self.members.uri);
        if self.params().is_some_and(|params| !params.starts_with(b"{")) {
            return Err(BodyFaultKind::Params);
        }
        if self.kind == Kind::Request && !self.has_id() {
            return Err(BodyFaultKind::Id);
        }
        Ok(())
    }

    fn judge_response(&self) -> Result<(), BodyFaultKind> {
        match (self.members.result.is_some(), self.members.error.is_some()) {
            (true, false) if self.has_id() => Ok(()),
            // an error may answer a message whose id its author could not read
            (false, true) if matches!(self.raw_id(), None | Some(b"null")) || self.has_id() => Ok(()),
            (true, true) | (false, false) => Err(BodyFaultKind::Response),
            (true, false) | (false, true) => Err(BodyFaultKind::Id),
        }
    }

    /// Whether it is an answer or a cancellation.
    pub(crate) fn settles(&self) -> bool {
        match self.kind {
            Kind::Response => true,
            Kind::Notification => self.method() == method::CANCELLED,
            Kind::Request => false,
        }
    }

    /// The id, where there is one, it is legal and it is not doubled.
    pub(crate) fn id(&self) -> Option<RequestId> {
        self.has_id().then(|| RequestId(self.bytes.slice(self.members.id.range())))
    }

    /// Whether there is an [`id`](Self::id), without sharing the bytes: the first to do so may have to allocate.
    fn has_id(&self) -> bool {
        self.raw_id().is_some_and(is_legal_id) && self.members.duplicate != Some(Duplicate::Id)
    }

    /// The text of the `id` member, whatever it is.
    pub(crate) fn raw_id(&self) -> Option<&[u8]> {
        self.raw(self.members.id)
    }

    /// The method; empty for a response.
    pub(crate) fn method(&self) -> &str {
        self.read(&self.method, self.members.method).unwrap_or_default()
    }

    /// `params.name`, where it is a string.
    pub(crate) fn name(&self) -> Option<&str> {
        self.read(&self.name, self.members.name)
    }

    /// `params.uri`, where it is a string.
    pub(crate) fn uri(&self) -> Option<&str> {
        self.read(&self.uri, self.members.uri)
    }

    /// `params.taskId`, where it is a string.
    pub(crate) fn task_id(&self) -> Option<Cow<'_, str>> {
        self.text(self.members.task_id)
    }

    /// The text of `params`, which is an object in a request and a notification.
    pub(crate) fn params(&self) -> Option<&[u8]> {
        self.raw(self.members.params)
    }

    /// The text of the `result` of a response.
    pub(crate) fn result(&self) -> Option<&[u8]> {
        self.raw(self.members.result)
    }

    /// The text of the `error` of a response.
    pub(crate) fn error(&self) -> Option<&[u8]> {
        self.raw(self.members.error)
    }

    /// The text of `params.arguments`, of whatever type.
    pub(crate) fn arguments(&self) -> Option<&[u8]> {
        self.raw(self.members.arguments)
    }

    /// `params.requestId`: the request that a cancellation speaks of.
    pub(crate) fn cancelled_id(&self) -> Option<RequestId> {
        let id = self.members.request_id;
        self.raw(id).filter(|text| is_legal_id(text)).map(|_| RequestId(self.bytes.slice(id.range())))
    }

    /// The text of `params.cursor`, of whatever type.
    pub(crate) fn cursor(&self) -> Option<&[u8]> {
        self.raw(self.members.cursor)
    }

    /// The text of `params.inputResponses`, of whatever type.
    pub(crate) fn input_responses(&self) -> Option<&[u8]> {
        self.raw(self.members.input_responses)
    }

    /// The text of `params.requestState`, of whatever type.
    pub(crate) fn request_state(&self) -> Option<&[u8]> {
        self.raw(self.members.request_state)
    }

    /// Whether `params._meta` claims a protocol version, in whatever way.
    pub(crate) fn has_claim(&self) -> bool {
        self.members.version.is_some()
    }

    /// The protocol version that `params._meta` claims.
    pub(crate) fn claim(&self) -> Claim<'_> {
        match self.text(self.members.version) {
            Some(version) => Claim::Text(version),
            None if self.members.version.is_some() => Claim::NotText,
            None => Claim::Absent,
        }
    }

    /// The text of the client's capabilities in `params._meta`, of whatever type.
    pub(crate) fn client_capabilities(&self) -> Option<&[u8]> {
        self.raw(self.members.client_capabilities)
    }

    /// The text of the client's name and version in `params._meta`, of whatever type.
    pub(crate) fn client_info(&self) -> Option<&[u8]> {
        self.raw(self.members.client_info)
    }

    /// The text of the log level in `params._meta`, of whatever type.
    pub(crate) fn log_level(&self) -> Option<&[u8]> {
        self.raw(self.members.log_level)
    }

    /// The text of `params._meta.progressToken`. One of another type than a token has counts as none.
    pub(crate) fn progress_token(&self) -> Option<&[u8]> {
        self.raw(self.members.progress_token).filter(|token| is_legal_id(token))
    }

    fn raw(&self, member: Span) -> Option<&[u8]> {
        member.get(&self.bytes)
    }

    fn word(&self, member: Span) -> Word {
        match self.text(member) {
            None => Word::None,
            Some(Cow::Borrowed(_)) => Word::Plain,
            Some(Cow::Owned(text)) => Word::Unescaped(text.into()),
        }
    }

    fn read<'a>(&'a self, word: &'a Word, member: Span) -> Option<&'a str> {
        match word {
            Word::None => None,
            Word::Plain => Some(self.plain(member)),
            Word::Known(text) => Some(text),
            Word::Unescaped(text) => Some(text),
        }
    }

    /// A string that is written without escapes.
    fn plain(&self, member: Span) -> &str {
        self.raw(member).and_then(plain).unwrap_or_default()
    }

    fn text(&self, member: Span) -> Option<Cow<'_, str>> {
        self.raw(member).and_then(text)
    }
}

impl Kind {
    fn of(members: &Members) -> Self {
        match (members.method.is_some(), members.id.is_some()) {
            (true, true) => Self::Request,
            (true, false) => Self::Notification,
            (false, _) => Self::Response,
        }
    }
}

/// What a message says about its protocol version. Any claim at all makes it a modern one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim<'a> {
    Absent,
    /// Something that is no string.
    NotText,
    Text(Cow<'a, str>),
}

/// An array: a batch of 2025-03-26, or a mistake.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The first elements in their order, as many as were to be kept.
    pub(crate) elements: Vec<Result<Message, BodyFault>>,
    /// How many elements the array has, kept or not.
    pub(crate) len: usize,
    claims_modern: bool,
}

impl Batch {
    fn new(bytes: &Bytes, elements: &scan::Elements) -> Self {
        let judge = |element: &Element| match element.members {
            Some(members) => Message::judge(bytes.slice(element.span.range()), members),
            None => Err(BodyFault::unread(BodyFaultKind::NotAnObject)),
        };
        Self { claims_modern: elements.claim, elements: elements.kept.iter().map(judge).collect(), len: elements.len() }
    }

    /// Whether the array has no elements, kept or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether any of the elements, kept or not, well formed or not, claims a protocol version.
    pub(crate) fn claims_modern(&self) -> bool {
        self.claims_modern
    }
}

/// Why a body, or an element of an array, is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyFault {
    pub(crate) kind: BodyFaultKind,
    /// The id to answer with, where one can be read.
    pub(crate) id: Option<RequestId>,
    /// What the object was meant to be: not all that is broken may be answered. `None` where it is no object,
    /// or one that neither asks nor answers.
    pub(crate) meant: Option<Kind>,
}

impl BodyFault {
    /// A fault in a text that has no members to look at.
    fn unread(kind: BodyFaultKind) -> Self {
        Self { kind, id: None, meant: None }
    }
}

/// The first thing wrong with a body, in the order in which they are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFaultKind {
    NotUtf8,
    Syntax,
    /// Containers nest too deep.
    Nesting,
    /// Neither an object nor an array; in an array, no object.
    NotAnObject,
    /// A name came twice that must not.
    Duplicate,
    /// `jsonrpc` is not the string `"2.0"`.
    Jsonrpc,
    /// `method` is no string, or one that is no Unicode text.
    Method,
    /// `params` is no object.
    Params,
    /// `id` is neither a string nor an integer.
    Id,
    /// No `method`, and not exactly one of `result` and `error`.
    Response,
}

/// The id of a JSON-RPC request, as the exact JSON text the client wrote.
///
/// A string keeps its quotes and escapes, and a number every digit: `"1"` is not `1`, `1.0` is not `1`, and
/// `12345678901234567890123` is not rounded. Two ids are equal where their texts are.
///
/// It shares the memory of the message it came with, so a clone is cheap and keeps that message's text alive.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Bytes);

impl RequestId {
    /// Returns the JSON text of the id.
    pub fn as_str(&self) -> &str {
        // Part of a body that was checked as a whole, from one ASCII byte to another
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl RequestId {
    /// The id of a message that has one.
    pub(crate) fn of(message: &Message) -> Self {
        message.id().unwrap_or_else(|| Self(Bytes::new()))
    }

    /// One text for all ways to write the same id.
    pub(crate) fn canonical(&self) -> String {
        let text = self.as_str();
        match serde_json::from_str::<String>(text) {
            Ok(string) => format!("\"{string}"),
            Err(_) => match text.strip_suffix(".0").unwrap_or(text) {
                "-0" => "0".to_owned(),
                integer => integer.to_owned(),
            },
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({})", self.as_str())
    }
}

/// Writes the JSON text of the id.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a JSON value is a string or an integer: `-?(0|[1-9][0-9]*)`, or that with `.0`.
///
/// The specification allows integers and strings; some clients write their integers as floats.
fn is_legal_id(json: &[u8]) -> bool {
    if json.starts_with(b"\"") {
        return true;
    }
    // valid JSON: no leading zeros, and digits are all that is left to make sure of
    let integer = json.strip_suffix(b".0").unwrap_or(json);
    let digits = integer.strip_prefix(b"-").unwrap_or(integer);
    digits.iter().all(u8::is_ascii_digit)
}

/// The text of a JSON string; `None` for another value, and for a string with half a surrogate pair, which is no text.
pub(crate) fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    if json.contains(&b'\\') {
        serde_json::from_slice(json).ok().map(Cow::Owned)
    } else {
        plain(json).map(Cow::Borrowed)
    }
}

/// What stands between the quotes of a JSON string that is written without escapes.
fn plain(json: &[u8]) -> Option<&str> {
    std::str::from_utf8(unquoted(json)?).ok()
}

/// What stands between the quotes of a JSON string.
fn unquoted(json: &[u8]) -> Option<&[u8]> {
    json.strip_prefix(b"\"")?.strip_suffix(b"\"")
}
