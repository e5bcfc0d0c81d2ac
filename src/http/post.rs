//! A POST whose body has been read: its shape, its era, and what that asks of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, request};

use super::body::ResponseBody;
use super::legacy_post;
use super::listen::Listening;
use super::respond;
use super::service::Shared;
use crate::exchange::call::{Call, Caller, Form, Via};
use crate::exchange::lifecycle::Ticket;
use crate::exchange::subject::Subject;
use crate::exchange::{self, Answer, Attached, Detached, Drive, Work};
use crate::protocol::accept::Accepts;
use crate::protocol::classify;
use crate::protocol::envelope::{self, Body, Kind};
use crate::protocol::legacy;
use crate::protocol::modern::{self, Admitted};
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Era;
use crate::protocol::scan::Caps;

/// What becomes of a POST.
pub(super) enum Posted {
    /// It is answered.
    Answered(Response<ResponseBody>),
    /// It is being answered, and may have opened a session.
    Exchange { exchange: Exchange, session: Option<HeaderValue> },
    /// It will listen.
    Listening(Listening),
}

/// Whose the work on an answer is.
pub(super) enum Exchange {
    Attached(Attached),
    Detached(Detached),
}

impl Exchange {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        match self {
            Self::Attached(exchange) => Pin::new(exchange).poll(cx),
            Self::Detached(exchange) => Pin::new(exchange).poll(cx),
        }
    }
}

/// Judges a body and sets to work what it asks.
pub(super) fn post(shared: &Arc<Shared>, parts: request::Parts, bytes: Bytes, cx: &mut Context<'_>) -> Posted {
    judge(shared, parts, bytes, cx).unwrap_or_else(|refusal| Posted::Answered(respond::refuse(shared, &refusal)))
}

fn judge(shared: &Arc<Shared>, parts: request::Parts, bytes: Bytes, cx: &mut Context<'_>) -> Result<Posted, Refusal> {
    let limits = &shared.server.limits;
    let body = envelope::read(bytes, Caps { nesting: limits.nesting, elements: limits.batch });
    if shared.server.lifecycle.is_draining() && !body.as_ref().is_ok_and(Body::settles) {
        return Err(Refusal::new(RefusalKind::Draining));
    }
    let body = body?;
    let served = shared.gate.revisions;
    match classify::era(&parts.headers, classify::claims(&body)) {
        Era::Modern => {
            let ticket = Ticket::take(&shared.server)?;
            let admitted = modern::judge(&parts.headers, body, served, |method| shared.name_source(method))?;
            modern_post(shared, parts, admitted, ticket, cx)
        }
        Era::Legacy if served.serves(Era::Legacy) => legacy_post::post(shared, parts, body, cx),
        Era::Legacy => Err(legacy::not_served(&parts.headers, &body, served)),
    }
}

fn modern_post(
    shared: &Arc<Shared>,
    parts: request::Parts,
    admitted: Admitted,
    mut ticket: Ticket,
    cx: &mut Context<'_>,
) -> Result<Posted, Refusal> {
    let Admitted { message, revision } = admitted;
    let principal = shared.principal(&parts)?;
    let account = shared.account(&parts, principal.as_ref())?;
    let with_id = |refusal: Refusal| refusal.with_id(message.id());
    shared.authorize(&parts, principal.as_ref(), revision, &message).map_err(with_id)?;
    // `server/discover` is answered at once, and never refused: whoever asks what the server speaks would take a 429 for
    // a server that speaks nothing newer than 2025-11-25, and remember it. Nor is what ends something.
    if message.method() != method::DISCOVER && !message.settles() {
        ticket.keep_hold(account.take_request().map_err(|full| with_id(full.into()))?);
    }
    let caller = Caller {
        revision,
        principal,
        account,
        session: None,
        form: Form::of(Accepts::of(&parts.headers)),
        via: Via::Http(parts),
    };
    if message.kind == Kind::Notification {
        // `notifications/cancelled` too: over HTTP the end of the exchange cancels, and another caller may use the same
        // id.
        exchange::hear(Call::new(&shared.server, message, caller), ticket, cx)?;
        return Ok(Posted::Answered(respond::empty(StatusCode::ACCEPTED)));
    }
    let call = Arc::new(Call::new(&shared.server, message, caller));
    if call.message.method() == method::LISTEN {
        let id = call.message.id();
        let listening = Listening::start(call, ticket, &shared.hub).map_err(|refusal| refusal.with_id(id))?;
        return Ok(Posted::Listening(listening));
    }
    let drive = Drive::start(&call, ticket, |call| shared.parameters.answering(call));
    let exchange = Exchange::Attached(Attached::new(Work::one(Subject::One(call), drive)));
    Ok(Posted::Exchange { exchange, session: None })
}
