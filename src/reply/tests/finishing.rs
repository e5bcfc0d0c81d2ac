use super::*;

#[test]
fn a_frame_is_one_response_in_one_event() {
    let mut reply = write(&json!({"content": []}));
    reply.stamp(&PLAIN);
    let frame = reply.finish(b"\"seven\"");
    let json = r#"{"result":{"content":[],"resultType":"complete"},"jsonrpc":"2.0","id":"seven"}"#;
    assert_eq!(frame.json(), json);
    assert_eq!(frame.event(), [EVENT_HEAD, json.as_bytes(), b"\n\n"].concat());
}

#[test]
fn an_unstamped_reply_is_the_handlers_own() {
    let frame = write(&json!({"a": 1})).finish(b"7");
    assert_eq!(frame.json(), r#"{"result":{"a":1},"jsonrpc":"2.0","id":7}"#);
}

#[test]
fn a_small_reply_leaves_in_the_buffer_it_was_written_to() {
    let mut reply = Reply::write(&json!({"content": [{"type": "text", "text": "hello"}]})).unwrap();
    let start = reply.buf.as_ptr();
    reply.stamp(&Stamp { server_info: Some(br#"{"name":"s"}"#), cache: CacheRule::Default });
    assert_eq!(reply.buf.capacity(), sse::SMALL);
    let frame = reply.finish(b"1");
    assert_eq!(frame.event().as_ptr(), start);
    assert_eq!(frame.json().as_ptr(), frame.event()[EVENT_HEAD.len()..].as_ptr());
}

#[test]
fn debug_tells_no_payload() {
    let reply = write(&json!({"content": "secret", "resultType": "x"}));
    assert_eq!(format!("{reply:?}"), r#"Reply { len: 37, result_type: Some("x"), .. }"#);
}
