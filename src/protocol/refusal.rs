//! What the transport answers when it answers before a handler ran: one table from the reason to the wire.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderValue, StatusCode};
use serde::Serialize;

use super::envelope::{BodyFault, BodyFaultKind, RequestId};
use super::ground::{Ground, Rule};
use super::mirror::MirrorFault;
use super::names::code;
use super::revision::{Era, Revision, Revisions};

/// The rungs of the one ladder every HTTP request climbs. The first that fails answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rung {
    /// The access token, in front of the transport.
    #[cfg(feature = "auth")]
    Token,
    /// The transport is draining.
    Draining,
    /// The `Origin` header.
    Origin,
    /// The `Host` header or `:authority`, where a host list is configured.
    Host,
    /// The HTTP method.
    Method,
    /// The `Content-Type` of a POST.
    ContentType,
    /// The `Accept` header.
    Accept,
    /// The body, while it is read.
    Body,
    /// UTF-8, JSON and its nesting.
    Syntax,
    /// The JSON-RPC shape.
    Shape,
    /// The rules of the era and of its revisions.
    Era,
    /// What the application allows ([`authorize`](crate::StreamableHttpBuilder::authorize)).
    Authorization,
}

/// Why a message was refused before a handler ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The transport is draining and takes no new work.
    Draining,
    /// `Origin` is not one of the allowed origins.
    OriginNotAllowed,
    /// `Host` is not one of the configured hosts.
    HostNotAllowed,
    /// The HTTP method is not served here.
    MethodNotAllowed,
    /// `Content-Type` is not `application/json`.
    ContentType,
    /// `Accept` does not admit what the request is answered with: JSON or an event stream; for a GET and
    /// `subscriptions/listen` an event stream.
    NotAcceptable,
    /// The body is longer than the limit.
    BodyTooLarge,
    /// The body broke off.
    BodyAborted,
    /// The body took longer than [`Limits::body_time`](crate::Limits::body_time).
    BodyTimeout,
    /// The body is not UTF-8 or not JSON.
    Syntax,
    /// The body is nested deeper than the limit.
    Nesting,
    /// The body is not a JSON-RPC message.
    Shape,
    /// An array where no batch is allowed.
    BatchNotAllowed,
    /// A JSON-RPC response that nothing waits for.
    UnexpectedResponse,
    /// No revision of the message's era is served.
    EraNotServed,
    /// A header is missing, malformed, or says something else than the body.
    HeaderMismatch,
    /// The protocol version is not served.
    UnsupportedVersion,
    /// A required member of `params._meta` is missing or ill-typed.
    InvalidMeta,
    /// The `requestState` was altered, has expired, or was made for another request, principal or server; or the
    /// application's [`ReplayGuard`](crate::ReplayGuard) does not admit it.
    #[cfg(feature = "state")]
    InvalidState,
    /// The method does not exist in the message's revision.
    MethodNotFound,
    /// The session or version header came twice on a legacy message.
    DuplicateHeader,
    /// An id that is being answered in the session.
    DuplicateId,
    /// `initialize` in a session.
    AlreadyInitialized,
    /// A GET in a session whose GET stream is open already.
    StreamOpen,
    /// A GET whose `Last-Event-ID` is no event of the session, or one after which some are not kept any more.
    UnknownEvent,
    /// The params of a request that the transport answers itself.
    InvalidParams,
    /// A limit has been reached.
    Overloaded,
    /// The caller's own share of a limit has been reached.
    CallerLimit,
    /// A hook of the application's panicked that says who the caller is, or whether it may; see
    /// [`Misuse`](crate::Misuse::HookPanicked).
    HookPanicked,
    /// The session does not exist, or belongs to somebody else.
    UnknownSession,
    /// A DELETE that names no session, or under [`Sessions::Required`](crate::Sessions::Required) any message but
    /// `initialize`.
    SessionRequired,
    /// A GET where no stream can be opened.
    NoStream,
    /// A GET or DELETE under a modern version header: 2026-07-28 knows only POST.
    NotInThisEra,
    /// The annotations of the tool could not be learned, so its headers could not be checked.
    ListingFailed,
    /// No access token came with the request.
    #[cfg(feature = "auth")]
    Unauthenticated,
    /// The `Authorization` header came twice, or holds anything but one token.
    #[cfg(feature = "auth")]
    MalformedCredentials,
    /// The verifier does not accept the access token.
    #[cfg(feature = "auth")]
    InvalidToken,
    /// The access token has expired.
    #[cfg(feature = "auth")]
    ExpiredToken,
    /// The access token was issued for another server, or the verifier did not say for which.
    #[cfg(feature = "auth")]
    WrongAudience,
    /// The verifier could not tell whether to accept the access token.
    #[cfg(feature = "auth")]
    VerifierUnavailable,
    /// The application does not allow it ([`authorize`](crate::StreamableHttpBuilder::authorize)).
    NotAuthorized,
}

/// One row of the refusal table.
struct Row {
    rung: Rung,
    status: StatusCode,
    code: i32,
    message: &'static str,
}

impl RefusalKind {
    /// The table. Everything that depends on the kind alone stands here and nowhere else.
    const fn row(self) -> Row {
        use StatusCode as S;
        const fn row(rung: Rung, status: StatusCode, code: i32, message: &'static str) -> Row {
            Row { rung, status, code, message }
        }
        const INVALID: i32 = code::INVALID_REQUEST;
        match self {
            Self::Draining => {
                row(Rung::Draining, S::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "The server is shutting down")
            }
            Self::OriginNotAllowed => row(Rung::Origin, S::FORBIDDEN, INVALID, "Origin not allowed"),
            Self::HostNotAllowed => row(Rung::Host, S::FORBIDDEN, INVALID, "Host not allowed"),
            Self::MethodNotAllowed => row(Rung::Method, S::METHOD_NOT_ALLOWED, INVALID, "HTTP method not allowed"),
            Self::ContentType => {
                row(Rung::ContentType, S::UNSUPPORTED_MEDIA_TYPE, INVALID, "Content-Type must be application/json")
            }
            Self::NotAcceptable => {
                row(Rung::Accept, S::NOT_ACCEPTABLE, INVALID, "Accept must admit application/json or text/event-stream")
            }
            Self::BodyTooLarge => row(Rung::Body, S::PAYLOAD_TOO_LARGE, INVALID, "Request body too large"),
            Self::BodyAborted => row(Rung::Body, S::BAD_REQUEST, INVALID, "Request body incomplete"),
            Self::BodyTimeout => row(Rung::Body, S::REQUEST_TIMEOUT, INVALID, "Request body took too long"),
            Self::Syntax => row(Rung::Syntax, S::BAD_REQUEST, code::PARSE_ERROR, "Parse error"),
            Self::Nesting => row(Rung::Syntax, S::BAD_REQUEST, code::PARSE_ERROR, "JSON nested too deeply"),
            Self::Shape => row(Rung::Shape, S::BAD_REQUEST, INVALID, "Invalid JSON-RPC message"),
            Self::BatchNotAllowed => {
                row(Rung::Era, S::BAD_REQUEST, INVALID, "Batches are not part of this protocol version")
            }
            Self::UnexpectedResponse => row(Rung::Era, S::BAD_REQUEST, INVALID, "Nothing waits for this response"),
            Self::EraNotServed => {
                row(Rung::Era, S::BAD_REQUEST, INVALID, "This server speaks versions that begin with initialize")
            }
            Self::HeaderMismatch => row(Rung::Era, S::BAD_REQUEST, code::HEADER_MISMATCH, "Header mismatch"),
            Self::UnsupportedVersion => {
                row(Rung::Era, S::BAD_REQUEST, code::UNSUPPORTED_VERSION, "Unsupported protocol version")
            }
            Self::InvalidMeta => row(Rung::Era, S::BAD_REQUEST, code::INVALID_PARAMS, "Invalid params._meta"),
            #[cfg(feature = "state")]
            Self::InvalidState => row(Rung::Era, S::BAD_REQUEST, code::INVALID_PARAMS, "Invalid params.requestState"),
            Self::MethodNotFound => row(Rung::Era, S::NOT_FOUND, code::METHOD_NOT_FOUND, "Method not found"),
            Self::DuplicateHeader => row(Rung::Era, S::BAD_REQUEST, INVALID, "A header came twice"),
            Self::DuplicateId => row(Rung::Era, S::BAD_REQUEST, INVALID, "A request with this id is being answered"),
            Self::AlreadyInitialized => row(Rung::Era, S::BAD_REQUEST, INVALID, "Already initialized"),
            Self::StreamOpen => row(Rung::Era, S::CONFLICT, INVALID, "The stream of this session is open already"),
            Self::UnknownEvent => {
                row(Rung::Era, S::BAD_REQUEST, INVALID, "Last-Event-ID is no event that could be resumed from")
            }
            Self::InvalidParams => row(Rung::Era, S::BAD_REQUEST, code::INVALID_PARAMS, "Invalid params"),
            Self::Overloaded => {
                row(Rung::Era, S::SERVICE_UNAVAILABLE, code::INTERNAL_ERROR, "The server is too busy; try again later")
            }
            Self::CallerLimit => {
                row(Rung::Era, S::TOO_MANY_REQUESTS, INVALID, "Too much at once from this client; try again later")
            }
            Self::HookPanicked => row(Rung::Era, S::INTERNAL_SERVER_ERROR, code::INTERNAL_ERROR, "Internal error"),
            Self::UnknownSession => row(Rung::Era, S::NOT_FOUND, INVALID, "Session not found"),
            Self::SessionRequired => row(Rung::Era, S::BAD_REQUEST, INVALID, "Mcp-Session-Id required"),
            Self::NoStream => row(
                Rung::Era,
                S::METHOD_NOT_ALLOWED,
                INVALID,
                "No stream to open: a GET needs the Mcp-Session-Id that initialize gave",
            ),
            Self::NotInThisEra => {
                row(Rung::Era, S::METHOD_NOT_ALLOWED, INVALID, "This protocol version knows only POST")
            }
            Self::ListingFailed => row(Rung::Era, S::OK, code::INTERNAL_ERROR, "Internal error"),
            #[cfg(feature = "auth")]
            Self::Unauthenticated => row(Rung::Token, S::UNAUTHORIZED, INVALID, "An access token is required"),
            #[cfg(feature = "auth")]
            Self::MalformedCredentials => {
                row(Rung::Token, S::BAD_REQUEST, INVALID, "Authorization must be Bearer and one token")
            }
            #[cfg(feature = "auth")]
            Self::InvalidToken => row(Rung::Token, S::UNAUTHORIZED, INVALID, "The access token is invalid"),
            #[cfg(feature = "auth")]
            Self::ExpiredToken => row(Rung::Token, S::UNAUTHORIZED, INVALID, "The access token has expired"),
            #[cfg(feature = "auth")]
            Self::WrongAudience => {
                row(Rung::Token, S::UNAUTHORIZED, INVALID, "The access token is for another resource")
            }
            #[cfg(feature = "auth")]
            Self::VerifierUnavailable => row(
                Rung::Token,
                S::SERVICE_UNAVAILABLE,
                code::INTERNAL_ERROR,
                "The access token cannot be verified now; try again later",
            ),
            Self::NotAuthorized => row(Rung::Authorization, S::FORBIDDEN, INVALID, "Not allowed"),
        }
    }

    /// Returns the rung of the ladder it belongs to.
    pub const fn rung(self) -> Rung {
        self.row().rung
    }

    /// Returns the HTTP status it is answered with.
    pub const fn status(self) -> StatusCode {
        self.row().status
    }

    /// Returns the JSON-RPC error code it is answered with.
    pub const fn code(self) -> i32 {
        self.row().code
    }
}

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
