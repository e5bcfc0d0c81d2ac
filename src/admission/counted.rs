//! A body whose bytes are counted for exactly as long as anything of it is kept.

use bytes::Bytes;

use super::Hold;

/// Bytes of one body that are not counted: most messages are not longer, and answers to questions, cancellations and
/// pings must get in whatever else is held. It is less than an HTTP server holds for a connection.
pub(crate) const UNCOUNTED: usize = 4 << 10;

/// A body and what it holds. As the owner of the bytes it goes with the last slice of them, wherever that is.
#[derive(Debug)]
pub(crate) struct Counted {
    bytes: Bytes,
    _hold: Hold,
}

impl Counted {
    /// The same bytes, counted until the last slice of them is dropped.
    pub(crate) fn bytes(bytes: Bytes, hold: Option<Hold>) -> Bytes {
        match hold {
            Some(hold) => Bytes::from_owner(Self { bytes, _hold: hold }),
            None => bytes,
        }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
