//! What an observer can count: exchanges, streams, and what did not fit.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request as HttpRequest};
use mcp_transport::testing::{AnswerStream, Client};
use mcp_transport::{
    Capabilities, EventStore, Exchange, ExchangeEnd, Limits, McpError, McpHandler, Observer, Pressure, Progress, Reply,
    Request, RequestContext, Revision, ServerInfo, StreamKind, StreamableHttpBuilder, StreamableHttpService,
};
use serde_json::json;

/// Reports as often as `params.arguments.reports` says, and as long as a report may be; or waits for ever.
struct Reporter;

impl McpHandler for Reporter {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("reporter", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method() == "tools/list" {
            return Reply::of(json!({ "tools": [] }));
        }
        if request.name() == Some("waits") {
            cx.progress(Progress::new(1.0)).await;
            pending::<()>().await;
        }
        let reports: u32 = request.arguments::<BTreeMap<String, u32>>()?.get("reports").copied().unwrap_or_default();
        for report in 0..reports {
            cx.progress(Progress::new(report.into()).message("x".repeat(200))).await;
        }
        Reply::of(json!({ "content": [], "trace": cx.trace_context().traceparent() }))
    }
}

/// Counts by label, as an exporter of metrics does.
#[derive(Clone, Debug, Default)]
struct Counter(Arc<Mutex<BTreeMap<String, i64>>>);

impl Counter {
    fn add(&self, label: String, by: i64) {
        *self.0.lock().expect("nobody panicked").entry(label).or_default() += by;
    }

    fn get(&self, label: &str) -> i64 {
        self.0.lock().expect("nobody panicked").get(label).copied().unwrap_or_default()
    }
}

impl Observer for Counter {
    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        let (era, revision) = (exchange.era().as_str(), exchange.revision().as_str());
        self.add(format!("{era} {revision} {} {}", exchange.known_method(), end.as_str()), 1);
    }

    fn stream_began(&self, kind: StreamKind) {
        self.add(kind.as_str().to_owned(), 1);
        self.add("streams".to_owned(), 1);
    }

    fn stream_ended(&self, kind: StreamKind) {
        self.add(format!("{} ended", kind.as_str()), 1);
        self.add("streams".to_owned(), -1);
    }

    fn pressure(&self, pressure: Pressure) {
        self.add(pressure.as_str().to_owned(), 1);
    }
}

fn served(configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> (StreamableHttpService, Counter) {
    let counter = Counter::default();
    let builder = configure(StreamableHttpService::builder(Reporter).observer(counter.clone()));
    (builder.build().expect("a service"), counter)
}

fn reports(client: &Client, revision: Revision, reports: u32) -> mcp_transport::testing::Call {
    let params = json!({ "name": "reports", "arguments": { "reports": reports }, "_meta": { "progressToken": 1 } });
    client.call(revision, "tools/call", params)
}

/// The id of a session that is open.
async fn session(client: &Client, revision: Revision) -> String {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": info });
    let opened = client.call(revision, "initialize", params).await;
    let id = opened.headers["mcp-session-id"].to_str().expect("text").to_owned();
    client.notify(revision, "notifications/initialized", ()).header("mcp-session-id", &id).await;
    id
}

async fn get(client: &Client, session: &str, last: Option<&str>) -> AnswerStream {
    let request = HttpRequest::builder().method(Method::GET).uri("/mcp").header("accept", "text/event-stream");
    let request = request.header("mcp-session-id", session);
    let request = if let Some(last) = last { request.header("last-event-id", last) } else { request };
    client.send(request.body("".into()).expect("a request")).stream().await
}

#[tokio::test(start_paused = true)]
async fn exchanges_by_era_revision_method_and_outcome() {
    let (service, counter) = served(|builder| builder);
    let client = Client::new(service);
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        client.call(revision, "tools/list", ()).await;
        client.call(revision, "acme/anything", json!({ "arguments": [] })).await;
    }
    assert_eq!(counter.get("legacy 2025-06-18 tools/list result"), 1);
    assert_eq!(counter.get("modern 2026-07-28 tools/list result"), 1);
    assert_eq!(counter.get("legacy 2025-06-18 other error"), 1);
    assert_eq!(counter.get("modern 2026-07-28 other error"), 1);
}

#[tokio::test(start_paused = true)]
async fn every_stream_begins_and_ends() {
    let (service, counter) = served(|builder| builder.event_store(EventStore::InMemory));
    let client = Client::new(service.clone());
    reports(&client, Revision::V2026_07_28, 1).await;
    assert_eq!((counter.get("answer"), counter.get("answer ended")), (1, 1));

    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let listening = client.call(Revision::V2026_07_28, "subscriptions/listen", filter).stream().await;
    let id = session(&client, Revision::V2025_06_18).await;
    let general = get(&client, &id, None).await;
    assert_eq!((counter.get("subscription"), counter.get("general"), counter.get("streams")), (1, 1, 2));
    assert_eq!(service.counts().streams, 2);
    drop((listening, general));
    assert_eq!((counter.get("subscription ended"), counter.get("general ended"), counter.get("streams")), (1, 1, 0));
}

/// A client that leaves its answer and comes back for it.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_resumed_is_one_more() {
    let (service, counter) = served(|builder| builder.event_store(EventStore::InMemory));
    let client = Client::new(service);
    let id = session(&client, Revision::V2025_06_18).await;
    let waits = json!({ "name": "waits", "_meta": { "progressToken": 1 } });
    let call = client.call(Revision::V2025_06_18, "tools/call", waits).header("mcp-session-id", &id);
    let mut left = call.stream().await;
    left.next().await;
    let last = left.last_event_id().expect("its events have ids").to_owned();
    drop(left);
    let resumed = get(&client, &id, Some(&last)).await;
    assert_eq!((counter.get("answer ended"), counter.get("resumed"), counter.get("streams")), (1, 1, 1));
    drop(resumed);
    assert_eq!((counter.get("resumed ended"), counter.get("streams")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_told() {
    let (service, counter) = served(|builder| builder.limits(Limits::default().queue_bytes(1024)));
    let client = Client::new(service.clone());
    let call = reports(&client, Revision::V2026_07_28, 3).header("accept", "application/json");
    call.await.result();
    assert_eq!((counter.get("message_dropped"), counter.get("queue_full")), (3, 0));

    // Four of them do not fit at once, and nobody reads yet.
    let stream = reports(&client, Revision::V2026_07_28, 8).stream().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(counter.get("queue_full"), 1);
    assert_eq!(stream.finish().await.notifications().len(), 8);

    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = client.call(Revision::V2026_07_28, "subscriptions/listen", filter).stream().await;
    listening.next().await;
    (0..3).for_each(|_| service.changes().tools_list_changed());
    assert_eq!(counter.get("change_merged"), 2);
    listening.next().await;
    service.changes().tools_list_changed();
    assert_eq!(counter.get("change_merged"), 2, "one that was read is not merged with");
}

#[tokio::test(start_paused = true)]
async fn events_that_go_for_newer_ones_are_told() {
    let limits = Limits::default().stored_events(3);
    let (service, counter) = served(|builder| builder.event_store(EventStore::InMemory).limits(limits));
    let client = Client::new(service);
    let id = session(&client, Revision::V2025_06_18).await;
    reports(&client, Revision::V2025_06_18, 5).header("mcp-session-id", &id).await.result();
    // Of five reports, the answer, and that the stream has ended.
    assert_eq!(counter.get("event_evicted"), 4);
}

#[tokio::test(start_paused = true)]
async fn the_trace_reaches_the_handler_on_every_revision() {
    let (service, _) = served(|builder| builder);
    let client = Client::new(service);
    for revision in Revision::ALL {
        for (sent, read) in [
            (json!("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"), true),
            (json!("00-00000000000000000000000000000000-00f067aa0ba902b7-01"), false),
            (json!(7), false),
        ] {
            let params = json!({ "name": "x", "_meta": { "traceparent": sent } });
            let call = client.call(revision, "tools/call", params);
            // The head belongs to another hop.
            let answer = call.header("traceparent", "00-11111111111111111111111111111111-00f067aa0ba902b7-01").await;
            assert_eq!(answer.result()["trace"], if read { sent } else { json!(null) }, "{revision}");
        }
    }
}

/// Panics when an exchange begins.
struct Panics;

impl Observer for Panics {
    fn exchange_started(&self, _: &Exchange<'_>) {
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

/// Of a session that could not be announced nobody would ever hear again: it would neither give way nor expire.
#[tokio::test]
async fn an_observer_that_panics_leaves_no_session() {
    let service = StreamableHttpService::builder(Reporter).observer(Panics).build().expect("a good configuration");
    let initialize = tokio::spawn({
        let client = Client::new(service.clone());
        async move { drop(client.session(Revision::V2025_11_25).await) }
    });
    assert!(initialize.await.is_err_and(|error| error.is_panic()));
    assert_eq!(service.counts(), mcp_transport::Counts::default());
}
