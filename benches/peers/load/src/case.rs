//! What is asked: one request, written once, and sent again and again.

/// Which requests a case sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of 2026-07-28, answered with JSON.
    Modern,
    /// The same to the floor, which does not read the params.
    Raw,
    /// Of 2025-11-25, in a session.
    Session,
    /// Of 2026-07-28, answered with an event stream of one notification and the result.
    Notify,
    /// Of 2025-11-25, in a session, answered with such a stream.
    SessionNotify,
}

/// A kind of request, of a size.
pub struct Case {
    pub name: &'static str,
    pub kind: Kind,
    /// Of the text that is echoed.
    pub bytes: usize,
    /// How many connections ask at once.
    pub connections: usize,
}

pub const CASES: [Case; 11] = [
    Case { name: "json-100", kind: Kind::Modern, bytes: 100, connections: 16 },
    Case { name: "json-10k", kind: Kind::Modern, bytes: 10 << 10, connections: 16 },
    Case { name: "json-1m", kind: Kind::Modern, bytes: 1 << 20, connections: 4 },
    Case { name: "raw-100", kind: Kind::Raw, bytes: 100, connections: 16 },
    Case { name: "raw-10k", kind: Kind::Raw, bytes: 10 << 10, connections: 16 },
    Case { name: "raw-1m", kind: Kind::Raw, bytes: 1 << 20, connections: 4 },
    Case { name: "session-100", kind: Kind::Session, bytes: 100, connections: 16 },
    Case { name: "session-10k", kind: Kind::Session, bytes: 10 << 10, connections: 16 },
    Case { name: "session-1m", kind: Kind::Session, bytes: 1 << 20, connections: 4 },
    Case { name: "notify-100", kind: Kind::Notify, bytes: 100, connections: 16 },
    Case { name: "session-notify-100", kind: Kind::SessionNotify, bytes: 100, connections: 1 },
];

/// The text that is echoed: prose, with a quote and a line break in every hundred bytes.
fn text(bytes: usize) -> String {
    let hundred =
        r#"The quick brown fox jumps over the lazy dog, says \"hm\", and\ngoes on its way to the next den. So be it. "#;
    let mut text = hundred.repeat(bytes / 100);
    text.push_str(&"x".repeat(bytes % 100));
    text
}

impl Case {
    pub fn in_session(&self) -> bool {
        matches!(self.kind, Kind::Session | Kind::SessionNotify)
    }

    /// The whole request, head and body.
    pub fn request(&self, session: Option<&str>) -> Vec<u8> {
        let path = match self.kind {
            Kind::Raw => "/raw",
            Kind::Notify => "/notify",
            _ => "/mcp",
        };
        let tool = match self.kind {
            Kind::Notify | Kind::SessionNotify => "notify",
            _ => "echo",
        };
        let text = text(self.bytes);
        let arguments = format!(r#""name":"{tool}","arguments":{{"text":"{text}"}}"#);
        if let Some(session) = session {
            let meta = if self.kind == Kind::SessionNotify { r#","_meta":{"progressToken":1}"# } else { "" };
            let body = call(&format!("{arguments}{meta}"));
            return post(path, &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n"), &body);
        }
        let token = if self.kind == Kind::Notify { r#","progressToken":1"# } else { "" };
        let body = call(&format!(
            r#"{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"load","version":"0"}}{token}}}"#
        ));
        let headers = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
        post(path, &headers, &body)
    }
}

fn call(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}"#)
}

/// A POST as clients send it.
pub fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: load/0\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"0"}}}"#;

pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
