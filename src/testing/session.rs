//! A session of a client's, up to 2025-11-25.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{Answer, AnswerStream};
use super::client::{Call, Client};
use super::fail;
use crate::protocol::names::{header, method};
use crate::protocol::revision::{Era, Revision};

impl Client {
    /// Opens a session: sends `initialize` with the client's [capabilities](Self::capabilities), and
    /// `notifications/initialized`.
    ///
    /// ```
    /// # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
    /// # use mcp_transport::StreamableHttpService;
    /// # struct Hello;
    /// # impl McpHandler for Hello {
    /// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("hello", "1") }
    /// #     fn capabilities(&self) -> Capabilities { Capabilities::new().tools() }
    /// #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> {
    /// #         Reply::of(json!({ "tools": [] }))
    /// #     }
    /// # }
    /// use mcp_transport::Revision;
    /// use mcp_transport::testing::Client;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let client = Client::new(StreamableHttpService::new(Hello));
    /// let session = client.session(Revision::V2025_11_25).await;
    /// assert_eq!(session.initialized()["serverInfo"]["name"], "hello");
    /// let answer = session.call("tools/list", ()).await;
    /// assert_eq!(answer.result()["tools"], json!([]));
    /// assert_eq!(session.end().await.status, 204);
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If `revision` is 2026-07-28, which has no sessions, or the server opens none.
    pub async fn session(&self, revision: Revision) -> ClientSession {
        if revision.era() == Era::Modern {
            fail(format_args!("{revision} has no sessions"));
        }
        let mut opening = self.call(revision, method::INITIALIZE, initialize(revision, self.declared()));
        // What the version is, is only being negotiated.
        opening.request.headers_mut().remove(header::PROTOCOL_VERSION);
        let opened = opening.await;
        let initialized = opened.result().clone();
        let id = opened.headers.get(header::SESSION_ID).and_then(|id| id.to_str().ok());
        let Some(id) = id.map(str::to_owned) else {
            fail(format_args!("no session was opened: {opened}"));
        };
        let session = ClientSession { client: self.clone(), revision, id, initialized };
        let taken = session.notify(method::INITIALIZED, ()).await;
        if !taken.status.is_success() {
            fail(format_args!("{} was not taken: {taken}", method::INITIALIZED));
        }
        session
    }
}

/// The params of an `initialize`.
pub(super) fn initialize(revision: Revision, capabilities: &Value) -> Value {
    let client = json!({ "name": "mcp-transport testing", "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocolVersion": revision.as_str(), "capabilities": capabilities, "clientInfo": client })
}

/// A session of a [`Client`]: what it sends carries the session's id.
///
/// Cheap to clone. Dropping it ends nothing; [`end`](Self::end) does.
#[derive(Clone)]
pub struct ClientSession {
    client: Client,
    revision: Revision,
    id: String,
    initialized: Value,
}

impl ClientSession {
    /// Returns the id: what the header `Mcp-Session-Id` says.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the result of `initialize`.
    pub const fn initialized(&self) -> &Value {
        &self.initialized
    }

    /// Makes a request in the session, as [`Client::call`] does outside.
    ///
    /// # Panics
    ///
    /// As [`Client::call`].
    #[track_caller]
    pub fn call(&self, method: &str, params: impl Serialize) -> Call {
        self.client.call(self.revision, method, params).header(header::SESSION_ID.as_str(), &self.id)
    }

    /// Makes a notification in the session, as [`Client::notify`] does outside.
    ///
    /// # Panics
    ///
    /// As [`Client::call`].
    #[track_caller]
    pub fn notify(&self, method: &str, params: impl Serialize) -> Call {
        self.client.notify(self.revision, method, params).header(header::SESSION_ID.as_str(), &self.id)
    }

    /// Opens the session's stream by GET: changes, and what the server asks.
    pub async fn listen(&self) -> AnswerStream {
        self.without_body(http::Method::GET).header(http::header::ACCEPT.as_str(), "text/event-stream").stream().await
    }

    /// Ends the session by DELETE.
    pub async fn end(self) -> Answer {
        self.without_body(http::Method::DELETE).await
    }

    fn without_body(&self, method: http::Method) -> Call {
        let mut call = self.call("", ());
        *call.request.method_mut() = method;
        *call.request.body_mut() = bytes::Bytes::new();
        call.request.headers_mut().remove(http::header::CONTENT_TYPE);
        call
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession").field("revision", &self.revision).field("id", &self.id).finish_non_exhaustive()
    }
}
