//! What only clients up to 2025-11-25 do on a byte stream: `initialize`, and batches.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::Context;

use super::listen;
use super::owed::{Answering, BatchAnswering, Owed};
use super::receive::Receiver;
use crate::exchange::call::Form;
use crate::exchange::lifecycle::Ticket;
use crate::exchange::{self, Drive};
use crate::protocol::envelope::{self, BodyFault, Kind, Message};
use crate::protocol::initialize::InitializeParams;
use crate::protocol::legacy;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;
use crate::protocol::sse::Frame;
use crate::session::{Client, SessionState, announce, mint};

impl Receiver {
    /// Opens the session that the stream is from now on, but only for an `initialize` that is answered with a result.
    pub(super) fn initialize(&self, message: Message, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let connection = &self.connection;
        if connection.session().is_some() {
            return Err(Refusal::new(RefusalKind::AlreadyInitialized));
        }
        let ticket = Ticket::take(&connection.server)?;
        let (revision, session) = self.opening(&message)?;
        let call = connection.call(message, revision, session, Form::JsonFirst);
        let owed = Owed::take(connection, &call)?;
        let mut opened = None;
        let drive = Drive::start(&call, ticket, |call| {
            call.session.iter().for_each(|session| announce(&connection.server, session));
            opened = call.session.clone();
            exchange::answering(call)
        });
        // Not where the hook panicked: `initialize` fails with it.
        if let Some(session) = &opened {
            connection.open(Arc::clone(session));
        }
        Answering::new(drive, owed).run(cx);
        if let Some(session) = &opened {
            listen::forward(connection, session);
        }
        Ok(())
    }

    /// The revision `initialize` is answered in, and the session it opens.
    fn opening(&self, message: &Message) -> Result<(Revision, Option<Arc<SessionState>>), Refusal> {
        let params = InitializeParams::read(message.params());
        let revision = InitializeParams::revision(params.as_ref(), self.connection.server.revisions)?;
        let session = match params {
            Some(params) => {
                let (id, principal) = (mint()?, self.connection.principal().cloned());
                Some(Arc::new(SessionState::new(id, principal, revision, Client::read(&params)?)))
            }
            None => None,
        };
        Ok((revision, session))
    }

    /// A batch: its messages run at once, its answers leave as one array.
    pub(super) fn batch(&self, batch: envelope::Batch, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let revision = self.batch_revision(&batch)?;
        legacy::judge_batch(&batch, self.connection.server.limits.batch)?;
        let mut ids = HashSet::new();
        let mut answering = BatchAnswering::new(&self.connection);
        for element in batch.elements {
            if let Err(frame) = self.element(revision, element, &mut ids, &mut answering) {
                answering.answer(&frame);
            }
        }
        answering.run(cx);
        Ok(())
    }

    /// Batches are part of 2025-03-26 alone; before `initialize` they count as of it.
    fn batch_revision(&self, batch: &envelope::Batch) -> Result<Revision, Refusal> {
        let revision = match self.connection.session() {
            Some(session) => session.revision(),
            None => Revision::V2025_03_26,
        };
        let is_served = self.connection.server.revisions.contains(revision);
        if batch.claims_modern() || !revision.has_batches() || !is_served {
            return Err(Refusal::new(RefusalKind::BatchNotAllowed));
        }
        Ok(revision)
    }

    /// Sets an element to work, or says what is answered in its place.
    fn element(
        &self,
        revision: Revision,
        element: Result<Message, BodyFault>,
        ids: &mut HashSet<String>,
        answering: &mut BatchAnswering,
    ) -> Result<(), Frame> {
        let message = match element {
            Ok(message) => message,
            Err(fault) => return self.broken_element(fault),
        };
        match message.kind {
            Kind::Notification => {
                if let Err(refusal) = self.notification(message) {
                    self.connection.server.observer.refused(&refusal);
                }
            }
            Kind::Response => self.response(message),
            Kind::Request => {
                let id = message.id();
                match self.element_request(revision, message, ids) {
                    Ok((drive, owed)) => answering.push(drive, owed),
                    Err(refusal) => {
                        let text = id.as_ref().map(|id| id.as_str().as_bytes());
                        return Err(self.connection.refusal(&refusal.with_id(id.clone()), text));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whoever meant to tell or to answer is not answered.
    fn broken_element(&self, fault: BodyFault) -> Result<(), Frame> {
        let (meant, id) = (fault.meant, fault.id.clone());
        let frame = self.connection.refusal(&Refusal::from(fault), id.as_ref().map(|id| id.as_str().as_bytes()));
        if matches!(meant, Some(Kind::Notification | Kind::Response)) { Ok(()) } else { Err(frame) }
    }

    fn element_request(
        &self,
        revision: Revision,
        message: Message,
        ids: &mut HashSet<String>,
    ) -> Result<(Drive, Owed), Refusal> {
        // One that is answered already is free again, but not in the same batch.
        if !message.id().is_some_and(|id| ids.insert(id.canonical())) {
            return Err(Refusal::new(RefusalKind::DuplicateId));
        }
        legacy::judge_element(&message)?;
        self.start(&self.legacy_call(message, revision))
    }
}
