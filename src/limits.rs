//! The bounds a transport keeps, and what a client sees past each.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

/// The bounds a transport keeps. Each says its unit, its default, what a client sees past it, and the memory it bounds.
///
/// What ends in `by_caller` is one caller's share, what ends in `in_all`, and [`sessions`](Self::sessions) and
/// [`listeners`](Self::listeners), is what all have together. A caller is its [`Principal`](crate::Principal), else its
/// [peer key](crate::StreamableHttpBuilder::peer). Callers that have neither cannot be told apart and have no share:
/// they draw on the whole. On a byte stream the connection is the caller, and each has a transport, and so limits, of
/// its own.
///
/// Responses, `notifications/cancelled`, `ping`, `server/discover` and DELETE are never refused for what is going on,
/// but for a body that is too long or too slow, or for one of more than 4 KiB that finds no room. Refusals with status
/// 429 and 503 carry `Retry-After`.
///
/// ```
/// use std::time::Duration;
/// use mcp_transport::Limits;
///
/// let limits = Limits::default().body_bytes(16 << 20).handler_time(Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct Limits {
    pub(crate) body_bytes: usize,
    pub(crate) body_bytes_by_caller: usize,
    pub(crate) body_bytes_in_all: usize,
    pub(crate) body_time: Duration,
    pub(crate) nesting: u32,
    pub(crate) batch: usize,
    pub(crate) in_flight: usize,
    pub(crate) in_flight_by_caller: usize,
    pub(crate) in_flight_in_all: usize,
    pub(crate) listeners: usize,
    pub(crate) listeners_by_caller: usize,
    pub(crate) queue_bytes: u32,
    pub(crate) queue_bytes_by_caller: usize,
    pub(crate) queue_bytes_in_all: usize,
    pub(crate) unread_time: Duration,
    #[cfg(feature = "state")]
    pub(crate) state_bytes: usize,
    pub(crate) session_idle: Duration,
    pub(crate) sessions: usize,
    pub(crate) sessions_by_caller: usize,
    pub(crate) stored_bytes: usize,
    pub(crate) stored_bytes_in_all: usize,
    pub(crate) stored_events: usize,
    pub(crate) stored_for: Duration,
    pub(crate) listing_pages: usize,
    pub(crate) listing_tools: usize,
    pub(crate) rounds: u32,
    pub(crate) ask_time: Duration,
    pub(crate) handler_time: Option<Duration>,
    pub(crate) commit_after: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            body_bytes_by_caller: 64 << 20,
            body_bytes_in_all: 256 << 20,
            body_time: Duration::from_secs(30),
            nesting: MOST_NESTING,
            batch: 100,
            in_flight: 1024,
            in_flight_by_caller: 2048,
            in_flight_in_all: 16_384,
            listeners: 16_384,
            listeners_by_caller: 1024,
            queue_bytes: 1 << 20,
            queue_bytes_by_caller: 64 << 20,
            queue_bytes_in_all: 256 << 20,
            unread_time: Duration::from_secs(5 * 60),
            #[cfg(feature = "state")]
            state_bytes: 16 << 10,
            session_idle: Duration::from_secs(30 * 60),
            sessions: 10_000,
            sessions_by_caller: 1000,
            stored_bytes: 4 << 20,
            stored_bytes_in_all: 256 << 20,
            stored_events: 1000,
            stored_for: Duration::from_secs(10 * 60),
            listing_pages: 100,
            listing_tools: 10_000,
            rounds: 8,
            ask_time: Duration::from_secs(5 * 60),
            handler_time: None,
            commit_after: Duration::from_secs(15),
            keep_alive: Duration::from_secs(15),
            drain_time: Duration::from_secs(30),
        }
    }
}

/// The scanner keeps the kinds of the open containers in that many bits.
const MOST_NESTING: u32 = 128;

impl Limits {
    /// Bytes of one HTTP request body, or of one line of a byte stream, at least 1 and below 4 GiB. Default 4 MiB.
    /// Counted while it is read; past it the client sees status 413, on a byte stream `-32700`, and the next line is
    /// read.
    ///
    /// Memory: that many bytes for each request being read, within [`body_bytes_in_all`](Self::body_bytes_in_all).
    #[must_use]
    pub const fn body_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes = bytes;
        self
    }

    /// Bytes of all the HTTP request bodies of one caller that are being read or held, at least
    /// [`body_bytes`](Self::body_bytes). Default 64 MiB. The first 4 KiB of each are not counted, and so most bodies
    /// are not. A body is held as long as anything of its request is: until the answer has been read, and while the
    /// application keeps the [`Request`](crate::Request) or its context. Past it the client sees status 429.
    ///
    /// Memory: see [`body_bytes_in_all`](Self::body_bytes_in_all).
    #[must_use]
    pub const fn body_bytes_by_caller(mut self, bytes: usize) -> Self {
        self.body_bytes_by_caller = bytes;
        self
    }

    /// The same for all callers together, at least [`body_bytes`](Self::body_bytes). Default 256 MiB. Past it the
    /// client sees status 503.
    ///
    /// Memory: that many bytes, twice as many where bodies come in pieces, and 4 KiB for each request.
    #[must_use]
    pub const fn body_bytes_in_all(mut self, bytes: usize) -> Self {
        self.body_bytes_in_all = bytes;
        self
    }

    /// How long an HTTP request body may take to come, and as much again for each MiB of it that has come; not zero.
    /// Default 30 s, so that a client that sends a byte now and then holds its place no longer, and one with a slow
    /// line gets a large body through. Past it the client sees status 408.
    #[must_use]
    pub const fn body_time(mut self, time: Duration) -> Self {
        self.body_time = time;
        self
    }

    /// Objects and arrays inside each other in one JSON message, 1 to 128. Default 128. Past it the client sees status
    /// 400 and `-32700`.
    #[must_use]
    pub const fn nesting(mut self, containers: u32) -> Self {
        self.nesting = containers;
        self
    }

    /// Messages in one batch (2025-03-26). Default 100. Past it the client sees `-32600`, and nothing of the batch
    /// runs.
    #[must_use]
    pub const fn batch(mut self, messages: usize) -> Self {
        self.batch = messages;
        self
    }

    /// Requests being answered at once in one session or on one byte stream. Default 1,024. Past it the client sees
    /// 503, on a byte stream `-32603`; a `ping` is never refused, and in a batch it is that message's own error. On a
    /// byte stream a request counts until its answer is written.
    ///
    /// Memory: the bodies of that many requests for each session, and what their handlers hold.
    #[must_use]
    pub const fn in_flight(mut self, requests: usize) -> Self {
        self.in_flight = requests;
        self
    }

    /// Requests of one caller being answered at once, in all its sessions and in none; notifications too, while their
    /// hook is at work. Default 2,048. Past it the client sees status 429, in a batch that message's own `-32600`. So
    /// does a client that has [left too much unread](Self::queue_bytes_by_caller).
    ///
    /// Memory: see [`in_flight_in_all`](Self::in_flight_in_all).
    #[must_use]
    pub const fn in_flight_by_caller(mut self, requests: usize) -> Self {
        self.in_flight_by_caller = requests;
        self
    }

    /// The same for all callers together. Default 16,384. Past it the client sees 503, in a batch that message's own
    /// `-32603`.
    ///
    /// Memory: for each about 2 KiB, the head of its HTTP request, at most 4 KiB of its body that
    /// [`body_bytes_in_all`](Self::body_bytes_in_all) does not count, and what the handler holds.
    ///
    /// Of the hooks that notifications wait for there are at most 1,024, of one caller's 256 and of one session's 64.
    /// Past that a notification gets 503, past a caller's own 429, and on a byte stream it is dropped.
    #[must_use]
    pub const fn in_flight_in_all(mut self, requests: usize) -> Self {
        self.in_flight_in_all = requests;
        self
    }

    /// Streams open at once that listen for changes: `subscriptions/listen` (2026-07-28), and what a GET opens (up to
    /// 2025-11-25). Default 16,384. Past it the client sees 503.
    ///
    /// Memory: for each at most 256 KiB of resource URIs, each counted 64 bytes more than it has, and one change for
    /// each of them. URIs past that are left out of what is granted. An id of more than 1,024 bytes gets 400.
    #[must_use]
    pub const fn listeners(mut self, streams: usize) -> Self {
        self.listeners = streams;
        self
    }

    /// The same for one caller. Default 1,024. Past it the client sees 503 as well.
    #[must_use]
    pub const fn listeners_by_caller(mut self, streams: usize) -> Self {
        self.listeners_by_caller = streams;
        self
    }

    /// Sessions open at once (up to 2025-11-25). Default 10,000. At the cap a new one takes the place of one whose
    /// client never said it was ready, else of the longest idle one that has been so for 10 s, else `initialize` gets
    /// 503. A caller without a share of its own takes the place of such callers' sessions only.
    ///
    /// Memory: for each at most 64 KiB of what the client says of itself and 256 KiB of resource URIs (each counted 64
    /// bytes more than it has), most often under 2 KiB, and what the application keeps in it. Past the first
    /// `initialize` gets 400 and `-32600`, past the second `resources/subscribe` gets `-32602`.
    #[must_use]
    pub const fn sessions(mut self, sessions: usize) -> Self {
        self.sessions = sessions;
        self
    }

    /// The same for one caller. Default 1,000. At the cap a new one takes the place of one of the caller's own, by the
    /// same rule, else `initialize` gets 429. So whoever opens sessions without end ends nobody else's.
    #[must_use]
    pub const fn sessions_by_caller(mut self, sessions: usize) -> Self {
        self.sessions_by_caller = sessions;
        self
    }

    /// How long a session may be idle before it ends. Default 30 minutes. Requests being answered and open streams hold
    /// it open.
    #[must_use]
    pub const fn session_idle(mut self, time: Duration) -> Self {
        self.session_idle = time;
        self
    }

    /// Bytes of messages queued on one event stream or byte stream for a client that does not read, 256 to 256 MiB.
    /// Default 1 MiB. A message counts at least 1/256 of it, so that it is also 256 messages. Past it the handler that
    /// sends waits.
    ///
    /// Memory: that many bytes for each open stream, within [`queue_bytes_in_all`](Self::queue_bytes_in_all), and the
    /// answer itself on top. On a byte stream as much again for refusals and answers to `ping`, of which what goes past
    /// it is dropped, and the answers to [`in_flight`](Self::in_flight) requests.
    #[must_use]
    pub const fn queue_bytes(mut self, bytes: u32) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Bytes queued for one caller on all its event streams over HTTP, answers too. Default 64 MiB. Past it each of its
    /// streams holds one message at a time, and the handler that sends another waits until that one is read; and its
    /// new requests get status 429.
    ///
    /// Memory: that many bytes, one message for each stream, and the answers to the requests in flight.
    #[must_use]
    pub const fn queue_bytes_by_caller(mut self, bytes: usize) -> Self {
        self.queue_bytes_by_caller = bytes;
        self
    }

    /// The same for all callers together. Default 256 MiB. Past it every stream holds one message at a time, so that
    /// those whose clients read go on; new requests of callers without a share of their own get 503, those of others
    /// are not refused for it.
    ///
    /// Memory: as for one caller.
    #[must_use]
    pub const fn queue_bytes_in_all(mut self, bytes: usize) -> Self {
        self.queue_bytes_in_all = bytes;
        self
    }

    /// How long an event stream over HTTP may go unread. Default 5 minutes, and never less than three intervals of
    /// [`keep_alive`](Self::keep_alive): a client that is there reads at least the comments. Past it, within a quarter
    /// more, the stream is given up, as if its connection had broken: the request it answers is cancelled, or goes on
    /// where it is a session's.
    #[must_use]
    pub const fn unread_time(mut self, time: Duration) -> Self {
        self.unread_time = time;
        self
    }

    /// Bytes of a `requestState` as it stands in a message (2026-07-28). Default 16 KiB. Past it a client sees status
    /// 400 and `-32602`, before any of it is decoded; what would not fit when it is made is not sent, and the client
    /// sees `-32603`. Three quarters of it, less 53 bytes, are left for what is kept.
    #[cfg(feature = "state")]
    #[must_use]
    pub const fn state_bytes(mut self, bytes: usize) -> Self {
        self.state_bytes = bytes;
        self
    }

    /// Events kept in one session with an [event store](crate::EventStore). Default 1,000. Past it the oldest go, and a
    /// client that asks for them gets 400; on its GET stream it is told once of each list that it may have changed.
    ///
    /// Memory: see [`stored_bytes`](Self::stored_bytes).
    #[must_use]
    pub const fn stored_events(mut self, events: usize) -> Self {
        self.stored_events = events;
        self
    }

    /// Bytes of the events kept in one session with an [event store](crate::EventStore), each counted 256 bytes more
    /// than it has. Default 4 MiB. Past it the oldest go, as with [`stored_events`](Self::stored_events). An event that
    /// is larger alone is not kept.
    ///
    /// Memory: that many bytes for each session, as long as all sessions stay within
    /// [`stored_bytes_in_all`](Self::stored_bytes_in_all), and as much again for each stream that is being resumed by a
    /// client that does not read.
    #[must_use]
    pub const fn stored_bytes(mut self, bytes: usize) -> Self {
        self.stored_bytes = bytes;
        self
    }

    /// The same for all sessions together. Default 256 MiB. Past it the oldest events go, whichever session's they are.
    #[must_use]
    pub const fn stored_bytes_in_all(mut self, bytes: usize) -> Self {
        self.stored_bytes_in_all = bytes;
        self
    }

    /// How long an event is kept in an [event store](crate::EventStore). Default 10 minutes. After it a client that
    /// asks for it sees what it sees past [`stored_events`](Self::stored_events).
    #[must_use]
    pub const fn stored_for(mut self, time: Duration) -> Self {
        self.stored_for = time;
        self
    }

    /// Pages of the handler's `tools/list` that are read to learn the tools' `x-mcp-header` annotations. Default 100.
    /// Past it the listing counts as failed.
    #[must_use]
    pub const fn listing_pages(mut self, pages: usize) -> Self {
        self.listing_pages = pages;
        self
    }

    /// Tools in the handler's `tools/list` that are read to learn their `x-mcp-header` annotations. Default 10,000.
    /// Past it the listing counts as failed.
    ///
    /// Memory: the annotations of that many tools for each principal that calls tools, 1,024 principals at most.
    #[must_use]
    pub const fn listing_tools(mut self, tools: usize) -> Self {
        self.listing_tools = tools;
        self
    }

    /// Rounds of input that one request may take. Default 8. Past it the client sees `-32603`, and the
    /// [`Observer`](crate::Observer) hears of it.
    ///
    /// Counted on 2026-07-28, whose rounds are requests of their own, and wherever a handler makes its rounds by hand.
    #[must_use]
    pub const fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }

    /// How long the client of a session has to answer a question (up to 2025-11-25) that sets no
    /// [time of its own](crate::Question::timeout). Default 5 minutes. Past it the question fails with
    /// [`AskError::TimedOut`](crate::AskError::TimedOut).
    #[must_use]
    pub const fn ask_time(mut self, time: Duration) -> Self {
        self.ask_time = time;
        self
    }

    /// How long a handler may take over one request, notification or decision on a subscription. Default: no limit.
    /// Past it the handler is cancelled, and the client of a request sees `-32603`.
    #[must_use]
    pub const fn handler_time(mut self, time: Duration) -> Self {
        self.handler_time = Some(time);
        self
    }

    /// How long a handler may be silent before its answer becomes an event stream with keep-alive comments. Default
    /// 15 s. Choose it shorter than proxies in front wait for a first byte.
    ///
    /// Zero makes a stream of every answer with status 200 that its client can take as one, also where the handler is
    /// never silent. With an [`EventStore`](crate::EventStore) no answer of a session then gets lost with its
    /// connection.
    #[must_use]
    pub const fn commit_after(mut self, time: Duration) -> Self {
        self.commit_after = time;
        self
    }

    /// How often a silent event stream carries a comment, within a tenth either way; not zero. Default 15 s. It keeps
    /// proxies from closing the stream, and shows the server that the client is gone.
    #[must_use]
    pub const fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = interval;
        self
    }

    /// How long requests may go on after the end of a byte stream's input. Default 30 s. Past it they are cancelled,
    /// and their client sees `-32603`.
    #[must_use]
    pub const fn drain_time(mut self, time: Duration) -> Self {
        self.drain_time = time;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::configuration("limits", what));
        if self.nesting == 0 || self.nesting > MOST_NESTING {
            return wrong(format!("nesting must be 1 to {MOST_NESTING}"));
        }
        if self.body_bytes == 0 || u32::try_from(self.body_bytes).is_err() {
            return wrong("body_bytes must be at least 1 and below 4 GiB".to_owned());
        }
        if !(SMALLEST_QUEUE..=LARGEST_QUEUE).contains(&self.queue_bytes) {
            return wrong(format!("queue_bytes must be {SMALLEST_QUEUE} to {LARGEST_QUEUE}"));
        }
        if self.keep_alive.is_zero() {
            return wrong("keep_alive must not be zero".to_owned());
        }
        if self.body_time.is_zero() {
            return wrong("body_time must not be zero".to_owned());
        }
        if self.body_bytes_by_caller < self.body_bytes || self.body_bytes_in_all < self.body_bytes {
            return wrong("body_bytes_by_caller and body_bytes_in_all must be at least body_bytes".to_owned());
        }
        Ok(())
    }
}

/// As good as never. [`Duration::MAX`], by which an application may well say so, is more than the clock can count.
pub(crate) const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The moment when `time` will have passed.
pub(crate) fn from_now(time: Duration) -> Instant {
    after(Instant::now(), time)
}

/// The moment `time` after another.
pub(crate) fn after(moment: Instant, time: Duration) -> Instant {
    moment + time.min(NEVER)
}

/// One byte for each message that a queue holds at most.
const SMALLEST_QUEUE: u32 = 256;

/// 256 MiB: far below what a tokio semaphore can count on any platform.
const LARGEST_QUEUE: u32 = 256 << 20;
