//! The span of one call, in the words of OpenTelemetry's semantic conventions for MCP.

use http::Version;
use tracing::field::{Empty, display};
use tracing::{Span, debug, info_span};

use super::events::{TARGET, session_hash};
use crate::cancel::CancelCause;
use crate::exchange::Outcome;
use crate::exchange::call::{Call, Via};
use crate::observer::ExchangeEnd;
use crate::protocol::names::method;

/// Characters of a client's text that a field holds at most.
const MOST: usize = 128;

/// The span of one call. What the application runs for it, runs inside, wherever it is polled.
#[derive(Debug)]
pub(crate) struct CallSpan(Span);

impl CallSpan {
    pub(crate) fn of(call: &Call) -> Self {
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
        let span = Self(span);
        // What has to be put together first, only where somebody reads it.
        if !span.0.is_disabled() {
            span.describe(call);
        }
        span
    }

    /// Runs what belongs to the call.
    pub(crate) fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        self.0.in_scope(run)
    }

    /// Notes what the handler's own answer says: a tool may fail with a result.
    pub(crate) fn answered(&self, call: &Call, outcome: &Outcome) {
        let is_call = !self.0.is_disabled() && call.message.method() == method::TOOLS_CALL;
        match outcome {
            Outcome::Answered(Ok(reply)) if is_call && is_error(reply.json()) => self.failed("tool_error"),
            _ => {}
        }
    }

    /// Notes how it ended.
    pub(crate) fn ended(&self, end: ExchangeEnd) {
        if self.0.is_disabled() {
            return;
        }
        self.0.record("outcome", end.as_str());
        match end {
            ExchangeEnd::Error(code) => {
                self.0.record("rpc.response.status_code", display(code));
                self.failed(&code.to_string());
            }
            ExchangeEnd::Cancelled(cause) => self.failed(cause_label(cause)),
            ExchangeEnd::Result | ExchangeEnd::InputRequired => {}
        }
    }

    fn failed(&self, what: &str) {
        self.0.record("error.type", what);
        self.0.record("otel.status_code", "ERROR");
    }

    fn describe(&self, call: &Call) {
        let (span, asked) = (&self.0, clip(call.message.method()));
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
