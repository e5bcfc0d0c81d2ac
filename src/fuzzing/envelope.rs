//! The envelope against serde_json, which reads the same text by other code.

use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::envelope::{self, Body, BodyFaultKind, Claim, Kind, Message};
use crate::protocol::names::meta;
use crate::protocol::scan::Caps;

const CAPS: Caps = Caps { nesting: 128, elements: 3 };

/// Any body.
pub fn envelope(data: &[u8]) {
    let ours = envelope::read(Bytes::copy_from_slice(data), CAPS);
    let kind = ours.as_ref().err().map(|fault| fault.kind);
    let Ok(text) = std::str::from_utf8(data) else {
        assert_eq!(kind, Some(BodyFaultKind::NotUtf8));
        return;
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Neither interprets numbers or surrogates, or counts how deep it is.
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    match kind {
        Some(BodyFaultKind::Nesting) => assert!(depth(text) > 128, "not that deep"),
        Some(BodyFaultKind::Syntax) => assert!(!is_json, "serde_json takes it"),
        _ => assert!(is_json && depth(text) <= 128, "serde_json does not take it, or it is too deep"),
    }
    match (&ours, text.trim_ascii_start().as_bytes().first()) {
        (Ok(Body::Message(message)), first) => {
            assert_eq!(first, Some(&b'{'));
            unambiguous(message, text);
            same(message, text);
        }
        (Ok(Body::Batch(batch)), first) => {
            assert_eq!(first, Some(&b'['));
            elements(batch, text);
        }
        (Err(fault), first) => {
            let is_container = matches!(first, Some(b'{' | b'['));
            assert_eq!(fault.kind == BodyFaultKind::NotAnObject, is_json && !is_container);
            if let Some(id) = &fault.id {
                let last = Pairs::of(text).and_then(|pairs| pairs.last("id"));
                assert!(last.is_none_or(|last| last == id.as_str()), "an id that is not the message's");
            }
        }
    }
}

/// How deep containers nest.
fn depth(text: &str) -> usize {
    let (mut depth, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// No reader, whichever copy of a doubled member it takes, sees another message.
fn unambiguous(message: &Message, text: &str) {
    let Some(top) = Pairs::of(text) else { return };
    top.once(&["jsonrpc", "id", "method", "params"]);
    let Some(params) = message.params().and_then(|params| Pairs::of(std::str::from_utf8(params).unwrap())) else {
        return;
    };
    params.once(&["_meta", "name", "uri", "taskId", "arguments", "inputResponses", "requestState"]);
    if let Some(meta) = params.last("_meta").and_then(|meta| Pairs::of(&meta)) {
        meta.once(&[meta::PROTOCOL_VERSION]);
    }
}

/// The members say what serde_json reads. It reads no half of a surrogate pair and no number past a float.
fn same(message: &Message, text: &str) {
    let Ok(read) = serde_json::from_str::<Value>(text) else { return };
    let value = |json: Option<&[u8]>| json.map(|json| serde_json::from_slice::<Value>(json).unwrap());
    let (top, params) = (|key: &str| read.get(key), |key: &str| read.get("params").and_then(|params| params.get(key)));
    let meta = |key: &str| params("_meta").and_then(|meta| meta.get(key));

    let kind = match (top("method"), top("id")) {
        (Some(_), Some(_)) => Kind::Request,
        (Some(_), None) => Kind::Notification,
        (None, _) => Kind::Response,
    };
    assert_eq!(message.kind, kind);
    assert_eq!(read["jsonrpc"], "2.0");
    assert_eq!(message.method(), top("method").map_or("", |method| method.as_str().unwrap()));
    assert_eq!(value(message.raw_id()).as_ref(), top("id"));
    if let Some(id) = message.id() {
        assert!(top("id").is_some_and(|id| id.is_string() || id.is_number()));
        assert_eq!(serde_json::from_str::<Value>(id.as_str()).ok().as_ref(), top("id"));
    }
    assert_eq!(value(message.params()).as_ref(), top("params"));
    if kind == Kind::Response {
        assert_eq!(value(message.result()).as_ref(), top("result"));
        assert_eq!(value(message.error()).as_ref(), top("error"));
        return;
    }
    assert_eq!(message.name(), params("name").and_then(Value::as_str));
    assert_eq!(message.uri(), params("uri").and_then(Value::as_str));
    assert_eq!(message.task_id().as_deref(), params("taskId").and_then(Value::as_str));
    assert_eq!(value(message.arguments()).as_ref(), params("arguments"));
    assert_eq!(value(message.input_responses()).as_ref(), params("inputResponses"));
    assert_eq!(value(message.request_state()).as_ref(), params("requestState"));
    assert_eq!(value(message.client_capabilities()).as_ref(), meta(meta::CLIENT_CAPABILITIES));
    let claim = match meta(meta::PROTOCOL_VERSION) {
        None => Claim::Absent,
        Some(Value::String(version)) => Claim::Text(version.into()),
        Some(_) => Claim::NotText,
    };
    assert_eq!(message.claim(), claim);
}

/// Each element is judged as it is alone.
fn elements(batch: &envelope::Batch, text: &str) {
    let elements: Vec<&RawValue> = serde_json::from_str(text).expect("an array");
    assert_eq!(batch.len, elements.len());
    assert_eq!(batch.elements.len(), elements.len().min(CAPS.elements));
    for (ours, element) in batch.elements.iter().zip(elements) {
        let alone = envelope::read(Bytes::copy_from_slice(element.get().as_bytes()), CAPS);
        match (ours, alone) {
            (Ok(message), Ok(Body::Message(alone))) => {
                assert_eq!((message.kind, message.method(), message.id()), (alone.kind, alone.method(), alone.id()));
                assert_eq!((message.params(), message.claim()), (alone.params(), alone.claim()));
                assert!(batch.claims_modern() || message.claim() == Claim::Absent);
            }
            (Err(fault), Err(alone)) => assert_eq!(*fault, alone),
            // Alone it would be an array within an array.
            (Err(fault), Ok(Body::Batch(_))) => assert_eq!(fault.kind, BodyFaultKind::NotAnObject),
            (ours, alone) => panic!("{ours:?} in the array, {alone:?} alone"),
        }
    }
}

/// The members of an object as they stand there, doubled ones too.
struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// `None` where a name is no text.
    fn of(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn last(&self, name: &str) -> Option<String> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    fn once(&self, names: &[&str]) {
        let mut seen = HashMap::<&str, usize>::new();
        self.0.iter().for_each(|(key, _)| *seen.entry(key).or_default() += 1);
        for name in names {
            assert!(seen.get(name).is_none_or(|&count| count == 1), "{name} is there twice");
        }
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            pairs.push((key, value.get().to_owned()));
        }
        Ok(Pairs(pairs))
    }
}
