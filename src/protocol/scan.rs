//! One pass over JSON text: is it JSON, is it too deep, and where are the members that the transport reads.
//!
//! The pass goes to the end of the text whatever it finds on the way, so that a syntax error behind a member of the
//! wrong type is still a syntax error. It copies nothing: members are remembered as [`Span`]s. Only the envelope,
//! `params` and `_meta` are entered by calls; whatever lies below them is passed over in a loop, so depth costs no
//! stack.
//!
//! Grammar is RFC 8259, no more and no less. UTF-8 is the caller's to check, before or after.

use std::ops::Range;

pub(crate) use self::grammar::plain_len;
use self::grammar::{MAX_NESTING, Scanner};
use super::names::meta;

#[cfg(feature = "state")]
pub(crate) mod canonical;
mod grammar;
pub(crate) mod inside;
#[cfg(test)]
mod tests;

/// A stretch of the scanned text. The default is the span of a member that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Self {
        // Longer texts are refused before they are scanned.
        let position = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: position(start), end: position(end) }
    }

    /// Whether the member is there at all.
    pub(crate) fn is_some(self) -> bool {
        self.end != 0
    }

    /// The text of the member, out of the text that was scanned.
    pub(crate) fn get(self, text: &[u8]) -> Option<&[u8]> {
        if self.is_some() { text.get(self.range()) } else { None }
    }

    /// The positions it covers; empty where the member is absent.
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The same stretch of a text that has `by` bytes more in front.
    #[must_use]
    pub(crate) fn offset(self, by: usize) -> Self {
        if self.is_some() { Self::new(self.start as usize + by, self.end as usize + by) } else { self }
    }
}

/// Why a text is not taken for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It breaks the grammar, or is 4 GiB long or longer.
    Syntax,
    /// Its containers nest deeper than allowed.
    Nesting,
}

/// What [`scan`] puts up with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    /// How many containers may be open at once, the outermost included; never more than 128.
    pub(crate) nesting: u32,
    /// How many elements of an array are kept. The rest are checked and counted.
    pub(crate) elements: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self { nesting: 128, elements: 100 }
    }
}

/// What a body turned out to be.
#[derive(Debug)]
pub(crate) enum Scanned {
    Object(Members),
    Array(Elements),
    /// A string, a number, a literal.
    Other,
}

/// The members of a JSON-RPC message that the transport reads, each as the span of its value.
///
/// Of a name that came twice, the last one counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Members {
    pub(crate) jsonrpc: Span,
    pub(crate) id: Span,
    pub(crate) method: Span,
    pub(crate) params: Span,
    pub(crate) result: Span,
    pub(crate) error: Span,

    // of `params`, where that is an object
    pub(crate) name: Span,
    pub(crate) uri: Span,
    pub(crate) task_id: Span,
    pub(crate) arguments: Span,
    pub(crate) meta: Span,
    pub(crate) input_responses: Span,
    pub(crate) request_state: Span,
    pub(crate) level: Span,
    pub(crate) cursor: Span,
    pub(crate) request_id: Span,

    // of `params._meta`, where that is an object
    pub(crate) version: Span,
    pub(crate) client_capabilities: Span,
    pub(crate) client_info: Span,
    pub(crate) log_level: Span,
    pub(crate) progress_token: Span,

    pub(crate) duplicate: Option<Duplicate>,
}

/// A name came twice that must not, because whoever reads the other copy sees another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicate {
    /// `id` itself, and perhaps others: there is no telling which id to answer.
    Id,
    /// One or more others.
    Member,
}

/// The elements of an array.
#[derive(Debug, Default)]
pub(crate) struct Elements {
    /// The first ones, as many as [`Caps::elements`] allows.
    pub(crate) kept: Vec<Element>,
    /// Whether any element, kept or not, claims a protocol version.
    pub(crate) claim: bool,
    len: usize,
}

impl Elements {
    /// How many elements the array has, kept or not.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// One element of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    /// Where it stands in the text.
    pub(crate) span: Span,
    /// Its members, their spans counted from the start of the element; `None` where it is no object.
    pub(crate) members: Option<Members>,
}

/// What [`members`] saw besides the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Whether the value is an object.
    pub(crate) is_object: bool,
    /// Whether a raw CR or LF stands anywhere outside the tokens, at any depth.
    pub(crate) has_line_break: bool,
}

/// Scans the body of a message. A byte order mark in front is skipped.
pub(crate) fn scan(text: &[u8], caps: Caps) -> Result<Scanned, Fault> {
    let mut scanner = Scanner::new(text, caps.nesting)?;
    if text.starts_with(b"\xef\xbb\xbf") {
        scanner.at = 3;
    }
    scanner.white_space();
    let scanned = match scanner.peek() {
        b'{' => {
            let mut members = Members::default();
            scanner.message(&mut members)?;
            Scanned::Object(members)
        }
        b'[' => Scanned::Array(scanner.elements(caps.elements)?),
        _ => {
            scanner.value()?;
            Scanned::Other
        }
    };
    scanner.end()?;
    Ok(scanned)
}

/// Walks the top-level members of one JSON value, calling `visit` with each key and the span of its value.
///
/// An escaped key is unescaped where it is short and ASCII; any other is given as it is written, backslashes
/// included, and so equals no name of the protocol. Members that came before a fault have been visited.
pub(crate) fn members(object: &[u8], mut visit: impl FnMut(&[u8], Span)) -> Result<Walk, Fault> {
    let mut scanner = Scanner::new(object, MAX_NESTING)?;
    scanner.white_space();
    let is_object = scanner.peek() == b'{';
    if is_object {
        scanner.object(|scanner, key| {
            let value = scanner.value()?;
            visit(key, value);
            Ok(())
        })?;
    } else {
        scanner.value()?;
    }
    scanner.end()?;
    Ok(Walk { is_object, has_line_break: scanner.line_break })
}

impl Scanner<'_> {
    /// At `[`: the elements of the outermost array.
    fn elements(&mut self, cap: usize) -> Result<Elements, Fault> {
        let mut elements = Elements::default();
        self.enter()?;
        self.white_space();
        if self.peek() == b']' {
            self.leave();
            return Ok(elements);
        }
        loop {
            self.white_space();
            let element = self.element()?;
            elements.claim |= element.members.is_some_and(|members| members.version.is_some());
            if elements.kept.len() < cap {
                elements.kept.push(element);
            }
            elements.len += 1;
            self.white_space();
            match self.peek() {
                b',' => self.at += 1,
                b']' => break,
                _ => return Err(Fault::Syntax),
            }
        }
        self.leave();
        Ok(elements)
    }

    fn element(&mut self) -> Result<Element, Fault> {
        if self.peek() != b'{' {
            return Ok(Element { span: self.value()?, members: None });
        }
        self.base = self.at;
        let mut members = Members::default();
        let span = self.message(&mut members)?;
        let span = span.offset(self.base);
        self.base = 0;
        Ok(Element { span, members: Some(members) })
    }

    /// At `{`: a message.
    fn message(&mut self, m: &mut Members) -> Result<Span, Fault> {
        self.object(|scanner, key| match key {
            b"jsonrpc" => scanner.once(&mut m.jsonrpc, &mut m.duplicate),
            b"id" => {
                if m.id.is_some() {
                    m.duplicate = Some(Duplicate::Id);
                }
                scanner.last(&mut m.id)
            }
            b"method" => scanner.once(&mut m.method, &mut m.duplicate),
            b"params" => {
                if m.params.is_some() {
                    m.duplicate.get_or_insert(Duplicate::Member);
                }
                m.params = scanner.params(m)?;
                Ok(())
            }
            b"result" => scanner.last(&mut m.result),
            b"error" => scanner.last(&mut m.error),
            _ => scanner.value().map(drop),
        })
    }

    fn params(&mut self, m: &mut Members) -> Result<Span, Fault> {
        if self.peek() != b'{' {
            return self.value();
        }
        self.object(|scanner, key| match key {
            b"_meta" => {
                if m.meta.is_some() {
                    m.duplicate.get_or_insert(Duplicate::Member);
                }
                m.meta = scanner.meta(m)?;
                Ok(())
            }
            b"name" => scanner.once(&mut m.name, &mut m.duplicate),
            b"uri" => scanner.once(&mut m.uri, &mut m.duplicate),
            b"taskId" => scanner.once(&mut m.task_id, &mut m.duplicate),
            b"arguments" => scanner.once(&mut m.arguments, &mut m.duplicate),
            b"inputResponses" => scanner.once(&mut m.input_responses, &mut m.duplicate),
            b"requestState" => scanner.once(&mut m.request_state, &mut m.duplicate),
            b"level" => scanner.last(&mut m.level),
            b"cursor" => scanner.last(&mut m.cursor),
            b"requestId" => scanner.last(&mut m.request_id),
            _ => scanner.value().map(drop),
        })
    }

    fn meta(&mut self, m: &mut Members) -> Result<Span, Fault> {
        const CLIENT_CAPABILITIES: &[u8] = meta::CLIENT_CAPABILITIES.as_bytes();
        const CLIENT_INFO: &[u8] = meta::CLIENT_INFO.as_bytes();
        const LOG_LEVEL: &[u8] = meta::LOG_LEVEL.as_bytes();
        const PROGRESS_TOKEN: &[u8] = meta::PROGRESS_TOKEN.as_bytes();
        const PROTOCOL_VERSION: &[u8] = meta::PROTOCOL_VERSION.as_bytes();

        if self.peek() != b'{' {
            return self.value();
        }
        self.object(|scanner, key| match key {
            PROTOCOL_VERSION => scanner.once(&mut m.version, &mut m.duplicate),
            CLIENT_CAPABILITIES => scanner.last(&mut m.client_capabilities),
            CLIENT_INFO => scanner.last(&mut m.client_info),
            LOG_LEVEL => scanner.last(&mut m.log_level),
            PROGRESS_TOKEN => scanner.last(&mut m.progress_token),
            _ => scanner.value().map(drop),
        })
    }

    /// The value of a member that must not come twice.
    fn once(&mut self, slot: &mut Span, duplicate: &mut Option<Duplicate>) -> Result<(), Fault> {
        if slot.is_some() {
            duplicate.get_or_insert(Duplicate::Member);
        }
        self.last(slot)
    }

    /// The value of a member of which the last one counts.
    fn last(&mut self, slot: &mut Span) -> Result<(), Fault> {
        *slot = self.value()?;
        Ok(())
    }
}
