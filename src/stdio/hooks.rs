//! The application's hook for notifications: one after the other, in the order in which they came, off the reading
//! path.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use super::connection::{Busy, Connection};
use crate::admission::{HOOKS, MOST_HOOKS};
use crate::exchange::call::Call;
use crate::exchange::heard;
use crate::exchange::lifecycle::Ticket;
use crate::panics::caught_in;
use crate::protocol::ground::Ground;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::sync::lock;

/// The notifications that wait for the hook.
#[derive(Default)]
pub(super) struct Hooks(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Notified>,
    /// Whether a task is at it.
    at_work: bool,
}

struct Notified {
    call: Arc<Call>,
    ticket: Ticket,
    _busy: Busy,
}

/// Lets the handler hear a notification once it has heard those before. Refused where too many wait already: nothing
/// else bounds them, since the peer waits for none.
pub(super) fn hear(connection: &Arc<Connection>, call: Arc<Call>, ticket: Ticket) -> Result<(), Refusal> {
    let mut state = connection.hooks.state();
    if state.waiting.len() >= MOST_HOOKS {
        return Err(Refusal::new(RefusalKind::Overloaded).on(Ground::Limit(HOOKS)));
    }
    state.waiting.push_back(Notified { call, ticket, _busy: Busy::with(connection) });
    let is_at_work = std::mem::replace(&mut state.at_work, true);
    drop(state);
    if !is_at_work {
        tokio::spawn(run(Arc::clone(connection)));
    }
    Ok(())
}

async fn run(connection: Arc<Connection>) {
    while let Some(Notified { call, ticket, _busy }) = connection.hooks.next() {
        // An observer that panics must not keep those that follow.
        let _ = caught_in(heard(call, ticket)).await;
    }
}

impl Hooks {
    /// The next one; after the last, nobody is at work.
    fn next(&self) -> Option<Notified> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        state.at_work = next.is_some();
        next
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}
