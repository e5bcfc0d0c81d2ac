//! Bytes into lines.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// A line up to this long is copied, so that a message keeps no more than itself alive.
const COPIED: usize = 4 << 10;

/// Cuts what is read into lines.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// How much of it is known to hold no line feed.
    searched: usize,
    /// Bytes that a line may have.
    limit: usize,
    /// In a line that is too long, up to its end.
    skipping: bool,
}

/// What was cut.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of a line, without its line feed.
    Whole(Bytes),
    /// One that is longer than the limit; nothing of it is kept.
    TooLong,
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, skipping: false }
    }

    /// Where the next bytes go.
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(CHUNK);
        &mut self.buffer
    }

    /// The next line; `None` where more has to be read first.
    pub(crate) fn next(&mut self) -> Option<Line> {
        loop {
            let new = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(end) = memchr(b'\n', new).map(|at| self.searched + at) else {
                return self.unfinished();
            };
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                self.buffer.advance(end + 1);
                continue;
            }
            return Some(self.cut(end));
        }
    }

    /// The last line, which may lack its line feed.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.buffer).freeze();
        (!self.skipping && !rest.is_empty()).then_some(Line::Whole(rest))
    }

    fn cut(&mut self, end: usize) -> Line {
        let line = if end > self.limit {
            self.buffer.advance(end);
            Line::TooLong
        } else if end <= COPIED {
            let line = Bytes::copy_from_slice(self.buffer.get(..end).unwrap_or_default());
            self.buffer.advance(end);
            Line::Whole(line)
        } else {
            Line::Whole(self.buffer.split_to(end).freeze())
        };
        self.buffer.advance(1);
        line
    }

    fn unfinished(&mut self) -> Option<Line> {
        self.searched = self.buffer.len();
        let is_too_long = self.buffer.len() > self.limit && !self.skipping;
        if is_too_long || self.skipping {
            // A new one, so that the memory goes too.
            self.buffer = BytesMut::new();
            self.searched = 0;
            self.skipping = true;
        }
        is_too_long.then_some(Line::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text that comes in pieces of this many bytes.
    fn cut(text: &[u8], limit: usize, piece: usize) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        let mut cut = Vec::new();
        for bytes in text.chunks(piece) {
            lines.buffer().extend_from_slice(bytes);
            cut.extend(std::iter::from_fn(|| lines.next()));
        }
        cut.extend(lines.finish());
        cut
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        for piece in 1..20 {
            assert_eq!(cut(b"one\n\ntwo\r\nlast", 9, piece), [whole("one"), whole(""), whole("two\r"), whole("last")]);
            assert_eq!(cut(b"one\n", 9, piece), [whole("one")]);
            assert_eq!(cut(b"", 9, piece), []);
        }
    }

    #[test]
    fn one_that_is_too_long_is_told_once_and_the_next_is_whole() {
        for piece in 1..30 {
            let text = b"0123456789abcdef0123456789abcdef\n1234\n12345\nz";
            assert_eq!(
                cut(text, 4, piece),
                [Line::TooLong, whole("1234"), Line::TooLong, whole("z")],
                "in pieces of {piece}"
            );
            assert_eq!(cut(b"1\n123456", 4, piece).first(), Some(&whole("1")));
        }
    }

    #[test]
    fn what_is_too_long_is_not_kept() {
        let mut lines = Lines::new(1 << 20);
        let mut told = 0;
        for _ in 0..300 {
            lines.buffer().extend_from_slice(&[b'x'; 64 << 10]);
            told += usize::from(lines.next() == Some(Line::TooLong));
            assert!(lines.buffer.capacity() <= 4 << 20);
        }
        assert_eq!(told, 1);
    }
}
