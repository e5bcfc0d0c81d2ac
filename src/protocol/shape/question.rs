//! Questions: the params of requests that the server makes.

use std::ops::Range;

use super::{Edits, content, starts_with, word};
use crate::protocol::names::method;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::scan::inside::{elements, entries};

/// Changes the params of a question, which stand at `params`, so that a client of the revision can read them. `new_id`
/// makes an `elicitationId` where one is missing.
pub(super) fn edit(
    method: &str,
    revision: Revision,
    json: &[u8],
    params: Range<usize>,
    new_id: impl FnOnce() -> String,
    edits: &mut Edits,
) {
    match (method, revision) {
        (method::ELICITATION_CREATE, Revision::V2025_11_25) => identify(json, params, new_id, edits),
        (method::ELICITATION_CREATE, revision) if revision.era() == Era::Modern => anonymise(json, params, edits),
        (method::SAMPLING_CREATE_MESSAGE, revision) if revision < Revision::V2025_11_25 => {
            entries(json, params, |entry| {
                if entry.name == b"messages" {
                    elements(json, entry.value, |message| sampled(revision, json, message, edits));
                }
            });
        }
        _ => {}
    }
}

/// What is read of the params of `elicitation/create`.
#[derive(Default)]
struct Elicitation {
    is_url: bool,
    /// Where its mode stands.
    mode: Range<usize>,
    has_id: bool,
}

impl Elicitation {
    fn read(json: &[u8], params: Range<usize>) -> Self {
        let mut read = Self::default();
        entries(json, params, |entry| match entry.name {
            b"mode" => {
                read.is_url = word(json, &entry.value).as_deref() == Some("url");
                read.mode = entry.value;
            }
            b"elicitationId" => read.has_id = true,
            _ => {}
        });
        read
    }
}

/// An elicitation by URL has an id in 2025-11-25.
fn identify(json: &[u8], params: Range<usize>, new_id: impl FnOnce() -> String, edits: &mut Edits) {
    let elicitation = Elicitation::read(json, params);
    if elicitation.is_url && !elicitation.has_id {
        let id = serde_json::Value::from(new_id()).to_string();
        let after = elicitation.mode.end;
        edits.replace(after..after, [b",\"elicitationId\":", id.as_bytes()].concat());
    }
}

/// From 2026-07-28 on it has none.
fn anonymise(json: &[u8], params: Range<usize>, edits: &mut Edits) {
    if Elicitation::read(json, params.clone()).is_url {
        edits.remove(json, params, |name| name == b"elicitationId");
    }
}

/// A message has one block before 2025-11-25. Where it has more, there are as many messages.
fn sampled(revision: Revision, json: &[u8], message: Range<usize>, edits: &mut Edits) {
    let mut content = None;
    entries(json, message.clone(), |entry| {
        if entry.name == b"content" {
            content = Some(entry.value);
        }
    });
    let Some(content) = content else { return };
    if !starts_with(json, &content, b"[") {
        return content::edit(revision, json, content, edits);
    }
    let part = |range: Range<usize>| json.get(range).unwrap_or_default();
    let (before, after) = (part(message.start..content.start), part(content.end..message.end));
    let mut messages = Vec::new();
    elements(json, content, |block| {
        if !messages.is_empty() {
            messages.push(b',');
        }
        messages.extend_from_slice(before);
        match content::shaped(revision, json, block.clone()) {
            Some(shaped) => messages.extend_from_slice(&shaped),
            None => messages.extend_from_slice(part(block)),
        }
        messages.extend_from_slice(after);
    });
    // One without any has nothing to say, and no revision forbids it.
    if !messages.is_empty() {
        edits.replace(message, messages);
    }
}
