//! A client on a byte stream in process.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

use super::super::answering::{asked, input_required, next_round};
use super::super::fail;
use super::super::request::{Draft, object};
use super::super::session::initialize;
use super::Answering;
use crate::protocol::names::method;
use crate::protocol::revision::{Era, Revision};
use crate::stdio::{StdioBuilder, StdioTransport};

/// Bytes that may be under way in each direction.
const PIPE: usize = 64 << 10;

/// The client's end. Dropping it ends the transport.
pub(super) struct Peer {
    revision: Revision,
    capabilities: Value,
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<()>,
    next_id: u64,
}

impl Peer {
    /// Serves one end and, up to 2025-11-25, shakes hands at the other.
    pub(super) async fn open(
        builder: StdioBuilder,
        revision: Revision,
        capabilities: &Value,
    ) -> (Self, StdioTransport) {
        let (ours, theirs) = duplex(PIPE);
        let (reader, writer) = split(theirs);
        let transport = match builder.io(reader, writer).build() {
            Ok(transport) => transport,
            Err(error) => fail(error),
        };
        let served = transport.clone();
        let serving = tokio::spawn(async move {
            let _ = served.serve().await;
        });
        let (reader, writer) = split(ours);
        let reader = BufReader::new(reader);
        let mut peer = Self { revision, capabilities: capabilities.clone(), reader, writer, serving, next_id: 1 };
        if revision.era() == Era::Legacy {
            let params = initialize(revision, capabilities);
            let opened = peer.call(method::INITIALIZE, &params, &mut |_: &str, _: &Value| Value::Null).await;
            if opened.last().and_then(|response| response.get("result")).is_none() {
                fail(format_args!("initialize was answered with {opened:?}"));
            }
            peer.send(&json!({ "jsonrpc": "2.0", "method": method::INITIALIZED })).await;
        }
        (peer, transport)
    }

    /// Sends a request, answers what is asked on the way, and returns all messages up to its response.
    pub(super) async fn call(&mut self, method: &str, params: &Value, answer: &mut Answering<'_>) -> Vec<Value> {
        let draft = Draft {
            revision: self.revision,
            method,
            params: object(params),
            id: Some(self.number()),
            capabilities: &self.capabilities,
        };
        let Ok(mut message) = serde_json::from_slice::<Value>(draft.write().body()) else {
            fail("what is sent is no JSON");
        };
        let mut messages = Vec::new();
        loop {
            self.send(&message).await;
            self.read_until(&message, &mut messages, answer).await;
            let Some(result) = messages.last().and_then(input_required) else {
                return messages;
            };
            let number = self.next_id;
            message = next_round(message, number, result, &mut |method, params| answer(method, params));
            self.next_id += 1;
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(&mut self, method: &str, params: &Value) {
        let draft = Draft {
            revision: self.revision,
            method,
            params: object(params),
            id: None,
            capabilities: &self.capabilities,
        };
        let body = draft.write().into_body();
        self.write(&body).await;
        // Lines are read in order: once a request is answered that follows it, it was read.
        let harmless = if self.revision.era() == Era::Modern { method::DISCOVER } else { method::PING };
        self.call(harmless, &Value::Null, &mut |_: &str, _: &Value| Value::Null).await;
    }

    async fn read_until(&mut self, request: &Value, messages: &mut Vec<Value>, answer: &mut Answering<'_>) {
        loop {
            let message = self.read().await;
            let (id, question) = (message.get("id").cloned(), asked(&message));
            if let (Some(id), Some((method, params))) = (&id, question) {
                let result = answer(method, params);
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
            }
            let is_response = question.is_none();
            messages.push(message);
            if is_response {
                if id.as_ref() != request.get("id") {
                    fail(format_args!("the answer to {request} is one to {id:?}"));
                }
                return;
            }
        }
    }

    async fn read(&mut self) -> Value {
        let mut line = String::new();
        match self.reader.read_line(&mut line).await {
            Ok(0) => fail("the byte stream ended"),
            Ok(_) => {}
            Err(error) => fail(format_args!("the byte stream broke: {error}")),
        }
        serde_json::from_str(&line)
            .unwrap_or_else(|error| fail(format_args!("a line that is no JSON ({error}): {line}")))
    }

    async fn send(&mut self, message: &Value) {
        self.write(message.to_string().as_bytes()).await;
    }

    async fn write(&mut self, message: &[u8]) {
        let line = [message, b"\n"].concat();
        if let Err(error) = self.writer.write_all(&line).await {
            fail(format_args!("the byte stream broke: {error}"));
        }
    }

    fn number(&mut self) -> u64 {
        let number = self.next_id;
        self.next_id += 1;
        number
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
