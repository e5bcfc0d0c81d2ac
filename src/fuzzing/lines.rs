//! Bytes into lines.

use bytes::Bytes;

use crate::stdio::lines::{Line, Lines};

/// The first byte says how long a line may be, the next eight in what pieces the rest comes.
pub fn lines(data: &[u8]) {
    let Some((head, text)) = data.split_first_chunk::<9>() else { return };
    let limit = usize::from(head[0]) << (head[0] & 7);
    let pieces = head[1..].iter().map(|&piece| usize::from(piece) * usize::from(piece) / 16 + 1);
    let expected = expected(text, limit);
    assert_eq!(cut(text, limit, pieces.cycle()), expected, "in pieces");
    assert_eq!(cut(text, limit, std::iter::repeat(text.len().max(1))), expected, "in one");
}

fn cut(mut text: &[u8], limit: usize, mut pieces: impl Iterator<Item = usize>) -> Vec<Line> {
    let mut lines = Lines::new(limit);
    let mut cut = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(pieces.next().unwrap_or(1).min(text.len()));
        lines.buffer().extend_from_slice(piece);
        cut.extend(std::iter::from_fn(|| lines.next()));
        // What is kept is no line yet, and so no longer than one may be.
        assert!(lines.buffer().len() <= limit, "{} bytes kept", lines.buffer().len());
        assert!(lines.buffer().capacity() <= (limit + text.len()).max(1 << 16) * 4, "too much kept");
        text = rest;
    }
    cut.extend(lines.finish());
    cut
}

/// The lines, by nothing but their definition.
fn expected(text: &[u8], limit: usize) -> Vec<Line> {
    let line = |line: &[u8]| {
        if line.len() > limit { Line::TooLong } else { Line::Whole(Bytes::copy_from_slice(line)) }
    };
    let mut lines: Vec<_> = text.split(|&byte| byte == b'\n').map(line).collect();
    if text.last().is_none_or(|&byte| byte == b'\n') {
        lines.pop();
    }
    lines
}
