use super::BodyFaultKind::{Duplicate, Id, Jsonrpc, Method, Nesting, NotAnObject, NotUtf8, Params, Response, Syntax};
use super::*;

const CAPS: Caps = Caps { nesting: 128, elements: 100 };

fn read(text: impl AsRef<[u8]>) -> Result<Body, BodyFault> {
    super::read(Bytes::copy_from_slice(text.as_ref()), CAPS)
}

#[track_caller]
fn message(text: &str) -> Message {
    match read(text) {
        Ok(Body::Message(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn batch(text: &str) -> Batch {
    match read(text) {
        Ok(Body::Batch(batch)) => batch,
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn fault(text: impl AsRef<[u8]>) -> (BodyFaultKind, Option<String>, Option<Kind>) {
    let fault = read(text).unwrap_err();
    (fault.kind, fault.id.map(|id| id.to_string()), fault.meant)
}

/// A request with these params.
fn request(params: &str) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#))
}

/// A request with this `_meta`.
fn with_meta(meta: &str) -> Message {
    request(&format!(r#"{{"_meta":{meta}}}"#))
}

fn utf8(json: Option<&[u8]>) -> Option<&str> {
    json.map(|json| std::str::from_utf8(json).unwrap())
}

#[test]
fn well_formed_messages() {
    let requests = [
        r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#,
        r#"{"method":"m","params":{},"id":"a","jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2\u002e0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1,"error":2,"other":3}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":""}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","\ud800":1e999}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":1,"name":2,"arguments":[{"name":1,"name":2}]}}"#,
        "\u{feff}\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n",
    ];
    for text in requests {
        assert_eq!(message(text).kind, Kind::Request, "{text}");
    }
    let notifications = [r#"{"jsonrpc":"2.0","method":"m"}"#, r#"{"jsonrpc":"2.0","method":"m","params":{"id":1}}"#];
    for text in notifications {
        let message = message(text);
        assert_eq!((message.kind, message.id(), message.raw_id()), (Kind::Notification, None, None), "{text}");
    }
    let responses = [
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, Some("1")),
        (r#"{"jsonrpc":"2.0","id":"a","result":{}}"#, Some("\"a\"")),
        (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, Some("1")),
        (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, None),
        (r#"{"jsonrpc":"2.0","error":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"params":[]}"#, Some("1")),
    ];
    for (text, id) in responses {
        let message = message(text);
        assert_eq!((message.kind, message.method()), (Kind::Response, ""), "{text}");
        assert_eq!(message.id().map(|id| id.to_string()).as_deref(), id, "{text}");
    }
}

#[test]
fn bodies_that_cannot_be_read() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}{}}}"#, "[".repeat(128), "]".repeat(128));
    let cases: [(&[u8], BodyFaultKind); 14] = [
        (b"", Syntax),
        (b"\xef\xbb\xbf", Syntax),
        (b"{}{}", Syntax),
        (b"[1,", Syntax),
        (br#"{"jsonrpc":1,"id":7,garbage"#, Syntax),
        (br#"{"jsonrpc":1,"id":7,"method":5} x"#, Syntax),
        (br#"{"jsonrpc":"2.0","id":01,"method":"m"}"#, Syntax),
        (br#"{"jsonrpc":"2.0","id":1,"method":"m",}"#, Syntax),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":{]}"#, Syntax),
        (br#"[1,{"jsonrpc":"2.0"},]"#, Syntax),
        (deep.as_bytes(), Nesting),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", NotUtf8),
        // half a surrogate pair, as UTF-8 must not have it
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"x\":\"\xed\xa0\x80\"}", NotUtf8),
        (b"\xff\xfe{\x00}\x00", NotUtf8),
    ];
    for (text, kind) in cases {
        assert_eq!(fault(text), (kind, None, None), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn bodies_of_the_wrong_shape() {
    let request = Some(Kind::Request);
    let notification = Some(Kind::Notification);
    let response = Some(Kind::Response);
    let cases = [
        ("17", NotAnObject, None, None),
        ("1e999", NotAnObject, None, None),
        ("null", NotAnObject, None, None),
        ("\"{}\"", NotAnObject, None, None),
        (r#"{"jsonrpc":1,"id":7,"method":"m"}"#, Jsonrpc, Some("7"), request),
        (r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#, Jsonrpc, Some("7"), request),
        (r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#, Jsonrpc, Some("7"), request),
        (r#"{"id":7,"method":"m"}"#, Jsonrpc, Some("7"), request),
        (r#"{"method":"m"}"#, Jsonrpc, None, notification),
        (r#"{"id":7,"result":1}"#, Jsonrpc, Some("7"), response),
        (r#"{"method":5,"params":[],"id":"\u0061"}"#, Jsonrpc, Some(r#""\u0061""#), request),
        (r#"{"jsonrpc":"2.0","id":7,"method":null}"#, Method, Some("7"), request),
        (r#"{"jsonrpc":"2.0","id":7,"method":"\udc00"}"#, Method, Some("7"), request),
        (r#"{"jsonrpc":"2.0","method":{}}"#, Method, None, notification),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":[1e999]}"#, Params, Some("7"), request),
        (r#"{"jsonrpc":"2.0","id":7,"method":"m","params":null}"#, Params, Some("7"), request),
        (r#"{"jsonrpc":"2.0","method":"m","params":"{}"}"#, Params, None, notification),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, Id, None, request),
        (r#"{}"#, Jsonrpc, None, None),
        (r#"{"jsonrpc":"2.0"}"#, Response, None, None),
        (r#"{"jsonrpc":"2.0","id":7}"#, Response, Some("7"), None),
        (r#"{"jsonrpc":"2.0","id":7,"result":1,"error":2}"#, Response, Some("7"), response),
        (r#"{"jsonrpc":"2.0","id":null,"result":1}"#, Id, None, response),
        (r#"{"jsonrpc":"2.0","result":1}"#, Id, None, response),
        (r#"{"jsonrpc":"2.0","id":1.5,"error":1}"#, Id, None, response),
        (r#"{"jsonrpc":"2.0","id":true,"error":1}"#, Id, None, response),
    ];
    for (text, kind, id, meant) in cases {
        assert_eq!(fault(text), (kind, id.map(str::to_owned), meant), "{text}");
    }
}

#[test]
fn doubled_names_are_refused_with_the_id_unless_it_is_doubled() {
    let kept = [
        r#"{"jsonrpc":"2.0","id":7,"method":"m","\u006dethod":"n"}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"name":"a","n\u0061me":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{},"\u005fmeta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"a",
            "io.modelcontextprotocol\/protocolVersion":"b"}}}"#,
    ];
    for text in kept {
        assert_eq!(fault(text), (Duplicate, Some("7".to_owned()), Some(Kind::Request)), "{text}");
    }
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"i\u0064":2,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"m","method":"m","id":1,"id":1}"#,
    ] {
        assert_eq!(fault(text), (Duplicate, None, Some(Kind::Request)), "{text}");
    }
    assert_eq!(fault(r#"{"jsonrpc":"2.0","id":1,"id":1,"result":1}"#), (Duplicate, None, Some(Kind::Response)));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","method":"m","method":"m"}"#), (Duplicate, None, Some(Kind::Notification)));
}

#[test]
fn an_id_is_a_string_or_an_integer_and_keeps_its_text() {
    for id in [
        "0",
        "-0",
        "7",
        "-7",
        "10",
        "1.0",
        "-0.0",
        "12345678901234567890123",
        "12345678901234567890123.0",
        "\"\"",
        "\"1\"",
        "\" a\\n\\\"\"",
        "\"\\u0031\"",
        "\"\\ud800\"",
        "\"\u{1f600}\"",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"m"}}"#);
        let read = message(&text).id().unwrap();
        assert_eq!((read.as_str(), read.to_string(), format!("{read:?}")), (id, id.into(), format!("RequestId({id})")));
    }
    for id in ["1.5", "1e2", "1E0", "1.00", "1.0e0", "0.5", "-1.10", "null", "true", "[1]", "{\"a\":1}", "[]", "1e400"]
    {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        assert_eq!(fault(&text), (Id, None, Some(Kind::Request)), "{id}");
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":5}}"#);
        assert_eq!(fault(&text), (Method, None, Some(Kind::Request)), "{id}");
    }
}

#[test]
fn ids_are_equal_where_their_texts_are() {
    let id = |id: &str| message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)).id().unwrap();
    assert_eq!(id("1"), id("1"));
    assert_ne!(id("1"), id("\"1\""));
    assert_ne!(id("1"), id("1.0"));
    let seen: std::collections::HashSet<_> = ["1", "1", "\"1\"", "2"].map(id).into_iter().collect();
    assert_eq!(seen.len(), 3);
}

#[test]
fn texts_are_unescaped_and_other_types_are_none() {
    let plain = message(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#);
    let escaped = message(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll\ud83d\ude00"}"#);
    assert_eq!((plain.method(), matches!(plain.method, Word::Known(_))), ("tools/call", true));
    assert_eq!((escaped.method(), matches!(escaped.method, Word::Unescaped(_))), ("tools/call\u{1f600}", true));

    let texts = request(r#"{"name":"n","uri":"a\/b","taskId":"\u00e9"}"#);
    assert!(matches!((texts.name(), &texts.name), (Some("n"), Word::Plain)));
    assert_eq!(texts.uri(), Some("a/b"));
    assert_eq!(texts.task_id().as_deref(), Some("\u{e9}"));

    for other in ["1", "null", "{}", "[\"a\"]", "true", r#""\ud800""#, r#"["\n"]"#] {
        let message = request(&format!(r#"{{"name":{other},"uri":{other},"taskId":{other}}}"#));
        assert_eq!((message.name(), message.uri(), message.task_id()), (None, None, None), "{other}");
    }
    let none = request("{}");
    assert_eq!((none.name(), none.uri(), none.task_id()), (None, None, None));
}

#[test]
fn raw_members_are_given_as_they_were_written() {
    let message = request(
        r#"{ "arguments":{"a": 1.0},"inputResponses":[],"requestState":"s\n","_meta": {
        "io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":null,
        "io.modelcontextprotocol/logLevel":"info","progressToken":"t" } }"#,
    );
    assert!(utf8(message.params()).unwrap().starts_with(r#"{ "arguments""#));
    assert!(utf8(message.params()).unwrap().ends_with("} }"));
    assert_eq!(utf8(message.arguments()), Some(r#"{"a": 1.0}"#));
    assert_eq!(utf8(message.input_responses()), Some("[]"));
    assert_eq!(utf8(message.request_state()), Some(r#""s\n""#));
    assert_eq!(utf8(message.client_capabilities()), Some(r#"{"roots":{}}"#));
    assert_eq!(utf8(message.client_info()), Some("null"));
    assert_eq!(utf8(message.log_level()), Some("\"info\""));
    assert_eq!(utf8(message.progress_token()), Some("\"t\""));

    let none = with_meta("[1]");
    assert_eq!((none.client_capabilities(), none.client_info(), none.log_level()), (None, None, None));
    assert_eq!((none.arguments(), none.input_responses(), none.request_state()), (None, None, None));
}

#[test]
fn a_claim_is_absent_text_or_something_else() {
    let claim = |version: &str| with_meta(&format!(r#"{{"io.modelcontextprotocol\/protocolVersion":{version}}}"#));
    assert_eq!(claim("\"2026-07-28\"").claim(), Claim::Text("2026-07-28".into()));
    assert_eq!(claim(r#""2026\u002d07-28""#).claim(), Claim::Text("2026-07-28".into()));
    assert_eq!(claim("\"\"").claim(), Claim::Text("".into()));
    for other in ["null", "1", "{}", r#""\ud800""#] {
        assert_eq!(claim(other).claim(), Claim::NotText, "{other}");
    }
    for none in ["{}", "[]", "null", r#""io.modelcontextprotocol/protocolVersion""#] {
        assert_eq!(with_meta(none).claim(), Claim::Absent, "{none}");
    }
}

#[test]
fn a_progress_token_is_a_string_or_an_integer() {
    for (token, taken) in [("\"t\"", true), ("7", true), ("-1.0", true), ("1.5", false), ("null", false), ("{}", false)]
    {
        let message = with_meta(&format!(r#"{{"progressToken":{token}}}"#));
        assert_eq!(utf8(message.progress_token()), taken.then_some(token));
    }
}

#[test]
fn a_batch_keeps_its_order_and_judges_each_element() {
    let text = concat!(
        "\u{feff} [ {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools\\/call\",\"params\":{\"name\":\"a\"}} ,5,",
        r#"{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2},[{"id":3}],{"jsonrpc":"2.0","id":4,"result":{}}]"#,
    );
    let batch = batch(text);
    assert_eq!((batch.len, batch.is_empty(), batch.claims_modern()), (6, false, false));
    let [request, number, notification, broken, array, response] = batch.elements.try_into().unwrap();
    let request = request.unwrap();
    assert_eq!((request.kind, request.method()), (Kind::Request, "tools/call"));
    assert_eq!(request.id().unwrap().as_str(), "1");
    assert_eq!(request.name(), Some("a"));
    assert!(request.bytes.starts_with(b"{\"jsonrpc\"") && request.bytes.ends_with(b"\"a\"}}"));
    assert_eq!(number.unwrap_err(), BodyFault { kind: NotAnObject, id: None, meant: None });
    let notification = notification.unwrap();
    assert_eq!((notification.kind, notification.method()), (Kind::Notification, "n"));
    let broken = broken.unwrap_err();
    assert_eq!((broken.kind, broken.id.unwrap().as_str()), (Response, "2"));
    assert_eq!(array.unwrap_err().kind, NotAnObject);
    let response = response.unwrap();
    assert_eq!((response.kind, response.id().unwrap().as_str()), (Kind::Response, "4"));
}

#[test]
fn a_batch_shares_the_memory_of_the_body() {
    let body = Bytes::from_static(br#"[{"jsonrpc":"2.0","id":"abc","method":"m"}]"#);
    let Ok(Body::Batch(batch)) = super::read(body.clone(), CAPS) else { panic!() };
    let message = batch.elements[0].as_ref().unwrap();
    assert_eq!(message.bytes.as_ptr(), body[1..].as_ptr());
    assert_eq!(message.id().unwrap().as_str().as_ptr(), body[23..].as_ptr());
}

#[test]
fn a_batch_keeps_as_many_as_it_may_and_counts_the_rest() {
    let element = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    for (len, kept) in [(0, 0), (1, 1), (2, 2), (3, 2), (500, 2)] {
        let text = format!("[{}]", vec![element; len].join(","));
        let Ok(Body::Batch(batch)) = super::read(text.into(), Caps { elements: 2, ..CAPS }) else { panic!() };
        assert_eq!((batch.len, batch.elements.len(), batch.is_empty()), (len, kept, len == 0));
    }
}

#[test]
fn a_claim_in_any_element_is_seen() {
    let claim = r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}"#;
    let cases = [
        ("[]".to_owned(), false),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#.to_owned(), false),
        (format!(r#"[{{{claim}}}]"#), true),
        (format!(r#"[1,{{"jsonrpc":"2.0","method":"m"}},{{"jsonrpc":"2.0","method":"m",{claim}}}]"#), true),
        (format!(r#"[[{{{claim}}}]]"#), false),
        (format!(r#"[{}{{{claim}}}]"#, "0,".repeat(CAPS.elements)), true),
    ];
    for (text, claims) in cases {
        assert_eq!(batch(&text).claims_modern(), claims, "{text}");
    }
}
