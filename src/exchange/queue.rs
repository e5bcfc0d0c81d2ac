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
    /// The reader is gone.
    Abandoned,
}

impl Queue {
    pub(crate) fn new(capacity: u32) -> Self {
        let room = Semaphore::new(usize::try_from(capacity).unwrap_or(Semaphore::MAX_PERMITS));
        Self { capacity, room, state: Mutex::default() }
    }

    /// Queues a message, waiting for room. A message to an ended queue is dropped.
    pub(crate) async fn send(&self, message: Bytes) {
        if let Ok(permits) = self.room.acquire_many(self.cost(&message)).await {
            permits.forget();
            self.put(message);
        }
    }

    /// Queues the answer, past the bound, and ends the queue.
    pub(crate) fn finish(&self, answer: Bytes) {
        self.put(answer);
        self.close(Phase::Ended);
    }

    /// Gives up the reading side: what is queued is dropped, and so is whatever comes.
    pub(crate) fn abandon(&self) {
        self.close(Phase::Abandoned);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
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

    fn put(&self, message: Bytes) {
        let mut state = self.state();
        if state.phase == Phase::Open {
            state.messages.push_back(message);
            wake(state);
        }
    }

    fn close(&self, phase: Phase) {
        self.room.close();
        let mut state = self.state();
        if state.phase != Phase::Abandoned {
            state.phase = phase;
        }
        if phase == Phase::Abandoned {
            state.messages = VecDeque::new();
        }
        wake(state);
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
