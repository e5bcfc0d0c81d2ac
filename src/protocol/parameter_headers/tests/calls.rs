use super::*;

const HELLO: &str = r#"{ "other": "x", "value": "Hello" }"#;

#[test]
fn missing_doubled_or_undecodable_is_refused() {
    let tool = tool_of("string");
    assert_eq!(check(&tool, &[], HELLO), Err(Missing));
    assert_eq!(check(&tool, &[(VALUE, "Hello"), (VALUE, "Hello")], HELLO), Err(Twice));
    assert_eq!(check(&tool, &[(VALUE, "=?base64?SGVsbG8?=")], HELLO), Err(Encoding));
    assert_eq!(check(&tool, &[(VALUE, "=?base64?SGVs!!!bG8=?=")], HELLO), Err(Encoding));
    assert_eq!(check(&tool, &[(VALUE, "世界")], r#"{"value":"世界"}"#), Err(Bytes));
    assert_eq!(check(&tool, &[(VALUE, "世界")], "{}"), Err(Bytes));
}

#[test]
fn names_match_in_any_case_and_are_reported_as_annotated() {
    let tool = ParameterHeaders::of_schema(&json!({
        "properties": { "r": { "type": "string", "x-mcp-header": "ReGion" } },
    }));
    assert_eq!(check(&tool, &[("MCP-PARAM-REGION", "eu")], r#"{"r":"eu"}"#), Ok(()));
    let Err(ParameterFault::Header(fault)) = tool.check(&headers(&[]), Some(br#"{"r":"secret"}"#)) else {
        panic!("the header is missing");
    };
    assert_eq!(fault.to_string(), "Header mismatch: Mcp-Param-ReGion is missing");
}

#[test]
fn unknown_ones_are_ignored() {
    let tool = tool_of("string");
    let pairs = [(VALUE, "Hello"), ("mcp-param-else", "世"), ("mcp-param-else", "=?base64?!?=")];
    assert_eq!(check(&tool, &pairs, HELLO), Ok(()));
    assert_eq!(check(&ParameterHeaders::default(), &pairs, r#"{"value":1,"value":2}"#), Ok(()));
}

#[test]
fn each_of_several_is_checked() {
    let tool = ParameterHeaders::of_schema(&json!({ "properties": {
        "a": { "type": "string", "x-mcp-header": "A" },
        "b": { "type": "integer", "x-mcp-header": "B" },
    } }));
    let arguments = r#"{"b":1,"a":"x"}"#;
    assert_eq!(check(&tool, &[("mcp-param-a", "x"), ("mcp-param-b", "1")], arguments), Ok(()));
    assert_eq!(check(&tool, &[("mcp-param-a", "y"), ("mcp-param-b", "1")], arguments), Err(Different));
    assert_eq!(check(&tool, &[("mcp-param-a", "x"), ("mcp-param-b", "2")], arguments), Err(Different));
    assert_eq!(check(&tool, &[("mcp-param-a", "x")], arguments), Err(Missing));
}

#[test]
fn any_is_seen() {
    assert!(any_parameter_header(&headers(&[("Mcp-Param-X", "1")])));
    assert!(!any_parameter_header(&headers(&[("mcp-name", "x"), ("x-mcp-param-x", "1")])));
}
