//! The ids of events: which stream, and where in it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A stream of a session: 128 random bits, so that nobody can name one who was not sent an event of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamId([u8; 16]);

impl StreamId {
    /// `None` where the system has no randomness.
    pub(crate) fn mint() -> Option<Self> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).ok()?;
        Some(Self(bits))
    }
}

/// How many characters 128 bits are.
const STREAM_LENGTH: usize = 22;

/// The id of one event. The first of a stream has the number 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) stream: StreamId,
    pub(crate) number: u64,
}

impl EventId {
    /// Reads what a client sends back. Only what [`Display`](fmt::Display) writes is one.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let (stream, rest) = text.split_at_checked(STREAM_LENGTH)?;
        let mut bits = [0; 16];
        // It decodes to as many: the length is right.
        URL_SAFE_NO_PAD.decode_slice(stream, &mut bits).ok()?;
        let number = std::str::from_utf8(rest.strip_prefix(b"-")?).ok()?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        let number = number.parse().ok().filter(|_| is_plain)?;
        Some(Self { stream: StreamId(bits), number })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stream = [0; STREAM_LENGTH];
        let written = URL_SAFE_NO_PAD.encode_slice(self.stream.0, &mut stream).unwrap_or_default();
        let stream = stream.get(..written).and_then(|stream| std::str::from_utf8(stream).ok()).unwrap_or_default();
        write!(f, "{stream}-{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for number in [1, 2, 10, u64::MAX] {
            let id = EventId { stream: StreamId::mint().unwrap(), number };
            let text = id.to_string();
            assert!(text.len() <= 43 && text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(EventId::read(text.as_bytes()), Some(id));
        }
        assert_ne!(StreamId::mint(), StreamId::mint());
    }

    #[test]
    fn nothing_else_is() {
        let stream = "AAAAAAAAAAAAAAAAAAAAAA";
        assert!(EventId::read(format!("{stream}-1").as_bytes()).is_some());
        let long = format!("{stream}-{}", "1".repeat(100_000));
        for text in [
            "",
            "-",
            "-1",
            "1",
            stream,
            "AAAAAAAAAAAAAAAAAAAAAA-",
            "AAAAAAAAAAAAAAAAAAAAAA-0",
            "AAAAAAAAAAAAAAAAAAAAAA-01",
            "AAAAAAAAAAAAAAAAAAAAAA-+1",
            "AAAAAAAAAAAAAAAAAAAAAA--1",
            "AAAAAAAAAAAAAAAAAAAAAA-1 ",
            "AAAAAAAAAAAAAAAAAAAAAA_1",
            "AAAAAAAAAAAAAAAAAAAAAB-1",
            "AAAAAAAAAAAAAAAAAAAAA=-1",
            "AAAAAAAAAAAAAAAAAAAAA+-1",
            "AAAAAAAAAAAAAAAAAAAAAA-18446744073709551616",
            "\u{e9}AAAAAAAAAAAAAAAAAAAA-1",
            &long,
        ] {
            assert_eq!(EventId::read(text.as_bytes()), None, "{text:.60}");
        }
    }
}
