use serde_json::Value;

use super::*;

fn form(json: &str) -> Vec<u8> {
    let mut form = Vec::new();
    write(json.as_bytes(), &[], &mut form).expect("JSON");
    form
}

#[test]
fn one_value_has_one_form() {
    let same = [
        &[r#"{"a":1,"b":[true,null]}"#, "{ \"b\" : [ true , null ]\n,\t\"\\u0061\" : 1.0 }"][..],
        &["0", "-0", "0.0", "0e7", "-0.00e-99999999999999999999"],
        &["100", "1e2", "1E+2", "100.0", "1000e-1", "0.1e3", "1e02"],
        &["-0.5", "-5e-1", "-0.50", "-0.05e1"],
        &["12345678901234567890", "1234567890123456789e1", "1.2345678901234567890e19"],
        &[r#""é/\n😀""#, r#""\u00e9\/\u000a\ud83d\ude00""#, r#""\u00E9\u002f\n\uD83D\uDE00""#],
        &[r#""\"\\\b\f\r\t""#, r#""\u0022\u005c\u0008\u000c\u000d\u0009""#],
        &["[]", " [ ] "],
        &["{}", "\n{ }\n"],
        &[r#"{"x":{"b":{"d":1,"c":2},"a":3}}"#, r#"{"x":{"a":3,"b":{"c":2,"d":1}}}"#],
        &[r#"{"bb":0,"a":0,"c":{}}"#, r#"{"c":{},"a":0,"bb":0}"#],
    ];
    for texts in same {
        for text in texts {
            assert_eq!(form(texts[0]), form(text), "{} and {text}", texts[0]);
        }
    }
}

#[test]
fn other_values_have_other_forms() {
    let values = [
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "10",
        "1e-1",
        "11",
        "1e11",
        "-10",
        "0.3",
        "0.30000000000000004",
        "9007199254740992",
        "9007199254740993",
        "12345678901234567890",
        "12345678901234567891",
        "1e400",
        "1e401",
        "1e9999999999999999",
        "1e99999999999999999",
        "-1e9999999999999999",
        "1e-9999999999999999",
        "2e9999999999999999",
        r#""""#,
        r#""0""#,
        r#""1""#,
        r#""null""#,
        r#""a""#,
        r#""A""#,
        r#""a ""#,
        r#""é""#,
        r#""\u0000""#,
        r#""\\u00e9""#,
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\ud800""#,
        r#""\udc00\ud800""#,
        r#""\ufffd""#,
        "[]",
        "[[]]",
        "[[],[]]",
        "[[[]]]",
        "{}",
        "[{}]",
        "[0]",
        "[1]",
        "[1,1]",
        "[11]",
        "[1,0]",
        "[0,1]",
        "[[1],1]",
        "[[1,1]]",
        r#"["a","b"]"#,
        r#"["ab"]"#,
        r#"["a,b"]"#,
        r#"["b","a"]"#,
        r#"[{"a":1}]"#,
        r#"[{},{"a":1}]"#,
        r#"{"a":1}"#,
        r#"{"b":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":[1]}"#,
        r#"{"a":{}}"#,
        r#"{"a":null}"#,
        r#"{"a":1,"b":1}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":{"b":1,"c":2}}"#,
        r#"{"a":{"b":1},"c":2}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":2,"a":1}"#,
        r#"{"\\u0061":1}"#,
        r#"{"":1}"#,
        r#"{"a":"b\"c"}"#,
        r#"{"a":"b","\"c":0}"#,
    ];
    for (at, one) in values.iter().enumerate() {
        for other in &values[at + 1..] {
            assert_ne!(form(one), form(other), "{one} and {other}");
        }
    }
}

#[test]
fn names_are_left_out_at_the_top_alone() {
    let mut kept = Vec::new();
    let json = r#"{"s":{"_meta":1},"_met\u0061":{"x":[1]},"a":2,"_meta":3}"#;
    write(json.as_bytes(), &["_meta", "other"], &mut kept).expect("JSON");
    assert_eq!(kept, form(r#"{"a":2,"s":{"_meta":1}}"#));
    kept.clear();
    write(br#"{"_meta":1}"#, &["_meta"], &mut kept).expect("JSON");
    assert_eq!(kept, form("{}"));
}

/// A value whose numbers are floats, however serde_json keeps them.
fn told(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(format!("number {:?}", number.as_f64())),
        Value::Array(elements) => elements.into_iter().map(told).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, told(value))).collect(),
        other => other,
    }
}

/// One byte of a text exchanged for any other: what it then says is read by somebody else.
#[test]
fn a_changed_byte_shows_where_it_changes_the_value() {
    let text = r#"{"n":[1,-2.5e3,0.10],"s":"a\u00e9\n","o":{"z":{},"t":true,"f":null},"k":"0"}"#;
    let value = told(serde_json::from_str(text).unwrap());
    let (mut same, mut other) = (0, 0);
    for at in 0..text.len() {
        for byte in 0x20..0x7f {
            let mut changed = text.as_bytes().to_vec();
            changed[at] = byte;
            let Ok(read) = serde_json::from_slice::<Value>(&changed) else { continue };
            let read = told(read);
            let mut changed_form = Vec::new();
            write(&changed, &[], &mut changed_form).expect("JSON");
            assert_eq!(changed_form == form(text), read == value, "{}", String::from_utf8_lossy(&changed));
            if read == value { same += 1 } else { other += 1 }
        }
    }
    assert!(same >= text.len() && other > 500, "{same} {other}");
}

#[test]
fn what_is_no_json_has_no_form() {
    for text in [
        "",
        "{",
        "[1",
        "[1,]",
        "{,}",
        r#"{"a":1,}"#,
        r#"{"out":1,}"#,
        "{}{}",
        "01",
        "nul",
        r#""\x""#,
        "[1 2]",
        r#"{"a" 1}"#,
        "[,1]",
    ] {
        assert_eq!(write(text.as_bytes(), &["out"], &mut Vec::new()), Err(Fault::Syntax), "{text}");
    }
    let deep = |depth| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(write(deep(128).as_bytes(), &[], &mut Vec::new()), Ok(()));
    assert_eq!(write(deep(129).as_bytes(), &[], &mut Vec::new()), Err(Fault::Nesting));
}
