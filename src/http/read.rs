//! Reads a request's body, counting while it reads.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::request;
use http_body::Body;
use tokio::time::{Instant, Sleep, sleep_until};

use super::service::Shared;
use crate::admission::{Counted, Hold, UNCOUNTED, What};
use crate::limits::{after, from_now};
use crate::protocol::refusal::{Refusal, RefusalKind};

/// What has been read of a body.
#[derive(Debug, Default)]
pub(super) struct Reader {
    read: Read,
    /// What it takes of its caller's account. Most bodies are short and take nothing.
    hold: Option<Hold>,
    /// Made once the body has to be waited for.
    patience: Option<Patience>,
}

/// Most bodies come in one piece and need no copy.
#[derive(Debug, Default)]
enum Read {
    #[default]
    Nothing,
    Piece(Bytes),
    Pieces(BytesMut),
}

/// How long a body may still take.
#[derive(Debug)]
struct Patience {
    since: Instant,
    until: Pin<Box<Sleep>>,
}

/// A body may take as much time again for each part of this size.
const PART: usize = 1 << 20;

impl Reader {
    /// Reads on; ready with the whole body, or with why it is refused.
    pub(super) fn poll<B: Body<Data: Buf>>(
        &mut self,
        mut body: Pin<&mut B>,
        shared: &Shared,
        parts: &request::Parts,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, Refusal>> {
        let limit = shared.server.limits.body_bytes;
        // One that says beforehand that it is too long is not read at all.
        if usize::try_from(body.size_hint().lower()).map_or(true, |least| self.len().saturating_add(least) > limit) {
            return Poll::Ready(Err(Refusal::new(RefusalKind::BodyTooLarge)));
        }
        while !body.is_end_stream() {
            let Poll::Ready(frame) = body.as_mut().poll_frame(cx) else {
                ready!(self.poll_late(shared, cx));
                return Poll::Ready(Err(Refusal::new(RefusalKind::BodyTimeout)));
            };
            match frame {
                None => break,
                Some(Err(_)) => return Poll::Ready(Err(Refusal::new(RefusalKind::BodyAborted))),
                Some(Ok(frame)) => {
                    // Trailers say nothing to us.
                    let Ok(mut data) = frame.into_data() else {
                        continue;
                    };
                    if self.len().saturating_add(data.remaining()) > limit {
                        return Poll::Ready(Err(Refusal::new(RefusalKind::BodyTooLarge)));
                    }
                    self.count(data.remaining(), shared, parts)?;
                    let piece = data.copy_to_bytes(data.remaining());
                    self.push(piece);
                }
            }
        }
        let Self { read, hold, .. } = std::mem::take(self);
        Poll::Ready(Ok(Counted::bytes(read.whole(), hold)))
    }

    /// Counts what is about to be read.
    fn count(&mut self, bytes: usize, shared: &Shared, parts: &request::Parts) -> Result<(), Refusal> {
        let past = |bytes: usize| bytes.saturating_sub(UNCOUNTED);
        let more = past(self.len() + bytes) - past(self.len());
        match &mut self.hold {
            _ if more == 0 => {}
            Some(hold) => hold.grow(more)?,
            none => {
                let account = shared.account(parts, shared.principal(parts)?.as_ref())?;
                *none = Some(account.take(What::BodyBytes, more)?);
            }
        }
        Ok(())
    }

    /// Ready once the body has taken too long.
    fn poll_late(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<()> {
        let time = shared.server.limits.body_time;
        let parts = u32::try_from(self.len() / PART).unwrap_or(u32::MAX);
        let patience = self
            .patience
            .get_or_insert_with(|| Patience { since: Instant::now(), until: Box::pin(sleep_until(from_now(time))) });
        let until = after(patience.since, time.saturating_mul(parts.saturating_add(1)));
        if until != patience.until.deadline() {
            patience.until.as_mut().reset(until);
        }
        patience.until.as_mut().poll(cx)
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
}

impl Read {
    fn whole(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::Piece(piece) => piece,
            Self::Pieces(pieces) => pieces.freeze(),
        }
    }
}
