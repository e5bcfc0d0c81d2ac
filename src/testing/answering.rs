//! A call whose client answers what it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::client::{Call, Serve};
use super::fail;

/// More rounds than any server asks for that keeps to a limit.
const MOST_ROUNDS: usize = 100;

impl Call {
    /// Sends it, and answers what the server asks on the way: each question's method and params are given to `answer`,
    /// which returns the result of a client.
    ///
    /// In a session (up to 2025-11-25) it answers the requests on this call's own stream, by a POST each; on 2026-07-28
    /// it sends the request again, round by round. [`messages`](Answer::messages) holds what came in all rounds, the
    /// questions too.
    ///
    /// ```
    /// # use mcp_transport::{Capabilities, McpError, McpHandler, Question, Reply, Request, RequestContext, ServerInfo};
    /// # use mcp_transport::StreamableHttpService;
    /// # struct Deploy;
    /// # impl McpHandler for Deploy {
    /// #     fn server_info(&self) -> ServerInfo { ServerInfo::new("deploy", "1") }
    /// #     fn capabilities(&self) -> Capabilities { Capabilities::new() }
    /// #     async fn request(&self, _: Request, cx: RequestContext) -> Result<Reply, McpError> {
    /// #         let answer = cx.ask("sure", Question::form("Sure?", json!({ "type": "object" }))?).await?;
    /// #         let text = format!("{:?}", answer.action());
    /// #         Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
    /// #     }
    /// # }
    /// use mcp_transport::Revision;
    /// use mcp_transport::testing::Client;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let service = StreamableHttpService::new(Deploy);
    /// let client = Client::new(service).capabilities(json!({ "elicitation": {} }));
    /// let call = client.call(Revision::V2026_07_28, "tools/call", json!({ "name": "deploy" }));
    /// let answer = call
    ///     .answering(|method, params| {
    ///         assert_eq!((method, &params["message"]), ("elicitation/create", &json!("Sure?")));
    ///         json!({ "action": "decline" })
    ///     })
    ///     .await;
    /// assert_eq!(answer.result()["content"][0]["text"], "Some(Decline)");
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the server does not take an answer, or asks for more than 100 rounds.
    pub async fn answering(self, mut answer: impl FnMut(&str, &Value) -> Value) -> Answer {
        let mut messages = Vec::new();
        let mut next = self;
        for _ in 0..MOST_ROUNDS {
            let again = Again::of(&next);
            let mut stream = next.stream().await;
            while let Some(message) = stream.next().await {
                if let (Some(id), Some((method, params))) = (message.get("id"), asked(&message)) {
                    again.respond(id, answer(method, params)).await;
                }
                messages.push(message);
            }
            match messages.last().and_then(input_required) {
                Some(result) => next = again.round(result, &mut answer),
                None => {
                    let mut whole = stream.finish().await;
                    whole.messages = messages;
                    return whole;
                }
            }
        }
        fail(format_args!("more than {MOST_ROUNDS} rounds"))
    }
}

/// What it takes to send more in the name of a call.
struct Again {
    service: Arc<Serve>,
    next_id: Arc<AtomicU64>,
    request: http::Request<Bytes>,
}

impl Again {
    fn of(Call { service, next_id, request }: &Call) -> Self {
        Self { service: Arc::clone(service), next_id: Arc::clone(next_id), request: request.clone() }
    }

    /// The same request with another message.
    fn with(&self, message: &Value) -> Call {
        let request = self.request.clone().map(|_| Bytes::from(message.to_string()));
        Call { service: Arc::clone(&self.service), next_id: Arc::clone(&self.next_id), request }
    }

    async fn respond(&self, id: &Value, result: Value) {
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let taken = self.with(&response).await;
        if taken.status != StatusCode::ACCEPTED {
            fail(format_args!("the answer to {id} was not taken: {taken}"));
        }
    }

    /// The request of the next round.
    fn round(&self, result: &Value, answer: &mut impl FnMut(&str, &Value) -> Value) -> Call {
        let Ok(sent) = serde_json::from_slice::<Value>(self.request.body()) else {
            fail("what was sent is no JSON");
        };
        self.with(&next_round(sent, self.next_id.fetch_add(1, Ordering::Relaxed), result, answer))
    }
}

/// The result of a response that asks for input first.
pub(super) fn input_required(response: &Value) -> Option<&Value> {
    response.get("result").filter(|result| result.get("resultType").is_some_and(|kind| kind == "input_required"))
}

/// The request of the next round.
pub(super) fn next_round(
    mut message: Value,
    number: u64,
    result: &Value,
    answer: &mut impl FnMut(&str, &Value) -> Value,
) -> Value {
    let requests = result.get("inputRequests").and_then(Value::as_object).into_iter().flatten();
    let answers: Map<_, _> = requests
        .filter_map(|(key, request)| asked(request).map(|(method, params)| (key.clone(), answer(method, params))))
        .collect();
    if let Some(id) = message.get_mut("id") {
        *id = number.into();
    }
    if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) {
        params.insert("inputResponses".to_owned(), answers.into());
        params.remove("requestState");
        params.extend(result.get("requestState").map(|state| ("requestState".to_owned(), state.clone())));
    }
    message
}

/// The method and the params of a request.
pub(super) fn asked(message: &Value) -> Option<(&str, &Value)> {
    Some((message.get("method")?.as_str()?, message.get("params").unwrap_or(&Value::Null)))
}
