//! An observer in front of the application's, which turns what goes wrong into events.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tracing::{debug, error, warn};

use crate::mcp_error::McpError;
use crate::observer::{Exchange, ExchangeEnd, Misuse, Observer, Pressure, StreamKind};
use crate::protocol::refusal::Refusal;
use crate::session::{Session, SessionEnd};

/// What spans and events are filtered by.
pub(super) const TARGET: &str = "mcp_transport";

/// The application's observer, with events for what it hears.
pub(crate) fn traced(observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
    Arc::new(Traced(observer))
}

struct Traced(Arc<dyn Observer>);

impl Observer for Traced {
    fn refused(&self, refusal: &Refusal) {
        let kind = refusal.kind();
        debug!(
            target: TARGET,
            ?kind,
            rung = ?kind.rung(),
            status = kind.status().as_u16(),
            code = kind.code(),
            subject = refusal.subject(),
            "{}",
            refusal.explain(),
        );
        self.0.refused(refusal);
    }

    fn exchange_started(&self, exchange: &Exchange<'_>) {
        self.0.exchange_started(exchange);
    }

    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        self.0.exchange_ended(exchange, end);
    }

    fn stream_opened(&self, exchange: &Exchange<'_>) {
        self.0.stream_opened(exchange);
    }

    fn stream_resumed(&self, session: &Session) {
        self.0.stream_resumed(session);
    }

    fn stream_began(&self, kind: StreamKind) {
        self.0.stream_began(kind);
    }

    fn stream_ended(&self, kind: StreamKind) {
        self.0.stream_ended(kind);
    }

    fn pressure(&self, pressure: Pressure) {
        debug!(target: TARGET, pressure = pressure.as_str(), "something did not fit");
        self.0.pressure(pressure);
    }

    fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
        error!(target: TARGET, method = exchange.known_method(), "a handler panicked: {message}");
        self.0.panicked(exchange, message);
    }

    fn internal_error(&self, exchange: &Exchange<'_>, error: &McpError) {
        error!(target: TARGET, method = exchange.known_method(), "a handler failed: {error:?}");
        self.0.internal_error(exchange, error);
    }

    fn session_opened(&self, session: &Session) {
        debug!(target: TARGET, session = %session_hash(session.id()), "a session was opened");
        self.0.session_opened(session);
    }

    fn session_closed(&self, session: &Session, end: SessionEnd) {
        debug!(target: TARGET, session = %session_hash(session.id()), ?end, "a session has ended");
        self.0.session_closed(session, end);
    }

    fn misuse(&self, misuse: &Misuse) {
        warn!(target: TARGET, "{misuse}");
        self.0.misuse(misuse);
    }
}

/// Tells sessions apart, and nothing more: whoever has the id, has the session.
pub(super) fn session_hash(id: &str) -> String {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
