//! The bytes of a Server-Sent Events stream: one `message` event for each JSON-RPC message.
//!
//! A message is written once, with the event around it, so that the event and the JSON body are slices of one
//! buffer.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[cfg(test)]
mod tests;

/// What an event begins with. The JSON text follows.
pub(crate) const EVENT_HEAD: &[u8] = b"event: message\ndata: ";

/// The same, and the beginning of a response. The result follows.
pub(crate) const RESULT_HEAD: &[u8] = b"event: message\ndata: {\"result\":";

/// The end of the `data:` line, and the blank line that closes the event.
const EVENT_END: &[u8] = b"\n\n";

/// A comment, which clients ignore: it shows them, and whatever stands between, that the stream lives.
pub(crate) const KEEP_ALIVE: &[u8] = b":\n\n";

/// The same event with an id.
pub(crate) fn identified(id: &str, event: &[u8]) -> Bytes {
    [b"id: ", id.as_bytes(), b"\n", event].concat().into()
}

/// An event that says nothing but its id, from which a client can resume, and how many milliseconds to wait before it
/// does (2025-11-25, "Sending Messages to the Server").
pub(crate) fn mark(id: &str, retry: Option<u128>) -> Bytes {
    let retry = retry.map(|retry| format!("retry: {retry}\n")).unwrap_or_default();
    format!("id: {id}\n{retry}data: \n\n").into()
}

/// Bytes that a message may hold and not use.
const SPARE: usize = 1 << 10;

/// Room for a small message, so that writing one takes one allocation.
pub(crate) const SMALL: usize = 512;

/// One finished JSON-RPC message.
#[derive(Clone, Debug)]
pub(crate) struct Frame(Bytes);

impl Frame {
    /// Closes the event in `buf`: [`EVENT_HEAD`] and a JSON text without line breaks.
    pub(crate) fn seal(mut buf: Vec<u8>) -> Self {
        debug_assert!(buf.starts_with(EVENT_HEAD), "a frame begins with the head of an event");
        buf.extend_from_slice(EVENT_END);
        Self(buf.into())
    }

    /// An error response. Without an id it has no `id` member at all.
    pub(crate) fn error(id: Option<&[u8]>, code: i32, message: &str, data: Option<&RawValue>) -> Self {
        let (id_key, id) = id.map_or_else(Default::default, |id| (&b",\"id\":"[..], id));
        let (data_key, data) = data.map_or_else(Default::default, |data| (&b",\"data\":"[..], data.get().as_bytes()));
        let mut buf = [
            EVENT_HEAD,
            b"{\"jsonrpc\":\"2.0\"",
            id_key,
            id,
            b",\"error\":{\"code\":",
            code.to_string().as_bytes(),
            b",\"message\":",
            Value::from(message).to_string().as_bytes(),
            data_key,
            data,
            b"}}",
        ]
        .concat();
        to_one_line(&mut buf, EVENT_HEAD.len());
        Self::seal(buf)
    }

    /// A notification.
    pub(crate) fn notification<P: Serialize + ?Sized>(
        method: &str,
        params: Option<&P>,
    ) -> Result<Self, serde_json::Error> {
        #[derive(Serialize)]
        struct Notification<'a, P: ?Sized> {
            jsonrpc: &'static str,
            method: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            params: Option<&'a P>,
        }
        Self::message(&Notification { jsonrpc: "2.0", method, params })
    }

    /// A whole message of any kind.
    pub(crate) fn message<T: Serialize>(message: &T) -> Result<Self, serde_json::Error> {
        let mut buf = Vec::with_capacity(SMALL);
        buf.extend_from_slice(EVENT_HEAD);
        serde_json::to_writer(&mut buf, message)?;
        to_one_line(&mut buf, EVENT_HEAD.len());
        if buf.capacity() - buf.len() > SPARE {
            // It may wait for long, and what it grew into beyond its end would count for nobody.
            buf.shrink_to(buf.len() + EVENT_END.len());
        }
        Ok(Self::seal(buf))
    }

    /// The event, its blank line included.
    pub(crate) fn event(&self) -> Bytes {
        self.0.clone()
    }

    /// The message as a line of a byte stream, its line feed included.
    pub(crate) fn line(&self) -> Bytes {
        line(&self.0)
    }

    /// The message alone.
    pub(crate) fn json(&self) -> Bytes {
        self.0.slice(EVENT_HEAD.len()..self.0.len() - EVENT_END.len())
    }
}

/// The line of a byte stream that says what an event says.
pub(crate) fn line(event: &Bytes) -> Bytes {
    event.slice(EVENT_HEAD.len()..event.len() - 1)
}

/// Removes the white space of the JSON text in `buf[from..]` if that holds a line break, and tells whether it did.
///
/// What serde_json writes is one line, but a `RawValue` anywhere inside is copied as the application wrote it. A
/// string of JSON holds no raw line break, so one that is found is white space.
pub(crate) fn to_one_line(buf: &mut Vec<u8>, from: usize) -> bool {
    let broken = buf.get(from..).is_some_and(has_line_break);
    if broken {
        let text = buf.split_off(from);
        let (mut in_string, mut escaped) = (false, false);
        buf.extend(text.into_iter().filter(|&byte| {
            if in_string {
                in_string = escaped || byte != b'"';
                escaped = !escaped && byte == b'\\';
                return true;
            }
            in_string = byte == b'"';
            !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
        }));
    }
    broken
}

fn has_line_break(text: &[u8]) -> bool {
    // Whole blocks of plain bytes, so that the compiler makes vector instructions of it: 15 times as fast as `any`.
    let breaks =
        |block: &[u8]| block.iter().fold(0, |found, &byte| found | u8::from(byte == b'\n') | u8::from(byte == b'\r'));
    text.chunks(64).any(|block| breaks(block) != 0)
}
