//! One request, one answer.

use bytes::Bytes;
use http::StatusCode;
use mcp_transport::{Revision, StreamableHttpService};
use serde_json::{Value, json};

use crate::Case;
use crate::handler::{ANNOTATED, Tools};
use crate::kit::{Again, now, open, text, whole};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

/// Sends a request whose answer is there at once.
fn at_once(service: StreamableHttpService, request: Again, status: StatusCode) -> Case {
    let ask = move || now(&service, &request).status();
    // The first one learns the tools.
    assert_eq!(ask(), status);
    Case::new(move || assert_eq!(ask(), status))
}

fn ok(request: Again) -> Case {
    at_once(StreamableHttpService::new(Tools(2)), request, StatusCode::OK)
}

pub fn modern(bytes: usize) -> Case {
    ok(Again::call(MODERN, "echo", json!({ "text": text(bytes) })))
}

/// The same, but `params` comes before the method that says what they are.
pub fn params_first(bytes: usize) -> Case {
    let mut request = Again::call(MODERN, "echo", json!({ "text": text(bytes) }));
    let message: Value = serde_json::from_slice(request.0.body()).expect("JSON");
    let (params, id) = (&message["params"], &message["id"]);
    let body = format!(r#"{{"params":{params},"id":{id},"method":"tools/call","jsonrpc":"2.0"}}"#);
    *request.0.body_mut() = Bytes::from(body);
    ok(request)
}

pub fn annotated() -> Case {
    let arguments: serde_json::Map<_, _> =
        ANNOTATED.iter().map(|name| ((*name).to_owned(), json!("eu-west"))).collect();
    let mut arguments = Value::from(arguments);
    arguments["text"] = text(100).into();
    let mut request = Again::call(MODERN, "annotated", arguments);
    for name in ANNOTATED {
        let name: http::HeaderName = format!("mcp-param-{name}").parse().expect("a name");
        request.0.headers_mut().insert(name, http::HeaderValue::from_static("eu-west"));
    }
    ok(request)
}

pub fn in_session(bytes: usize) -> Case {
    let service = StreamableHttpService::new(Tools(2));
    let session = open(&service, LEGACY);
    let request = Again::call(LEGACY, "echo", json!({ "text": text(bytes) })).header("mcp-session-id", &session);
    at_once(service, request, StatusCode::OK)
}

pub fn batch(messages: usize) -> Case {
    let one = |id| {
        let params = json!({ "name": "echo", "arguments": { "text": text(100) } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let mut request = Again::call(Revision::V2025_03_26, "echo", json!({}));
    *request.0.body_mut() = Bytes::from(Value::from_iter((0..messages).map(one)).to_string());
    ok(request)
}

fn streamed(service: StreamableHttpService, request: Again, events: usize) -> Case {
    let count = move || whole(&service, &request).windows(7).filter(|bytes| bytes == b"\ndata: ").count();
    assert_eq!(count(), events + 1);
    Case::new(move || assert_eq!(count(), events + 1))
}

pub fn events(count: usize) -> Case {
    let request = Again::call(MODERN, "count", json!({ "to": count }));
    streamed(StreamableHttpService::new(Tools(2)), request, count)
}

pub fn session_events(count: usize) -> Case {
    let service = StreamableHttpService::new(Tools(2));
    let session = open(&service, LEGACY);
    let request = Again::call(LEGACY, "count", json!({ "to": count })).header("mcp-session-id", &session);
    streamed(service, request, count)
}

pub fn list(tools: usize) -> Case {
    let service = StreamableHttpService::new(Tools(tools));
    at_once(service, Again::new(MODERN, "tools/list", json!({})), StatusCode::OK)
}

pub fn refused(name: &str) -> Case {
    let request = Again::call(MODERN, "echo", json!({ "text": text(100) }));
    let (request, status) = match name {
        "refused-origin" => (request.header("origin", "https://example.com"), StatusCode::FORBIDDEN),
        "refused-header" => (request.header("mcp-name", "another"), StatusCode::BAD_REQUEST),
        "refused-json" => {
            let mut request = request;
            let cut = request.0.body().slice(..request.0.body().len() - 1);
            *request.0.body_mut() = cut;
            (request, StatusCode::BAD_REQUEST)
        }
        _ => (Again::new(MODERN, "no/such", json!({})), StatusCode::NOT_FOUND),
    };
    at_once(StreamableHttpService::new(Tools(2)), request, status)
}
