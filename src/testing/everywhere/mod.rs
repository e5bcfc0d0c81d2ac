//! One handler in every revision and on every transport, with what has to be equal compared.

mod compare;
mod leaks;
mod outcome;
mod place;
mod stdio;

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

pub use self::outcome::Outcome;
pub use self::place::{Carrier, Place};
use self::stdio::Peer;
use super::answer::Answer;
use super::client::{Call, Client};
use super::fail;
use super::request::object;
use super::session::ClientSession;
use crate::handler::McpHandler;
use crate::http::{StreamableHttpBuilder, StreamableHttpService};
use crate::protocol::names::{header, meta};
use crate::protocol::revision::Era;
use crate::stdio::{StdioBuilder, StdioTransport};
use crate::transport::Transport;

/// How long an answer is waited for. Event streams are kept alive: nothing else would end the wait.
const TOO_LONG: Duration = Duration::from_secs(60);

/// How long a hook for a notification is waited for.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// How a client answers a question: its method and params to a result.
type Answering<'a> = dyn FnMut(&str, &Value) -> Value + 'a;

/// The same, as the application says it.
type Answers = dyn Fn(&str, &Value) -> Value;

/// Runs a handler under every revision on every transport, in process, and makes sure that clients everywhere read the
/// same.
///
/// Each [`Place`] gets a handler of its own, made by `handler`, and a client that makes the calls one after the other:
/// over Streamable HTTP without a session and, up to 2025-11-25, in one; on a byte stream.
///
/// ```
/// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
/// # #[derive(serde::Deserialize)]
/// # struct Add { a: i64, b: i64 }
/// struct Calculator;
///
/// impl McpHandler for Calculator {
///     // …
/// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("calculator", "1") }
/// #     fn capabilities(&self) -> Capabilities { Capabilities::new().tools() }
///     async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
/// #       if request.method() == "tools/list" { return Reply::of(json!({ "tools": [] })); }
///         let Add { a, b } = request.arguments()?;
///         Reply::of(json!({ "content": [{ "type": "text", "text": (a + b).to_string() }] }))
///     }
/// }
///
/// use mcp_transport::testing::everywhere;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let outcomes = everywhere(|| Calculator)
///     .call("tools/list", ())
///     .call("tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }))
///     .call("tools/call", json!({ "name": "add", "arguments": { "a": "x" } }))
///     .run()
///     .await;
/// assert_eq!(outcomes[1].result()["content"][0]["text"], "3");
/// assert_eq!(outcomes[2].error()["code"], -32602);
/// # }
/// ```
///
/// # What counts as equal
///
/// The newest revision over HTTP is what the others are compared with. The results, the errors, and what came before
/// them (progress, log messages, notifications of the application's own) must be equal, but for these, which revisions
/// read differently:
///
/// - the shape of a result, as [`ResultShape::ClientRevision`](crate::ResultShape::ClientRevision) says; a text that is
///   JSON is compared as JSON;
/// - the server's name in `_meta`, and a `_meta` that is empty without it;
/// - the code `-32002`, which 2026-07-28 reads as `-32602`
///   ([`resource_not_found`](crate::McpError::resource_not_found)), and
///   [`missing_capabilities`](crate::McpError::missing_capabilities), which only 2026-07-28 knows;
/// - where the client was asked anything, what came before the result: on 2026-07-28 it comes anew with each round.
///
/// Ids are not compared, nor are statuses, nor [changes](crate::Changes): they travel beside the answers. On 2026-07-28
/// the client asks for log messages from info on, as earlier ones get them.
///
/// # What counts as a leak
///
/// Words of one era that a client of the other reads, in any message or head: up to 2025-11-25 the members and `_meta`
/// keys of 2026-07-28, its notifications about subscriptions, its error codes; on 2026-07-28 a result without
/// `resultType`, requests of the server's own, a session's id, ids and retries of events, the codes `-32002` and
/// `-32042`. What is inside `content` and `structuredContent` is the handler's own, and not looked at.
///
/// # What is not for it
///
/// Methods that not every revision has, such as `ping`. A handler that [asks](crate::RequestContext::ask) can do so
/// only where the client can be reached, and where its revision has the question: choose those places by
/// [`only`](Everywhere::only).
pub fn everywhere<H: McpHandler>(handler: impl Fn() -> H + 'static) -> Everywhere {
    let make = std::rc::Rc::new(handler);
    let on_stream = std::rc::Rc::clone(&make);
    Everywhere {
        http: Box::new(move || StreamableHttpService::builder(make())),
        stdio: Box::new(move || StdioTransport::builder(on_stream())),
        steps: Vec::new(),
        capabilities: json!({}),
        answering: None,
        only: Box::new(|_| true),
    }
}

/// What is run [`everywhere`].
#[must_use = "nothing is run until `run` is awaited"]
pub struct Everywhere {
    http: Box<dyn Fn() -> StreamableHttpBuilder>,
    stdio: Box<dyn Fn() -> StdioBuilder>,
    steps: Vec<Step>,
    capabilities: Value,
    answering: Option<Box<Answers>>,
    only: Box<dyn Fn(Place) -> bool>,
}

/// One message of the script.
struct Step {
    method: String,
    params: Map<String, Value>,
    is_notification: bool,
    headers: Vec<(String, String)>,
}

impl Everywhere {
    /// Makes this call, after those before.
    ///
    /// # Panics
    ///
    /// If `params` is neither an object nor null.
    #[track_caller]
    pub fn call(self, method: &str, params: impl Serialize) -> Self {
        self.step(method, params, false)
    }

    /// Sends this notification, after the calls before. What follows is sent once the handler is through with it, or
    /// has taken a second.
    ///
    /// # Panics
    ///
    /// As [`call`](Self::call).
    #[track_caller]
    pub fn notify(self, method: &str, params: impl Serialize) -> Self {
        self.step(method, params, true)
    }

    /// Sends the last call with this header, where it is sent by HTTP: such as an `Mcp-Param-*` that its tool demands,
    /// or a token.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Has the clients declare these capabilities, such as `{"elicitation": {}}`. Default: none.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Has the clients answer what they are asked: each question's method and params are given to `answer`, which
    /// returns the result. Without it a question is a failure.
    pub fn answering(mut self, answer: impl Fn(&str, &Value) -> Value + 'static) -> Self {
        self.answering = Some(Box::new(answer));
        self
    }

    /// Runs it only there.
    ///
    /// ```
    /// use mcp_transport::testing::{Carrier, Everywhere};
    /// use mcp_transport::{Era, Revision};
    ///
    /// # fn f(everywhere: Everywhere) {
    /// // For a handler that asks with `Question::form`, which is there from 2025-06-18 on. Up to 2025-11-25 a client
    /// // can be asked in a session and on a byte stream, on 2026-07-28 everywhere.
    /// everywhere.only(|place| {
    ///     let is_reachable = place.revision.era() == Era::Modern || place.carrier != Carrier::Http;
    ///     place.revision >= Revision::V2025_06_18 && is_reachable
    /// });
    /// # }
    /// ```
    pub fn only(mut self, only: impl Fn(Place) -> bool + 'static) -> Self {
        self.only = Box::new(only);
        self
    }

    /// Configures the transport over HTTP.
    pub fn http(mut self, configure: impl Fn(StreamableHttpBuilder) -> StreamableHttpBuilder + 'static) -> Self {
        let make = self.http;
        self.http = Box::new(move || configure(make()));
        self
    }

    /// Configures the transport on a byte stream.
    pub fn stdio(mut self, configure: impl Fn(StdioBuilder) -> StdioBuilder + 'static) -> Self {
        let make = self.stdio;
        self.stdio = Box::new(move || configure(make()));
        self
    }

    /// Runs it, and returns what became of each call: in the newest revision that was run, over HTTP if it was.
    ///
    /// # Panics
    ///
    /// If anything leaks, or differs between two places: with each fault, its place and call. Also where a call is not
    /// answered within a minute, where a transport cannot be built, and where nothing is left to run.
    pub async fn run(self) -> Vec<Outcome> {
        let mut faults = Vec::new();
        let mut first: Option<(Place, Vec<Outcome>)> = None;
        for place in Place::all().into_iter().filter(|place| (self.only)(*place)) {
            let outcomes = self.run_in(place, &mut faults).await;
            match &first {
                None => first = Some((place, outcomes)),
                Some((reference, expected)) => self.compare(*reference, expected, place, &outcomes, &mut faults),
            }
        }
        let Some((_, outcomes)) = first else {
            fail("there is no place left to run in");
        };
        if !faults.is_empty() {
            fail(format_args!("{} faults\n- {}", faults.len(), faults.join("\n- ")));
        }
        outcomes
    }

    #[track_caller]
    fn step(mut self, method: &str, params: impl Serialize, is_notification: bool) -> Self {
        let params = object(params).unwrap_or_default();
        self.steps.push(Step { method: method.to_owned(), params, is_notification, headers: Vec::new() });
        self
    }

    async fn run_in(&self, place: Place, faults: &mut Vec<String>) -> Vec<Outcome> {
        let mut there = There::open(self, place).await;
        let mut outcomes = Vec::new();
        for (number, step) in (1_usize..).zip(&self.steps) {
            let mut answer = |method: &str, params: &Value| match &self.answering {
                Some(answer) => answer(method, params),
                None => fail(format_args!("{place}: {method} was asked, and nothing answers")),
            };
            let sent = tokio::time::timeout(TOO_LONG, there.send(place, step, &mut answer)).await;
            let Ok((messages, leaks)) = sent else {
                fail(format_args!("{place}: {} ({number}) was not answered within a minute", step.method));
            };
            faults.extend(leaks.into_iter().map(|leak| format!("{place}: {} ({number}) leaks {leak}", step.method)));
            if step.is_notification {
                continue;
            }
            match Outcome::of(&messages) {
                Some(outcome) => outcomes.push(outcome),
                None => fail(format_args!("{place}: {} ({number}) got no response but {messages:?}", step.method)),
            }
        }
        outcomes
    }

    fn compare(&self, reference: Place, expected: &[Outcome], place: Place, got: &[Outcome], faults: &mut Vec<String>) {
        let calls = (1_usize..).zip(&self.steps).filter(|(_, step)| !step.is_notification);
        for ((number, step), (expected, got)) in calls.zip(expected.iter().zip(got)) {
            let expected = compare::expected(expected, &step.method, place);
            if let Some(difference) = compare::difference(&expected, got) {
                let method = &step.method;
                faults.push(format!("{place}: {method} ({number}) is not as {reference} {difference}"));
            }
        }
    }
}

impl fmt::Debug for Everywhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<_> = self.steps.iter().map(|step| &step.method).collect();
        f.debug_struct("Everywhere").field("steps", &steps).finish_non_exhaustive()
    }
}

/// A client in its place.
struct There {
    speaks: Speaks,
    transport: Box<dyn Transport>,
}

enum Speaks {
    Http(Client),
    Session(ClientSession),
    Stream(Peer),
}

impl There {
    async fn open(everywhere: &Everywhere, place: Place) -> Self {
        if place.carrier == Carrier::Stdio {
            let (peer, transport) = Peer::open((everywhere.stdio)(), place.revision, &everywhere.capabilities).await;
            return Self { speaks: Speaks::Stream(peer), transport: Box::new(transport) };
        }
        let service = match (everywhere.http)().build() {
            Ok(service) => service,
            Err(error) => fail(error),
        };
        let client = Client::new(service.clone()).capabilities(everywhere.capabilities.clone());
        let speaks = match place.carrier {
            Carrier::HttpSession => Speaks::Session(client.session(place.revision).await),
            Carrier::Http | Carrier::Stdio => Speaks::Http(client),
        };
        Self { speaks, transport: Box::new(service) }
    }

    /// Waits until the handler has heard what it was told, though not for ever.
    async fn heard(&self) {
        let heard = async {
            while self.transport.counts().in_flight > 0 {
                // No mere yield: a clock that is paused stands still for as long as anything is ready.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let _ = tokio::time::timeout(LONG_ENOUGH, heard).await;
    }

    /// Sends a message, and returns what came back and what of it leaks.
    async fn send(&mut self, place: Place, step: &Step, answer: &mut Answering<'_>) -> (Vec<Value>, Vec<String>) {
        let params = params(place, step);
        let mut leaks = Vec::new();
        let messages = match &mut self.speaks {
            Speaks::Stream(peer) if step.is_notification => {
                peer.notify(&step.method, &params).await;
                Vec::new()
            }
            Speaks::Stream(peer) => peer.call(&step.method, &params, answer).await,
            Speaks::Http(client) if step.is_notification => {
                http(client.notify(place.revision, &step.method, &params), place, step, answer, &mut leaks).await
            }
            Speaks::Http(client) => {
                http(client.call(place.revision, &step.method, &params), place, step, answer, &mut leaks).await
            }
            Speaks::Session(session) if step.is_notification => {
                http(session.notify(&step.method, &params), place, step, answer, &mut leaks).await
            }
            Speaks::Session(session) => {
                http(session.call(&step.method, &params), place, step, answer, &mut leaks).await
            }
        };
        if step.is_notification {
            self.heard().await;
        }
        leaks.extend(messages.iter().flat_map(|message| leaks::in_message(place, &step.method, message)));
        (messages, leaks)
    }
}

async fn http(
    mut call: Call,
    place: Place,
    step: &Step,
    answer: &mut Answering<'_>,
    leaks: &mut Vec<String>,
) -> Vec<Value> {
    for (name, value) in &step.headers {
        call = call.header(name, value);
    }
    let answer: Answer = call.answering(|method, params| answer(method, params)).await;
    if place.revision.era() == Era::Modern {
        if answer.headers.contains_key(header::SESSION_ID) {
            leaks.push("Mcp-Session-Id in the head".to_owned());
        }
        if answer.is_resumable {
            leaks.push("`id` or `retry` of events".to_owned());
        }
    }
    answer.messages
}

/// The params of a step, with the level of log messages where each request says it.
fn params(place: Place, step: &Step) -> Value {
    let mut params = step.params.clone();
    if place.revision.era() == Era::Modern && !step.is_notification {
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.entry(meta::LOG_LEVEL).or_insert_with(|| "info".into());
        }
    }
    if params.is_empty() { Value::Null } else { params.into() }
}
