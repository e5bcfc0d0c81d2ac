//! This crate: the tools `echo`, and `notify`, which reports progress once before it echoes.

use hyper_util::service::TowerToHyperService;
use mcp_transport::{
    Capabilities, Limits, McpError, McpHandler, Progress, Reply, Request, RequestContext, ServerInfo,
    StreamableHttpService,
};
use serde_json::json;
use stage::{Arguments, CallResult};

struct Echo;

impl McpHandler for Echo {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("echo", "0")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools().tools_list_changed()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method() == "tools/list" {
            let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
            return Reply::of(json!({ "tools": [tool("echo"), tool("notify")] }));
        }
        let Arguments { text } = request.arguments()?;
        if request.name() == Some("notify") {
            cx.progress(Progress::new(1.0)).await;
        }
        Reply::of(CallResult::echo(&text))
    }
}

fn main() {
    stage::serve(|| {
        let limits =
            Limits::default().sessions(20_000).sessions_by_caller(20_000).listeners(20_000).listeners_by_caller(20_000);
        TowerToHyperService::new(StreamableHttpService::builder(Echo).limits(limits).build().expect("limits"))
    });
}
