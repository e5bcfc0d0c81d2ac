//! What waits in a queue.

use std::collections::VecDeque;

use bytes::Bytes;
use http::StatusCode;

use crate::protocol::sse::Frame;

/// An answer, and the status it has for as long as nothing has been sent.
#[derive(Debug)]
pub(crate) struct AnswerFrame {
    pub(crate) status: StatusCode,
    pub(crate) frame: Frame,
}

/// Answers in order. Most often there is one, which allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    first: Option<Queued>,
    rest: VecDeque<Queued>,
    /// Of those that wait behind messages: any other leaves at once.
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct Queued {
    pub(super) answer: AnswerFrame,
    /// How many messages came before it.
    pub(super) after: u64,
    /// What it adds to the bytes that wait.
    pub(super) bytes: usize,
}

impl Answers {
    pub(super) fn push(&mut self, queued: Queued) {
        self.bytes += queued.bytes;
        if self.is_empty() {
            self.first = Some(queued);
        } else {
            self.rest.push_back(queued);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<AnswerFrame> {
        let queued = self.first.take().or_else(|| self.rest.pop_front())?;
        self.bytes -= queued.bytes;
        Some(queued.answer)
    }

    pub(super) fn front(&self) -> Option<&Queued> {
        self.first.as_ref().or_else(|| self.rest.front())
    }

    /// Whether the next answer's turn has come, that many messages having been read.
    pub(super) fn is_due(&self, read: u64) -> bool {
        self.front().is_some_and(|queued| queued.after <= read)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.front().is_none()
    }
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) event: Bytes,
    /// The permits to give back once it is read.
    pub(super) cost: u32,
}

/// Messages in order, and how many bytes they have.
#[derive(Debug, Default)]
pub(super) struct Messages {
    queue: VecDeque<Message>,
    pub(super) bytes: usize,
}

impl Messages {
    pub(super) fn push(&mut self, event: Bytes, cost: u32) {
        self.bytes += event.len();
        self.queue.push_back(Message { event, cost });
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.queue.pop_front()?;
        self.bytes -= message.event.len();
        Some(message)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The permits that all of them hold.
    pub(super) fn cost(&self) -> u32 {
        self.queue.iter().map(|message| message.cost).sum()
    }
}
