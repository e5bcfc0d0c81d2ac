//! What a tool can return: texts, pictures, sounds, resources, and errors for the model to read.

use mcp_transport::{McpError, Reply, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::{text, tool};

/// One red pixel.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// No sound at all: the header of a WAV file.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

#[derive(Deserialize)]
struct Custom {
    value: String,
}

pub fn tools() -> Vec<Value> {
    vec![
        tool("test_simple_text", "Says a sentence.", json!({})),
        tool("test_image_content", "Shows a picture.", json!({})),
        tool("test_audio_content", "Plays a sound.", json!({})),
        tool("test_embedded_resource", "Returns a resource.", json!({})),
        tool("test_multiple_content_types", "Returns a text, a picture and a resource.", json!({})),
        tool("test_error_handling", "Fails, and says so to the model.", json!({})),
        // A client of 2026-07-28 repeats the value in the header `Mcp-Param-Value`, and the transport compares the two.
        tool(
            "test_custom_header",
            "Says what it is told, in a header too.",
            json!({
                "value": { "type": "string", "x-mcp-header": "Value" },
            }),
        ),
        json!({
            "name": "json_schema_2020_12_tool",
            "description": "Takes an address, and a way to reach whoever lives there.",
            "inputSchema": schema_2020_12(),
        }),
    ]
}

pub fn call(name: &str, request: &Request) -> Option<Result<Reply, McpError>> {
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let blocks = |blocks: Value| Reply::of(json!({ "content": blocks }));
    Some(match name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => blocks(json!([image])),
        "test_audio_content" => blocks(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }])),
        "test_embedded_resource" => {
            let sentence = "This is an embedded resource content.";
            blocks(json!([resource("test://embedded-resource", "text/plain", sentence)]))
        }
        "test_multiple_content_types" => blocks(json!([
            { "type": "text", "text": "Multiple content types test:" },
            image,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ])),
        "test_error_handling" => error("This tool intentionally returns an error for testing"),
        "test_custom_header" => request.arguments().and_then(|Custom { value }| text(value)),
        "json_schema_2020_12_tool" => text("All of it arrived."),
        _ => return None,
    })
}

/// A failure of the tool: a result, which the model gets to read, and not an error of the protocol.
fn error(why: &str) -> Result<Reply, McpError> {
    Reply::of(json!({ "isError": true, "content": [{ "type": "text", "text": why }] }))
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

/// Whatever JSON Schema can say reaches the client as it is written here.
fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
