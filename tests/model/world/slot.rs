//! A client's end of one connection: polled by hand, so that it reads when and as much as the script says.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use mcp_transport::{ResponseBody, StreamableHttpService};

type Answering = Pin<Box<dyn Future<Output = Response<ResponseBody>>>>;

pub enum Slot {
    /// No head yet.
    Waiting(Answering),
    /// An event stream.
    Open(Pin<Box<ResponseBody>>),
    Gone,
}

/// What came of a look.
pub enum Looked {
    Nothing,
    /// An answer that is no stream.
    Whole(StatusCode, Bytes),
    /// A stream began.
    Began,
    /// The bytes of some events.
    Some(Bytes),
    Ended,
}

impl Slot {
    pub fn send(service: &StreamableHttpService, request: Request<Bytes>) -> Self {
        let service = service.clone();
        Self::Waiting(Box::pin(async move { service.handle(request.map(Full::new)).await }))
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// Looks once.
    pub fn look(&mut self) -> Looked {
        let mut cx = Context::from_waker(Waker::noop());
        match self {
            Self::Gone => Looked::Nothing,
            Self::Waiting(answering) => match answering.as_mut().poll(&mut cx) {
                Poll::Pending => Looked::Nothing,
                Poll::Ready(answer) => self.begin(answer),
            },
            Self::Open(body) => match frame(body, &mut cx) {
                Poll::Pending => Looked::Nothing,
                Poll::Ready(Some(bytes)) => Looked::Some(bytes),
                Poll::Ready(None) => {
                    *self = Self::Gone;
                    Looked::Ended
                }
            },
        }
    }

    fn begin(&mut self, answer: Response<ResponseBody>) -> Looked {
        let is_stream = answer.headers().get("content-type").is_some_and(|form| form == "text/event-stream");
        let (status, mut body) = (answer.status(), Box::pin(answer.into_body()));
        if is_stream {
            *self = Self::Open(body);
            return Looked::Began;
        }
        *self = Self::Gone;
        let mut cx = Context::from_waker(Waker::noop());
        let mut whole = Vec::new();
        while let Poll::Ready(Some(bytes)) = frame(&mut body, &mut cx) {
            whole.extend_from_slice(&bytes);
        }
        Looked::Whole(status, whole.into())
    }
}

fn frame(body: &mut Pin<Box<ResponseBody>>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
    body.as_mut().poll_frame(cx).map(|frame| {
        frame.map(|frame: Result<_, Infallible>| {
            let Ok(frame) = frame;
            frame.into_data().unwrap_or_default()
        })
    })
}
