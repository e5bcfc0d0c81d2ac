//! What a POST of 2026-07-28 asks and gets, and what that revision no longer has.

mod cancel;
mod envelope;
mod gone;
mod headers;
mod outcome;
mod parameters;
mod results;
mod sources;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_transport::{
    Exchange, ExchangeEnd, McpError, Misuse, Observer, Refusal, RefusalKind, Reply, StreamableHttpBuilder,
    StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::{Cx, Wire};
use crate::support::client::{Client, assert_error};
use crate::support::handler::Script;
use crate::support::request::{Call, ID};

pub fn register(wire: &mut Wire) {
    envelope::register(wire);
    headers::register(wire);
    parameters::register(wire);
    sources::register(wire);
    outcome::register(wire);
    gone::register(wire);
    results::register(wire);
    cancel::register(wire);
}

/// A server whose handler answers everything, and counts what it was asked and told.
struct Site {
    client: Client,
    heard: Heard,
    runs: Arc<AtomicUsize>,
}

impl Site {
    async fn open(cx: Cx) -> Self {
        Self::listing(cx, json!([])).await
    }

    /// With these tools.
    async fn listing(cx: Cx, tools: Value) -> Self {
        Self::built(cx, tools, |builder| builder).await
    }

    async fn built(cx: Cx, tools: Value, build: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> Self {
        let runs = Arc::new(AtomicUsize::new(0));
        let (asked, told) = (Arc::clone(&runs), Arc::clone(&runs));
        let handler = Script::new(move |request, _| {
            let answer = if request.method() == "tools/list" {
                Reply::of(json!({"tools": tools}))
            } else {
                asked.fetch_add(1, Ordering::SeqCst);
                Reply::of(json!({"ran": request.method()}))
            };
            async { answer }
        })
        .hearing(move |_, _| {
            told.fetch_add(1, Ordering::SeqCst);
            async {}
        });
        let heard = Heard::default();
        let service = build(StreamableHttpService::builder(handler).observer(heard.clone())).build();
        Self { client: cx.serve(service.expect("a service")).await, heard, runs }
    }

    /// Sends a message and judges what became of it.
    async fn verdict(&self, call: Call) -> Verdict {
        let before = self.runs.load(Ordering::SeqCst);
        let answer = self.client.send(call).await;
        let ran = self.runs.load(Ordering::SeqCst) - before;
        let status = answer.status.as_u16();
        if status == 202 {
            assert_eq!(answer.header("content-type"), "", "a 202 says nothing");
            assert_eq!((answer.text().await.as_str(), ran), ("", 1));
            return Verdict::Heard;
        }
        let response = answer.json().await;
        if response.get("error").is_none() {
            assert_eq!((status, ran), (200, 1), "{response}");
            assert!(response["result"].is_object(), "{response}");
            return Verdict::Ran;
        }
        assert_eq!(ran, 0, "refused, yet the handler ran");
        let (code, id) = (response["error"]["code"].as_i64().expect("a code"), response.get("id").cloned());
        assert_error(response, code, id.as_ref());
        Verdict::Refused(status, code, id)
    }

    /// Sends a request whose handler must run.
    async fn passes(&self, call: Call, what: &str) {
        assert_eq!(self.verdict(call).await, Verdict::Ran, "{what}");
    }

    /// Sends a request that must be refused with 400 and this code, under its own id.
    async fn refuses(&self, code: i64, call: Call, what: &str) {
        assert_eq!(self.verdict(call).await, refused(400, code), "{what}");
    }
}

/// What became of a message.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// The handler ran, once, and its result came with 200.
    Ran,
    /// It was a notification, and the handler heard it.
    Heard,
    /// An error of this status, code and id came as JSON, and the handler did not run.
    Refused(u16, i64, Option<Value>),
}

/// A refusal under the request's own id.
fn refused(status: u16, code: i64) -> Verdict {
    Verdict::Refused(status, code, Some(ID.into()))
}

/// A refusal without an id.
fn refused_bare(status: u16, code: i64) -> Verdict {
    Verdict::Refused(status, code, None)
}

const MISMATCH: i64 = -32020;
const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;

/// Remembers what the application is told.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Told>>, Arc<Notify>);

#[derive(Default)]
struct Told {
    misuses: Vec<String>,
    refusals: Vec<RefusalKind>,
    panics: Vec<String>,
    internal_errors: Vec<String>,
    ends: VecDeque<(String, ExchangeEnd)>,
}

impl Heard {
    fn misuses(&self) -> Vec<String> {
        self.with(|told| std::mem::take(&mut told.misuses))
    }

    fn refusals(&self) -> Vec<RefusalKind> {
        self.with(|told| std::mem::take(&mut told.refusals))
    }

    fn panics(&self) -> Vec<String> {
        self.with(|told| std::mem::take(&mut told.panics))
    }

    fn internal_errors(&self) -> Vec<String> {
        self.with(|told| std::mem::take(&mut told.internal_errors))
    }

    /// Waits for the next exchange to end: its method, and how.
    async fn end(&self) -> (String, ExchangeEnd) {
        loop {
            if let Some(end) = self.with(|told| told.ends.pop_front()) {
                return end;
            }
            self.1.notified().await;
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Told) -> T) -> T {
        look(&mut self.0.lock().expect("no test panics in here"))
    }
}

impl Observer for Heard {
    fn refused(&self, refusal: &Refusal) {
        self.with(|told| told.refusals.push(refusal.kind()));
    }

    fn exchange_ended(&self, exchange: &Exchange<'_>, end: ExchangeEnd) {
        self.with(|told| told.ends.push_back((exchange.method().to_owned(), end)));
        self.1.notify_one();
    }

    fn panicked(&self, _: &Exchange<'_>, message: &str) {
        self.with(|told| told.panics.push(message.to_owned()));
    }

    fn internal_error(&self, _: &Exchange<'_>, error: &McpError) {
        self.with(|told| told.internal_errors.push(format!("{error:?}")));
    }

    fn misuse(&self, misuse: &Misuse) {
        self.with(|told| told.misuses.push(misuse.to_string()));
    }
}

/// A call of a tool named `echo`, with everything it needs.
fn tool_call(arguments: Value) -> Call {
    let mut call = Call::modern("tools/call", json!({"name": "echo"}));
    call.set("/params/arguments", arguments);
    call
}
