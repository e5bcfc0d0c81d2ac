//! A client of one revision before one server.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use mcp_transport::testing::{Answer, AnswerStream, Call, Client};
use mcp_transport::{Era, Revision};
use mount::handler::Tally;
use serde_json::{Value, json};

use crate::hosts::{Host, PATH, Running};
use mount::remote::Remote;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A client of 2026-07-28.
    Modern,
    /// One of 2025-11-25, in a session.
    Session,
    /// One of 2025-03-26, without a session.
    Sessionless,
}

impl Caller {
    pub const ALL: [(Self, &str); 3] =
        [(Self::Modern, "modern"), (Self::Session, "session"), (Self::Sessionless, "sessionless")];

    pub fn revision(self) -> Revision {
        match self {
            Self::Modern => Revision::V2026_07_28,
            Self::Session => Revision::V2025_11_25,
            Self::Sessionless => Revision::V2025_03_26,
        }
    }
}

/// What answers nothing in this time never will.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server, and the client that is tried on it.
pub struct Site {
    pub caller: Caller,
    pub running: Running,
    client: Client,
    session: Option<String>,
}

impl Site {
    pub async fn open(host: Host, caller: Caller) -> Self {
        let running = host.start();
        let client = client(running.remote.clone());
        let mut site = Self { caller, running, client, session: None };
        if caller == Caller::Session {
            let params = json!({
                "protocolVersion": caller.revision().as_str(),
                "capabilities": { "elicitation": {} },
                "clientInfo": { "name": "suite", "version": "1" },
            });
            let answer = site.call("initialize", params).await;
            assert_eq!(answer.result()["serverInfo"]["name"], "workshop");
            site.session = Some(answer.headers["mcp-session-id"].to_str().unwrap().to_owned());
            assert_eq!(site.notify("notifications/initialized", ()).await.status, 202);
        }
        site
    }

    pub fn call(&self, method: &str, params: impl serde::Serialize) -> Call {
        self.sign(self.client.call(self.caller.revision(), method, params))
    }

    pub fn notify(&self, method: &str, params: impl serde::Serialize) -> Call {
        self.sign(self.client.notify(self.caller.revision(), method, params))
    }

    /// Calls a tool, and asks for reports of its progress.
    pub fn tool(&self, name: &str, arguments: Value) -> Call {
        let meta = json!({ "progressToken": "reports" });
        self.call("tools/call", json!({ "name": name, "arguments": arguments, "_meta": meta }))
    }

    /// A request without a body, in the session where there is one.
    pub fn bare(&self, method: Method) -> Call {
        let request = Request::builder().method(method).uri(PATH).header("accept", "text/event-stream");
        let request = request.header("mcp-protocol-version", self.caller.revision().as_str());
        self.sign(self.client.send(request.body(Bytes::new()).unwrap()))
    }

    /// Any request at all, by nobody.
    pub fn send(&self, request: Request<Bytes>) -> Call {
        self.client.send(request)
    }

    fn sign(&self, call: Call) -> Call {
        let call = call.header("authorization", "Bearer ada@acme").header("x-request-id", "17");
        match &self.session {
            Some(session) => call.header("mcp-session-id", session),
            None => call,
        }
    }

    /// Opens the stream on which this caller hears of changes.
    pub async fn listen(&self) -> AnswerStream {
        match self.caller {
            Caller::Modern => {
                let filter = json!({ "notifications": { "toolsListChanged": true } });
                let mut stream = self.call("subscriptions/listen", filter).stream().await;
                let first = stream.next().await.expect("an acknowledgement");
                assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
                stream
            }
            Caller::Session | Caller::Sessionless => {
                let stream = self.bare(Method::GET).stream().await;
                assert_eq!(stream.status, 200);
                stream
            }
        }
    }

    /// Waits until this has become of the calls of `wait`.
    pub async fn tally(&self, holds: impl Fn(&Tally) -> bool) {
        let mut tally = self.running.workshop.tally.subscribe();
        let waited = tokio::time::timeout(PATIENCE, tally.wait_for(|tally| holds(tally))).await;
        assert!(waited.is_ok(), "{:?}", self.running.workshop.tally.borrow());
    }

    /// Waits until so many event streams are open.
    pub async fn streams(&self, count: usize) {
        let opened = async {
            while self.running.service.counts().streams != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, opened).await.is_ok(), "{:?}", self.running.service.counts());
    }

    pub fn modern(&self) -> bool {
        self.caller.revision().era() == Era::Modern
    }
}

fn client(remote: Remote) -> Client {
    Client::new(remote).path(PATH).capabilities(json!({ "elicitation": {} }))
}

/// The text of a tool's result.
pub fn text(answer: &Answer) -> &str {
    answer.result()["content"][0]["text"].as_str().expect("a text")
}

/// Sends a call from a task of its own.
pub fn spawn(call: Call) -> tokio::task::JoinHandle<Answer> {
    tokio::spawn(call.into_future())
}

/// Waits for what must not take for ever.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}
