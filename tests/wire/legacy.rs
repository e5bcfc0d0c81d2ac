//! POST up to 2025-11-25: sessions, and what is done in them. What holds without one is in `sessionless`.

mod cancel;
mod hooks;
mod idle;
mod ids;
mod log;
mod messages;
mod opening;
mod sessions;
mod subscribing;
mod words;

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{
    CancelCause, Capabilities, ExchangeEnd, Limits, McpError, Observer, Reply, RequestContext, Session as Opened,
    SessionEnd, StreamableHttpBuilder, StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::{Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, SESSION_ID};
use crate::support::session::{self, ACCOUNT, Session};

pub fn register(wire: &mut Wire) {
    opening::register(wire);
    sessions::register(wire);
    idle::register(wire);
    hooks::register(wire);
    ids::register(wire);
    messages::register(wire);
    log::register(wire);
    subscribing::register(wire);
    cancel::register(wire);
    words::register(wire);
}

/// A service whose handler is held by the test, and a client of it.
///
/// `x/work` sends as many `notifications/x` as its params say under `sends`, and then waits for [`Run::go`]. Any other
/// method is answered at once with itself.
struct Bench {
    service: StreamableHttpService,
    client: Client,
    runs: tokio::sync::Mutex<UnboundedReceiver<Run>>,
    life: Life,
}

/// One run of `x/work`.
struct Run {
    cx: RequestContext,
    go: Option<oneshot::Sender<Then>>,
    end: oneshot::Receiver<End>,
}

/// How a run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Answer,
    Fail,
    Panic,
}

/// How it did end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At its last line.
    Whole,
    /// Its future was dropped.
    Dropped,
}

impl Bench {
    async fn open(cx: Cx) -> Self {
        Self::with(cx, |builder| builder).await
    }

    /// One that is configured. Its principals come from [`ACCOUNT`].
    async fn with(cx: Cx, configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> Self {
        Self::of(cx, Script::declaring, configure).await
    }

    /// One whose script is changed too.
    async fn of(
        cx: Cx,
        declare: impl FnOnce(Script, Capabilities) -> Script,
        configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
    ) -> Self {
        let (started, runs) = unbounded_channel();
        let life = Life::default();
        let script = life.watch(declare(script(started, life.clone()), everything()));
        // Most of these streams are read when their test has come so far.
        let patient = Limits::default().unread_time(Duration::MAX);
        let builder = StreamableHttpService::builder(script).observer(life.clone()).principal(account).limits(patient);
        let service = configure(builder).build().expect("a service");
        let client = cx.serve(service.clone()).await;
        Self { service, client, runs: runs.into(), life }
    }

    async fn session(&self, cx: Cx) -> Session {
        session::open(&self.client, cx.revision).await
    }

    /// Sends a call and does not wait for the answer.
    fn send(&self, call: Call) -> JoinHandle<Answer> {
        send(&self.client, call)
    }

    /// The next run of `x/work`.
    async fn run(&self) -> Run {
        self.runs.lock().await.recv().await.expect("a run")
    }

    /// Sends a call of `x/work` and waits until its handler waits.
    async fn work(&self, call: Call) -> (JoinHandle<Answer>, Run) {
        let asking = self.send(call);
        (asking, self.run().await)
    }
}

fn send(client: &Client, call: Call) -> JoinHandle<Answer> {
    let client = client.clone();
    tokio::spawn(async move { client.send(call).await })
}

impl Run {
    /// Lets the handler go on.
    fn go(&mut self, then: Then) {
        self.go.take().expect("it waits").send(then).expect("its future is there");
    }

    /// Waits for its end.
    async fn end(&mut self) -> End {
        (&mut self.end).await.expect("an end")
    }

    /// Whether it still waits.
    fn waits(&mut self) -> bool {
        self.cx.cancel_cause().is_none() && self.end.try_recv().is_err()
    }
}

/// Everything that can be declared.
fn everything() -> Capabilities {
    let lists = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
    lists.resources_subscribe().completions().logging()
}

fn account(head: &http::request::Parts) -> Option<mcp_transport::Principal> {
    let name = head.headers.get(ACCOUNT)?.to_str().ok()?;
    Some(mcp_transport::Principal::new(name))
}

fn script(started: UnboundedSender<Run>, life: Life) -> Script {
    let told = life.clone();
    let script = Script::new(move |request, cx| {
        let started = started.clone();
        life.note(format!("request {}", request.method()));
        async move {
            if request.method() == "x/work" {
                return work(request.params()?, cx, started).await;
            }
            let session = cx.session().map(|session| session.id().to_owned());
            Reply::of(json!({"method": request.method(), "revision": cx.revision().as_str(), "session": session}))
        }
    });
    script.hearing(move |notification, _| {
        told.note(format!("notification {}", notification.method()));
        async {}
    })
}

async fn work(params: Value, cx: RequestContext, started: UnboundedSender<Run>) -> Result<Reply, McpError> {
    let (ended, end) = oneshot::channel();
    let mut end_of = Ended(Some(ended));
    for n in 0..params["sends"].as_u64().unwrap_or_default() {
        cx.notify("notifications/x", json!({ "n": n })).await?;
    }
    let (go, goes) = oneshot::channel();
    let _ = started.send(Run { cx: cx.clone(), go: Some(go), end });
    let then = goes.await.map_err(McpError::internal)?;
    for n in 0..params["more"].as_u64().unwrap_or_default() {
        cx.notify("notifications/x", json!({ "more": n })).await?;
    }
    end_of.tell(End::Whole);
    match then {
        Then::Answer => Reply::of(json!({"done": params["tag"]})),
        Then::Fail => Err(McpError::new(7, "no")),
        Then::Panic => resume_unwind(Box::new("as the test says")),
    }
}

/// Tells how a run ended.
struct Ended(Option<oneshot::Sender<End>>);

impl Ended {
    fn tell(&mut self, end: End) {
        if let Some(ended) = self.0.take() {
            let _ = ended.send(end);
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.tell(End::Dropped);
    }
}

/// What came to pass in a service, in order.
#[derive(Clone, Debug, Default)]
struct Life(Arc<Mutex<Vec<String>>>);

impl Life {
    fn note(&self, what: String) {
        self.0.lock().expect("nobody panicked").push(what);
    }

    /// All since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panicked"))
    }

    /// Has the handler's session hooks told too.
    fn watch(&self, script: Script) -> Script {
        let (opened, closed) = (self.clone(), self.clone());
        script.watching(
            move |session: &Opened| opened.note(format!("opened {}", session.id())),
            move |session: &Opened, end: SessionEnd| closed.note(format!("closed {} {end:?}", session.id())),
        )
    }
}

impl Observer for Life {
    fn exchange_ended(&self, exchange: &mcp_transport::Exchange<'_>, end: ExchangeEnd) {
        if let ExchangeEnd::Cancelled(cause) = end {
            self.note(format!("{} cancelled {cause:?}", exchange.method()));
        }
    }
}

/// The cause that [`Life`] notes for a request its client cancelled.
fn cancelled(cause: CancelCause) -> String {
    format!("x/work cancelled {cause:?}")
}

/// All that a client could send in a session: what is refused with its id, and what without.
fn everything_said(session: &Session) -> (Vec<Call>, Vec<Call>) {
    let version = json!({"protocolVersion": session.revision.as_str(), "capabilities": {}});
    let requests = ["x/quick", "tools/call", "ping", "logging/setLevel", "resources/subscribe", "initialize"];
    let requests = requests.map(|method| session.call(method, version.clone()));
    let notifications = ["notifications/initialized", "notifications/cancelled", "notifications/x"];
    let mut others: Vec<_> =
        notifications.into_iter().map(|method| session.notification(method, json!({"requestId": 1}))).collect();
    others.push(session.post(json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    others.push(session.post(json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])));
    others.extend([session.get(), session.get().header("last-event-id", "1"), session.delete()]);
    (requests.into(), others)
}

/// All of an answer that could tell one refusal from another.
async fn print(answer: Answer) -> (StatusCode, Vec<(String, String)>, String) {
    let headers = answer.headers.iter().filter(|(name, _)| *name != "date");
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    headers.sort();
    (answer.status, headers, answer.text().await)
}

/// Asserts that nothing in a session's name is known to the server.
async fn assert_unknown(session: &Session) {
    let (requests, others) = everything_said(session);
    for (call, id) in
        requests.into_iter().map(|call| (call, Some(json!(1)))).chain(others.into_iter().map(|c| (c, None)))
    {
        let answer = session.client.send(call).await;
        assert_eq!(answer.header(SESSION_ID), "");
        answer.error(StatusCode::NOT_FOUND, -32600, id.as_ref()).await;
    }
}
