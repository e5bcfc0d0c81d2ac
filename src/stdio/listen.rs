//! What is told of changes on a byte stream: to subscriptions of 2026-07-28, and to whoever shook hands before.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future::{Either, select};

use super::connection::Connection;
use super::owed::Owed;
use crate::exchange::answer::Finished;
use crate::exchange::call::Call;
use crate::exchange::lifecycle::Ticket;
use crate::exchange::listening::{self, Decided, Granting};
use crate::protocol::refusal::Refusal;
use crate::protocol::sse::{self, Frame};
use crate::session::SessionState;
use crate::subscribe::{Place, Wants};

/// Begins a subscription: changes are kept from here on.
pub(super) fn start(connection: &Arc<Connection>, call: Arc<Call>, ticket: Ticket) -> Result<(), Refusal> {
    let owed = Owed::take(connection, &call)?;
    match Granting::start(call, ticket, &connection.hub) {
        Ok(granting) => {
            tokio::spawn(listen(Arc::clone(connection), granting, owed));
            Ok(())
        }
        Err(refusal) => {
            owed.forgo();
            Err(refusal)
        }
    }
}

/// A subscription, from the handler's decision to its end.
async fn listen(connection: Arc<Connection>, mut granting: Granting, owed: Owed) {
    let (acknowledgement, end) = match poll_fn(|cx| granting.poll(cx)).await {
        Decided::Granted { acknowledgement, end } => (acknowledgement, end),
        Decided::Refused(finished) => return owed.settle(&finished),
    };
    let call = Arc::clone(granting.call());
    call.server.observer.stream_opened(&call.observed());
    let (place, _hold, _open) = granting.into_place();
    let told = tell(&connection, &call, acknowledgement, place);
    let cancelled = call.cancellation.cancelled();
    match select(std::pin::pin!(told), std::pin::pin!(cancelled)).await {
        Either::Left(((), _)) => owed.settle_with(last_words(&call, &end)),
        // By its client, or because the stream is gone.
        Either::Right(_) => owed.forgo(),
    }
}

/// Tells changes until the subscription ends.
async fn tell(connection: &Connection, call: &Call, acknowledgement: Frame, place: Place) {
    let is_wanted = || call.cancellation.cause().is_none();
    connection.outbox.send(acknowledgement.line(), is_wanted).await;
    while let Some(notice) = poll_fn(|cx| place.poll_next(cx)).await {
        connection.outbox.send(sse::line(&notice.tagged(call.id())), is_wanted).await;
    }
}

/// What ends a subscription: a cancellation in the server's name, and the response.
fn last_words(call: &Call, end: &Finished) -> Bytes {
    let mut lines = BytesMut::new();
    lines.extend(listening::cancelled(call.id()).map(|frame| frame.line()));
    lines.extend_from_slice(&end.frame.line());
    lines.freeze()
}

/// Forwards changes to a client up to 2025-11-25, until its session ends.
pub(super) fn forward(connection: &Arc<Connection>, session: &Arc<SessionState>) {
    let wants = Wants::of(&connection.server.capabilities);
    let Some(turn) = session.mailbox().open(wants) else {
        return;
    };
    let place = connection.hub.add(session.mailbox(), turn);
    let outbox = Arc::clone(&connection.outbox);
    tokio::spawn(async move {
        while let Some(notice) = poll_fn(|cx| place.poll_next(cx)).await {
            outbox.send(sse::line(&notice.legacy()), || true).await;
        }
    });
}
