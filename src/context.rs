//! What surrounds a request: who asks, how, and the ways back to them.

mod client;
mod progress;
mod trace_context;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::RawValue;

pub use self::client::{ClientCapabilities, ClientInfo};
pub use self::progress::Progress;
use self::progress::ProgressParams;
pub use self::trace_context::TraceContext;
use crate::cancel::CancelCause;
use crate::changes::Changes;
use crate::exchange::call::Call;
use crate::exchange::{Ask, Input};
use crate::mcp_error::McpError;
use crate::principal::Principal;
use crate::protocol::level::LogLevel;
use crate::protocol::names::method;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::sse::Frame;
use crate::question::Question;
use crate::session::Session;

/// What surrounds a request or notification: who asks, and the ways back to them.
///
/// Cheap to clone and `'static`: hand it to tasks as you like. It keeps the request's bytes alive. Once the request is
/// answered, what is sent through it is dropped; so is what a client could not take that accepts only JSON.
#[derive(Clone)]
pub struct RequestContext {
    call: Arc<Call>,
    /// What was sent for this round, where it is not what stands in the message.
    input: Option<Arc<Input>>,
}

impl RequestContext {
    pub(crate) fn new(call: Arc<Call>) -> Self {
        Self { call, input: None }
    }

    pub(crate) fn with_input(call: Arc<Call>, input: Input) -> Self {
        Self { call, input: Some(Arc::new(input)) }
    }

    /// Returns the revision that the request is answered in.
    ///
    /// A handler rarely needs it: it writes results in the newest shape, whoever asks.
    pub fn revision(&self) -> Revision {
        self.call.revision
    }

    /// Returns the era of that revision.
    pub fn era(&self) -> Era {
        self.call.revision.era()
    }

    /// Returns the client's name and version, where it gave them. A legacy request without a session has none.
    pub fn client_info(&self) -> Option<ClientInfo> {
        let info = match &self.call.session {
            Some(session) => session.client().info.as_deref(),
            None => self.call.message.client_info(),
        };
        serde_json::from_slice(info?).ok()
    }

    /// Returns what the client declared that it can do. A legacy request without a session declares nothing.
    pub fn client_capabilities(&self) -> ClientCapabilities<'_> {
        ClientCapabilities(self.call.client_capabilities())
    }

    /// Returns the client's session, where it has one: up to 2025-11-25.
    pub fn session(&self) -> Option<Session> {
        self.call.session.clone().map(Session::new)
    }

    /// Returns the head of the HTTP request, where it came by HTTP.
    pub fn http(&self) -> Option<&http::request::Parts> {
        self.call.via.http()
    }

    /// Returns what was left for the handler: by the layers in front of the transport in the HTTP request's extensions,
    /// by the application in those of the [byte stream](crate::StdioBuilder::extensions).
    ///
    /// ```
    /// # use mcp_transport::{McpError, RequestContext};
    /// #[derive(Clone)]
    /// struct Account(u64);
    ///
    /// fn account(cx: &RequestContext) -> Result<&Account, McpError> {
    ///     cx.extensions().get().ok_or_else(|| McpError::internal("the authentication layer is missing"))
    /// }
    /// ```
    pub fn extensions(&self) -> &http::Extensions {
        self.call.via.extensions()
    }

    /// Returns on whose behalf the request comes: what [`principal`](crate::StreamableHttpBuilder::principal) read from
    /// its head, or what the [byte stream](crate::StdioBuilder::principal) has.
    pub fn principal(&self) -> Option<&Principal> {
        self.call.principal.as_ref()
    }

    /// Returns the trace that the request belongs to, where its client says so in `params._meta`, on every revision.
    ///
    /// The headers of the same names are not looked at: they belong to the HTTP request, which is another hop of the
    /// same trace or of another (OpenTelemetry, Semantic conventions for MCP: Context propagation). They are in
    /// [`http`](Self::http). Reads `params` each time.
    ///
    /// ```
    /// # fn f(cx: mcp_transport::RequestContext) {
    /// let trace = cx.trace_context();
    /// let headers = [("traceparent", trace.traceparent()), ("tracestate", trace.tracestate())];
    /// for (name, value) in headers {
    ///     // … hand it to your propagator, or on to the services you call …
    /// #   let _ = (name, value);
    /// }
    /// # }
    /// ```
    pub fn trace_context(&self) -> TraceContext<'_> {
        TraceContext::read(self.call.message.params())
    }

    /// Returns when the handler's time is up, where [`Limits::handler_time`](crate::Limits::handler_time) sets one.
    pub fn deadline(&self) -> Option<Instant> {
        self.call.deadline.map(tokio::time::Instant::into_std)
    }

    /// Returns the handle to publish list and resource changes with.
    pub fn changes(&self) -> &Changes {
        &self.call.server.changes
    }

    /// Waits until the request is cancelled, and returns why. Pending for ever if it never is.
    ///
    /// The handler's future is dropped as soon as the request is cancelled, so a handler that only awaits needs nothing
    /// of this; it is for tasks that the handler spawned.
    ///
    /// ```
    /// # async fn crawl() {}
    /// # fn f(cx: mcp_transport::RequestContext) {
    /// tokio::spawn(async move {
    ///     tokio::select! {
    ///         _ = crawl() => {}
    ///         cause = cx.cancelled() => eprintln!("the crawl was given up: {cause:?}"),
    ///     }
    /// });
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn cancelled(&self) -> CancelCause {
        self.call.cancellation.cancelled().await
    }

    /// Returns why the request was cancelled, if it was.
    pub fn cancel_cause(&self) -> Option<CancelCause> {
        self.call.cancellation.cause()
    }

    /// Returns why the client cancelled the request, in its words, where it did and said so. Of a reason
    /// of more than 4 KiB the beginning.
    pub fn cancel_reason(&self) -> Option<&str> {
        self.call.cancel_reason()
    }

    /// Reports progress. Does nothing where the client did not ask for it, or has already heard of as much.
    ///
    /// The first report turns the answer into an event stream. Waits while the client does not read and the stream's
    /// queue ([`Limits::queue_bytes`](crate::Limits::queue_bytes)) is full.
    ///
    /// ```
    /// # use mcp_transport::{Progress, RequestContext};
    /// # async fn f(cx: RequestContext) {
    /// for (done, file) in (1_u32..).zip(["a.txt", "b.txt", "c.txt"]) {
    ///     // … read the file …
    ///     cx.progress(Progress::new(done.into()).total(3.0).message(file)).await;
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// If dropped while waiting, the report is not sent.
    pub async fn progress(&self, progress: Progress) {
        let Some(token) = self.call.message.progress_token() else {
            return;
        };
        if !self.call.rises(progress.progress) {
            return;
        }
        let Ok(token) = serde_json::from_slice::<&RawValue>(token) else {
            return;
        };
        let params = ProgressParams { progress_token: token, progress: &progress };
        if let Ok(frame) = Frame::notification(method::PROGRESS, Some(&params)) {
            self.call.report(progress.progress, frame).await;
        }
    }

    /// Sends a log message to the client: `data` is anything that serialises to JSON, most often a text.
    ///
    /// Does nothing unless the handler declares [`logging`](crate::Capabilities::logging) and the client wants this
    /// level. A request of 2026-07-28 names the least severe level it wants, or wants none. Older clients get
    /// [`LogLevel::Info`] and what is more severe, unless `logging/setLevel` has said otherwise in their session.
    ///
    /// Turns the answer into an event stream and waits as [`progress`](Self::progress) does.
    ///
    /// # Errors
    ///
    /// An internal error where `data` cannot be written as JSON.
    pub async fn log(&self, level: LogLevel, data: impl Serialize) -> Result<(), McpError> {
        self.log_params(LogParams { level, logger: None, data }).await
    }

    /// As [`log`](Self::log), with the name of the logger.
    ///
    /// # Errors
    ///
    /// An internal error where `data` cannot be written as JSON.
    pub async fn log_from(&self, logger: &str, level: LogLevel, data: impl Serialize) -> Result<(), McpError> {
        self.log_params(LogParams { level, logger: Some(logger), data }).await
    }

    async fn log_params(&self, params: LogParams<'_, impl Serialize>) -> Result<(), McpError> {
        if self.call.wants_log(params.level) {
            let frame = Frame::notification(method::MESSAGE, Some(&params)).map_err(McpError::internal)?;
            self.call.send(&frame).await;
        }
        Ok(())
    }

    /// Sends a notification of the application's own before the answer.
    ///
    /// Turns the answer into an event stream and waits as [`progress`](Self::progress) does.
    ///
    /// # Errors
    ///
    /// An internal error where `params` is not an object, or where the method is one that has a way of its own:
    /// [`progress`](Self::progress), [`log`](Self::log), [`changes`](Self::changes).
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), McpError> {
        if let Some(instead) = own_way(method) {
            return Err(McpError::internal(format!("{method} is not sent by notify: use {instead}")));
        }
        let params = serde_json::value::to_raw_value(&params).map_err(McpError::internal)?;
        if !params.get().starts_with('{') {
            return Err(McpError::internal(format!("the params of {method} are not an object")));
        }
        let frame = Frame::notification(method, Some(&params)).map_err(McpError::internal)?;
        self.call.send(&frame).await;
        Ok(())
    }

    /// Lets the client's connection go, but not the request: the client reads what has been sent so far, waits for
    /// `retry` and comes back for the rest (2025-11-25, "Sending Messages to the Server"). So a long task holds no
    /// connection open. What is sent meanwhile, and the answer, are kept for it in the event store.
    ///
    /// An answer that is no event stream yet becomes one for it. It can be done again once the client is back.
    ///
    /// Returns whether the connection goes. It does not, and the call has no effect, where the client could not come
    /// back or is not there: in any other revision, outside a session, without an [`EventStore`](crate::EventStore),
    /// where the client takes only JSON, and while it is away.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn render() {}
    /// # async fn f(cx: mcp_transport::RequestContext) {
    /// if cx.close_connection(Duration::from_secs(5)) {
    ///     // The client asks again in 5 s. It makes no difference to what follows.
    /// }
    /// render().await;
    /// # }
    /// ```
    pub fn close_connection(&self, retry: Duration) -> bool {
        self.call.let_go(retry)
    }

    /// Asks the client's user, model or host, and waits for the answer: straight-line code that every revision's
    /// clients can follow.
    ///
    /// ```
    /// use mcp_transport::{McpError, Question, Reply, RequestContext};
    /// use serde::Deserialize;
    /// use serde_json::json;
    ///
    /// #[derive(Deserialize)]
    /// struct Confirmed {
    ///     confirmed: bool,
    /// }
    ///
    /// async fn delete(path: &str, cx: &RequestContext) -> Result<Reply, McpError> {
    ///     let question = Question::form(format!("Delete {path}?"), json!({
    ///         "type": "object",
    ///         "properties": { "confirmed": { "type": "boolean" } },
    ///         "required": ["confirmed"],
    ///     }))?;
    ///     let text = match cx.ask("confirm", question).await?.accepted()? {
    ///         Some(Confirmed { confirmed: true }) => format!("{path} is deleted"),
    ///         // They said no, or closed the form. That is an answer, and no error.
    ///         _ => "nothing was deleted".to_owned(),
    ///     };
    ///     Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
    /// }
    /// ```
    ///
    /// `name` says which question it is: on 2026-07-28 it is the key in `inputRequests`. Give questions that are asked
    /// at once distinct names. Where a name comes twice, the second goes out as `name#2`.
    ///
    /// # How it travels
    ///
    /// **Up to 2025-11-25** the question is a request of the server's own, on the stream of the answer that is being
    /// made, or where there is none on the session's GET stream. The handler waits, for [`Limits::ask_time`] or the
    /// question's [own time](Question::timeout). Dropping the [`Ask`] takes the question back with
    /// `notifications/cancelled`.
    ///
    /// **On 2026-07-28** a server sends no requests. As soon as the handler waits and a question is open, the handler's
    /// future is dropped and the client reads `input_required` with all open questions. It sends its request again with
    /// the answers, **and the handler runs again from its beginning**; each question that is answered already returns
    /// at once. What is known so far travels with the client, sealed in the `requestState`, so any node with the same
    /// [`StateKeys`](crate::StateKeys) can take the next round. That needs the feature `state`, which is on by default.
    ///
    /// # What runs again
    ///
    /// On 2026-07-28 everything before a question runs once more for every round after it: code, progress, logs. So ask
    /// first and act last: **put side effects after the last question**. That is not at most once yet, for a client may
    /// send its last round twice: see [`ReplayGuard`](crate::ReplayGuard).
    ///
    /// - A question is recognised by its name and its text. One whose text changes with every run (a time, a random
    ///   number) is asked anew until [`Limits::rounds`] is reached.
    /// - In a **loop** a question may be asked until its answer is good: each turn is a question of its own.
    /// - **`join!`**: questions asked together go out in one round, if no branch has to wait for anything else before
    ///   its question. An open question ends the round whatever else the handler is doing: other work joined beside it
    ///   is dropped, and runs again.
    /// - **`select!`**: all its questions go out; up to 2025-11-25 the ones that lose are taken back.
    /// - **Timers** around a question never fire on 2026-07-28, where nothing waits meanwhile. Give the question its
    ///   [own time](Question::timeout).
    /// - A **task** that the handler spawned may ask, while the handler waits for it; but it outlives the round, in
    ///   which its question then fails as unreachable. Use a `JoinSet`, which is dropped with the handler's future.
    ///   Once the request is answered, no question can be asked.
    ///
    /// # Errors
    ///
    /// The [`Ask`] returns an [`AskError`](crate::AskError). As an [`McpError`], by `?`, it is `-32021` where the
    /// client lacks a capability, `-32602` where an answer has the wrong shape, and else an internal error, which the
    /// [`Observer`](crate::Observer) reads. On 2026-07-28 only `tools/call`, `prompts/get` and `resources/read` may
    /// ask, and nothing but forms, URLs, sampling and roots; all else is unsupported. There an answer that is none (no
    /// `action`, a missing key) is asked for again; the content of a form that
    /// [`accepted`](crate::InputResponse::accepted) cannot read is not, unless the handler asks in a loop.
    ///
    /// # Cancel safety
    ///
    /// Dropping the [`Ask`] takes the question back.
    ///
    /// [`Limits::ask_time`]: crate::Limits::ask_time
    /// [`Limits::rounds`]: crate::Limits::rounds
    pub fn ask(&self, name: &str, question: Question) -> Ask {
        Ask::new(&self.call, name, question)
    }

    /// Returns the JSON text of the answers, by key, that the client gave to what the handler asked for by hand: with a
    /// result whose `resultType` is `input_required`. `None` in the first round. What stands in it the client wrote: it
    /// may hold other keys, and other shapes.
    ///
    /// On 2026-07-28 they are `params.inputResponses`. A client up to 2025-11-25 is asked by requests, and the handler
    /// called again with their results. Only `tools/call`, `prompts/get` and `resources/read` may be answered so;
    /// elsewhere it is a [`Misuse`](crate::Misuse). [`ask`](Self::ask) does all this for you. Use the one or the other:
    /// on 2026-07-28 a round that a question by `ask` ends carries no state and no answers of a round by hand.
    pub fn input_responses(&self) -> Option<&[u8]> {
        match &self.input {
            Some(input) => input.responses.as_deref(),
            None => self.call.message.input_responses(),
        }
    }

    /// Returns the `requestState` of that result: a JSON string, as the handler wrote it.
    ///
    /// On 2026-07-28 it went through the client's hands, sealed: what comes back is what this handler gave for the same
    /// principal, method and params. It may come back more than once. Without the feature `state` it is not sealed, and
    /// nothing of it can be trusted.
    pub fn request_state(&self) -> Option<&[u8]> {
        match &self.input {
            Some(input) => input.state.as_deref(),
            None => self.call.message.request_state(),
        }
    }
}

#[derive(Serialize)]
struct LogParams<'a, T> {
    level: LogLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<&'a str>,
    data: T,
}

/// The notifications that do not go through `notify`, and what they go through.
fn own_way(method: &str) -> Option<&'static str> {
    match method {
        method::PROGRESS => Some("RequestContext::progress"),
        method::MESSAGE => Some("RequestContext::log"),
        method::TOOLS_LIST_CHANGED
        | method::PROMPTS_LIST_CHANGED
        | method::RESOURCES_LIST_CHANGED
        | method::RESOURCES_UPDATED => Some("Changes"),
        method::CANCELLED | method::ACKNOWLEDGED => Some("nothing: the transport sends it"),
        _ => None,
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("revision", &self.call.revision)
            .field("principal", &self.call.principal)
            .field("cancel_cause", &self.cancel_cause())
            .finish_non_exhaustive()
    }
}
