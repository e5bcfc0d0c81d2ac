//! What all who work on one byte stream share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::Extensions;

use super::hooks::Hooks;
use crate::admission::{Account, CallerKey, Counted, UNCOUNTED, What};
use crate::cancel::CancelCause;
use crate::exchange::call::{Call, Caller, Form, Via};
use crate::exchange::outbox::Outbox;
use crate::principal::Principal;
use crate::protocol::envelope::Message;
use crate::protocol::refusal::Refusal;
use crate::protocol::revision::Revision;
use crate::protocol::sse::Frame;
use crate::server::Server;
use crate::session::{InFlight, SessionEnd, SessionState, farewell};
use crate::subscribe::Hub;

/// One byte stream, from its making to its end.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    pub(super) hub: Arc<Hub>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) hooks: Hooks,
    /// The requests being answered, of both eras: there is one peer, and one space of ids.
    pub(super) in_flight: InFlight,
    /// Requests that hold a place and are not answered yet.
    places: AtomicUsize,
    /// Whatever has yet to come to an end by itself: requests, subscriptions, notifications.
    busy: AtomicUsize,
    /// What `initialize` opened, up to 2025-11-25.
    session: OnceLock<Arc<SessionState>>,
    extensions: Arc<Extensions>,
    principal: Option<Principal>,
    /// There is one peer, whoever that is.
    account: Account,
    /// A drain has given it all the time it gets.
    over: AtomicBool,
}

impl Connection {
    pub(super) fn new(
        server: Arc<Server>,
        hub: Arc<Hub>,
        extensions: Arc<Extensions>,
        principal: Option<Principal>,
    ) -> Self {
        Self {
            outbox: Arc::new(Outbox::new(server.limits.queue_bytes)),
            hooks: Hooks::default(),
            in_flight: InFlight::default(),
            places: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            session: OnceLock::new(),
            over: AtomicBool::new(false),
            account: server.admission.account(Some(CallerKey::Stream)),
            server,
            hub,
            extensions,
            principal,
        }
    }

    pub(super) fn session(&self) -> Option<&Arc<SessionState>> {
        self.session.get()
    }

    pub(super) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// From now on what comes without a claim belongs to this session.
    pub(super) fn open(&self, session: Arc<SessionState>) {
        let _ = self.session.set(session);
    }

    /// A line whose bytes are counted for as long as anything of it is kept. The line as it is where there is no room.
    pub(super) fn count(&self, line: Bytes) -> Result<Bytes, Bytes> {
        match line.len().checked_sub(UNCOUNTED) {
            None | Some(0) => Ok(line),
            Some(bytes) => match self.account.take(What::BodyBytes, bytes) {
                Ok(hold) => Ok(Counted::bytes(line, Some(hold))),
                Err(_) => Err(line),
            },
        }
    }

    /// A call of this stream's. `session` is what a legacy one belongs to.
    pub(super) fn call(
        &self,
        message: Message,
        revision: Revision,
        session: Option<Arc<SessionState>>,
        form: Form,
    ) -> Arc<Call> {
        let via = Via::Stream(Arc::clone(&self.extensions));
        let (principal, account) = (self.principal.clone(), self.account.clone());
        let caller = Caller { revision, via, principal, account, session, form };
        Arc::new(Call::on_stream(&self.server, message, caller, &self.outbox))
    }

    /// Whether as many requests are in flight as may be.
    pub(super) fn is_full(&self) -> bool {
        self.places.load(Ordering::SeqCst) + self.outbox.unwritten() >= self.server.limits.in_flight
    }

    /// Whether as many answers wait to be written as requests may be in flight.
    pub(super) fn owes_too_much(&self) -> bool {
        self.outbox.unwritten() >= self.server.limits.in_flight
    }

    pub(super) fn take_place(&self) {
        self.places.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn give_places_back(&self, places: usize) {
        self.places.fetch_sub(places, Ordering::SeqCst);
    }

    /// Answers with a refusal. `id` is that of the request, where one could be read: also where the refusal itself
    /// names none, as that of a drain does not. On a byte stream nothing else says whose answer it is.
    pub(super) fn refuse(&self, refusal: &Refusal, id: Option<&[u8]>) {
        self.outbox.courtesy(self.refusal(refusal, id).line());
    }

    /// The same for one of a batch, whose answers leave together.
    pub(super) fn refusal(&self, refusal: &Refusal, id: Option<&[u8]>) -> Frame {
        self.server.observer.refused(refusal);
        Frame::error(id, refusal.kind().code(), refusal.message(), refusal.data().as_deref())
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst) > 0
    }

    /// A drain waits no longer.
    pub(super) fn set_over(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.outbox.wake();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Nothing more will be read.
    pub(super) fn end_of_input(&self) {
        self.server.lifecycle.refuse_new();
        self.hub.end_all();
        if let Some(session) = self.session() {
            session.close();
        }
    }

    /// The stream is gone, and what is still at work on it has nobody to work for.
    pub(super) fn shut(&self) {
        self.end_of_input();
        self.outbox.close();
        for call in self.in_flight.all() {
            call.cancellation.cancel(CancelCause::Disconnected);
        }
        if let Some(session) = self.session() {
            farewell(&self.server, session, SessionEnd::Disconnected);
        }
    }
}

/// Something that has yet to come to an end, until dropped.
pub(super) struct Busy(Arc<Connection>);

impl Busy {
    pub(super) fn with(connection: &Arc<Connection>) -> Self {
        connection.busy.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(connection))
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
        if self.0.server.lifecycle.is_draining() {
            self.0.outbox.wake();
        }
    }
}
