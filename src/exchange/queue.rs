//! The messages of one stream on their way to the client: bounded, first in first out, nothing allocated until used.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Semaphore;

use crate::protocol::sse::Frame;

/// A message counts at least this part of the queue, so that one number bounds both bytes and messages.
const MOST_MESSAGES: u32 = 256;

/// A bounded queue with one reader: the messages that handlers send, and after them their answers.
///
/// One permit is one byte. Answers go past the bound: there is one for each request, and a handler that has finished
/// cannot wait.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: u32,
    room: Semaphore,
    state: Mutex<State>,
}

/// An answer, and the status it has for as long as nothing has been sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) frame: Frame,
}

/// Answers in order. Most often there is one, which allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    first: Option<Queued>,
    rest: VecDeque<Queued>,
}

#[derive(Debug)]
struct Queued {
    reply: Reply,
    /// How many messages came before it.
    after: u64,
}

impl Answers {
    fn push(&mut self, queued: Queued) {
        if self.is_empty() {
            self.first = Some(queued);
        } else {
            self.rest.push_back(queued);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Reply> {
        self.first.take().or_else(|| self.rest.pop_front()).map(|queued| queued.reply)
    }

    fn front(&self) -> Option<&Queued> {
        self.first.as_ref().or_else(|| self.rest.front())
    }

    /// Whether the next answer's turn has come, that many messages having been read.
    fn is_due(&self, read: u64) -> bool {
        self.front().is_some_and(|queued| queued.after <= read)
    }

    fn is_empty(&self) -> bool {
        self.front().is_none()
    }
}

/// What a reader that has not begun to read has before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// A message, and perhaps answers.
    Messages,
    /// Answers, if any, and nothing else for ever.
    Answers,
}

#[derive(Debug)]
struct Message {
    event: Bytes,
    /// The permits to give back once it is read.
    cost: u32,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Message>,
    /// How many messages have been read.
    read: u64,
    answers: Answers,
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
    /// its turn has come. Whether it was queued.
    pub(crate) async fn send(&self, event: Bytes, is_wanted: impl FnOnce() -> bool) -> bool {
        let cost = self.cost(&event);
        let Ok(permits) = self.room.acquire_many(cost).await else {
            return false;
        };
        // Asked under the lock: what is wanted may depend on what went before.
        let mut state = self.state();
        let is_queued = state.phase == Phase::Open && is_wanted();
        if is_queued {
            permits.forget();
            state.messages.push_back(Message { event, cost });
            wake(state);
        }
        is_queued
    }

    /// Queues a message past the bound: one that takes back what was sent before, and cannot wait.
    pub(crate) fn push(&self, event: Bytes) {
        let mut state = self.state();
        if state.phase == Phase::Open {
            state.messages.push_back(Message { event, cost: 0 });
            wake(state);
        }
    }

    /// Queues an answer, past the bound. It keeps its place among the messages: those of another call of its batch must
    /// not hold it back.
    pub(crate) fn answer(&self, reply: Reply) {
        let mut state = self.state();
        state.answer(reply);
        wake(state);
    }

    /// Queues the last answer, past the bound, and ends the queue.
    pub(crate) fn finish(&self, reply: Reply) {
        let mut state = self.state();
        state.answer(reply);
        state.phase = Phase::Ended;
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

    /// Gives up the reading side: what is queued is dropped, and so is whatever comes.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        state.messages = VecDeque::new();
        state.answers = Answers::default();
        state.phase = Phase::Ended;
        wake(state);
        self.room.close();
    }

    /// Tells what lies before a reader that has not begun to read.
    pub(crate) fn poll_outlook(&self, cx: &Context<'_>) -> Poll<Outlook> {
        let mut state = self.state();
        if !state.messages.is_empty() {
            return Poll::Ready(Outlook::Messages);
        }
        if state.phase == Phase::Ended {
            return Poll::Ready(Outlook::Answers);
        }
        state.watch(cx);
        Poll::Pending
    }

    /// The status of the first answer.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.state().answers.front().map(|queued| queued.reply.status)
    }

    /// Takes the answers, for a reader that wants no events.
    pub(crate) fn take_answers(&self) -> Answers {
        std::mem::take(&mut self.state().answers)
    }

    /// Whether the queue has ended and everything has been read.
    pub(crate) fn is_drained(&self) -> bool {
        let state = self.state();
        state.phase == Phase::Ended && state.messages.is_empty() && state.answers.is_empty()
    }

    /// The next event; `None` after the last. For one reader.
    pub(crate) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        if state.answers.is_due(state.read) {
            return Poll::Ready(state.answers.pop().map(|answer| answer.frame.event()));
        }
        if let Some(Message { event, cost }) = state.messages.pop_front() {
            state.read += 1;
            drop(state);
            self.room.add_permits(usize::try_from(cost).unwrap_or_default());
            return Poll::Ready(Some(event));
        }
        if state.phase == Phase::Ended {
            return Poll::Ready(None);
        }
        state.watch(cx);
        Poll::Pending
    }

    fn cost(&self, message: &Bytes) -> u32 {
        cost(message, self.capacity)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn answer(&mut self, reply: Reply) {
        if self.phase == Phase::Open {
            let after = self.read + u64::try_from(self.messages.len()).unwrap_or_default();
            self.answers.push(Queued { reply, after });
        }
    }

    fn watch(&mut self, cx: &Context<'_>) {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

/// What a message takes of a queue.
pub(super) fn cost(message: &Bytes, capacity: u32) -> u32 {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    length.clamp(capacity / MOST_MESSAGES, capacity)
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
