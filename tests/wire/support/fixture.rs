//! What real clients have sent, from the files in `fixtures`.

use std::fs;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName};
use serde_json::Value;

use super::request::Call;

/// The clients with a fixture for each step of the handshake.
pub const CLIENTS: [&str; 5] = ["inspector", "python", "rmcp", "typescript", "typescript-v1"];

const SESSION: &str = "{session}";

/// The bytes that `client` sent for `step`, in the session of this id.
pub fn bytes(client: &str, step: &str, session: &str) -> String {
    let file = format!("{}/tests/wire/fixtures/{client}/{step}.http", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.replace(SESSION, session).replace("{host}", "localhost")
}

/// The same as a request for any carrier: without what only a connection of HTTP/1.1 has.
pub fn call(client: &str, step: &str, session: &str) -> Call {
    let text = bytes(client, step, session);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.split("\r\n");
    let mut words = lines.next().expect("a request line").split(' ');
    let mut call = Call::bare(words.next().expect("a method").parse().expect("a method"));
    words.next().expect("a path").clone_into(&mut call.path);
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a header");
        let name: HeaderName = name.parse().expect("a header name");
        if ![HOST, CONNECTION, CONTENT_LENGTH].contains(&name) {
            call.add(name.as_str(), value);
        }
    }
    call.raw(body)
}

/// The message of a step, read.
pub fn message(client: &str, step: &str) -> Value {
    let text = bytes(client, step, "");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    serde_json::from_str(body).expect("a message")
}
