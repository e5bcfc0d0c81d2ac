//! A GET that asks for the rest of a stream (2025-03-26 to 2025-11-25, "Resumability and Redelivery").

use std::sync::Arc;

use http::request;

use super::body::ResponseBody;
use super::general::{GeneralStream, refused};
use super::service::Shared;
use crate::admission::Hold;
use crate::exchange::DetachedStream;
use crate::protocol::mirror::{self, Mirrored};
use crate::protocol::names::header;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::session::{Kept, SessionState};
use crate::store::{EventId, Found};

/// What `Last-Event-ID` says. An empty one says nothing: so begins whoever has read no id (HTML, "Server-sent events").
pub(super) fn last_event_id(parts: &request::Parts) -> Option<Mirrored<'_>> {
    let id = mirror::single(&parts.headers, &header::LAST_EVENT_ID);
    (!matches!(id, Mirrored::Missing | Mirrored::Value(""))).then_some(id)
}

/// Opens what a GET reads: the rest of the stream that its `Last-Event-ID` is of, or the general stream of its session.
pub(super) fn open(
    shared: &Shared,
    session: &Arc<SessionState>,
    parts: &request::Parts,
    hold: Hold,
) -> Result<ResponseBody, Refusal> {
    match session.kept().zip(last_event_id(parts)) {
        Some((kept, id)) => resume(shared, session, kept, parts, &id, hold),
        None => GeneralStream::open(shared, session, hold).map(|stream| ResponseBody::general(stream.ending(parts))),
    }
}

fn resume(
    shared: &Shared,
    session: &Arc<SessionState>,
    kept: &Kept,
    parts: &request::Parts,
    id: &Mirrored<'_>,
    hold: Hold,
) -> Result<ResponseBody, Refusal> {
    let unknown = || refused(session, RefusalKind::UnknownEvent);
    let id = match id {
        Mirrored::Value(id) => EventId::read(id.as_bytes()),
        Mirrored::Missing | Mirrored::Twice | Mirrored::Bytes => None,
    };
    let id = id.ok_or_else(unknown)?;
    let general = |stream: GeneralStream| ResponseBody::general(stream.ending(parts));
    match kept.log.find(id.stream).ok_or_else(unknown)? {
        Found::General => GeneralStream::resume(shared, session, (kept, id.number), hold).map(general),
        Found::Answer(queue) => match queue.resume(id.number).map_err(|_| unknown())? {
            Some(turn) => {
                let stream = DetachedStream::resume(&shared.server, session, (queue, turn), hold);
                Ok(ResponseBody::detached(stream))
            }
            // Clients exist that open their general stream with the id of the last answer they read.
            None => GeneralStream::open(shared, session, hold).map(general),
        },
    }
}
