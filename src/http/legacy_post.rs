//! A POST of the handshake era, after its version is judged: session, `initialize`, batch, id.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::Context;

use http::{HeaderValue, StatusCode, request};

use super::post::{Exchange, Posted};
use super::respond;
use super::service::{Sessions, Shared};
use crate::admission::Account;
use crate::exchange::answer::refusal_frame;
use crate::exchange::call::{Call, Caller, Form, Via};
use crate::exchange::lifecycle::Ticket;
use crate::exchange::subject::{Batch, Subject};
use crate::exchange::{self, Attached, Detached, Drive, Work};
use crate::principal::Principal;
use crate::protocol::accept::Accepts;
use crate::protocol::envelope::{self, Body, BodyFault, Kind, Message};
use crate::protocol::initialize::InitializeParams;
use crate::protocol::legacy::{self, Headers};
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;
use crate::session::{Client, Lease, SessionState};
use crate::store::queue::{AnswerFrame, Queue};

/// A legacy POST and what its head says.
struct Post<'a> {
    shared: &'a Arc<Shared>,
    parts: request::Parts,
    principal: Option<Principal>,
    account: Account,
    version: Option<Revision>,
    session: Option<Arc<SessionState>>,
}

/// What an `initialize` has come to before it is answered.
struct Opening {
    revision: Revision,
    session: Option<Arc<SessionState>>,
    ticket: Ticket,
}

/// Judges a legacy body and sets to work what it asks.
pub(super) fn post(
    shared: &Arc<Shared>,
    parts: request::Parts,
    body: Body,
    cx: &mut Context<'_>,
) -> Result<Posted, Refusal> {
    let post = Post::read(shared, parts).map_err(|refusal| refusal.with_id(body.request_id()))?;
    match body {
        Body::Message(message) => post.message(message, cx),
        Body::Batch(batch) => post.batch(batch, cx),
    }
}

impl<'a> Post<'a> {
    fn read(shared: &'a Arc<Shared>, parts: request::Parts) -> Result<Self, Refusal> {
        let principal = shared.principal(&parts)?;
        let account = shared.account(&parts, principal.as_ref())?;
        let Headers { version, session } = Headers::read(&parts.headers, shared.gate.revisions)?;
        let session = session.map(|id| shared.sessions.find(id, principal.as_ref())).transpose()?;
        Ok(Self { shared, principal, account, version, session, parts })
    }
}

impl Post<'_> {
    fn message(self, message: Message, cx: &mut Context<'_>) -> Result<Posted, Refusal> {
        match message.kind {
            Kind::Request if message.method() == method::INITIALIZE => {
                let opening = self.open(&message).map_err(|refusal| refusal.with_id(message.id()))?;
                Ok(self.initialize(message, opening))
            }
            Kind::Request => self.request(message),
            Kind::Notification => {
                let revision = self.revision()?;
                self.authorize(revision, &message)?;
                self.notification(revision, message, cx)?;
                Ok(Posted::Answered(respond::empty(StatusCode::ACCEPTED)))
            }
            Kind::Response if self.is_awaited(message) => Ok(Posted::Answered(respond::empty(StatusCode::ACCEPTED))),
            Kind::Response => Err(Refusal::new(RefusalKind::UnexpectedResponse)),
        }
    }

    /// The revision that governs what is not `initialize`.
    fn revision(&self) -> Result<Revision, Refusal> {
        match &self.session {
            Some(session) => Ok(session.revision()),
            None if self.shared.policy == Sessions::Required => Err(Refusal::new(RefusalKind::SessionRequired)),
            None => legacy::sessionless(self.version, self.shared.gate.revisions),
        }
    }

    /// Whether the application allows it.
    fn authorize(&self, revision: Revision, message: &Message) -> Result<(), Refusal> {
        self.shared.authorize(&self.parts, self.principal.as_ref(), revision, message)
    }

    /// The sender of one of several messages.
    fn caller(&self, revision: Revision) -> Caller {
        Caller {
            revision,
            via: Via::Http(self.parts.clone()),
            principal: self.principal.clone(),
            account: self.account.clone(),
            session: self.session.clone(),
            form: self.form(),
        }
    }

    /// The sender of the only message.
    fn into_caller(self, revision: Revision) -> Caller {
        let form = self.form();
        let Self { parts, principal, account, session, .. } = self;
        Caller { revision, via: Via::Http(parts), principal, account, session, form }
    }

    /// Lets work in that counts for the caller.
    fn ticket(&self) -> Result<Ticket, Refusal> {
        let mut ticket = Ticket::take(&self.shared.server)?;
        ticket.keep_hold(self.account.take_request()?);
        Ok(ticket)
    }

    /// A ping shows that the server lives, however busy it is.
    fn ticket_for(&self, message: &Message) -> Result<Ticket, Refusal> {
        if is_ping(message) { Ticket::take(&self.shared.server) } else { self.ticket() }
    }

    fn form(&self) -> Form {
        Form::of(Accepts::of(&self.parts.headers))
    }

    /// Opens a session, but only for an `initialize` that will be answered with a result.
    fn open(&self, message: &Message) -> Result<Opening, Refusal> {
        if self.session.is_some() {
            return Err(Refusal::new(RefusalKind::AlreadyInitialized));
        }
        let ticket = self.ticket()?;
        let params = InitializeParams::read(message.params());
        let revision = InitializeParams::revision(params.as_ref(), self.shared.gate.revisions)?;
        self.authorize(revision, message)?;
        let session = match params {
            Some(params) if self.shared.policy != Sessions::Off => {
                let client = Client::read(&params)?;
                Some(self.shared.sessions.open(&self.account, self.principal.clone(), revision, client)?)
            }
            _ => None,
        };
        Ok(Opening { revision, session, ticket })
    }

    fn initialize(mut self, message: Message, opening: Opening) -> Posted {
        let Opening { revision, session, ticket } = opening;
        let shared = self.shared;
        self.session = session;
        let call = Arc::new(Call::new(&shared.server, message, self.into_caller(revision)));
        let mut id = None;
        let unannounced = call.session.clone().map(|session| Unannounced { shared, session: Some(session) });
        let drive = Drive::start(&call, ticket, |call| {
            id = unannounced.and_then(Unannounced::announce);
            exchange::answering(call)
        });
        // Answered at once, so that it makes no difference to the work whose it is; but as the session's its stream can
        // be resumed.
        let in_session = call.session.is_some();
        Posted::Exchange { exchange: exchange(Work::one(Subject::One(call), drive), in_session), session: id }
    }

    fn request(self, message: Message) -> Result<Posted, Refusal> {
        let shared = self.shared;
        let admitted = self.revision().and_then(|revision| {
            self.authorize(revision, &message)?;
            Ok((revision, self.ticket_for(&message)?))
        });
        let (revision, ticket) = admitted.map_err(|refusal| refusal.with_id(message.id()))?;
        let call = Arc::new(Call::new(&shared.server, message, self.into_caller(revision)));
        let drive = start(shared, &call, ticket).map_err(|refusal| refusal.with_id(call.message.id()))?;
        let in_session = call.session.is_some();
        Ok(Posted::Exchange { exchange: exchange(Work::one(Subject::One(call), drive), in_session), session: None })
    }

    /// A notification of the connection's life is the transport's; any other the handler hears.
    fn notification(&self, revision: Revision, message: Message, cx: &mut Context<'_>) -> Result<(), Refusal> {
        match message.method() {
            method::CANCELLED => self.cancel(&message),
            method::INITIALIZED => {
                if let Some(session) = &self.session {
                    session.set_initialized();
                }
            }
            _ => {
                let ticket = self.ticket()?;
                exchange::hear(Call::new(&self.shared.server, message, self.caller(revision)), ticket, cx)?;
            }
        }
        Ok(())
    }

    /// Hands a response to the question that waits for it, if any does.
    fn is_awaited(&self, response: Message) -> bool {
        self.session.as_ref().is_some_and(|session| session.waiters().answer(response))
    }

    /// Cancels a request of the session. One that is unknown or has been answered is no error: the two may have
    /// crossed.
    fn cancel(&self, message: &Message) {
        let request = self.session.as_ref().zip(message.cancelled_id());
        if let Some(call) = request.and_then(|(session, id)| session.in_flight().find(&id)) {
            call.cancel_requested(message);
        }
    }

    fn batch(self, batch: envelope::Batch, cx: &mut Context<'_>) -> Result<Posted, Refusal> {
        let revision = self.batch_revision()?;
        legacy::judge_batch(&batch, self.shared.server.limits.batch)?;
        if let Err(refusal) = self.shared.authorize_all(&self.parts, self.principal.as_ref(), revision, &batch) {
            self.settle(batch);
            return Err(refusal);
        }
        let queue = Arc::new(Queue::counted(self.shared.server.limits.queue_bytes, &self.account));
        let mut ids = HashSet::new();
        let mut calls = Vec::new();
        let mut drives = Vec::new();
        for element in batch.elements {
            match self.element(revision, element, &queue, &mut ids, cx) {
                Ok(None) => {}
                Ok(Some((call, drive))) => {
                    calls.push(call);
                    drives.push(drive);
                }
                Err(refusal) => {
                    self.shared.server.observer.refused(&refusal);
                    queue.answer(AnswerFrame { status: StatusCode::OK, frame: refusal_frame(&refusal) });
                }
            }
        }
        if drives.is_empty() && queue.status().is_none() {
            return Ok(Posted::Answered(respond::empty(StatusCode::ACCEPTED)));
        }
        let (form, in_session) = (self.form(), self.session.is_some());
        let batch = Batch { server: Arc::clone(&self.shared.server), form, queue, calls, session: self.session };
        let exchange = exchange(Work::batch(Arc::new(batch), drives), in_session);
        Ok(Posted::Exchange { exchange, session: None })
    }

    /// What a batch that is refused brings to its end all the same: its client may never send it again.
    fn settle(&self, batch: envelope::Batch) {
        for message in batch.elements.into_iter().flatten().filter(Message::settles) {
            if message.kind == Kind::Response {
                self.is_awaited(message);
            } else {
                self.cancel(&message);
            }
        }
    }

    /// Batches are part of 2025-03-26 alone: of a session that negotiated it, or of a request that belongs to none and
    /// names no other.
    fn batch_revision(&self) -> Result<Revision, Refusal> {
        match self.revision()? {
            revision if revision.has_batches() => Ok(revision),
            _ => Err(Refusal::new(RefusalKind::BatchNotAllowed)),
        }
    }

    /// One element: a call at work, or nothing to wait for.
    fn element(
        &self,
        revision: Revision,
        element: Result<Message, BodyFault>,
        queue: &Arc<Queue>,
        ids: &mut HashSet<String>,
        cx: &mut Context<'_>,
    ) -> Result<Option<(Arc<Call>, Drive)>, Refusal> {
        let message = element?;
        match message.kind {
            Kind::Notification => self.notification(revision, message, cx).map(|()| None),
            // One that nobody waits for is dropped: the batch has no place to say so.
            Kind::Response => {
                self.is_awaited(message);
                Ok(None)
            }
            Kind::Request => {
                let id = message.id();
                // In a session its requests in flight say so too; without one nothing else does.
                if !id.as_ref().is_some_and(|id| ids.insert(id.canonical())) {
                    return Err(Refusal::new(RefusalKind::DuplicateId).with_id(id));
                }
                let call = Arc::new(Call::in_batch(&self.shared.server, message, self.caller(revision), queue));
                self.element_request(&call).map(|drive| Some((call, drive))).map_err(|refusal| refusal.with_id(id))
            }
        }
    }

    fn element_request(&self, call: &Arc<Call>) -> Result<Drive, Refusal> {
        legacy::judge_element(&call.message)?;
        start(self.shared, call, self.ticket_for(&call.message)?)
    }
}

/// A session that the application has yet to hear of. Dropped before that, there is none: a hook panicked, and
/// `initialize` fails with it.
struct Unannounced<'a> {
    shared: &'a Shared,
    session: Option<Arc<SessionState>>,
}

impl Unannounced<'_> {
    /// Lets the application hear of it, and returns its id.
    fn announce(mut self) -> Option<HeaderValue> {
        self.session.iter().for_each(|session| self.shared.sessions.announce(session));
        self.session.take().and_then(|session| HeaderValue::from_str(session.id()).ok())
    }
}

impl Drop for Unannounced<'_> {
    fn drop(&mut self) {
        self.session.iter().for_each(|session| self.shared.sessions.forget(session));
    }
}

/// Starts a call, in its session where it has one.
fn start(shared: &Shared, call: &Arc<Call>, mut ticket: Ticket) -> Result<Drive, Refusal> {
    if let Some(session) = &call.session {
        let most = if is_ping(&call.message) { usize::MAX } else { shared.server.limits.in_flight };
        ticket.keep_lease(Lease::take(session, call, most)?);
    }
    Ok(Drive::start(call, ticket, |call| shared.parameters.answering(call)))
}

fn is_ping(message: &Message) -> bool {
    message.method() == method::PING
}

/// What is done in a session is the session's; anything else ends with its exchange.
fn exchange(work: Work, in_session: bool) -> Exchange {
    if in_session { Exchange::Detached(Detached::new(work)) } else { Exchange::Attached(Attached::new(work)) }
}
