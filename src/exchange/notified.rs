//! Notifications from the client: nobody waits for an answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::attended::{Attended, End, caught};
use super::call::Call;
use super::lifecycle::Ticket;
use crate::context::RequestContext;
use crate::request::Notification;

/// Lets the handler hear a notification. Polled once in place; what is then still pending goes on in a task, for the
/// client is owed nothing but that the notification was taken.
pub(crate) fn hear(call: Call, ticket: Ticket, cx: &mut Context<'_>) {
    let call = Arc::new(call);
    // There is no stream for what the hook may say.
    call.queue.abandon();
    let hook = caught(|| {
        let (notification, context) = (Notification::new(Arc::clone(&call)), RequestContext::new(Arc::clone(&call)));
        Arc::clone(&call.server.handler).notification(notification, context)
    });
    match hook {
        Ok(hook) => {
            let mut heard = Heard { work: Some(Attended::new(hook, call, ticket)) };
            if Pin::new(&mut heard).poll(cx).is_pending() {
                tokio::spawn(heard);
            }
        }
        Err(message) => call.server.observer.panicked(&call.observed(), &message),
    }
}

/// A hook at work.
struct Heard {
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
            work.finish();
        }
        Poll::Ready(())
    }
}
