use serde_json::json;

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// The JSON of a frame, after checking that its two forms are one buffer and the event is one event.
fn json(frame: &Frame) -> String {
    let (event, json) = (frame.event(), frame.json());
    assert_eq!(event, [EVENT_HEAD, &json[..], b"\n\n"].concat());
    assert_eq!(json.as_ptr(), event[EVENT_HEAD.len()..].as_ptr());
    assert!(!json.contains(&b'\n') && !json.contains(&b'\r'));
    String::from_utf8(json.to_vec()).unwrap()
}

#[test]
fn the_result_head_is_an_event_head() {
    assert_eq!(RESULT_HEAD, [EVENT_HEAD, b"{\"result\":"].concat());
}

#[test]
fn an_error_has_the_id_it_is_given_or_none() {
    let frame = Frame::error(Some(b"\"a\""), -32601, "Method not found", None);
    assert_eq!(json(&frame), r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"Method not found"}}"#);
    let frame = Frame::error(None, -32700, "Parse error", None);
    assert_eq!(json(&frame), r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#);
}

#[test]
fn the_message_of_an_error_is_escaped() {
    let frame = Frame::error(None, 1, "a \"b\"\r\n\u{1}", None);
    let message: Value = serde_json::from_str(&json(&frame)).unwrap();
    assert_eq!(message, json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "a \"b\"\r\n\u{1}"}}));
}

#[test]
fn the_data_of_an_error_is_copied_and_put_on_one_line() {
    let frame = Frame::error(None, 1, "m", Some(&raw("{ \"a\": 1.50 }")));
    assert!(json(&frame).ends_with(r#","data":{ "a": 1.50 }}}"#));
    let frame = Frame::error(None, 1, "a  b", Some(&raw("{\r\n  \"a b\": [1,\t2]\n}")));
    assert_eq!(json(&frame), r#"{"jsonrpc":"2.0","error":{"code":1,"message":"a  b","data":{"a b":[1,2]}}}"#);
}

#[test]
fn a_notification_has_params_or_none() {
    let frame = Frame::notification("notifications/x", Some(&json!({"a": 1}))).unwrap();
    assert_eq!(json(&frame), r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}"#);
    let frame = Frame::notification::<()>("notifications/x", None).unwrap();
    assert_eq!(json(&frame), r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
}

#[test]
fn a_line_break_deep_in_the_params_is_taken_out() {
    #[derive(Serialize)]
    struct Params {
        list: Vec<Box<RawValue>>,
    }
    let params = Params { list: vec![raw("[1,\n 2]"), raw("\" \\\" \\\\\"")] };
    let frame = Frame::notification("m", Some(&params)).unwrap();
    assert_eq!(json(&frame), r#"{"jsonrpc":"2.0","method":"m","params":{"list":[[1,2]," \" \\"]}}"#);
}

#[test]
fn params_that_do_not_serialise_are_an_error() {
    let pairs = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(Frame::notification("m", Some(&pairs)).is_err());
}

#[test]
fn only_a_text_with_a_line_break_is_touched() {
    let mut buf = b"head\n { \"a\" : 1 }".to_vec();
    assert!(!to_one_line(&mut buf, 5));
    assert_eq!(buf, b"head\n { \"a\" : 1 }");
    for line_break in ["\n", "\r", "\r\n"] {
        // wherever it stands in a block, and in the last, shorter one
        for at in [0, 1, 62, 63, 64, 65, 127, 128, 150] {
            let mut text = format!("[{}]", " ".repeat(at));
            text.push_str(line_break);
            let mut buf = [b"head\n ", text.as_bytes()].concat();
            assert!(to_one_line(&mut buf, 6));
            assert_eq!(buf, b"head\n []");
        }
    }
}
