//! An answer that is owed: given exactly once, whatever becomes of the work.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::connection::{Busy, Connection};
use crate::exchange::Drive;
use crate::exchange::answer::{Finished, internal_frame};
use crate::exchange::call::Call;
use crate::protocol::envelope::RequestId;
use crate::protocol::names::method;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Era;
use crate::protocol::sse::Frame;

/// A request's hold on its id, and on its place among those in flight.
pub(super) struct Owed {
    busy: Busy,
    id: RequestId,
    key: String,
    takes: Takes,
    /// Whether the answer is given, or withheld.
    settled: bool,
}

/// What a request takes of the limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Place,
    /// Nothing, and its answer is a courtesy: a ping shows that the server lives, however busy it is.
    Nothing,
    /// A place among the listeners, which have a limit of their own.
    Subscription,
}

impl Takes {
    fn of(call: &Call) -> Self {
        match call.message.method() {
            method::PING if call.era() == Era::Legacy => Self::Nothing,
            method::LISTEN if call.era() == Era::Modern => Self::Subscription,
            _ => Self::Place,
        }
    }
}

impl Owed {
    /// Takes the id of a call.
    pub(super) fn take(connection: &Arc<Connection>, call: &Arc<Call>) -> Result<Self, Refusal> {
        let id = call.message.id().ok_or_else(|| Refusal::new(RefusalKind::Shape))?;
        let takes = Takes::of(call);
        let is_full = match takes {
            Takes::Place => connection.is_full(),
            // A peer that reads nothing gets no more of its refusals either.
            Takes::Subscription => connection.owes_too_much(),
            Takes::Nothing => false,
        };
        let most = if is_full { 0 } else { usize::MAX };
        let key = connection.in_flight.take(&id, call, most)?;
        if takes == Takes::Place {
            connection.take_place();
        }
        Ok(Self { busy: Busy::with(connection), id, key, takes, settled: false })
    }

    /// Answers, unless the answer is withheld.
    pub(super) fn settle(self, finished: &Finished) {
        if finished.is_withheld() {
            self.forgo();
        } else {
            self.settle_with(finished.frame.line());
        }
    }

    /// Answers with the response on the last of these lines.
    pub(super) fn settle_with(mut self, lines: Bytes) {
        self.answer(lines);
    }

    /// Answers nothing.
    pub(super) fn forgo(mut self) {
        self.release();
        self.give_place_back();
    }

    /// The id is free before the answer can be read; the place only once it was.
    fn answer(&mut self, lines: Bytes) {
        self.release();
        let outbox = &self.busy.connection().outbox;
        match self.takes {
            Takes::Place | Takes::Subscription => outbox.answer(lines, 1),
            Takes::Nothing => outbox.courtesy(lines),
        }
        self.give_place_back();
    }

    fn release(&mut self) {
        self.settled = true;
        self.busy.connection().in_flight.release(&self.key);
    }

    fn give_place_back(&self) {
        if self.takes == Takes::Place {
            self.busy.connection().give_places_back(1);
        }
    }
}

impl Drop for Owed {
    /// The work is gone without an answer: an observer panicked, or the runtime is being shut down.
    fn drop(&mut self) {
        if !self.settled {
            let id = self.id.as_str().as_bytes();
            let line = internal_frame(id).line();
            self.answer(line);
        }
    }
}

/// A request at work. Ready once its answer is queued.
pub(super) struct Answering {
    drive: Drive,
    /// Gone once it is given.
    owed: Option<Owed>,
}

impl Answering {
    pub(super) fn new(drive: Drive, owed: Owed) -> Self {
        Self { drive, owed: Some(owed) }
    }

    /// Polls once in place, and goes on in a task if that was not enough.
    pub(super) fn run(mut self, cx: &mut Context<'_>) {
        if Pin::new(&mut self).poll(cx).is_pending() {
            tokio::spawn(self);
        }
    }
}

impl Future for Answering {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let finished = ready!(Pin::new(&mut self.drive).poll(cx));
        if let Some(owed) = self.owed.take() {
            owed.settle(&finished);
        }
        Poll::Ready(())
    }
}

/// A batch at work (2025-03-26). Its answers leave as one array once all are there.
pub(super) struct BatchAnswering {
    connection: Arc<Connection>,
    elements: FuturesUnordered<Element>,
    array: BytesMut,
    answered: Vec<Owed>,
}

struct Element {
    drive: Drive,
    owed: Option<Owed>,
}

impl Future for Element {
    type Output = (Option<Owed>, Finished);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let finished = ready!(Pin::new(&mut self.drive).poll(cx));
        Poll::Ready((self.owed.take(), finished))
    }
}

impl BatchAnswering {
    pub(super) fn new(connection: &Arc<Connection>) -> Self {
        Self {
            connection: Arc::clone(connection),
            elements: FuturesUnordered::new(),
            array: BytesMut::new(),
            answered: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, drive: Drive, owed: Owed) {
        self.elements.push(Element { drive, owed: Some(owed) });
    }

    /// Adds an answer that is there already.
    pub(super) fn answer(&mut self, frame: &Frame) {
        self.array.put_u8(if self.array.is_empty() { b'[' } else { b',' });
        self.array.extend_from_slice(&frame.json());
    }

    /// Polls once in place, and goes on in a task if that was not enough.
    pub(super) fn run(mut self, cx: &mut Context<'_>) {
        if Pin::new(&mut self).poll(cx).is_pending() {
            tokio::spawn(self);
        }
    }

    fn finish(&mut self) {
        let answered = std::mem::take(&mut self.answered);
        let mut places = 0;
        for mut owed in answered {
            owed.release();
            places += usize::from(owed.takes == Takes::Place);
        }
        if !self.array.is_empty() {
            self.array.extend_from_slice(b"]\n");
            let line = self.array.split().freeze();
            match places {
                // Refusals and pings: what bounds the answers of others does not bound these.
                0 => self.connection.outbox.courtesy(line),
                places => self.connection.outbox.answer(line, places),
            }
        }
        self.connection.give_places_back(places);
    }
}

impl Future for BatchAnswering {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        while let Some((owed, finished)) = ready!(self.elements.poll_next_unpin(cx)) {
            let Some(owed) = owed else {
                continue;
            };
            if finished.is_withheld() {
                owed.forgo();
            } else {
                self.answer(&finished.frame);
                self.answered.push(owed);
            }
        }
        self.finish();
        Poll::Ready(())
    }
}
