//! The requests that the transport answers itself.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::call::Call;
use crate::mcp_error::McpError;
use crate::protocol::level::LogLevel;
use crate::protocol::names::method;
use crate::protocol::revision::Era;
use crate::reply::Reply;

/// The transport's own answer, or `None` where the handler has to give one.
pub(crate) fn answer(call: &Call) -> Option<Result<Reply, McpError>> {
    match (call.era(), call.message.method()) {
        (Era::Modern, method::DISCOVER) => Some(Reply::of(call.server.modern_face())),
        (Era::Legacy, method::INITIALIZE) => Some(initialize(call)),
        (Era::Legacy, method::PING) => Some(Reply::empty()),
        (Era::Legacy, method::SET_LEVEL) => Some(set_level(call)),
        (Era::Legacy, method::DISCOVER | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE)
        | (_, method::LISTEN) => Some(Err(McpError::method_not_found())),
        _ => None,
    }
}

/// What `initialize` must say.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    pub(crate) protocol_version: String,
    #[serde(rename = "capabilities")]
    _capabilities: Map<String, Value>,
}

impl InitializeParams {
    pub(crate) fn read(params: Option<&[u8]>) -> Option<Self> {
        serde_json::from_slice(params?).ok()
    }
}

fn initialize(call: &Call) -> Result<Reply, McpError> {
    if InitializeParams::read(call.message.params()).is_none() {
        return Err(McpError::invalid_params(
            "initialize needs protocolVersion (a string) and capabilities (an object)",
        ));
    }
    let mut result = call.server.legacy_face().clone();
    if let Value::Object(members) = &mut result {
        members.insert("protocolVersion".to_owned(), json!(call.revision.as_str()));
    }
    Reply::of(&result)
}

/// Without a session there is nothing the level could hold for: accepted, without effect.
fn set_level(call: &Call) -> Result<Reply, McpError> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "level")]
        _level: LogLevel,
    }
    match serde_json::from_slice::<Params>(call.message.params().unwrap_or_default()) {
        Ok(_) => Reply::empty(),
        Err(_) => Err(McpError::invalid_params(
            "level must be one of debug, info, notice, warning, error, critical, alert, emergency",
        )),
    }
}
