//! Reads an event stream, whatever pieces it comes in.

use std::mem;

/// The events of a stream. Those without data, comments and the other fields mean nothing here.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The beginning of a line.
    line: Vec<u8>,
    /// The data of the event that is still coming.
    data: Option<String>,
    /// The id that came last, of an event with data or without.
    id: Option<String>,
    /// Whether the client was told when to come back.
    retries: bool,
}

impl Events {
    /// Reads on, and returns the data of the events that are whole now.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") {
                let line = mem::take(&mut self.line);
                events.extend(self.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])));
            }
        }
        events
    }

    /// The id that came last.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether there is anything to come back with or after (up to 2025-11-25).
    pub(super) const fn is_resumable(&self) -> bool {
        self.id.is_some() || self.retries
    }

    /// Reads a line; an empty one ends an event.
    fn line(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return self.data.take();
        }
        if let Some(value) = value(line, "id:") {
            self.id = Some(value.to_owned());
        }
        self.retries |= line.starts_with("retry:");
        if let Some(value) = value(line, "data:") {
            self.data = Some(match self.data.take() {
                Some(data) => data + "\n" + value,
                None => value.to_owned(),
            });
        }
        None
    }
}

/// The value of a line of this field.
fn value<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    line.strip_prefix(field).map(|value| value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_whatever_pieces_they_come_in() {
        let stream = ":\n\nevent: message\ndata: {\"a\":\ndata:  1}\n\nid: 7\ndata:\n\ndata: \u{e4}\r\n\r\nretry: 1\n\n\
                      data: cut";
        let expected = ["{\"a\":\n 1}", "", "\u{e4}"];
        for size in 1..=stream.len() {
            let mut events = Events::default();
            let read: Vec<_> = stream.as_bytes().chunks(size).flat_map(|piece| events.read(piece)).collect();
            assert_eq!(read, expected, "in pieces of {size}");
            assert_eq!(events.last_id(), Some("7"));
        }
    }
}
