use super::*;

fn nested() -> ParameterHeaders {
    ParameterHeaders::of_schema(&json!({ "properties": { "where": { "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "deep": { "properties": { "zone": { "type": "integer", "x-mcp-header": "Zone" } } },
    } } } }))
}

#[test]
fn nested_values_are_read_at_the_exact_chain() {
    let tool = nested();
    let pairs = [("mcp-param-region", "eu"), ("mcp-param-zone", "3")];
    assert_eq!(check(&tool, &pairs, r#"{"where": {"deep": {"zone": 3}, "region": "eu"}}"#), Ok(()));
    assert_eq!(check(&tool, &pairs, r#"{"where":{"deep":{"zone":4},"region":"eu"}}"#), Err(Different));
    assert_eq!(check(&tool, &[], r#"{"region":"eu","zone":3,"deep":{"zone":3}}"#), Ok(()));
    assert_eq!(check(&tool, &[("mcp-param-zone", "3")], r#"{"deep":{"zone":3}}"#), Err(Unexpected));
}

#[test]
fn a_chain_that_breaks_off_has_no_value() {
    let tool = nested();
    for arguments in [
        r#"{"where":null}"#,
        r#"{"where":[{"region":"eu"}]}"#,
        r#"{"where":"{\"region\":1}"}"#,
        r#"{"where":{"deep":null}}"#,
    ] {
        assert_eq!(check(&tool, &[], arguments), Ok(()), "{arguments}");
        assert_eq!(check(&tool, &[("mcp-param-region", "eu")], arguments), Err(Unexpected), "{arguments}");
    }
}

#[test]
fn keys_may_hold_dots_slashes_and_escapes() {
    let tool = ParameterHeaders::of_schema(&json!({ "properties": {
        "a.b": { "type": "string", "x-mcp-header": "Dot" },
        "a": { "properties": { "b": { "type": "string", "x-mcp-header": "Nested" } } },
        "a/b": { "type": "string", "x-mcp-header": "Slash" },
        "é": { "type": "string", "x-mcp-header": "Accent" },
        "": { "type": "string", "x-mcp-header": "Nothing" },
    } }));
    assert!(tool.faults().is_empty());
    let arguments = r#"{"a.b":"1","a":{"b":"2"},"a\/b":"3","\u00e9":"4","":"5"}"#;
    let pairs = [
        ("mcp-param-dot", "1"),
        ("mcp-param-nested", "2"),
        ("mcp-param-slash", "3"),
        ("mcp-param-accent", "4"),
        ("mcp-param-nothing", "5"),
    ];
    assert_eq!(check(&tool, &pairs, arguments), Ok(()));
    for left_out in 0..pairs.len() {
        let fewer: Vec<_> = pairs.iter().copied().filter(|pair| *pair != pairs[left_out]).collect();
        assert_eq!(check(&tool, &fewer, arguments), Err(Missing), "{}", pairs[left_out].0);
    }
}

#[test]
fn a_property_may_be_called_like_a_keyword() {
    let tool = ParameterHeaders::of_schema(&json!({ "properties": {
        "x-mcp-header": { "type": "string", "x-mcp-header": "Odd" },
        "properties": { "properties": { "items": { "type": "string", "x-mcp-header": "Odder" } } },
        "default": { "type": "string", "x-mcp-header": "Oddest" },
    } }));
    assert!(tool.faults().is_empty());
    let arguments = r#"{"x-mcp-header":"1","properties":{"items":"2"},"default":"3"}"#;
    let pairs = [("mcp-param-odd", "1"), ("mcp-param-odder", "2"), ("mcp-param-oddest", "3")];
    assert_eq!(check(&tool, &pairs, arguments), Ok(()));
    assert_eq!(check(&tool, &pairs[..2], arguments), Err(Missing));
}

#[test]
fn doubled_members_on_the_way_are_refused() {
    let tool = nested();
    let pairs = [("mcp-param-region", "eu")];
    for arguments in [
        r#"{"where":{"region":"eu"},"where":{"region":"eu"}}"#,
        r#"{"where":{"region":"eu","region":"eu"}}"#,
        r#"{"where":{"region":"eu","r\u0065gion":"us"}}"#,
        r#"{"wher\u0065":null,"where":{"region":"eu"}}"#,
        r#"{"where":{"region":"eu","deep":1,"deep":{}}}"#,
        r#"{"where":{"region":"us","deep":{"zone":1,"zone":1}}}"#,
    ] {
        assert!(is_duplicate(&tool, &pairs, arguments), "{arguments}");
        assert!(is_duplicate(&tool, &[], arguments), "{arguments}");
    }
    for arguments in [
        r#"{"x":1,"x":2,"where":{"region":"eu","y":1,"y":2,"deep":{"z":1,"z":1}}}"#,
        r#"{"region":1,"region":2,"where":{"region":"eu"}}"#,
    ] {
        assert_eq!(check(&tool, &pairs, arguments), Ok(()), "{arguments}");
    }
}

#[test]
fn hostile_neighbours_do_no_harm() {
    let tool = tool_of("string");
    let pairs = [(VALUE, "x")];
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for other in [r#""\ud800""#, "1e999", "-0.0e-999999999", "123456789012345678901234567890.5", deep.as_str()] {
        for key in ["other", r"\ud800", r"\udc00\ud800", r"\u0000"] {
            let arguments = format!(r#"{{"{key}":{other},"value":"x"}}"#);
            assert_eq!(check(&tool, &pairs, &arguments), Ok(()), "{key}");
        }
    }
    let arguments = format!(r#"{{"value":{deep}}}"#);
    assert_eq!(check(&tool, &[], &arguments), Ok(()));
}
