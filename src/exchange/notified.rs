//! Notifications from the client: nobody waits for an answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::attended::{Attended, End};
use super::call::Call;
use super::lifecycle::Ticket;
use crate::admission::{HOOKS, Hold, What};
use crate::context::RequestContext;
use crate::panics::caught;
use crate::protocol::ground::Ground;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::request::Notification;
use crate::session::SessionState;
use crate::trace::CallSpan;

/// Lets the handler hear a notification. Polled once in place; what is then still pending goes on in a task, for the
/// client is owed nothing but that the notification was taken.
///
/// Refused where too many wait already: nothing else bounds them, since the client waits for none.
pub(crate) fn hear(call: Call, ticket: Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
    if call.session.as_ref().is_some_and(|session| session.hooks() >= MOST_HOOKS_IN_SESSION) {
        return Err(Refusal::new(RefusalKind::Overloaded).on(Ground::Limit(HOOKS)));
    }
    // Taken before it is known whether the hook waits at all: of many at once none gets past.
    let hold = call.account.take(What::Hooks, 1)?;
    let call = Arc::new(call);
    // There is no stream for what the hook may say.
    call.outlet.queue().abandon();
    let session = call.session.clone();
    let mut heard = heard(call, ticket);
    if Pin::new(&mut heard).poll(cx).is_pending() {
        let waiting = Waiting::enter(session, hold);
        tokio::spawn(async move {
            heard.await;
            drop(waiting);
        });
    }
    Ok(())
}

/// The handler's hook for a notification.
pub(crate) fn heard(call: Arc<Call>, ticket: Ticket) -> Heard {
    let span = CallSpan::of(&call);
    let hook = span.run(|| {
        caught(|| {
            let (notification, context) =
                (Notification::new(Arc::clone(&call)), RequestContext::new(Arc::clone(&call)));
            Arc::clone(&call.server.handler).notification(notification, context)
        })
    });
    let hook = match hook {
        Ok(hook) => hook,
        Err(message) => {
            span.run(|| call.server.observer.panicked(&call.observed(), &message));
            return Heard { work: None };
        }
    };
    Heard { work: Some(Attended::new(hook, call, ticket, span)) }
}

/// Hooks that may wait at once in one session. A hook may ask its client, which need not answer: no client is to take
/// all places from the others.
const MOST_HOOKS_IN_SESSION: usize = 64;

/// A hook that waits, until dropped.
struct Waiting {
    session: Option<Arc<SessionState>>,
    _hold: Hold,
}

impl Waiting {
    fn enter(session: Option<Arc<SessionState>>, hold: Hold) -> Self {
        session.iter().for_each(|session| session.hook_waits());
        Self { session, _hold: hold }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.session.iter().for_each(|session| session.hook_is_through());
    }
}

/// A hook at work.
pub(crate) struct Heard {
    /// Gone once it is through.
    work: Option<Attended<()>>,
}

impl Future for Heard {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(());
        };
        match work.poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(End::Output(()) | End::Cancelled(_)) => {}
            Poll::Ready(End::Panicked(message)) => {
                let call = work.call();
                call.server.observer.panicked(&call.observed(), &message);
            }
        }
        if let Some(work) = self.work.take() {
            let (call, _ticket, _span) = work.finish();
            call.end_asks();
            call.set_answered();
        }
        Poll::Ready(())
    }
}
