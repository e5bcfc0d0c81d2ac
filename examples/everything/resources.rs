//! Resources: a text, a picture, one to watch, and a template for as many as you like.

use mcp_transport::{McpError, Reply, Request};
use serde_json::{Value, json};

use crate::content::PNG;

/// Subscribers of this one hear of it when `test_trigger_resource_change` is called.
pub const WATCHED: &str = "test://watched-resource";

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";

pub fn list() -> Result<Reply, McpError> {
    Reply::of(json!({ "resources": [
        { "uri": TEXT, "name": "A text", "mimeType": "text/plain" },
        { "uri": BINARY, "name": "A picture", "mimeType": "image/png" },
        { "uri": WATCHED, "name": "A text that changes", "mimeType": "text/plain" },
    ] }))
}

pub fn templates() -> Result<Reply, McpError> {
    let template =
        json!({ "uriTemplate": "test://template/{id}/data", "name": "Data", "mimeType": "application/json" });
    Reply::of(json!({ "resourceTemplates": [template] }))
}

pub fn read(request: &Request) -> Result<Reply, McpError> {
    let uri = request.uri().ok_or_else(|| McpError::invalid_params("Which resource?"))?;
    match uri {
        TEXT => contents(json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        })),
        BINARY => contents(json!({ "uri": uri, "mimeType": "image/png", "blob": PNG })),
        WATCHED => contents(json!({ "uri": uri, "mimeType": "text/plain", "text": "Watch me." })),
        _ => {
            let id = id_of(uri).ok_or_else(|| McpError::resource_not_found(uri))?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            contents(json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() }))
        }
    }
}

/// The `{id}` of the template.
fn id_of(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

fn contents(content: Value) -> Result<Reply, McpError> {
    Reply::of(json!({ "contents": vec![content] }))
}
