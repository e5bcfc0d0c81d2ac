//! The changes that wait for one listener: equal ones are one, so a slow reader costs bounded memory and misses nothing
//! that still matters.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::notice::{Notice, Updated};
use crate::capabilities::Capabilities;
use crate::sync::lock;
use crate::turn::Turn;

/// What a listener wants to hear of, resources apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Wants {
    /// Every list whose changes the handler declares.
    pub(crate) fn of(capabilities: &Capabilities) -> Self {
        Self {
            tools: capabilities.changes("tools"),
            prompts: capabilities.changes("prompts"),
            resources: capabilities.changes("resources"),
        }
    }
}

/// The changes that wait for one listener.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    wants: Wants,
    /// The lists that have changed.
    due: Wants,
    /// The resources subscribed to, and which of them have changed.
    resources: HashMap<Box<str>, Due>,
    /// Those that have changed, in order.
    updated: VecDeque<Arc<Updated>>,
    /// The messages of the transport's own, in order.
    messages: VecDeque<Bytes>,
    /// How many bytes they have.
    message_bytes: usize,
    /// What the subscriptions cost.
    bytes: usize,
    stream: Stream,
    unread: Unread,
    /// That of the newest stream.
    turn: Turn,
    reader: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    No,
    Yes,
    /// Whether it has changed since, but the subscription is not granted yet.
    Reserved(bool),
}

/// What was noted of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    New,
    /// It was due already.
    Again,
}

/// Whether anybody reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stream {
    #[default]
    None,
    Open,
    /// No stream is opened again.
    Ended,
}

/// What becomes of changes that no stream has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unread {
    /// They are dropped with their stream, and without one none are noted.
    #[default]
    Dropped,
    /// They stay due until a stream reads them.
    Kept,
}

/// Whom a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addressee {
    /// The stream of this turn.
    Turn(Turn),
    /// Whichever stream reads it, now or later.
    Whoever,
}

/// What became of a change.
#[derive(Debug)]
pub(super) enum Delivered {
    /// Nobody wants it.
    Unwanted,
    /// One that is equal waits already.
    Merged,
    /// It waits. Whom to wake: under no lock, for a waker may run anything.
    Noted(Option<Waker>),
}

/// What became of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subscribed {
    New,
    /// There was one to this resource already.
    Already,
    /// There are too many already.
    TooMany,
}

/// What a listener's subscriptions may cost in all. One costs the bytes of its URI and [`OVERHEAD`].
const MOST_BYTES: usize = 256 << 10;

/// About what is kept of a subscription beside its URI, so that many short ones are bounded as well as a few long ones.
const OVERHEAD: usize = 64;

/// Messages that may wait at once.
const MOST_MESSAGES: usize = 256;

/// Bytes of messages that may wait before another one is sent.
const MOST_MESSAGE_BYTES: usize = 1 << 20;

impl Mailbox {
    /// Opens a stream, if none is open. Changes are kept from now on. Returns its turn.
    pub(crate) fn open(&self, wants: Wants) -> Option<Turn> {
        let mut state = self.state();
        (state.stream == Stream::None).then(|| state.open(wants))
    }

    /// Opens a stream in the place of one that is open. Returns its turn, and the reader whose turn is over: to be
    /// woken under no lock.
    pub(crate) fn take_over(&self, wants: Wants) -> Option<(Turn, Option<Waker>)> {
        let mut state = self.state();
        (state.stream != Stream::Ended).then(|| (state.open(wants), state.reader.take()))
    }

    /// From now on changes are noted and kept whether a stream is open or not.
    pub(crate) fn keep(&self, wants: Wants) {
        let mut state = self.state();
        state.wants = wants;
        state.unread = Unread::Kept;
    }

    /// Counts all lists it wants to hear of as changed.
    pub(crate) fn note_lists(&self) {
        let mut state = self.state();
        state.due = state.wants;
    }

    /// The stream of this turn is gone. Changes that it did not read are dropped, unless they are to be kept; a message
    /// waits for the next stream.
    pub(crate) fn close(&self, turn: Turn) {
        let mut state = self.state();
        if state.turn == turn && state.stream == Stream::Open {
            state.stream = Stream::None;
            state.reader = None;
            if state.unread == Unread::Dropped {
                state.forget();
            }
        }
    }

    /// Ends the stream for good, once it has been read.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.stream = Stream::Ended;
        wake(state);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state().stream == Stream::Open
    }

    /// Subscribes to a resource.
    pub(crate) fn subscribe(&self, uri: &str) -> Subscribed {
        self.add(uri, Due::No)
    }

    fn add(&self, uri: &str, due: Due) -> Subscribed {
        let mut state = self.state();
        if state.resources.contains_key(uri) {
            return Subscribed::Already;
        }
        let bytes = state.bytes + cost(uri);
        if bytes > MOST_BYTES {
            return Subscribed::TooMany;
        }
        state.bytes = bytes;
        state.resources.insert(uri.into(), due);
        Subscribed::New
    }

    /// Subscribes to a resource for as long as it takes to decide whether that is granted: its changes are noted, and
    /// not told. A subscription that was granted before stays. `None` where there are too many.
    pub(crate) fn reserve(mailbox: &Arc<Self>, uri: &str) -> Option<Reserved> {
        let subscribed = mailbox.add(uri, Due::Reserved(false));
        let mailbox = Arc::clone(mailbox);
        (subscribed != Subscribed::TooMany).then(|| Reserved { mailbox, uri: uri.into(), is_granted: false })
    }

    fn grant(&self, uri: &str) {
        let mut state = self.state();
        match state.resources.insert(uri.into(), Due::No) {
            // Taken back in between, by its client or since another request for it was not granted.
            None => state.bytes += cost(uri),
            Some(Due::Yes) => drop(state.resources.insert(uri.into(), Due::Yes)),
            Some(Due::Reserved(true)) => {
                let updated = Arc::new(Updated::new(uri));
                if state.note_updated(&updated) == Some(Noted::New) {
                    wake(state);
                }
            }
            Some(Due::No | Due::Reserved(false)) => {}
        }
    }

    /// Takes back what has not been granted.
    fn renounce(&self, uri: &str) {
        let mut state = self.state();
        if matches!(state.resources.get(uri), Some(Due::Reserved(_))) {
            state.resources.remove(uri);
            state.bytes -= cost(uri);
        }
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        let mut state = self.state();
        if state.resources.remove(uri).is_some() {
            state.bytes -= cost(uri);
            state.updated.retain(|updated| *updated.uri != *uri);
        }
    }

    /// Sends a message to whoever reads. `false` where nobody does or too many wait already, and where it is not wanted
    /// any more.
    pub(crate) fn send(&self, event: Bytes, is_wanted: impl FnOnce() -> bool) -> bool {
        let mut state = self.state();
        // Asked under the lock, so that what takes the message back comes after it.
        let has_room = state.messages.len() < MOST_MESSAGES && state.message_bytes < MOST_MESSAGE_BYTES;
        let is_sent = state.stream == Stream::Open && has_room && is_wanted();
        if is_sent {
            state.queue(event);
            wake(state);
        }
        is_sent
    }

    /// Sends a message past the bound, to the stream that is open or else to the next one: one that takes back what was
    /// sent before, which perhaps waits for that stream too.
    pub(crate) fn push(&self, event: Bytes) {
        let mut state = self.state();
        if state.stream != Stream::Ended {
            state.queue(event);
            wake(state);
        }
    }

    /// Hears of a change.
    pub(super) fn deliver(&self, to: Addressee, notice: &Notice) -> Delivered {
        let mut state = self.state();
        let is_addressed = match to {
            Addressee::Turn(turn) => state.turn == turn && state.stream == Stream::Open,
            Addressee::Whoever => state.stream != Stream::Ended,
        };
        match is_addressed.then(|| state.note(notice)).flatten() {
            None => Delivered::Unwanted,
            Some(Noted::Again) => Delivered::Merged,
            Some(Noted::New) => Delivered::Noted(state.reader.take()),
        }
    }

    /// The next change for the stream of this turn; `None` where it has ended.
    pub(crate) fn poll_next(&self, turn: Turn, cx: &Context<'_>) -> Poll<Option<Notice>> {
        let mut state = self.state();
        if state.turn != turn {
            return Poll::Ready(None);
        }
        if let Some(notice) = state.next() {
            return Poll::Ready(Some(notice));
        }
        if state.stream == Stream::Ended {
            return Poll::Ready(None);
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

/// A subscription that has yet to be granted, and is not if this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    mailbox: Arc<Mailbox>,
    uri: Box<str>,
    is_granted: bool,
}

impl Reserved {
    pub(crate) fn grant(mut self) {
        self.is_granted = true;
        self.mailbox.grant(&self.uri);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.is_granted {
            self.mailbox.renounce(&self.uri);
        }
    }
}

impl State {
    fn open(&mut self, wants: Wants) -> Turn {
        self.stream = Stream::Open;
        self.wants = wants;
        self.turn = self.turn.next();
        self.turn
    }

    fn queue(&mut self, event: Bytes) {
        self.message_bytes += event.len();
        self.messages.push_back(event);
    }

    fn forget(&mut self) {
        self.due = Wants::default();
        self.updated.clear();
        for due in self.resources.values_mut() {
            *due = match due {
                Due::Reserved(_) => Due::Reserved(false),
                Due::No | Due::Yes => Due::No,
            };
        }
    }

    /// Notes a change, where it is wanted.
    fn note(&mut self, notice: &Notice) -> Option<Noted> {
        let (wanted, due) = match notice {
            Notice::Tools => (self.wants.tools, &mut self.due.tools),
            Notice::Prompts => (self.wants.prompts, &mut self.due.prompts),
            Notice::Resources => (self.wants.resources, &mut self.due.resources),
            Notice::Updated(updated) => return self.note_updated(updated),
            // Never published.
            Notice::Message(_) => return None,
        };
        wanted.then(|| if std::mem::replace(due, true) { Noted::Again } else { Noted::New })
    }

    fn note_updated(&mut self, updated: &Arc<Updated>) -> Option<Noted> {
        let due = self.resources.get_mut(&updated.uri)?;
        match due {
            Due::Yes => Some(Noted::Again),
            Due::Reserved(is_changed) => {
                *is_changed = true;
                None
            }
            Due::No => {
                *due = Due::Yes;
                self.updated.push_back(Arc::clone(updated));
                Some(Noted::New)
            }
        }
    }

    fn next(&mut self) -> Option<Notice> {
        if let Some(event) = self.messages.pop_front() {
            self.message_bytes -= event.len();
            return Some(Notice::Message(event));
        }
        let lists = [
            (&mut self.due.tools, Notice::Tools),
            (&mut self.due.prompts, Notice::Prompts),
            (&mut self.due.resources, Notice::Resources),
        ];
        for (due, notice) in lists {
            if std::mem::take(due) {
                return Some(notice);
            }
        }
        let updated = self.updated.pop_front()?;
        if let Some(due) = self.resources.get_mut(&updated.uri) {
            *due = Due::No;
        }
        Some(Notice::Updated(updated))
    }
}

fn cost(uri: &str) -> usize {
    uri.len() + OVERHEAD
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
pub(super) mod tests;
