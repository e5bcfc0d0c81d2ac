//! A service, its clients, and a model of what each of them must see: driven by bytes, on a clock that stands still.
//!
//! Four bytes are one step, so that a failing script is shortened by leaving steps out. The first byte of all chooses the
//! service. Every step keeps to what the public API allows; the model asserts at each event that is read.

mod handler;
mod ops;
mod quiet;
mod slot;
mod stream;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use mcp_transport::{Changes, Counts, EventStore, Limits, Revision, SecondGet, StreamableHttpService};
use serde_json::Value;

use self::handler::Acts;
use self::slot::{Looked, Slot};
use self::stream::{Call, Change, Due, Stream};

/// Runs a script, and panics where the service does not do what the model says. The steps go into the trace, in words.
/// Returns how many requests it took.
pub fn run(script: &[u8], trace: &mut Vec<String>) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let (head, steps) = script.split_first().unwrap_or((&0, &[]));
        let mut world = World::new(*head);
        trace.push(format!("service {head:#010b}"));
        for step in steps.chunks_exact(4).take(64) {
            let words = world.step([step[0], step[1], step[2], step[3]]).await;
            trace.push(words);
            world.turn().await;
        }
        trace.push("end".to_owned());
        world.end().await;
        world.sent
    })
}

/// A session as its client knows it.
struct Session {
    id: String,
    person: usize,
    revision: Revision,
    /// The ids that its client uses are those of every other client, too.
    next_id: usize,
    due: Due,
    /// The connection that reads its general stream.
    general: Option<usize>,
    /// With an event store all its general streams are one.
    general_log: usize,
    gone: bool,
    /// It may have been idle for too long.
    may_be_gone: bool,
    /// Whether its general stream is open cannot be said any more.
    unsure: bool,
    /// It came back for its general stream, some of which may have been purged.
    purged: bool,
}

/// What a connection reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    Answer(usize),
    General {
        session: usize,
        stream: usize,
    },
    Listen(usize),
    /// Whatever comes.
    Anything,
}

struct Connection {
    slot: Slot,
    reads: Reads,
    /// How many messages of its stream are behind it.
    at: usize,
    /// Another one reads the stream now.
    superseded: bool,
    /// What it reads may have been purged.
    lenient: bool,
}

struct Listener {
    id: usize,
    due: Due,
    acknowledged: bool,
}

struct World {
    service: StreamableHttpService,
    acts: Arc<Acts>,
    changes: Changes,
    has_store: bool,
    tiny_store: bool,
    takes_over: bool,
    ends_by_drain: bool,
    sessions: Vec<Session>,
    calls: Vec<Call>,
    streams: Vec<Stream>,
    connections: Vec<Connection>,
    listeners: Vec<Listener>,
    /// Every id of an event that was read, with its stream.
    ids: Vec<(usize, String)>,
    /// Which call asked a question, by session and id.
    asks: HashMap<(usize, u64), usize>,
    next_id: usize,
    /// How many requests there were.
    sent: usize,
    draining: bool,
}

impl World {
    fn new(head: u8) -> Self {
        let bit = |bit: u8| head & 1 << bit != 0;
        let (acts, changes) = (Arc::new(Acts::default()), Changes::new());
        let mut limits = Limits::default().session_idle(Duration::from_secs(600)).ask_time(Duration::from_secs(5));
        // What is kept and what is not read goes by number here, not by time.
        limits = limits.stored_for(Duration::from_secs(1 << 20)).unread_time(Duration::from_secs(1 << 20));
        if bit(2) {
            limits = limits.commit_after(Duration::ZERO);
        }
        if bit(3) {
            limits = limits.queue_bytes(256);
        }
        if bit(4) {
            limits = limits.stored_events(3);
        }
        let mut builder = StreamableHttpService::builder(Arc::clone(&acts)).limits(limits).changes(&changes);
        if bit(0) {
            builder = builder.event_store(EventStore::InMemory);
        }
        if bit(1) {
            builder = builder.second_get(SecondGet::TakesOver);
        }
        Self {
            service: builder.build().expect("a service"),
            acts,
            changes,
            has_store: bit(0),
            tiny_store: bit(4),
            takes_over: bit(1),
            ends_by_drain: bit(5),
            sessions: Vec::new(),
            calls: Vec::new(),
            streams: Vec::new(),
            connections: Vec::new(),
            listeners: Vec::new(),
            ids: Vec::new(),
            asks: HashMap::new(),
            next_id: 1,
            sent: 0,
            draining: false,
        }
    }

    /// Lets tasks run, and heads come.
    async fn turn(&mut self) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
            for connection in 0..self.connections.len() {
                if self.connections[connection].slot.is_waiting() {
                    self.look(connection);
                }
            }
        }
    }

    fn connect(&mut self, request: Request<Bytes>, reads: Reads, at: usize) -> usize {
        self.sent += 1;
        let slot = Slot::send(&self.service, request);
        self.connections.push(Connection { slot, reads, at, superseded: false, lenient: false });
        let connection = self.connections.len() - 1;
        self.look(connection);
        connection
    }

    /// Sends what is answered at once, and returns status and answer.
    async fn ask(&mut self, request: Request<Bytes>) -> (StatusCode, http::HeaderMap, Value) {
        self.sent += 1;
        let answer = Slot::send(&self.service, request);
        let Slot::Waiting(mut answering) = answer else { unreachable!() };
        for _ in 0..200 {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            if let std::task::Poll::Ready(answer) = answering.as_mut().poll(&mut cx) {
                let (parts, body) = answer.into_parts();
                let body = http_body_util::BodyExt::collect(body).await.unwrap_or_else(|never| match never {});
                let body = body.to_bytes();
                let is_stream = parts.headers.get("content-type").is_some_and(|form| form == "text/event-stream");
                let value = match is_stream {
                    true => wire::events(&body).into_iter().find_map(|event| event.message).unwrap_or_default(),
                    false if body.is_empty() => Value::Null,
                    false => serde_json::from_slice(&body).expect("JSON"),
                };
                return (parts.status, parts.headers, value);
            }
            tokio::task::yield_now().await;
        }
        panic!("no answer to what needs no time");
    }

    /// Looks at a connection once. Whether there was anything.
    fn look(&mut self, number: usize) -> bool {
        let looked = self.connections[number].slot.look();
        match looked {
            Looked::Nothing => return false,
            Looked::Began => {}
            Looked::Whole(status, body) => self.whole(number, status, &body),
            Looked::Some(bytes) => {
                let events = wire::events(&bytes);
                let is_any = !events.is_empty();
                for event in events {
                    self.event(number, event);
                }
                return is_any;
            }
            Looked::Ended => self.ended(number),
        }
        true
    }

    /// An answer that is no stream.
    fn whole(&mut self, number: usize, status: StatusCode, body: &[u8]) {
        let Reads::Answer(stream) = self.connections[number].reads else {
            let is_refusal = status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE;
            assert!(is_refusal || self.connections[number].reads == Reads::Anything, "{status}");
            return;
        };
        let messages = match serde_json::from_slice(body) {
            Ok(Value::Array(messages)) => messages,
            Ok(message) => vec![message],
            Err(_) => Vec::new(),
        };
        for message in messages {
            self.event(number, wire::Event { id: None, message: Some(message) });
        }
        self.ended_answer(stream);
    }

    fn event(&mut self, number: usize, event: wire::Event) {
        let connection = &mut self.connections[number];
        // The greeting of one may still be on its way.
        assert!(!connection.superseded || event.message.is_none(), "two read one stream: {event:?}");
        let (stream, session) = match connection.reads {
            Reads::Anything => return,
            Reads::Listen(listener) => return self.listened(listener, &event),
            Reads::Answer(stream) => (stream, self.streams[stream].session),
            Reads::General { session, stream } => (stream, Some(session)),
        };
        if let Some(id) = &event.id {
            assert!(self.has_store && session.is_some(), "an id where nothing is kept");
            self.ids.push((stream, id.clone()));
        }
        if connection.lenient {
            // Some of it may have been purged. What is known is read again where it stands, and all else is new.
            let known = event.id.as_ref().and_then(|id| self.streams[stream].ids.get(id)).copied();
            let at = known.map(|after| after - usize::from(event.message.is_some()));
            connection.at = at.unwrap_or(self.streams[stream].log.len());
            if let (Some(change), None) = (event.message.as_ref().and_then(Change::of), known) {
                let session = session.expect("a general stream");
                self.sessions[session].due.due.insert(change);
            }
        }
        let mut at = self.connections[number].at;
        let new = self.streams[stream].read(&mut at, event);
        self.connections[number].at = at;
        if let Some(message) = new {
            match self.connections[number].reads {
                Reads::General { session, .. } => self.told(session, &message),
                _ => self.answered(stream, &message),
            }
        }
    }

    /// A message on a general stream that nobody has read before.
    fn told(&mut self, session: usize, message: &Value) {
        match Change::of(message) {
            Some(_) if self.sessions[session].unsure => {}
            Some(change) => self.sessions[session].due.hear(change),
            None => self.asked(Some(session), message, false),
        }
    }

    /// A message on the stream of an answer that nobody has read before.
    fn answered(&mut self, stream: usize, message: &Value) {
        let own = &self.streams[stream];
        match message["method"].as_str() {
            Some("notifications/x") => {
                let params = &message["params"];
                let [tag, n] = ["tag", "n"].map(|name| params[name].as_u64().expect("a number") as usize);
                assert!(own.calls.contains(&tag), "{message} on the stream of {own:?}");
                self.calls[tag].note(n);
            }
            Some(_) => self.asked(own.session, message, true),
            None => {
                let tag = own.calls.iter().find(|tag| self.calls[**tag].id as u64 == message["id"]);
                let tag = *tag.unwrap_or_else(|| panic!("{message} on the stream of {own:?}"));
                self.calls[tag].answer(message);
            }
        }
    }

    /// A question, or one that is taken back.
    fn asked(&mut self, session: Option<usize>, message: &Value, on_own: bool) {
        let session = session.expect("a session");
        match message["method"].as_str() {
            Some("elicitation/create") => {
                let tag: usize = message["params"]["message"].as_str().and_then(|tag| tag.parse().ok()).expect("a tag");
                assert_eq!(self.calls[tag].session, Some(session), "a question of another session's");
                self.calls[tag].ask(on_own);
                let id = message["id"].as_u64().expect("a number");
                assert_eq!(self.asks.insert((session, id), tag), None, "an id was asked with before");
            }
            Some("notifications/cancelled") => {
                let id = message["params"]["requestId"].as_u64().expect("a number");
                let tag = *self.asks.get(&(session, id)).expect("a question");
                self.calls[tag].take_back();
            }
            _ => panic!("{message} belongs nowhere"),
        }
    }

    fn listened(&mut self, listener: usize, event: &wire::Event) {
        assert_eq!(event.id, None, "no stream of 2026-07-28 has ids");
        let listener = &mut self.listeners[listener];
        let message = event.message.as_ref().expect("a message");
        if message.get("method").is_none() {
            assert!(self.draining && message["id"] == listener.id, "{message} ends {}", listener.id);
            return;
        }
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], listener.id, "{message}");
        match Change::of(message) {
            Some(change) => {
                assert!(listener.acknowledged, "a change before the acknowledgement");
                listener.due.hear(change);
            }
            None => {
                assert_eq!(message["method"], "notifications/subscriptions/acknowledged");
                assert!(!std::mem::replace(&mut listener.acknowledged, true));
            }
        }
    }

    /// The server ended a stream.
    fn ended(&mut self, number: usize) {
        let connection = &self.connections[number];
        if connection.superseded {
            return;
        }
        match connection.reads {
            Reads::Answer(stream) => self.ended_answer(stream),
            Reads::General { session, .. } => {
                let session = &mut self.sessions[session];
                assert!(session.gone || session.unsure || self.draining, "a general stream that ends");
                session.general = None;
            }
            Reads::Listen(_) => assert!(self.draining, "a subscription that ends"),
            Reads::Anything => {}
        }
    }

    fn ended_answer(&mut self, stream: usize) {
        let stream = &mut self.streams[stream];
        let is_gone = stream.session.is_some_and(|session| self.sessions[session].gone);
        for &tag in &stream.calls {
            let call = &self.calls[tag];
            let may_end = call.answered || call.cancelled || is_gone || call.act.end == handler::End::LetGo;
            assert!(may_end, "its stream ended before its answer: {call:?}");
            stream.lost |= !call.answered;
        }
    }

    fn counts(&self) -> Counts {
        self.service.counts()
    }
}
