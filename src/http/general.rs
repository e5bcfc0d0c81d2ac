//! The general stream of a session: what GET opens (2025-03-26 to 2025-11-25, "Listening for Messages from the
//! Server").

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::request;

use super::ends::Ends;
use super::service::Shared;
use crate::admission::Hold;
use crate::exchange::keep_alive::KeepAlive;
use crate::exchange::lifecycle::OpenStream;
use crate::observer::StreamKind;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::sse;
use crate::session::{Kept, SessionState};
use crate::subscribe::{Place, Wants};
use crate::turn::Turn;

/// What becomes of a second GET while the stream that an earlier one opened in the same session is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecondGet {
    /// It gets 409; the open stream stays.
    #[default]
    Refused,
    /// It becomes the session's stream; the one that was open ends.
    TakesOver,
}

/// An open general stream. It has no task: what it reads waits in its session.
pub(crate) struct GeneralStream {
    open: OpenStream,
    session: Arc<SessionState>,
    source: Source,
    keep_alive: KeepAlive,
    ends: Ends,
    /// What it begins with: the first byte goes out at once, so that the client and all proxies see the stream open.
    greeting: Option<Bytes>,
    ended: bool,
    /// The last to go: by then nothing of the stream holds the session any more.
    _releases: Releases,
}

/// Where its events come from.
enum Source {
    /// A place in the hub: what is published while it is open.
    Place(Place),
    /// This turn of the general stream that the session keeps.
    Kept { turn: Turn },
}

impl Source {
    /// What closes the stream where it goes unread. What it takes of its caller's account goes with it.
    fn closing(&self, session: &Arc<SessionState>, hold: Hold) -> impl FnOnce() + Send + 'static {
        let session = Arc::clone(session);
        let close: Box<dyn FnOnce() + Send> = match self {
            Self::Place(place) => Box::new(place.closing()),
            Self::Kept { turn } => {
                let (turn, session) = (*turn, Arc::clone(&session));
                Box::new(move || session.kept().iter().for_each(|kept| kept.general.close(turn)))
            }
        };
        move || {
            close();
            session.touch();
            session.released();
            drop(hold);
        }
    }
}

const GREETING: Bytes = Bytes::from_static(sse::KEEP_ALIVE);

/// How long a client waits before it comes back to a server that is shutting down: by then a restarted one is up.
const RESTART: Duration = Duration::from_secs(5);

impl GeneralStream {
    /// Opens the stream of a session.
    pub(super) fn open(shared: &Shared, session: &Arc<SessionState>, hold: Hold) -> Result<Self, Refusal> {
        let Some(kept) = session.kept() else {
            return Self::open_place(shared, session, hold);
        };
        let turn = match shared.second_get {
            SecondGet::Refused => kept.general.open(),
            SecondGet::TakesOver => kept.general.take_over(),
        };
        let turn = turn.ok_or_else(|| not_opened(shared, session))?;
        let mark = if session.revision().has_polling() { kept.general.mark(turn, None) } else { None };
        let greeting = [sse::KEEP_ALIVE, mark.as_deref().unwrap_or_default()].concat();
        Ok(Self::new(shared, session, Source::Kept { turn }, greeting.into(), hold))
    }

    /// Reads on after an event of the stream, in the place of whoever reads it now.
    pub(super) fn resume(
        shared: &Shared,
        session: &Arc<SessionState>,
        (kept, after): (&Kept, u64),
        hold: Hold,
    ) -> Result<Self, Refusal> {
        let turn = kept.general.resume(after).map_err(|_| refused(session, RefusalKind::UnknownEvent))?;
        let turn = turn.ok_or_else(|| not_opened(shared, session))?;
        Ok(Self::new(shared, session, Source::Kept { turn }, GREETING, hold))
    }

    fn open_place(shared: &Shared, session: &Arc<SessionState>, hold: Hold) -> Result<Self, Refusal> {
        let wants = Wants::of(&shared.server.capabilities);
        let turn = match shared.second_get {
            SecondGet::Refused => session.mailbox().open(wants),
            SecondGet::TakesOver => session.mailbox().take_over(wants).map(|(turn, superseded)| {
                superseded.into_iter().for_each(Waker::wake);
                turn
            }),
        };
        let turn = turn.ok_or_else(|| not_opened(shared, session))?;
        Ok(Self::new(shared, session, Source::Place(shared.hub.add(session.mailbox(), turn)), GREETING, hold))
    }

    fn new(shared: &Shared, session: &Arc<SessionState>, source: Source, greeting: Bytes, hold: Hold) -> Self {
        Self {
            open: OpenStream::of(&shared.server, StreamKind::General).watched(source.closing(session, hold)),
            session: Arc::clone(session),
            source,
            keep_alive: KeepAlive::default(),
            ends: Ends::default(),
            greeting: Some(greeting),
            ended: false,
            _releases: Releases(Arc::clone(session)),
        }
    }

    /// It ends with the access token that the head of its GET came with.
    pub(super) fn ending(mut self, head: &request::Parts) -> Self {
        self.ends = Ends::of(&head.extensions);
        self
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.open.polled();
        if self.open.is_given_up() {
            return Poll::Ready(None);
        }
        if let Some(greeting) = self.greeting.take() {
            return Poll::Ready(Some(greeting));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let event = match self.ends.poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => self.poll_event(cx),
        };
        match event {
            Poll::Ready(event) => {
                self.keep_alive.restart();
                self.ended = event.is_none();
                Poll::Ready(event.or_else(|| self.farewell()))
            }
            Poll::Pending => self.keep_alive.poll(self.open.server().limits.keep_alive, cx).map(Some),
        }
    }

    fn poll_event(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        match (&self.source, self.session.kept()) {
            (Source::Place(place), _) => place.poll_next(cx).map(|notice| notice.map(|notice| notice.legacy())),
            (Source::Kept { turn }, Some(kept)) => kept.general.poll_next(*turn, cx),
            (Source::Kept { .. }, None) => Poll::Ready(None),
        }
    }

    /// The last event of a stream whose session goes on: when to come back.
    fn farewell(&self) -> Option<Bytes> {
        let Source::Kept { turn } = self.source else {
            return None;
        };
        let goes_on = self.session.revision().has_polling() && !self.session.is_closed();
        self.session.kept().filter(|_| goes_on)?.general.mark(turn, Some(RESTART))
    }

    pub(super) fn is_done(&self) -> bool {
        self.ended || self.open.is_given_up()
    }
}

impl Drop for GeneralStream {
    fn drop(&mut self) {
        if let (Source::Kept { turn }, Some(kept)) = (&self.source, self.session.kept()) {
            kept.general.close(*turn);
        }
        self.session.touch();
    }
}

/// Tells a session that its stream is gone.
struct Releases(Arc<SessionState>);

impl Drop for Releases {
    fn drop(&mut self) {
        self.0.released();
    }
}

/// Why the stream does not open. A transport that drains has no general streams any more.
fn not_opened(shared: &Shared, session: &SessionState) -> Refusal {
    let is_draining = shared.server.lifecycle.is_draining();
    refused(session, if is_draining { RefusalKind::Draining } else { RefusalKind::StreamOpen })
}

/// A refusal, unless the session has just ended.
pub(super) fn refused(session: &SessionState, otherwise: RefusalKind) -> Refusal {
    Refusal::new(if session.is_closed() { RefusalKind::UnknownSession } else { otherwise })
}
