//! What the observer is told of a refusal: the header or member that the fault took hold of, and nothing of its value.

use super::faults::{Fault, part};
use crate::support::seen::Heard;

/// The header or member that each part of a request is.
const SUBJECTS: [(u32, &str); 16] = [
    (part::ORIGIN, "Origin"),
    (part::HOST, "Host"),
    (part::CONTENT_TYPE, "Content-Type"),
    (part::ACCEPT, "Accept"),
    (part::JSONRPC, "jsonrpc"),
    (part::ID, "id"),
    (part::METHOD, "method"),
    (part::CLAIM, "params._meta[\"io.modelcontextprotocol/protocolVersion\"]"),
    (part::CAPABILITIES, "params._meta[\"io.modelcontextprotocol/clientCapabilities\"]"),
    (part::LOG_LEVEL, "params._meta[\"io.modelcontextprotocol/logLevel\"]"),
    (part::PARAMS, "params"),
    (part::VERSION, "MCP-Protocol-Version"),
    (part::MCP_METHOD, "Mcp-Method"),
    (part::MCP_NAME, "Mcp-Name"),
    (part::MCP_PARAM, "Mcp-Param-Region"),
    (part::SESSION, "Mcp-Session-Id"),
];

/// Faults of no one header or member: of the server, of the HTTP method, of the body as a whole, or of two members of one
/// name.
const WHOLE: [&str; 14] = [
    "draining",
    "put",
    "patch",
    "post-in-small",
    "too-large",
    "truncated",
    "more-behind",
    "not-utf8",
    "nesting",
    "no-object",
    "array",
    "response",
    "array-empty",
    "second-stream",
];

/// What clients send in these faults, and a log must not repeat.
const SENT: [&str; 8] =
    ["evil.test", "text/html", "text/plain", "2099-01-01", "2024-10-07", "DRAFT-1", "loud", "Tools/call"];

/// Says what is wrong with what the observer was told of a fault.
pub fn misled(fault: &Fault, heard: &Heard) -> Option<String> {
    let Heard { subject, explanation, .. } = heard;
    if let Some(sent) = SENT.iter().find(|sent| explanation.contains(**sent)) {
        return Some(format!("{sent:?} is repeated: {explanation}"));
    }
    let is_whole = WHOLE.contains(&fault.name) || fault.name.ends_with("-doubled");
    let held = |subject: &str| SUBJECTS.iter().any(|(part, name)| fault.parts & part != 0 && *name == subject);
    let is_right = match subject {
        Some(subject) => held(subject) && explanation.contains(&format!("expected of {subject}: ")),
        None => is_whole,
    };
    (!is_right).then(|| format!("told of {subject:?}: {explanation}"))
}
