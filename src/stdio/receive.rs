//! A line that was read: what it says, and what becomes of it.

use std::sync::Arc;
use std::task::Context;

use super::connection::Connection;
use super::lines::Line;
use super::owed::{Answering, Owed};
use super::{hooks, listen};
use crate::exchange::call::{Call, Form};
use crate::exchange::lifecycle::Ticket;
use crate::exchange::{self, Drive};
use crate::panics::caught;
use crate::protocol::classify;
use crate::protocol::envelope::{self, Body, BodyFault, Kind, Message};
use crate::protocol::ground::Ground;
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::scan::Caps;
use crate::protocol::{legacy, modern};

/// Replies to a run of lines that are no messages. What follows them in the run gets none.
const MOST_IN_A_RUN: usize = 3;

/// Takes the lines of one stream in their order.
pub(super) struct Receiver {
    pub(super) connection: Arc<Connection>,
    /// How many lines in a row were no messages.
    run: usize,
}

impl Receiver {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, run: 0 }
    }

    /// Takes a line. What is the application's may panic, and costs no more than this line.
    pub(super) fn take(&mut self, line: Line, cx: &mut Context<'_>) {
        let _ = caught(|| self.receive(line, cx));
    }

    fn receive(&mut self, line: Line, cx: &mut Context<'_>) {
        let limits = &self.connection.server.limits;
        let text = match line {
            Line::Whole(text) if text.trim_ascii().is_empty() => return,
            Line::Whole(text) => text,
            Line::TooLong => {
                let reason = format!("A line has at most {} bytes", limits.body_bytes);
                return self.garbage(&Refusal::because(RefusalKind::Syntax, reason).on(Ground::LineBytes));
            }
        };
        let caps = Caps { nesting: limits.nesting, elements: limits.batch };
        let (text, has_room) = match self.connection.count(text) {
            Ok(text) => (text, true),
            Err(text) => (text, false),
        };
        match envelope::read(text, caps) {
            Ok(body) if !has_room && !body.settles() => self.no_room(&body),
            Ok(Body::Message(message)) => {
                self.run = 0;
                self.message(message, cx);
            }
            Ok(Body::Batch(batch)) => match self.batch(batch, cx) {
                Ok(()) => self.run = 0,
                Err(refusal) => self.garbage(&refusal),
            },
            Err(fault) => self.broken(fault),
        }
    }

    /// A line for which there is no room beside those that are held. Answers and cancellations are taken all the same:
    /// they make room.
    fn no_room(&self, body: &Body) {
        let refusal = Refusal::new(RefusalKind::Overloaded).on(Ground::Limit("Limits::body_bytes_in_all"));
        match body {
            Body::Message(message) if message.kind == Kind::Notification => {
                self.connection.server.observer.refused(&refusal);
            }
            Body::Message(_) | Body::Batch(_) => {
                let id = body.request_id();
                let text = id.as_ref().map(|id| id.as_str().as_bytes());
                self.connection.refuse(&refusal.with_id(id.clone()), text);
            }
        }
    }

    /// A text that is no message. Whoever meant to ask is answered; whoever meant to tell or to answer is not.
    fn broken(&mut self, fault: BodyFault) {
        let meant = fault.meant;
        let refusal = Refusal::from(fault);
        match (meant, refusal.id()) {
            (Some(Kind::Notification | Kind::Response), _) => self.connection.server.observer.refused(&refusal),
            (_, Some(id)) => self.connection.refuse(&refusal, Some(id.as_str().as_bytes())),
            (_, None) => self.garbage(&refusal),
        }
    }

    /// A line that says nothing by which it could be answered.
    fn garbage(&mut self, refusal: &Refusal) {
        self.run = self.run.saturating_add(1);
        if self.run <= MOST_IN_A_RUN {
            self.connection.refuse(refusal, None);
        } else {
            self.connection.server.observer.refused(refusal);
        }
    }

    fn message(&self, message: Message, cx: &mut Context<'_>) {
        match message.kind {
            Kind::Request => self.request(message, cx),
            Kind::Notification => {
                if let Err(refusal) = self.notification(message) {
                    self.connection.server.observer.refused(&refusal);
                }
            }
            Kind::Response => self.response(message),
        }
    }

    /// Hands a response to the question that waits for it. One that nobody waits for is dropped.
    pub(super) fn response(&self, response: Message) {
        if let Some(session) = self.connection.session() {
            session.waiters().answer(response);
        }
    }

    fn request(&self, message: Message, cx: &mut Context<'_>) {
        let id = message.id();
        let result = match classify::era_of(&message) {
            Era::Modern => self.modern(message, cx),
            Era::Legacy => self.legacy(message, cx),
        };
        if let Err(refusal) = result {
            let text = id.as_ref().map(|id| id.as_str().as_bytes());
            self.connection.refuse(&refusal.with_id(id.clone()), text);
        }
    }

    /// A request of 2026-07-28. It takes nothing from a handshake on the same stream.
    fn modern(&self, message: Message, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let revision = modern::judge_line(&message, self.connection.server.revisions)?;
        if message.method() == method::LISTEN {
            let ticket = Ticket::take(&self.connection.server)?;
            // The stream of a subscription carries changes and nothing else.
            return listen::start(
                &self.connection,
                self.connection.call(message, revision, None, Form::JsonOnly),
                ticket,
            );
        }
        let (drive, owed) = self.start(&self.connection.call(message, revision, None, Form::JsonFirst))?;
        Answering::new(drive, owed).run(cx);
        Ok(())
    }

    fn legacy(&self, message: Message, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let served = self.connection.server.revisions;
        if !served.serves(Era::Legacy) {
            return Err(legacy::line_not_served(&message, served));
        }
        if message.method() == method::INITIALIZE {
            return self.initialize(message, cx);
        }
        let revision = self.revision()?;
        let (drive, owed) = self.start(&self.legacy_call(message, revision))?;
        Answering::new(drive, owed).run(cx);
        Ok(())
    }

    /// The revision of what makes no claim.
    pub(super) fn revision(&self) -> Result<Revision, Refusal> {
        match self.connection.session() {
            Some(session) => Ok(session.revision()),
            None => legacy::before_initialize(self.connection.server.revisions),
        }
    }

    pub(super) fn legacy_call(&self, message: Message, revision: Revision) -> Arc<Call> {
        self.connection.call(message, revision, self.connection.session().cloned(), Form::JsonFirst)
    }

    pub(super) fn start(&self, call: &Arc<Call>) -> Result<(Drive, Owed), Refusal> {
        let ticket = Ticket::take(&self.connection.server)?;
        let owed = Owed::take(&self.connection, call)?;
        Ok((Drive::start(call, ticket, exchange::answering), owed))
    }

    /// A notification: of the connection's life it is the transport's, any other the handler hears.
    pub(super) fn notification(&self, message: Message) -> Result<(), Refusal> {
        let connection = &self.connection;
        let era = classify::era_of(&message);
        match (era, message.method()) {
            (_, method::CANCELLED) => self.cancel(&message),
            (Era::Legacy, method::INITIALIZED) => {
                if let Some(session) = connection.session() {
                    session.set_initialized();
                }
            }
            (Era::Legacy, _) => {
                let call = self.legacy_call(message, self.revision()?);
                hooks::hear(connection, call, Ticket::take(&connection.server)?)?;
            }
            (Era::Modern, _) => {
                let revision = modern::claimed(&message, connection.server.revisions)?;
                // Nothing is sent in answer to a notification of this era.
                let call = connection.call(message, revision, None, Form::JsonOnly);
                hooks::hear(connection, call, Ticket::take(&connection.server)?)?;
            }
        }
        Ok(())
    }

    /// Cancels a request. One that is unknown or has been answered is no error: the two may have crossed.
    fn cancel(&self, message: &Message) {
        if let Some(call) = message.cancelled_id().and_then(|id| self.connection.in_flight.find(&id)) {
            call.cancel_requested(message);
        }
    }
}
