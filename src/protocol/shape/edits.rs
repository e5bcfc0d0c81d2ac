//! Changes to a text that keep all else as it is.

use std::ops::Range;

use crate::protocol::scan::inside::entries;

/// What stands where, and what comes in its place. No two overlap.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, Vec<u8>)>);

impl Edits {
    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn replace(&mut self, range: Range<usize>, by: Vec<u8>) {
        self.0.push((range, by));
    }

    /// Removes members of the object that stands at `object`, each with one comma.
    pub(super) fn remove(&mut self, json: &[u8], object: Range<usize>, is_removed: impl Fn(&[u8]) -> bool) {
        // The end of the member before, once one is kept.
        let mut kept = None;
        // Members that go while none is kept before take the comma behind them.
        let mut pending: Option<usize> = None;
        let mut last = 0;
        entries(json, object, |entry| {
            if let Some(start) = pending.take() {
                self.replace(start..entry.whole.start, Vec::new());
            }
            match (is_removed(entry.name), kept) {
                (true, Some(end)) => {
                    self.replace(end..entry.whole.end, Vec::new());
                    kept = Some(entry.whole.end);
                }
                (true, None) => pending = Some(entry.whole.start),
                (false, _) => kept = Some(entry.whole.end),
            }
            last = entry.whole.end;
        });
        if let Some(start) = pending {
            self.replace(start..last, Vec::new());
        }
    }

    /// Appends the text with all changes made.
    pub(crate) fn apply(mut self, text: &[u8], out: &mut Vec<u8>) {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut at = 0;
        for (range, by) in &self.0 {
            out.extend_from_slice(text.get(at..range.start).unwrap_or_default());
            out.extend_from_slice(by);
            at = range.end;
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
    }
}
