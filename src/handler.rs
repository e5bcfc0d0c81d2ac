//! The one trait an application implements, and its erased form.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::capabilities::{Capabilities, ServerInfo};
use crate::context::RequestContext;
use crate::exchange::Failure;
use crate::mcp_error::McpError;
use crate::protocol::parameter_headers::ParameterHeaders;
use crate::reply::Reply;
use crate::request::{Notification, Request};
use crate::session::{Session, SessionEnd};

/// An MCP server: what an application implements.
///
/// One value serves every client, in every protocol revision, on every transport, at once. It sees requests as JSON-RPC
/// and answers them with results in the shape of the newest revision; it need not know which one the client speaks.
///
/// The transport itself answers `initialize`, `ping`, `server/discover`, `logging/setLevel`, `resources/subscribe`,
/// `resources/unsubscribe` and `subscriptions/listen`, and refuses what a revision has removed. What it says of the
/// server is what [`server_info`](Self::server_info), [`capabilities`](Self::capabilities) and
/// [`instructions`](Self::instructions) return once, when the transport is built. All else comes to
/// [`request`](Self::request), also methods of capabilities that were not declared.
///
/// The trait is implemented for `Arc<H>` too, so that the application can keep a handle to what it serves.
///
/// ```
/// use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
/// use serde_json::json;
///
/// struct Hello;
///
/// impl McpHandler for Hello {
///     fn server_info(&self) -> ServerInfo {
///         ServerInfo::new("hello", "1.0.0")
///     }
///
///     fn capabilities(&self) -> Capabilities {
///         Capabilities::new().tools()
///     }
///
///     async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
///         match request.method() {
///             "tools/list" => Reply::of(json!({
///                 "tools": [{ "name": "hello", "inputSchema": { "type": "object" } }]
///             })),
///             "tools/call" => Reply::of(json!({ "content": [{ "type": "text", "text": "Hello!" }] })),
///             _ => Err(McpError::method_not_found()),
///         }
///     }
/// }
/// ```
///
/// # Cancellation
///
/// The future that [`request`](Self::request) returns is dropped when the request is cancelled: its client went away,
/// or in a session cancelled it or deleted the session; the deadline passed; the transport was drained. It may move
/// from one task to another between two polls: in a session after the first, else when its answer turns into an event
/// stream. Task-locals do not move along, the context's extensions do.
///
/// # Compile errors that say little
///
/// "Lifetime parameters or bounds on method `request` do not match the trait declaration": the methods are plain
/// `async fn`; leave out `#[async_trait]`. "`?` couldn't convert the error": an error of the application's own becomes
/// one of the protocol's by `.map_err(McpError::internal)?`.
///
/// Inside an `async fn`, `stream::iter(items.iter()).map(…).buffer_unordered(n)` is refused with "implementation of
/// `FnOnce` is not general enough". Own the items: `stream::iter(items.clone())`, or collect the futures first.
pub trait McpHandler: Send + Sync + 'static {
    /// Returns what this server is.
    fn server_info(&self) -> ServerInfo;

    /// Returns what this server can do.
    fn capabilities(&self) -> Capabilities;

    /// Returns guidance on how to use this server, for the model to read. Default: none.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Answers a request. Any number of calls run at once.
    ///
    /// The transport asks `tools/list` in a caller's name when it has to know a tool's annotations: see
    /// [`parameter_headers`](Self::parameter_headers).
    ///
    /// # Errors
    ///
    /// What the client is to read. Answer methods you do not know with [`McpError::method_not_found`]. A tool that ran
    /// and failed is no error here but a result with `isError`, which the model gets to read.
    fn request(&self, request: Request, cx: RequestContext) -> impl Future<Output = Result<Reply, McpError>> + Send;

    /// Hears a notification, such as `notifications/roots/list_changed`. Default: ignores it.
    ///
    /// The client does not wait for it and does not cancel it by going away; the deadline and a drain whose time is
    /// over do. Over HTTP at most 1,024 may wait in one transport at once, of one caller's 256 and of one session's 64;
    /// past that the client sees 503, past its own share 429. On a byte stream it sees nothing past 1,024.
    fn notification(&self, notification: Notification, cx: RequestContext) -> impl Future<Output = ()> + Send {
        let _ = (notification, cx);
        async {}
    }

    /// Decides whether this caller may subscribe to a resource. Default: to any.
    ///
    /// Asked for `resources/subscribe` (up to 2025-11-25), where an error is the answer, and for each URI of a
    /// `subscriptions/listen` (2026-07-28), where one that is refused is left out of what is granted.
    ///
    /// # Errors
    ///
    /// Why not.
    fn subscribe(&self, uri: String, cx: RequestContext) -> impl Future<Output = Result<(), McpError>> + Send {
        let _ = (uri, cx);
        async { Ok(()) }
    }

    /// Hears that a session was opened, before its client does. Default: ignores it.
    ///
    /// If it panics, the client's `initialize` fails, and there is no session.
    fn session_opened(&self, session: &Session) {
        let _ = session;
    }

    /// Hears that a session has ended. What the application kept in it is dropped with its last handle. Default:
    /// ignores it.
    fn session_closed(&self, session: &Session, end: SessionEnd) {
        let _ = (session, end);
    }

    /// Returns where the `x-mcp-header` annotations of a tool come from.
    ///
    /// A client of 2026-07-28 mirrors annotated arguments of `tools/call` into `Mcp-Param-*` headers, and the transport
    /// refuses a call whose headers and body disagree.
    ///
    /// Default: they are read from the handler's own `tools/list`, which the transport asks in the caller's name. A
    /// list is kept for each [`Principal`](crate::Principal) as long as its `ttlMs` says, 60 s where that is 0 or
    /// missing, or until a [change of the tools](crate::Changes::tools_list_changed) is published. Override this where
    /// a list is slow to make, does not hold every tool, or differs between requests of one principal.
    fn parameter_headers(&self, tool: &str, cx: &RequestContext) -> ParameterSource {
        let _ = (tool, cx);
        ParameterSource::Listing
    }
}

/// Where the `x-mcp-header` annotations of a tool come from.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ParameterSource {
    /// From the handler's `tools/list`.
    #[default]
    Listing,
    /// The tool has none.
    None,
    /// These, read once with [`ParameterHeaders::of_schema`].
    Known(Arc<ParameterHeaders>),
}

// A hook that is added and not forwarded would silently do nothing.
#[deny(clippy::missing_trait_methods)]
impl<H: McpHandler> McpHandler for Arc<H> {
    fn server_info(&self) -> ServerInfo {
        (**self).server_info()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn instructions(&self) -> Option<String> {
        (**self).instructions()
    }

    fn request(&self, request: Request, cx: RequestContext) -> impl Future<Output = Result<Reply, McpError>> + Send {
        (**self).request(request, cx)
    }

    fn notification(&self, notification: Notification, cx: RequestContext) -> impl Future<Output = ()> + Send {
        (**self).notification(notification, cx)
    }

    fn subscribe(&self, uri: String, cx: RequestContext) -> impl Future<Output = Result<(), McpError>> + Send {
        (**self).subscribe(uri, cx)
    }

    fn session_opened(&self, session: &Session) {
        (**self).session_opened(session);
    }

    fn session_closed(&self, session: &Session, end: SessionEnd) {
        (**self).session_closed(session, end);
    }

    fn parameter_headers(&self, tool: &str, cx: &RequestContext) -> ParameterSource {
        (**self).parameter_headers(tool, cx)
    }
}

/// The answer of a handler or of what stands in for it, on its way.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

/// A decision on a subscription on its way.
pub(crate) type Deciding = Pin<Box<dyn Future<Output = Result<(), McpError>> + Send>>;

/// A notification hook on its way.
pub(crate) type Hearing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A handler without its type, so that transports carry no generics.
pub(crate) trait ErasedHandler: Send + Sync {
    fn request(self: Arc<Self>, request: Request, cx: RequestContext) -> Answering;
    fn notification(self: Arc<Self>, notification: Notification, cx: RequestContext) -> Hearing;
    fn subscribe(self: Arc<Self>, uri: String, cx: RequestContext) -> Deciding;
    fn session_opened(&self, session: &Session);
    fn session_closed(&self, session: &Session, end: SessionEnd);
    fn parameter_headers(&self, tool: &str, cx: &RequestContext) -> ParameterSource;
}

impl<H: McpHandler> ErasedHandler for H {
    fn request(self: Arc<Self>, request: Request, cx: RequestContext) -> Answering {
        Box::pin(async move { McpHandler::request(&*self, request, cx).await.map_err(Failure::Error) })
    }

    fn notification(self: Arc<Self>, notification: Notification, cx: RequestContext) -> Hearing {
        Box::pin(async move { McpHandler::notification(&*self, notification, cx).await })
    }

    fn subscribe(self: Arc<Self>, uri: String, cx: RequestContext) -> Deciding {
        Box::pin(async move { McpHandler::subscribe(&*self, uri, cx).await })
    }

    fn session_opened(&self, session: &Session) {
        McpHandler::session_opened(self, session);
    }

    fn session_closed(&self, session: &Session, end: SessionEnd) {
        McpHandler::session_closed(self, session, end);
    }

    fn parameter_headers(&self, tool: &str, cx: &RequestContext) -> ParameterSource {
        McpHandler::parameter_headers(self, tool, cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bytes::Bytes;
    use futures::FutureExt;
    use http_body_util::{BodyExt, Full};
    use serde_json::{Value, json};

    use super::*;
    use crate::StreamableHttpService;

    /// Overrides every hook, and notes which were called.
    #[derive(Default)]
    struct Every(Mutex<Vec<&'static str>>);

    impl Every {
        fn note(&self, hook: &'static str) {
            self.0.lock().unwrap().push(hook);
        }
    }

    #[deny(clippy::missing_trait_methods)]
    impl McpHandler for Every {
        fn server_info(&self) -> ServerInfo {
            self.note("server_info");
            ServerInfo::new("every", "7")
        }

        fn capabilities(&self) -> Capabilities {
            self.note("capabilities");
            Capabilities::new().tools().resources_subscribe()
        }

        fn instructions(&self) -> Option<String> {
            self.note("instructions");
            Some("do".to_owned())
        }

        async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> {
            self.note("request");
            Reply::empty()
        }

        async fn notification(&self, _: Notification, _: RequestContext) {
            self.note("notification");
        }

        async fn subscribe(&self, _: String, _: RequestContext) -> Result<(), McpError> {
            self.note("subscribe");
            Ok(())
        }

        fn session_opened(&self, _: &Session) {
            self.note("session_opened");
        }

        fn session_closed(&self, _: &Session, _: SessionEnd) {
            self.note("session_closed");
        }

        fn parameter_headers(&self, _: &str, _: &RequestContext) -> ParameterSource {
            self.note("parameter_headers");
            ParameterSource::Known(Arc::default())
        }
    }

    /// The answer to a message in a session; a new one where none is named.
    fn ask_in(service: &StreamableHttpService, session: Option<&str>, method: &str) -> (Value, Option<String>) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "uri": "a"});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = http::Request::post("/mcp").header("content-type", "application/json");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Full::<Bytes>::from(message.to_string())).unwrap();
        let response = service.handle(request).now_or_never().expect("no wait");
        let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let body = response.into_body().collect().now_or_never().expect("no wait").unwrap();
        (serde_json::from_slice(&body.to_bytes()).unwrap_or_default(), session)
    }

    /// The answer to a message of 2026-07-28, or `Null` where there is none.
    fn ask(service: &StreamableHttpService, method: &str, id: Option<u8>) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": {"name": "t", "_meta": meta}});
        if let Some(id) = id {
            message["id"] = id.into();
        }
        let request = http::Request::post("/mcp").header("content-type", "application/json");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        let request = request.header("mcp-name", "t").body(Full::<Bytes>::from(message.to_string())).unwrap();
        let response = service.handle(request).now_or_never().expect("no wait");
        let body = response.into_body().collect().now_or_never().expect("no wait").unwrap();
        serde_json::from_slice(&body.to_bytes()).unwrap_or_default()
    }

    #[test]
    fn a_shared_handler_has_all_its_hooks() {
        let handler = Arc::new(Every::default());
        let service = StreamableHttpService::new(Arc::new(Arc::clone(&handler)));
        assert_eq!(*handler.0.lock().unwrap(), ["capabilities", "server_info", "instructions"]);
        handler.0.lock().unwrap().clear();

        let face = &ask(&service, "server/discover", Some(1))["result"];
        assert_eq!((&face["capabilities"]["tools"], &face["instructions"]), (&json!({}), &json!("do")));
        assert_eq!(face["_meta"]["io.modelcontextprotocol/serverInfo"], json!({"name": "every", "version": "7"}));
        assert_eq!(ask(&service, "notifications/x", None), Value::Null);
        assert_eq!(ask(&service, "tools/call", Some(1))["result"]["resultType"], "complete");
        assert_eq!(*handler.0.lock().unwrap(), ["notification", "parameter_headers", "request"]);
        handler.0.lock().unwrap().clear();

        let (_, session) = ask_in(&service, None, "initialize");
        let session = session.expect("a session");
        assert_eq!(ask_in(&service, Some(&session), "resources/subscribe").0["result"], json!({}));
        let delete = http::Request::delete("/mcp").header("mcp-session-id", &session).body(Full::<Bytes>::default());
        assert_eq!(service.handle(delete.unwrap()).now_or_never().expect("no wait").status(), 204);
        assert_eq!(*handler.0.lock().unwrap(), ["session_opened", "subscribe", "session_closed"]);
    }
}
