mod calls;
mod paths;
mod schemas;
mod values;

use http::HeaderValue;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::protocol::mirror::MirrorFaultKind::{
    self, Bytes, Different, Encoding, Missing, OutOfRange, Twice, Unexpected,
};

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// Checks a call; `Ok`, or the kind of the fault.
fn check(tool: &ParameterHeaders, pairs: &[(&str, &str)], arguments: &str) -> Result<(), MirrorFaultKind> {
    tool.check(&headers(pairs), Some(arguments.as_bytes())).map_err(|fault| match fault {
        ParameterFault::Header(fault) => fault.what,
        ParameterFault::DuplicateArgument => panic!("{arguments} has no duplicates"),
    })
}

fn is_duplicate(tool: &ParameterHeaders, pairs: &[(&str, &str)], arguments: &str) -> bool {
    tool.check(&headers(pairs), Some(arguments.as_bytes())) == Err(ParameterFault::DuplicateArgument)
}

/// A tool with one annotated property `value`, mirrored in `Mcp-Param-Value`.
fn tool_of(kind: &str) -> ParameterHeaders {
    let tool = ParameterHeaders::of_schema(&json!({
        "type": "object",
        "properties": { "value": { "type": kind, "x-mcp-header": "Value" }, "other": { "type": "string" } },
    }));
    assert!(tool.faults().is_empty() && !tool.is_empty());
    tool
}

/// The faults of a schema as text, sorted.
fn faults(schema: &Value) -> Vec<String> {
    let mut faults: Vec<_> = ParameterHeaders::of_schema(schema).faults().iter().map(ToString::to_string).collect();
    faults.sort();
    faults
}

const VALUE: &str = "mcp-param-value";
