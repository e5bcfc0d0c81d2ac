//! The servers that are measured. Each echoes the argument `text` of `tools/call`.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub const ALL: [&str; 6] = [
    "bare std loop",
    "the same, each flushed",
    "mcp-transport",
    "mcp-transport pipes",
    "rmcp stdio",
    "rmcp stdio_pipes",
];

pub fn serve(server: &str) {
    match server {
        "bare std loop" => bare(Flush::All),
        "the same, each flushed" => bare(Flush::Each),
        "mcp-transport" => runtime().block_on(ours::on_stdio()),
        "mcp-transport pipes" => runtime().block_on(ours::on_pipes()),
        "rmcp stdio" => runtime().block_on(theirs::on_stdio()),
        "rmcp stdio_pipes" => runtime().block_on(theirs::on_pipes()),
        other => panic!("no server {other}"),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: std::borrow::Cow<'a, str>,
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct CallResult<'a> {
    content: [Content<'a>; 1],
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: CallResult<'a>,
}

/// When the bare loop writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// All answers to what was read together, as this crate does.
    All,
    /// Every answer, as rmcp does.
    Each,
}

/// Reads what there is, and answers it.
fn bare(flush: Flush) {
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut buffer, mut chunk, mut out) = (Vec::new(), vec![0; 64 << 10], Vec::new());
    loop {
        let read = stdin.read(&mut chunk).expect("a pipe");
        if read == 0 {
            return;
        }
        buffer.extend_from_slice(&chunk[..read]);
        let end = buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in buffer[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let message: Message<'_> = serde_json::from_slice(line).expect("a message");
            let Some(id) = message.id else { continue };
            let params: Option<Params<'_>> = message.params.and_then(|params| serde_json::from_str(params.get()).ok());
            let text =
                params.as_ref().and_then(|params| params.arguments.as_ref()).map_or("", |arguments| &arguments.text);
            let result = CallResult { content: [Content { r#type: "text", text }] };
            serde_json::to_writer(&mut out, &Response { jsonrpc: "2.0", id, result }).expect("JSON");
            out.push(b'\n');
            if flush == Flush::Each {
                write(&mut stdout, &mut out);
            }
        }
        buffer.drain(..end);
        write(&mut stdout, &mut out);
    }
}

fn write(stdout: &mut impl Write, out: &mut Vec<u8>) {
    stdout.write_all(out).and_then(|()| stdout.flush()).expect("a pipe");
    out.clear();
}

mod ours {
    use mcp_transport::{
        Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StdioTransport,
    };

    use super::{Arguments, CallResult, Content};

    struct Echo;

    impl McpHandler for Echo {
        fn server_info(&self) -> ServerInfo {
            ServerInfo::new("echo", "0")
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::new().tools()
        }

        async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
            let Arguments { text } = request.arguments()?;
            Reply::of(CallResult { content: [Content { r#type: "text", text: &text }] })
        }
    }

    pub async fn on_stdio() {
        StdioTransport::stdio(Echo).serve().await.expect("served");
    }

    /// Through tokio's own driver for pipes, as an application may where it knows what it has.
    pub async fn on_pipes() {
        use std::os::fd::AsFd;
        use tokio::net::unix::pipe;
        let input = std::io::stdin().as_fd().try_clone_to_owned().expect("a descriptor");
        let output = std::io::stdout().as_fd().try_clone_to_owned().expect("a descriptor");
        let reader = pipe::Receiver::from_owned_fd(input).expect("a pipe");
        let writer = pipe::Sender::from_owned_fd(output).expect("a pipe");
        StdioTransport::new(Echo, reader, writer).serve().await.expect("served");
    }
}

mod theirs {
    use rmcp::model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
    };
    use rmcp::service::RequestContext;
    use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};

    struct Echo;

    impl ServerHandler for Echo {
        fn get_info(&self) -> ServerConfig {
            ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        }

        async fn call_tool(
            &self,
            request: CallToolRequestParams,
            _: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            let arguments = request.arguments.unwrap_or_default();
            let text = arguments.get("text").and_then(|text| text.as_str()).unwrap_or_default();
            Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
        }
    }

    pub async fn on_stdio() {
        let service = Echo.serve(rmcp::transport::stdio()).await.expect("served");
        let _ = service.waiting().await;
    }

    pub async fn on_pipes() {
        let service = Echo.serve(rmcp::transport::stdio_pipes()).await.expect("served");
        let _ = service.waiting().await;
    }
}
