//! What surrounds a request: who asks, how, and the ways back to them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cancel::CancelCause;
use crate::changes::Changes;
use crate::exchange::call::Call;
use crate::mcp_error::McpError;
use crate::principal::Principal;
use crate::protocol::level::LogLevel;
use crate::protocol::names::method;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::sse::Frame;
use crate::session::Session;

/// What surrounds a request or notification: who asks, and the ways back to them.
///
/// Cheap to clone and `'static`: hand it to tasks as you like. It keeps the request's bytes alive. Once the request is
/// answered, what is sent through it is dropped; so is what a client could not take that accepts only JSON.
#[derive(Clone)]
pub struct RequestContext(Arc<Call>);

impl RequestContext {
    pub(crate) fn new(call: Arc<Call>) -> Self {
        Self(call)
    }

    /// Returns the revision that the request is answered in.
    ///
    /// A handler rarely needs it: it writes results in the newest shape, whoever asks.
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// Returns the era of that revision.
    pub fn era(&self) -> Era {
        self.0.revision.era()
    }

    /// Returns the client's name and version, where it gave them. A legacy request without a session has none.
    pub fn client_info(&self) -> Option<ClientInfo> {
        let info = match &self.0.session {
            Some(session) => session.client().info.as_deref(),
            None => self.0.message.client_info(),
        };
        serde_json::from_slice(info?).ok()
    }

    /// Returns what the client declared that it can do. A legacy request without a session declares nothing.
    pub fn client_capabilities(&self) -> ClientCapabilities<'_> {
        ClientCapabilities(match &self.0.session {
            Some(session) => Some(&session.client().capabilities),
            None => self.0.message.client_capabilities(),
        })
    }

    /// Returns the client's session, where it has one: up to 2025-11-25.
    pub fn session(&self) -> Option<Session> {
        self.0.session.clone().map(Session::new)
    }

    /// Returns the head of the HTTP request, where it came by HTTP.
    pub fn http(&self) -> Option<&http::request::Parts> {
        Some(&self.0.http)
    }

    /// Returns what the layers in front of the transport left for the handler: the HTTP request's extensions.
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
        &self.0.http.extensions
    }

    /// Returns on whose behalf the request comes, as
    /// [`principal`](crate::StreamableHttpBuilder::principal) read it.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.principal.as_ref()
    }

    /// Returns when the handler's time is up, where [`Limits::handler_time`](crate::Limits::handler_time) sets one.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline.map(tokio::time::Instant::into_std)
    }

    /// Returns the handle to publish list and resource changes with.
    pub fn changes(&self) -> &Changes {
        &self.0.server.changes
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
        self.0.cancellation.cancelled().await
    }

    /// Returns why the request was cancelled, if it was.
    pub fn cancel_cause(&self) -> Option<CancelCause> {
        self.0.cancellation.cause()
    }

    /// Returns why the client cancelled the request, in its words, where it did and said so.
    pub fn cancel_reason(&self) -> Option<&str> {
        self.0.cancel_reason()
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
        let Some(token) = self.0.message.progress_token() else {
            return;
        };
        if !self.0.rises(progress.progress) {
            return;
        }
        let Ok(token) = serde_json::from_slice::<&serde_json::value::RawValue>(token) else {
            return;
        };
        let params = ProgressParams { progress_token: token, progress: &progress };
        if let Ok(frame) = Frame::notification(method::PROGRESS, Some(&params)) {
            self.0.report(progress.progress, frame).await;
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
        if self.0.wants_log(params.level) {
            let frame = Frame::notification(method::MESSAGE, Some(&params)).map_err(McpError::internal)?;
            self.0.send(&frame).await;
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
        self.0.send(&frame).await;
        Ok(())
    }

    /// Lets the client's connection go, but not the request: the client reads what has been sent so far, waits for
    /// `retry` and comes back for the rest (2025-11-25, "Sending Messages to the Server"). So a long task holds no
    /// connection open. What is sent meanwhile, and the answer, are kept for it in the event store.
    ///
    /// An answer that is no event stream yet becomes one for it. It can be done again once the client is back.
    ///
    /// Returns whether the connection goes. It does not, and the call has no effect, where the client could not come back
    /// or is not there: in any other revision, outside a session, without an [`EventStore`](crate::EventStore), where
    /// the client takes only JSON, and while it is away.
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
        self.0.let_go(retry)
    }

    /// Returns the JSON text of `params.inputResponses` (2026-07-28): the client's answers, when a handler answered the
    /// same request before with a result whose `resultType` is `input_required`. Only `tools/call`, `prompts/get` and
    /// `resources/read` may; elsewhere it is a [`Misuse`](crate::Misuse).
    pub fn input_responses(&self) -> Option<&[u8]> {
        self.0.message.input_responses()
    }

    /// Returns the JSON text of `params.requestState` (2026-07-28): what that result gave the client to keep. It
    /// went through the client's hands: trust nothing of it that you did not seal.
    pub fn request_state(&self) -> Option<&[u8]> {
        self.0.message.request_state()
    }
}

/// The notifications that do not go through `notify`, and what they go through.
fn own_way(method: &str) -> Option<&'static str> {
    match method {
        method::PROGRESS => Some("RequestContext::progress"),
        method::MESSAGE => Some("RequestContext::log"),
        "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/resources/updated" => Some("Changes"),
        method::CANCELLED | "notifications/subscriptions/acknowledged" => Some("nothing: the transport sends it"),
        _ => None,
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("revision", &self.0.revision)
            .field("principal", &self.0.principal)
            .field("cancel_cause", &self.cancel_cause())
            .finish_non_exhaustive()
    }
}

/// How far a request has come.
///
/// ```
/// use mcp_transport::Progress;
///
/// let progress = Progress::new(3.0).total(10.0).message("reticulating splines");
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    #[serde(serialize_with = "shortest")]
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shortest_or_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'static, str>>,
}

impl Progress {
    /// This much is done, in any unit. It must rise from report to report: one that does not rise is dropped, and so is
    /// one that is no finite number.
    pub fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    /// Of this much, in the same unit. Default: unknown; so is what is no finite number.
    #[must_use]
    pub fn total(mut self, total: f64) -> Self {
        self.total = total.is_finite().then_some(total);
        self
    }

    /// Says in words what is going on (from 2025-03-26 on; older clients ignore it). Default: nothing.
    #[must_use]
    pub fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = Some(message.into());
        self
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'a> {
    progress_token: &'a serde_json::value::RawValue,
    #[serde(flatten)]
    progress: &'a Progress,
}

/// A whole number as one: `50`, not `50.0`.
fn shortest<S: serde::Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation)] // whole and in range, as just seen
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

fn shortest_or_none<S: serde::Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => shortest(number, serializer),
        None => serializer.serialize_none(),
    }
}

#[derive(Serialize)]
struct LogParams<'a, T> {
    level: LogLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<&'a str>,
    data: T,
}

/// What a client says it is. Self-reported: for display and logs, never for decisions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The name of the software.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A name for people to read (from 2025-06-18 on).
    #[serde(default)]
    pub title: Option<String>,
}

/// What a client declared that it can do.
#[derive(Clone, Copy)]
pub struct ClientCapabilities<'a>(Option<&'a [u8]>);

impl ClientCapabilities<'_> {
    /// Whether the member at this path was declared, whatever it holds, `null` and `false` apart.
    ///
    /// ```
    /// # fn f(cx: mcp_transport::RequestContext) {
    /// let can_sample = cx.client_capabilities().declares(&["sampling"]);
    /// let has_tasks = cx.client_capabilities().declares(&["extensions", "io.modelcontextprotocol/tasks"]);
    /// # }
    /// ```
    pub fn declares(&self, path: &[&str]) -> bool {
        let Some(root) = self.parse::<serde_json::Value>() else {
            return false;
        };
        let found = path.iter().try_fold(&root, |value, key| value.get(key));
        found.is_some_and(|value| !matches!(value, serde_json::Value::Null | serde_json::Value::Bool(false)))
    }

    /// Reads them as a type of the application's own; `None` where there are none or they are something else.
    pub fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(self.0?).ok()
    }
}

impl fmt::Debug for ClientCapabilities<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientCapabilities").field(&self.parse::<serde_json::Value>()).finish()
    }
}
