//! The ids of events.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::store::EventId;

/// Any `Last-Event-ID`, and the one that the first 24 bytes make.
pub fn event_id(data: &[u8]) {
    if let Some(id) = EventId::read(data) {
        assert_eq!(id.to_string().as_bytes(), data, "two texts are one id");
        assert!(id.number > 0);
    }
    let Some((stream, rest)) = data.split_first_chunk::<16>() else { return };
    let mut number = [0; 8];
    rest.iter().zip(&mut number).for_each(|(&from, to)| *to = from);
    let number = u64::from_le_bytes(number);
    let text = format!("{}-{number}", URL_SAFE_NO_PAD.encode(stream));
    let id = EventId::read(text.as_bytes());
    assert_eq!(id.map(|id| id.to_string()), (number > 0).then_some(text));
    // One bit of the stream makes another stream.
    let mut other = *stream;
    other[rest.len() % 16] ^= 1;
    let other = EventId::read(format!("{}-{number}", URL_SAFE_NO_PAD.encode(other)).as_bytes());
    assert!(id.zip(other).is_none_or(|(id, other)| id.stream != other.stream && id.number == other.number));
}
