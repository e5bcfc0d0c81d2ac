//! What a handler asks of its client, and what comes back.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::mcp_error::McpError;
use crate::protocol::input::{self, ElicitationAction, InputKind};
use crate::protocol::names::method;
use crate::protocol::revision::Revision;
use crate::protocol::shape;

/// What a handler asks of its client: of the user, the model or the host. See
/// [`RequestContext::ask`](crate::RequestContext::ask).
///
/// ```
/// use std::time::Duration;
/// use mcp_transport::Question;
/// use serde_json::json;
///
/// let name = Question::form("What is your name?", json!({
///     "type": "object",
///     "properties": { "name": { "type": "string" } },
///     "required": ["name"],
/// }))?;
/// let haiku = Question::sampling(json!({
///     "messages": [{ "role": "user", "content": { "type": "text", "text": "A haiku on crates." } }],
///     "maxTokens": 100,
/// }))?
/// .timeout(Duration::from_secs(30));
/// # Ok::<(), mcp_transport::McpError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Question {
    method: Cow<'static, str>,
    params: Box<RawValue>,
    /// Read once: it is asked for in every round, and of every answer.
    kind: InputKind,
    timeout: Option<Duration>,
}

impl Question {
    /// Asks the user to fill in a form (`elicitation/create`, from 2025-06-18 on). `schema` is the `requestedSchema`:
    /// an object of plain members.
    ///
    /// # Errors
    ///
    /// An internal error where `schema` cannot be written as JSON.
    pub fn form(message: impl AsRef<str>, schema: impl Serialize) -> Result<Self, McpError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a, T> {
            message: &'a str,
            requested_schema: T,
        }
        Self::new(method::ELICITATION_CREATE, Params { message: message.as_ref(), requested_schema: schema })
    }

    /// Asks the user to open a page (`elicitation/create` in `url` mode, from 2025-11-25 on). That they accept means
    /// that they agreed to open it, not that they are done there.
    ///
    /// # Errors
    ///
    /// None in fact; it returns what the other constructors return.
    pub fn url(message: impl AsRef<str>, url: impl AsRef<str>) -> Result<Self, McpError> {
        let params = json!({ "mode": "url", "message": message.as_ref(), "url": url.as_ref() });
        Self::new(method::ELICITATION_CREATE, params)
    }

    /// Asks the client's model (`sampling/createMessage`). `params` has `messages` and `maxTokens`.
    ///
    /// # Errors
    ///
    /// An internal error where `params` cannot be written as a JSON object.
    pub fn sampling(params: impl Serialize) -> Result<Self, McpError> {
        Self::new(method::SAMPLING_CREATE_MESSAGE, params)
    }

    /// Asks which directories the server may work in (`roots/list`).
    ///
    /// # Errors
    ///
    /// None in fact; it returns what the other constructors return.
    pub fn roots() -> Result<Self, McpError> {
        Self::new(method::ROOTS_LIST, json!({}))
    }

    /// Asks by any request method. Clients of 2026-07-28 can only be asked what the other constructors ask; whether an
    /// older one knows a method of another name, the handler has to know.
    ///
    /// # Errors
    ///
    /// An internal error where `params` cannot be written as a JSON object.
    pub fn new(method: impl Into<Cow<'static, str>>, params: impl Serialize) -> Result<Self, McpError> {
        let (method, params) = (method.into(), serde_json::value::to_raw_value(&params).map_err(McpError::internal)?);
        if !params.get().starts_with('{') {
            return Err(McpError::internal(format!("the params of {method} are not an object")));
        }
        let kind = InputKind::of(&method, parsed(&params).as_ref());
        Ok(Self { method, params, kind, timeout: None })
    }

    /// How long to wait for the answer: after that the question fails with [`AskError::TimedOut`].
    ///
    /// Up to 2025-11-25 the default is [`Limits::ask_time`](crate::Limits::ask_time). On 2026-07-28 nothing waits
    /// meanwhile: it is when the client comes back that the time since the question first left is measured, and the
    /// default is the lifetime of the state.
    #[must_use]
    pub const fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    pub(crate) fn params(&self) -> &RawValue {
        &self.params
    }

    /// The params as a client of the revision reads them. `new_id` makes an `elicitationId` where one is missing.
    pub(crate) fn params_for(&self, revision: Revision, new_id: impl FnOnce() -> String) -> Cow<'_, RawValue> {
        let params = self.params();
        let edits = shape::question(&self.method, revision, params.get().as_bytes(), new_id);
        if edits.is_empty() {
            return Cow::Borrowed(params);
        }
        let mut shaped = Vec::new();
        edits.apply(params.get().as_bytes(), &mut shaped);
        // JSON stays JSON.
        let shaped = String::from_utf8(shaped).ok().and_then(|shaped| RawValue::from_string(shaped).ok());
        shaped.map_or(Cow::Borrowed(params), Cow::Owned)
    }

    pub(crate) fn own_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) const fn kind(&self) -> InputKind {
        self.kind
    }

    /// What it is known by, under a name.
    pub(crate) fn digest(&self, name: &str) -> u128 {
        input::digest(name, &self.method, parsed(&self.params).as_ref())
    }
}

fn parsed(params: &RawValue) -> Option<Value> {
    serde_json::from_str(params.get()).ok()
}

/// A client's answer to a [`Question`].
#[derive(Clone)]
pub struct InputResponse(Box<RawValue>);

impl InputResponse {
    pub(crate) fn new(json: Box<RawValue>) -> Self {
        Self(json)
    }

    /// Returns what the user did with an elicitation; `None` where the question was another.
    pub fn action(&self) -> Option<ElicitationAction> {
        #[derive(Deserialize)]
        struct Elicited {
            action: ElicitationAction,
        }
        serde_json::from_str::<Elicited>(self.0.get()).ok().map(|elicited| elicited.action)
    }

    /// Reads the content of an elicitation that the user accepted; `None` where they declined or cancelled. A form
    /// without content reads as `{}`.
    ///
    /// # Errors
    ///
    /// [`AskError::BadAnswer`] where the content is not what `T` expects, or the question was no elicitation.
    pub fn accepted<T: DeserializeOwned>(&self) -> Result<Option<T>, AskError> {
        #[derive(Deserialize)]
        struct Content<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        if self.action().ok_or(AskError::BadAnswer)? != ElicitationAction::Accept {
            return Ok(None);
        }
        let Content { content } = serde_json::from_str(self.0.get()).map_err(|_| AskError::BadAnswer)?;
        let content = content.map_or("{}", RawValue::get);
        serde_json::from_str(content).map(Some).map_err(|_| AskError::BadAnswer)
    }

    /// Reads the whole result: a `CreateMessageResult`, a `ListRootsResult`.
    ///
    /// # Errors
    ///
    /// [`AskError::BadAnswer`] where it is not what `T` expects.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, AskError> {
        serde_json::from_str(self.0.get()).map_err(|_| AskError::BadAnswer)
    }

    /// Returns the JSON text of the result.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.0
    }
}

/// Writes the result as it came.
impl Serialize for InputResponse {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl fmt::Debug for InputResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputResponse").field("len", &self.0.get().len()).finish_non_exhaustive()
    }
}

/// Why a question got no answer. That a user declined it is an answer, and no error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client cannot be asked this: it did not declare the capability, or its revision or the request that is being
    /// answered allows no such question.
    #[error("{}", unsupported(capability))]
    #[non_exhaustive]
    Unsupported {
        /// The path of the capability that the client would have to declare, such as `["elicitation", "url"]`. Empty
        /// where none would help; on 2026-07-28 that is also so without the feature `state`.
        capability: &'static [&'static str],
    },
    /// The client did not answer in time.
    #[error("the client did not answer in time")]
    TimedOut,
    /// The session ended first.
    #[error("the session ended before the client answered")]
    SessionEnded,
    /// There is no way to the client: the request belongs to no session or is answered already, the client takes only
    /// JSON or has gone, or it has not said yet that it is initialized.
    #[error(
        "there is no way to ask the client: its request belongs to no session or is answered already, it has not sent \
         notifications/initialized, or it has no stream open to read the question on"
    )]
    Unreachable,
    /// The answer is not what the question or the handler expects.
    #[error("the client's answer has not the expected shape")]
    BadAnswer,
    /// The client answered with an error (up to 2025-11-25).
    #[error("the client answered with the error {code}: {message}")]
    #[non_exhaustive]
    Refused {
        /// The JSON-RPC error code.
        code: i64,
        /// The client's message.
        message: String,
    },
}

fn unsupported(capability: &[&str]) -> String {
    if capability.is_empty() {
        return "the client cannot be asked this: its revision has no such question, or on 2026-07-28 the request is not \
                tools/call, prompts/get or resources/read, or the feature `state` is off"
            .to_owned();
    }
    format!("the client did not declare the capability {}", capability.join("."))
}

/// What a handler that uses `?` answers: `-32021` where a capability is missing (2026-07-28; internal before), `-32602`
/// for a bad answer, and an internal error for all else.
impl From<AskError> for McpError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unsupported { capability: [] } => Self::internal(error),
            AskError::Unsupported { capability } => Self::missing_capabilities(required(capability)),
            AskError::BadAnswer => Self::invalid_params("An answer has not the expected shape"),
            _ => Self::internal(error),
        }
    }
}

/// Capabilities that hold just this one.
fn required(path: &[&str]) -> Value {
    path.iter().rev().fold(json!({}), |inner, key| json!({ (*key): inner }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_the_client_would_have_to_declare() {
        let error = McpError::from(AskError::Unsupported { capability: &["elicitation", "url"] });
        assert_eq!(error.code(), -32021);
        assert!(format!("{error:?}").contains(r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#), "{error:?}");
        assert_eq!(McpError::from(AskError::Unsupported { capability: &[] }).code(), -32603);
        assert_eq!(McpError::from(AskError::BadAnswer).code(), -32602);
        for error in [AskError::TimedOut, AskError::SessionEnded, AskError::Unreachable] {
            assert_eq!(McpError::from(error).code(), -32603);
        }
    }

    #[test]
    fn an_answer_is_read_by_what_the_user_did() {
        #[derive(Deserialize, PartialEq, Debug)]
        struct Name {
            name: Option<String>,
        }
        let read = |json: &str| {
            let response = InputResponse::new(RawValue::from_string(json.to_owned()).unwrap());
            (response.action(), response.accepted::<Name>())
        };
        let name = |name: Option<&str>| Ok(Some(Name { name: name.map(str::to_owned) }));
        use ElicitationAction::{Accept, Cancel, Decline};
        assert_eq!(read(r#"{"action":"accept","content":{"name":"Ann"}}"#), (Some(Accept), name(Some("Ann"))));
        assert_eq!(read(r#"{"action":"accept"}"#), (Some(Accept), name(None)));
        assert_eq!(read(r#"{"action":"accept","content":{"name":7}}"#), (Some(Accept), Err(AskError::BadAnswer)));
        assert_eq!(read(r#"{"action":"decline","content":{"name":7}}"#), (Some(Decline), Ok(None)));
        assert_eq!(read(r#"{"action":"cancel"}"#), (Some(Cancel), Ok(None)));
        assert_eq!(read(r#"{"roots":[]}"#), (None, Err(AskError::BadAnswer)));
    }

    #[test]
    fn params_are_an_object_and_keep_their_order() {
        assert!(Question::new("x/y", 7).is_err());
        #[derive(Serialize)]
        struct Ordered {
            b: u8,
            a: u8,
        }
        let question = Question::form("?", Ordered { b: 1, a: 2 }).unwrap();
        assert_eq!(question.params().get(), r#"{"message":"?","requestedSchema":{"b":1,"a":2}}"#);
        let other_order = Question::form("?", json!({"a": 2, "b": 1})).unwrap();
        assert_eq!(question.digest("n"), other_order.digest("n"));
    }
}
