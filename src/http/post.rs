//! A POST whose body has been read: its shape, its era, and what that asks of it.

use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use http::{Response, StatusCode, request};

use super::body::ResponseBody;
use super::respond;
use super::service::Shared;
use crate::exchange::call::{Call, Form};
use crate::exchange::lifecycle::Ticket;
use crate::exchange::{self, Exchange, InitializeParams};
use crate::protocol::accept::Accepts;
use crate::protocol::classify;
use crate::protocol::envelope::{self, Body, Kind, Message};
use crate::protocol::legacy::{self, Headers};
use crate::protocol::modern;
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::{Era, Revision};
use crate::protocol::scan::Caps;

/// What becomes of a POST.
pub(super) enum Posted {
    /// It is answered.
    Answered(Response<ResponseBody>),
    /// It is being answered.
    Exchange(Exchange),
}

/// A message that has passed the ladder.
struct Admitted {
    message: Message,
    revision: Revision,
}

/// Judges a body and sets to work what it asks.
pub(super) fn post(shared: &Arc<Shared>, parts: request::Parts, bytes: Bytes, cx: &mut Context<'_>) -> Posted {
    let admitted = Ticket::take(&shared.server).and_then(|ticket| Ok((judge(shared, &parts, bytes)?, ticket)));
    match admitted {
        Ok((admitted, ticket)) => take(shared, parts, admitted, ticket, cx),
        Err(refusal) => Posted::Answered(respond::refuse(shared, &refusal)),
    }
}

fn judge(shared: &Shared, parts: &request::Parts, bytes: Bytes) -> Result<Admitted, Refusal> {
    let caps = Caps { nesting: shared.server.limits.nesting, ..Caps::default() };
    let body = envelope::read(bytes, caps)?;
    let served = shared.gate.revisions;
    match classify::era(&parts.headers, classify::claims(&body)) {
        Era::Modern => {
            let modern::Admitted { revision, message } =
                modern::judge(&parts.headers, body, served, |method| shared.name_source(method))?;
            Ok(Admitted { message, revision })
        }
        Era::Legacy if served.serves(Era::Legacy) => judge_legacy(shared, parts, body),
        Era::Legacy => Err(legacy::not_served(&parts.headers, &body, served)),
    }
}

/// The legacy order: version, session, batch. Batches come with sessions.
fn judge_legacy(shared: &Shared, parts: &request::Parts, body: Body) -> Result<Admitted, Refusal> {
    let id = body.request_id();
    judge_legacy_message(shared, parts, body).map_err(|refusal| refusal.with_id(id))
}

fn judge_legacy_message(shared: &Shared, parts: &request::Parts, body: Body) -> Result<Admitted, Refusal> {
    let served = shared.gate.revisions;
    let headers = Headers::read(&parts.headers, served)?;
    if headers.session.is_some() {
        return Err(Refusal::new(RefusalKind::UnknownSession));
    }
    let Body::Message(message) = body else {
        return Err(Refusal::new(RefusalKind::BatchNotAllowed));
    };
    let revision = match message.kind {
        Kind::Response => return Err(Refusal::new(RefusalKind::UnexpectedResponse)),
        Kind::Request if message.method() == method::INITIALIZE => {
            let asked = InitializeParams::read(message.params());
            let asked = asked.map(|params| params.protocol_version).unwrap_or_default();
            legacy::negotiate(&asked, served).ok_or_else(|| Refusal::new(RefusalKind::EraNotServed))?
        }
        Kind::Request | Kind::Notification => legacy::sessionless(headers.version, served)?,
    };
    Ok(Admitted { message, revision })
}

fn take(
    shared: &Arc<Shared>,
    parts: request::Parts,
    admitted: Admitted,
    ticket: Ticket,
    cx: &mut Context<'_>,
) -> Posted {
    let Admitted { message, revision } = admitted;
    let form = Form::of(Accepts::of(&parts.headers));
    let principal = shared.principal.as_ref().and_then(|principal| principal(&parts));
    let kind = message.kind;
    let call = Call::new(Arc::clone(&shared.server), message, revision, parts, principal, form);
    if kind == Kind::Notification {
        exchange::hear(call, ticket, cx);
        return Posted::Answered(respond::empty(StatusCode::ACCEPTED));
    }
    Posted::Exchange(Exchange::start(Arc::new(call), ticket, |call| shared.parameters.answering(call)))
}
