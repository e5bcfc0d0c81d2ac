//! A handler that does what the params say.

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use mcp_transport::{
    Capabilities, McpError, McpHandler, Notification, Question, Reply, Request, RequestContext, ServerInfo,
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

/// Does what the params say.
#[derive(Default)]
pub struct Acts {
    /// Held by whatever is at work.
    pub live: Arc<()>,
}

/// What one request is to do: tell so many times, wait so long, and end.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Act {
    pub tag: usize,
    #[serde(default)]
    pub tell: usize,
    #[serde(default)]
    pub wait: u64,
    #[serde(default)]
    pub end: End,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum End {
    #[default]
    Result,
    Error,
    Panic,
    Hang,
    /// Asks, and answers with what it was told.
    Ask,
    /// Lets the connection go, tells once more and answers.
    LetGo,
}

impl McpHandler for Acts {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("model", "1")
    }

    fn capabilities(&self) -> Capabilities {
        let lists = Capabilities::new().tools_list_changed().prompts_list_changed().resources_list_changed();
        lists.resources_subscribe()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let act: Act = request.params()?;
        let _live = Arc::clone(&self.live);
        for n in 0..act.tell {
            tell(&cx, act.tag, n).await?;
        }
        if act.wait > 0 {
            sleep(Duration::from_millis(act.wait)).await;
        }
        let mut heard = json!(null);
        match act.end {
            End::Result => {}
            End::Error => return Err(McpError::new(-32000, format!("{}", act.tag))),
            End::Panic => resume_unwind(Box::new("on purpose")),
            End::Hang => pending::<()>().await,
            End::Ask => {
                let schema = json!({"type": "object", "properties": {"word": {"type": "string"}}});
                let question = Question::form(format!("{}", act.tag), schema)?;
                heard = serde_json::from_str(cx.ask("q", question).await?.json()).map_err(McpError::internal)?;
            }
            End::LetGo => {
                cx.close_connection(Duration::from_secs(1));
                tell(&cx, act.tag, act.tell).await?;
            }
        }
        Reply::of(json!({"tag": act.tag, "heard": heard}))
    }

    async fn notification(&self, _: Notification, _: RequestContext) {
        let _live = Arc::clone(&self.live);
        tokio::task::yield_now().await;
    }
}

async fn tell(cx: &RequestContext, tag: usize, n: usize) -> Result<(), McpError> {
    cx.notify("notifications/x", json!({"tag": tag, "n": n})).await
}
