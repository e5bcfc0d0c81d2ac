//! Blocks of content, one by one.

use std::ops::Range;

use super::{Edits, word};
use crate::protocol::revision::Revision;
use crate::protocol::scan::inside::entries;

/// Whether the revision lacks a kind of content that 2026-07-28 has.
pub(super) fn is_shaped(revision: Revision) -> bool {
    revision < Revision::V2025_06_18
}

/// Replaces a block whose kind the revision does not know.
pub(super) fn edit(revision: Revision, json: &[u8], block: Range<usize>, edits: &mut Edits) {
    if let Some(shaped) = shaped(revision, json, block.clone()) {
        edits.replace(block, shaped);
    }
}

/// The text in the place of a block whose kind the revision does not know.
pub(super) fn shaped(revision: Revision, json: &[u8], block: Range<usize>) -> Option<Vec<u8>> {
    if !is_shaped(revision) {
        return None;
    }
    let block = Block::read(json, block);
    let text = match block.kind.as_deref()? {
        "audio" if revision < Revision::V2025_03_26 => match block.mime_type {
            Some(mime_type) => [b"[Audio: ", mime_type, b"]"].concat(),
            None => b"[Audio]".to_vec(),
        },
        "resource_link" => match (block.name, block.uri) {
            (Some(name), Some(uri)) => [name, b": ", uri].concat(),
            (one, other) => one.or(other).unwrap_or_default().to_vec(),
        },
        _ => return None,
    };
    let mut shaped = [b"{\"type\":\"text\",\"text\":\"", &text[..], b"\""].concat();
    for kept in [block.annotations, block.meta].into_iter().flatten() {
        shaped.push(b',');
        shaped.extend_from_slice(kept);
    }
    shaped.push(b'}');
    Some(shaped)
}

/// A JSON value as the JSON of a text block.
pub(super) fn text(json: &[u8]) -> Vec<u8> {
    let text = serde_json::Value::from(String::from_utf8_lossy(json)).to_string();
    [b"{\"type\":\"text\",\"text\":", text.as_bytes(), b"}"].concat()
}

/// What is read of a block. Strings are what stands between their quotes, escapes and all.
#[derive(Default)]
struct Block<'a> {
    kind: Option<std::borrow::Cow<'a, str>>,
    name: Option<&'a [u8]>,
    uri: Option<&'a [u8]>,
    mime_type: Option<&'a [u8]>,
    /// With their names.
    annotations: Option<&'a [u8]>,
    meta: Option<&'a [u8]>,
}

impl<'a> Block<'a> {
    fn read(json: &'a [u8], block: Range<usize>) -> Self {
        let mut read = Self::default();
        entries(json, block, |entry| {
            let quoted = || json.get(entry.value.clone())?.strip_prefix(b"\"")?.strip_suffix(b"\"");
            match entry.name {
                b"type" => read.kind = word(json, &entry.value),
                b"name" => read.name = quoted(),
                b"uri" => read.uri = quoted(),
                b"mimeType" => read.mime_type = quoted(),
                b"annotations" => read.annotations = json.get(entry.whole),
                b"_meta" => read.meta = json.get(entry.whole),
                _ => {}
            }
        });
        read
    }
}
