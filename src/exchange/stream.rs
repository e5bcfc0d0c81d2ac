//! The reading end of an answer that became an event stream.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use super::call::Call;
use crate::cancel::CancelCause;
use crate::limits::NEVER;
use crate::protocol::sse;

/// The events of one answer, with comments while it is silent. Dropping it before its end cancels the call.
#[derive(Debug)]
pub(crate) struct Stream {
    call: Arc<Call>,
    keep_alive: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(crate) fn open(call: Arc<Call>) -> Self {
        call.server.lifecycle.stream_opened();
        call.server.observer.stream_opened(&call.observed());
        Self { call, keep_alive: None }
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.call.queue.poll_next(cx) {
            Poll::Ready(Some(event)) => {
                // Made anew at the next silence: a stream in full flow sets no timer.
                self.keep_alive = None;
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.poll_keep_alive(cx),
        }
    }

    /// Whether the answer has been read to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.call.queue.is_drained()
    }

    fn poll_keep_alive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let interval = self.call.server.limits.keep_alive;
        let timer = self.keep_alive.get_or_insert_with(|| Box::pin(sleep(jittered(interval))));
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.keep_alive = None;
        Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE)))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.is_done() {
            self.call.cancellation.cancel(CancelCause::Disconnected);
        }
        self.call.queue.abandon();
        self.call.server.lifecycle.stream_closed();
    }
}

/// Within a tenth either way, so that many streams opened at once do not all speak at once.
fn jittered(interval: Duration) -> Duration {
    let chance = RandomState::new().hash_one(0_u8) % 2048;
    interval.min(NEVER).mul_f64(0.9 + 0.2 * f64::from(u32::try_from(chance).unwrap_or_default()) / 2048.0)
}
