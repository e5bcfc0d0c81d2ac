//! A client that answers questions: plays a call to its final answer, as each era does it.
//!
//! What is asked and answered does not depend on the carrier: a driver of another one needs [`Asked`], [`respond`] and
//! [`retry`].

use http::StatusCode;
use http::header::CONTENT_TYPE;
use mcp_transport::{InputResponse, Question, RequestContext, Revision};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client::{Answer, Client};
use super::request::{CAPABILITIES, Call, meta};
use super::session::{self, Session, accepted};

/// What a client declares that can answer everything.
pub fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}})
}

/// A question as its client reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The key in `inputRequests`; none where the question is a request of its own.
    pub key: Option<String>,
    pub method: String,
    pub params: Value,
}

impl Asked {
    /// A request of the server's own, or nothing where the message is none.
    pub fn request(message: &Value) -> Option<Self> {
        message.get("id")?;
        let method = message["method"].as_str()?.to_owned();
        assert_eq!(message["jsonrpc"], "2.0");
        assert!(message["params"].is_object(), "{message}");
        Some(Self { key: None, method, params: message["params"].clone() })
    }

    /// What it asks, as [`question`] wrote it.
    pub fn text(&self) -> &str {
        let text = if self.method == "elicitation/create" { "/message" } else { "/messages/0/content/text" };
        self.params.pointer(text).and_then(Value::as_str).unwrap_or_default()
    }

    /// The right answer that says this, whatever was asked.
    pub fn says(&self, text: &str) -> Value {
        match self.method.as_str() {
            "elicitation/create" => json!({"action": "accept", "content": {"text": text}}),
            "sampling/createMessage" => {
                json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m"})
            }
            "roots/list" => json!({"roots": [{"uri": text}]}),
            other => panic!("{other} is asked"),
        }
    }
}

/// A question that clients of this revision can answer: a form, or before there were any a sampling.
pub fn question(cx: &RequestContext, text: &str) -> Question {
    if cx.revision() >= Revision::V2025_06_18 { form(text) } else { sampling(text) }
}

pub fn form(text: &str) -> Question {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    Question::form(text, schema).expect("a question")
}

pub fn sampling(text: &str) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Question::sampling(json!({"messages": [message], "maxTokens": 10})).expect("a question")
}

/// What an answer of [`Asked::says`] says.
pub fn said(response: &InputResponse) -> String {
    #[derive(Deserialize)]
    struct Said {
        content: Text,
    }
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    #[derive(Deserialize)]
    struct Roots {
        roots: Vec<Root>,
    }
    #[derive(Deserialize)]
    struct Root {
        uri: String,
    }
    let roots = |Roots { roots }| roots.into_iter().map(|Root { uri }| uri).collect();
    response.parse().map(|Said { content }| content.text).or_else(|_| response.parse().map(roots)).expect("a text")
}

/// How a call ended, and what came before.
#[derive(Debug)]
pub struct Played {
    pub status: StatusCode,
    /// The response: a result or an error.
    pub response: Value,
    /// The texts of what was asked, by rounds; where questions are requests, each is its own.
    pub rounds: Vec<Vec<String>>,
    /// The notifications on the way.
    pub told: Vec<Value>,
}

impl Played {
    pub fn result(&self) -> &Value {
        self.response.get("result").unwrap_or_else(|| panic!("no result: {}", self.response))
    }

    /// The text of a tool's result.
    pub fn text(&self) -> &str {
        self.result()["content"][0]["text"].as_str().expect("a text")
    }
}

/// The response to a request of the server's own, where it is to be answered.
pub fn respond(request: &Value, answer: &mut impl FnMut(&Asked) -> Option<Value>) -> Option<Value> {
    let asked = Asked::request(request).unwrap_or_else(|| panic!("no request: {request}"));
    let result = answer(&asked)?;
    Some(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

/// The answers that a round of input asks for, by key.
pub fn retry(result: &Value, answer: &mut impl FnMut(&Asked) -> Option<Value>) -> Map<String, Value> {
    asked(result).iter().filter_map(|asked| Some((asked.key.clone()?, answer(asked)?))).collect()
}

/// The questions of a round of input.
pub fn asked(result: &Value) -> Vec<Asked> {
    assert_eq!(result["resultType"], "input_required");
    let requests = result.get("inputRequests").map(|requests| requests.as_object().expect("a map"));
    assert!(requests.is_none_or(|requests| !requests.is_empty()), "{result}");
    assert!(requests.is_some() || result["requestState"].is_string(), "{result}");
    let asked = |(key, request): (&String, &Value)| {
        let request = request.as_object().expect("a request");
        let method = request["method"].as_str().expect("a method").to_owned();
        assert!(request.keys().all(|key| key == "method" || key == "params"), "{request:?}");
        Asked { key: Some(key.clone()), method, params: request["params"].clone() }
    };
    requests.into_iter().flatten().map(asked).collect()
}

/// Opens a session whose client can answer everything.
pub async fn open(client: &Client, revision: Revision) -> Session {
    session::open_by(client, session::initialize_with(revision.as_str(), everything())).await
}

/// A request of 2026-07-28 whose client can answer everything.
pub fn call(method: &str, params: Value) -> Call {
    let mut call = Call::modern(method, params);
    call.set(&meta(CAPABILITIES), everything());
    call
}

/// Plays a call in a session: what is asked on its stream is answered by a POST.
pub async fn in_session(session: &Session, call: Call, mut answer: impl FnMut(&Asked) -> Option<Value>) -> Played {
    let mut stream = session.client.send(call).await;
    let (status, mut rounds, mut told) = (stream.status, Vec::new(), Vec::new());
    if stream.header(CONTENT_TYPE.as_str()) == "application/json" {
        return Played { status, response: stream.json().await, rounds, told };
    }
    loop {
        let message = stream.next_message().await.expect("the stream ends with its response");
        if let Some(asked) = Asked::request(&message) {
            rounds.push(vec![asked.text().to_owned()]);
            if let Some(response) = respond(&message, &mut answer) {
                accepted(session.client.send(session.post(response)).await).await;
            }
        } else if message.get("method").is_some() {
            told.push(message);
        } else {
            assert_eq!(stream.next_event().await, None, "nothing follows the response");
            return Played { status, response: message, rounds, told };
        }
    }
}

/// Plays a call of 2026-07-28: each round goes to the next of these servers.
pub async fn in_rounds(
    clients: &[Client],
    call: impl Fn() -> Call,
    mut answer: impl FnMut(&Asked) -> Option<Value>,
) -> Played {
    let (mut rounds, mut told) = (Vec::new(), Vec::new());
    let mut next = call();
    for turn in 0.. {
        let (status, mut messages) = finish(clients[turn % clients.len()].send(next.id(turn + 1)).await).await;
        let response = messages.pop().expect("a response");
        assert_eq!(response["id"], turn + 1);
        assert!(messages.iter().all(|message| message.get("id").is_none()), "no requests: {messages:?}");
        told.extend(messages);
        if response["result"]["resultType"] != "input_required" {
            return Played { status, response, rounds, told };
        }
        let result = &response["result"];
        rounds.push(asked(result).iter().map(|asked| asked.text().to_owned()).collect());
        next = call();
        next.set("/params/inputResponses", retry(result, &mut answer));
        if let Some(state) = result.get("requestState") {
            next.set("/params/requestState", state.clone());
        }
    }
    unreachable!("turns have no end");
}

/// All messages of an answer, be it JSON or a stream.
pub async fn finish(answer: Answer) -> (StatusCode, Vec<Value>) {
    let status = answer.status;
    if answer.header(CONTENT_TYPE.as_str()) == "application/json" {
        (status, vec![answer.json().await])
    } else {
        (status, answer.events().await)
    }
}
