//! The events that one session keeps of its streams.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bytes::Bytes;
use tokio::time::Instant;

use super::bounds::{Place, Store};
use super::id::StreamId;
use super::queue::Queue;
use crate::sync::lock;

/// What an event costs beside its bytes, so that many short ones are bounded as well as a few long ones.
const OVERHEAD: usize = 256;

/// The events of one session, all streams in one line: the oldest go first, whichever stream they are of.
#[derive(Debug)]
pub(crate) struct Log {
    me: Weak<Self>,
    store: Arc<Store>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: VecDeque<Kept>,
    bytes: usize,
    streams: HashMap<StreamId, Stream>,
    /// Where it stands in the order of the store.
    place: Option<Place>,
    is_closed: bool,
}

#[derive(Debug)]
struct Kept {
    stream: StreamId,
    number: u64,
    at: Instant,
    what: What,
}

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Event(Bytes),
    /// The last event of its stream.
    Last(Bytes),
    /// That the stream has ended. Its last event was written before, if it had any.
    End,
}

#[derive(Debug)]
struct Stream {
    found: Found,
    /// The number of the newest event that is gone.
    lost: u64,
}

/// What an event's id leads to.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// The session's general stream.
    General,
    /// The stream of an answer.
    Answer(Arc<Queue>),
}

/// What left the log. To be dropped under no lock: it may hold a reader's waker.
type Gone = Vec<Stream>;

impl Log {
    pub(crate) fn new(store: &Arc<Store>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self { me: Weak::clone(me), store: Arc::clone(store), state: Mutex::default() })
    }

    /// Begins a stream. Whether it did: a session that has ended keeps nothing.
    pub(super) fn begin(&self, stream: StreamId, found: Found) -> bool {
        let mut state = self.state();
        if !state.is_closed {
            state.streams.insert(stream, Stream { found, lost: 0 });
        }
        !state.is_closed
    }

    /// What a stream's id leads to, if anything is known of it still.
    pub(crate) fn find(&self, stream: StreamId) -> Option<Found> {
        self.expire(Instant::now());
        self.state().streams.get(&stream).map(|stream| stream.found.clone())
    }

    /// Keeps an event, and lets the oldest go for it.
    pub(super) fn keep(&self, stream: StreamId, number: u64, what: What) {
        let cost = cost(&what);
        let now = Instant::now();
        let mut gone = Gone::new();
        let mut evicted = 0;
        let mut state = self.state();
        let before = state.bytes;
        if state.streams.contains_key(&stream) {
            state.kept.push_back(Kept { stream, number, at: now, what });
            state.bytes += cost;
            state.expire(&self.store, now, &mut gone);
            let kept = state.kept.len();
            if cost > self.store.bytes {
                // It alone, or all the others would go and then it.
                state.drop_newest(&mut gone);
            }
            state.trim(&self.store, &mut gone);
            evicted = kept - state.kept.len();
            state.take_place(&self.store, &self.me);
        }
        self.count(before, state.bytes);
        drop(state);
        drop(gone);
        self.store.evicted(evicted);
        self.store.trim();
    }

    /// The events of a stream after this one; `None` where some of them are gone.
    pub(super) fn after(&self, stream: StreamId, number: u64) -> Option<VecDeque<Bytes>> {
        self.expire(Instant::now());
        let state = self.state();
        if state.streams.get(&stream)?.lost > number {
            return None;
        }
        let later = state.kept.iter().filter(|kept| kept.stream == stream && kept.number > number);
        Some(later.filter_map(|kept| kept.what.event().cloned()).collect())
    }

    /// Lets go what has been kept for long enough.
    pub(crate) fn expire(&self, now: Instant) {
        let mut gone = Gone::new();
        let mut state = self.state();
        let before = state.bytes;
        state.expire(&self.store, now, &mut gone);
        state.take_place(&self.store, &self.me);
        self.count(before, state.bytes);
    }

    /// Lets its oldest event go for all sessions' sake, unless that is younger than `moment`: then the log takes the
    /// place that is due to it.
    pub(super) fn yield_oldest(&self, moment: Instant) {
        let mut gone = Gone::new();
        let mut state = self.state();
        let before = state.bytes;
        state.place = None;
        let goes = state.kept.front().is_some_and(|kept| kept.at <= moment);
        if goes {
            state.drop_oldest(&mut gone);
        }
        state.take_place(&self.store, &self.me);
        self.count(before, state.bytes);
        drop(state);
        drop(gone);
        self.store.evicted(usize::from(goes));
    }

    /// The session has ended: nothing is kept any more.
    pub(crate) fn close(&self) {
        let closed = State { is_closed: true, ..State::default() };
        let State { kept, bytes, streams, place, .. } = std::mem::replace(&mut *self.state(), closed);
        self.store.count(0, bytes);
        place.into_iter().for_each(|place| self.store.leave(place));
        drop((kept, streams));
    }

    fn count(&self, before: usize, after: usize) {
        self.store.count(after.saturating_sub(before), before.saturating_sub(after));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

impl What {
    fn event(&self) -> Option<&Bytes> {
        match self {
            Self::Event(event) | Self::Last(event) => Some(event),
            Self::End => None,
        }
    }
}

fn cost(what: &What) -> usize {
    what.event().map_or(0, Bytes::len) + OVERHEAD
}

impl State {
    fn expire(&mut self, store: &Store, now: Instant, gone: &mut Gone) {
        while self.kept.front().is_some_and(|kept| now.saturating_duration_since(kept.at) >= store.time) {
            self.drop_oldest(gone);
        }
    }

    fn trim(&mut self, store: &Store, gone: &mut Gone) {
        while self.kept.len() > store.events || self.bytes > store.bytes {
            self.drop_oldest(gone);
        }
    }

    fn drop_oldest(&mut self, gone: &mut Gone) {
        let oldest = self.kept.pop_front();
        self.forget(oldest, gone);
    }

    fn drop_newest(&mut self, gone: &mut Gone) {
        let newest = self.kept.pop_back();
        self.forget(newest, gone);
    }

    fn forget(&mut self, kept: Option<Kept>, gone: &mut Gone) {
        let Some(Kept { stream, number, what, .. }) = kept else {
            return;
        };
        self.bytes -= cost(&what);
        if matches!(what, What::Last(_) | What::End) {
            // Nothing is left of a stream that has ended.
            gone.extend(self.streams.remove(&stream));
        } else if let Some(stream) = self.streams.get_mut(&stream) {
            stream.lost = stream.lost.max(number);
        }
    }

    /// Stands in the order of the store while it holds anything.
    fn take_place(&mut self, store: &Store, me: &Weak<Log>) {
        match (self.kept.front(), self.place) {
            (Some(oldest), None) => self.place = Some(store.enter(me, oldest.at)),
            (None, Some(place)) => {
                store.leave(place);
                self.place = None;
            }
            _ => {}
        }
    }
}
