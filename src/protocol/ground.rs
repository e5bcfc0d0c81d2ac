//! What a refusal is about: one table from the ground to the header or member at fault, what was expected there, and
//! whose rule it is. For the application's log; nothing of it goes to the client.

use std::fmt;

use super::envelope::BodyFaultKind;
use super::refusal::RefusalKind;
use super::revision::Revision;

/// Whose rule a message broke.
///
/// It is written as `2026-07-28, Streamable HTTP: Standard Request Headers`, or where no revision has the rule, as what
/// sets it: `Limits::body_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    revision: Option<Revision>,
    section: &'static str,
}

impl Rule {
    /// Returns the revision whose rule it is, at that the newest that has it. `None` where it is no rule of the
    /// protocol: it is HTTP's, JSON-RPC's, or of this transport's configuration.
    pub const fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Returns where the rule stands: page and section of the specification, such as
    /// `Streamable HTTP: Standard Request Headers`, or the item of this crate that sets it, such as
    /// `Limits::body_bytes`.
    pub const fn section(&self) -> &'static str {
        self.section
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision {
            Some(revision) => write!(f, "{revision}, {}", self.section),
            None => f.write_str(self.section),
        }
    }
}

/// What a refusal is about, where one kind has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    Draining,
    Origin,
    Host,
    HttpMethod,
    ContentType,
    Accept,
    AcceptStream,
    BodyBytes,
    BodyAborted,
    BodyTime,
    Json,
    LineBytes,
    Nesting,
    Object,
    MemberTwice,
    Jsonrpc,
    MethodText,
    Params,
    Id,
    ResultOrError,
    BatchEmpty,
    BatchLength,
    BatchInitialize,
    BatchModern,
    BatchLegacy,
    ResponseModern,
    ResponseLegacy,
    Revisions,
    InitializeModern,
    VersionHeader,
    VersionsAgree,
    VersionServed,
    VersionServedLegacy,
    VersionInitialize,
    MirroredMethod,
    MirroredName,
    MirroredParameter,
    ArgumentTwice,
    ListedTools,
    MetaVersion,
    MetaVersionServed,
    MetaCapabilities,
    MetaLogLevel,
    #[cfg(feature = "state")]
    RequestState,
    RemovedMethod,
    VersionHeaderOnce,
    SessionHeaderOnce,
    IdInFlight,
    Initialized,
    ClientBytes,
    StreamOpen,
    LastEventId,
    KeptId,
    ListenFilter,
    #[cfg(feature = "auth")]
    TokenGiven,
    #[cfg(feature = "auth")]
    TokenSyntax,
    #[cfg(feature = "auth")]
    TokenAccepted,
    #[cfg(feature = "auth")]
    TokenExpiry,
    #[cfg(feature = "auth")]
    TokenAudience,
    #[cfg(feature = "auth")]
    TokenVerifier,
    Authorized,
    /// One of the limits, by the name of what sets it.
    Limit(&'static str),
    HookPanicked,
    Session,
    SessionNamed,
    StreamSession,
    PostOnly,
}

/// One row of the table.
pub(crate) struct Row {
    pub(crate) subject: Option<&'static str>,
    pub(crate) expected: &'static str,
    pub(crate) rule: Rule,
}

const VERSION: &str = "MCP-Protocol-Version";
#[cfg(feature = "auth")]
const AUTHORIZATION: &str = "Authorization";
#[cfg(feature = "auth")]
const TOKENS: Rule = modern("Authorization: Access Token Usage");
const SESSION: &str = "Mcp-Session-Id";
const META_VERSION: &str = "params._meta[\"io.modelcontextprotocol/protocolVersion\"]";
const META_CAPABILITIES: &str = "params._meta[\"io.modelcontextprotocol/clientCapabilities\"]";
const META_LOG_LEVEL: &str = "params._meta[\"io.modelcontextprotocol/logLevel\"]";

const JSON_RPC: Rule = ours("JSON-RPC 2.0");
const BATCHES: Rule = ours("JSON-RPC 2.0: Batch");
const VERSION_RULE: Rule = modern("Streamable HTTP: Protocol Version Header");
const VERSION_RULE_LEGACY: Rule = legacy("Transports: Protocol Version Header");
const SESSIONS: Rule = legacy("Transports: Session Management");
const PARAMETERS: Rule = modern("Streamable HTTP: Server Behavior for Custom Headers");
const META: Rule = modern("Overview: _meta");

const fn modern(section: &'static str) -> Rule {
    Rule { revision: Some(Revision::V2026_07_28), section }
}

const fn legacy(section: &'static str) -> Rule {
    Rule { revision: Some(Revision::V2025_11_25), section }
}

const fn of(revision: Revision, section: &'static str) -> Rule {
    Rule { revision: Some(revision), section }
}

/// A rule of no revision.
const fn ours(section: &'static str) -> Rule {
    Rule { revision: None, section }
}

const fn row(subject: Option<&'static str>, expected: &'static str, rule: Rule) -> Row {
    Row { subject, expected, rule }
}

/// A fault of a header or a member.
const fn at(subject: &'static str, expected: &'static str, rule: Rule) -> Row {
    row(Some(subject), expected, rule)
}

/// A fault of the whole, or of the server.
const fn whole(expected: &'static str, rule: Rule) -> Row {
    row(None, expected, rule)
}

impl Ground {
    /// The table.
    pub(crate) const fn row(self) -> Row {
        match self {
            Self::Draining => whole("a transport that is not being drained", ours("Transport::drain")),
            Self::Origin => at(
                "Origin",
                "none, a loopback origin, or one of StreamableHttpBuilder::allow_origin",
                modern("Streamable HTTP: Security & Endpoint"),
            ),
            Self::Host => {
                at("Host", "one of StreamableHttpBuilder::allow_host", ours("StreamableHttpBuilder::allow_host"))
            }
            Self::HttpMethod => whole(
                "POST, for clients up to 2025-11-25 also GET and DELETE",
                modern("Streamable HTTP: Sending Messages"),
            ),
            Self::ContentType => {
                at("Content-Type", "application/json, once", modern("Streamable HTTP: Sending Messages"))
            }
            Self::Accept => at(
                "Accept",
                "application/json, text/event-stream or, as the specification asks, both",
                modern("Streamable HTTP: Sending Messages"),
            ),
            Self::AcceptStream => at("Accept", "text/event-stream", modern("Streamable HTTP: Receiving Messages")),
            Self::BodyBytes => whole("a body of at most Limits::body_bytes", ours("Limits::body_bytes")),
            Self::BodyAborted => whole("a whole body", ours("HTTP/1.1: Handling Incomplete Messages (RFC 9112)")),
            Self::BodyTime => whole("a whole body within Limits::body_time", ours("Limits::body_time")),
            Self::Json => whole("one JSON text in UTF-8", JSON_RPC),
            Self::LineBytes => whole("a line of at most Limits::body_bytes", ours("Limits::body_bytes")),
            Self::Nesting => whole("JSON nested at most Limits::nesting deep", ours("Limits::nesting")),
            Self::Object => whole("an object", JSON_RPC),
            Self::MemberTwice => whole(
                "each of jsonrpc, id, method, params, result, error, and of the members that the transport reads in \
                 params, at most once",
                ours("JSON (RFC 8259): Objects"),
            ),
            Self::Jsonrpc => at("jsonrpc", "the string \"2.0\"", JSON_RPC),
            Self::MethodText => at("method", "a string", JSON_RPC),
            Self::Params => at("params", "an object, or nothing", modern("Overview: Requests")),
            Self::Id => at("id", "a string or an integer, not null", modern("Overview: Requests")),
            Self::ResultOrError => {
                at("method", "a string, or else exactly one of result and error", modern("Overview: Responses"))
            }
            Self::BatchEmpty => whole("at least one message in a batch", BATCHES),
            Self::BatchLength => whole("at most Limits::batch messages in a batch", ours("Limits::batch")),
            Self::BatchInitialize => {
                at("method", "initialize outside any batch", of(Revision::V2025_03_26, "Lifecycle: Initialization"))
            }
            Self::BatchModern => whole("one message, not an array", modern("Streamable HTTP: Sending Messages")),
            Self::BatchLegacy => whole(
                "one message: only 2025-03-26 has batches",
                of(Revision::V2025_06_18, "Transports: Sending Messages to the Server"),
            ),
            Self::ResponseModern => {
                whole("a request or a notification, not a response", modern("Streamable HTTP: Sending Messages"))
            }
            Self::ResponseLegacy => {
                at("id", "that of a request of the server's that is not answered yet", legacy("Overview: Responses"))
            }
            Self::Revisions => whole("a message of one of the revisions served", ours("Revisions")),
            Self::InitializeModern => at(
                "method",
                "no initialize, or no MCP-Protocol-Version later than 2025-11-25",
                modern("Versioning and Compatibility: Compatibility Matrix"),
            ),
            Self::VersionHeader => at(VERSION, "the revision of the message, once, in visible ASCII", VERSION_RULE),
            Self::VersionsAgree => at(
                VERSION,
                "the same text as in params._meta[\"io.modelcontextprotocol/protocolVersion\"]",
                VERSION_RULE,
            ),
            Self::VersionServed => at(VERSION, "one of the revisions in error.data.supported", VERSION_RULE),
            Self::VersionServedLegacy => {
                at(VERSION, "one of the revisions in error.data.supported", VERSION_RULE_LEGACY)
            }
            Self::VersionInitialize => at(
                "params.protocolVersion",
                "no initialize: no revision that has it is served",
                modern("Versioning and Compatibility: Compatibility Matrix"),
            ),
            Self::MirroredMethod => {
                at("Mcp-Method", "the method of the body, once", modern("Streamable HTTP: Standard Request Headers"))
            }
            Self::MirroredName => at(
                "Mcp-Name",
                "params.name of tools/call and prompts/get, params.uri of resources/read, once, as it is or Base64-encoded",
                modern("Streamable HTTP: Standard Request Headers"),
            ),
            Self::MirroredParameter => at(
                "Mcp-Param-*",
                "the argument that the tool's inputSchema mirrors into it, once, as it is or Base64-encoded",
                PARAMETERS,
            ),
            Self::ArgumentTwice => at("params.arguments", "each mirrored argument at most once", PARAMETERS),
            Self::ListedTools => {
                whole("a tools/list of the handler's that succeeds, to check Mcp-Param headers by", PARAMETERS)
            }
            Self::MetaVersion => at(META_VERSION, "a string, on every request", META),
            Self::MetaVersionServed => at(META_VERSION, "one of the revisions in error.data.supported", META),
            Self::MetaCapabilities => at(META_CAPABILITIES, "an object, on every request", META),
            Self::MetaLogLevel => at(
                META_LOG_LEVEL,
                "debug, info, notice, warning, error, critical, alert or emergency, or nothing",
                modern("Logging: Per-request log level"),
            ),
            #[cfg(feature = "state")]
            Self::RequestState => at(
                "params.requestState",
                "what the server gave for the same method, params and principal, not yet expired",
                modern("Multi Round-Trip Requests: Security Considerations"),
            ),
            Self::RemovedMethod => at("method", "one that 2026-07-28 did not remove", modern("Key Changes")),
            Self::VersionHeaderOnce => at(VERSION, "at most one", VERSION_RULE_LEGACY),
            Self::SessionHeaderOnce => at(SESSION, "at most one", SESSIONS),
            Self::IdInFlight => {
                at("id", "one that no other request of the session or batch has", legacy("Overview: Requests"))
            }
            Self::Initialized => at("method", "no second initialize", legacy("Lifecycle: Initialization")),
            Self::ClientBytes => at("params", "at most 64 KiB of clientInfo and capabilities", ours("Session")),
            Self::StreamOpen => {
                whole("no GET while the session's stream is open", ours("StreamableHttpBuilder::second_get"))
            }
            Self::LastEventId => at(
                "Last-Event-ID",
                "an event of this session that is still kept",
                legacy("Transports: Resumability and Redelivery"),
            ),
            Self::KeptId => at(
                "id",
                "at most 1024 bytes in a session, on a byte stream and on subscriptions/listen",
                ours("Limits"),
            ),
            Self::ListenFilter => at(
                "params.notifications",
                "an object of booleans toolsListChanged, promptsListChanged, resourcesListChanged and an array of URIs \
                 resourceSubscriptions",
                modern("Subscriptions: Notification Filter"),
            ),
            #[cfg(feature = "auth")]
            Self::TokenGiven => at(AUTHORIZATION, "Bearer and an access token", TOKENS),
            #[cfg(feature = "auth")]
            Self::TokenSyntax => at(AUTHORIZATION, "once: Bearer and one token of at most 16 KiB", TOKENS),
            #[cfg(feature = "auth")]
            Self::TokenAccepted => at(AUTHORIZATION, "a token that the TokenVerifier accepts", TOKENS),
            #[cfg(feature = "auth")]
            Self::TokenExpiry => at(AUTHORIZATION, "a token that has not expired", TOKENS),
            #[cfg(feature = "auth")]
            Self::TokenAudience => at(AUTHORIZATION, "a token that was issued for this resource", TOKENS),
            #[cfg(feature = "auth")]
            Self::TokenVerifier => whole("a TokenVerifier that can tell", ours("TokenError::Unavailable")),
            Self::Authorized => {
                whole("what StreamableHttpBuilder::authorize allows", ours("StreamableHttpBuilder::authorize"))
            }
            Self::Limit(limit) => whole("less at once", ours(limit)),
            Self::HookPanicked => whole("a hook of the application that does not panic", ours("Misuse::HookPanicked")),
            Self::Session => at(SESSION, "a session that is open, and of the same principal", SESSIONS),
            Self::SessionNamed => at(SESSION, "the id that initialize gave", SESSIONS),
            Self::StreamSession => {
                at(SESSION, "the id that initialize gave", legacy("Transports: Listening for Messages from the Server"))
            }
            Self::PostOnly => at(
                VERSION,
                "POST: there is no GET and no DELETE any more",
                modern("Streamable HTTP: Earlier Streamable HTTP Revisions"),
            ),
        }
    }

    /// What a refusal of this kind is about, unless it says otherwise.
    pub(crate) const fn of(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::Draining => Self::Draining,
            RefusalKind::OriginNotAllowed => Self::Origin,
            RefusalKind::HostNotAllowed => Self::Host,
            RefusalKind::MethodNotAllowed => Self::HttpMethod,
            RefusalKind::ContentType => Self::ContentType,
            RefusalKind::NotAcceptable => Self::Accept,
            RefusalKind::BodyTooLarge => Self::BodyBytes,
            RefusalKind::BodyAborted => Self::BodyAborted,
            RefusalKind::BodyTimeout => Self::BodyTime,
            RefusalKind::Syntax => Self::Json,
            RefusalKind::Nesting => Self::Nesting,
            RefusalKind::Shape => Self::Object,
            RefusalKind::BatchNotAllowed => Self::BatchLegacy,
            RefusalKind::UnexpectedResponse => Self::ResponseLegacy,
            RefusalKind::EraNotServed => Self::Revisions,
            RefusalKind::HeaderMismatch => Self::VersionHeader,
            RefusalKind::UnsupportedVersion => Self::VersionServed,
            RefusalKind::InvalidMeta => Self::MetaVersion,
            #[cfg(feature = "state")]
            RefusalKind::InvalidState => Self::RequestState,
            RefusalKind::MethodNotFound => Self::RemovedMethod,
            RefusalKind::DuplicateHeader => Self::SessionHeaderOnce,
            RefusalKind::DuplicateId => Self::IdInFlight,
            RefusalKind::AlreadyInitialized => Self::Initialized,
            RefusalKind::StreamOpen => Self::StreamOpen,
            RefusalKind::UnknownEvent => Self::LastEventId,
            RefusalKind::InvalidParams => Self::ListenFilter,
            #[cfg(feature = "auth")]
            RefusalKind::Unauthenticated => Self::TokenGiven,
            #[cfg(feature = "auth")]
            RefusalKind::MalformedCredentials => Self::TokenSyntax,
            #[cfg(feature = "auth")]
            RefusalKind::InvalidToken => Self::TokenAccepted,
            #[cfg(feature = "auth")]
            RefusalKind::ExpiredToken => Self::TokenExpiry,
            #[cfg(feature = "auth")]
            RefusalKind::WrongAudience => Self::TokenAudience,
            #[cfg(feature = "auth")]
            RefusalKind::VerifierUnavailable => Self::TokenVerifier,
            RefusalKind::NotAuthorized => Self::Authorized,
            RefusalKind::Overloaded | RefusalKind::CallerLimit => Self::Limit("Limits"),
            RefusalKind::HookPanicked => Self::HookPanicked,
            RefusalKind::UnknownSession => Self::Session,
            RefusalKind::SessionRequired => Self::SessionNamed,
            RefusalKind::NoStream => Self::StreamSession,
            RefusalKind::NotInThisEra => Self::PostOnly,
            RefusalKind::ListingFailed => Self::ListedTools,
        }
    }
}

impl From<BodyFaultKind> for Ground {
    fn from(fault: BodyFaultKind) -> Self {
        match fault {
            BodyFaultKind::NotUtf8 | BodyFaultKind::Syntax => Self::Json,
            BodyFaultKind::Nesting => Self::Nesting,
            BodyFaultKind::NotAnObject => Self::Object,
            BodyFaultKind::Duplicate => Self::MemberTwice,
            BodyFaultKind::Jsonrpc => Self::Jsonrpc,
            BodyFaultKind::Method => Self::MethodText,
            BodyFaultKind::Params => Self::Params,
            BodyFaultKind::Id => Self::Id,
            BodyFaultKind::Response => Self::ResultOrError,
        }
    }
}
