//! The `x-mcp-header` walk over a schema, and the headers of a call against its arguments.

use http::{HeaderMap, HeaderName};
use serde_json::Value;

use super::{header_map, part};
use crate::ParameterHeaders;
use crate::protocol::sentinel;

/// A schema, a NUL, arguments, a NUL, headers.
pub fn parameters(mut data: &[u8]) {
    let (schema, arguments, headers) = (part(&mut data), part(&mut data), header_map(part(&mut data)));
    let Ok(text) = std::str::from_utf8(schema) else { return };
    let schema = serde_json::from_str::<Value>(text);
    let found = ParameterHeaders::of_schema(text);
    let Ok(schema) = schema else {
        assert!(found.is_empty() && found.faults().len() == 1, "what cannot be read is one fault");
        return;
    };
    for fault in found.faults() {
        let place = schema.pointer(fault.pointer()).expect("a place in the schema");
        assert!(fault.to_string().contains("too deep") || place.get("x-mcp-header").is_some(), "{fault}");
    }
    let Ok(read) = serde_json::from_slice::<Value>(arguments) else { return };
    if found.check(&headers, Some(arguments)).is_ok() && found.faults().is_empty() {
        mirrored(&schema, Some(&read), &headers);
    }
    if found.is_empty() {
        assert_eq!(found.check(&headers, Some(arguments)), Ok(()));
    }
}

/// What was let through says in its headers what it says in its arguments. The schema has no faults.
fn mirrored(schema: &Value, arguments: Option<&Value>, headers: &HeaderMap) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (key, schema) in properties {
        let argument = arguments.and_then(|arguments| arguments.get(key));
        if let Some(name) = schema.get("x-mcp-header").and_then(Value::as_str) {
            let name = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).expect("no fault was found");
            let mut values = headers.get_all(name).iter();
            let value = values.next().map(|value| {
                sentinel::plain(value).and_then(|value| sentinel::decode(value).ok()).expect("no fault was found")
            });
            assert_eq!(values.next(), None, "a header that came twice was let through");
            assert!(says(value.as_deref(), argument), "{value:?} was taken for {argument:?}");
        }
        mirrored(schema, argument, headers);
    }
}

fn says(header: Option<&str>, argument: Option<&Value>) -> bool {
    let Some(text) = header else {
        return match argument {
            Some(Value::String(_) | Value::Bool(_)) => false,
            Some(Value::Number(number)) => number.as_i64().is_none() || number.as_i64() == Some(i64::MAX),
            _ => true,
        };
    };
    match argument {
        Some(Value::String(argument)) => text == argument,
        Some(Value::Bool(argument)) => text == argument.to_string(),
        // One number may be written in many ways, and these two read it by a float.
        Some(Value::Number(number)) => text.parse::<f64>().ok() == number.as_f64(),
        _ => false,
    }
}
