use super::*;

#[test]
fn strings_compare_as_they_are() {
    let tool = tool_of("string");
    for (header, body) in [
        ("Hello", r#""Hello""#),
        ("=?base64?SGVsbG8=?=", r#""Hello""#),
        ("SGVsbG8=", r#""SGVsbG8=""#),
        ("=?base64?SGVsbG8=", r#""=?base64?SGVsbG8=""#),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", r#""=?base64?literal?=""#),
        ("=?base64?IHBhZGRlZCA=?=", r#"" padded ""#),
        ("=?base64?bGluZTEKbGluZTI=?=", r#""line1\nline2""#),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", r#""Hello, \u4e16\u754c""#),
        ("=?base64?8J+Ygg==?=", r#""\ud83d\ude02""#),
        ("Hello", r#""\u0048ello""#),
        (" Hello\t", r#""Hello""#),
        ("", r#""""#),
        ("42", r#""42""#),
        ("true", r#""true""#),
        ("null", r#""null""#),
    ] {
        assert_eq!(check(&tool, &[(VALUE, header)], &format!(r#"{{"value":{body}}}"#)), Ok(()), "{header} {body}");
    }
    for (header, body) in [
        ("hello", r#""Hello""#),
        ("42.0", r#""42""#),
        ("", r#""x""#),
        ("padded", r#"" padded ""#),
        ("=?base64?7aCA?= ", r#""\ud800""#),
        ("x", r#""\ud800""#),
    ] {
        let fault = check(&tool, &[(VALUE, header)], &format!(r#"{{"value":{body}}}"#));
        assert!(matches!(fault, Err(Different | Encoding)), "{header} {body}: {fault:?}");
    }
}

#[test]
fn booleans_compare_as_words() {
    let tool = tool_of("boolean");
    assert_eq!(check(&tool, &[(VALUE, "true")], r#"{"value":true}"#), Ok(()));
    assert_eq!(check(&tool, &[(VALUE, "false")], r#"{"value":false}"#), Ok(()));
    for header in ["false", "True", "TRUE", "1", ""] {
        assert_eq!(check(&tool, &[(VALUE, header)], r#"{"value":true}"#), Err(Different), "{header}");
    }
}

#[test]
fn integers_compare_by_value() {
    let tool = tool_of("integer");
    let spellings = ["42", "42.0", "4.2e1"];
    for header in spellings {
        for body in spellings {
            assert_eq!(check(&tool, &[(VALUE, header)], &format!(r#"{{"value":{body}}}"#)), Ok(()));
        }
    }
    assert_eq!(check(&tool, &[(VALUE, "=?base64?NDI=?=")], r#"{"value":42}"#), Ok(()));
    assert_eq!(check(&tool, &[(VALUE, "0")], r#"{"value":-0}"#), Ok(()));
    for header in ["43", "-42", "42.5", "042", "+42", "0x2a", "forty-two", "", "9007199254740992", "1e999999999"] {
        assert_eq!(check(&tool, &[(VALUE, header)], r#"{"value":42}"#), Err(Different), "{header}");
    }
    // As doubles the first two are one number.
    assert_eq!(check(&tool, &[(VALUE, "9007199254740990.9")], r#"{"value":9007199254740991}"#), Err(Different));
    assert_eq!(check(&tool, &[(VALUE, "9007199254740990")], r#"{"value":9007199254740991}"#), Err(Different));
}

#[test]
fn integers_beyond_the_safe_range_are_refused() {
    let tool = tool_of("integer");
    for body in ["9007199254740992", "-9007199254740992", "1e999999999", "123456789012345678901234567890"] {
        let arguments = format!(r#"{{"value":{body}}}"#);
        assert_eq!(check(&tool, &[(VALUE, body)], &arguments), Err(OutOfRange), "{body}");
        assert_eq!(check(&tool, &[], &arguments), Err(OutOfRange), "{body}");
    }
}

#[test]
fn the_type_that_counts_is_the_body_values() {
    let (string, integer) = (tool_of("string"), tool_of("integer"));
    assert_eq!(check(&string, &[(VALUE, "42.0")], r#"{"value":42}"#), Ok(()));
    assert_eq!(check(&integer, &[(VALUE, "42.0")], r#"{"value":"42"}"#), Err(Different));
    assert_eq!(check(&integer, &[(VALUE, "true")], r#"{"value":true}"#), Ok(()));
}

#[test]
fn no_value_wants_no_header() {
    let tool = tool_of("string");
    for arguments in [
        "{}",
        "null",
        "[]",
        r#""value""#,
        " {} ",
        r#"{"value":null}"#,
        r#"{"value":{}}"#,
        r#"{"value":["x"]}"#,
        r#"{"value":1.5}"#,
        r#"{"value":1e-9}"#,
        r#"{"other":"x"}"#,
        r#"{"Value":"x"}"#,
        r#"{"nested":{"value":"x"}}"#,
    ] {
        assert_eq!(check(&tool, &[], arguments), Ok(()), "{arguments}");
        for header in ["x", "", "null", "1.5", "{}"] {
            assert_eq!(check(&tool, &[(VALUE, header)], arguments), Err(Unexpected), "{arguments} {header}");
        }
    }
    assert_eq!(tool.check(&headers(&[]), None), Ok(()));
    assert!(tool.check(&headers(&[(VALUE, "x")]), None).is_err());
}
