//! The schemas of the five revisions, as types that read what the schema allows.

use mcp_transport::Revision;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The `result` of a response to this method.
    Result,
    /// A notification, whole.
    Notification,
    /// A request, whole; in 2026-07-28 one that stands in `inputRequests`.
    Request,
    /// A response with an error, whole. The method does not matter.
    Error,
}

/// Whether the schema of the revision allows it.
pub fn check(revision: Revision, kind: Kind, method: &str, value: &Value) -> Result<(), String> {
    let read = match revision {
        Revision::V2024_11_05 => v2024_11_05,
        Revision::V2025_03_26 => v2025_03_26,
        Revision::V2025_06_18 => v2025_06_18,
        Revision::V2025_11_25 => v2025_11_25,
        _ => v2026_07_28,
    };
    read(kind, method, value)
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    serde_json::from_value::<T>(value.clone()).map(drop).map_err(|error| error.to_string())
}

/// Reads by what all revisions have, and by what each has of its own.
macro_rules! schemas {
    ($($function:ident $schema:ident::$module:ident $error:ident { $($kind:ident $method:literal $type:ident;)* })*) => {$(
        fn $function(kind: Kind, method: &str, value: &Value) -> Result<(), String> {
            use $schema::$module as types;

            match (kind, method) {
                $((Kind::$kind, $method) => read::<types::$type>(value),)*
                (Kind::Error, _) => read::<types::$error>(value),
                (Kind::Result, "tools/list") => read::<types::ListToolsResult>(value),
                (Kind::Result, "tools/call") => read::<types::CallToolResult>(value),
                (Kind::Result, "prompts/list") => read::<types::ListPromptsResult>(value),
                (Kind::Result, "prompts/get") => read::<types::GetPromptResult>(value),
                (Kind::Result, "resources/list") => read::<types::ListResourcesResult>(value),
                (Kind::Result, "resources/templates/list") => read::<types::ListResourceTemplatesResult>(value),
                (Kind::Result, "resources/read") => read::<types::ReadResourceResult>(value),
                (Kind::Result, "completion/complete") => read::<types::CompleteResult>(value),
                (Kind::Request, "sampling/createMessage") => read::<types::CreateMessageRequest>(value),
                (Kind::Request, "roots/list") => read::<types::ListRootsRequest>(value),
                (Kind::Notification, "notifications/cancelled") => read::<types::CancelledNotification>(value),
                (Kind::Notification, "notifications/progress") => read::<types::ProgressNotification>(value),
                (Kind::Notification, "notifications/message") => read::<types::LoggingMessageNotification>(value),
                (Kind::Notification, "notifications/tools/list_changed") => {
                    read::<types::ToolListChangedNotification>(value)
                }
                (Kind::Notification, "notifications/resources/updated") => {
                    read::<types::ResourceUpdatedNotification>(value)
                }
                _ => Err(format!("the revision has no {kind:?} of {method}")),
            }
        }
    )*};
}

schemas! {
    v2024_11_05 schema_2024_11_05::mcp_2024_11_05 JsonrpcError {
        Result "initialize" InitializeResult;
        Result "ping" EmptyResult;
        Result "resources/subscribe" EmptyResult;
    }
    v2025_03_26 schema_2025_03_26::mcp_2025_03_26 JsonrpcError {
        Result "initialize" InitializeResult;
        Result "ping" EmptyResult;
        Result "resources/subscribe" EmptyResult;
    }
    v2025_06_18 schema_2025_06_18::mcp_2025_06_18 JsonrpcError {
        Result "initialize" InitializeResult;
        Result "ping" EmptyResult;
        Result "resources/subscribe" EmptyResult;
        Request "elicitation/create" ElicitRequest;
    }
    v2025_11_25 schema_2025_11_25::mcp_2025_11_25 JsonrpcErrorResponse {
        Result "initialize" InitializeResult;
        Result "ping" EmptyResult;
        Result "resources/subscribe" EmptyResult;
        Request "elicitation/create" ElicitRequest;
    }
    v2026_07_28 schema_2026_07_28::mcp_2026_07_28 JsonrpcErrorResponse {
        Result "server/discover" DiscoverResult;
        Result "input_required" InputRequiredResult;
        Request "elicitation/create" ElicitRequest;
        Notification "notifications/subscriptions/acknowledged" SubscriptionsAcknowledgedNotification;
    }
}
