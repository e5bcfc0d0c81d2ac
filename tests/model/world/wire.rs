//! Requests of every revision, and the events of an answer.

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use mcp_transport::testing::request;
use mcp_transport::{Principal, Revision};
use serde_json::{Value, json};

pub const PEOPLE: [&str; 2] = ["ann", "bob"];

/// One event of a stream.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: Option<String>,
    /// `None` for an event that only has an id.
    pub message: Option<Value>,
}

/// The events in what was read, comments left out.
pub fn events(text: &[u8]) -> Vec<Event> {
    let text = std::str::from_utf8(text).expect("UTF-8");
    assert!(text.ends_with("\n\n"), "half an event: {text:?}");
    let events = text.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
    events
        .map(|event| {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            let data = field("data: ").expect("data");
            let message = (!data.is_empty()).then(|| serde_json::from_str(data).expect("JSON"));
            Event { id: field("id: ").map(str::to_owned), message }
        })
        .collect()
}

/// A request in its right form, with this id.
pub fn call(revision: Revision, method: &str, mut params: Value, id: usize) -> Request<Bytes> {
    if revision == Revision::V2026_07_28 {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    }
    edited(request(revision, method, params), |message| message["id"] = json!(id))
}

pub fn notification(revision: Revision, method: &str, params: Value) -> Request<Bytes> {
    edited(request(revision, method, params), |message| {
        message.as_object_mut().expect("an object").remove("id");
    })
}

/// A POST of any message.
pub fn post(message: &Value) -> Request<Bytes> {
    request(Revision::V2025_03_26, "x", ()).map(|_| Bytes::from(message.to_string()))
}

fn edited(request: Request<Bytes>, edit: impl FnOnce(&mut Value)) -> Request<Bytes> {
    request.map(|body| {
        let mut message = serde_json::from_slice(&body).expect("a message");
        edit(&mut message);
        Bytes::from(message.to_string())
    })
}

pub fn initialize(revision: Revision) -> Request<Bytes> {
    let client = json!({"name": "model", "version": "1"});
    let able = json!({"elicitation": {}});
    let params = json!({"protocolVersion": revision.as_str(), "capabilities": able, "clientInfo": client});
    call(Revision::V2024_11_05, "initialize", params, 0)
}

/// A GET or DELETE.
pub fn bare(method: Method) -> Request<Bytes> {
    let request = Request::builder().method(method).uri("/mcp").header("accept", "text/event-stream");
    request.body(Bytes::new()).expect("a request")
}

/// Puts a request into a session.
pub fn inside(session: &str, request: Request<Bytes>) -> Request<Bytes> {
    with("mcp-session-id", session, request)
}

pub fn with(name: &'static str, value: &str, mut request: Request<Bytes>) -> Request<Bytes> {
    request.headers_mut().insert(name, HeaderValue::from_str(value).expect("a value"));
    request
}

/// In the name of one of the people.
pub fn named(person: usize, mut request: Request<Bytes>) -> Request<Bytes> {
    request.extensions_mut().insert(Principal::new(PEOPLE[person]));
    request
}
