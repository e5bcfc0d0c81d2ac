//! How a request is answered: the form its answer takes, what travels on it, and every way it can end.

mod answer;
mod drain;
mod error_text;
mod form;
mod leak;
mod legacy;
mod limit;
mod panic;
mod progress;
mod stalled;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_transport::{
    CancelCause, Counts, Exchange, ExchangeEnd, Limits, McpError, Misuse, Observer, Refusal, Reply, RequestContext,
    StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::harness::{Cx, Wire};
use crate::support::client::Answer;
use crate::support::handler::Script;
use crate::support::request::{Call, LOG_LEVEL, meta};

/// A method that the handler answers in every revision, and that no header but `Mcp-Method` has to mirror.
const METHOD: &str = "completion/complete";

/// The progress token of [`work`].
const TOKEN: &str = "token";

/// The notification that [`tell`] sends.
const TOLD: &str = "notifications/told";

pub fn register(wire: &mut Wire) {
    form::register(wire);
    answer::register(wire);
    stalled::register(wire);
    progress::register(wire);
    panic::register(wire);
    error_text::register(wire);
    leak::register(wire);
    drain::register(wire);
    limit::register(wire);
    legacy::register(wire);
}

/// A request that gets to the handler and asks to hear all it has to say.
fn work(cx: Cx) -> Call {
    let mut call = Call::of(cx.revision, METHOD, json!({"_meta": {"progressToken": TOKEN}}));
    if cx.modern() {
        call.set(&meta(LOG_LEVEL), "debug");
    }
    call
}

/// The service, with these limits.
fn limited(script: Script, limits: Limits) -> StreamableHttpService {
    StreamableHttpService::builder(script).limits(limits).build().expect("a service")
}

/// The service, and all its observer hears.
fn observed(script: Script, limits: Limits) -> (StreamableHttpService, Heard) {
    let heard = Heard::default();
    let service = StreamableHttpService::builder(script).limits(limits).observer(heard.clone()).build();
    (service.expect("a service"), heard)
}

/// Sends a notification that says `n`.
async fn tell(cx: &RequestContext, n: usize) {
    cx.notify(TOLD, json!({"n": n})).await.expect("a notification");
}

/// What [`tell`] says, as it stands on the wire.
fn told(n: usize) -> Value {
    json!({"jsonrpc": "2.0", "method": TOLD, "params": {"n": n}})
}

/// A result that is told from others by `n`.
fn reply(n: usize) -> Result<Reply, McpError> {
    Reply::of(json!({"n": n}))
}

/// Whether a message is the response with the result of [`reply`].
fn is_reply(message: &Value, n: usize) -> bool {
    message["id"] == 1 && message["result"]["n"] == n && message.get("error").is_none()
}

/// Whether a message is the response that says nothing but that something failed inside.
fn is_internal(message: &Value) -> bool {
    message["id"] == 1
        && message["error"] == json!({"code": -32603, "message": "Internal error"})
        && message.get("result").is_none()
}

/// Whether a message is the response to a request that took too long.
fn is_late(message: &Value) -> bool {
    message["id"] == 1 && message["error"] == json!({"code": -32603, "message": "The request timed out"})
}

/// Whether a message is the response to a request that a drain has cut.
fn is_drained(message: &Value) -> bool {
    message["id"] == 1 && message["error"] == json!({"code": -32603, "message": "The server is shutting down"})
}

/// The messages of a whole event stream up to its response, which is the last of all.
async fn messages(answer: Answer) -> (Vec<Value>, Value) {
    assert_eq!(answer.status, 200);
    let mut messages = answer.events().await;
    let response = messages.pop().expect("a response");
    assert!(response.get("id").is_some(), "the last message is no response: {response}");
    assert!(messages.iter().all(|message| message.get("id").is_none()), "{messages:?}");
    (messages, response)
}

/// Something that happens some number of times, and can be waited for.
#[derive(Clone, Debug)]
struct Signal(Arc<Semaphore>);

impl Signal {
    fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    fn give(&self) {
        self.0.add_permits(1);
    }

    /// Waits until it has happened once more.
    async fn taken(&self) {
        self.0.acquire().await.expect("never closed").forget();
    }

    /// How often it has happened without being waited for.
    fn count(&self) -> usize {
        self.0.available_permits()
    }
}

/// Notes why the request was cancelled when it is dropped, and that it was.
struct Guard {
    cx: RequestContext,
    ends: Ends,
}

/// What the guards noted.
#[derive(Clone, Debug)]
struct Ends {
    dropped: Signal,
    causes: Arc<Mutex<Vec<Option<CancelCause>>>>,
}

impl Ends {
    fn new() -> Self {
        Self { dropped: Signal::new(), causes: Arc::default() }
    }

    fn guard(&self, cx: &RequestContext) -> Guard {
        Guard { cx: cx.clone(), ends: self.clone() }
    }

    /// Waits for the next one to be dropped, and returns why.
    async fn next(&self) -> Option<CancelCause> {
        self.dropped.taken().await;
        self.causes.lock().unwrap().remove(0)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.ends.causes.lock().unwrap().push(self.cx.cancel_cause());
        self.ends.dropped.give();
    }
}

/// Writes down what an observer hears.
#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }

    /// All that was heard whose first word is `kind`.
    fn of(&self, kind: &str) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let split = all.iter().filter_map(|line| line.split_once(": "));
        split.filter(|(word, _)| *word == kind).map(|(_, rest)| rest.to_owned()).collect()
    }
}

impl Observer for Heard {
    fn refused(&self, refusal: &Refusal) {
        self.note(format!("refused: {:?}", refusal.kind()));
    }

    fn exchange_started(&self, exchange: &Exchange<'_>) {
        self.note(format!("started: {}", exchange.method()));
    }

    fn exchange_ended(&self, _: &Exchange<'_>, end: ExchangeEnd) {
        self.note(format!("ended: {end:?}"));
    }

    fn stream_opened(&self, exchange: &Exchange<'_>) {
        self.note(format!("stream: {}", exchange.method()));
    }

    fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
        self.note(format!("panicked: {} {message}", exchange.method()));
    }

    fn internal_error(&self, exchange: &Exchange<'_>, error: &McpError) {
        self.note(format!("internal: {} {error:?}", exchange.method()));
    }

    fn misuse(&self, misuse: &Misuse) {
        self.note(format!("misuse: {misuse}"));
    }
}

/// Waits until the server has noticed that its clients are gone. One that never does makes the trial hang.
async fn all_quiet(service: &StreamableHttpService) {
    while service.counts() != Counts::default() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
