use super::*;

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Call {
    content: Vec<u8>,
    #[serde(rename = "a\"b\\\n")]
    odd: Option<u8>,
    #[serde(skip)]
    _hidden: u8,
}
const CALL: Call = Call { content: Vec::new(), odd: None, _hidden: 0 };

#[derive(Serialize)]
struct Wrapped(Call);

#[derive(Serialize)]
struct Flat {
    first: u8,
    #[serde(flatten)]
    rest: BTreeMap<&'static str, Value>,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Unit,
    New(u8),
    #[serde(rename = "struct")]
    Struct {
        #[serde(rename = "resultType")]
        result_type: u8,
    },
    Tuple(u8, u8),
}

#[test]
fn objects_of_every_kind_are_written() {
    for (reply, text) in [
        (write(&Empty {}), "{}"),
        (write(&json!({})), "{}"),
        (write(&json!({"a": {"_meta": 1, "resultType": 2}})), r#"{"a":{"_meta":1,"resultType":2}}"#),
        (write(&CALL), r#"{"content":[],"a\"b\\\n":null}"#),
        (write(&Some(&Box::new(Wrapped(CALL)))), r#"{"content":[],"a\"b\\\n":null}"#),
        (write(&Flat { first: 1, rest: BTreeMap::from([("b", json!([2]))]) }), r#"{"first":1,"b":[2]}"#),
        (write(&Outcome::New(1)), r#"{"New":1}"#),
        (write(&Outcome::Struct { result_type: 1 }), r#"{"struct":{"resultType":1}}"#),
    ] {
        assert_eq!(std::str::from_utf8(reply.json()).unwrap(), text);
    }
}

#[test]
fn keys_follow_the_rules_of_serde_json() {
    write(&BTreeMap::from([(1u8, 1), (2, 2)]));
    write(&BTreeMap::from([(true, 1)]));
    write(&BTreeMap::from([('"', 1)]));
    write(&BTreeMap::from([(Outcome::Unit, 1)]));
    assert!(matches!(fault(&BTreeMap::from([((1, 2), 3)])), ReplyFault::Serialize(_)));
}

#[test]
fn anything_else_is_refused() {
    /// How a `Number` shows itself with serde_json's feature `arbitrary_precision`.
    #[derive(Serialize)]
    #[serde(rename = "$serde_json::private::Number")]
    struct Number {}

    for fault in [
        fault(&()),
        fault(&None::<Call>),
        fault(&true),
        fault(&1),
        fault(&1u128),
        fault(&1.5),
        fault(&'c'),
        fault("{}"),
        fault(&[1]),
        fault(&(1, 2)),
        fault(&Outcome::Unit),
        fault(&Outcome::Tuple(1, 2)),
        fault(&Number {}),
        fault(&json!(1)),
        fault(&json!(1.5)),
        fault(&json!(null)),
        fault(&json!([{}])),
        fault(&raw("[1]")),
        fault(&raw("null")),
        fault(&raw("\"{}\"")),
    ] {
        assert!(matches!(fault, ReplyFault::NotAnObject), "{fault:?}");
    }
}

#[test]
fn a_value_that_fails_to_serialise_is_a_fault() {
    assert!(matches!(fault(&json_with(BTreeMap::from([((1, 2), 3)]))), ReplyFault::Serialize(_)));

    fn json_with<T: Serialize>(inner: T) -> impl Serialize {
        BTreeMap::from([("inner", inner)])
    }
}

#[test]
fn a_stamped_member_stands_once() {
    #[derive(Serialize)]
    struct Doubled {
        #[serde(rename = "resultType")]
        result_type: &'static str,
        #[serde(flatten)]
        rest: Value,
    }
    let doubled = Doubled { result_type: "complete", rest: json!({"resultType": "x"}) };
    assert!(matches!(fault(&doubled), ReplyFault::Twice("resultType")));
    for (text, member) in [
        (r#"{"ttlMs":1,"ttlMs":2}"#, "ttlMs"),
        (r#"{"cacheScope":1,"cacheScope":2}"#, "cacheScope"),
        (r#"{"_meta":{},"_meta":{}}"#, "_meta"),
        (r#"{"_meta":{},"_\u006deta":{}}"#, "_meta"),
        (r#"{"_meta":{"io.modelcontextprotocol/serverInfo":1,"io.modelcontextprotocol\/serverInfo":2}}"#, SERVER_INFO),
    ] {
        let fault = fault(&raw(text));
        assert!(matches!(fault, ReplyFault::Twice(name) if name == member), "{text}: {fault:?}");
    }
    write(&raw(r#"{"a":{"ttlMs":1},"b":{"ttlMs":1},"ttlMs":1}"#));
}

#[test]
fn meta_is_an_object() {
    #[derive(Serialize)]
    struct Typed<T> {
        _meta: T,
    }
    for fault in [
        fault(&json!({"_meta": 5})),
        fault(&json!({"_meta": null})),
        fault(&Typed { _meta: None::<Empty> }),
        fault(&Typed { _meta: raw("[]") }),
        fault(&Typed { _meta: Outcome::Unit }),
        fault(&raw(r#"{"_meta":"x"}"#)),
    ] {
        assert!(matches!(fault, ReplyFault::MetaNotAnObject), "{fault:?}");
    }
    write(&Typed { _meta: Empty {} });
    write(&Typed { _meta: Some(raw("{ }")) });
    write(&Typed { _meta: Typed { _meta: 5 } });
}

#[test]
fn a_result_type_is_a_string() {
    for fault in [fault(&json!({"resultType": null})), fault(&raw(r#"{"resultType":1}"#))] {
        assert!(matches!(fault, ReplyFault::ResultTypeNotAString), "{fault:?}");
    }
    assert_eq!(write(&json!({})).result_type(), None);
    assert_eq!(write(&json!({"resultType": "input_required"})).result_type().unwrap(), "input_required");
    assert_eq!(write(&raw(r#"{"resultType": "a\u0062\n"}"#)).result_type().unwrap(), "ab\n");
}

#[test]
fn raw_json_is_copied_as_it_is_where_it_is_one_line() {
    for text in ["{}", "{ }", r#"{ "a" : 1.500, "b": "\u0061 \n" }"#] {
        assert_eq!(write(&raw(text)).json(), text.as_bytes());
    }
    assert_eq!(write(&raw(" \r\n{\"a\": 1}\n")).json(), b"{\"a\": 1}");
    assert_eq!(write(&&*raw("{\"a\": 1}")).json(), b"{\"a\": 1}");
}

#[test]
fn raw_json_with_line_breaks_is_compacted_wherever_it_stands() {
    let broken = raw("{\r\n \"a b\" : [ 1,\n\t2 ],\n \"q\": \" \\\" \\n\\\\\" }");
    let compact = r#"{"a b":[1,2],"q":" \" \n\\"}"#;
    assert_eq!(write(&broken).json(), compact.as_bytes());
    assert_eq!(
        write(&BTreeMap::from([("deep", vec![&broken])])).json(),
        format!(r#"{{"deep":[{compact}]}}"#).as_bytes()
    );
}

#[test]
fn members_are_found_again_after_compaction() {
    let result = BTreeMap::from([
        ("_meta", raw("{\n\"k\": 1\n}")),
        ("resultType", raw("\"complete\"")),
        ("ttlMs", raw("5")),
        ("z", raw("[\n]")),
    ]);
    check_places(&write(&result));
    assert_eq!(
        identified(&result),
        r#"{"_meta":{"k":1,"io.modelcontextprotocol/serverInfo":{"name":"s"}},"resultType":"complete","ttlMs":5,"z":[]}"#
    );
}

#[test]
fn raw_json_nests_at_most_as_deep_as_a_request() {
    let nested = |depth| raw(&format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth)));
    write_deep(&nested(100)).unwrap();
    assert!(matches!(write_deep(&nested(200)), Err(ReplyFault::Raw(_))));

    fn write_deep(raw: &RawValue) -> Result<Reply, ReplyFault> {
        Reply::write(raw)
    }
}

#[test]
fn enum_variants_named_like_members_count_as_those() {
    #[derive(Serialize)]
    enum Odd {
        #[serde(rename = "_meta")]
        Meta {
            #[serde(rename = "io.modelcontextprotocol/serverInfo")]
            server_info: &'static str,
        },
        #[serde(rename = "resultType")]
        ResultType(&'static str),
        #[serde(rename = "ttlMs")]
        TtlMs {},
    }
    let meta = Odd::Meta { server_info: "mine" };
    check_places(&write(&meta));
    assert_eq!(identified(&meta), r#"{"_meta":{"io.modelcontextprotocol/serverInfo":"mine"},"resultType":"complete"}"#);
    assert_eq!(write(&Odd::ResultType("x")).result_type().unwrap(), "x");
    assert_eq!(
        cached(&Odd::TtlMs {}, CacheRule::Default),
        json!({"ttlMs": 0, "cacheScope": "private", "resultType": "complete"})
    );
}
