//! Resuming, up to 2025-11-25, where an event store is configured: streams whose events have ids, and clients that come
//! back for the rest.

mod cancelled;
mod drops;
mod finished;
mod general;
mod hostile;
mod ids;
mod kept;
mod poll;
mod replays;
mod shutdown;

use std::time::Duration;

use http::StatusCode;
use mcp_transport::{
    Capabilities, EventStore, McpError, Principal, Reply, Request, RequestContext, Revision, StreamableHttpBuilder,
    StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::harness::{Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::Call;
use crate::support::session::{self, ACCOUNT, Session};
use crate::support::sse::{Event, Frame};

pub fn register(wire: &mut Wire) {
    ids::register(wire);
    replays::register(wire);
    finished::register(wire);
    general::register(wire);
    poll::register(wire);
    cancelled::register(wire);
    kept::register(wire);
    drops::register(wire);
    hostile::register(wire);
    shutdown::register(wire);
}

pub const LAST_EVENT_ID: &str = "last-event-id";

/// A service with an event store, whose handler the test holds: `x/work` waits until it is told to end, anything else is
/// answered at once.
struct Bench {
    service: StreamableHttpService,
    client: Client,
    runs: tokio::sync::Mutex<UnboundedReceiver<Run>>,
}

/// One run of `x/work`.
struct Run {
    cx: RequestContext,
    end: oneshot::Sender<Result<Value, McpError>>,
}

impl Run {
    /// Sends a notification.
    async fn say(&self, n: u64) {
        self.cx.notify("notifications/x", json!({ "n": n })).await.expect("an object");
    }

    /// Answers.
    fn answer(self, answer: &str) {
        let _ = self.end.send(Ok(json!({ "answer": answer })));
    }
}

/// What [`Run::say`] looks like.
fn said(n: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"n": n}})
}

/// What [`Run::answer`] looks like.
fn answered(id: impl Into<Value>, answer: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": {"answer": answer}})
}

fn list_changed(list: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")})
}

impl Bench {
    async fn open(cx: Cx) -> Self {
        Self::with(cx, |builder| builder).await
    }

    async fn with(cx: Cx, configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> Self {
        let (started, runs) = unbounded_channel();
        let lists = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
        let script = Script::new(move |request, cx| work(request, cx, started.clone()));
        let script = script.declaring(lists.resources_subscribe().logging());
        let builder = StreamableHttpService::builder(script).event_store(EventStore::InMemory).principal(|head| {
            let account = head.headers.get(ACCOUNT)?.to_str().ok()?;
            Some(Principal::new(account))
        });
        let service = configure(builder).build().expect("a service");
        let client = cx.serve(service.clone()).await;
        Self { service, client, runs: runs.into() }
    }

    async fn session(&self, cx: Cx) -> Session {
        session::open(&self.client, cx.revision).await
    }

    /// Sends a call and does not wait for the answer.
    fn send(&self, call: Call) -> JoinHandle<Answer> {
        let client = self.client.clone();
        tokio::spawn(async move { client.send(call).await })
    }

    async fn run(&self) -> Run {
        self.runs.lock().await.recv().await.expect("a run")
    }

    /// A call whose answer has become a stream: it says 0, which has been read. Returns the id of that event too.
    async fn streaming(&self, call: Call) -> (Answer, Run, String) {
        let asking = self.send(call);
        let run = self.run().await;
        run.say(0).await;
        let mut stream = asking.await.expect("an answer");
        skip_mark(&mut stream, run.cx.revision()).await;
        let (id, message) = read(&mut stream).await.expect("an event");
        assert_eq!(message, said(0));
        (stream, run, id)
    }

    /// Waits until the server has noticed that as many streams are open and no more.
    async fn streams(&self, open: usize) {
        let closed = async {
            while self.service.counts().streams != open {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(10), closed).await.expect("streams are closed");
    }

    /// Leaves a stream, and waits until the server knows.
    async fn leave(&self, stream: Answer) {
        let open = self.service.counts().streams;
        drop(stream);
        // One that had ended is closed already, perhaps.
        self.streams(open.saturating_sub(1)).await;
    }
}

async fn work(request: Request, cx: RequestContext, started: UnboundedSender<Run>) -> Result<Reply, McpError> {
    if request.method() != "x/work" {
        return Reply::of(json!({}));
    }
    let (end, ended) = oneshot::channel();
    let _ = started.send(Run { cx, end });
    Reply::of(ended.await.map_err(McpError::internal)??)
}

/// The GET that asks for what follows an event.
fn after(session: &Session, id: &str) -> Call {
    session.get().header(LAST_EVENT_ID, id)
}

/// Opens the rest of a stream, and reads the comment that it begins with.
async fn resume(session: &Session, id: &str) -> Answer {
    let mut stream = session.client.send(after(session, id)).await;
    assert_eq!(stream.status, StatusCode::OK);
    assert!(matches!(stream.frame().await, Some(Frame::Comment(_))), "a comment comes first");
    stream
}

/// Opens the general stream, and reads what it begins with.
async fn listen(session: &Session) -> Answer {
    let mut stream = session.listen().await;
    skip_mark(&mut stream, session.revision).await;
    stream
}

/// Asserts that there is nothing to be had after this event.
async fn refused(session: &Session, id: impl AsRef<[u8]>) {
    let answer = session.client.send(session.get().header(LAST_EVENT_ID, id)).await;
    answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
}

/// The next event that has an id and a message; `None` at the stream's end.
async fn read(stream: &mut Answer) -> Option<(String, Value)> {
    let Event { id, retry, data } = stream.next_event().await?;
    assert_eq!(retry, None);
    let data = data.expect("data");
    Some((id.expect("an id"), serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data:?}"))))
}

/// All messages up to the end of a stream.
async fn rest(mut stream: Answer) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some((_, message)) = read(&mut stream).await {
        messages.push(message);
    }
    messages
}

/// The event without data that a stream begins with at 2025-11-25. Returns its id.
async fn skip_mark(stream: &mut Answer, revision: Revision) -> Option<String> {
    if revision != Revision::V2025_11_25 {
        return None;
    }
    let Event { id, retry, data } = stream.next_event().await.expect("an event");
    assert_eq!((retry, data.as_deref()), (None, Some("")));
    Some(id.expect("an id"))
}
