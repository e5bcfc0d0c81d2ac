//! The `Mcp-Param-*` headers, which mirror arguments of a tool call.

use mcp_transport::RefusalKind;
use serde_json::{Value, json};

use super::{INVALID_REQUEST, MISMATCH, Site, refused, tool_call};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, MCP_NAME};

pub fn register(wire: &mut Wire) {
    wire.modern("param/check", Carriers::Every, check);
    wire.modern("param/check/several", Carriers::Every, several);
    wire.modern("param/values", Carriers::Every, values);
    wire.modern("param/path", Carriers::Every, paths);
    wire.modern("param/path/bad-annotation", Carriers::Clock, bad_annotations);
    wire.modern("param/path/reported-once", Carriers::Every, reported_once);
    wire.modern("param/unknown", Carriers::Every, unknown);
}

const REGION: &str = "mcp-param-region";

/// The tool `echo` with these properties.
fn tool(properties: Value) -> Value {
    let mut tools = json!([{"name": "echo", "inputSchema": {"type": "object"}}]);
    tools[0]["inputSchema"]["properties"] = properties;
    tools
}

fn annotated(kind: &str, header: &str) -> Value {
    json!({"type": kind, "x-mcp-header": header})
}

/// The tool `echo` whose argument `region` is mirrored.
fn region(kind: &str) -> Value {
    tool(json!({"region": annotated(kind, "Region")}))
}

async fn check(cx: Cx) {
    let site = Site::listing(cx, region("string")).await;
    let call = || tool_call(json!({"region": "eu"}));
    site.passes(call().header(REGION, "eu"), "right").await;
    site.passes(call().header(REGION, " \teu "), "white space around").await;
    site.passes(call().header(REGION, "=?base64?ZXU=?="), "encoded").await;
    for (what, wrong) in [
        ("missing", call()),
        ("differs", call().header(REGION, "us")),
        ("differs in case", call().header(REGION, "EU")),
        ("empty", call().header(REGION, "")),
        ("more", call().header(REGION, "eu,us")),
        ("twice", call().header(REGION, "eu").also(REGION, "eu")),
        ("bad bytes", call().header(REGION, b"eu\xff")),
        ("bad padding", call().header(REGION, "=?base64?ZXU?=")),
        ("bad alphabet", call().header(REGION, "=?base64?Z!U=?=")),
        ("stray bits", call().header(REGION, "=?base64?ZXV=?=")),
        ("not UTF-8", call().header(REGION, "=?base64?/w==?=")),
        ("another parameter's", call().header("mcp-param-regions", "eu")),
    ] {
        site.refuses(MISMATCH, wrong, what).await;
        assert_eq!(site.heard.refusals(), [RefusalKind::HeaderMismatch], "{what}");
    }
    // The body has no value.
    for arguments in [json!({}), json!({"region": null}), json!({"Region": "eu"}), json!({"other": {"region": "eu"}})] {
        let what = arguments.to_string();
        site.passes(tool_call(arguments.clone()), &what).await;
        for value in ["eu", "", "null", "=?base64?bnVsbA==?="] {
            site.refuses(MISMATCH, tool_call(arguments.clone()).header(REGION, value), &what).await;
        }
        site.refuses(MISMATCH, tool_call(arguments).header(REGION, b"\xff"), &what).await;
    }
    for arguments in [Value::Null, json!([]), json!("eu"), json!(7), json!([{"region": "eu"}])] {
        site.passes(tool_call(arguments.clone()), "arguments that are no object have no value").await;
        site.refuses(MISMATCH, tool_call(arguments).header(REGION, "eu"), "and so mirror none").await;
    }
    let mut absent = tool_call(json!({}));
    absent.remove("/params/arguments");
    site.passes(absent, "no arguments").await;

    let mut doubled = call().header(REGION, "eu");
    doubled.replace("\"region\":\"eu\"", "\"region\":\"us\",\"r\\u0065gion\":\"eu\"");
    site.refuses(INVALID_REQUEST, doubled, "the argument twice").await;
    let mut escaped = call().header(REGION, "eu");
    escaped.replace("\"region\":\"eu\"", "\"r\\u0065gion\":\"\\u0065u\"");
    site.passes(escaped, "key and value escaped").await;
    let mut strange = call().header(REGION, "eu");
    strange.replace(
        "\"region\":",
        "\"a\":1e999,\"\\ud83d\":[\"\\udc00\"],\"\\ud83d\":{\"a\":1,\"a\":-0.0e-99},\"region\":",
    );
    site.passes(strange, "whatever JSON allows stands beside it").await;
    let error = site.client.send(call().header(REGION, "secret")).await.json().await.to_string();
    assert!(error.contains("Mcp-Param-Region") && !error.contains("secret") && !error.contains("\"eu"), "{error}");
    // It is refused in JSON whatever the client takes.
    let event_stream = call().header("accept", "text/event-stream");
    assert_eq!(site.verdict(event_stream).await, refused(400, MISMATCH));
}

async fn several(cx: Cx) {
    let site = Site::listing(
        cx,
        tool(json!({
            "region": annotated("string", "Region"),
            "zone": annotated("string", "Zone"),
            "deep": {"type": "object", "properties": {"dry": annotated("boolean", "Dry-Run")}},
        })),
    )
    .await;
    let call = || {
        let call = tool_call(json!({"region": "eu", "zone": "a", "deep": {"dry": false}}));
        call.header(REGION, "eu").header("mcp-param-zone", "a").header("mcp-param-dry-run", "false")
    };
    site.passes(call(), "all three").await;
    for header in [REGION, "mcp-param-zone", "mcp-param-dry-run"] {
        site.refuses(MISMATCH, call().without(header), header).await;
        site.refuses(MISMATCH, call().header(header, "x"), header).await;
    }
    site.refuses(MISMATCH, call().header(REGION, "a").header("mcp-param-zone", "eu"), "swapped").await;
    site.passes(tool_call(json!({})), "none").await;
    let only = tool_call(json!({"zone": "a"})).header("mcp-param-zone", "a");
    site.passes(only, "one").await;
}

async fn values(cx: Cx) {
    for kind in ["string", "integer", "boolean"] {
        // The type of the value in the body decides, whatever the schema says.
        let site = Site::listing(cx, region(kind)).await;
        let judge = |json: &'static str, header: &'static str| {
            let mut call = tool_call(json!({"region": "?"})).header(REGION, header);
            call.replace("\"?\"", json);
            (format!("{kind}: {json} as {header}"), call)
        };
        for (json, headers) in SAME {
            for header in *headers {
                let (what, call) = judge(json, header);
                site.passes(call, &what).await;
            }
            let mut bare = tool_call(json!({"region": "?"}));
            bare.replace("\"?\"", json);
            site.refuses(MISMATCH, bare, &format!("{kind}: {json} without its header")).await;
        }
        for (json, headers) in DIFFERENT {
            for header in *headers {
                let (what, call) = judge(json, header);
                site.refuses(MISMATCH, call, &what).await;
            }
        }
        for json in NO_VALUE {
            let mut bare = tool_call(json!({"region": "?"}));
            bare.replace("\"?\"", json);
            site.passes(bare, &format!("{kind}: {json} is no value")).await;
            let (what, call) = judge(json, json);
            site.refuses(MISMATCH, call, &what).await;
        }
        for json in OUT_OF_RANGE {
            let (what, call) = judge(json, json);
            site.refuses(MISMATCH, call, &what).await;
            let mut bare = tool_call(json!({"region": "?"}));
            bare.replace("\"?\"", json);
            site.refuses(MISMATCH, bare, &format!("{what}, without")).await;
        }
    }
}

/// JSON values, and headers that say the same.
const SAME: &[(&str, &[&str])] = &[
    ("\"us-west1\"", &["us-west1", "=?base64?dXMtd2VzdDE=?="]),
    ("\"\"", &["", "=?base64??="]),
    ("\"42\"", &["42"]),
    ("\"true\"", &["true"]),
    ("\"null\"", &["null"]),
    ("\" padded \"", &["=?base64?IHBhZGRlZCA=?="]),
    ("\"=?base64?literal?=\"", &["=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="]),
    ("\"\\u4e16\\/\\\"\"", &["=?base64?5LiWLyI=?="]),
    ("true", &["true", "=?base64?dHJ1ZQ==?="]),
    ("false", &["false"]),
    ("42", &["42", "42.0", "4.2e1", "4.2E+1", "420e-1", "=?base64?NDI=?="]),
    ("42.0", &["42", "42.000"]),
    ("4.2e1", &["42"]),
    ("-7", &["-7", "-7.0"]),
    ("0", &["0", "-0", "0.0", "0e9"]),
    ("-0.0", &["0"]),
    ("9007199254740991", &["9007199254740991", "9007199254740991.0", "9.007199254740991e15"]),
    ("-9007199254740991", &["-9007199254740991"]),
    ("9007199254740990", &["9007199254740990"]),
    ("1e3", &["1000"]),
];

/// JSON values, and headers that do not say the same.
const DIFFERENT: &[(&str, &[&str])] = &[
    ("\"us-west1\"", &["us-west2", "US-WEST1", "\"us-west1\"", "us-west1,us-west1", "=?base64?dXMtd2VzdDI=?="]),
    ("\"\"", &["\"\"", "null"]),
    ("\"42\"", &["42.0", "4.2e1", "042"]),
    ("\"true\"", &["True"]),
    ("\" padded \"", &[" padded ", "padded"]),
    ("\"\\ud83d\"", &["=?base64?77+9?=", "\\ud83d"]),
    ("true", &["True", "TRUE", "1", "false", "", "\"true\""]),
    ("false", &["0", "", "no"]),
    ("42", &["43", "42.1", "042", "+42", "0x2a", "", "42,", "４２", "4 2", "42e", "\"42\"", "42.0000000000000001"]),
    ("0", &["", "false", "null", "1e-400"]),
    ("1", &["true", "1e-1"]),
    // Through a double these would be equal.
    ("9007199254740991", &["9007199254740992", "9007199254740991.1", "9007199254740990"]),
    ("9007199254740990", &["9007199254740991"]),
    ("1", &["1.00000000000000000001"]),
];

/// JSON values that no header mirrors. A header beside them is one too many.
const NO_VALUE: &[&str] =
    &["null", "{}", "[]", "{\"region\":\"eu\"}", "[\"eu\"]", "1.5", "-0.1", "1e-7", "42.00000000000000000001"];

/// Integers that a JavaScript client cannot hold.
const OUT_OF_RANGE: &[&str] = &[
    "9007199254740992",
    "-9007199254740992",
    "9007199254740993",
    "12345678901234567890123",
    "1e16",
    "1e400",
    "9007199254740992.0",
];

async fn paths(cx: Cx) {
    let site = Site::listing(
        cx,
        tool(json!({
            "a.b": annotated("string", "Dotted"),
            "a/b": annotated("string", "Slashed"),
            "a~b": annotated("string", "Tilde"),
            "": annotated("string", "Empty"),
            "wörld": annotated("string", "Foreign"),
            "properties": annotated("string", "Keyword"),
            "x-mcp-header": annotated("string", "Self"),
            "a": {"type": "object", "properties": {
                "b": annotated("string", "Deep"),
                "properties": {"type": "object", "properties": {"c": annotated("string", "Deeper")}},
            }},
        })),
    )
    .await;
    for (header, arguments) in [
        ("mcp-param-dotted", json!({"a.b": "v"})),
        ("mcp-param-slashed", json!({"a/b": "v"})),
        ("mcp-param-tilde", json!({"a~b": "v"})),
        ("mcp-param-empty", json!({"": "v"})),
        ("mcp-param-foreign", json!({"wörld": "v"})),
        ("mcp-param-keyword", json!({"properties": "v"})),
        ("mcp-param-self", json!({"x-mcp-header": "v"})),
        ("mcp-param-deep", json!({"a": {"b": "v"}})),
        ("mcp-param-deeper", json!({"a": {"properties": {"c": "v"}}})),
    ] {
        let what = arguments.to_string();
        site.passes(tool_call(arguments.clone()).header(header, "v"), &what).await;
        site.refuses(MISMATCH, tool_call(arguments.clone()).header(header, "w"), &what).await;
        site.refuses(MISMATCH, tool_call(arguments), &what).await;
    }
    for (header, arguments) in [
        ("mcp-param-deep", json!({"a": "v", "b": "v"})),
        ("mcp-param-deep", json!({"a": [{"b": "v"}]})),
        ("mcp-param-deep", json!({"a": {"properties": {"b": "v"}}})),
        ("mcp-param-deeper", json!({"a": {"c": "v"}})),
        ("mcp-param-foreign", json!({"world": "v"})),
    ] {
        let what = format!("{arguments} has nothing there");
        site.passes(tool_call(arguments.clone()), &what).await;
        site.refuses(MISMATCH, tool_call(arguments).header(header, "v"), &what).await;
    }
    let mut escaped = tool_call(json!({"a": {"b": "v"}})).header("mcp-param-deep", "v");
    escaped.replace("{\"a\":{\"b\":", "{\"\\u0061\":{\"\\u0062\":");
    site.passes(escaped, "escaped keys").await;
    for doubled in ["{\"a\":{\"b\":\"w\"},\"a\":{\"b\":\"v\"}}", "{\"a\":{\"b\":\"w\",\"b\":\"v\"}}"] {
        let mut call = tool_call(json!("?")).header("mcp-param-deep", "v");
        call.replace("\"?\"", doubled);
        site.refuses(INVALID_REQUEST, call, doubled).await;
    }
    let mut elsewhere = tool_call(json!({"z": "?"}));
    elsewhere.replace("\"?\"", "{\"b\":1,\"b\":2}");
    site.passes(elsewhere, "doubled where nothing is annotated").await;
}

async fn bad_annotations(cx: Cx) {
    let bad = |schema: Value| json!({"region": annotated("string", "Region"), "bad": schema});
    for (what, properties) in [
        ("under items", bad(json!({"type": "array", "items": annotated("string", "Bad")}))),
        ("under oneOf", bad(json!({"oneOf": [annotated("string", "Bad")]}))),
        ("under anyOf", bad(json!({"anyOf": [{"properties": {"x": annotated("string", "Bad")}}]}))),
        ("under allOf", bad(json!({"allOf": [annotated("string", "Bad")]}))),
        ("under not", bad(json!({"not": annotated("string", "Bad")}))),
        ("under if", bad(json!({"if": annotated("string", "Bad")}))),
        ("under then", bad(json!({"then": annotated("string", "Bad")}))),
        ("under $defs", bad(json!({"$ref": "#/$defs/a", "$defs": {"a": annotated("string", "Bad")}}))),
        ("under additionalProperties", bad(json!({"additionalProperties": annotated("string", "Bad")}))),
        ("under patternProperties", bad(json!({"patternProperties": {"^x": annotated("string", "Bad")}}))),
        ("under a key no draft knows", bad(json!({"x-more": annotated("string", "Bad")}))),
        ("on a number", bad(annotated("number", "Bad"))),
        ("on an object", bad(annotated("object", "Bad"))),
        ("on an array", bad(annotated("array", "Bad"))),
        ("on null", bad(annotated("null", "Bad"))),
        ("on no type", bad(json!({"x-mcp-header": "Bad"}))),
        ("on a number beside others", bad(json!({"type": ["string", "number"], "x-mcp-header": "Bad"}))),
        ("empty", bad(annotated("string", ""))),
        ("with a space", bad(annotated("string", "My Region"))),
        ("with a colon", bad(annotated("string", "Bad:"))),
        ("with a line break", bad(annotated("string", "Bad\r\nX"))),
        ("not in ASCII", bad(annotated("string", "Régión"))),
        ("a number", bad(json!({"type": "string", "x-mcp-header": 7}))),
        ("null", bad(json!({"type": "string", "x-mcp-header": null}))),
        ("an object", bad(json!({"type": "string", "x-mcp-header": {}}))),
        (
            "doubled",
            bad(json!({"type": "object", "properties": {
                "one": annotated("string", "Bad"), "two": annotated("string", "bAD"),
            }})),
        ),
    ] {
        let site = Site::listing(cx, tool(properties)).await;
        let call = || tool_call(json!({"region": "eu", "bad": {"one": "v", "two": "w"}}));
        site.passes(call(), &format!("{what}: none is demanded")).await;
        assert!(!site.heard.misuses().is_empty(), "{what}: reported");
        site.passes(call().header(REGION, "eu"), &format!("{what}: the valid one, right")).await;
        site.refuses(MISMATCH, call().header(REGION, "us"), &format!("{what}: the valid one, wrong")).await;
        let twice = call().header(REGION, "eu").also(REGION, "eu");
        site.refuses(MISMATCH, twice, &format!("{what}: the valid one, twice")).await;
        site.passes(call().header("mcp-param-bad", "x"), &format!("{what}: the bad one is none")).await;
        assert_eq!(site.heard.misuses(), [""; 0], "{what}: reported once");
    }
    // At the root itself, and twice the same name.
    let root = json!([{"name": "echo", "inputSchema": {
        "type": "string", "x-mcp-header": "Root", "properties": {"region": annotated("string", "Region")},
    }}]);
    let doubled = tool(json!({"region": annotated("string", "Region"), "other": annotated("string", "REGION")}));
    for tools in [root, doubled] {
        let site = Site::listing(cx, tools).await;
        site.passes(tool_call(json!({"region": "eu"})), "none is demanded").await;
        assert!(!site.heard.misuses().is_empty());
    }
    // What only looks like one.
    let site = Site::listing(
        cx,
        tool(json!({
            "region": {"type": ["string", "null"], "x-mcp-header": "Region", "default": {"x-mcp-header": 7},
                "enum": ["eu", {"x-mcp-header": ""}], "examples": [{"x-mcp-header": ""}], "const": {"x-mcp-header": 1}},
            "x-mcp-header": {"type": "string"},
        })),
    )
    .await;
    site.refuses(MISMATCH, tool_call(json!({"region": "eu"})), "a good schema demands").await;
    assert_eq!(site.heard.misuses(), [""; 0]);
}

async fn reported_once(cx: Cx) {
    let site = Site::listing(
        cx,
        tool(json!({"a": annotated("number", "A"), "b": {"type": "array", "items": annotated("string", "B")}})),
    )
    .await;
    let call = || tool_call(json!({"a": 1.5}));
    site.passes(call(), "first").await;
    let mut told = site.heard.misuses();
    told.sort();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|text| text.contains("\"echo\"")), "{told:?}");
    assert!(told[0].contains("/properties/a") && told[1].contains("/properties/b/items"), "{told:?}");

    site.passes(call(), "second").await;
    // Learned anew, from a listing that a client asked for.
    let answer = site.client.send(Call::modern("tools/list", json!({}))).await;
    assert_eq!(answer.status, 200);
    site.passes(call().header("mcp-param-b", "x"), "third").await;
    assert_eq!(site.heard.misuses(), [""; 0]);
    assert_eq!(site.heard.refusals(), []);
}

async fn unknown(cx: Cx) {
    let tools = json!([
        {"name": "echo", "inputSchema": {"type": "object", "properties": {"region": annotated("string", "Region")}}},
        {"name": "plain", "inputSchema": {"type": "object", "properties": {"zone": {"type": "string"}}}},
    ]);
    let site = Site::listing(cx, tools).await;
    for header in ["mcp-param-zone", "mcp-param-", "mcp-param-region-2", "mcp-params-region", "x-mcp-param-region"] {
        for value in [&b"z"[..], b"", b"\xff", b"=?base64?!?="] {
            let call = || tool_call(json!({"region": "eu", "zone": "a"})).header(REGION, "eu").header(header, value);
            site.passes(call(), header).await;
            site.passes(call().also(header, "again"), header).await;
        }
    }
    // Of one tool, and not of another; of a tool nobody lists; of another method.
    for name in ["plain", "Echo", "nobody"] {
        let call = Call::modern("tools/call", json!({"name": name, "arguments": {"region": "eu"}}));
        site.passes(call.header(REGION, "us"), name).await;
    }
    let prompt = Call::modern("prompts/get", json!({"name": "echo", "arguments": {"region": "eu"}}));
    site.passes(prompt.header(REGION, "us").also(REGION, b"\xff"), "prompts/get").await;
    site.passes(Call::modern("x/y", json!({"name": "echo"})).header(MCP_NAME, "z").header(REGION, "us"), "x/y").await;
}
