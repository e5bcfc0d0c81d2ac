//! The body of a response that may be the layer's own.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::http::ResponseBody;

pin_project! {
    /// The body of a response of an [`AuthService`](super::AuthService): the layer's own, or that of the service behind
    /// it.
    #[derive(Debug)]
    pub struct AuthBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = KindProjection]
    enum Kind<B> {
        Own { body: ResponseBody },
        Inner { #[pin] body: B },
    }
}

impl<B> AuthBody<B> {
    pub(super) fn own(body: ResponseBody) -> Self {
        Self { kind: Kind::Own { body } }
    }

    pub(super) fn inner(body: B) -> Self {
        Self { kind: Kind::Inner { body } }
    }
}

impl<B: Body<Data = Bytes>> Body for AuthBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjection::Own { body } => {
                Pin::new(body).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(|never| match never {})))
            }
            KindProjection::Inner { body } => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Own { body } => body.is_end_stream(),
            Kind::Inner { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own { body } => body.size_hint(),
            Kind::Inner { body } => body.size_hint(),
        }
    }
}
