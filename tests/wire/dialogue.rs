//! Questions to the client: one handler, asked in every era's own way.

mod ends;
mod hand;
mod kinds;
mod related;
mod rounds;
mod same;
mod sealed;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_transport::{
    AskError, Capabilities, ElicitationAction, Exchange, ExchangeEnd, InputResponse, Limits, McpError, Misuse,
    Observer, Reply, Request, RequestContext, StateKeys, StreamableHttpBuilder, StreamableHttpService,
};
use serde_json::{Value, json};

pub use self::same::interview;

use crate::harness::{Cx, Wire};
use crate::support::client::Client;
use crate::support::dialogue::{self, said};
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    same::register(wire);
    related::register(wire);
    kinds::register(wire);
    ends::register(wire);
    rounds::register(wire);
    sealed::register(wire);
    hand::register(wire);
}

/// A service under test and a client of it.
struct Bench {
    service: StreamableHttpService,
    client: Client,
    heard: Heard,
    /// How often the handler ran.
    runs: Arc<AtomicUsize>,
}

impl Bench {
    /// Answers every request by `request`, but has no tools.
    async fn open<F, Fut>(cx: Cx, request: F) -> Self
    where
        F: Fn(Request, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply, McpError>> + Send + 'static,
    {
        Self::with(cx, request, |builder| builder).await
    }

    async fn with<F, Fut>(
        cx: Cx,
        request: F,
        configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
    ) -> Self
    where
        F: Fn(Request, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply, McpError>> + Send + 'static,
    {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let script = Script::new(move |message: Request, cx| {
            // The transport lists the tools before it calls one.
            let answer = (message.method() != "tools/list").then(|| {
                counted.fetch_add(1, Ordering::SeqCst);
                request(message, cx)
            });
            async {
                match answer {
                    Some(answer) => answer.await,
                    None => Reply::of(json!({"tools": []})),
                }
            }
        });
        Self { runs, ..Self::of(cx, script, configure).await }
    }

    async fn of(
        cx: Cx,
        script: Script,
        configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
    ) -> Self {
        let heard = Heard::default();
        let capabilities = Capabilities::new().tools_list_changed().prompts().resources_subscribe().logging();
        let builder = StreamableHttpService::builder(script.declaring(capabilities)).observer(heard.clone());
        let service = configure(builder).build().expect("a service");
        let client = cx.serve(service.clone()).await;
        Self { service, client, heard, runs: Arc::default() }
    }

    fn take_runs(&self) -> usize {
        self.runs.swap(0, Ordering::SeqCst)
    }
}

/// A tool's result.
fn text(text: impl AsRef<str>) -> Result<Reply, McpError> {
    Reply::of(json!({"content": [{"type": "text", "text": text.as_ref()}]}))
}

/// What became of a question, in words: what was said, or what the user did, or the error.
fn told(outcome: &Result<InputResponse, AskError>) -> String {
    match outcome {
        Ok(response) => match response.action() {
            Some(action) if action != ElicitationAction::Accept => format!("{action:?}"),
            _ => said(response),
        },
        Err(error) => format!("{error:?}"),
    }
}

/// A call of the one tool, of 2026-07-28.
fn modern() -> Call {
    dialogue::call("tools/call", json!({"name": "t", "arguments": {"a": 1, "b": [2, {"c": 3, "d": 4}]}}))
}

/// Two services that have nothing in common but their keys, under limits that no test of rounds reaches by accident.
fn with_keys(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    builder.state_keys(&StateKeys::new([7; 32]))
}

fn wide(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    with_keys(builder).limits(Limits::default().rounds(1_000).state_bytes(1 << 20))
}

/// What the observer heard, in order.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panicked"))
    }

    fn note(&self, what: String) {
        self.0.lock().expect("nobody panicked").push(what);
    }
}

impl Observer for Heard {
    fn internal_error(&self, _: &Exchange<'_>, error: &McpError) {
        let source = std::error::Error::source(error).map(ToString::to_string);
        self.note(format!("internal: {}", source.unwrap_or_default()));
    }

    fn misuse(&self, misuse: &Misuse) {
        self.note(format!("{misuse:?}"));
    }

    fn panicked(&self, _: &Exchange<'_>, message: &str) {
        self.note(format!("panicked: {message}"));
    }

    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        if end == ExchangeEnd::InputRequired {
            self.note(format!("input required: {}", exchange.method()));
        }
    }
}

/// The `error` of a response.
fn error(response: &Value) -> &Value {
    response.get("error").unwrap_or_else(|| panic!("no error: {response}"))
}
