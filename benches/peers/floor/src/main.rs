//! What no server can go below: hyper, the envelope parsed once, its params once, the answer serialised once.
//!
//! - `POST /mcp`: echoes a text, as a tool does.
//! - `POST /raw`: echoes the params as they came, without reading them.
//! - `POST /notify`: the same as an event stream, after one notification.
//! - `GET /mcp`: an event stream that says nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stage::{Arguments, CallResult};

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Answer<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Progress<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress<'a> {
    progress_token: &'a RawValue,
    progress: u32,
}

/// The body of a response.
enum Answering {
    Full(Option<Bytes>),
    Events(std::vec::IntoIter<Bytes>),
    Idle,
}

impl Body for Answering {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Self::Full(body) => body.take(),
            Self::Events(events) => events.next(),
            Self::Idle => return Poll::Pending,
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(body) => body.is_none(),
            Self::Events(events) => events.len() == 0,
            Self::Idle => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(Some(body)) => SizeHint::with_exact(body.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

fn main() {
    stage::serve(|| service_fn(answer));
}

async fn answer(request: Request<Incoming>) -> Result<Response<Answering>, hyper::Error> {
    let (parts, body) = request.into_parts();
    if parts.method == Method::GET {
        return Ok(respond(Answering::Idle, "text/event-stream"));
    }
    let body = body.collect().await?.to_bytes();
    let Envelope { id, params } = serde_json::from_slice(&body).expect("a request");
    Ok(match parts.uri.path() {
        "/raw" => json(&Answer { jsonrpc: "2.0", id, result: params }),
        "/notify" => notify(id, params),
        _ => {
            let params: Params<'_> = serde_json::from_str(params.get()).expect("params");
            json(&Answer { jsonrpc: "2.0", id, result: CallResult::echo(&params.arguments.text) })
        }
    })
}

fn json(answer: &impl Serialize) -> Response<Answering> {
    let body = serde_json::to_vec(answer).expect("JSON");
    respond(Answering::Full(Some(body.into())), "application/json")
}

fn notify(id: &RawValue, params: &RawValue) -> Response<Answering> {
    let params: Params<'_> = serde_json::from_str(params.get()).expect("params");
    let token = params.meta.and_then(|meta| meta.progress_token).expect("a token");
    let progress = Progress { progress_token: token, progress: 1 };
    let notification = Notification { jsonrpc: "2.0", method: "notifications/progress", params: progress };
    let answer = Answer { jsonrpc: "2.0", id, result: CallResult::echo(&params.arguments.text) };
    let events = vec![event(&notification), event(&answer)];
    respond(Answering::Events(events.into_iter()), "text/event-stream")
}

fn event(message: &impl Serialize) -> Bytes {
    let mut event = b"event: message\ndata: ".to_vec();
    serde_json::to_writer(&mut event, message).expect("JSON");
    event.extend_from_slice(b"\n\n");
    event.into()
}

fn respond(body: Answering, content_type: &'static str) -> Response<Answering> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
