//! Reads a request's body, counting while it reads.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;

use crate::protocol::refusal::RefusalKind;

/// What has been read of a body.
#[derive(Debug, Default)]
pub(super) struct Reader {
    read: Read,
}

/// Most bodies come in one piece and need no copy.
#[derive(Debug, Default)]
enum Read {
    #[default]
    Nothing,
    Piece(Bytes),
    Pieces(BytesMut),
}

impl Reader {
    /// Reads on; ready with the whole body, or with why it is refused.
    pub(super) fn poll<B: Body<Data: Buf>>(
        &mut self,
        mut body: Pin<&mut B>,
        limit: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, RefusalKind>> {
        // One that says beforehand that it is too long is not read at all.
        if usize::try_from(body.size_hint().lower()).map_or(true, |least| self.len().saturating_add(least) > limit) {
            return Poll::Ready(Err(RefusalKind::BodyTooLarge));
        }
        while !body.is_end_stream() {
            match std::task::ready!(body.as_mut().poll_frame(cx)) {
                None => break,
                Some(Err(_)) => return Poll::Ready(Err(RefusalKind::BodyAborted)),
                Some(Ok(frame)) => {
                    // Trailers say nothing to us.
                    let Ok(mut data) = frame.into_data() else {
                        continue;
                    };
                    if self.len().saturating_add(data.remaining()) > limit {
                        return Poll::Ready(Err(RefusalKind::BodyTooLarge));
                    }
                    let piece = data.copy_to_bytes(data.remaining());
                    self.push(piece);
                }
            }
        }
        Poll::Ready(Ok(std::mem::take(self).whole()))
    }

    fn len(&self) -> usize {
        match &self.read {
            Read::Nothing => 0,
            Read::Piece(piece) => piece.len(),
            Read::Pieces(pieces) => pieces.len(),
        }
    }

    fn push(&mut self, piece: Bytes) {
        self.read = match std::mem::take(&mut self.read) {
            Read::Nothing => Read::Piece(piece),
            Read::Piece(first) => {
                let mut pieces = BytesMut::with_capacity(2 * (first.len() + piece.len()));
                pieces.extend_from_slice(&first);
                pieces.extend_from_slice(&piece);
                Read::Pieces(pieces)
            }
            Read::Pieces(mut pieces) => {
                pieces.extend_from_slice(&piece);
                Read::Pieces(pieces)
            }
        };
    }

    fn whole(self) -> Bytes {
        match self.read {
            Read::Nothing => Bytes::new(),
            Read::Piece(piece) => piece,
            Read::Pieces(pieces) => pieces.freeze(),
        }
    }
}
