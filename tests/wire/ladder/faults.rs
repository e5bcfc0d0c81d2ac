//! Every way to break a right request, in the order in which they are judged.

use http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};
use http::{Method, StatusCode};
use mcp_transport::{RefusalKind, Revision};
use serde_json::{Value, json};

use super::{BODY_LIMIT, MCP_PARAM, TOOL};
use crate::support::request::{
    CAPABILITIES, CLAIM, Call, ID, LOG_LEVEL, MCP_METHOD, MCP_NAME, PROTOCOL_VERSION, SESSION_ID, meta,
};

/// One way to break a right request.
pub struct Fault {
    /// The rung it stands on, 8 being the rules of the era. Of two faults the one further up in the tables wins.
    pub rung: i8,
    pub name: &'static str,
    /// What it takes hold of: two faults with a part in common cannot stand in one request.
    pub parts: u32,
    pub breaks: fn(&mut Call),
    pub status: StatusCode,
    pub code: i64,
    pub id: Id,
    /// The `Allow` lines of the answer.
    pub allow: &'static [&'static str],
    /// What the observer hears, where the answer alone does not tell one fault from another.
    pub kind: Option<RefusalKind>,
    pub applies: fn(Revision) -> bool,
}

/// Whether the refusal carries the id of the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Id {
    Kept,
    None,
}

/// The parts of a request that a fault takes hold of.
pub mod part {
    /// Not of the request. A response holds it too: a draining server still takes those.
    pub const SERVER: u32 = 1;
    pub const ORIGIN: u32 = 1 << 1;
    pub const HOST: u32 = 1 << 2;
    pub const VERB: u32 = 1 << 3;
    pub const CONTENT_TYPE: u32 = 1 << 4;
    pub const ACCEPT: u32 = 1 << 5;
    pub const SIZE: u32 = 1 << 6;
    pub const SYNTAX: u32 = 1 << 7;
    pub const JSONRPC: u32 = 1 << 8;
    pub const ID: u32 = 1 << 9;
    pub const METHOD: u32 = 1 << 10;
    pub const NAME: u32 = 1 << 11;
    pub const ARGUMENTS: u32 = 1 << 12;
    pub const CLAIM: u32 = 1 << 13;
    pub const CAPABILITIES: u32 = 1 << 14;
    pub const LOG_LEVEL: u32 = 1 << 15;
    /// `params` itself, `_meta` itself: doubling one leaves what is inside to other faults.
    pub const PARAMS: u32 = 1 << 16;
    pub const META: u32 = 1 << 17;
    /// `MCP-Protocol-Version`, and the other headers of the protocol.
    pub const VERSION: u32 = 1 << 18;
    pub const MCP_METHOD: u32 = 1 << 19;
    pub const MCP_NAME: u32 = 1 << 20;
    pub const MCP_PARAM: u32 = 1 << 21;
    pub const SESSION: u32 = 1 << 22;
    /// Held by faults that leave the request one reason less to be modern: two of them would make it legacy.
    pub const ERA: u32 = 1 << 23;
    /// The body is an object, or an array of one.
    pub const OBJECT: u32 = 1 << 24;

    pub const ALL_META: u32 = META | CLAIM | CAPABILITIES | LOG_LEVEL;
    pub const ALL_PARAMS: u32 = PARAMS | ALL_META | NAME | ARGUMENTS;
    /// The members that make it a message. An array takes hold of these: its elements are not judged.
    pub const MESSAGE: u32 = JSONRPC | ID | METHOD | PARAMS | META;
    pub const BODY: u32 = OBJECT | MESSAGE | ALL_PARAMS;
}

const fn fault(
    rung: i8,
    name: &'static str,
    parts: u32,
    breaks: fn(&mut Call),
    (status, code, id): (StatusCode, i64, Id),
) -> Fault {
    let allow: &[_] = if status.as_u16() == 405 { &["POST, GET, DELETE"] } else { &[] };
    Fault { rung, name, parts, breaks, status, code, id, allow, kind: None, applies: |_| true }
}

impl Fault {
    /// The same for some revisions only.
    const fn only(mut self, applies: fn(Revision) -> bool) -> Self {
        self.applies = applies;
        self
    }

    /// The same, heard of as this.
    const fn heard_as(mut self, kind: RefusalKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// The same with an answer that allows POST alone.
    const fn allowing_post(mut self) -> Self {
        self.allow = &["POST"];
        self
    }
}

/// Answers given before the body was read, or of a body that is none.
const fn bare(status: StatusCode) -> (StatusCode, i64, Id) {
    (status, -32600, Id::None)
}

const DRAINING: (StatusCode, i64, Id) = (StatusCode::SERVICE_UNAVAILABLE, -32603, Id::None);
const FORBIDDEN: (StatusCode, i64, Id) = bare(StatusCode::FORBIDDEN);
const NOT_ALLOWED: (StatusCode, i64, Id) = bare(StatusCode::METHOD_NOT_ALLOWED);
const UNSUPPORTED_MEDIA: (StatusCode, i64, Id) = bare(StatusCode::UNSUPPORTED_MEDIA_TYPE);
const NOT_ACCEPTABLE: (StatusCode, i64, Id) = bare(StatusCode::NOT_ACCEPTABLE);
const TOO_LARGE: (StatusCode, i64, Id) = bare(StatusCode::PAYLOAD_TOO_LARGE);
const PARSE: (StatusCode, i64, Id) = (StatusCode::BAD_REQUEST, -32700, Id::None);
const SHAPE: (StatusCode, i64, Id) = (StatusCode::BAD_REQUEST, -32600, Id::Kept);
const NO_MESSAGE: (StatusCode, i64, Id) = bare(StatusCode::BAD_REQUEST);
const MISMATCH: (StatusCode, i64, Id) = (StatusCode::BAD_REQUEST, -32020, Id::Kept);
const UNSUPPORTED: (StatusCode, i64, Id) = (StatusCode::BAD_REQUEST, -32022, Id::Kept);
const BAD_META: (StatusCode, i64, Id) = (StatusCode::BAD_REQUEST, -32602, Id::Kept);
const NO_METHOD: (StatusCode, i64, Id) = (StatusCode::NOT_FOUND, -32601, Id::Kept);
const NO_SESSION: (StatusCode, i64, Id) = (StatusCode::NOT_FOUND, -32600, Id::Kept);
const STREAM_OPEN: (StatusCode, i64, Id) = bare(StatusCode::CONFLICT);

/// Stands for the id of a session that is open on the server under test.
pub const LIVE: &str = "live";

/// Stands for the id of one whose general stream is open.
pub const LISTENING: &str = "listening";

/// The id of a request that is being answered in the live session.
pub const BUSY: &str = "busy";

/// The rungs that every POST climbs.
pub const SHARED: &[Fault] = &[
    fault(-1, "draining", part::SERVER, |_| {}, DRAINING),
    fault(0, "origin-other", part::ORIGIN, |call| call.put(ORIGIN.as_str(), "https://evil.test"), FORBIDDEN),
    fault(0, "origin-null", part::ORIGIN, |call| call.put(ORIGIN.as_str(), "null"), FORBIDDEN),
    fault(0, "origin-twice", part::ORIGIN, |call| twice(call, ORIGIN.as_str(), "http://localhost"), FORBIDDEN),
    fault(1, "host", part::HOST, |call| call.put(HOST.as_str(), "evil.test"), FORBIDDEN),
    fault(2, "put", part::VERB, |call| call.method = Method::PUT, NOT_ALLOWED),
    fault(2, "patch", part::VERB, |call| call.method = Method::PATCH, NOT_ALLOWED),
    fault(2, "post-in-small", part::VERB, |call| call.method = extension("post"), NOT_ALLOWED),
    fault(3, "content-type-missing", part::CONTENT_TYPE, |call| call.take(CONTENT_TYPE.as_str()), UNSUPPORTED_MEDIA),
    fault(
        3,
        "content-type-text",
        part::CONTENT_TYPE,
        |call| call.put(CONTENT_TYPE.as_str(), "text/plain"),
        UNSUPPORTED_MEDIA,
    ),
    fault(
        3,
        "content-type-suffix",
        part::CONTENT_TYPE,
        |call| call.put(CONTENT_TYPE.as_str(), "application/jsonl"),
        UNSUPPORTED_MEDIA,
    ),
    fault(4, "accept-html", part::ACCEPT, |call| call.put(ACCEPT.as_str(), "text/html, image/*"), NOT_ACCEPTABLE),
    fault(
        4,
        "accept-q0",
        part::ACCEPT,
        |call| call.put(ACCEPT.as_str(), "application/json;q=0, text/event-stream;q=0.0"),
        NOT_ACCEPTABLE,
    ),
    fault(5, "too-large", part::SIZE, |call| call.edit(|body| [&[b' '; BODY_LIMIT], &body[..]].concat()), TOO_LARGE),
    fault(6, "truncated", part::SYNTAX, |call| call.edit(|body| body[..body.len() - 1].to_vec()), PARSE),
    fault(6, "more-behind", part::SYNTAX, |call| call.edit(|body| [&body[..], b"]"].concat()), PARSE),
    fault(6, "not-utf8", part::SYNTAX, |call| call.edit(|body| [&body[..], b"\xff"].concat()), PARSE),
    fault(6, "nesting", part::SYNTAX | part::OBJECT, |call| call.set("/deep", nested(200)), PARSE),
    fault(7, "no-object", part::BODY, |call| call.body = json!("text"), NO_MESSAGE),
    fault(7, "jsonrpc-missing", part::JSONRPC, |call| call.remove("/jsonrpc"), SHAPE),
    fault(7, "jsonrpc-1", part::JSONRPC, |call| call.set("/jsonrpc", "1.0"), SHAPE),
    fault(7, "jsonrpc-number", part::JSONRPC, |call| call.set("/jsonrpc", 2), SHAPE),
    fault(
        7,
        "jsonrpc-doubled",
        part::JSONRPC,
        |call| call.replace("\"jsonrpc\":", "\"jsonrpc\":\"2.0\",\"jsonrpc\":"),
        SHAPE,
    ),
    fault(7, "method-missing", part::METHOD, |call| call.remove("/method"), SHAPE),
    fault(7, "method-number", part::METHOD, |call| call.set("/method", 7), SHAPE),
    fault(
        7,
        "method-doubled",
        part::METHOD,
        |call| call.replace("\"method\":", "\"m\\u0065thod\":\"ping\",\"method\":"),
        SHAPE,
    ),
    fault(7, "params-array", part::ALL_PARAMS, |call| call.set("/params", json!([])), SHAPE),
    fault(7, "params-null", part::ALL_PARAMS, |call| call.set("/params", Value::Null), SHAPE),
    fault(7, "params-doubled", part::PARAMS, |call| call.replace("\"params\":", "\"params\":{},\"params\":"), SHAPE),
    fault(7, "id-fraction", part::ID, |call| call.set("/id", 1.5), NO_MESSAGE),
    fault(7, "id-exponent", part::ID, |call| call.replace("\"id\":1", "\"id\":1e2"), NO_MESSAGE),
    fault(7, "id-null", part::ID, |call| call.set("/id", Value::Null), NO_MESSAGE),
    fault(7, "id-object", part::ID, |call| call.set("/id", json!({})), NO_MESSAGE),
    fault(7, "id-doubled", part::ID, |call| call.replace("\"id\":1", "\"id\":1,\"\\u0069d\":1"), NO_MESSAGE),
    fault(
        7,
        "name-doubled",
        part::NAME,
        |call| call.replace("\"name\":\"echo\"", "\"name\":\"other\",\"name\":\"echo\""),
        SHAPE,
    ),
    fault(
        7,
        "arguments-doubled",
        part::ARGUMENTS,
        |call| call.replace("\"arguments\":", "\"arguments\":{},\"arguments\":"),
        SHAPE,
    ),
    fault(7, "meta-doubled", part::META, |call| call.replace("\"_meta\":", "\"_meta\":{},\"_meta\":"), SHAPE),
];

/// What is judged in 2026-07-28, behind the shared rungs.
pub const MODERN: &[Fault] = &[
    fault(
        7,
        "claim-doubled",
        part::CLAIM,
        |call| call.replace(&format!("\"{CLAIM}\":"), &format!("\"{CLAIM}\":\"2025-11-25\",\"{CLAIM}\":")),
        SHAPE,
    ),
    fault(8, "array", part::MESSAGE, |call| call.edit(|body| [b"[", &body[..], b"]"].concat()), NO_MESSAGE),
    fault(
        8,
        "response",
        part::BODY | part::SERVER | part::ERA,
        |call| call.body = json!({"jsonrpc": "2.0", "id": ID, "result": {}}),
        NO_MESSAGE,
    ),
    fault(
        8,
        "initialize-without-claim",
        part::METHOD | part::CLAIM | part::ERA | part::MCP_METHOD,
        initialize_without_claim,
        MISMATCH,
    ),
    fault(8, "version-absent", part::VERSION | part::ERA, |call| call.take(PROTOCOL_VERSION), MISMATCH),
    fault(8, "version-twice", part::VERSION | part::ERA, |call| twice(call, PROTOCOL_VERSION, "2026-07-28"), MISMATCH),
    fault(8, "claim-absent", part::CLAIM | part::ERA, |call| call.remove(&meta(CLAIM)), BAD_META),
    fault(8, "claim-number", part::CLAIM, |call| call.set(&meta(CLAIM), 20_260_728), BAD_META),
    fault(
        8,
        "claim-absent-version-not-served",
        part::VERSION | part::CLAIM | part::ERA,
        |call| {
            call.remove(&meta(CLAIM));
            call.put(PROTOCOL_VERSION, "2099-01-01");
        },
        UNSUPPORTED,
    ),
    fault(8, "version-differs", part::VERSION | part::CLAIM, |call| call.put(PROTOCOL_VERSION, "2099-01-01"), MISMATCH),
    fault(
        8,
        "version-differs-legacy",
        part::VERSION | part::CLAIM,
        |call| call.put(PROTOCOL_VERSION, "2025-11-25"),
        MISMATCH,
    ),
    fault(8, "not-served", part::VERSION | part::CLAIM, |call| speak(call, "2099-01-01"), UNSUPPORTED),
    fault(8, "not-served-legacy", part::VERSION | part::CLAIM, |call| speak(call, "2025-11-25"), UNSUPPORTED),
    fault(8, "capabilities-missing", part::CAPABILITIES, |call| call.remove(&meta(CAPABILITIES)), BAD_META),
    fault(8, "capabilities-array", part::CAPABILITIES, |call| call.set(&meta(CAPABILITIES), json!([])), BAD_META),
    fault(8, "log-level", part::LOG_LEVEL, |call| call.set(&meta(LOG_LEVEL), "loud"), BAD_META),
    fault(8, "mcp-method-missing", part::MCP_METHOD, |call| call.take(MCP_METHOD), MISMATCH),
    fault(8, "mcp-method-differs", part::MCP_METHOD, |call| call.put(MCP_METHOD, "Tools/call"), MISMATCH),
    fault(8, "mcp-method-twice", part::MCP_METHOD, |call| twice(call, MCP_METHOD, "tools/call"), MISMATCH),
    fault(8, "mcp-name-missing", part::MCP_NAME, |call| call.take(MCP_NAME), MISMATCH),
    fault(8, "mcp-name-differs", part::MCP_NAME, |call| call.put(MCP_NAME, "other"), MISMATCH),
    fault(8, "mcp-name-undecodable", part::MCP_NAME, |call| call.put(MCP_NAME, "=?base64?ZWNobw?="), MISMATCH),
    fault(8, "mcp-name-bytes", part::MCP_NAME, |call| call.put(MCP_NAME, b"\xe9cho"), MISMATCH),
    fault(8, "mcp-name-twice", part::MCP_NAME, |call| twice(call, MCP_NAME, TOOL), MISMATCH),
    fault(
        8,
        "method-removed",
        part::METHOD | part::MCP_METHOD | part::MCP_NAME | part::MCP_PARAM,
        |call| {
            call.set("/method", "ping");
            call.put(MCP_METHOD, "ping");
        },
        NO_METHOD,
    ),
    fault(8, "param-missing", part::MCP_PARAM, |call| call.take(MCP_PARAM), MISMATCH),
    fault(8, "param-differs", part::MCP_PARAM, |call| call.put(MCP_PARAM, "us"), MISMATCH),
    fault(8, "param-twice", part::MCP_PARAM, |call| twice(call, MCP_PARAM, "eu"), MISMATCH),
    fault(8, "param-bytes", part::MCP_PARAM, |call| call.put(MCP_PARAM, b"\xe9u"), MISMATCH),
];

/// What is judged outside any session up to 2025-11-25, behind the shared rungs.
pub const LEGACY: &[Fault] = &[
    fault(8, "version-twice", part::VERSION, |call| twice(call, PROTOCOL_VERSION, "2025-11-25"), SHAPE),
    fault(8, "session-twice", part::SESSION, |call| twice(call, SESSION_ID, "none"), SHAPE),
    fault(8, "version-word", part::VERSION, |call| call.put(PROTOCOL_VERSION, "DRAFT-1"), UNSUPPORTED),
    fault(8, "version-old", part::VERSION, |call| call.put(PROTOCOL_VERSION, "2024-10-07"), UNSUPPORTED),
    fault(8, "session-unknown", part::SESSION, |call| call.put(SESSION_ID, "none"), NO_SESSION),
    // Sessionless without a version, as up to 2025-03-26, an array is a batch.
    fault(8, "array", part::MESSAGE, |call| call.edit(|body| [b"[", &body[..], b"]"].concat()), NO_MESSAGE)
        .only(|revision| revision >= Revision::V2025_06_18),
    fault(
        8,
        "response",
        part::BODY | part::SERVER,
        |call| call.body = json!({"jsonrpc": "2.0", "id": ID, "result": {}}),
        NO_MESSAGE,
    ),
];

/// What is judged in a session up to 2025-11-25, behind the shared rungs.
pub const IN_SESSION: &[Fault] = &[
    fault(8, "version-twice", part::VERSION, |call| twice(call, PROTOCOL_VERSION, "2025-11-25"), SHAPE)
        .heard_as(RefusalKind::DuplicateHeader),
    fault(
        8,
        "versions",
        part::VERSION,
        |call| {
            call.put(PROTOCOL_VERSION, "2025-11-25");
            call.add(PROTOCOL_VERSION, "2024-10-07");
        },
        SHAPE,
    )
    .heard_as(RefusalKind::DuplicateHeader),
    fault(8, "session-twice", part::SESSION, |call| twice(call, SESSION_ID, LIVE), SHAPE)
        .heard_as(RefusalKind::DuplicateHeader),
    fault(8, "version-word", part::VERSION, |call| call.put(PROTOCOL_VERSION, "DRAFT-1"), UNSUPPORTED),
    fault(8, "version-old", part::VERSION, |call| call.put(PROTOCOL_VERSION, "2024-10-07"), UNSUPPORTED),
    fault(8, "session-unknown", part::SESSION, |call| call.put(SESSION_ID, "none"), NO_SESSION),
    fault(8, "session-bytes", part::SESSION, |call| call.put(SESSION_ID, b"\xff"), NO_SESSION),
    fault(8, "initialize", part::METHOD, |call| call.set("/method", "initialize"), SHAPE)
        .heard_as(RefusalKind::AlreadyInitialized),
    fault(8, "array", part::MESSAGE, |call| call.edit(|body| [b"[", &body[..], b"]"].concat()), NO_MESSAGE)
        .heard_as(RefusalKind::BatchNotAllowed)
        .only(|revision| revision != Revision::V2025_03_26),
    fault(8, "array-empty", part::BODY, |call| call.body = json!([]), NO_MESSAGE),
    fault(
        8,
        "response",
        part::BODY | part::SERVER,
        |call| call.body = json!({"jsonrpc": "2.0", "id": ID, "result": {}}),
        NO_MESSAGE,
    )
    .heard_as(RefusalKind::UnexpectedResponse),
    fault(8, "id-in-flight", part::ID, |call| call.set("/id", BUSY), SHAPE).heard_as(RefusalKind::DuplicateId),
];

/// Draining, as a POST of a live session is judged by it: its body tells whether it is one of those that still get in.
/// With another method it is no POST.
pub const DRAINING_IN_SESSION: Fault = fault(5, "draining", part::SERVER | part::VERB, |_| {}, DRAINING);

/// What is judged last on a GET of a session.
pub const SECOND_STREAM: Fault =
    fault(8, "second-stream", part::SESSION, |call| call.put(SESSION_ID, LISTENING), STREAM_OPEN);

/// A GET that names no session.
pub const STREAM_OF_NOBODY: Fault =
    fault(8, "session-absent", part::SESSION, |call| call.take(SESSION_ID), NOT_ALLOWED);

/// A DELETE that names no session.
pub const END_OF_NOTHING: Fault = fault(8, "session-absent", part::SESSION, |call| call.take(SESSION_ID), NO_MESSAGE)
    .heard_as(RefusalKind::SessionRequired);

/// The first thing judged on a GET and a DELETE, up to 2025-11-25: that they do not speak 2026-07-28.
pub const NOT_MODERN: &[Fault] = &[
    fault(8, "modern", part::VERSION, |call| call.put(PROTOCOL_VERSION, "2026-07-28"), NOT_ALLOWED).allowing_post(),
    fault(8, "modern-unknown", part::VERSION, |call| call.put(PROTOCOL_VERSION, "2099-01-01"), NOT_ALLOWED)
        .allowing_post(),
    fault(
        8,
        "modern-beside-legacy",
        part::VERSION,
        |call| {
            call.put(PROTOCOL_VERSION, "2025-11-25");
            call.add(PROTOCOL_VERSION, "2026-07-28");
        },
        NOT_ALLOWED,
    )
    .allowing_post(),
];

/// What is judged on a GET next, before its headers.
pub const STREAM: &[Fault] = &[
    fault(8, "accept-json", part::ACCEPT, |call| call.put(ACCEPT.as_str(), "application/json"), NOT_ACCEPTABLE),
    fault(8, "accept-html", part::ACCEPT, |call| call.put(ACCEPT.as_str(), "text/html"), NOT_ACCEPTABLE),
    fault(8, "accept-q0", part::ACCEPT, |call| call.put(ACCEPT.as_str(), "*/*, text/event-stream;q=0"), NOT_ACCEPTABLE),
];

fn twice(call: &mut Call, name: &str, value: &str) {
    call.put(name, value);
    call.add(name, value);
}

/// Names a version in header and claim alike.
fn speak(call: &mut Call, version: &str) {
    call.set(&meta(CLAIM), version);
    call.put(PROTOCOL_VERSION, version);
}

fn initialize_without_claim(call: &mut Call) {
    call.set("/method", "initialize");
    call.remove(&meta(CLAIM));
}

fn extension(method: &str) -> Method {
    Method::from_bytes(method.as_bytes()).expect("a method")
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| json!([inner]))
}
