//! What waits to be written to a byte stream: one queue for all that is said on it, first in first out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

use bytes::{Bytes, BytesMut};
use futures::task::AtomicWaker;
use tokio::sync::Semaphore;

use crate::store::queue;

use crate::sync::lock;

/// What waits to be written.
///
/// Messages of handlers and changes wait for room. Answers do not, for a handler that has finished cannot wait; what
/// bounds them is that a request keeps its place among those in flight until its answer is written. Courtesies, which
/// the transport says of itself, have a bound of their own, past which they are dropped.
#[derive(Debug)]
pub(crate) struct Outbox {
    capacity: u32,
    room: Semaphore,
    state: Mutex<State>,
    writer: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<(Bytes, Weight)>,
    /// Places of requests whose answers have yet to be written.
    places: usize,
    /// What unwritten courtesies cost.
    courtesies: usize,
    closed: bool,
}

/// What is given back once a line is written.
#[derive(Clone, Copy, Debug)]
enum Weight {
    Message(usize),
    Answer { places: usize },
    Courtesy(usize),
}

/// A courtesy costs at least this part of the outbox, so that one number bounds both bytes and lines.
const MOST_COURTESIES: usize = 1024;

/// Bytes that leave in one write. A line that is longer leaves by itself, uncopied.
const PARCEL: usize = 64 << 10;

/// Lines that leave together, and what they weigh.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) bytes: Bytes,
    permits: usize,
    places: usize,
    courtesies: usize,
}

impl Outbox {
    pub(crate) fn new(capacity: u32) -> Self {
        let room = Semaphore::new(usize::try_from(capacity).unwrap_or(Semaphore::MAX_PERMITS));
        Self { capacity, room, state: Mutex::default(), writer: AtomicWaker::new() }
    }

    /// Queues a message, waiting for room. Dropped where it is not wanted any more once its turn has come. Whether it
    /// was queued.
    pub(crate) async fn send(&self, line: Bytes, is_wanted: impl FnOnce() -> bool) -> bool {
        let cost = queue::cost(&line, self.capacity);
        let Ok(permits) = self.room.acquire_many(cost).await else {
            return false;
        };
        // Asked under the lock: what is wanted may depend on what went before.
        let state = self.state();
        let is_queued = !state.closed && is_wanted();
        if is_queued {
            permits.forget();
            self.push(state, line, Weight::Message(usize::try_from(cost).unwrap_or_default()));
        }
        is_queued
    }

    /// Whether a message need not wait.
    pub(crate) fn has_room(&self, line: &Bytes) -> bool {
        let cost = usize::try_from(queue::cost(line, self.capacity)).unwrap_or(usize::MAX);
        self.room.is_closed() || self.room.available_permits() >= cost
    }

    /// Queues the answer to as many requests, or to none: past the bound.
    pub(crate) fn answer(&self, line: Bytes, places: usize) {
        let mut state = self.state();
        if !state.closed {
            state.places += places;
            self.push(state, line, Weight::Answer { places });
        }
    }

    /// Queues something that nobody is owed, unless too much of that is unwritten.
    pub(crate) fn courtesy(&self, line: Bytes) {
        let most = usize::try_from(self.capacity).unwrap_or(usize::MAX);
        let mut state = self.state();
        if !state.closed && state.courtesies < most {
            let cost = line.len().max(most / MOST_COURTESIES);
            state.courtesies += cost;
            self.push(state, line, Weight::Courtesy(cost));
        }
    }

    /// How many places are held by answers that have yet to be written.
    pub(crate) fn unwritten(&self) -> usize {
        self.state().places
    }

    /// What is to be written next; `None` where nothing is.
    pub(crate) fn take(&self, buffer: &mut BytesMut) -> Option<Parcel> {
        let mut state = self.state();
        let (first, weight) = state.lines.pop_front()?;
        let mut parcel = Parcel::default();
        parcel.weigh(weight);
        if first.len() >= PARCEL || state.lines.is_empty() {
            parcel.bytes = first;
            return Some(parcel);
        }
        buffer.extend_from_slice(&first);
        while state.lines.front().is_some_and(|(line, _)| buffer.len() + line.len() <= PARCEL) {
            if let Some((line, weight)) = state.lines.pop_front() {
                buffer.extend_from_slice(&line);
                parcel.weigh(weight);
            }
        }
        drop(state);
        parcel.bytes = buffer.split().freeze();
        Some(parcel)
    }

    /// Gives back what lines held that are written.
    pub(crate) fn written(&self, parcel: &Parcel) {
        self.room.add_permits(parcel.permits);
        let mut state = self.state();
        state.places -= parcel.places.min(state.places);
        state.courtesies -= parcel.courtesies.min(state.courtesies);
    }

    /// Nothing is written any more: what is queued is dropped, and so is whatever comes.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.lines = VecDeque::new();
        state.places = 0;
        drop(state);
        self.room.close();
    }

    /// Has whoever writes woken by the next line.
    pub(crate) fn register(&self, writer: &Waker) {
        self.writer.register(writer);
    }

    /// Has whoever writes look up.
    pub(crate) fn wake(&self) {
        self.writer.wake();
    }

    fn push(&self, mut state: MutexGuard<'_, State>, line: Bytes, weight: Weight) {
        let was_empty = state.lines.is_empty();
        state.lines.push_back((line, weight));
        drop(state);
        if was_empty {
            self.writer.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Parcel {
    fn weigh(&mut self, weight: Weight) {
        match weight {
            Weight::Message(permits) => self.permits += permits,
            Weight::Answer { places } => self.places += places,
            Weight::Courtesy(cost) => self.courtesies += cost,
        }
    }
}

#[cfg(test)]
mod tests;
