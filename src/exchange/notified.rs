//! Notifications from the client: nobody waits for an answer.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::call::Call;
use super::drive::panic_message;
use super::lifecycle::Ticket;
use crate::context::RequestContext;
use crate::handler::Hearing;
use crate::request::Notification;

/// Lets the handler hear a notification. Polled once in place; what is then still pending goes on in a task, for the
/// client is owed nothing but that the notification was taken.
pub(crate) fn hear(call: Call, ticket: Ticket, cx: &mut Context<'_>) {
    let call = Arc::new(call);
    // No stream will ever carry what the hook sends.
    call.queue.abandon();
    let hook = catch_unwind(AssertUnwindSafe(|| {
        let (notification, context) = (Notification::new(Arc::clone(&call)), RequestContext::new(Arc::clone(&call)));
        Arc::clone(&call.server.handler).notification(notification, context)
    }));
    match hook {
        Ok(hook) => {
            let mut heard = Heard { ticket, hook: Some(hook), call };
            if Pin::new(&mut heard).poll(cx).is_pending() {
                tokio::spawn(heard);
            }
        }
        Err(panic) => call.server.observer.panicked(&call.observed(), &panic_message(&*panic)),
    }
}

/// A hook at work.
struct Heard {
    call: Arc<Call>,
    hook: Option<Hearing>,
    ticket: Ticket,
}

impl Future for Heard {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some(hook) = &mut this.hook else {
            return Poll::Ready(());
        };
        match catch_unwind(AssertUnwindSafe(|| hook.as_mut().poll(cx))) {
            Ok(Poll::Pending) => {
                this.call.cancellation.register_driver(cx.waker());
                this.ticket.wait(&this.call);
                if this.call.cancellation.cause().is_none() {
                    return Poll::Pending;
                }
            }
            Ok(Poll::Ready(())) => {}
            Err(panic) => this.call.server.observer.panicked(&this.call.observed(), &panic_message(&*panic)),
        }
        let hook = this.hook.take();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(hook))) {
            this.call.server.observer.panicked(&this.call.observed(), &panic_message(&*panic));
        }
        Poll::Ready(())
    }
}
