//! Results and questions in the shape of the client's revision.
//!
//! Handlers write the newest shape. What an older client would take for something else, or not take at all, is edited
//! here: named members only, each where it stands, so that all else keeps its bytes. Members that a revision merely
//! does not know stay, for the schemas of all revisions are open.
//!
//! | what | in | becomes |
//! |---|---|---|
//! | `resultType` of `complete` | up to 2025-11-25 | nothing: there every result is |
//! | `ttlMs`, `cacheScope` of the results that have them | up to 2025-11-25 | nothing |
//! | `structuredContent`, `outputSchema` that are no object, or not one's schema | 2025-06-18, 2025-11-25 | nothing; text, if there is no other content |
//! | `structuredContent` without other content | up to 2025-03-26 | text |
//! | `resource_link` | up to 2025-03-26 | a text with its name and URI |
//! | `audio` | 2024-11-05 | a text that says so |
//! | several blocks in one message for sampling | up to 2025-06-18 | as many messages |
//! | the `elicitationId` of a URL elicitation | 2025-11-25; 2026-07-28 | is there; is not there |

mod content;
mod edits;
mod question;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

pub(crate) use self::edits::Edits;
use super::envelope;
use super::names::method;
use super::revision::{Era, Revision};
use super::scan::inside::{elements, entries};

/// Whether a reply has any of `resultType`, `ttlMs` and `cacheScope`, or a `structuredContent` that is no object. It
/// knows without being read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hints {
    None,
    Some,
}

/// What has to change in a result, so that a client of the revision can read it.
pub(crate) fn result(method: &str, revision: Revision, json: &[u8], hints: Hints) -> Edits {
    let mut edits = Edits::default();
    if revision.era() == Era::Legacy && (hints == Hints::Some || is_shaped(method, revision)) {
        edit(method, revision, json, hints, &mut edits);
    }
    edits
}

/// What has to change in the params of a question. `new_id` makes an `elicitationId` where one is missing.
pub(crate) fn question(method: &str, revision: Revision, params: &[u8], new_id: impl FnOnce() -> String) -> Edits {
    let mut edits = Edits::default();
    question::edit(method, revision, params, 0..params.len(), new_id, &mut edits);
    edits
}

/// What has to change in the questions of a result that is `input_required`.
pub(crate) fn input_required(revision: Revision, json: &[u8]) -> Edits {
    let mut edits = Edits::default();
    entries(json, 0..json.len(), |entry| {
        if entry.name == b"inputRequests" {
            entries(json, entry.value, |asked| {
                let (mut method, mut params) = (None, 0..0);
                entries(json, asked.value, |entry| match entry.name {
                    b"method" => method = word(json, &entry.value),
                    b"params" => params = entry.value,
                    _ => {}
                });
                // From 2026-07-28 on no question needs an id.
                question::edit(&method.unwrap_or_default(), revision, json, params, String::new, &mut edits);
            });
        }
    });
    edits
}

/// Whether anything in the results of the method, beside the hints, has a shape of its own in the revision.
fn is_shaped(method: &str, revision: Revision) -> bool {
    match method {
        method::TOOLS_LIST => knows_structured_content(revision),
        method::TOOLS_CALL | method::PROMPTS_GET => content::is_shaped(revision),
        _ => false,
    }
}

/// Whether tools of the revision have structured content: objects, as their schemas say, until 2026-07-28.
fn knows_structured_content(revision: Revision) -> bool {
    revision >= Revision::V2025_06_18
}

/// The members of a result that can change.
#[derive(Default)]
struct Named {
    result_type: Option<Range<usize>>,
    content: Option<Range<usize>>,
    structured: Option<Structured>,
    messages: Range<usize>,
    tools: Range<usize>,
}

struct Structured {
    whole: Range<usize>,
    value: Range<usize>,
}

impl Named {
    fn read(json: &[u8]) -> Self {
        let mut named = Self::default();
        entries(json, 0..json.len(), |entry| match entry.name {
            b"resultType" => named.result_type = Some(entry.value),
            b"content" => named.content = Some(entry.value),
            b"structuredContent" => named.structured = Some(Structured { whole: entry.whole, value: entry.value }),
            b"messages" => named.messages = entry.value,
            b"tools" => named.tools = entry.value,
            _ => {}
        });
        named
    }
}

fn edit(method: &str, revision: Revision, json: &[u8], hints: Hints, edits: &mut Edits) {
    let named = Named::read(json);
    let mut gone: Vec<&[u8]> = Vec::new();
    if hints == Hints::Some && method::has_cache_hints(method) {
        gone.extend([&b"ttlMs"[..], b"cacheScope"]);
    }
    if named.result_type.as_ref().and_then(|value| word(json, value)).as_deref() == Some("complete") {
        gone.push(b"resultType");
    }
    match method {
        method::TOOLS_CALL if called(revision, json, &named, edits) == Then::RemoveStructured => {
            gone.push(b"structuredContent");
        }
        method::TOOLS_LIST if knows_structured_content(revision) => {
            elements(json, named.tools, |tool| tool_schema(json, tool, edits));
        }
        method::PROMPTS_GET => elements(json, named.messages, |message| {
            entries(json, message, |entry| {
                if entry.name == b"content" {
                    content::edit(revision, json, entry.value, edits);
                }
            });
        }),
        _ => {}
    }
    if !gone.is_empty() {
        edits.remove(json, 0..json.len(), |name| gone.contains(&name));
    }
}

/// What is left to do with the structured content of a tool's result.
#[derive(PartialEq, Eq)]
enum Then {
    Nothing,
    RemoveStructured,
}

/// The result of a tool.
fn called(revision: Revision, json: &[u8], named: &Named, edits: &mut Edits) -> Then {
    let mut has_content = false;
    if let Some(content) = &named.content {
        elements(json, content.clone(), |block| {
            has_content = true;
            content::edit(revision, json, block, edits);
        });
    }
    let Some(Structured { whole, value }) = &named.structured else {
        return Then::Nothing;
    };
    let structured = json.get(value.clone()).unwrap_or_default();
    let is_known = knows_structured_content(revision);
    if is_known && structured.starts_with(b"{") {
        return Then::Nothing;
    }
    if has_content || structured == b"null" {
        // Where it is not known it does no harm.
        return if is_known { Then::RemoveStructured } else { Then::Nothing };
    }
    let text = content::text(structured);
    match &named.content {
        Some(content) if starts_with(json, content, b"[") => {
            edits.replace(content.clone(), [b"[", &text[..], b"]"].concat());
            Then::RemoveStructured
        }
        // Content of another type is the handler's own mistake.
        Some(_) => Then::Nothing,
        None => {
            edits.replace(whole.clone(), [b"\"content\":[", &text[..], b"]"].concat());
            Then::Nothing
        }
    }
}

/// Removes an `outputSchema` that is not an object's: clients up to 2025-11-25 would refuse the whole list.
fn tool_schema(json: &[u8], tool: Range<usize>, edits: &mut Edits) {
    let (mut is_there, mut of_object) = (false, false);
    entries(json, tool.clone(), |entry| {
        if entry.name == b"outputSchema" {
            is_there = true;
            entries(json, entry.value, |entry| {
                of_object |= entry.name == b"type" && word(json, &entry.value).as_deref() == Some("object");
            });
        }
    });
    if is_there && !of_object {
        edits.remove(json, tool, |name| name == b"outputSchema");
    }
}

/// The text of a string.
fn word<'a>(json: &'a [u8], value: &Range<usize>) -> Option<Cow<'a, str>> {
    json.get(value.clone()).and_then(envelope::text)
}

fn starts_with(json: &[u8], value: &Range<usize>, start: &[u8]) -> bool {
    json.get(value.clone()).is_some_and(|json| json.starts_with(start))
}
