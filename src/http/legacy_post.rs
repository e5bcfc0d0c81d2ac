//! A POST of the handshake era, after its version is judged: session, `initialize`, batch, id.

use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, request};
use serde::Deserialize;

use super::post::{Exchange, Posted};
use super::respond;
use super::service::{Sessions, Shared};
use crate::exchange::answer::refusal_frame;
use crate::exchange::call::{Call, Caller, Form};
use crate::exchange::lifecycle::Ticket;
use crate::exchange::queue::{Queue, Reply};
use crate::exchange::subject::{Batch, Subject};
use crate::exchange::{self, Attached, Detached, Drive, InitializeParams, Work};
use crate::principal::Principal;
use crate::protocol::accept::Accepts;
use crate::protocol::envelope::{self, Body, BodyFault, Kind, Message, RequestId};
use crate::protocol::legacy::{self, Headers};
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;
use crate::session::{Client, Lease, SessionState};

/// Bytes of client info and capabilities that a session keeps.
const MOST_CLIENT_BYTES: usize = 64 << 10;

/// A legacy POST and what its head says.
struct Post<'a> {
    shared: &'a Arc<Shared>,
    parts: request::Parts,
    principal: Option<Principal>,
    version: Option<Revision>,
    session: Option<Arc<SessionState>>,
}

/// Judges a legacy body and sets to work what it asks.
pub(super) fn post(
    shared: &Arc<Shared>,
    parts: request::Parts,
    body: Body,
    cx: &mut Context<'_>,
) -> Result<Posted, Refusal> {
    let id = match &body {
        Body::Message(message) if message.kind == Kind::Request => message.id(),
        _ => None,
    };
    judge(shared, parts, body, cx).map_err(|refusal| refusal.with_id(id))
}

fn judge(shared: &Arc<Shared>, parts: request::Parts, body: Body, cx: &mut Context<'_>) -> Result<Posted, Refusal> {
    let principal = shared.principal(&parts);
    let Headers { version, session } = Headers::read(&parts.headers, shared.gate.revisions)?;
    let session = session.map(|id| shared.sessions.find(id, principal.as_ref())).transpose()?;
    let post = Post { shared, principal, version, session, parts };
    match body {
        Body::Message(message) => post.message(message, cx),
        Body::Batch(batch) => post.batch(batch, cx),
    }
}

impl Post<'_> {
    fn message(self, message: Message, cx: &mut Context<'_>) -> Result<Posted, Refusal> {
        match message.kind {
            Kind::Request if message.method() == method::INITIALIZE => self.initialize(message),
            Kind::Request => self.request(message),
            Kind::Notification => {
                let revision = self.revision()?;
                self.notification(revision, message, cx)?;
                Ok(Posted::Answered(respond::empty(StatusCode::ACCEPTED)))
            }
            // Whoever asks its client a question waits here; nobody does yet.
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

    fn caller(&self, revision: Revision) -> Caller {
        Caller {
            revision,
            http: self.parts.clone(),
            principal: self.principal.clone(),
            session: self.session.clone(),
            form: Form::of(Accepts::of(&self.parts.headers)),
        }
    }

    /// Opens a session, but only for an `initialize` that will be answered with a result.
    fn initialize(mut self, message: Message) -> Result<Posted, Refusal> {
        if self.session.is_some() {
            return Err(Refusal::because(RefusalKind::AlreadyInitialized, "This session has been initialized already"));
        }
        let ticket = Ticket::take(&self.shared.server)?;
        let params = InitializeParams::read(message.params());
        let asked = params.as_ref().map_or("", |params| params.protocol_version.as_str());
        let revision = legacy::negotiate(asked, self.shared.gate.revisions)
            .ok_or_else(|| Refusal::new(RefusalKind::EraNotServed))?;
        if let Some(params) = params.filter(|_| self.shared.policy != Sessions::Off) {
            let client = client(&params)?;
            self.session = Some(self.shared.sessions.open(self.principal.clone(), revision, client)?);
        }
        let session = self.session.as_ref().and_then(|session| HeaderValue::from_str(session.id()).ok());
        let call = Arc::new(Call::new(&self.shared.server, message, self.caller(revision)));
        let drive = Drive::start(&call, ticket, exchange::answering);
        let exchange = Exchange::Attached(Attached::new(Work::one(Subject::One(call), drive)));
        Ok(Posted::Exchange { exchange, session })
    }

    fn request(self, message: Message) -> Result<Posted, Refusal> {
        let revision = self.revision()?;
        let ticket = Ticket::take(&self.shared.server)?;
        let call = Arc::new(Call::new(&self.shared.server, message, self.caller(revision)));
        let drive = self.start(&call, ticket)?;
        Ok(self.exchange(Work::one(Subject::One(call), drive)))
    }

    /// Starts a call, in its session where it has one.
    fn start(&self, call: &Arc<Call>, mut ticket: Ticket) -> Result<Drive, Refusal> {
        if let Some(session) = &self.session {
            ticket.hold(Lease::take(session, call, self.most_in_flight(call))?);
        }
        Ok(Drive::start(call, ticket, |call| self.shared.parameters.answering(call)))
    }

    /// A ping shows that the server lives, however busy it is.
    fn most_in_flight(&self, call: &Call) -> usize {
        if call.message.method() == method::PING { usize::MAX } else { self.shared.server.limits.in_flight }
    }

    fn exchange(&self, work: Work) -> Posted {
        let exchange = match self.session {
            Some(_) => Exchange::Detached(Detached::new(work)),
            None => Exchange::Attached(Attached::new(work)),
        };
        Posted::Exchange { exchange, session: None }
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
                let ticket = Ticket::take(&self.shared.server)?;
                exchange::hear(Call::new(&self.shared.server, message, self.caller(revision)), ticket, cx);
            }
        }
        Ok(())
    }

    /// Cancels a request of the session. One that is unknown or has been answered is no error: the two may have crossed.
    fn cancel(&self, message: &Message) {
        #[derive(Deserialize)]
        struct Params {
            reason: Option<String>,
        }
        let request = self.session.as_ref().zip(cancelled_id(message));
        if let Some(call) = request.and_then(|(session, id)| session.in_flight().find(&id)) {
            let params = message.params().and_then(|json| serde_json::from_slice::<Params>(json).ok());
            call.cancel_requested(params.and_then(|params| params.reason));
        }
    }

    fn batch(self, batch: envelope::Batch, cx: &mut Context<'_>) -> Result<Posted, Refusal> {
        let revision = self.batch_revision()?;
        if batch.is_empty() {
            return Err(Refusal::because(RefusalKind::Shape, "A batch has at least one message"));
        }
        let most = self.shared.server.limits.batch;
        if batch.len > most {
            return Err(Refusal::because(RefusalKind::Shape, format!("A batch has at most {most} messages")));
        }
        let ticket = Ticket::take(&self.shared.server)?;
        let queue = Arc::new(Queue::new(self.shared.server.limits.queue_bytes));
        let mut calls = Vec::new();
        let mut drives = Vec::new();
        let mut is_quiet = true;
        for element in batch.elements {
            match self.element(revision, element, &queue, cx) {
                Ok(None) => {}
                Ok(Some((call, drive))) => {
                    calls.push(call);
                    drives.push(drive);
                    is_quiet = false;
                }
                Err(refusal) => {
                    self.shared.server.observer.refused(&refusal);
                    queue.answer(Reply { status: StatusCode::OK, frame: refusal_frame(&refusal) });
                    is_quiet = false;
                }
            }
        }
        drop(ticket);
        if is_quiet {
            return Ok(Posted::Answered(respond::empty(StatusCode::ACCEPTED)));
        }
        let form = Form::of(Accepts::of(&self.parts.headers));
        let batch = Batch { server: Arc::clone(&self.shared.server), form, queue, calls };
        Ok(self.exchange(Work::batch(Arc::new(batch), drives)))
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
        cx: &mut Context<'_>,
    ) -> Result<Option<(Arc<Call>, Drive)>, Refusal> {
        let message = element?;
        match message.kind {
            Kind::Notification => self.notification(revision, message, cx).map(|()| None),
            // One that nobody waits for is dropped: the batch has no place to say so.
            Kind::Response => Ok(None),
            Kind::Request => {
                let id = message.id();
                let call = Arc::new(Call::in_batch(&self.shared.server, message, self.caller(revision), queue));
                self.element_request(&call).map(|drive| Some((call, drive))).map_err(|refusal| refusal.with_id(id))
            }
        }
    }

    fn element_request(&self, call: &Arc<Call>) -> Result<Drive, Refusal> {
        if call.message.method() == method::INITIALIZE {
            return Err(Refusal::because(RefusalKind::Shape, "initialize must not be part of a batch"));
        }
        self.start(call, Ticket::take(&self.shared.server)?)
    }
}

/// `params.requestId`.
fn cancelled_id(message: &Message) -> Option<RequestId> {
    message.request_id()
}

/// What a session keeps of its client. Copied, so that the body can go.
fn client(params: &InitializeParams) -> Result<Client, Refusal> {
    let client = Client {
        info: params.client_info.as_ref().map(|info| Bytes::copy_from_slice(info.get().as_bytes())),
        capabilities: Bytes::copy_from_slice(params.capabilities.get().as_bytes()),
    };
    let bytes = client.capabilities.len() + client.info.as_ref().map_or(0, Bytes::len);
    if bytes > MOST_CLIENT_BYTES {
        return Err(Refusal::because(RefusalKind::Shape, "clientInfo and capabilities exceed 64 KiB"));
    }
    Ok(client)
}
