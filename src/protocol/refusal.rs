//! What the transport answers when it answers before a handler ran.

mod kind;

use std::borrow::Cow;
use std::fmt;

use http::HeaderValue;
use serde::Serialize;

pub use self::kind::{RefusalKind, Rung};
use super::envelope::{BodyFault, BodyFaultKind, RequestId};
use super::ground::{Ground, Rule};
use super::mirror::MirrorFault;
use super::revision::{Era, Revision, Revisions};

/// An answer the transport gave before a handler ran.
///
/// An [`Observer`](crate::Observer) hears of each. The message is what the client reads: it names the header or member
/// that has to change, where one is at fault, and never repeats what the client sent. Nor does anything else here but
/// the [id](Self::id).
///
/// What the client is not told stands in [`subject`](Self::subject), [`expected`](Self::expected) and
/// [`rule`](Self::rule); [`explain`](Self::explain) makes a sentence of it for the log.
#[derive(Debug)]
pub struct Refusal {
    kind: RefusalKind,
    ground: Ground,
    message: Cow<'static, str>,
    detail: Option<Box<Detail>>,
    id: Option<RequestId>,
}

/// What some refusals carry besides.
#[derive(Debug)]
enum Detail {
    /// The header at fault, where its name is the tool's.
    Header(Box<str>),
    /// `data`.
    Versions(Versions),
    /// `WWW-Authenticate`.
    Challenge(HeaderValue),
}

/// `data` of an unsupported version.
#[derive(Debug, Serialize)]
struct Versions {
    supported: Vec<&'static str>,
    requested: String,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind) -> Self {
        let message = Cow::Borrowed(kind.row().message);
        Self { kind, ground: Ground::of(kind), message, detail: None, id: None }
    }

    /// With a message that says more than the table's.
    pub(crate) fn because(kind: RefusalKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), ..Self::new(kind) }
    }

    /// About something else than its kind mostly is.
    #[must_use]
    pub(crate) fn on(mut self, ground: Ground) -> Self {
        self.ground = ground;
        self
    }

    /// The version asked for is not served; the versions of `era` are.
    pub(crate) fn unsupported(served: Revisions, era: Era, requested: &str) -> Self {
        let supported = served.of(era).map(Revision::as_str).collect();
        let requested = requested.chars().filter(char::is_ascii_graphic).take(64).collect();
        let ground = match era {
            Era::Modern => Ground::VersionServed,
            Era::Legacy => Ground::VersionServedLegacy,
        };
        let versions = Detail::Versions(Versions { supported, requested });
        Self::new(RefusalKind::UnsupportedVersion).on(ground).with_detail(versions)
    }

    fn with_detail(self, detail: Detail) -> Self {
        Self { detail: Some(Box::new(detail)), ..self }
    }

    /// With what to do about it, by HTTP.
    #[must_use]
    pub(crate) fn with_challenge(self, challenge: HeaderValue) -> Self {
        self.with_detail(Detail::Challenge(challenge))
    }

    /// With the id of the request. A drain turns away all there is, read or not, in the same words.
    #[must_use]
    pub(crate) fn with_id(mut self, id: Option<RequestId>) -> Self {
        self.id = id.filter(|_| self.kind != RefusalKind::Draining);
        self
    }

    /// Returns why.
    pub const fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// Returns what the client is told.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the header or the member that is at fault, as the specification spells it: `Mcp-Method`,
    /// `params._meta["io.modelcontextprotocol/logLevel"]`. `None` where it is none of them, or all.
    ///
    /// There are few of them, but for the `Mcp-Param-*` headers that your own tools declare.
    pub fn subject(&self) -> Option<&str> {
        match self.detail.as_deref() {
            Some(Detail::Header(header)) => Some(header),
            _ => self.ground.row().subject,
        }
    }

    /// Returns what was expected there.
    pub const fn expected(&self) -> &'static str {
        self.ground.row().expected
    }

    /// Returns whose rule it is.
    pub const fn rule(&self) -> Rule {
        self.ground.row().rule
    }

    /// Says all of it in one line, for the log of whoever wants to know why a client was refused:
    ///
    /// ```text
    /// refused at Era: Header mismatch: Mcp-Name is missing (-32020, HTTP 400); expected of Mcp-Name: params.name of
    /// tools/call and prompts/get, … (2026-07-28, Streamable HTTP: Standard Request Headers)
    /// ```
    ///
    /// Nothing that the client sent stands in it.
    pub fn explain(&self) -> impl fmt::Display + '_ {
        Explanation(self)
    }

    /// Returns the id of the refused request, where one could be read.
    pub const fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// `error.data` as JSON.
    pub(crate) fn data(&self) -> Option<Box<serde_json::value::RawValue>> {
        match self.detail.as_deref()? {
            Detail::Versions(versions) => serde_json::value::to_raw_value(versions).ok(),
            Detail::Header(_) | Detail::Challenge(_) => None,
        }
    }

    /// `WWW-Authenticate`.
    pub(crate) fn challenge(&self) -> Option<&HeaderValue> {
        match self.detail.as_deref()? {
            Detail::Challenge(challenge) => Some(challenge),
            Detail::Header(_) | Detail::Versions(_) => None,
        }
    }
}

impl From<BodyFault> for Refusal {
    fn from(fault: BodyFault) -> Self {
        let ground = Ground::from(fault.kind);
        let shape = |message| Self::because(RefusalKind::Shape, message);
        let refusal = match fault.kind {
            BodyFaultKind::NotUtf8 | BodyFaultKind::Syntax => Self::new(RefusalKind::Syntax),
            BodyFaultKind::Nesting => Self::new(RefusalKind::Nesting),
            BodyFaultKind::NotAnObject => shape("A JSON-RPC message is an object"),
            BodyFaultKind::Duplicate => shape("A member of the message came twice"),
            BodyFaultKind::Jsonrpc => shape("`jsonrpc` must be the string \"2.0\""),
            BodyFaultKind::Method => shape("`method` must be a string"),
            BodyFaultKind::Params => shape("`params` must be an object"),
            BodyFaultKind::Id => shape("`id` must be a string or an integer"),
            BodyFaultKind::Response => shape("A message has a `method`, or else exactly one of `result` and `error`"),
        };
        refusal.on(ground).with_id(fault.id)
    }
}

impl From<MirrorFault> for Refusal {
    fn from(fault: MirrorFault) -> Self {
        let refusal = Self::because(RefusalKind::HeaderMismatch, fault.to_string());
        match fault.header {
            Cow::Borrowed("Mcp-Method") => refusal.on(Ground::MirroredMethod),
            Cow::Borrowed(_) => refusal.on(Ground::MirroredName),
            // Only those of a tool's schema have a name that is not ours.
            Cow::Owned(header) => refusal.on(Ground::MirroredParameter).with_detail(Detail::Header(header.into())),
        }
    }
}

/// Writes all that is known of a refusal.
struct Explanation<'a>(&'a Refusal);

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusal = self.0;
        write!(f, "refused at {:?}: {refusal}; expected", refusal.kind.rung())?;
        if let Some(subject) = refusal.subject() {
            write!(f, " of {subject}")?;
        }
        write!(f, ": {} ({})", refusal.expected(), refusal.rule())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, HTTP {})", self.message, self.kind.code(), self.kind.status().as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::mirror::MirrorFaultKind;

    #[test]
    fn an_explanation_names_rung_subject_expectation_and_rule() {
        let missing = MirrorFault::new("Mcp-Name", MirrorFaultKind::Missing);
        let parameter = MirrorFault::new("Mcp-Param-Region".to_owned(), MirrorFaultKind::Different);
        let too_large = Refusal::new(RefusalKind::BodyTooLarge);
        for (refusal, explanation) in [
            (
                missing.into(),
                "refused at Era: Header mismatch: Mcp-Name is missing (-32020, HTTP 400); expected of Mcp-Name: \
                 params.name of tools/call and prompts/get, params.uri of resources/read, once, as it is or \
                 Base64-encoded (2026-07-28, Streamable HTTP: Standard Request Headers)",
            ),
            (
                parameter.into(),
                "refused at Era: Header mismatch: Mcp-Param-Region differs from the body (-32020, HTTP 400); expected of \
                 Mcp-Param-Region: the argument that the tool's inputSchema mirrors into it, once, as it is or \
                 Base64-encoded (2026-07-28, Streamable HTTP: Server Behavior for Custom Headers)",
            ),
            (
                too_large,
                "refused at Body: Request body too large (-32600, HTTP 413); expected: a body of at most \
                 Limits::body_bytes (Limits::body_bytes)",
            ),
        ] {
            assert_eq!(refusal.explain().to_string(), explanation);
        }
    }

    #[test]
    fn requested_is_cut_to_64_visible_ascii_characters() {
        let long = format!("v\n\u{e9} {}", "9".repeat(100));
        let refusal = Refusal::unsupported(Revisions::all(), Era::Modern, &long);
        let data: serde_json::Value = serde_json::from_str(refusal.data().unwrap().get()).unwrap();
        assert_eq!(data["requested"], format!("v{}", "9".repeat(63)));
        assert_eq!(data["supported"], serde_json::json!(["2026-07-28"]));
    }
}
