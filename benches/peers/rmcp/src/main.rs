//! rmcp: the same two tools. It prefers JSON answers where it can.

use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(|text| text.as_str()).unwrap_or_default();
        if request.name == "notify" {
            let token = cx.meta.get_progress_token().expect("a token");
            // Its client may have gone.
            let _ = cx.peer.notify_progress(ProgressNotificationParam::new(token, 1.0)).await;
        }
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn main() {
    stage::serve(|| {
        let config = StreamableHttpServerConfig::default().with_json_response(true);
        let service: StreamableHttpService<Echo, LocalSessionManager> =
            StreamableHttpService::new(|| Ok(Echo), Default::default(), config);
        TowerToHyperService::new(service)
    });
}
