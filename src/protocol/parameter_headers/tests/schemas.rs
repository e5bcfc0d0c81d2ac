use super::*;

#[test]
fn of_any_form_are_read() {
    let text = r#"{"properties":{"value":{"type":"string","x-mcp-header":"Value"}}}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    let raw = RawValue::from_string(text.to_owned()).unwrap();
    for tool in [
        ParameterHeaders::of_schema(text),
        ParameterHeaders::of_schema(&value),
        ParameterHeaders::of_schema(value.as_object().unwrap()),
        ParameterHeaders::of_schema(&raw),
    ] {
        assert!(tool.faults().is_empty());
        assert_eq!(check(&tool, &[], r#"{"value":"x"}"#), Err(Missing));
    }
}

#[test]
fn without_annotations_are_empty() {
    for schema in [
        json!({}),
        json!(true),
        json!(null),
        json!({ "properties": { "a": { "type": "string" } } }),
        json!({ "properties": [1] }),
    ] {
        let tool = ParameterHeaders::of_schema(&schema);
        assert!(tool.is_empty() && tool.faults().is_empty(), "{schema}");
    }
}

#[test]
fn unreadable_are_a_fault() {
    let deep = format!("{}{}", r#"{"not":"#.repeat(100_000), "{}".to_owned() + &"}".repeat(100_000));
    for text in ["", "{", "nonsense", deep.as_str()] {
        let tool = ParameterHeaders::of_schema(text);
        assert!(tool.is_empty());
        let [fault] = tool.faults() else { panic!("one fault") };
        assert_eq!(
            fault.to_string(),
            "x-mcp-header at the root: the schema cannot be read as JSON of at most 128 levels"
        );
    }
}

#[test]
fn built_too_deep_are_a_fault() {
    let annotated = |levels: usize| {
        let leaf = json!({ "type": "string", "x-mcp-header": "Deep" });
        (0..levels).fold(leaf, |schema, _| json!({ "properties": { "a": schema } }))
    };
    assert!(!ParameterHeaders::of_schema(&annotated(64)).is_empty());
    let tool = ParameterHeaders::of_schema(&annotated(65));
    assert!(tool.is_empty());
    assert!(tool.faults()[0].to_string().ends_with("nested too deep to be looked for"));
    let below = |levels: usize| {
        let leaf = json!({ "type": "string", "x-mcp-header": "Deep" });
        (0..levels).fold(leaf, |schema, _| json!({ "not": schema }))
    };
    let text = |schema: &Value| ParameterHeaders::of_schema(schema).faults()[0].to_string();
    assert!(text(&below(128)).ends_with("leads to"));
    assert!(text(&below(129)).ends_with("nested too deep to be looked for"));
    let arrays = (0..500).fold(below(0), |schema, _| json!([schema]));
    assert!(text(&json!({ "anyOf": arrays })).ends_with("nested too deep to be looked for"));
}

#[test]
fn names_must_be_tokens() {
    for name in ["a b", "a\r\n", "a\u{1}", "a:b", "(a)", "a\"", "a,b", "héad", "a/b", " "] {
        assert_eq!(
            faults(&json!({ "properties": { "p": { "type": "string", "x-mcp-header": name } } })),
            ["x-mcp-header at /properties/p: the name is not a header name token"],
            "{name:?}"
        );
    }
    for name in [json!(1), json!(null), json!({}), json!("a".repeat(70_000))] {
        let found = faults(&json!({ "properties": { "p": { "type": "string", "x-mcp-header": name } } }));
        assert_eq!(found, ["x-mcp-header at /properties/p: the name is not a header name token"]);
    }
    assert_eq!(
        faults(&json!({ "properties": { "p": { "type": "string", "x-mcp-header": "" } } })),
        ["x-mcp-header at /properties/p: the name is empty"]
    );
    let tchar = "!#$%&'*+-.^_`|~09azAZ";
    assert!(faults(&json!({ "properties": { "p": { "type": "string", "x-mcp-header": tchar } } })).is_empty());
}

#[test]
fn types_must_be_primitive() {
    let of = |kind: Value| faults(&json!({ "properties": { "p": { "type": kind, "x-mcp-header": "P" } } }));
    for kind in
        [json!("string"), json!("integer"), json!("boolean"), json!(["string", "null"]), json!(["integer", "string"])]
    {
        assert!(of(kind.clone()).is_empty(), "{kind}");
    }
    for kind in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(null),
        json!([]),
        json!(["null"]),
        json!(["string", "number"]),
    ] {
        assert_eq!(
            of(kind.clone()),
            ["x-mcp-header at /properties/p: the type is not string, integer or boolean"],
            "{kind}"
        );
    }
    assert_eq!(faults(&json!({ "properties": { "p": { "x-mcp-header": "P", "enum": ["a"] } } })).len(), 1);
}

#[test]
fn doubled_names_are_refused_in_any_case() {
    let schema = json!({ "properties": {
        "a": { "type": "string", "x-mcp-header": "Region" },
        "b": { "properties": { "c": { "type": "string", "x-mcp-header": "REGION" } } },
        "d": { "type": "string", "x-mcp-header": "Other" },
    } });
    assert_eq!(
        faults(&schema),
        [
            "x-mcp-header at /properties/a: another property has the same header, in whatever case",
            "x-mcp-header at /properties/b/properties/c: another property has the same header, in whatever case",
        ]
    );
    let tool = ParameterHeaders::of_schema(&schema);
    assert_eq!(check(&tool, &[("mcp-param-region", "anything")], r#"{"a":"x","d":"y"}"#), Ok(()));
    assert_eq!(check(&tool, &[("mcp-param-other", "anything")], r#"{"a":"x","d":"y"}"#), Err(Different));
}

#[test]
fn annotations_off_the_chain_are_reported() {
    let leaf = || json!({ "type": "string", "x-mcp-header": "P" });
    for (schema, pointer) in [
        (leaf(), "the root"),
        (json!({ "items": leaf() }), "/items"),
        (json!({ "prefixItems": [true, leaf()] }), "/prefixItems/1"),
        (json!({ "contains": leaf() }), "/contains"),
        (json!({ "oneOf": [{ "properties": { "a": leaf() } }] }), "/oneOf/0/properties/a"),
        (json!({ "anyOf": [leaf()] }), "/anyOf/0"),
        (json!({ "allOf": [leaf()] }), "/allOf/0"),
        (json!({ "not": leaf() }), "/not"),
        (json!({ "if": leaf() }), "/if"),
        (json!({ "then": { "properties": { "a": leaf() } } }), "/then/properties/a"),
        (json!({ "else": leaf() }), "/else"),
        (json!({ "$defs": { "x-mcp-header": leaf() } }), "/$defs/x-mcp-header"),
        (json!({ "definitions": { "default": leaf() } }), "/definitions/default"),
        (json!({ "dependentSchemas": { "default": leaf() } }), "/dependentSchemas/default"),
        (json!({ "additionalProperties": leaf() }), "/additionalProperties"),
        (json!({ "patternProperties": { "^a/~b": leaf() } }), "/patternProperties/^a~1~0b"),
        (json!({ "patternProperties": { "enum": leaf() } }), "/patternProperties/enum"),
        (json!({ "dependencies": { "enum": leaf() } }), "/dependencies/enum"),
        (json!({ "propertyNames": leaf() }), "/propertyNames"),
        (json!({ "x-vendor": { "schema": leaf() } }), "/x-vendor/schema"),
        (json!({ "properties": { "a": { "items": leaf() } } }), "/properties/a/items"),
        (json!({ "properties": { "a": { "$ref": "#/$defs/d" } }, "$defs": { "d": leaf() } }), "/$defs/d"),
    ] {
        let tool = ParameterHeaders::of_schema(&schema);
        assert!(tool.is_empty(), "{schema}");
        let [fault] = tool.faults() else { panic!("{schema}: {:?}", tool.faults()) };
        let expected =
            format!("x-mcp-header at {pointer}: not on a property that a chain of `properties` alone leads to");
        assert_eq!(fault.to_string(), expected);
        assert_eq!(fault.pointer(), if pointer == "the root" { "" } else { pointer });
    }
}

#[test]
fn instances_inside_a_schema_are_no_annotations() {
    let instance = json!({ "x-mcp-header": "P" });
    for keyword in ["const", "default", "enum", "examples"] {
        assert!(
            faults(&json!({ keyword: [instance], "properties": { "a": { keyword: instance } } })).is_empty(),
            "{keyword}"
        );
    }
}

#[test]
fn valid_annotations_beside_bad_ones_are_compared_but_not_demanded() {
    let tool = ParameterHeaders::of_schema(&json!({ "properties": {
        "good": { "type": "integer", "x-mcp-header": "Good" },
        "bad": { "type": "number", "x-mcp-header": "Bad" },
    } }));
    assert_eq!(tool.faults().len(), 1);
    let arguments = r#"{"good":1,"bad":2}"#;
    let good = "mcp-param-good";
    assert_eq!(check(&tool, &[], arguments), Ok(()));
    assert_eq!(check(&tool, &[(good, "1"), ("mcp-param-bad", "3")], arguments), Ok(()));
    assert_eq!(check(&tool, &[(good, "2")], arguments), Err(Different));
    assert_eq!(check(&tool, &[(good, "1"), (good, "1")], arguments), Err(Twice));
    assert_eq!(check(&tool, &[(good, "1")], r#"{"good":null}"#), Err(Unexpected));
    assert_eq!(check(&tool, &[(good, "=?base64?!?=")], arguments), Err(Encoding));
    assert_eq!(check(&tool, &[], r#"{"good":1e99}"#), Ok(()));
    assert_eq!(check(&tool, &[(good, "1e99")], r#"{"good":1e99}"#), Err(OutOfRange));
    assert!(is_duplicate(&tool, &[], r#"{"good":1,"good":1}"#));
}
