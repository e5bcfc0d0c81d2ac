//! JSON's grammar: the tokens, and any value at any depth.

use super::{Fault, Span};

/// The deepest nesting that can be asked for: the kinds of the open containers are kept in the bits of a `u128`.
pub(super) const MAX_NESTING: u32 = 128;

/// A position in a text, and what must be known of the text before it.
pub(super) struct Scanner<'a> {
    text: &'a [u8],
    pub(super) at: usize,
    /// Where spans are counted from.
    pub(super) base: usize,
    depth: u32,
    nesting: u32,
    pub(super) line_break: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8], nesting: u32) -> Result<Self, Fault> {
        if u32::try_from(text.len()).is_err() {
            return Err(Fault::Syntax);
        }
        Ok(Self { text, at: 0, base: 0, depth: 0, nesting: nesting.min(MAX_NESTING), line_break: false })
    }

    /// At `{`: calls `member` with each key, at the start of its value, which `member` must read.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8]) -> Result<(), Fault>,
    ) -> Result<Span, Fault> {
        let start = self.at;
        self.enter()?;
        self.white_space();
        if self.peek() == b'}' {
            self.leave();
            return Ok(self.span_from(start));
        }
        loop {
            let key = self.key()?;
            self.white_space();
            if key.escaped {
                member(self, key.name(&mut [0; NAME_LEN]))?;
            } else {
                member(self, key.text)?;
            }
            self.white_space();
            match self.peek() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return Err(Fault::Syntax),
            }
        }
        self.leave();
        Ok(self.span_from(start))
    }

    /// Any value. Most are strings.
    pub(super) fn value(&mut self) -> Result<Span, Fault> {
        let start = self.at;
        if self.peek() == b'"' {
            self.string()?;
            return Ok(self.span_from(start));
        }
        self.other_value(start)
    }

    /// Any value, in a loop: the kinds of the containers opened here are one bit each, 1 for an object.
    fn other_value(&mut self, start: usize) -> Result<Span, Fault> {
        let outside = self.depth;
        let mut kinds = 0u128;
        loop {
            match self.peek() {
                b'"' => {
                    self.string()?;
                }
                b'{' => {
                    self.enter()?;
                    kinds = kinds << 1 | 1;
                    self.white_space();
                    if self.peek() != b'}' {
                        self.key()?;
                        self.white_space();
                        continue;
                    }
                }
                b'[' => {
                    self.enter()?;
                    kinds <<= 1;
                    self.white_space();
                    if self.peek() != b']' {
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return Err(Fault::Syntax),
            }
            loop {
                if self.depth == outside {
                    return Ok(self.span_from(start));
                }
                self.white_space();
                match (self.peek(), kinds & 1) {
                    (b',', in_object) => {
                        self.at += 1;
                        if in_object == 1 {
                            self.key()?;
                        }
                        self.white_space();
                        break;
                    }
                    (b'}', 1) | (b']', 0) => {
                        self.leave();
                        kinds >>= 1;
                    }
                    _ => return Err(Fault::Syntax),
                }
            }
        }
    }

    /// A key and its colon.
    pub(super) fn key(&mut self) -> Result<Text<'a>, Fault> {
        self.white_space();
        let key = self.string()?;
        self.white_space();
        self.eat(b':')?;
        Ok(key)
    }

    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'a>, Fault> {
        self.eat(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_len(self.text.get(self.at..).unwrap_or_default());
            match self.text.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(Fault::Syntax),
            }
        }
        let text = self.text_from(start);
        self.at += 1;
        Ok(Text { text, escaped })
    }

    #[cold]
    fn escape(&mut self) -> Result<(), Fault> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6).ok_or(Fault::Syntax)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Fault::Syntax);
                }
                self.at += 6;
            }
            _ => return Err(Fault::Syntax),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start { Err(Fault::Syntax) } else { Ok(()) }
    }

    fn literal(&mut self, literal: &[u8]) -> Result<(), Fault> {
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(literal)) {
            self.at += literal.len();
            Ok(())
        } else {
            Err(Fault::Syntax)
        }
    }

    /// At an opening bracket.
    #[inline]
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        if self.depth == self.nesting {
            return Err(Fault::Nesting);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// At the closing bracket of the innermost container.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() != byte {
            return Err(Fault::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    pub(super) fn white_space(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' => {}
                b'\n' | b'\r' => self.line_break = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Nothing but white space may follow.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.white_space();
        if self.at == self.text.len() { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// The byte here; at the end NUL, which begins no token.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start - self.base, self.at - self.base)
    }

    /// What stands between a position and this one.
    pub(super) fn text_from(&self, start: usize) -> &'a [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }
}

/// What stands between the quotes of a string.
pub(super) struct Text<'a> {
    pub(super) text: &'a [u8],
    /// Whether any character of it is written as an escape.
    pub(super) escaped: bool,
}

impl<'a> Text<'a> {
    /// What it says, if that can be a name of the protocol; else what is written.
    pub(super) fn name<'n>(&self, buf: &'n mut [u8; NAME_LEN]) -> &'n [u8]
    where
        'a: 'n,
    {
        if self.escaped { ascii_name(self.text, buf).unwrap_or(self.text) } else { self.text }
    }
}

/// How many bytes a string goes on with before the next quote, backslash or control character.
#[inline]
pub(crate) fn plain_len(text: &[u8]) -> usize {
    let mut rest = text;
    // Most strings end soon, and are passed over eight bytes at a time.
    while let Some((eight, after)) = rest.split_first_chunk() {
        let marks = special(u64::from_le_bytes(*eight));
        if marks != 0 {
            return text.len() - rest.len() + (marks.trailing_zeros() / 8) as usize;
        }
        rest = after;
        if text.len() - rest.len() == SOON {
            rest = rest.get(plain_blocks(rest)..).unwrap_or_default();
        }
    }
    text.len() - rest.iter().position(|byte| is_special(*byte)).map_or(0, |at| rest.len() - at)
}

const SOON: usize = 64;

/// The plain bytes in front of a text, in whole blocks, of which the compiler makes vector instructions.
fn plain_blocks(text: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let is_plain = |block: &[u8; BLOCK]| block.iter().fold(0, |found, byte| found | u8::from(is_special(*byte))) == 0;
    let mut at = 0;
    while text.get(at..).and_then(<[u8]>::first_chunk).is_some_and(is_plain) {
        at += BLOCK;
    }
    at
}

fn is_special(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

/// Marks the bytes that end a run of plain characters: the quote, the backslash and everything below a space.
///
/// The lowest mark is exact; a borrow may set false ones above it.
fn special(eight: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let control = eight.wrapping_sub(ONES * 0x20) & !eight;
    let quote = eight ^ (ONES * 0x22);
    let quote = quote.wrapping_sub(ONES) & !quote;
    let backslash = eight ^ (ONES * 0x5c);
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (control | quote | backslash) & HIGHS
}

/// More than the longest name the protocol has.
pub(super) const NAME_LEN: usize = 64;

/// Unescapes a key, where the outcome can be a name of the protocol: printable ASCII, and short.
fn ascii_name<'n>(escaped: &[u8], name: &'n mut [u8; NAME_LEN]) -> Option<&'n [u8]> {
    let mut len = 0;
    let mut rest = escaped;
    while let Some((&first, after)) = rest.split_first() {
        let byte;
        (byte, rest) = match (first, after) {
            (b'\\', [b'u', digits @ ..]) => {
                let (digits, after) = digits.split_at_checked(4)?;
                let unit = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                (u8::try_from(unit).ok().filter(u8::is_ascii)?, after)
            }
            (b'\\', [byte @ (b'"' | b'\\' | b'/'), after @ ..]) => (*byte, after),
            (b'\\', _) => return None,
            (byte, after) => (byte, after),
        };
        *name.get_mut(len)? = byte;
        len += 1;
    }
    name.get(..len)
}
