//! The span of one call, in the words of OpenTelemetry's semantic conventions for MCP.

use http::Version;
use tracing::field::{Empty, display};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, debug, info_span};

use super::events::{TARGET, session_hash};
use crate::cancel::CancelCause;
use crate::exchange::Outcome;
use crate::exchange::call::{Call, Via};
use crate::observer::ExchangeEnd;
use crate::protocol::names::method;

/// Characters of a client's text that a field holds at most.
const MOST: usize = 128;

/// The span of one call. What the application runs for it, runs inside, wherever it is polled. `None` where nobody
/// listens: then a call is as small, and moves as fast, as without.
#[derive(Debug)]
pub(crate) struct CallSpan(Option<Box<Span>>);

impl CallSpan {
    #[inline]
    pub(crate) fn of(call: &Call) -> Self {
        if LevelFilter::current() < Level::INFO { Self(None) } else { Self::open(call) }
    }

    #[inline(never)]
    fn open(call: &Call) -> Self {
        let span = info_span!(
            target: TARGET,
            "mcp.server",
            "otel.name" = Empty,
            "otel.kind" = "server",
            "otel.status_code" = Empty,
            "mcp.method.name" = Empty,
            "mcp.protocol.version" = call.revision.as_str(),
            "jsonrpc.request.id" = Empty,
            "gen_ai.operation.name" = Empty,
            "gen_ai.tool.name" = Empty,
            "gen_ai.prompt.name" = Empty,
            "network.transport" = Empty,
            "network.protocol.name" = Empty,
            "network.protocol.version" = Empty,
            "rpc.response.status_code" = Empty,
            "error.type" = Empty,
            era = Empty,
            outcome = Empty,
        );
        if span.is_disabled() {
            return Self(None);
        }
        describe(&span, call);
        Self(Some(Box::new(span)))
    }

    /// Runs what belongs to the call.
    #[inline]
    pub(crate) fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.0 {
            None => run(),
            Some(span) => span.in_scope(run),
        }
    }

    /// Notes what the handler's own answer says: a tool may fail with a result.
    #[inline]
    pub(crate) fn answered(&self, call: &Call, outcome: &Outcome) {
        let Some(span) = &self.0 else {
            return;
        };
        let is_call = call.message.method() == method::TOOLS_CALL;
        match outcome {
            Outcome::Answered(Ok(reply)) if is_call && is_error(reply.json()) => failed(span, "tool_error"),
            _ => {}
        }
    }

    /// Notes how it ended.
    #[inline]
    pub(crate) fn ended(&self, end: ExchangeEnd) {
        if let Some(span) = &self.0 {
            ended(span, end);
        }
    }
}

fn ended(span: &Span, end: ExchangeEnd) {
    span.record("outcome", end.as_str());
    match end {
        ExchangeEnd::Error(code) => {
            span.record("rpc.response.status_code", display(code));
            failed(span, &code.to_string());
        }
        ExchangeEnd::Cancelled(cause) => failed(span, cause_label(cause)),
        ExchangeEnd::Result | ExchangeEnd::InputRequired => {}
    }
}

fn failed(span: &Span, what: &str) {
    span.record("error.type", what);
    span.record("otel.status_code", "ERROR");
}

/// Notes who asks, for what and by which way.
fn describe(span: &Span, call: &Call) {
    let asked = clip(call.message.method());
    span.record("mcp.method.name", asked);
    span.record("era", call.era().as_str());
    if let Some(id) = call.message.id() {
        span.record("jsonrpc.request.id", clip(id.as_str().trim_matches('"')));
    }
    let target = call.message.name().map(clip);
    match (call.message.method(), target) {
        (method::TOOLS_CALL, Some(tool)) => {
            span.record("gen_ai.operation.name", "execute_tool");
            span.record("gen_ai.tool.name", tool);
            span.record("otel.name", display(format_args!("{asked} {tool}")));
        }
        (method::PROMPTS_GET, Some(prompt)) => {
            span.record("gen_ai.prompt.name", prompt);
            span.record("otel.name", display(format_args!("{asked} {prompt}")));
        }
        _ => {
            span.record("otel.name", asked);
        }
    }
    match &call.via {
        Via::Http(head) => {
            span.record("network.transport", "tcp");
            span.record("network.protocol.name", "http");
            span.record("network.protocol.version", version(head.version));
        }
        Via::Stream(_) => {
            span.record("network.transport", "pipe");
        }
    }
    if let Some(session) = &call.session {
        debug!(target: TARGET, parent: span, session = %session_hash(session.id()), "in a session");
    }
}

/// As much of a client's text as a field holds.
fn clip(text: &str) -> &str {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

const fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "3",
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}

const fn cause_label(cause: CancelCause) -> &'static str {
    match cause {
        CancelCause::Disconnected => "disconnected",
        CancelCause::Requested => "cancelled",
        CancelCause::Deadline => "timeout",
        CancelCause::Drained => "drained",
        CancelCause::SessionEnded => "session_ended",
        CancelCause::Unread => "unread",
    }
}

/// Whether the result of a tool says that it failed.
fn is_error(result: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Result {
        #[serde(default)]
        is_error: bool,
    }
    serde_json::from_slice(result).is_ok_and(|Result { is_error }| is_error)
}
