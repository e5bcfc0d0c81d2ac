//! What an application can hear of its transport's life.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::cancel::CancelCause;
use crate::mcp_error::McpError;
use crate::principal::Principal;
use crate::protocol::names::method;
use crate::protocol::parameter_headers::AnnotationFault;
use crate::protocol::refusal::Refusal;
use crate::protocol::revision::{Era, Revision};
use crate::session::{Session, SessionEnd};

/// Hears what happens in a transport: for logs and metrics.
///
/// Every method does nothing by default, is called on the path of the request, and must not block. A panic in one is
/// the application's own: it unwinds into the request that it observes, or is swallowed where there is none.
///
/// Without one nobody reads what lies behind an "Internal error". Where an application is being written, this much
/// helps:
///
/// ```
/// use mcp_transport::{Exchange, McpError, Misuse, Observer, Refusal};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn refused(&self, refusal: &Refusal) {
///         eprintln!("{}", refusal.explain());
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
///
/// The feature `tracing` tells a subscriber as much without one.
///
/// # Counting
///
/// Labels of a metric must be few, and a method is whatever a client wrote. These are few: [`Era::as_str`],
/// [`Revision::as_str`](crate::Revision::as_str), [`Exchange::known_method`], [`ExchangeEnd::as_str`],
/// [`StreamKind::as_str`], [`Pressure::as_str`], and what [`RefusalKind`](crate::RefusalKind) and [`SessionEnd`] are
/// written as by `Debug`. For gauges count what begins up and what ends down, or read
/// [`Transport::counts`](crate::Transport::counts).
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

    /// A stream began: each that [`Counts::streams`](crate::Counts::streams) counts. Which exchange or session it is
    /// of, [`stream_opened`](Self::stream_opened) and [`stream_resumed`](Self::stream_resumed) tell where there is one.
    fn stream_began(&self, kind: StreamKind) {
        let _ = kind;
    }

    /// A stream has ended: each that began does so once, read to its end or not.
    fn stream_ended(&self, kind: StreamKind) {
        let _ = kind;
    }

    /// Something did not fit: it waits, is merged or dropped. That is what the bounds are for; much of it says that one
    /// of the [`Limits`](crate::Limits) is tight, or a client slow. A request that does not fit is
    /// [refused](crate::RefusalKind::Overloaded).
    fn pressure(&self, pressure: Pressure) {
        let _ = pressure;
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

/// An observer, where it is held by what can be printed.
#[derive(Clone)]
pub(crate) struct Ear(Arc<dyn Observer>);

impl Ear {
    pub(crate) fn of(observer: &Arc<dyn Observer>) -> Self {
        Self(Arc::clone(observer))
    }
}

impl Default for Ear {
    fn default() -> Self {
        Self(Arc::new(Deaf))
    }
}

impl Deref for Ear {
    type Target = dyn Observer;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ear").finish_non_exhaustive()
    }
}

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

    /// Returns the era of that revision.
    pub const fn era(&self) -> Era {
        self.revision.era()
    }

    /// Returns the method, as the client wrote it.
    pub const fn method(&self) -> &'a str {
        self.method
    }

    /// Returns the method if it is one of the specification or of its tasks extension, of any revision, and else
    /// `other`: a label of a metric, of which there must not be as many as clients can think of.
    pub fn known_method(&self) -> &'static str {
        method::label(self.method)
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

impl ExchangeEnd {
    /// Returns `result`, `input_required`, `error` or `cancelled`: a label for a metric.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::InputRequired => "input_required",
            Self::Error(_) => "error",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamKind {
    /// The answer to a request, or to a batch of them.
    Answer,
    /// The rest of an answer, for a client that has come back (up to 2025-11-25).
    Resumed,
    /// What a GET reads: changes, and requests of the server's own (up to 2025-11-25).
    General,
    /// A subscription (2026-07-28).
    Subscription,
    /// Everything: it is a byte stream.
    Bytes,
}

impl StreamKind {
    /// Returns `answer`, `resumed`, `general`, `subscription` or `bytes`: a label for a metric.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Resumed => "resumed",
            Self::General => "general",
            Self::Subscription => "subscription",
            Self::Bytes => "bytes",
        }
    }
}

/// What did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pressure {
    /// A handler's message waits for room in its stream: the client reads too slowly
    /// ([`Limits::queue_bytes`](crate::Limits::queue_bytes)).
    QueueFull,
    /// A handler's message was dropped: its client takes only JSON, or has left, or the answer is made.
    MessageDropped,
    /// A change met an equal one that its listener has yet to read, and the two became one.
    ChangeMerged,
    /// An event that could have been resumed from was let go for newer ones
    /// ([`Limits::stored_events`](crate::Limits::stored_events), `stored_bytes`, `stored_bytes_in_all`).
    EventEvicted,
}

impl Pressure {
    /// Returns `queue_full`, `message_dropped`, `change_merged` or `event_evicted`: a label for a metric.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::MessageDropped => "message_dropped",
            Self::ChangeMerged => "change_merged",
            Self::EventEvicted => "event_evicted",
        }
    }
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
                write!(f, "a handler asked for input while answering {method:?}")
            }
            Self::BadInputRequired { reason } => write!(f, "a handler asked for input, but {reason}"),
            Self::TooManyRounds { method, most } => {
                write!(f, "a handler asked for input more than {most} times while answering {method:?}")
            }
            Self::StateTooLarge { method } => {
                write!(f, "the requestState while answering {method:?} exceeds Limits::state_bytes")
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
