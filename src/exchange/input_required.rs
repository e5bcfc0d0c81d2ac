//! Rounds of input that a handler makes by hand: a result whose `resultType` is `input_required`.
//!
//! A client of 2026-07-28 gets the result, judged and with its state sealed. For an older one the transport plays the
//! rounds out: it asks the questions as requests and runs the handler again with the answers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ask::{self, Ask};
use super::call::Call;
use super::rounds::Round;
use super::{Failure, carried};
use crate::context::RequestContext;
use crate::handler::Answering;
use crate::mcp_error::McpError;
use crate::observer::Misuse;
use crate::protocol::revision::Era;
use crate::question::Question;
use crate::reply::Reply;
use crate::request::Request;

/// The `resultType` of such a result.
pub(super) const INPUT_REQUIRED: &str = "input_required";

/// What the client sent for this round of a request, or the transport in its place.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// The JSON text of the answers.
    pub(crate) responses: Option<Bytes>,
    /// The JSON text of the handler's own state.
    pub(crate) state: Option<Bytes>,
}

#[cfg(feature = "state")]
impl Input {
    /// What the client sent, with the state that was carried in the place of the one it kept.
    pub(super) fn carried(call: &Call, own: Option<&String>) -> Result<Self, Failure> {
        let responses = call.message.input_responses().map(Bytes::copy_from_slice);
        Ok(Self { responses, state: own.map(json).transpose()? })
    }
}

/// What a handler asks for by hand.
#[derive(Debug)]
pub(super) struct InputRequired {
    questions: Vec<(String, Question)>,
    pub(super) state: Option<String>,
}

/// Why it cannot be asked for.
#[derive(Debug)]
pub(super) enum Fault {
    Misuse(Misuse),
    Error(McpError),
}

impl InputRequired {
    /// Reads a result, and judges whether it may be asked of this client now.
    pub(super) fn read(call: &Call, reply: &Reply) -> Result<Self, Fault> {
        if !call.takes_input() {
            return Err(Fault::Misuse(Misuse::InputNotAllowed { method: call.message.method().to_owned() }));
        }
        let required =
            Self::parse(reply.json()).map_err(|reason| Fault::Misuse(Misuse::BadInputRequired { reason }))?;
        for (_, question) in &required.questions {
            ask::check(call, question).map_err(|error| Fault::Error(error.into()))?;
        }
        Ok(required)
    }

    fn parse(json: &[u8]) -> Result<Self, &'static str> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members<'a> {
            #[serde(borrow)]
            input_requests: Option<BTreeMap<String, Asked<'a>>>,
            request_state: Option<String>,
        }
        #[derive(Deserialize)]
        struct Asked<'a> {
            #[serde(borrow)]
            method: Cow<'a, str>,
            #[serde(borrow)]
            params: Option<&'a RawValue>,
        }
        let Members { input_requests, request_state } = serde_json::from_slice(json)
            .map_err(|_| "inputRequests is a map of {method, params}, and requestState a string")?;
        match &input_requests {
            None if request_state.is_none() => return Err("it needs inputRequests or a requestState"),
            Some(requests) if requests.is_empty() => return Err("inputRequests is empty"),
            _ => {}
        }
        let question = |(key, asked): (String, Asked<'_>)| {
            let question = match asked.params {
                Some(params) => Question::new(asked.method.into_owned(), params),
                None => Question::new(asked.method.into_owned(), serde_json::Map::new()),
            };
            question.map(|question| (key, question)).map_err(|_| "the params of an input request are an object")
        };
        let questions = input_requests.into_iter().flatten().map(question).collect::<Result<_, _>>()?;
        Ok(Self { questions, state: request_state })
    }
}

/// The result as a client of 2026-07-28 gets it.
pub(super) fn seal(call: &Call, reply: Reply) -> Result<Reply, Fault> {
    let required = InputRequired::read(call, &reply)?;
    let Some(sealed) = carried::seal_own(call, required.state).transpose()? else {
        return Ok(reply);
    };
    let mut members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_slice(reply.json()).map_err(|error| Fault::Error(McpError::internal(error)))?;
    let sealed = serde_json::value::to_raw_value(&sealed).map_err(|error| Fault::Error(McpError::internal(error)))?;
    members.insert("requestState".to_owned(), sealed);
    Reply::of(members).map_err(Fault::Error)
}

/// The result that asks the questions of a round.
pub(super) fn of_round(call: &Call, round: &Round) -> Result<Reply, Fault> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Result<'a> {
        result_type: &'static str,
        input_requests: BTreeMap<&'a str, Asked<'a>>,
        request_state: String,
    }
    #[derive(Serialize)]
    struct Asked<'a> {
        method: &'a str,
        params: &'a RawValue,
    }
    let request_state = carried::seal(call, &round.carried)?;
    let asked = round.questions.iter().map(|(key, question)| {
        let asked = Asked { method: question.method(), params: question.params() };
        (key.as_str(), asked)
    });
    let input_requests = asked.collect();
    Reply::of(Result { result_type: INPUT_REQUIRED, input_requests, request_state }).map_err(Fault::Error)
}

/// What comes after a handler's answer.
pub(super) enum Played {
    /// Nothing: it is the answer.
    Over(Result<Reply, Failure>),
    /// The handler again, once its client has answered.
    Next(Answering),
}

/// Plays a round out for a client up to 2025-11-25, where the handler asks for one.
pub(super) fn play(call: &Arc<Call>, answer: Result<Reply, Failure>) -> Played {
    let reply = match answer {
        Ok(reply) if call.era() == Era::Legacy && reply.result_type().as_deref() == Some(INPUT_REQUIRED) => reply,
        answer => return Played::Over(answer),
    };
    let most = call.server.limits.rounds;
    let required = if call.requests.next_round() > most {
        Err(Fault::Misuse(Misuse::TooManyRounds { method: call.message.method().to_owned(), most }))
    } else {
        InputRequired::read(call, &reply)
    };
    match required {
        Ok(required) => Played::Next(Box::pin(round(Arc::clone(call), required))),
        Err(Fault::Error(error)) => Played::Over(Err(Failure::Error(error))),
        Err(Fault::Misuse(misuse)) => Played::Over(Err(Failure::Misused(misuse))),
    }
}

/// Asks as requests, and runs the handler again.
async fn round(call: Arc<Call>, required: InputRequired) -> Result<Reply, Failure> {
    let asked = required.questions.into_iter().map(|(key, question)| {
        let ask = Ask::new(&call, &key, question);
        async move { ask.await.map(|response| (key, response)) }
    });
    let answered = try_join_all(asked).await.map_err(|error| Failure::Error(error.into()))?;
    let responses: BTreeMap<&str, &RawValue> =
        answered.iter().map(|(key, response)| (key.as_str(), response.raw())).collect();
    let input = Input { responses: Some(json(&responses)?), state: required.state.as_ref().map(json).transpose()? };
    let cx = RequestContext::with_input(Arc::clone(&call), input);
    Arc::clone(&call.server.handler).request(Request::new(Arc::clone(&call)), cx).await
}

fn json(value: &impl Serialize) -> Result<Bytes, Failure> {
    let json = serde_json::to_vec(value).map_err(|error| Failure::Error(McpError::internal(error)))?;
    Ok(json.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<(Vec<String>, Option<String>), &'static str> {
        let required = InputRequired::parse(json.as_bytes())?;
        let of =
            |(key, question): &(String, Question)| format!("{key}: {} {}", question.method(), question.params().get());
        Ok((required.questions.iter().map(of).collect(), required.state))
    }

    #[test]
    fn it_needs_a_question_or_a_state() {
        let question = r#"{"inputRequests":{"a":{"method":"roots/list"},"b":{"method":"x","params":{"c":[1, 2]}}}}"#;
        assert_eq!(parse(question), Ok((vec!["a: roots/list {}".to_owned(), r#"b: x {"c":[1, 2]}"#.to_owned()], None)));
        assert_eq!(parse(r#"{"requestState":"s"}"#), Ok((vec![], Some("s".to_owned()))));
        assert_eq!(parse("{}"), Err("it needs inputRequests or a requestState"));
        assert_eq!(parse(r#"{"inputRequests":null}"#), Err("it needs inputRequests or a requestState"));
        assert_eq!(parse(r#"{"inputRequests":{},"requestState":"s"}"#), Err("inputRequests is empty"));
        for json in [
            r#"{"inputRequests":[]}"#,
            r#"{"inputRequests":{"a":{}}}"#,
            r#"{"inputRequests":{"a":7}}"#,
            r#"{"requestState":7}"#,
        ] {
            assert_eq!(parse(json), Err("inputRequests is a map of {method, params}, and requestState a string"));
        }
        let params = r#"{"inputRequests":{"a":{"method":"x","params":7}}}"#;
        assert_eq!(parse(params), Err("the params of an input request are an object"));
    }
}
