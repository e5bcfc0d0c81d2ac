//! The messages of one stream on their way to the client: bounded, first in first out, nothing allocated until used.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::Semaphore;

/// A message counts at least this part of the queue, so that one number bounds both bytes and messages.
const MOST_MESSAGES: u32 = 256;

/// A bounded queue with one reader.
///
/// One permit is one byte. The answer goes past the bound: it is one message, and a handler that has finished cannot
/// wait.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: u32,
    room: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Bytes>,
    reader: Option<Waker>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Nothing more is queued; what is there may still be read.
    Ended,
}

impl Queue {
    pub(crate) fn new(capacity: u32) -> Self {
        let room = Semaphore::new(usize::try_from(capacity).unwrap_or(Semaphore::MAX_PERMITS));
        Self { capacity, room, state: Mutex::default() }
    }

    /// Queues a message, waiting for room. Dropped where the queue has ended, and where it is not wanted any more once
    /// its turn has come.
    pub(crate) async fn send(&self, message: Bytes, is_wanted: impl FnOnce() -> bool) {
        if let Ok(permits) = self.room.acquire_many(self.cost(&message)).await {
            // Asked under the lock: what is wanted may depend on what went before.
            let mut state = self.state();
            if state.phase == Phase::Open && is_wanted() {
                permits.forget();
                state.messages.push_back(message);
                wake(state);
            }
        }
    }

    /// Queues the answer, past the bound, and ends the queue.
    pub(crate) fn finish(&self, answer: Bytes) {
        let mut state = self.state();
        if state.phase == Phase::Open {
            state.messages.push_back(answer);
            state.phase = Phase::Ended;
        }
        wake(state);
        self.room.close();
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.phase = Phase::Ended;
        wake(state);
        self.room.close();
    }

    /// Ends the queue if nothing is in it, and tells whether it did.
    pub(crate) fn end_unused(&self) -> bool {
        let mut state = self.state();
        let is_unused = state.messages.is_empty();
        if is_unused {
            state.phase = Phase::Ended;
            drop(state);
            self.room.close();
        }
        is_unused
    }

    /// Gives up the reading side: what is queued is dropped, and so is whatever comes.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.messages = VecDeque::new();
        state.phase = Phase::Ended;
        wake(state);
        self.room.close();
    }

    /// Whether a message waits to be read; if none does, the reader is woken once one does.
    pub(crate) fn poll_filled(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state();
        if state.messages.is_empty() {
            state.watch(cx);
        }
        !state.messages.is_empty()
    }

    /// Whether the answer has been queued and everything has been read.
    pub(crate) fn is_drained(&self) -> bool {
        let state = self.state();
        state.phase != Phase::Open && state.messages.is_empty()
    }

    /// The next message; `None` after the last. For one reader.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        if let Some(message) = state.messages.pop_front() {
            drop(state);
            let cost = usize::try_from(self.cost(&message)).unwrap_or_default();
            // The answer took no permits, so it must give none back.
            let used = usize::try_from(self.capacity).unwrap_or_default().saturating_sub(self.room.available_permits());
            self.room.add_permits(cost.min(used));
            return Poll::Ready(Some(message));
        }
        if state.phase != Phase::Open {
            return Poll::Ready(None);
        }
        state.watch(cx);
        Poll::Pending
    }

    fn cost(&self, message: &Bytes) -> u32 {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        length.clamp(self.capacity / MOST_MESSAGES, self.capacity)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn watch(&mut self, cx: &Context<'_>) {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

/// Wakes the reader, after the lock is given back.
fn wake(mut state: MutexGuard<'_, State>) {
    let reader = state.reader.take();
    drop(state);
    if let Some(reader) = reader {
        reader.wake();
    }
}

#[cfg(test)]
mod tests;
