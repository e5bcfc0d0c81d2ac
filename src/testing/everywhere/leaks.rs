//! Words of one era that a client of the other must not read.

use serde_json::{Map, Value};

use super::place::{Carrier, Place};
use crate::protocol::names::{code, meta, method};
use crate::protocol::revision::Era;

/// Members of a result that only 2026-07-28 has.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "inputRequests", "requestState"];

/// Members of those results that say for how long they may be kept, which only 2026-07-28 has. Elsewhere they are the
/// handler's own.
const CACHE_HINTS: [&str; 2] = ["ttlMs", "cacheScope"];

/// Keys of `_meta` that only 2026-07-28 has.
const MODERN_META: [&str; 6] = [
    meta::SERVER_INFO,
    meta::SUBSCRIPTION_ID,
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
];

/// Errors that only 2026-07-28 has.
const MODERN_CODES: [i32; 2] = [code::HEADER_MISMATCH, code::MISSING_CLIENT_CAPABILITY];

/// Errors that only earlier revisions have.
const LEGACY_CODES: [i32; 2] = [code::RESOURCE_NOT_FOUND, code::URL_ELICITATION_REQUIRED];

/// What stands in a message on the way to the answer of this method, and has no business there.
pub(super) fn in_message(place: Place, method: &str, message: &Value) -> Vec<String> {
    match place.revision.era() {
        Era::Legacy => modern_words(method, message),
        Era::Modern => legacy_words(place, message),
    }
}

fn modern_words(asked: &str, message: &Value) -> Vec<String> {
    let mut leaks = Vec::new();
    let object = |name: &str| message.get(name).and_then(Value::as_object);
    if let Some(result) = object("result") {
        let hints: &[_] = if method::has_cache_hints(asked) { &CACHE_HINTS } else { &[] };
        let words = present(result, &MODERN_MEMBERS).chain(present(result, hints));
        leaks.extend(words.map(|word| format!("`{word}` in a result")));
    }
    for holder in ["result", "params"].into_iter().filter_map(object) {
        let meta = holder.get("_meta").and_then(Value::as_object);
        let words = meta.into_iter().flat_map(|meta| present(meta, &MODERN_META));
        leaks.extend(words.map(|word| format!("`{word}` in _meta")));
    }
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
    if method.starts_with("notifications/subscriptions/") {
        leaks.push(format!("`{method}`"));
    }
    leaks.extend(error_code(message, &MODERN_CODES));
    leaks
}

fn legacy_words(place: Place, message: &Value) -> Vec<String> {
    let mut leaks = Vec::new();
    let (asks, is_answer) = (message.get("method").is_some(), message.get("result").is_some());
    if asks && message.get("id").is_some() {
        leaks.push("a request of the server's".to_owned());
    }
    if is_answer && message.pointer("/result/resultType").is_none() {
        leaks.push("a result without `resultType`".to_owned());
    }
    if place.carrier == Carrier::Stdio || !asks {
        leaks.extend(error_code(message, &LEGACY_CODES));
    }
    leaks
}

fn error_code(message: &Value, codes: &[i32]) -> Option<String> {
    let code = message.pointer("/error/code")?.as_i64()?;
    codes.iter().any(|leaking| i64::from(*leaking) == code).then(|| format!("the error code {code}"))
}

fn present<'a>(object: &'a Map<String, Value>, words: &'a [&'static str]) -> impl Iterator<Item = &'static str> + 'a {
    words.iter().copied().filter(|word| object.contains_key(*word))
}
