//! The handler that every framework serves: one file, which knows of none of them.

use std::net::SocketAddr;

use mcp_transport::{
    Capabilities, Changes, McpError, McpHandler, Progress, Question, Reply, Request, RequestContext, ServerInfo,
};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Semaphore, watch};

/// A server whose tools do what a framework can get in the way of.
pub struct Workshop {
    pub changes: Changes,
    /// What has become of the calls of `wait`.
    pub tally: watch::Sender<Tally>,
    /// Lets a call of `wait` go on, for each permit.
    pub gate: Semaphore,
}

impl Default for Workshop {
    fn default() -> Self {
        Self { changes: Changes::new(), tally: watch::Sender::default(), gate: Semaphore::new(0) }
    }
}

/// How many calls of `wait` have begun, run to their end, and been dropped before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub begun: usize,
    pub finished: usize,
    pub dropped: usize,
}

/// A tenant, left in the request's extensions by a layer in front.
#[derive(Clone, Debug)]
pub struct Tenant(pub String);

#[derive(Deserialize)]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct Count {
    to: u32,
}

#[derive(Deserialize)]
struct Wait {
    streaming: bool,
    #[serde(default)]
    forever: bool,
}

#[derive(Deserialize)]
struct Agreed {
    agreed: bool,
}

impl McpHandler for Workshop {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("workshop", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let text = match (request.method(), request.name()) {
            ("tools/list", _) => {
                let tools = ["ask", "count", "echo", "wait", "who"];
                let tools = tools.map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
                return Reply::of(json!({ "tools": tools }));
            }
            ("tools/call", Some("ask")) => ask(&cx).await?,
            ("tools/call", Some("count")) => count(request.arguments()?, &cx).await,
            ("tools/call", Some("echo")) => request.arguments::<Echo>()?.text,
            ("tools/call", Some("wait")) => self.wait(request.arguments()?, &cx).await?,
            ("tools/call", Some("who")) => who(&cx),
            ("tools/call", _) => return Err(McpError::invalid_params("There is no such tool")),
            _ => return Err(McpError::method_not_found()),
        };
        Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
    }
}

impl Workshop {
    /// Waits to be let go on.
    async fn wait(&self, Wait { streaming, forever }: Wait, cx: &RequestContext) -> Result<String, McpError> {
        let mut call = Waiting { tally: &self.tally, end: |tally| tally.dropped += 1 };
        if streaming {
            cx.progress(Progress::new(1.0)).await;
        }
        self.tally.send_modify(|tally| tally.begun += 1);
        if forever {
            return std::future::pending().await;
        }
        self.gate.acquire().await.map_err(McpError::internal)?.forget();
        call.end = |tally| tally.finished += 1;
        Ok("let go on".to_owned())
    }
}

/// A call of `wait`, counted where it ends.
struct Waiting<'a> {
    tally: &'a watch::Sender<Tally>,
    end: fn(&mut Tally),
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.tally.send_modify(self.end);
    }
}

async fn ask(cx: &RequestContext) -> Result<String, McpError> {
    let schema = json!({ "type": "object", "properties": { "agreed": { "type": "boolean" } }, "required": ["agreed"] });
    let answer = cx.ask("agree", Question::form("Do you agree?", schema)?).await?;
    Ok(match answer.accepted()? {
        Some(Agreed { agreed: true }) => "agreed".to_owned(),
        Some(Agreed { agreed: false }) | None => "not agreed".to_owned(),
    })
}

async fn count(Count { to }: Count, cx: &RequestContext) -> String {
    for number in 1..=to {
        cx.progress(Progress::new(number.into()).total(to.into())).await;
    }
    format!("counted to {to}")
}

/// All that a layer in front, or the framework itself, lets the handler know of its caller.
fn who(cx: &RequestContext) -> String {
    let principal = cx.principal().map_or("nobody", |principal| principal.as_str());
    let tenant = cx.extensions().get::<Tenant>().map_or("none", |Tenant(name)| name);
    let peer = cx.extensions().get::<SocketAddr>().map_or_else(|| "unknown".to_owned(), |peer| peer.ip().to_string());
    let header = cx.http().and_then(|head| head.headers.get("x-request-id")).and_then(|value| value.to_str().ok());
    format!("{principal} of {tenant} at {peer}, request {}", header.unwrap_or("unnamed"))
}
