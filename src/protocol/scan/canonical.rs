//! One sequence of bytes for all the ways to write one JSON value.
//!
//! The order of members, white space, escapes and the notation of numbers do not show in it; everything that a reader
//! could tell apart does. Two values that differ never share a form, for each stands with its type and its length or
//! end:
//!
//! | value | form |
//! |---|---|
//! | `true`, `false`, `null` | `t`, `f`, `n` |
//! | a number | `#`, its significant digits, `e`, the power of ten, `,` |
//! | a string | `"`, the length of its UTF-8 in four bytes, its UTF-8 |
//! | an array | `[`, its elements, `]` |
//! | an object | `{`, its members, sorted by name, each a string and a value, `}` |
//!
//! Numbers are never read through a float, and strings may hold half a surrogate pair.

use std::ops::Range;

use super::Fault;
use super::grammar::{MAX_NESTING, Scanner, Text};

#[cfg(test)]
mod tests;

/// Appends the form of one JSON value. The members of these names are left out of it, where it is an object.
pub(crate) fn write(json: &[u8], left_out: &[&str], form: &mut Vec<u8>) -> Result<(), Fault> {
    let mut writer = Writer { scanner: Scanner::new(json, MAX_NESTING)?, form };
    writer.scanner.white_space();
    if writer.scanner.peek() == b'{' {
        writer.object(left_out)?;
    } else {
        writer.value()?;
    }
    writer.scanner.end()
}

struct Writer<'a> {
    scanner: Scanner<'a>,
    form: &'a mut Vec<u8>,
}

/// Where the form of a member stands.
struct Member {
    name: Range<usize>,
    end: usize,
}

impl Writer<'_> {
    fn value(&mut self) -> Result<(), Fault> {
        let start = self.scanner.at;
        match self.scanner.peek() {
            b'{' => self.object(&[])?,
            b'[' => self.array()?,
            b'"' => {
                let text = self.scanner.string()?;
                self.string(&text);
            }
            kind => {
                self.scanner.value()?;
                match kind {
                    b't' | b'f' | b'n' => self.form.push(kind),
                    _ => number(self.scanner.text_from(start), self.form),
                }
            }
        }
        Ok(())
    }

    fn array(&mut self) -> Result<(), Fault> {
        self.scanner.enter()?;
        self.form.push(b'[');
        self.scanner.white_space();
        if self.scanner.peek() != b']' {
            self.value()?;
            while self.goes_on(b']')? {
                self.value()?;
            }
        }
        self.scanner.leave();
        self.form.push(b']');
        Ok(())
    }

    fn object(&mut self, left_out: &[&str]) -> Result<(), Fault> {
        self.scanner.enter()?;
        self.form.push(b'{');
        self.scanner.white_space();
        let mut members = Vec::new();
        if self.scanner.peek() != b'}' {
            members.extend(self.member(left_out)?);
            while self.goes_on(b'}')? {
                members.extend(self.member(left_out)?);
            }
        }
        self.scanner.leave();
        self.sort(&mut members);
        self.form.push(b'}');
        Ok(())
    }

    /// Behind an element or a member: whether another one follows.
    fn goes_on(&mut self, end: u8) -> Result<bool, Fault> {
        self.scanner.white_space();
        match self.scanner.peek() {
            b',' => {
                self.scanner.at += 1;
                self.scanner.white_space();
                Ok(true)
            }
            byte if byte == end => Ok(false),
            _ => Err(Fault::Syntax),
        }
    }

    /// A member, unless it is left out.
    fn member(&mut self, left_out: &[&str]) -> Result<Option<Member>, Fault> {
        let key = self.scanner.key()?;
        self.scanner.white_space();
        let start = self.form.len();
        let text = self.string(&key);
        let name = self.form.get(text).unwrap_or_default();
        if left_out.iter().any(|left_out| left_out.as_bytes() == name) {
            self.form.truncate(start);
            self.scanner.value()?;
            return Ok(None);
        }
        let name = start..self.form.len();
        self.value()?;
        Ok(Some(Member { name, end: self.form.len() }))
    }

    /// Brings the members of an object into their order, the last thing that was written. Those of one name keep
    /// theirs.
    fn sort(&mut self, members: &mut [Member]) {
        let form = &*self.form;
        let name = |member: &Member| form.get(member.name.clone()).unwrap_or_default();
        if members.is_sorted_by_key(name) {
            return;
        }
        let start = members.first().map_or(form.len(), |first| first.name.start);
        members.sort_by(|a, b| name(a).cmp(name(b)));
        let mut sorted = Vec::with_capacity(form.len() - start);
        for member in members {
            sorted.extend_from_slice(form.get(member.name.start..member.end).unwrap_or_default());
        }
        self.form.truncate(start);
        self.form.extend_from_slice(&sorted);
    }

    /// Writes a string, and returns where its text stands.
    fn string(&mut self, text: &Text<'_>) -> Range<usize> {
        self.form.extend_from_slice(b"\"\0\0\0\0");
        let start = self.form.len();
        if text.escaped {
            unescape(text.text, self.form);
        } else {
            self.form.extend_from_slice(text.text);
        }
        // The scanner takes no text of 4 GiB, and nothing grows by being unescaped.
        let length = u32::try_from(self.form.len() - start).unwrap_or(u32::MAX);
        if let Some(place) = self.form.get_mut(start - 4..start) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        start..self.form.len()
    }
}

/// Writes what a string says. Half a surrogate pair is written as UTF-8 would write it, if it were a character.
fn unescape(mut text: &[u8], form: &mut Vec<u8>) {
    while let Some(at) = text.iter().position(|byte| *byte == b'\\') {
        let (plain, escape) = text.split_at(at);
        form.extend_from_slice(plain);
        let length = match escape.get(1).copied().unwrap_or_default() {
            b'u' => unicode(escape, form),
            letter => {
                form.push(match letter {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                });
                2
            }
        };
        text = escape.get(length..).unwrap_or_default();
    }
    form.extend_from_slice(text);
}

/// Writes the character of a `\u` escape, or of two that are a pair, and returns how long they are.
fn unicode(escape: &[u8], form: &mut Vec<u8>) -> usize {
    let first = unit(escape).unwrap_or_default();
    let second = escape.get(6..).and_then(unit);
    let (point, length) = match (first, second) {
        (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => (0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00), 12),
        _ => (first, 6),
    };
    match char::from_u32(point) {
        Some(character) => form.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        None => {
            let bits = |shift: u32| ((point >> shift) & 0x3f) as u8 | 0x80;
            form.extend_from_slice(&[0xed, bits(6), bits(0)]);
        }
    }
    length
}

/// The code unit of the `\u` escape that a text begins with.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Writes a number by its value. Zero has no sign.
fn number(text: &[u8], form: &mut Vec<u8>) {
    form.push(b'#');
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let (mantissa, exponent) = split(unsigned, |byte| matches!(byte, b'e' | b'E'));
    let (whole, fraction) = split(mantissa, |byte| byte == b'.');
    let start = form.len();
    if unsigned.len() < text.len() {
        form.push(b'-');
    }
    let digits = form.len();
    form.extend(whole.iter().chain(fraction).skip_while(|digit| **digit == b'0'));
    let trailing = form.iter().skip(digits).rev().take_while(|digit| **digit == b'0').count();
    form.truncate(form.len() - trailing);
    if form.len() == digits {
        form.truncate(start);
        form.push(b'0');
    } else if let Some(exponent) = power(exponent) {
        let shift = |digits: usize| i64::try_from(digits).unwrap_or(i64::MAX);
        let exponent = exponent + shift(trailing) - shift(fraction.len());
        form.extend_from_slice(format!("e{exponent}").as_bytes());
    } else {
        // Beyond every reader. As it is written, then; no number that is counted begins like this.
        form.truncate(start);
        form.push(b'!');
        form.extend_from_slice(text);
    }
    form.push(b',');
}

/// The text before the first byte that marks, and the text behind it.
fn split(text: &[u8], mark: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| mark(*byte)) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()),
        None => (text, &[]),
    }
}

/// The value of an exponent of at most 15 digits; with a number's own digits, fewer than 2^32, it stays in an `i64`.
fn power(exponent: &[u8]) -> Option<i64> {
    if exponent.is_empty() {
        return Some(0);
    }
    let text = std::str::from_utf8(exponent).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('0');
    if digits.len() > 15 {
        return None;
    }
    let value = if digits.is_empty() { 0 } else { digits.parse::<i64>().ok()? };
    Some(if text.starts_with('-') { -value } else { value })
}
