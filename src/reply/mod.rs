//! A handler's result, written once into the bytes that leave.

mod members;
mod raw;
mod serializer;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use self::members::{Member, Place, Places};
use self::serializer::Object;
use self::value::Written;
use crate::mcp_error::McpError;
use crate::protocol::revision::Revision;
use crate::protocol::scan;
use crate::protocol::shape::{self, Edits, Hints};
use crate::protocol::sse::{self, Frame, RESULT_HEAD};

/// The result of a request: any JSON object.
///
/// The value is serialised at once, so a reply borrows nothing. It is written in the shape of the newest revision;
/// what 2026-07-28 asks of every result (`resultType`, the server's identity, cache hints) is added by the transport
/// where the handler has not set it.
///
/// The cache hints belong to lists and `resources/read`: `ttlMs`, in milliseconds, and `cacheScope`, `"public"` or
/// `"private"`. The transport adds 0 and `"private"`, so a handler whose lists may be kept says so:
///
/// ```
/// use mcp_transport::Reply;
/// use serde_json::json;
///
/// let reply = Reply::of(json!({ "tools": [], "ttlMs": 300_000, "cacheScope": "public" }))?;
/// # Ok::<(), mcp_transport::McpError>(())
/// ```
pub struct Reply {
    /// [`RESULT_HEAD`] and the result.
    buf: Vec<u8>,
    places: Places,
}

impl Reply {
    /// Writes a result: anything that serialises to a JSON object.
    ///
    /// # Errors
    ///
    /// An internal error where `value` is no object, cannot be serialised, or writes a member twice that the transport
    /// has to read (`resultType`, `_meta`, `ttlMs`, `cacheScope`).
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_transport::Reply;
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Tools {
    ///     tools: Vec<serde_json::Value>,
    /// }
    ///
    /// let reply = Reply::of(&Tools { tools: Vec::new() })?;
    /// # Ok::<(), mcp_transport::McpError>(())
    /// ```
    pub fn of(value: impl Serialize) -> Result<Self, McpError> {
        Self::write(&value).map_err(McpError::internal)
    }

    /// Writes the empty result, `{}`.
    ///
    /// # Errors
    ///
    /// None in fact; it returns what a handler returns.
    pub fn empty() -> Result<Self, McpError> {
        Self::of(serde_json::Map::new())
    }

    /// Serialises a result.
    pub(crate) fn write<T: Serialize + ?Sized>(value: &T) -> Result<Self, ReplyFault> {
        let mut buf = Vec::with_capacity(sse::SMALL);
        buf.extend_from_slice(RESULT_HEAD);
        let mut places = Places::default();
        value.serialize(Object::result(&mut buf, &mut places))?;
        if places.written() == Written::Copied && sse::to_one_line(&mut buf, RESULT_HEAD.len()) {
            places = Places::default();
            places.scan(&buf, Place { start: RESULT_HEAD.len(), end: buf.len() }, Member::OF_RESULT)?;
        }
        let reply = Self { buf, places };
        match reply.member(Member::ResultType) {
            Some(json) if text(json).is_none() => Err(ReplyFault::ResultTypeNotAString),
            _ => Ok(reply),
        }
    }

    /// The result as it stands.
    pub(crate) fn json(&self) -> &[u8] {
        self.buf.get(RESULT_HEAD.len()..).unwrap_or_default()
    }

    /// The `resultType`, if there is one: before [`stamp`](Self::stamp), the handler's own.
    pub(crate) fn result_type(&self) -> Option<Cow<'_, str>> {
        self.member(Member::ResultType).and_then(text)
    }

    /// Adds what 2026-07-28 asks of a result and the handler has not set.
    pub(crate) fn stamp(&mut self, stamp: &Stamp<'_>) {
        if let Some(server_info) = stamp.server_info {
            self.stamp_server_info(server_info);
        }
        if self.places.get(Member::ResultType).is_none() {
            self.add(self.buf.len(), Member::ResultType, b"\"complete\"");
        }
        self.stamp_cache(stamp.cache);
    }

    /// Gives the result the shape of a revision up to 2025-11-25.
    pub(crate) fn shape(&mut self, method: &str, revision: Revision) {
        let hinted = [Member::ResultType, Member::TtlMs, Member::CacheScope];
        let is_structured = self.member(Member::StructuredContent).is_some_and(|json| !json.starts_with(b"{"));
        let is_hinted = is_structured || hinted.into_iter().any(|member| self.places.get(member).is_some());
        let hints = if is_hinted { Hints::Some } else { Hints::None };
        self.edit(shape::result(method, revision, self.json(), hints));
    }

    /// Gives the questions of an `input_required` result the shape of a revision.
    pub(crate) fn shape_questions(&mut self, revision: Revision) {
        self.edit(shape::input_required(revision, self.json()));
    }

    fn edit(&mut self, edits: Edits) {
        if edits.is_empty() {
            return;
        }
        let mut buf = Vec::with_capacity(self.buf.len());
        buf.extend_from_slice(RESULT_HEAD);
        edits.apply(self.json(), &mut buf);
        let mut places = Places::default();
        let place = Place { start: RESULT_HEAD.len(), end: buf.len() };
        // JSON stays JSON.
        if places.scan(&buf, place, Member::OF_RESULT).is_ok() {
            *self = Self { buf, places };
        }
    }

    /// Writes the rest of the response around the result. `id` is the request's, as the client wrote it.
    pub(crate) fn finish(mut self, id: &[u8]) -> Frame {
        for part in [&b",\"jsonrpc\":\"2.0\",\"id\":"[..], id, b"}"] {
            self.buf.extend_from_slice(part);
        }
        Frame::seal(self.buf)
    }

    fn stamp_server_info(&mut self, server_info: &[u8]) {
        if self.places.get(Member::ServerInfo).is_some() {
            return;
        }
        if self.places.get(Member::Meta).is_none() {
            self.add(self.buf.len(), Member::Meta, b"{}");
        }
        if let Some(meta) = self.places.get(Member::Meta) {
            self.add(meta.end, Member::ServerInfo, server_info);
        }
    }

    fn stamp_cache(&mut self, rule: CacheRule) {
        let (keeps_ttl, keeps_scope) = match rule {
            CacheRule::None => return,
            CacheRule::Default => (
                self.member(Member::TtlMs).is_some_and(is_ttl),
                self.member(Member::CacheScope).is_some_and(is_cache_scope),
            ),
            CacheRule::Never => (false, false),
        };
        if self.result_type().is_some_and(|result_type| result_type != "complete") {
            return;
        }
        if !keeps_ttl {
            self.put(Member::TtlMs, b"0");
        }
        if !keeps_scope {
            self.put(Member::CacheScope, b"\"private\"");
        }
    }

    /// The JSON text of a member's value.
    fn member(&self, member: Member) -> Option<&[u8]> {
        self.places.get(member).map(|place| place.of(&self.buf))
    }

    /// Sets a member of the result, whether it is there or not.
    fn put(&mut self, member: Member, value: &[u8]) {
        match self.places.get(member) {
            Some(place) => self.replace(place, &[value]),
            None => self.add(self.buf.len(), member, value),
        }
    }

    /// Adds a member to the object whose closing brace is the last byte before `end`.
    fn add(&mut self, end: usize, member: Member, value: &[u8]) {
        let brace = end - 1;
        let is_first = self.buf.get(..brace).is_some_and(|before| before.trim_ascii_end().ends_with(b"{"));
        let comma: &[u8] = if is_first { b"" } else { b"," };
        let parts = [comma, b"\"", member.name().as_bytes(), b"\":", value];
        if end == self.buf.len() {
            // Nothing behind it has to make room.
            self.buf.truncate(brace);
            parts.into_iter().chain([&b"}"[..]]).for_each(|part| self.buf.extend_from_slice(part));
        } else {
            self.replace(Place { start: brace, end: brace }, &parts);
        }
        let start = brace + comma.len() + member.name().len() + b"\"\":".len();
        self.places.set(member, Place { start, end: start + value.len() });
    }

    /// Puts `parts` in the place of what stands `at`. Costs no buffer beside the reply's own.
    fn replace(&mut self, at: Place, parts: &[&[u8]]) {
        self.buf.drain(at.range());
        let len = self.buf.len();
        for part in parts {
            self.buf.extend_from_slice(part);
        }
        let added = self.buf.len() - len;
        if let Some(tail) = self.buf.get_mut(at.start..) {
            tail.rotate_right(added);
        }
        self.places.shift(at, added);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("len", &self.json().len())
            .field("result_type", &self.result_type())
            .finish_non_exhaustive()
    }
}

/// What a result gets in 2026-07-28.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp<'a> {
    /// The server's `Implementation` as JSON; `None` where the application has switched it off.
    pub(crate) server_info: Option<&'a [u8]>,
    pub(crate) cache: CacheRule,
}

/// What becomes of `ttlMs` and `cacheScope`. Results that are not complete keep theirs under any rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheRule {
    /// Nothing: the method's results cannot be cached.
    None,
    /// 0 and `private` where the handler has set nothing valid.
    Default,
    /// 0 and `private` whatever the handler has set.
    Never,
}

/// Why a value is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplyFault {
    #[error("a result is an object")]
    NotAnObject,
    #[error("the `_meta` of a result is an object")]
    MetaNotAnObject,
    #[error("the `resultType` of a result is a string")]
    ResultTypeNotAString,
    #[error("the result has the member `{0}` twice")]
    Twice(&'static str),
    #[error("the raw JSON of the result nests too deeply")]
    Raw(scan::Fault),
    #[error(transparent)]
    Serialize(#[from] serde_json::Error),
}

impl ReplyFault {
    /// The same fault, found in the value of `_meta`.
    fn in_meta(self) -> Self {
        match self {
            Self::NotAnObject => Self::MetaNotAnObject,
            other => other,
        }
    }
}

impl From<scan::Fault> for ReplyFault {
    fn from(fault: scan::Fault) -> Self {
        Self::Raw(fault)
    }
}

/// Whether the value of `ttlMs` is an integer of 0 or more, and written as one.
fn is_ttl(json: &[u8]) -> bool {
    serde_json::from_slice::<u64>(json).is_ok()
}

fn is_cache_scope(json: &[u8]) -> bool {
    text(json).is_some_and(|scope| scope == "public" || scope == "private")
}

/// The text of a JSON string.
fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    match serde_json::from_slice(json) {
        Ok(plain) => Some(Cow::Borrowed(plain)),
        Err(_) => serde_json::from_slice(json).ok().map(Cow::Owned),
    }
}
