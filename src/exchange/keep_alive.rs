//! Comments that keep a silent event stream alive.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use crate::limits::NEVER;
use crate::protocol::sse;

/// The timer of one stream. None is set while the stream is in full flow.
#[derive(Debug, Default)]
pub(crate) struct KeepAlive {
    timer: Option<Pin<Box<Sleep>>>,
}

impl KeepAlive {
    /// Something was sent: the silence begins anew.
    pub(crate) fn restart(&mut self) {
        self.timer = None;
    }

    /// The next comment, once the stream has been silent for as long.
    pub(crate) fn poll(&mut self, interval: Duration, cx: &mut Context<'_>) -> Poll<Bytes> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(jittered(interval))));
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.restart();
        Poll::Ready(Bytes::from_static(sse::KEEP_ALIVE))
    }
}

/// Within a tenth either way, so that many streams opened at once do not all speak at once.
fn jittered(interval: Duration) -> Duration {
    let chance = RandomState::new().hash_one(0_u8) % 2048;
    interval.min(NEVER).mul_f64(0.9 + 0.2 * f64::from(u32::try_from(chance).unwrap_or_default()) / 2048.0)
}
