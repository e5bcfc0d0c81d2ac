//! What a `tracing` subscriber is told (feature `tracing`): one span for every exchange, and nothing of what is said in it.

mod recorder;

use std::sync::Mutex;
use std::time::Duration;

use mcp_transport::testing::{Client, request};
use mcp_transport::{
    Capabilities, McpError, McpHandler, Notification, Progress, Reply, Request, RequestContext, Revision, ServerInfo,
    StreamableHttpService,
};
use recorder::{Fields, Recorder};
use serde_json::{Value, json};
use tracing::subscriber::set_default;
use tracing::{Level, info};

/// Answers as the name of the tool says, and says so from inside.
struct Tools;

impl McpHandler for Tools {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("tools", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools().prompts()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method() == "tools/list" {
            return Reply::of(json!({ "tools": [] }));
        }
        info!(target: "mcp_transport", "begun");
        match request.name() {
            Some("slow") => {
                cx.progress(Progress::new(1.0)).await;
                tokio::time::sleep(Duration::from_secs(60)).await;
                // In a task by now.
                info!(target: "mcp_transport", "gone on");
                Reply::empty()
            }
            Some("fails") => Reply::of(json!({ "content": [], "isError": true })),
            Some("panics") => std::panic::panic_any("the secret"),
            Some("breaks") => Err(McpError::internal("the disk is gone")),
            Some("refuses") => Err(McpError::invalid_params("no")),
            _ => Reply::of(json!({ "content": [] })),
        }
    }

    async fn notification(&self, _: Notification, _: RequestContext) {
        info!(target: "mcp_transport", "heard");
    }
}

/// Runs under a subscriber of its own, and returns what it has written down.
fn recorded(most: Level, run: impl AsyncFnOnce(Client)) -> Recorder {
    // Whether anybody listens is cached for all threads, and a second subscriber may come and go meanwhile.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let recorder = Recorder::up_to(most);
    let _guard = set_default(recorder.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(run(Client::new(StreamableHttpService::new(Tools))));
    recorder
}

fn call(client: &Client, revision: Revision, tool: &str) -> mcp_transport::testing::Call {
    let meta = json!({ "progressToken": 1 });
    client.call(revision, "tools/call", json!({ "name": tool, "arguments": { "pin": "1234" }, "_meta": meta }))
}

fn field<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).map_or("", String::as_str)
}

#[test]
fn every_exchange_is_one_span() {
    for revision in Revision::ALL {
        let recorder = recorded(Level::INFO, async |client| {
            call(&client, revision, "echo").await;
        });
        let [span] = &recorder.spans()[..] else { panic!("{:?}", recorder.spans()) };
        assert!(span.is_closed && span.level == Level::INFO);
        // Outside a session and without a version header, 2024-11-05 is taken for the next.
        let version = if revision == Revision::V2024_11_05 { Revision::V2025_03_26 } else { revision };
        for (name, value) in [
            ("otel.name", "tools/call echo"),
            ("otel.kind", "server"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", version.as_str()),
            ("jsonrpc.request.id", "1"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "echo"),
            ("network.transport", "tcp"),
            ("network.protocol.name", "http"),
            ("network.protocol.version", "1.1"),
            ("era", revision.era().as_str()),
            ("outcome", "result"),
            ("error.type", ""),
        ] {
            assert_eq!(field(&span.fields, name), value, "{revision}: {name}");
        }
    }
}

/// What a client says is recorded as text, which subscribers escape: no line of the log is its own.
#[test]
fn what_a_client_says_displays_nothing_itself() {
    for (method, name) in [("tools/call", "a\nERROR \u{1b}[31mb"), ("prompts/get", "a\nb"), ("x\ny", "a\nb")] {
        let recorder = recorded(Level::TRACE, async |client| {
            let version = "1\n2";
            client.call(Revision::V2025_11_25, method, json!({ "name": name })).await;
            client.call(Revision::V2025_11_25, "initialize", json!({ "protocolVersion": version })).await;
        });
        let of_spans = recorder.spans().into_iter().map(|span| span.fields);
        for fields in of_spans.chain(recorder.events().into_iter().map(|event| event.fields)) {
            assert!(!fields.values().any(|text| text.contains(char::is_control)), "{fields:?}");
        }
    }
}

#[test]
fn how_it_ended_is_recorded() {
    for (tool, outcome, error, code) in [
        ("fails", "result", "tool_error", ""),
        ("refuses", "error", "-32602", "-32602"),
        ("breaks", "error", "-32603", "-32603"),
        ("panics", "error", "-32603", "-32603"),
    ] {
        let recorder = recorded(Level::INFO, async |client| {
            call(&client, Revision::V2026_07_28, tool).await;
        });
        let [span] = &recorder.spans()[..] else { panic!("{:?}", recorder.spans()) };
        let told = ["outcome", "error.type", "rpc.response.status_code", "otel.status_code"];
        assert_eq!(told.map(|name| field(&span.fields, name)), [outcome, error, code, "ERROR"], "{tool}");
    }
}

#[test]
fn the_handler_runs_inside_also_in_a_task() {
    for revision in Revision::ALL {
        let recorder = recorded(Level::INFO, async |client| {
            call(&client, revision, "slow").await;
        });
        let told: Vec<_> =
            recorder.events().iter().map(|event| (field(&event.fields, "message").to_owned(), event.span)).collect();
        assert_eq!(told, [("begun".to_owned(), Some(0)), ("gone on".to_owned(), Some(0))], "{revision}");
    }
}

#[test]
fn a_client_that_leaves_closes_the_span() {
    let recorder = recorded(Level::INFO, async |client| {
        let mut stream = call(&client, Revision::V2026_07_28, "slow").stream().await;
        stream.next().await;
        drop(stream);
        tokio::time::sleep(Duration::from_secs(1)).await;
    });
    let [span] = &recorder.spans()[..] else { panic!("{:?}", recorder.spans()) };
    assert!(span.is_closed);
    assert_eq!(field(&span.fields, "outcome"), "cancelled");
    assert_eq!(field(&span.fields, "error.type"), "disconnected");
}

#[test]
fn a_notification_is_heard_in_a_span() {
    let recorder = recorded(Level::INFO, async |client| {
        client.notify(Revision::V2026_07_28, "notifications/x", ()).await;
    });
    let ([span], [event]) = (&recorder.spans()[..], &recorder.events()[..]) else { panic!("{recorder:?}") };
    assert_eq!((field(&span.fields, "mcp.method.name"), event.span), ("notifications/x", Some(0)));
    assert_eq!(field(&span.fields, "jsonrpc.request.id"), "");
}

#[test]
fn what_goes_wrong_is_an_event() {
    let recorder = recorded(Level::DEBUG, async |client| {
        call(&client, Revision::V2026_07_28, "panics").await;
        call(&client, Revision::V2026_07_28, "breaks").await;
        let mut nameless = request(Revision::V2026_07_28, "tools/call", json!({ "name": "echo" }));
        nameless.headers_mut().remove("mcp-name");
        client.send(nameless).await;
    });
    let events = recorder.events();
    let told = |level, text: &str| {
        let found = events.iter().find(|event| field(&event.fields, "message").contains(text));
        let event = found.unwrap_or_else(|| panic!("{text:?} is not in {events:?}"));
        assert_eq!(event.level, level, "{text}");
        event.clone()
    };
    assert_eq!(told(Level::ERROR, "a handler panicked: the secret").span, Some(0));
    assert_eq!(told(Level::ERROR, "the disk is gone").span, Some(1));
    let refused = told(Level::DEBUG, "expected of Mcp-Name");
    let fields = ["kind", "rung", "status", "code", "subject"].map(|name| field(&refused.fields, name));
    assert_eq!(fields, ["HeaderMismatch", "Era", "400", "-32020", "Mcp-Name"]);
}

/// No argument, no result, no id of a session, at any level.
#[test]
fn nothing_that_is_said_is_told() {
    for revision in Revision::ALL {
        let mut secret = String::new();
        let recorder = recorded(Level::TRACE, async |client| {
            let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {},
                "clientInfo": { "name": "private", "version": "1" } });
            let opened = client.call(revision, "initialize", params).await;
            let id = opened.headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
            let asked = call(&client, revision, "echo");
            match &id {
                Some(id) => drop(asked.header("mcp-session-id", id).await),
                None => drop(asked.await),
            }
            secret = id.unwrap_or_else(|| "1234".to_owned());
        });
        let all = format!("{:?} {:?}", recorder.spans(), recorder.events());
        for word in ["1234", "pin", "private", &secret] {
            assert!(!all.contains(word), "{revision}: {word} in {all}");
        }
        let in_session = all.contains("in a session");
        assert_eq!(in_session, revision < Revision::V2026_07_28, "{all}");
    }
}

/// A text without end is cut.
#[test]
fn what_a_client_writes_is_cut() {
    let recorder = recorded(Level::INFO, async |client| {
        let mut asked: Value = serde_json::from_slice(request(Revision::V2025_03_26, "x", ()).body()).unwrap();
        asked["method"] = "\u{e4}".repeat(1000).into();
        client.send(request(Revision::V2025_03_26, "x", ()).map(|_| asked.to_string().into())).await;
    });
    assert_eq!(field(&recorder.spans()[0].fields, "mcp.method.name"), "\u{e4}".repeat(128));
}
