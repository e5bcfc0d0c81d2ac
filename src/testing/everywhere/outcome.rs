//! What became of a call in one place.

use serde_json::Value;

use super::super::fail;
use crate::protocol::names::method;

/// What became of a call: the response, and what came before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// With `result` or `error`, and nothing else.
    pub(super) response: Value,
    pub(super) notifications: Vec<Value>,
    /// Whether the client was asked anything.
    pub(super) was_asked: bool,
}

impl Outcome {
    /// Sorts the messages of an answer. `None` where there is no response.
    pub(super) fn of(messages: &[Value]) -> Option<Self> {
        let mut outcome = Self { response: Value::Null, notifications: Vec::new(), was_asked: false };
        for message in messages {
            match (message.get("method").is_some(), message.get("id").is_some()) {
                // Only a byte stream has them beside its answers.
                (true, false) if is_of_a_change(message) => {}
                (true, false) => outcome.notifications.push(without(message, &["jsonrpc"])),
                (true, true) => outcome.was_asked = true,
                (false, _) => {
                    // All but the last were answered with another round.
                    outcome.was_asked |= !outcome.response.is_null();
                    outcome.response = without(message, &["jsonrpc", "id"]);
                }
            }
        }
        (!outcome.response.is_null()).then_some(outcome)
    }

    /// Returns the `result`, as the newest revision that was run reads it.
    ///
    /// # Panics
    ///
    /// If it is an error.
    #[track_caller]
    pub fn result(&self) -> &Value {
        self.response.get("result").unwrap_or_else(|| fail(format_args!("no result but {}", self.response)))
    }

    /// Returns the `error`, as the newest revision that was run reads it.
    ///
    /// # Panics
    ///
    /// If it is a result.
    #[track_caller]
    pub fn error(&self) -> &Value {
        self.response.get("error").unwrap_or_else(|| fail(format_args!("no error but {}", self.response)))
    }

    /// Returns what came before: progress, log messages, notifications of the application's own. Where the client was
    /// asked anything, also what came again in later rounds.
    pub fn notifications(&self) -> &[Value] {
        &self.notifications
    }
}

/// Whether it tells of a published change, which has nothing to do with the call.
fn is_of_a_change(message: &Value) -> bool {
    const ALL: [&str; 4] = [
        method::TOOLS_LIST_CHANGED,
        method::PROMPTS_LIST_CHANGED,
        method::RESOURCES_LIST_CHANGED,
        method::RESOURCES_UPDATED,
    ];
    message.get("method").and_then(Value::as_str).is_some_and(|method| ALL.contains(&method))
}

fn without(message: &Value, members: &[&str]) -> Value {
    let mut message = message.clone();
    if let Some(object) = message.as_object_mut() {
        members.iter().for_each(|member| drop(object.remove(*member)));
    }
    message
}
