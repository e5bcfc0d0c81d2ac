//! Why a message is refused: one table from the kind to the wire.

use http::StatusCode;

use crate::protocol::names::code;

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
pub(super) struct Row {
    rung: Rung,
    status: StatusCode,
    code: i32,
    pub(super) message: &'static str,
}

impl RefusalKind {
    /// The table. Everything that depends on the kind alone stands here and nowhere else.
    pub(super) const fn row(self) -> Row {
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
