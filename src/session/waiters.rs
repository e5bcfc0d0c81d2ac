//! The questions of a session that wait for their answer, by id.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::oneshot;

use crate::protocol::envelope::Message;
use crate::sync::lock;

/// The questions that the client has yet to answer.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The id of the last question.
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Message>>,
    is_over: bool,
}

impl Waiters {
    /// Gives a question an id and a place to wait for the response. `None` where the session has ended.
    pub(crate) fn enlist(&self) -> Option<(u64, oneshot::Receiver<Message>)> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if state.is_over {
            return None;
        }
        state.last += 1;
        let id = state.last;
        state.waiting.insert(id, sender);
        Some((id, receiver))
    }

    /// Hands a response to whoever waits for it. Whether anybody did.
    pub(crate) fn answer(&self, response: Message) -> bool {
        let id = response.id().and_then(|id| id.canonical().parse().ok());
        let waiting = id.and_then(|id: u64| self.state().waiting.remove(&id));
        waiting.is_some_and(|waiting| waiting.send(response).is_ok())
    }

    /// Nobody waits any more. Whether somebody did until now.
    pub(crate) fn retire(&self, id: u64) -> bool {
        self.state().waiting.remove(&id).is_some()
    }

    /// The session has ended: all who wait hear of it.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        // Dropping a sender wakes who waits, under no lock.
        drop(waiting);
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}
