//! A decoder of event streams that takes nothing but what this transport may send.

use std::time::Duration;

/// What stands between two blank lines of an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A line that begins with a colon.
    Comment(String),
    Event(Event),
}

/// One `message` event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub retry: Option<Duration>,
    pub data: Option<String>,
}

/// Collects bytes until they are frames.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// Adds what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole frame, or what is wrong with it: an event is made of `event: message` and one each of `data:`,
    /// `id:` and `retry:` at most, and a comment stands alone.
    pub fn next(&mut self) -> Result<Option<Frame>, String> {
        let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") else {
            return Ok(None);
        };
        let block: Vec<u8> = self.pending.drain(..end + 2).collect();
        let block = std::str::from_utf8(&block[..end]).map_err(|_| "an event that is not UTF-8")?;
        if block.contains('\r') {
            return Err(format!("a carriage return in {block:?}"));
        }
        frame(block).map(Some)
    }

    /// What is wrong with the end of the stream, if it broke off inside a frame.
    pub fn finish(&self) -> Result<(), String> {
        let rest = String::from_utf8_lossy(&self.pending);
        if rest.is_empty() { Ok(()) } else { Err(format!("the stream ended inside {rest:?}")) }
    }
}

fn frame(block: &str) -> Result<Frame, String> {
    if let Some(comment) = block.strip_prefix(':') {
        let alone = !comment.contains('\n');
        let frame = Frame::Comment(comment.trim_start().to_owned());
        return alone.then_some(frame).ok_or_else(|| format!("a comment and more in {block:?}"));
    }
    let mut event = Event::default();
    let mut named = false;
    for line in block.split('\n') {
        let (field, value) = line.split_once(':').ok_or_else(|| format!("no field of an event: {line:?}"))?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        let twice = match (field, value) {
            ("event", "message") => std::mem::replace(&mut named, true),
            ("data", _) => event.data.replace(value.to_owned()).is_some(),
            ("id", _) => event.id.replace(value.to_owned()).is_some(),
            ("retry", _) => {
                let milliseconds = value.parse().map_err(|_| format!("no milliseconds: {line:?}"))?;
                event.retry.replace(Duration::from_millis(milliseconds)).is_some()
            }
            _ => return Err(format!("a field this transport never sends: {line:?}")),
        };
        if twice {
            return Err(format!("{field} twice in {block:?}"));
        }
    }
    Ok(Frame::Event(event))
}
