//! The messages of one stream on their way to the client: bounded, first in first out, nothing allocated until used.

mod waiting;

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Semaphore;

pub(crate) use self::waiting::{AnswerFrame, Answers};
use self::waiting::{Message, Messages, Queued};
use super::{Found, Log, Record, Unresumable};
use crate::admission::{Account, Gauge};
use crate::sync::lock;
use crate::turn::Turn;

/// A message counts at least this part of the queue, so that one number bounds both bytes and messages.
const MOST_MESSAGES: u32 = 256;

/// A bounded queue with one reader: the messages that handlers send, and after them their answers.
///
/// One permit is one byte. Answers go past the bound: there is one for each request, and a handler that has finished
/// cannot wait.
///
/// Once it is [recorded](Self::record), what is queued is kept in its session's log as well, and outlives the reader:
/// while there is none nobody waits, and another may take up where that one left.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: u32,
    room: Semaphore,
    gauge: Gauge,
    state: Mutex<State>,
}

/// What a reader that has not begun to read has before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// A message, and perhaps answers; or the end of the connection, but not of the stream.
    Messages,
    /// Answers, if any, and nothing else for ever.
    Answers,
}

#[derive(Debug, Default)]
struct State {
    messages: Messages,
    /// What of them and of the answers the gauge shows.
    shown: usize,
    /// How many messages have been read.
    read: u64,
    /// Empty once it is recorded: then they are messages.
    answers: Answers,
    /// Whether there ever was an answer: those of requests that their client cancelled are withheld.
    is_answered: bool,
    reader: Option<Waker>,
    /// Whose turn it is to read.
    turn: Turn,
    presence: Presence,
    phase: Phase,
    /// How long the client is to wait, where it is let go before there is a stream.
    retry: Option<Duration>,
    record: Option<Record>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Reading,
    /// The reader goes once it has read what is queued.
    Leaving,
    /// There is none, but there may be one again.
    Away,
}

/// Whether a message has gone to the reader, who gives its room back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    ByReader,
    ByRecord,
}

/// How a stream begins: with an event for its id alone or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Plain,
    Marked,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Nothing more is queued; what is there may still be read.
    Ended,
}

impl Queue {
    /// A queue whose bytes count for nobody.
    pub(crate) fn new(capacity: u32) -> Self {
        Self::with(capacity, Gauge::none())
    }

    /// A queue whose bytes count for a caller.
    pub(crate) fn counted(capacity: u32, account: &Account) -> Self {
        Self::with(capacity, Gauge::of(account))
    }

    fn with(capacity: u32, gauge: Gauge) -> Self {
        let room = Semaphore::new(usize::try_from(capacity).unwrap_or(Semaphore::MAX_PERMITS));
        Self { capacity, room, gauge, state: Mutex::default() }
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
            let taken = state.queue(event, cost);
            self.show(&mut state);
            wake(state);
            if taken == Taken::ByReader {
                permits.forget();
            }
        }
        is_queued
    }

    /// Queues a message past the bound: one that takes back what was sent before, and cannot wait.
    pub(crate) fn push(&self, event: &Bytes) {
        let mut state = self.state();
        if state.phase == Phase::Open {
            state.queue(event.clone(), 0);
            self.show(&mut state);
            wake(state);
        }
    }

    /// Queues an answer, past the bound. It keeps its place among the messages: those of another call of its batch must
    /// not hold it back.
    pub(crate) fn answer(&self, answer: AnswerFrame) {
        let mut state = self.state();
        state.answer(answer);
        self.show(&mut state);
        wake(state);
    }

    /// Queues the last answer, past the bound, and ends the queue.
    pub(crate) fn finish(&self, answer: AnswerFrame) {
        let mut state = self.state();
        state.finish(answer);
        self.show(&mut state);
        wake(state);
        self.room.close();
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.end();
        wake(state);
        self.room.close();
    }

    /// Gives up the reading side. What is queued is dropped, and so is whatever comes, unless it is recorded. Does
    /// nothing for a reader that has been superseded.
    pub(crate) fn leave(&self, turn: Turn) {
        let mut state = self.state();
        if state.turn != turn {
            return;
        }
        let messages = std::mem::take(&mut state.messages);
        if state.record.is_some() {
            state.presence = Presence::Away;
            self.show(&mut state);
            wake(state);
            // Whoever waits for room need not wait any more.
            self.give_back(messages.cost());
        } else {
            state.answers = Answers::default();
            state.phase = Phase::Ended;
            self.show(&mut state);
            wake(state);
            self.room.close();
        }
    }

    /// As [`leave`](Self::leave), where nobody has begun to read.
    pub(crate) fn abandon(&self) {
        self.leave(Turn::FIRST);
    }

    /// From now on what is queued has ids and is kept; what has not been read yet, too. Does nothing where the session
    /// has ended.
    pub(crate) fn record(self: &Arc<Self>, log: &Arc<Log>, opening: Opening) {
        let mut state = self.state();
        let retry = state.retry.take();
        state.record = Record::begin(log, Found::Answer(Arc::clone(self)));
        state.rewrite(opening);
        if let Some(retry) = retry.filter(|_| state.phase == Phase::Open) {
            state.let_go(retry);
        }
        self.show(&mut state);
    }

    /// Lets the reader go once it has read what is queued, and tells its client when to come back. An answer that has
    /// no form yet becomes a stream for it. Whether there is a reader to let go.
    pub(crate) fn let_go(&self, retry: Duration) -> bool {
        let mut state = self.state();
        let is_reading = state.phase == Phase::Open && state.presence == Presence::Reading;
        if is_reading {
            state.let_go(retry);
            self.show(&mut state);
            wake(state);
        }
        is_reading
    }

    /// Reads on after an event, in the place of whoever reads now. `None` where the stream has ended and nothing of it
    /// is left to read.
    pub(crate) fn resume(&self, after: u64) -> Result<Option<Turn>, Unresumable> {
        let mut state = self.state();
        let events = state.record.as_ref().ok_or(Unresumable::Unknown)?.after(after)?;
        if events.is_empty() && state.phase == Phase::Ended && state.is_answered {
            return Ok(None);
        }
        let mut replayed = Messages::default();
        events.into_iter().for_each(|event| replayed.push(event, 0));
        let dropped = std::mem::replace(&mut state.messages, replayed);
        state.turn = state.turn.next();
        state.presence = Presence::Reading;
        let turn = state.turn;
        self.show(&mut state);
        wake(state);
        self.give_back(dropped.cost());
        Ok(Some(turn))
    }

    fn give_back(&self, permits: u32) {
        self.room.add_permits(usize::try_from(permits).unwrap_or_default());
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
        if state.retry.is_some() {
            return Poll::Ready(Outlook::Messages);
        }
        state.watch(cx);
        Poll::Pending
    }

    /// The status of the first answer.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.state().answers.front().map(|queued| queued.answer.status)
    }

    /// Takes the answers, for a reader that wants no events.
    pub(crate) fn take_answers(&self) -> Answers {
        let mut state = self.state();
        let answers = std::mem::take(&mut state.answers);
        self.show(&mut state);
        answers
    }

    /// Whether the reader of this turn has nothing more to read.
    pub(crate) fn is_drained(&self, turn: Turn) -> bool {
        let state = self.state();
        let is_over = state.phase == Phase::Ended || state.presence == Presence::Leaving;
        state.turn != turn || is_over && state.messages.is_empty() && state.answers.is_empty()
    }

    /// The next event for the reader of this turn; `None` after the last, or once another reads.
    pub(crate) fn poll_next(&self, turn: Turn, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        if state.turn != turn {
            return Poll::Ready(None);
        }
        if state.answers.is_due(state.read) {
            let answer = state.answers.pop();
            self.show(&mut state);
            return Poll::Ready(answer.map(|answer| answer.frame.event()));
        }
        if let Some(Message { event, cost }) = state.messages.pop() {
            state.read += 1;
            self.show(&mut state);
            drop(state);
            self.give_back(cost);
            return Poll::Ready(Some(event));
        }
        if state.phase == Phase::Ended || state.presence == Presence::Leaving {
            return Poll::Ready(None);
        }
        state.watch(cx);
        Poll::Pending
    }

    /// Whether a message need not wait.
    pub(crate) fn has_room(&self, event: &Bytes) -> bool {
        let cost = usize::try_from(self.cost(event)).unwrap_or(usize::MAX);
        self.room.is_closed() || self.room.available_permits() >= cost
    }

    /// Where too many bytes wait, here and elsewhere, a message takes all of the queue: so it waits for those before
    /// it, and whose client reads goes on.
    fn cost(&self, message: &Bytes) -> u32 {
        if self.gauge.is_pressed(message.len()) { self.capacity } else { cost(message, self.capacity) }
    }

    /// Has the gauge show what waits.
    fn show(&self, state: &mut State) {
        let bytes = state.messages.bytes + state.answers.bytes;
        let shown = std::mem::replace(&mut state.shown, bytes);
        self.gauge.add(bytes.saturating_sub(shown));
        self.gauge.take_off(shown.saturating_sub(bytes));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Queues an event for whoever reads it.
    fn queue(&mut self, event: Bytes, cost: u32) -> Taken {
        let event = match &mut self.record {
            Some(record) => record.write(&event),
            None => event,
        };
        self.hand_on(event, cost)
    }

    fn hand_on(&mut self, event: Bytes, cost: u32) -> Taken {
        if self.presence != Presence::Reading {
            return Taken::ByRecord;
        }
        self.messages.push(event, cost);
        Taken::ByReader
    }

    fn answer(&mut self, answer: AnswerFrame) {
        if self.phase != Phase::Open {
            return;
        }
        self.is_answered = true;
        if self.record.is_some() {
            self.queue(answer.frame.event(), 0);
        } else {
            let after = self.read + u64::try_from(self.messages.len()).unwrap_or_default();
            let bytes = if self.messages.is_empty() { 0 } else { answer.frame.event().len() };
            self.answers.push(Queued { answer, after, bytes });
        }
    }

    fn finish(&mut self, answer: AnswerFrame) {
        match &mut self.record {
            Some(record) if self.phase == Phase::Open => {
                self.is_answered = true;
                let event = record.write_last(&answer.frame.event());
                self.hand_on(event, 0);
                self.phase = Phase::Ended;
            }
            _ => {
                self.answer(answer);
                self.end();
            }
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.phase, Phase::Ended) == Phase::Open {
            self.record.iter().for_each(Record::end);
        }
    }

    /// Writes what has been queued so far into the record, in the order in which it would have been read.
    fn rewrite(&mut self, opening: Opening) {
        let Some(record) = &mut self.record else {
            return;
        };
        let mut unwritten = std::mem::take(&mut self.messages);
        if opening == Opening::Marked {
            self.messages.push(record.mark(None), 0);
        }
        loop {
            let message = if self.answers.is_due(self.read) {
                self.answers.pop().map(|answer| Message { event: answer.frame.event(), cost: 0 })
            } else {
                self.read += 1;
                unwritten.pop()
            };
            let Some(Message { event, cost }) = message else {
                break;
            };
            self.messages.push(record.write(&event), cost);
        }
        if self.phase == Phase::Ended {
            record.end();
        }
    }

    /// The last thing the reader reads is when to come back.
    fn let_go(&mut self, retry: Duration) {
        match &mut self.record {
            Some(record) => {
                let event = record.mark(Some(retry));
                self.hand_on(event, 0);
                self.presence = Presence::Leaving;
            }
            None => self.retry = Some(retry),
        }
    }

    fn watch(&mut self, cx: &Context<'_>) {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let shown = self.state().shown;
        self.gauge.take_off(shown);
    }
}

/// What a message takes of a queue.
pub(crate) fn cost(message: &Bytes, capacity: u32) -> u32 {
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
