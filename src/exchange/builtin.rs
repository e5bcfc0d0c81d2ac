//! The requests that the transport answers itself.

use std::future::ready;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Failure;
use super::call::Call;
use crate::capabilities::Delivery;
use crate::context::RequestContext;
use crate::handler::Answering;
use crate::mcp_error::McpError;
use crate::protocol::initialize::InitializeParams;
use crate::protocol::level::LogLevel;
use crate::protocol::names::method;
use crate::protocol::revision::Era;
use crate::reply::Reply;
use crate::subscribe::Mailbox;

/// The transport's own answer, or `None` where the handler has to give one.
pub(crate) fn answer(call: &Arc<Call>) -> Option<Answering> {
    let answer = match (call.era(), call.message.method()) {
        (Era::Modern, method::DISCOVER) => Reply::of(call.server.modern_face()),
        (Era::Legacy, method::INITIALIZE) => initialize(call),
        (Era::Legacy, method::PING) => Reply::empty(),
        (Era::Legacy, method::SET_LEVEL) => set_level(call),
        (Era::Legacy, method::RESOURCES_SUBSCRIBE) => return Some(subscribe(call)),
        (Era::Legacy, method::RESOURCES_UNSUBSCRIBE) => unsubscribe(call),
        (Era::Legacy, method::DISCOVER) | (_, method::LISTEN) => Err(McpError::method_not_found()),
        _ => return None,
    };
    // Ready at once: `initialize` and `server/discover` never become a stream by the clock.
    Some(Box::pin(ready(answer.map_err(Failure::Error))))
}

fn initialize(call: &Call) -> Result<Reply, McpError> {
    if InitializeParams::read(call.message.params()).is_none() {
        return Err(McpError::invalid_params(
            "initialize needs protocolVersion (a string) and capabilities (an object)",
        ));
    }
    let delivery = if call.session.is_some() { Delivery::OnStreams } else { Delivery::Nowhere };
    let mut result = call.server.legacy_face(delivery).clone();
    if let Value::Object(members) = &mut result {
        members.insert("protocolVersion".to_owned(), json!(call.revision.as_str()));
    }
    Reply::of(&result)
}

#[derive(Deserialize)]
struct Level {
    level: LogLevel,
}

/// Without a session there is nothing the level could hold for: accepted, without effect.
fn set_level(call: &Call) -> Result<Reply, McpError> {
    let Level { level } =
        params(call, "level must be one of debug, info, notice, warning, error, critical, alert, emergency")?;
    if let Some(session) = &call.session {
        session.set_log_level(level);
    }
    Reply::empty()
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

fn subscribe(call: &Arc<Call>) -> Answering {
    let call = Arc::clone(call);
    Box::pin(async move {
        let uri = subscribable(&call).map_err(Failure::Error)?;
        // From here on a change is noted, and told once the handler has agreed.
        let reserved = call.session.as_ref().and_then(|session| Mailbox::reserve(session.mailbox(), &uri));
        let too_many = || McpError::invalid_params("Too many subscriptions in this session");
        let reserved = reserved.ok_or_else(|| Failure::Error(too_many()))?;
        let cx = RequestContext::new(Arc::clone(&call));
        Arc::clone(&call.server.handler).subscribe(uri, cx).await.map_err(Failure::Error)?;
        reserved.grant();
        Reply::empty().map_err(Failure::Error)
    })
}

fn unsubscribe(call: &Call) -> Result<Reply, McpError> {
    let uri = subscribable(call)?;
    if let Some(session) = &call.session {
        session.mailbox().unsubscribe(&uri);
    }
    Reply::empty()
}

/// The resource of a request that could have an effect.
fn subscribable(call: &Call) -> Result<String, McpError> {
    if !call.server.capabilities.subscribes() {
        return Err(McpError::method_not_found());
    }
    if call.session.is_none() {
        return Err(McpError::invalid_request("Subscriptions need a session: nothing could be delivered without one"));
    }
    params::<Resource>(call, "uri must be a string").map(|resource| resource.uri)
}

fn params<T: DeserializeOwned>(call: &Call, otherwise: &'static str) -> Result<T, McpError> {
    serde_json::from_slice(call.message.params().unwrap_or(b"{}")).map_err(|_| McpError::invalid_params(otherwise))
}
