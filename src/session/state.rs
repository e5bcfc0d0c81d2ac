//! What a session is made of.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::time::Instant;

use super::application::Application;
use super::in_flight::InFlight;
use super::order::SetAside;
use super::waiters::Waiters;
use crate::cancel::CancelCause;
use crate::principal::Principal;
use crate::protocol::ground::Ground;
use crate::protocol::initialize::InitializeParams;
use crate::protocol::level::LogLevel;
use crate::protocol::refusal::{Refusal, RefusalKind};
use crate::protocol::revision::Revision;
use crate::store::{General, Log, Store};
use crate::subscribe::{Hub, Mailbox, Standing, Wants};
use crate::sync::lock;

/// What the client said of itself in `initialize`, as JSON.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) info: Option<Bytes>,
    pub(crate) capabilities: Bytes,
}

/// Bytes of client info and capabilities that a session keeps.
const MOST_CLIENT_BYTES: usize = 64 << 10;

impl Client {
    /// What a session keeps of its client. Copied, so that the message can go.
    pub(crate) fn read(params: &InitializeParams) -> Result<Self, Refusal> {
        let client = Self {
            info: params.client_info.as_ref().map(|info| Bytes::copy_from_slice(info.get().as_bytes())),
            capabilities: Bytes::copy_from_slice(params.capabilities.get().as_bytes()),
        };
        let bytes = client.capabilities.len() + client.info.as_ref().map_or(0, Bytes::len);
        if bytes > MOST_CLIENT_BYTES {
            return Err(Refusal::because(RefusalKind::Shape, "clientInfo and capabilities exceed 64 KiB")
                .on(Ground::ClientBytes));
        }
        Ok(client)
    }
}

/// What a session keeps of its streams, so that they can be resumed.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) log: Arc<Log>,
    pub(crate) general: General,
    /// Through which changes reach it though no stream is open. Until the session ends.
    standing: Mutex<Option<Standing>>,
}

impl Kept {
    /// `None` where the system has no randomness.
    pub(crate) fn begin(store: &Arc<Store>, hub: &Arc<Hub>, mailbox: &Arc<Mailbox>, wants: Wants) -> Option<Self> {
        let log = Log::new(store);
        let general = General::begin(&log, mailbox, wants)?;
        Some(Self { log, general, standing: Mutex::new(Some(hub.keep(mailbox))) })
    }

    fn close(&self) {
        self.log.close();
        let standing = lock(&self.standing).take();
        drop(standing);
    }
}

/// A session. It has no task and, while idle, no timer.
pub(crate) struct SessionState {
    id: Box<str>,
    principal: Option<Principal>,
    revision: Revision,
    client: Client,
    application: Application,
    in_flight: InFlight,
    waiters: Waiters,
    /// How many hooks for its notifications wait.
    hooks: AtomicUsize,
    /// How many answers are being read as event streams.
    answers: AtomicUsize,
    /// The changes that wait for its general stream.
    mailbox: Arc<Mailbox>,
    /// What it keeps of its streams, where there is an event store.
    kept: Option<Kept>,
    level: AtomicU8,
    initialized: AtomicBool,
    closed: AtomicBool,
    announced: AtomicBool,
    /// Whether it was set aside among those that give way, for it was held.
    set_aside: SetAside,
    born: Instant,
    /// Milliseconds after birth.
    last_used: AtomicU64,
}

impl SessionState {
    pub(crate) fn new(id: Box<str>, principal: Option<Principal>, revision: Revision, client: Client) -> Self {
        Self {
            kept: None,
            id,
            principal,
            revision,
            client,
            application: Application::default(),
            in_flight: InFlight::default(),
            waiters: Waiters::default(),
            hooks: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            mailbox: Arc::new(Mailbox::default()),
            level: AtomicU8::new(LogLevel::Info as u8),
            initialized: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            announced: AtomicBool::new(false),
            set_aside: SetAside::default(),
            born: Instant::now(),
            last_used: AtomicU64::new(0),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn application(&self) -> &Application {
        &self.application
    }

    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// The questions that its client has yet to answer.
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// How many hooks for its notifications wait.
    pub(crate) fn hooks(&self) -> usize {
        self.hooks.load(Ordering::Acquire)
    }

    pub(crate) fn hook_waits(&self) {
        self.hooks.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn hook_is_through(&self) {
        self.hooks.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    /// What it keeps of its streams, where there is an event store.
    pub(crate) fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()
    }

    /// The same session, which keeps its streams.
    pub(crate) fn keeping(self, kept: Kept) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// The least severe message the client wants.
    pub(crate) fn log_level(&self) -> LogLevel {
        LogLevel::from_number(self.level.load(Ordering::Relaxed))
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    /// The client has said that it is ready.
    pub(crate) fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    /// It is in use now.
    pub(crate) fn touch(&self) {
        let age = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.fetch_max(age, Ordering::Relaxed);
    }

    /// When it was last in use.
    pub(crate) fn last_used(&self) -> Instant {
        self.born + std::time::Duration::from_millis(self.last_used.load(Ordering::Relaxed))
    }

    pub(crate) fn born(&self) -> Instant {
        self.born
    }

    /// The application has heard of it.
    pub(crate) fn set_announced(&self) {
        self.announced.store(true, Ordering::Release);
        self.released();
    }

    pub(super) fn set_aside(&self) -> &SetAside {
        &self.set_aside
    }

    /// Something that held it open is gone.
    pub(crate) fn released(&self) {
        self.set_aside.released(self);
    }

    /// Whether work or an open stream holds it open, or the application has yet to hear of it.
    pub(crate) fn is_held(&self) -> bool {
        self.in_flight.len() > 0 || self.is_held_otherwise()
    }

    fn is_held_otherwise(&self) -> bool {
        !self.announced.load(Ordering::Acquire) || self.mailbox.is_open() || self.answers.load(Ordering::Acquire) > 0
    }

    /// Ends it unless something holds it open. Whether it did. No request that came in is lost over it.
    pub(crate) fn close_unused(&self) -> bool {
        let close = || !self.is_held_otherwise() && !self.closed.swap(true, Ordering::AcqRel);
        let closed = self.in_flight.if_none(close);
        if closed {
            self.end_streams();
        }
        closed
    }

    /// Ends its streams and cancels its work. Whether it was open until now.
    pub(crate) fn close(&self) -> bool {
        let was_open = !self.closed.swap(true, Ordering::AcqRel);
        self.end_streams();
        for call in self.in_flight.all() {
            call.cancellation.cancel(CancelCause::SessionEnded);
        }
        was_open
    }

    fn end_streams(&self) {
        self.mailbox.end();
        self.waiters.end();
        self.kept.iter().for_each(Kept::close);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl fmt::Debug for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionState").field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// The event stream of an answer: until it is dropped, its session is held open.
#[derive(Debug)]
pub(crate) struct AnswerStream(Arc<SessionState>);

impl AnswerStream {
    pub(crate) fn of(session: &Arc<SessionState>) -> Self {
        session.answers.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(session))
    }
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        self.0.touch();
        self.0.answers.fetch_sub(1, Ordering::AcqRel);
        self.0.released();
    }
}
