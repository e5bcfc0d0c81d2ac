//! What an application can hear of its transport's life.

use std::fmt;

use crate::cancel::CancelCause;
use crate::mcp_error::McpError;
use crate::principal::Principal;
use crate::protocol::parameter_headers::AnnotationFault;
use crate::protocol::refusal::Refusal;
use crate::protocol::revision::Revision;
use crate::session::{Session, SessionEnd};

/// Hears what happens in a transport: for logs and metrics.
///
/// Every method does nothing by default, is called on the path of the request, and must not block. A panic in one is
/// the application's own: it unwinds into the request that it observes, or is swallowed where there is none.
///
/// Without one nobody reads what lies behind an "Internal error". Where an application is being written, this much helps:
///
/// ```
/// use mcp_transport::{Exchange, McpError, Misuse, Observer, Refusal};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn refused(&self, refusal: &Refusal) {
///         eprintln!("refused at {:?}: {refusal}", refusal.kind().rung());
///     }
///     fn internal_error(&self, exchange: &Exchange<'_>, error: &McpError) {
///         eprintln!("{} failed: {error:?}", exchange.method());
///     }
///     fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
///         eprintln!("{} panicked: {message}", exchange.method());
///     }
///     fn misuse(&self, misuse: &Misuse) {
///         eprintln!("mended: {misuse}");
///     }
/// }
/// ```
pub trait Observer: Send + Sync + 'static {
    /// An HTTP request, a line of a byte stream, or a message in either was refused before a handler ran.
    fn refused(&self, refusal: &Refusal) {
        let _ = refusal;
    }

    /// A request was admitted and its answer is being made.
    fn exchange_started(&self, exchange: &Exchange<'_>) {
        let _ = exchange;
    }

    /// An exchange is over: its answer is made, or it was cancelled. Every exchange that started ends once.
    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        let _ = (exchange, end);
    }

    /// An answer became an event stream, or a subscription opened.
    fn stream_opened(&self, exchange: &Exchange<'_>) {
        let _ = exchange;
    }

    /// A client has come back for the rest of an answer's event stream, in the place of whoever read it before.
    fn stream_resumed(&self, session: &Session) {
        let _ = session;
    }

    /// A handler panicked. The client reads "Internal error". Where `session_opened` panicked, `exchange` is the
    /// `initialize` that was to open the session, and there is none. For `session_closed` see
    /// [`Misuse::HookPanicked`].
    fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
        let _ = (exchange, message);
    }

    /// A handler answered with an internal error. The client reads "Internal error"; `error` says it all.
    fn internal_error(&self, exchange: &Exchange<'_>, error: &McpError) {
        let _ = (exchange, error);
    }

    /// A session was opened.
    fn session_opened(&self, session: &Session) {
        let _ = session;
    }

    /// A session has ended.
    fn session_closed(&self, session: &Session, end: SessionEnd) {
        let _ = (session, end);
    }

    /// The application did something that the protocol forbids, and the transport mended it.
    fn misuse(&self, misuse: &Misuse) {
        let _ = misuse;
    }
}

/// Hears nothing.
#[derive(Debug)]
pub(crate) struct Deaf;

impl Observer for Deaf {}

/// The request that an observed event belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    pub(crate) revision: Revision,
    pub(crate) method: &'a str,
    pub(crate) principal: Option<&'a Principal>,
}

impl<'a> Exchange<'a> {
    /// Returns the revision it is answered in.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the method, as the client wrote it.
    pub const fn method(&self) -> &'a str {
        self.method
    }

    /// Returns the principal, where there is one.
    pub const fn principal(&self) -> Option<&'a Principal> {
        self.principal
    }
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeEnd {
    /// With a result.
    Result,
    /// With questions that the client has to answer first (2026-07-28).
    InputRequired,
    /// With an error of this code.
    Error(i32),
    /// It was cancelled.
    Cancelled(CancelCause),
}

/// Something the application did that the protocol forbids.
#[derive(Debug)]
#[non_exhaustive]
pub enum Misuse {
    /// A handler answered with an error code reserved for the protocol; an internal error left in its place.
    ReservedErrorCode {
        /// The code it chose.
        code: i32,
    },
    /// A handler asked for input where the method allows none; an internal error left in its place.
    InputNotAllowed {
        /// The method that was being answered.
        method: String,
    },
    /// A handler asked for input in a form that nobody could answer; an internal error left in its place.
    BadInputRequired {
        /// What is wrong with the result.
        reason: &'static str,
    },
    /// A handler went on asking, and the client reads an internal error. Perhaps a question changes with every run.
    TooManyRounds {
        /// The method that was being answered.
        method: String,
        /// [`Limits::rounds`](crate::Limits::rounds).
        most: u32,
    },
    /// The answers so far and the handler's own state exceed [`Limits::state_bytes`](crate::Limits::state_bytes); an
    /// internal error left in their place.
    StateTooLarge {
        /// The method that was being answered.
        method: String,
    },
    /// An `x-mcp-header` annotation of a tool is malformed. Clients drop such a tool from their list.
    BadAnnotation {
        /// The tool.
        tool: String,
        /// What is wrong with the annotation, and where.
        fault: AnnotationFault,
    },
    /// A hook panicked that belongs to no request. What it was called for happened all the same.
    HookPanicked {
        /// The method of [`McpHandler`](crate::McpHandler).
        hook: &'static str,
        /// What the panic says.
        message: String,
    },
    /// `tools/list` failed when the transport asked for the tools' annotations, so a call went on unchecked.
    ListingFailed {
        /// The tool that was being called.
        tool: String,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReservedErrorCode { code } => {
                write!(f, "error code {code} is reserved for the protocol; choose one outside -32768 to -32000")
            }
            Self::InputNotAllowed { method } => {
                write!(f, "a handler asked for input while answering {method}")
            }
            Self::BadInputRequired { reason } => write!(f, "a handler asked for input, but {reason}"),
            Self::TooManyRounds { method, most } => {
                write!(f, "a handler asked for input more than {most} times while answering {method}")
            }
            Self::StateTooLarge { method } => {
                write!(f, "the requestState while answering {method} exceeds Limits::state_bytes")
            }
            Self::BadAnnotation { tool, fault } => {
                write!(f, "x-mcp-header in tool {tool:?}: {fault}")
            }
            Self::HookPanicked { hook, message } => write!(f, "{hook} panicked: {message}"),
            Self::ListingFailed { tool } => {
                write!(f, "tools/list failed, so the headers of a call of {tool:?} were not checked")
            }
        }
    }
}
