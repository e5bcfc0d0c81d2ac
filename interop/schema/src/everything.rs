//! A server of our own, that writes what no example does: whatever 2026-07-28 knows and some older revision does not.

use mcp_transport::{
    AskError, Capabilities, LogLevel, McpError, McpHandler, Progress, Question, Reply, Request, RequestContext,
    ServerInfo, StreamableHttpService,
};
use serde_json::{Value, json};

struct Everything;

impl McpHandler for Everything {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("everything", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed().resources_subscribe().prompts().completions().logging()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match (request.method(), request.name()) {
            ("tools/list", _) => Reply::of(json!({
                "tools": [
                    tool("content", None), tool("object", Some("object")), tool("array", Some("array")), tool("ask", None),
                ],
                "ttlMs": 5, "cacheScope": "public", "resultType": "complete",
            })),
            ("tools/call", Some("content")) => {
                cx.progress(Progress::new(0.5).message("half")).await;
                cx.log(LogLevel::Warning, json!({"at": "half"})).await?;
                Reply::of(json!({"content": blocks(), "isError": false, "resultType": "complete"}))
            }
            ("tools/call", Some("object")) => Reply::of(json!({"content": [], "structuredContent": {"n": 1}})),
            ("tools/call", Some("array")) => Reply::of(json!({"content": [], "structuredContent": [1, "a"]})),
            ("tools/call", Some("ask")) => ask(&cx).await,
            ("tools/call", _) => Err(McpError::invalid_params("no such tool")),
            ("prompts/list", _) => Reply::of(json!({"prompts": [{"name": "p", "arguments": [{"name": "a"}]}]})),
            ("prompts/get", _) => {
                let messages: Vec<_> = blocks().iter().map(|block| json!({"role": "user", "content": block})).collect();
                Reply::of(json!({"messages": messages, "description": "d"}))
            }
            ("resources/list", _) => Reply::of(json!({"resources": [{"uri": "x:a", "name": "a", "title": "A"}]})),
            ("resources/templates/list", _) => {
                Reply::of(json!({"resourceTemplates": [{"uriTemplate": "x:{a}", "name": "a"}]}))
            }
            ("resources/read", _) if request.uri() == Some("x:a") => Reply::of(json!({
                "contents": [{"uri": "x:a", "text": "a"}, {"uri": "x:a", "blob": "AAAA", "mimeType": "a/b"}],
                "ttlMs": 5, "cacheScope": "public",
            })),
            ("resources/read", _) => Err(McpError::resource_not_found(request.uri().unwrap_or_default())),
            ("completion/complete", _) => Reply::of(json!({"completion": {"values": ["a"], "hasMore": false}})),
            _ => Err(McpError::method_not_found()),
        }
    }
}

fn tool(name: &str, output: Option<&str>) -> Value {
    let mut tool = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    if let Some(kind) = output {
        tool["outputSchema"] = json!({ "type": kind });
    }
    tool
}

/// A block of every kind.
fn blocks() -> [Value; 6] {
    [
        json!({"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 0.5}}),
        json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
        json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "annotations": {"priority": 1}}),
        json!({"type": "resource_link", "uri": "x:a", "name": "a", "title": "A", "description": "d", "size": 3}),
        json!({"type": "resource", "resource": {"uri": "x:a", "text": "a"}}),
        json!({"type": "resource", "resource": {"uri": "x:a", "blob": "AAAA"}, "_meta": {"com.example/a": 1}}),
    ]
}

/// Every question the client can be asked.
async fn ask(cx: &RequestContext) -> Result<Reply, McpError> {
    let content = json!([{"type": "text", "text": "a"}, {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let questions = [
        ("form", Question::form("a?", schema)?),
        ("url", Question::url("b?", "https://example.com/b")?),
        ("model", Question::sampling(json!({"messages": [{"role": "user", "content": content}], "maxTokens": 9}))?),
        ("roots", Question::roots()?),
    ];
    let mut answered = Vec::new();
    for (name, question) in questions {
        match cx.ask(name, question).await {
            Ok(_) => answered.push(name),
            Err(AskError::Unsupported { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Reply::of(json!({"content": [{"type": "text", "text": answered.join(" ")}]}))
}

/// Serves until the process ends. Returns where.
pub fn serve() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            let app = axum::Router::new().route_service("/mcp", StreamableHttpService::new(Everything));
            axum::serve(listener, app).await
        })
    });
    format!("http://{address}/mcp")
}
