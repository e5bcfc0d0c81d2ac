//! A client's session of a revision up to 2025-11-25: opened by the handshake, and every message in it under the right
//! headers.

use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use mcp_transport::{Era, Revision};
use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::request::{Call, PROTOCOL_VERSION, SESSION_ID};
use super::sse::Frame;

/// The request that opens a session of `revision`.
pub fn initialize(revision: Revision) -> Call {
    initialize_with(revision.as_str(), json!({}))
}

/// The same for any version and client capabilities.
pub fn initialize_with(version: &str, capabilities: Value) -> Call {
    let client_info = json!({"name": "wire", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client_info});
    // No header yet: the version is what is being negotiated.
    Call::legacy(Revision::V2024_11_05, "initialize", params)
}

/// Opens a session and says that its client is ready.
pub async fn open(client: &Client, revision: Revision) -> Session {
    open_by(client, initialize(revision)).await
}

/// The same by an `initialize` of the test's own.
pub async fn open_by(client: &Client, initialize: Call) -> Session {
    let session = start_by(client, initialize).await;
    session.notify("notifications/initialized", Value::Null).await;
    session
}

/// Opens a session whose client has yet to say that it is ready.
pub async fn start(client: &Client, revision: Revision) -> Session {
    start_by(client, initialize(revision)).await
}

/// The same by an `initialize` of the test's own.
pub async fn start_by(client: &Client, initialize: Call) -> Session {
    let account = initialize.headers.get(ACCOUNT).map(|value| value.to_str().expect("a name").to_owned());
    let answer = client.send(initialize).await;
    let id = answer.header(SESSION_ID).to_owned();
    let initialized = answer.result().await;
    assert_ne!(id, "", "no session: {initialized}");
    let version = initialized["protocolVersion"].as_str().expect("a version");
    let revision = Revision::parse(version).expect("a revision of this crate");
    assert_eq!(revision.era(), Era::Legacy);
    Session { client: client.clone(), revision, id, account, initialized }
}

/// Who asks, where the service under test reads its principals from this header.
pub const ACCOUNT: &str = "x-account";

/// An open session.
#[derive(Clone, Debug)]
pub struct Session {
    pub client: Client,
    /// The negotiated revision.
    pub revision: Revision,
    pub id: String,
    /// What every message carries in [`ACCOUNT`], as `initialize` did.
    pub account: Option<String>,
    /// The result of `initialize`.
    pub initialized: Value,
}

impl Session {
    /// A request in this session. `params` may be `Null`.
    pub fn call(&self, method: &str, params: Value) -> Call {
        self.sign(Call::legacy(self.revision, method, params))
    }

    /// A notification in this session. `params` may be `Null`.
    pub fn notification(&self, method: &str, params: Value) -> Call {
        self.call(method, params).notification()
    }

    /// A POST of any JSON in this session: a batch, a response.
    pub fn post(&self, body: Value) -> Call {
        self.sign(self.versioned(Call::post(body)))
    }

    /// A GET for this session's general stream.
    pub fn get(&self) -> Call {
        self.sign(self.versioned(Call::get()))
    }

    /// A DELETE of this session.
    pub fn delete(&self) -> Call {
        self.sign(self.versioned(Call::bare(Method::DELETE)))
    }

    /// The cancellation of a request of this session, by its id.
    pub fn cancellation(&self, id: impl Into<Value>) -> Call {
        self.notification("notifications/cancelled", json!({"requestId": id.into(), "reason": "enough"}))
    }

    /// Sends a request and returns once the head of the answer is there.
    pub async fn request(&self, method: &str, params: Value) -> Answer {
        self.client.send(self.call(method, params)).await
    }

    /// Sends a request and returns its result, which must come as JSON.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        self.request(method, params).await.result().await
    }

    /// Sends a notification, which must be accepted.
    pub async fn notify(&self, method: &str, params: Value) {
        accepted(self.client.send(self.notification(method, params)).await).await;
    }

    /// Cancels a request of this session.
    pub async fn cancel(&self, id: impl Into<Value>) {
        accepted(self.client.send(self.cancellation(id)).await).await;
    }

    /// Opens the general stream, and reads the comment that it begins with.
    pub async fn listen(&self) -> Answer {
        let mut stream = self.client.send(self.get()).await;
        assert_eq!(stream.status, StatusCode::OK);
        assert!(matches!(stream.frame().await, Some(Frame::Comment(_))), "a comment comes first");
        stream
    }

    /// Deletes the session.
    pub async fn end(&self) {
        let answer = self.client.send(self.delete()).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(answer.text().await, "");
    }

    /// Whether the server still knows the session. Asking keeps it alive.
    pub async fn is_open(&self) -> bool {
        let answer = self.request("ping", Value::Null).await;
        match answer.status {
            StatusCode::OK => answer.result().await == json!({}),
            StatusCode::NOT_FOUND => false,
            other => panic!("{other} for a ping"),
        }
    }

    /// Puts a call made elsewhere into this session. Its version header is left alone.
    pub fn sign(&self, call: Call) -> Call {
        let call = call.header(SESSION_ID, &self.id);
        match &self.account {
            Some(account) => call.header(ACCOUNT, account),
            None => call,
        }
    }

    fn versioned(&self, call: Call) -> Call {
        let named = self.revision >= Revision::V2025_06_18;
        if named { call.header(PROTOCOL_VERSION, self.revision.as_str()) } else { call }
    }
}

/// Asserts that a message was taken and that there is nothing to say about it.
pub async fn accepted(answer: Answer) {
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "");
    assert_eq!(answer.text().await, "");
}
