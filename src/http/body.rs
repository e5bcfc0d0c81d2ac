//! The body of a response.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::general::GeneralStream;
use super::listen::ListenStream;
use crate::exchange::{AttachedStream, DetachedStream};

/// The body of a response: nothing, one JSON message, or an event stream.
///
/// Dropping an event stream before its end means that the client went away: the request is cancelled.
pub struct ResponseBody(Kind);

enum Kind {
    Empty,
    Full(Bytes),
    Attached(AttachedStream),
    Detached(Box<DetachedStream>),
    General(Box<GeneralStream>),
    Listen(Box<ListenStream>),
}

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self(Kind::Empty)
    }

    pub(crate) fn full(body: Bytes) -> Self {
        Self(Kind::Full(body))
    }

    pub(super) fn attached(stream: AttachedStream) -> Self {
        Self(Kind::Attached(stream))
    }

    pub(super) fn detached(stream: DetachedStream) -> Self {
        Self(Kind::Detached(Box::new(stream)))
    }

    pub(super) fn general(stream: GeneralStream) -> Self {
        Self(Kind::General(Box::new(stream)))
    }

    pub(super) fn listen(stream: ListenStream) -> Self {
        Self(Kind::Listen(Box::new(stream)))
    }
}

/// An empty one: what a layer in front needs to answer in the service's place, such as one that times out.
impl Default for ResponseBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = match &mut self.0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(body) => {
                let body = std::mem::take(body);
                self.0 = Kind::Empty;
                Poll::Ready(Some(body))
            }
            Kind::Attached(stream) => stream.poll_next(cx),
            Kind::Detached(stream) => stream.poll_next(cx),
            Kind::General(stream) => stream.poll_next(cx),
            Kind::Listen(stream) => stream.poll_next(cx),
        };
        event.map(|event| event.map(|event| Ok(Frame::data(event))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(_) => false,
            Kind::Attached(stream) => stream.is_done(),
            Kind::Detached(stream) => stream.is_done(),
            Kind::General(stream) => stream.is_done(),
            Kind::Listen(stream) => stream.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(body) => SizeHint::with_exact(u64::try_from(body.len()).unwrap_or(u64::MAX)),
            _ => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Empty => "empty",
            Kind::Full(_) => "full",
            _ => "stream",
        };
        f.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
