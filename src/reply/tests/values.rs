use std::collections::BTreeMap;

use super::*;
use crate::reply::value::{Written, write, write_string};

/// What is written is what serde_json writes.
#[track_caller]
fn assert_same(value: &impl Serialize) {
    let mut buf = b"before".to_vec();
    let written = write(&mut buf, value).unwrap();
    let want = [b"before", &serde_json::to_vec(value).unwrap()[..]].concat();
    assert_eq!(String::from_utf8(buf), String::from_utf8(want));
    assert_eq!(written, Written::OneLine);
}

/// A long string, with what a test is about in its middle.
fn long(middle: &str) -> String {
    format!("{0}{middle}{0}", "äbc".repeat(40))
}

#[test]
fn strings_are_escaped_as_serde_json_does() {
    for char in (0..0x100).filter_map(char::from_u32).chain(['\u{2028}', '\u{ffff}', '😀']) {
        let char = char.to_string();
        assert_same(&long(&char));
        assert_same(&long(&char.repeat(9)));
        assert_same(&char);
    }
    // At every distance from the words and blocks in which they are read.
    for before in 0..200 {
        for after in [0, 1, 7, 8, 9, 31, 32, 33, 100] {
            assert_same(&format!("{}\"{}", "x".repeat(before), "y".repeat(after)));
            assert_same(&format!("{}{}\n", "x".repeat(before), "y".repeat(after)));
        }
    }
    let mut buf = Vec::new();
    write_string(&mut buf, "").unwrap();
    assert_eq!(buf, b"\"\"");
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Newtype(String);

#[derive(Serialize)]
struct Tuple(String, f64, Option<String>);

#[derive(Serialize)]
enum Enum {
    Unit,
    Newtype(String),
    Tuple(String, u8),
    Struct { text: String, none: Option<u8> },
}

#[test]
fn every_shape_of_value_is_serde_jsons() {
    let text = || long("\t");
    assert_same(&(text(), Unit, Newtype(text()), Tuple(text(), 0.1, Some(text())), None::<u8>));
    assert_same(&[
        Enum::Unit,
        Enum::Newtype(text()),
        Enum::Tuple(text(), 1),
        Enum::Struct { text: text(), none: None },
    ]);
    assert_same(&(true, 'ä', -1i8, u64::MAX, i128::MIN, f32::MIN_POSITIVE, f64::NAN, 1e300, (), [text(), text()]));
    assert_same(&BTreeMap::from([(text(), BTreeMap::from([(1u8, text())]))]));
    assert_same(&BTreeMap::from([(true, text())]));
    assert_same(&json!({"a": [text(), {"b": text(), "c": 1.5e-7}], text(): null, "n": 12345678901234567890u64}));
    assert_same(&format_args!("{} {}", text(), text()));
}

#[test]
fn what_is_brought_ready_made_is_copied_and_told() {
    let raw = raw(&format!("[ {:?},\n1 ]", "x".repeat(100)));
    let mut buf = Vec::new();
    assert_eq!(write(&mut buf, &raw).unwrap(), Written::Copied);
    assert_eq!(String::from_utf8(buf).unwrap(), raw.get());
    // A string after it is a string again.
    let mut buf = Vec::new();
    write(&mut buf, &(&raw, long("\""))).unwrap();
    let want = format!("[{},{}]", raw.get(), serde_json::to_string(&long("\"")).unwrap());
    assert_eq!(String::from_utf8(buf).unwrap(), want);
}

#[test]
fn faults_are_serde_jsons() {
    let mut buf = Vec::new();
    assert!(write(&mut buf, &BTreeMap::from([(vec![1], long(""))])).is_err());
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("not today"))
        }
    }
    assert_eq!(write(&mut buf, &[Some(Fails)]).unwrap_err().to_string(), "not today");
}
