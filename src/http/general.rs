//! The general stream of a session: what GET opens (2025-03-26 to 2025-11-25, "Listening for Messages from the Server").

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::service::Shared;
use crate::exchange::keep_alive::KeepAlive;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::sse;
use crate::server::Server;
use crate::session::SessionState;
use crate::subscribe::{Place, Wants};

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

/// An open general stream. It has no task: what it reads is its session's mailbox.
pub(crate) struct GeneralStream {
    server: Arc<Server>,
    session: Arc<SessionState>,
    place: Place,
    keep_alive: KeepAlive,
    /// The first byte goes out at once, so that the client and all proxies see the stream open.
    greeted: bool,
    ended: bool,
}

impl GeneralStream {
    pub(super) fn open(shared: &Shared, session: &Arc<SessionState>) -> Result<Self, Refusal> {
        let capabilities = &shared.server.capabilities;
        let wants = Wants {
            tools: capabilities.changes("tools"),
            prompts: capabilities.changes("prompts"),
            resources: capabilities.changes("resources"),
        };
        let turn = match shared.second_get {
            SecondGet::Refused => session.mailbox().open(wants),
            SecondGet::TakesOver => session.mailbox().take_over(wants),
        };
        let turn = turn.ok_or_else(|| {
            Refusal::new(if session.is_closed() { RefusalKind::UnknownSession } else { RefusalKind::StreamOpen })
        })?;
        shared.server.lifecycle.stream_opened();
        Ok(Self {
            server: Arc::clone(&shared.server),
            session: Arc::clone(session),
            place: shared.hub.add(session.mailbox(), turn),
            keep_alive: KeepAlive::default(),
            greeted: false,
            ended: false,
        })
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE)));
        }
        match self.place.poll_next(cx) {
            Poll::Ready(notice) => {
                self.keep_alive.restart();
                self.ended = notice.is_none();
                Poll::Ready(notice.map(|notice| notice.legacy()))
            }
            Poll::Pending => self.keep_alive.poll(self.server.limits.keep_alive, cx).map(Some),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.ended
    }
}

impl Drop for GeneralStream {
    fn drop(&mut self) {
        self.session.touch();
        self.server.lifecycle.stream_closed();
    }
}
