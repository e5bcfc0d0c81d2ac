//! The routing headers, which mirror members of the body: `Mcp-Method` and `Mcp-Name`.

use mcp_transport::NameSource;
use serde_json::{Value, json};

use super::{MISMATCH, Site, refused, tool_call};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, MCP_METHOD, MCP_NAME, PROTOCOL_VERSION};

pub fn register(wire: &mut Wire) {
    wire.modern("headers/method-required", Carriers::Every, method_required);
    wire.modern("headers/name-required", Carriers::Every, name_required);
    wire.modern("headers/name-required/extensions", Carriers::Every, extensions);
    wire.modern("headers/name-sentinel", Carriers::Every, sentinel);
    wire.modern("headers/bytes", Carriers::Every, bytes);
    wire.modern("headers/names-caseless", Carriers::Every, values_trimmed);
    wire.modern("headers/names-caseless/raw", Carriers::H1, names_in_any_case);
    wire.modern("headers/duplicate", Carriers::Every, duplicate);
}

async fn method_required(cx: Cx) {
    let site = Site::open(cx).await;
    for method in ["tools/call", "tools/list", "prompts/get", "server/discover", "x/unknown"] {
        let call = || Call::modern(method, json!({}));
        site.refuses(MISMATCH, call().without(MCP_METHOD), method).await;
        site.refuses(MISMATCH, call().header(MCP_METHOD, "other/method"), method).await;
    }
    for wrong in [
        "",
        "Tools/call",
        "TOOLS/CALL",
        "tools/call2",
        "tools/cal",
        "tools/call,",
        "tools/call, tools/call",
        "\"tools/call\"",
        "tools%2Fcall",
        // Encoding is for names and parameters only.
        "=?base64?dG9vbHMvY2FsbA==?=",
        &"tools/call".repeat(500),
    ] {
        site.refuses(MISMATCH, tool_call(json!({})).header(MCP_METHOD, wrong), wrong).await;
    }
    let mut escaped = tool_call(json!({}));
    escaped.replace("\"tools/call\"", "\"t\\u006fols\\/call\"");
    site.passes(escaped, "a method written with escapes").await;

    let empty = || Call::modern("", json!({}));
    site.passes(empty(), "an empty method, with its header").await;
    site.refuses(MISMATCH, empty().without(MCP_METHOD), "an empty method, without").await;
    let mut foreign = Call::modern("x", json!({}));
    foreign.set("/method", "wörk");
    site.refuses(MISMATCH, foreign, "a method that no header can carry").await;
}

async fn name_required(cx: Cx) {
    let site = Site::open(cx).await;
    for (method, key) in [("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")] {
        let call = |value: Value| Call::modern(method, json!({ key: value }));
        let named = || call("file:///a b".into());
        let what = |case: &str| format!("{method}: {case}");
        site.passes(named(), &what("right")).await;
        site.refuses(MISMATCH, named().without(MCP_NAME), &what("missing")).await;
        for wrong in ["", "other", "FILE:///a b", "file:///a  b", "file:///a%20b", "file:///a b,", "file:///a"] {
            site.refuses(MISMATCH, named().header(MCP_NAME, wrong), &what(wrong)).await;
        }
        for no_text in [7.into(), Value::Null, json!(["a"]), json!({"a": "a"}), true.into()] {
            site.refuses(MISMATCH, call(no_text).header(MCP_NAME, "a"), &what("mirrors no text")).await;
        }
        let absent = || Call::modern(method, json!({}));
        site.refuses(MISMATCH, absent().header(MCP_NAME, "a"), &what("mirrors nothing")).await;
        site.refuses(MISMATCH, absent().header(MCP_NAME, ""), &what("mirrors nothing, empty")).await;
        site.refuses(MISMATCH, absent(), &what("neither")).await;

        let mut escaped = call("a/b".into());
        escaped.replace("\"a/b\"", "\"\\u0061\\/b\"");
        site.passes(escaped, &what("escaped")).await;
        let mut escaped_key = call("a/b".into());
        escaped_key.replace(&format!("\"{key}\""), &format!("\"\\u{:04x}{}\"", key.as_bytes()[0], &key[1..]));
        site.passes(escaped_key, &what("escaped key")).await;
        site.passes(call("".into()), &what("both empty")).await;
        site.refuses(MISMATCH, call("".into()).without(MCP_NAME), &what("empty in the body, missing")).await;
        let long = "n".repeat(4000);
        site.passes(call(long.as_str().into()), &what("long")).await;
        site.refuses(MISMATCH, call(long.into()).header(MCP_NAME, "n".repeat(3999)), &what("long, differs")).await;
        // The other method's source counts for nothing.
        let other = if key == "name" { "uri" } else { "name" };
        let mut two = call("a".into());
        two.set(&format!("/params/{other}"), "b");
        site.passes(two, &what("beside the other member")).await;
    }
    for method in ["tools/list", "prompts/list", "resources/list", "completion/complete", "server/discover", "x/y"] {
        let call = || Call::modern(method, json!({"name": "a", "uri": "b", "taskId": "c"}));
        for call in [call(), call().header(MCP_NAME, "z"), call().header(MCP_NAME, b"\xff").also(MCP_NAME, "a")] {
            let answer = site.client.send(call).await;
            let status = answer.status;
            assert_eq!(status, 200, "{method} has no source: {}", answer.text().await);
        }
    }
}

async fn extensions(cx: Cx) {
    let site = Site::built(cx, json!([]), |builder| {
        builder
            .mirrored_name("x/name", NameSource::Name)
            .mirrored_name("x/uri", NameSource::Uri)
            .mirrored_name("x/task", NameSource::TaskId)
            .mirrored_name("tasks/get", NameSource::None)
    })
    .await;
    let call = |method: &str| Call::modern(method, json!({"name": "n", "uri": "u", "taskId": "t"}));
    for (method, right, tolerated) in [
        ("x/name", "n", false),
        ("x/uri", "u", false),
        ("x/task", "t", true),
        ("tasks/update", "t", true),
        ("tasks/cancel", "t", true),
    ] {
        site.passes(call(method).header(MCP_NAME, right), method).await;
        site.refuses(MISMATCH, call(method).header(MCP_NAME, "z"), method).await;
        site.refuses(MISMATCH, call(method).header(MCP_NAME, right).also(MCP_NAME, right), method).await;
        if tolerated {
            site.passes(call(method), method).await;
        } else {
            site.refuses(MISMATCH, call(method), method).await;
        }
    }
    site.passes(call("tasks/get").header(MCP_NAME, "z"), "a source taken away").await;
    let default = Site::open(cx).await;
    default.refuses(MISMATCH, call("tasks/get").header(MCP_NAME, "z"), "by default it has one").await;
    default.passes(call("tasks/get").header(MCP_NAME, "t"), "by default it has one").await;
    default.passes(call("x/name"), "undeclared").await;
}

async fn sentinel(cx: Cx) {
    let site = Site::open(cx).await;
    let call = |name: &str, header: &str| Call::modern("tools/call", json!({ "name": name })).header(MCP_NAME, header);
    for (name, header) in [
        ("Hello", "=?base64?SGVsbG8=?="),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("", "=?base64??="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        // Decoded once.
        ("=?base64?SGVsbG8=?=", "=?base64?PT9iYXNlNjQ/U0dWc2JHOD0/PQ==?="),
        // Without both markers, exactly so, the value is what it says.
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
        ("=?utf-8?B?SGVsbG8=?=", "=?utf-8?B?SGVsbG8=?="),
        ("x=?base64?SGVsbG8=?=", "x=?base64?SGVsbG8=?="),
        ("=?base64?SGVsbG8=?= x", "=?base64?SGVsbG8=?= x"),
        ("=?base64?=", "=?base64?="),
    ] {
        site.passes(call(name, header), header).await;
    }
    for (name, header) in [
        ("Hello", "=?base64?SGVsbG8?="),
        ("Hello", "=?base64?SGVsbG8==?="),
        ("Hello", "=?base64?SGVs!!!bG8=?="),
        ("Hello", "=?base64?SGVs bG8=?="),
        ("Hello", "=?base64? SGVsbG8=?="),
        // Stray bits in the last digit.
        ("Hello", "=?base64?SGVsbG9=?="),
        ("Hello", "=?base64?=SGVsbG8?="),
        ("Hello", "=?base64?SGVsbG8=SGVsbG8=?="),
        // The alphabet of URLs.
        ("\u{3ff}?", "=?base64?z78_?="),
        // Not UTF-8: a lone byte, a surrogate, an overlong form.
        ("\u{ff}", "=?base64?/w==?="),
        ("\u{fffd}", "=?base64?7aCA?="),
        ("/", "=?base64?wK8=?="),
        // Undecoded, it is not the name.
        ("=?base64?SGVsbG8=?=", "=?base64?SGVsbG8=?="),
        ("SGVsbG8=", "=?base64?SGVsbG8=?="),
        ("hello", "=?base64?SGVsbG8=?="),
        ("Hello ", "=?base64?SGVsbG8=?="),
        ("Hello", "=?BASE64?SGVsbG8=?="),
    ] {
        site.refuses(MISMATCH, call(name, header), header).await;
    }
    // In the body too, a name may be spelled with escapes.
    let mut escaped = call("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
    escaped.replace("世", "\\u4e16");
    site.passes(escaped, "escaped").await;
    let mut pair = call("😀", "=?base64?8J+YgA==?=");
    pair.replace("😀", "\\ud83d\\ude00");
    site.passes(pair, "a surrogate pair").await;
    let mut half = call("x", "=?base64?77+9?=");
    half.replace("\"name\":\"x\"", "\"name\":\"\\ud83d\"");
    site.refuses(MISMATCH, half, "half a surrogate pair is no text").await;
}

async fn bytes(cx: Cx) {
    let site = Site::open(cx).await;
    for bad in [&b"\x80"[..], b"\xff", b"echo\xff", b"\xe4\xb8\x96", b"=?base64?SGVsbG8=?=\xff", b" \xa0"] {
        let what = String::from_utf8_lossy(bad).into_owned();
        for header in [MCP_METHOD, MCP_NAME, PROTOCOL_VERSION] {
            site.refuses(MISMATCH, tool_call(json!({})).header(header, bad), &format!("{header}: {what}")).await;
        }
    }
    // The very name, but not in ASCII.
    let call = Call::modern("tools/call", json!({"name": "世界"})).header(MCP_NAME, "世界".as_bytes());
    site.refuses(MISMATCH, call, "UTF-8").await;
    let call = Call::modern("tools/call", json!({"name": "é"})).header(MCP_NAME, b"\xe9");
    site.refuses(MISMATCH, call, "Latin-1").await;
    // All that is allowed.
    let visible: String = ('!'..='~').collect();
    for name in [visible.as_str(), "a b", "a\tb"] {
        let call = Call::modern("tools/call", json!({ "name": name })).header(MCP_NAME, name);
        site.passes(call, name).await;
    }
}

async fn values_trimmed(cx: Cx) {
    let site = Site::open(cx).await;
    for (before, after) in [(" ", ""), ("", " "), ("\t", "\t"), (" \t ", " \t ")] {
        let padded = |value: &str| format!("{before}{value}{after}");
        let call = tool_call(json!({}))
            .header(PROTOCOL_VERSION, padded("2026-07-28"))
            .header(MCP_METHOD, padded("tools/call"))
            .header(MCP_NAME, padded("echo"));
        site.passes(call, "white space around every value").await;
        let encoded = tool_call(json!({})).header(MCP_NAME, padded("=?base64?ZWNobw==?="));
        site.passes(encoded, "white space around an encoded value").await;
        let inside = Call::modern("tools/call", json!({"name": padded("echo")})).header(MCP_NAME, padded("echo"));
        site.refuses(MISMATCH, inside, "white space that belongs to the body's value").await;
    }
    let empty = Call::modern("tools/call", json!({"name": ""}));
    site.passes(empty.header(MCP_NAME, ""), "an empty value is a value").await;
    let blank = Call::modern("tools/call", json!({"name": ""}));
    site.passes(blank.header(MCP_NAME, " \t"), "nothing but white space is empty").await;
    site.refuses(MISMATCH, tool_call(json!({})).header(MCP_NAME, ""), "an empty value is not the name").await;
    site.refuses(MISMATCH, tool_call(json!({})).header(PROTOCOL_VERSION, ""), "nor the version").await;
}

/// No HTTP library writes names but in lower case, so these bytes are the test's own.
async fn names_in_any_case(cx: Cx) {
    let tools = json!([{"name": "echo", "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "ReGion"}},
    }}]);
    let site = Site::listing(cx, tools).await;
    let body = String::from_utf8(tool_call(json!({"region": "eu"})).into_bytes()).expect("text");
    let send = |names: [&'static str; 4]| {
        let [version, method, name, param] = names;
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             {version}: 2026-07-28\r\n{method}:tools/call\r\n{name}:\t echo \r\n{param}: eu\r\n\r\n{body}",
            body.len(),
        );
        let client = site.client.clone();
        async move { client.raw(request).await.status().await }
    };
    for names in [
        ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region"],
        ["MCP-PROTOCOL-VERSION", "MCP-METHOD", "MCP-NAME", "MCP-PARAM-REGION"],
        ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region"],
        ["mCP-pROTOCOL-vERSION", "mCP-mETHOD", "mCP-nAME", "mCP-pARAM-rEGION"],
    ] {
        assert_eq!(send(names).await, Some(http::StatusCode::OK), "{names:?}");
    }
    // And not by luck: each of them counts.
    let wrong = ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Other"];
    assert_eq!(send(wrong).await, Some(http::StatusCode::BAD_REQUEST));
}

async fn duplicate(cx: Cx) {
    let tools = json!([{"name": "echo", "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }}]);
    let site = Site::listing(cx, tools).await;
    let call = || tool_call(json!({"region": "eu"})).header("mcp-param-region", "eu");
    site.passes(call(), "once").await;
    for (header, same) in
        [(PROTOCOL_VERSION, "2026-07-28"), (MCP_METHOD, "tools/call"), (MCP_NAME, "echo"), ("mcp-param-region", "eu")]
    {
        for second in [same, "other", "", "=?base64?ZWNobw==?="] {
            let verdict = site.verdict(call().also(header, second)).await;
            assert_eq!(verdict, refused(400, MISMATCH), "{header} and {second:?}");
            let verdict = site.verdict(call().header(header, second).also(header, same)).await;
            assert_eq!(verdict, refused(400, MISMATCH), "{second:?} and {header}");
        }
    }
    let error = site.client.send(call().also(MCP_NAME, "secret")).await.json().await.to_string();
    assert!(error.contains("Mcp-Name") && !error.contains("secret") && !error.contains("echo"), "{error}");
}
