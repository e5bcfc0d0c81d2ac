//! A handler that does what the test says.

use std::sync::Arc;

use futures::future::BoxFuture;
use mcp_transport::{
    Capabilities, McpError, McpHandler, Notification, Reply, Request, RequestContext, ServerInfo, Session, SessionEnd,
};
use serde_json::{Value, json};

type Subscribe = dyn Fn(String, RequestContext) -> BoxFuture<'static, Result<(), McpError>> + Send + Sync;
type Closed = dyn Fn(&Session, SessionEnd) + Send + Sync;
type Answer = BoxFuture<'static, Result<Reply, McpError>>;

/// A handler made of closures. Unless told otherwise it declares everything and answers nothing.
#[derive(Clone)]
pub struct Script {
    capabilities: Capabilities,
    instructions: Option<String>,
    request: Arc<dyn Fn(Request, RequestContext) -> Answer + Send + Sync>,
    notification: Arc<dyn Fn(Notification, RequestContext) -> BoxFuture<'static, ()> + Send + Sync>,
    subscribe: Arc<Subscribe>,
    opened: Arc<dyn Fn(&Session) + Send + Sync>,
    closed: Arc<Closed>,
}

impl Script {
    /// Answers every request that reaches the handler by `request`.
    pub fn new<F, Fut>(request: F) -> Self
    where
        F: Fn(Request, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply, McpError>> + Send + 'static,
    {
        Self {
            capabilities: Capabilities::new().tools().prompts().resources().completions().logging(),
            instructions: None,
            request: Arc::new(move |message, cx| Box::pin(request(message, cx))),
            notification: Arc::new(|_, _| Box::pin(async {})),
            subscribe: Arc::new(|_, _| Box::pin(async { Ok(()) })),
            opened: Arc::new(|_| ()),
            closed: Arc::new(|_, _| ()),
        }
    }

    /// Answers `tools/list` with `tools`, and every `tools/call` with its own params.
    pub fn echo(tools: Value) -> Self {
        Self::new(move |request, _| {
            let answer = match request.method() {
                "tools/list" => Reply::of(json!({"tools": tools})),
                "tools/call" => request
                    .params::<Value>()
                    .and_then(|params| Reply::of(json!({"content": [{"type": "text", "text": params.to_string()}]}))),
                _ => Err(McpError::method_not_found()),
            };
            async { answer }
        })
    }

    /// Hears notifications by `notification`.
    pub fn hearing<F, Fut>(mut self, notification: F) -> Self
    where
        F: Fn(Notification, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.notification = Arc::new(move |message, cx| Box::pin(notification(message, cx)));
        self
    }

    /// Decides on subscriptions by `subscribe`.
    pub fn deciding<F, Fut>(mut self, subscribe: F) -> Self
    where
        F: Fn(String, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), McpError>> + Send + 'static,
    {
        self.subscribe = Arc::new(move |uri, cx| Box::pin(subscribe(uri, cx)));
        self
    }

    /// Hears of the life of sessions.
    pub fn watching(
        mut self,
        opened: impl Fn(&Session) + Send + Sync + 'static,
        closed: impl Fn(&Session, SessionEnd) + Send + Sync + 'static,
    ) -> Self {
        (self.opened, self.closed) = (Arc::new(opened), Arc::new(closed));
        self
    }

    /// Declares these instead of everything.
    pub fn declaring(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Gives instructions.
    pub fn instructing(mut self, instructions: &str) -> Self {
        self.instructions = Some(instructions.to_owned());
        self
    }
}

impl McpHandler for Script {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("wire", "1")
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn instructions(&self) -> Option<String> {
        self.instructions.clone()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        (self.request)(request, cx).await
    }

    async fn notification(&self, notification: Notification, cx: RequestContext) {
        (self.notification)(notification, cx).await;
    }
    async fn subscribe(&self, uri: String, cx: RequestContext) -> Result<(), McpError> {
        (self.subscribe)(uri, cx).await
    }

    fn session_opened(&self, session: &Session) {
        (self.opened)(session);
    }

    fn session_closed(&self, session: &Session, end: SessionEnd) {
        (self.closed)(session, end);
    }
}
