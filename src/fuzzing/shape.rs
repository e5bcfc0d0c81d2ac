//! Results in the shape of an older revision, events of one line, and the canonical form.

use serde_json::Value;
use serde_json::value::RawValue;

use super::part;
use crate::protocol::revision::Revision;
use crate::protocol::shape::{self, Hints};
use crate::protocol::sse::Frame;

const METHODS: [&str; 4] = ["tools/call", "tools/list", "prompts/get", "resources/read"];

/// A byte that chooses method and revision, and any JSON.
pub fn shape(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else { return };
    let method = METHODS[usize::from(choice & 3)];
    let revision = Revision::ALL[usize::from(choice >> 2) % Revision::ALL.len()];
    let hints = if choice & 0x80 == 0 { Hints::None } else { Hints::Some };
    let json = part(&mut rest);
    let Ok(raw) = serde_json::from_slice::<&RawValue>(json) else { return };
    one_line(raw);
    #[cfg(feature = "state")]
    canonical(raw.get());
    let json = raw.get().as_bytes();
    let once = shaped(method, revision, json, hints);
    assert!(serde_json::from_slice::<&RawValue>(&once).is_ok(), "no JSON any more");
    if revision == Revision::V2026_07_28 {
        assert_eq!(once, json, "the newest shape has nothing to change");
    }
    let edits = shape::question(method_of_question(choice), revision, json, || "\"made\"".into());
    let mut question = Vec::new();
    edits.apply(json, &mut question);
    assert!(serde_json::from_slice::<&RawValue>(&question).is_ok(), "no JSON any more");
}

fn shaped(method: &str, revision: Revision, json: &[u8], hints: Hints) -> Vec<u8> {
    let mut out = Vec::new();
    shape::result(method, revision, json, hints).apply(json, &mut out);
    out
}

fn method_of_question(choice: u8) -> &'static str {
    ["elicitation/create", "sampling/createMessage", "roots/list"][usize::from(choice) % 3]
}

/// An event is one line, and says the same.
fn one_line(raw: &RawValue) {
    let frame = Frame::message(&raw).expect("JSON");
    let event = frame.event();
    let line = event.strip_prefix(b"event: message\ndata: ").and_then(|event| event.strip_suffix(b"\n\n")).unwrap();
    assert!(!line.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "a line break in an event");
    assert_eq!(frame.json(), line);
    assert_eq!(frame.line().strip_suffix(b"\n"), Some(line));
    let read = serde_json::from_str::<Value>(raw.get()).ok();
    assert_eq!(serde_json::from_slice::<Value>(line).ok(), read);
}

/// The form is that of the value, however it is written.
#[cfg(feature = "state")]
fn canonical(text: &str) {
    use crate::protocol::scan::canonical;

    let form = |text: &str| {
        let mut form = Vec::new();
        canonical::write(text.as_bytes(), &["_meta"], &mut form).map(|()| form)
    };
    let ours = form(text);
    // serde_json keeps one of doubled members, and takes what is past an integer for a float.
    let Ok(read) = serde_json::from_str::<Value>(text) else { return };
    let pretty = format!("{read:#}");
    if ours.is_ok() && count(text) == count(&pretty) && is_exact(&read) {
        assert_eq!(ours, form(&pretty), "the same value, another form");
    }
}

#[cfg(feature = "state")]
fn count(text: &str) -> usize {
    let (mut colons, mut in_string, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            in_string = byte == b'"';
            colons += usize::from(byte == b':');
        }
    }
    colons
}

#[cfg(feature = "state")]
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Array(elements) => elements.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}
