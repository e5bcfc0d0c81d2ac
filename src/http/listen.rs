//! `subscriptions/listen` of 2026-07-28: a stream of the changes its client asked for, until either side ends it.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode};

use super::body::ResponseBody;
use super::ends::Ends;
use super::respond;
use crate::exchange::Answer;
use crate::exchange::answer::Finished;
use crate::exchange::call::{Call, Form};
use crate::exchange::keep_alive::KeepAlive;
use crate::exchange::lifecycle::{OpenStream, Ticket};
use crate::exchange::listening::{Decided, Granting};
use crate::protocol::accept;
use crate::protocol::refusal::Refusal;
use crate::protocol::sse::Frame;
use crate::subscribe::{Hub, Place};

/// A listener whose grant is being made.
pub(super) struct Listening {
    call: Arc<Call>,
    /// Gone once it is made.
    granting: Option<Granting>,
}

impl Listening {
    /// Judges what is asked for and takes a place.
    pub(super) fn start(call: Arc<Call>, ticket: Ticket, hub: &Arc<Hub>) -> Result<Self, Refusal> {
        if call.form == Form::JsonOnly {
            return Err(accept::stream_not_accepted());
        }
        let granting = Granting::start(Arc::clone(&call), ticket, hub)?;
        Ok(Self { call, granting: Some(granting) })
    }

    /// Ready once the handler has decided: with the stream, its acknowledgement first, or with an error.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Response<ResponseBody>> {
        let Some(granting) = &mut self.granting else {
            return Poll::Pending;
        };
        let decided = ready!(granting.poll(cx));
        let Some((place, hold, open)) = self.granting.take().map(Granting::into_place) else {
            return Poll::Pending;
        };
        let stream = match decided {
            Decided::Granted { acknowledgement, end } => {
                let (close, first) = (place.closing(), acknowledgement.event());
                let open = open.watched(move || {
                    close();
                    drop(hold);
                });
                ListenStream::new(&self.call, open, Some((first, place)), &end.frame)
            }
            // The error, to a client that reads nothing else.
            Decided::Refused(Finished { status, frame, .. })
                if status == StatusCode::OK && self.call.form == Form::SseOnly =>
            {
                ListenStream::new(&self.call, open.watched(|| ()), None, &frame)
            }
            Decided::Refused(Finished { status, frame, .. }) => {
                return Poll::Ready(respond::answer(Answer::Json(status, frame.json())));
            }
        };
        Poll::Ready(respond::events(ResponseBody::listen(stream)))
    }
}

/// An open stream. It has no task: what it reads is its mailbox. Nothing of the request is kept but its id.
pub(crate) struct ListenStream {
    open: OpenStream,
    id: Box<[u8]>,
    keep_alive: KeepAlive,
    ends: Ends,
    acknowledgement: Option<Bytes>,
    /// Gone once the subscription has ended.
    place: Option<Place>,
    /// The last event. Gone once it is sent.
    response: Option<Bytes>,
}

impl ListenStream {
    /// Without an acknowledgement and a place it consists of its response.
    fn new(call: &Call, open: OpenStream, granted: Option<(Bytes, Place)>, response: &Frame) -> Self {
        let (acknowledgement, place) = granted.unzip();
        call.server.observer.stream_opened(&call.observed());
        Self {
            open,
            id: call.id().into(),
            keep_alive: KeepAlive::default(),
            ends: Ends::of(call.via.extensions()),
            acknowledgement,
            place,
            // A copy, since the frame has room to grow and the stream is there for long.
            response: Some(Bytes::copy_from_slice(&response.event())),
        }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.open.polled();
        if self.open.is_given_up() {
            return Poll::Ready(None);
        }
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Poll::Ready(Some(acknowledgement));
        }
        if self.ends.poll(cx).is_ready() {
            self.place = None;
        }
        let Some(place) = &self.place else {
            return Poll::Ready(self.response.take());
        };
        match place.poll_next(cx) {
            Poll::Ready(Some(notice)) => {
                self.keep_alive.restart();
                Poll::Ready(Some(notice.tagged(&self.id)))
            }
            Poll::Ready(None) => {
                self.place = None;
                Poll::Ready(self.response.take())
            }
            Poll::Pending => self.keep_alive.poll(self.open.server().limits.keep_alive, cx).map(Some),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.open.is_given_up() || self.response.is_none()
    }
}
