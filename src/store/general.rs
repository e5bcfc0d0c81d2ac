//! The general stream of a session, kept: what its GETs carry, one after the other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

use super::log::{Found, Log};
use super::record::{Record, Unresumable};
use crate::subscribe::{Mailbox, Wants};
use crate::sync::lock;
use crate::turn::Turn;

/// The general stream of a session. What waits in the mailbox has no id yet: equal changes are one until they are told.
/// They are told and written in one step, so that no reader that takes over misses what another has taken.
#[derive(Debug)]
pub(crate) struct General {
    mailbox: Arc<Mailbox>,
    wants: Wants,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    record: Record,
    /// The turn of the mailbox that reads.
    turn: Turn,
    /// What it has to read before what is new.
    replay: VecDeque<Bytes>,
}

impl General {
    /// Changes are kept from now on. `None` where the system has no randomness.
    pub(crate) fn begin(log: &Arc<Log>, mailbox: &Arc<Mailbox>, wants: Wants) -> Option<Self> {
        let record = Record::begin(log, Found::General)?;
        mailbox.keep(wants);
        let state = Mutex::new(State { record, turn: Turn::FIRST, replay: VecDeque::new() });
        Some(Self { mailbox: Arc::clone(mailbox), wants, state })
    }

    /// Opens the stream, if none is open. Returns its turn.
    pub(crate) fn open(&self) -> Option<Turn> {
        let mut state = self.state();
        self.mailbox.open(self.wants).map(|turn| state.turn_to(turn, VecDeque::new()))
    }

    /// Opens the stream in the place of one that is open. What that one has not replayed is nobody's any more.
    pub(crate) fn take_over(&self) -> Option<Turn> {
        let mut state = self.state();
        let (turn, superseded) = self.mailbox.take_over(self.wants)?;
        state.turn_to(turn, VecDeque::new());
        drop(state);
        superseded.into_iter().for_each(Waker::wake);
        Some(turn)
    }

    /// Opens the stream after this event, in the place of one that is open. Where what followed is gone, all lists
    /// count as changed.
    pub(crate) fn resume(&self, number: u64) -> Result<Option<Turn>, Unresumable> {
        let mut state = self.state();
        let replay = match state.record.after(number) {
            Err(Unresumable::Unknown) => return Err(Unresumable::Unknown),
            Err(Unresumable::Gone) => None,
            Ok(replay) => Some(replay),
        };
        let Some((turn, superseded)) = self.mailbox.take_over(self.wants) else {
            return Ok(None);
        };
        if replay.is_none() {
            self.mailbox.note_lists();
        }
        state.turn_to(turn, replay.unwrap_or_default());
        drop(state);
        superseded.into_iter().for_each(Waker::wake);
        Ok(Some(turn))
    }

    /// The next event for the stream of this turn; `None` where it has ended.
    pub(crate) fn poll_next(&self, turn: Turn, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        if state.turn == turn {
            if let Some(event) = state.replay.pop_front() {
                return Poll::Ready(Some(event));
            }
        }
        self.mailbox.poll_next(turn, cx).map(|notice| notice.map(|notice| state.record.write(&notice.legacy())))
    }

    /// An event without data, for its id. `None` to a stream that has been superseded.
    pub(crate) fn mark(&self, turn: Turn, retry: Option<Duration>) -> Option<Bytes> {
        let mut state = self.state();
        (state.turn == turn).then(|| state.record.mark(retry))
    }

    /// The stream of this turn is gone. What is due stays due.
    pub(crate) fn close(&self, turn: Turn) {
        let mut state = self.state();
        if state.turn == turn {
            state.replay = VecDeque::new();
        }
        self.mailbox.close(turn);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn turn_to(&mut self, turn: Turn, replay: VecDeque<Bytes>) -> Turn {
        self.turn = turn;
        self.replay = replay;
        turn
    }
}
