//! What the transport does with each request, told on standard error.

use mcp_transport::{Exchange, ExchangeEnd, McpError, Misuse, Observer, Refusal};

pub struct Log;

impl Observer for Log {
    fn refused(&self, refusal: &Refusal) {
        eprintln!("refused: {:?}: {refusal}", refusal.kind());
    }

    fn exchange_started(&self, exchange: &Exchange<'_>) {
        eprintln!("started: {} {}", exchange.revision(), exchange.method());
    }

    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        eprintln!("ended: {} {}: {end:?}", exchange.revision(), exchange.method());
    }

    fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
        eprintln!("panicked: {}: {message}", exchange.method());
    }

    fn internal_error(&self, exchange: &Exchange<'_>, error: &McpError) {
        eprintln!("failed: {}: {error:?}", exchange.method());
    }

    fn misuse(&self, misuse: &Misuse) {
        eprintln!("mended: {misuse}");
    }
}
