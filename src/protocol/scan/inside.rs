//! The parts of one object or array, and where each stands, for those who edit it.
//!
//! The text has been found to be JSON. In any other one, the visit ends where the grammar does.

use std::ops::Range;

use super::Fault;
use super::grammar::{MAX_NESTING, NAME_LEN, Scanner};

/// A member of an object.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    /// What it is called, if that can be a name of the protocol; else how that is written.
    pub(crate) name: &'a [u8],
    /// Its name and its value.
    pub(crate) whole: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// Visits the members of the object that stands at `object` in a text. Of another value there are none.
pub(crate) fn entries(text: &[u8], object: Range<usize>, mut visit: impl FnMut(Entry<'_>)) {
    let _ = parts(text, object, b'{', b'}', |scanner, offset| {
        let start = scanner.at;
        let key = scanner.key()?;
        scanner.white_space();
        let value = scanner.value()?.range();
        let value = offset + value.start..offset + value.end;
        visit(Entry { name: key.name(&mut [0; NAME_LEN]), whole: offset + start..value.end, value });
        Ok(())
    });
}

/// Visits the elements of the array that stands at `array` in a text. Of another value there are none.
pub(crate) fn elements(text: &[u8], array: Range<usize>, mut visit: impl FnMut(Range<usize>)) {
    let _ = parts(text, array, b'[', b']', |scanner, offset| {
        let value = scanner.value()?.range();
        visit(offset + value.start..offset + value.end);
        Ok(())
    });
}

fn parts(
    text: &[u8],
    whole: Range<usize>,
    open: u8,
    close: u8,
    mut part: impl FnMut(&mut Scanner<'_>, usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let offset = whole.start;
    let mut scanner = Scanner::new(text.get(whole).unwrap_or_default(), MAX_NESTING)?;
    scanner.white_space();
    if scanner.peek() != open {
        return Ok(());
    }
    scanner.enter()?;
    scanner.white_space();
    if scanner.peek() == close {
        return Ok(());
    }
    loop {
        scanner.white_space();
        part(&mut scanner, offset)?;
        scanner.white_space();
        match scanner.peek() {
            b',' => scanner.at += 1,
            byte if byte == close => return Ok(()),
            _ => return Err(Fault::Syntax),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_are_found_where_they_stand() {
        let text = r#"..{ "a" : [1, {"b":2}] ,"\u0063":"}" , "\u00e9":null }.."#;
        let mut found = Vec::new();
        entries(text.as_bytes(), 2..text.len() - 2, |entry| {
            let name = String::from_utf8(entry.name.to_vec()).unwrap();
            found.push((name, &text[entry.whole], &text[entry.value]));
        });
        let of = |name: &str, whole, value| (name.to_owned(), whole, value);
        let expected = [
            of("a", r#""a" : [1, {"b":2}]"#, r#"[1, {"b":2}]"#),
            of("c", r#""\u0063":"}""#, r#""}""#),
            of("\\u00e9", r#""\u00e9":null"#, "null"),
        ];
        assert_eq!(found, expected);

        let mut found = Vec::new();
        elements(text.as_bytes(), 10..22, |element| found.push(&text[element]));
        assert_eq!(found, ["1", r#"{"b":2}"#]);
        for (text, count) in [("{}", 0), ("[]", 0), ("[ ]", 0), ("7", 0), ("\"[1]\"", 0), ("[[],[]]", 2)] {
            let mut found = 0;
            entries(text.as_bytes(), 0..text.len(), |_| found += 1);
            elements(text.as_bytes(), 0..text.len(), |_| found += 1);
            assert_eq!(found, count, "{text}");
        }
        let mut found = Vec::new();
        elements(b"[1 2]", 0..5, |element| found.push(element));
        assert_eq!(found, std::iter::once(1..2).collect::<Vec<_>>());
    }
}
