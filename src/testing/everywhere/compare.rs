//! Whether what two places answered is the same, as far as their revisions let it be.

use serde_json::{Value, json};

use super::outcome::Outcome;
use super::place::Place;
use crate::protocol::names::{code, meta};
use crate::protocol::revision::Era;
use crate::reply::Reply;

/// What a client in `place` is expected to read where another, of a newer revision, has read this.
pub(super) fn expected(outcome: &Outcome, method: &str, place: Place) -> Outcome {
    let mut outcome = outcome.clone();
    if let Some(result) = outcome.response.get_mut("result") {
        *result = shaped(result, method, place);
    }
    if let Some(error) = outcome.response.get_mut("error").filter(|_| place.revision.era() == Era::Legacy) {
        translate(error);
    }
    outcome
}

/// A result in the shape of the place's revision.
fn shaped(result: &Value, method: &str, place: Place) -> Value {
    if place.revision.era() == Era::Modern {
        return result.clone();
    }
    let mut result = result.clone();
    if let Some(members) = result.get_mut("_meta").and_then(Value::as_object_mut) {
        members.remove(meta::SERVER_INFO);
    }
    let Ok(mut reply) = Reply::of(&result) else {
        return result;
    };
    reply.shape(method, place.revision);
    serde_json::from_slice(reply.json()).unwrap_or(result)
}

/// An error of 2026-07-28 as clients before it read it.
fn translate(error: &mut Value) {
    if has_code(error, code::MISSING_CLIENT_CAPABILITY) {
        *error = json!({ "code": code::INTERNAL_ERROR, "message": error.get("message") });
    }
}

fn has_code(error: &Value, code: i32) -> bool {
    error.get("code").and_then(Value::as_i64) == Some(code.into())
}

/// Where two outcomes differ first: the place in the JSON, and what stands there in each.
pub(super) fn difference(expected: &Outcome, got: &Outcome) -> Option<String> {
    // What was reported before a question is reported again on 2026-07-28, where the handler runs again.
    let was_asked = expected.was_asked || got.was_asked;
    let told = |outcome: &Outcome| if was_asked { Value::Null } else { json!(outcome.notifications) };
    let pair = |outcome: &Outcome| tidied(json!({ "response": outcome.response, "notifications": told(outcome) }));
    differ("", &pair(expected), &pair(got))
}

/// Without a `_meta` that says nothing, and with one code for a resource that is not there.
fn tidied(mut pair: Value) -> Value {
    if let Some(error) = pair.pointer_mut("/response/error").filter(|error| has_code(error, code::RESOURCE_NOT_FOUND)) {
        error.as_object_mut().into_iter().for_each(|error| {
            error.insert("code".to_owned(), code::INVALID_PARAMS.into());
        });
    }
    if let Some(result) = pair.pointer_mut("/response/result").and_then(Value::as_object_mut) {
        if result.get("_meta").is_some_and(|meta| meta.as_object().is_some_and(serde_json::Map::is_empty)) {
            result.remove("_meta");
        }
    }
    pair
}

fn differ(path: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            names.into_iter().find_map(|name| {
                let path = format!("{path}/{name}");
                match (left.get(name), right.get(name)) {
                    (Some(left), Some(right)) => differ(&path, left, right),
                    (left, right) => Some(said(&path, left, right)),
                }
            })
        }
        (Value::Array(left), Value::Array(right)) => (0..left.len().max(right.len())).find_map(|at| {
            let path = format!("{path}/{at}");
            match (left.get(at), right.get(at)) {
                (Some(left), Some(right)) => differ(&path, left, right),
                (left, right) => Some(said(&path, left, right)),
            }
        }),
        // Structured content that became a text is that of the handler, whose order of members is lost here.
        (Value::String(left), Value::String(right)) if left != right && as_json(left).is_some() => {
            (as_json(left) != as_json(right)).then(|| said(path, Some(expected), Some(got)))
        }
        _ => (expected != got).then(|| said(path, Some(expected), Some(got))),
    }
}

fn as_json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

fn said(path: &str, expected: Option<&Value>, got: Option<&Value>) -> String {
    let said = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    format!("at {path}\n    expected {}\n    got      {}", said(expected), said(got))
}
