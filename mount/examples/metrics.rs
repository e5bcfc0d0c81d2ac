//! What the transport's observer hears, as metrics, and Prometheus' text of them on `/metrics`.
//!
//!     cargo run --example metrics -- --http 127.0.0.1:8080
//!     curl http://127.0.0.1:8080/metrics

use axum::Router;
use axum::routing::get;
use mcp_transport::{
    Capabilities, Exchange, ExchangeEnd, McpError, McpHandler, Observer, Pressure, Refusal, Reply, Request,
    RequestContext, ServerInfo, Session, SessionEnd, StreamKind, StreamableHttpService,
};
use metrics::{counter, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;

/// Counts. Every label has few values, whatever clients send.
struct Metrics;

impl Observer for Metrics {
    fn exchange_started(&self, _: &Exchange<'_>) {
        gauge!("mcp_exchanges_in_flight").increment(1);
    }

    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        gauge!("mcp_exchanges_in_flight").decrement(1);
        let labels = [
            ("era", exchange.era().as_str()),
            ("revision", exchange.revision().as_str()),
            ("method", exchange.known_method()),
            ("outcome", end.as_str()),
        ];
        counter!("mcp_exchanges_total", &labels).increment(1);
    }

    fn refused(&self, refusal: &Refusal) {
        counter!("mcp_refusals_total", "kind" => format!("{:?}", refusal.kind())).increment(1);
    }

    fn stream_began(&self, kind: StreamKind) {
        gauge!("mcp_streams", "kind" => kind.as_str()).increment(1);
    }

    fn stream_ended(&self, kind: StreamKind) {
        gauge!("mcp_streams", "kind" => kind.as_str()).decrement(1);
    }

    fn session_opened(&self, _: &Session) {
        gauge!("mcp_sessions").increment(1);
    }

    fn session_closed(&self, _: &Session, end: SessionEnd) {
        gauge!("mcp_sessions").decrement(1);
        counter!("mcp_sessions_ended_total", "end" => format!("{end:?}")).increment(1);
    }

    fn pressure(&self, pressure: Pressure) {
        counter!("mcp_pressure_total", "what" => pressure.as_str()).increment(1);
    }
}

struct Hello;

impl McpHandler for Hello {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("hello", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
        let schema = json!({ "type": "object" });
        match request.method() {
            "tools/list" => Reply::of(json!({ "tools": [{ "name": "hello", "inputSchema": schema }] })),
            "tools/call" => Reply::of(json!({ "content": [{ "type": "text", "text": "Hello!" }] })),
            _ => Err(McpError::method_not_found()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().skip_while(|argument| argument != "--http").nth(1);
    let prometheus = PrometheusBuilder::new().install_recorder()?;
    let mcp = StreamableHttpService::builder(Hello).observer(Metrics).build()?;
    let app = Router::new().route_service("/mcp", mcp).route("/metrics", get(async move || prometheus.render()));
    let listener = tokio::net::TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
