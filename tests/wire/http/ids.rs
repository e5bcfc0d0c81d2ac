//! The id of a refusal, and what is told from a body that is no message.

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{right, service};
use crate::harness::{Carriers, Cx, Wire};
use crate::ladder;
use crate::support::client::{Answer, Client};
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("http/error-id", Carriers::Every, kept);
    wire.any("http/error-id/every-refusal", Carriers::Every, every_refusal);
    wire.any("http/error-id/illegal", Carriers::Every, illegal);
    wire.any("http/late-syntax", Carriers::Every, late_syntax);
    wire.any("http/late-syntax/id", Carriers::Every, id_survives);
    wire.any("http/late-syntax/no-fault", Carriers::Every, no_fault);
}

/// Every kind of id there is, as it may be spelled.
fn legal() -> Vec<String> {
    let spelled = [
        "1",
        "0",
        "-0",
        "-1",
        "1.0",
        "0.0",
        "-0.0",
        "9007199254740993",
        "18446744073709551616",
        "12345678901234567890123",
        "12345678901234567890123.0",
        r#""""#,
        r#""1""#,
        r#""1.5""#,
        r#""null""#,
        r#"" a b ""#,
        r#""\u0061\n\/\"}""#,
        r#""\ud83d\ude00""#,
        "\"\u{e9}\u{1f600}\u{7f}\"",
    ];
    let long = ["9".repeat(400), format!("\"{}\"", "a".repeat(1000))];
    spelled.map(str::to_owned).into_iter().chain(long).collect()
}

/// Makes it a request with this id, to the letter.
fn named(mut call: Call, id: &str) -> Call {
    call.replace("\"id\":1", &format!("\"id\":{id}"));
    call
}

/// The id of an answer, to the letter.
async fn id(answer: Answer) -> Option<String> {
    #[derive(Deserialize)]
    struct Response {
        id: Option<Box<RawValue>>,
    }
    let text = answer.text().await;
    let response: Response = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    response.id.map(|id| id.get().to_owned())
}

/// Answers and refusals name the request as its author did.
async fn kept(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    for wanted in legal() {
        let answer = client.send(named(right(cx), &wanted)).await;
        assert_eq!(answer.status, StatusCode::OK, "{wanted}");
        assert_eq!(id(answer).await.as_ref(), Some(&wanted));

        let mut broken = right(cx);
        broken.replace("\"2.0\"", "2.0");
        let mut unserved = right(cx);
        unserved.put("mcp-protocol-version", "1999-01-01");
        for call in [broken, unserved] {
            let answer = client.send(named(call, &wanted)).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wanted}");
            assert_eq!(id(answer).await.as_ref(), Some(&wanted));
        }
    }
    assert_eq!(seen.methods().len(), legal().len());
}

/// Every fault of the ladder behind which the id can be read.
async fn every_refusal(cx: Cx) {
    let (service, ..) = ladder::service();
    let client = cx.serve(service).await;
    for wanted in ["12345678901234567890123", "1.0", r#""\u0031""#] {
        let calls = ladder::refused_by_name(cx.revision);
        assert!(calls.len() > 12, "{}", calls.len());
        for (fault, call) in calls {
            let answer = client.send(named(call, wanted)).await;
            assert_ne!(answer.status, StatusCode::OK, "{fault}");
            assert_eq!(id(answer).await.as_deref(), Some(wanted), "{fault}");
        }
    }
}

/// What is no id is not repeated, and what is no JSON is a syntax error.
async fn illegal(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    let illegal = [
        "1.5",
        "1e2",
        "1E2",
        "1.00",
        "1.0e0",
        "-1.5",
        "0.1",
        "1e-2",
        "0e0",
        "true",
        "false",
        "null",
        "[]",
        "[1]",
        "{}",
        "{\"id\":1}",
    ];
    for wrong in illegal {
        client.send(named(right(cx), wrong)).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    for wrong in ["01", "-01", "+1", ".5", "1.", "-", "0x1", "NaN", "'1'", "\"\\x\"", "\"\t\"", "1_000", "1 2", ""] {
        client.send(named(right(cx), wrong)).await.error(StatusCode::BAD_REQUEST, -32700, None).await;
    }
    for doubled in ["1,\"id\":1", "1,\"\\u0069d\":1", "1,\"x\":{},\"i\\u0064\":\"1\""] {
        client.send(named(right(cx), doubled)).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    assert_eq!(seen.methods(), [""; 0]);
}

/// Objects that are no messages, less their braces and their id.
fn shapeless() -> Vec<String> {
    let spelled = [
        r#""jsonrpc":2,"method":"x""#,
        r#""jsonrpc":2.0,"method":"x""#,
        r#""jsonrpc":"1.0","method":"x""#,
        r#""jsonrpc":"2.0 ","method":"x""#,
        r#""jsonrpc":null,"method":"x""#,
        r#""jsonrpc":["2.0"],"method":"x""#,
        r#""JSONRPC":"2.0","method":"x""#,
        r#""method":"x""#,
        r#""jsonrpc":"2.0""#,
        r#""jsonrpc":"2.0","Method":"x""#,
        r#""jsonrpc":"2.0","method":7"#,
        r#""jsonrpc":"2.0","method":null"#,
        r#""jsonrpc":"2.0","method":["x"]"#,
        r#""jsonrpc":"2.0","method":"\ud800""#,
        r#""jsonrpc":"2.0","method":"x","params":[]"#,
        r#""jsonrpc":"2.0","method":"x","params":null"#,
        r#""jsonrpc":"2.0","method":"x","params":7"#,
        r#""jsonrpc":"2.0","method":"x","params":"{}""#,
        r#""jsonrpc":"2.0","result":{},"error":{"code":1,"message":"x"}"#,
        r#""jsonrpc":"2.0","jsonrpc":"2.0","method":"x""#,
        r#""jsonrpc":"2.0","json\u0072pc":"2.0","method":"x""#,
        r#""jsonrpc":"2.0","method":"x","method":"x""#,
        r#""jsonrpc":"2.0","method":"x","\u006dethod":"x""#,
        r#""jsonrpc":"2.0","method":"x","params":{},"params":{}"#,
        r#""jsonrpc":"2.0","method":"x","params":{},"p\u0061rams":{"a":1}"#,
    ];
    let members = ["_meta", "name", "uri", "taskId", "arguments", "inputResponses", "requestState"];
    let doubled = members.map(|name| {
        let escaped = format!("{}\\u{:04x}", &name[..name.len() - 1], u32::from(name.as_bytes()[name.len() - 1]));
        format!(r#""jsonrpc":"2.0","method":"x","params":{{"{name}":{{}},"{escaped}":{{}}}}"#)
    });
    let version = "io.modelcontextprotocol/protocolVersion";
    let escaped = "io.modelcontextprotocol\\/protocolVersio\\u006e";
    let meta = format!(
        r#""jsonrpc":"2.0","method":"x","params":{{"_meta":{{"{version}":"2026-07-28","{escaped}":"2025-11-25"}}}}"#
    );
    spelled.map(str::to_owned).into_iter().chain(doubled).chain([meta]).collect()
}

/// What comes behind a fault of the shape is read all the same: no JSON is no JSON.
async fn late_syntax(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    let syntax = |text: String| client_parse(&client, right(cx).raw(text));
    for members in shapeless() {
        let object = format!("{{\"id\":7,{members}}}");
        for behind in [",", "}", "]", " x", "\0", "{}", "//"] {
            syntax(format!("{object}{behind}")).await;
        }
        for last in [r#","a":"#, r#","a":01"#, ",", r#","a":tru"#, r#","a":"\q""#, ",\"a\":\"\n\"", r#","a" 1"#, ",a:1"]
        {
            syntax(format!("{{\"id\":7,{members}{last}}}")).await;
        }
        let open = &object[..object.len() - 1];
        syntax(open.to_owned()).await;
        let mut bytes = open.as_bytes().to_vec();
        bytes.extend_from_slice(b",\"a\":\"\xff\"}");
        client_parse(&client, right(cx).raw(bytes)).await;
        syntax(format!("{open},\"a\":{}1{}}}", "[".repeat(128), "]".repeat(128))).await;
    }
    for nothing in ["", " ", "\u{feff}", "\u{feff}\u{feff}{}", "nul", "{", "[", "}", "\"", "[1,]", "{\"a\"}"] {
        syntax(nothing.to_owned()).await;
    }
    assert_eq!(seen.methods(), [""; 0]);
}

async fn client_parse(client: &Client, call: Call) {
    client.send(call).await.error(StatusCode::BAD_REQUEST, -32700, None).await;
}

/// Wherever it stands and however its key is spelled.
async fn id_survives(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    for members in shapeless() {
        for text in [
            format!("{{\"id\":7,{members}}}"),
            format!("{{{members},\"id\":7}}"),
            format!("\u{feff} \r\n{{ {members} ,\t\"\\u0069d\" : 7 }}\n"),
        ] {
            let answer = client.send(right(cx).raw(text)).await;
            answer.error(StatusCode::BAD_REQUEST, -32600, Some(&7.into())).await;
        }
    }
    for text in ["7", "\"{}\"", "null", "true", "-0.0"] {
        client.send(right(cx).raw(text)).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    assert_eq!(seen.methods(), [""; 0]);
}

/// Much of what looks odd is a right request all the same.
async fn no_fault(cx: Cx) {
    let (service, _) = service();
    let client = cx.serve(service).await;
    let odd: [(&str, &str); 9] = [
        ("\"2.0\"", "\"\\u0032.0\""),
        ("\"jsonrpc\"", "\"\\u006asonrpc\""),
        ("\"method\"", "\"\\u006dethod\""),
        ("\"x/ask\"", "\"x\\/as\\u006b\""),
        ("{", "\u{feff}{"),
        ("{", " \t\r\n{\"x\":1,\"x\":[2,{\"id\":3,\"id\":4}],"),
        ("{", "{\"result\":{},\"error\":null,\"Id\":7,"),
        ("\"params\":{", "\"params\":{\"x\":1,\"x\":2,\"Name\":1,\"Name\":2,"),
        ("\"id\":1", "\"id\":1,\"\":0,\"\\ud800\":0"),
    ];
    for (old, new) in odd {
        let mut call = Call::of(cx.revision, "x/ask", serde_json::json!({"last": 1}));
        call.replace(old, new);
        let result = client.send(call).await.result().await;
        assert_eq!(result["method"], "x/ask", "{new}");
    }
}
