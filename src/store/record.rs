//! One stream being written: its events get their ids here.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;

use super::id::{EventId, StreamId};
use super::log::{Found, Log, What};
use crate::protocol::sse;

/// A stream whose events have ids and are kept. Its owner is whoever queues the events, under the lock under which they
/// are queued: so the ids have the order of the stream.
#[derive(Debug)]
pub(crate) struct Record {
    /// Not held: the log holds the stream.
    log: Weak<Log>,
    stream: StreamId,
    /// The number of the newest id given.
    newest: u64,
}

/// An id from which a stream cannot be resumed: it was never given, or what followed it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unresumable {
    Unknown,
    Gone,
}

impl Record {
    /// Begins a stream. `None` where the session has ended, or the system has no randomness.
    pub(crate) fn begin(log: &Arc<Log>, found: Found) -> Option<Self> {
        let stream = StreamId::mint()?;
        log.begin(stream, found).then(|| Self { log: Arc::downgrade(log), stream, newest: 0 })
    }

    /// Gives an event its id, and keeps it.
    pub(crate) fn write(&mut self, event: &Bytes) -> Bytes {
        self.keep(event, What::Event)
    }

    /// The same with the last event of the stream.
    pub(crate) fn write_last(&mut self, event: &Bytes) -> Bytes {
        self.keep(event, What::Last)
    }

    /// The stream ends after what was written. That is kept as well, for as long as an event would be: a client that
    /// asks for more has to be told.
    pub(crate) fn end(&self) {
        if let Some(log) = self.log.upgrade() {
            log.keep(self.stream, self.newest, What::End);
        }
    }

    /// An event without data, for its id: from here on a client can resume. Not kept.
    pub(crate) fn mark(&mut self, retry: Option<Duration>) -> Bytes {
        sse::mark(&self.next().to_string(), retry.map(|retry| retry.as_millis()))
    }

    /// The events after this one.
    pub(crate) fn after(&self, number: u64) -> Result<VecDeque<Bytes>, Unresumable> {
        if number > self.newest {
            return Err(Unresumable::Unknown);
        }
        self.log.upgrade().and_then(|log| log.after(self.stream, number)).ok_or(Unresumable::Gone)
    }

    fn keep(&mut self, event: &Bytes, what: fn(Bytes) -> What) -> Bytes {
        let id = self.next();
        let event = sse::identified(&id.to_string(), event);
        if let Some(log) = self.log.upgrade() {
            log.keep(self.stream, id.number, what(event.clone()));
        }
        event
    }

    fn next(&mut self) -> EventId {
        self.newest += 1;
        EventId { stream: self.stream, number: self.newest }
    }
}
