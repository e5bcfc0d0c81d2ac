//! The other end of a byte stream that the transport serves.

use std::time::Duration;

use mcp_transport::{Era, Error, Revision, ServeEnd, StdioBuilder, StdioTransport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::handler::Script;
use super::request::{CAPABILITIES, CLAIM, CLIENT_INFO};

/// Bytes on their way in each direction, unless a test says otherwise.
const PIPE: usize = 1 << 20;

/// How long nothing comes before it is clear that nothing will. The clock is paused, so this costs nothing.
const SILENCE: Duration = Duration::from_secs(5);

/// A peer: what it writes is read by a transport, and the other way round.
pub struct Peer {
    /// Gone once the input has ended.
    to: Option<WriteHalf<DuplexStream>>,
    from: BufReader<ReadHalf<DuplexStream>>,
    pub transport: StdioTransport,
    serving: JoinHandle<Result<ServeEnd, Error>>,
    revision: Revision,
}

impl Peer {
    /// Serves a handler to a peer that has said nothing yet.
    pub fn silent(revision: Revision, script: Script) -> Self {
        Self::built(revision, script, PIPE, |builder| builder)
    }

    /// The same with a configuration, and with as many bytes on their way in each direction.
    pub fn built(
        revision: Revision,
        script: Script,
        pipe: usize,
        configure: impl FnOnce(StdioBuilder) -> StdioBuilder,
    ) -> Self {
        let (ours, theirs) = duplex(pipe);
        let (reader, writer) = split(theirs);
        let builder = configure(StdioTransport::builder(script).io(reader, writer));
        let transport = builder.build().expect("a transport");
        let served = transport.clone();
        let (from, to) = split(ours);
        Self {
            to: Some(to),
            from: BufReader::new(from),
            transport,
            serving: tokio::spawn(async move { served.serve().await }),
            revision,
        }
    }

    /// A peer that may ask: of a revision up to 2025-11-25 one that has shaken hands.
    pub async fn open(revision: Revision, script: Script) -> Self {
        Self::silent(revision, script).ready().await
    }

    /// Shakes hands where the revision wants that.
    pub async fn ready(mut self) -> Self {
        if self.revision.era() == Era::Legacy {
            let initialized = self.ask(initialize("hello", self.revision)).await;
            assert_eq!(initialized["protocolVersion"], self.revision.as_str());
            self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        }
        self
    }

    /// A request of the peer's revision.
    pub fn request(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        request(self.revision, id, method, params)
    }

    /// A notification of the peer's revision.
    pub fn notification(&self, method: &str, params: Value) -> Value {
        let mut message = self.request(0, method, params);
        message.as_object_mut().expect("an object").remove("id");
        message
    }

    pub async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n")).await;
    }

    /// Sends several messages in one write.
    pub async fn send_all(&mut self, messages: &[Value]) {
        self.write(messages.iter().map(|message| format!("{message}\n")).collect::<String>()).await;
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.to.as_mut().expect("an open stream").write_all(bytes.as_ref()).await.expect("a stream that is read");
    }

    /// The next line, which must be one message of JSON-RPC; `None` once the stream is closed.
    pub async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.from.read_line(&mut line).await.expect("UTF-8") == 0 {
            return None;
        }
        assert!(line.ends_with('\n') && !line.ends_with("\r\n"), "{line:?}");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        for message in message.as_array().map_or_else(|| std::slice::from_ref(&message), Vec::as_slice) {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
        }
        Some(message)
    }

    /// The next message, which must come.
    pub async fn heard(&mut self) -> Value {
        timeout(SILENCE, self.next()).await.expect("a message").expect("an open stream")
    }

    /// As many messages, whatever their order.
    pub async fn heard_all(&mut self, count: usize) -> Vec<Value> {
        let mut heard = Vec::new();
        for _ in 0..count {
            heard.push(self.heard().await);
        }
        heard
    }

    /// Makes sure that nothing comes.
    pub async fn silence(&mut self) {
        if let Ok(message) = timeout(SILENCE, self.next()).await {
            panic!("unexpected: {message:?}");
        }
    }

    /// Asks, and returns the result, which must be the next message.
    pub async fn ask(&mut self, request: Value) -> Value {
        let id = request["id"].clone();
        self.send(request).await;
        let mut answer = self.heard().await;
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].take()
    }

    /// Asks, and makes sure that the next message is the error of this code.
    pub async fn refused(&mut self, request: Value, code: i64) -> Value {
        let id = request.get("id").cloned();
        self.send(request).await;
        self.error(id, code).await
    }

    /// Makes sure that the next message is this error, and returns it.
    pub async fn error(&mut self, id: Option<Value>, code: i64) -> Value {
        let answer = self.heard().await;
        assert_eq!(answer.get("id"), id.as_ref(), "{answer}");
        assert_eq!(answer["error"]["code"], code, "{answer}");
        answer["error"].clone()
    }

    /// Ends the input.
    pub async fn finish(&mut self) {
        let mut to = self.to.take().expect("an open stream");
        to.shutdown().await.expect("an open stream");
    }

    /// Ends the input, and returns why serving ended and what was still said.
    pub async fn end(mut self) -> (ServeEnd, Vec<Value>) {
        self.finish().await;
        let mut said = Vec::new();
        while let Some(message) = self.next().await {
            said.push(message);
        }
        (self.served().await, said)
    }

    /// Why serving ended.
    pub async fn served(self) -> ServeEnd {
        self.serving.await.expect("no panic").expect("no error")
    }

    /// Goes away, with what is still to be read, and returns why serving ended.
    pub async fn leave(self) -> ServeEnd {
        let Self { to, from, serving, .. } = self;
        drop((to, from));
        serving.await.expect("no panic").expect("no error")
    }
}

/// A request of a revision: of 2026-07-28 with all that this one wants.
pub fn request(revision: Revision, id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut params = if params.is_null() { json!({}) } else { params };
    if revision.era() == Era::Modern {
        let meta = &mut params["_meta"];
        meta[CLAIM] = json!(revision.as_str());
        meta[CAPABILITIES] = json!({});
        meta[CLIENT_INFO] = json!({"name": "wire", "version": "1"});
    }
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// The request that shakes hands.
pub fn initialize(id: impl Into<Value>, revision: Revision) -> Value {
    let client_info = json!({"name": "wire", "version": "1"});
    let params = json!({"protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client_info});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "initialize", "params": params})
}
