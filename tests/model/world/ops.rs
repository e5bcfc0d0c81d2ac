//! The steps of a script.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use mcp_transport::Revision;
use serde_json::{Value, json};

use super::handler::{Act, End};
use super::slot::Slot;
use super::stream::{Call, Change, Due, LISTS, Stream, URIS};
use super::{Listener, Reads, Session, World, wire};

const LEGACY: [Revision; 4] =
    [Revision::V2025_11_25, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2024_11_05];

const MODERN: Revision = Revision::V2026_07_28;

impl World {
    /// Takes a step, and says in words what it was.
    pub(super) async fn step(&mut self, [kind, who, a, b]: [u8; 4]) -> String {
        let session = self.session(who);
        match (kind % 24, session) {
            (0, _) => self.open(who, a).await,
            (1..=6, Some(session)) if who & 0x40 == 0 => self.call_in(session, a, b),
            (1..=6, _) => self.call_alone(who, a, b),
            (7 | 8, _) => self.read(who, a),
            (9, _) => self.hang_up(who),
            (10, Some(session)) => self.cancel(session, a).await,
            (11, Some(session)) => self.get(session, a).await,
            (12 | 13, Some(session)) => self.resume(session, a, b).await,
            (14 | 15, _) => self.publish(a),
            (16, Some(session)) => self.subscribe(session, a, b).await,
            (17, _) => self.listen(who, a).await,
            (18, _) => self.pass(a).await,
            (19, Some(session)) => self.reply(session, a, b).await,
            (20, Some(session)) if b & 3 == 0 => self.delete(session).await,
            (20, _) => self.retry(a, b).await,
            (21, _) => self.batch(session, a, b),
            (22, Some(session)) => self.foreign(session, a).await,
            (23, _) => self.odd(session, a).await,
            _ => "nothing".to_owned(),
        }
    }

    fn session(&self, who: u8) -> Option<usize> {
        let count = self.sessions.len();
        let session = if count == 0 { None } else { Some(usize::from(who & 0x0f) % count) };
        session.filter(|session| !self.sessions[*session].gone)
    }

    /// Puts a request into a session, in its person's name.
    fn own(&self, session: usize, request: Request<Bytes>) -> Request<Bytes> {
        let Session { id, person, .. } = &self.sessions[session];
        wire::named(*person, wire::inside(id, request))
    }

    /// Asks in a session that may have ended by itself. `None` where it has.
    async fn in_session(&mut self, session: usize, request: Request<Bytes>) -> Option<(StatusCode, Value)> {
        let request = self.own(session, request);
        let (status, _, answer) = self.ask(request).await;
        if status == StatusCode::NOT_FOUND && self.sessions[session].may_be_gone {
            self.lose(session);
            return None;
        }
        Some((status, answer))
    }

    /// A session is gone, and all its streams with it.
    fn lose(&mut self, session: usize) {
        let own = &mut self.sessions[session];
        (own.gone, own.general) = (true, None);
        self.streams.iter_mut().filter(|stream| stream.session == Some(session)).for_each(|stream| stream.lost = true);
    }

    async fn open(&mut self, who: u8, a: u8) -> String {
        if self.sessions.len() >= 4 {
            return "no more sessions".to_owned();
        }
        let (person, revision) = (usize::from(who & 1), LEGACY[usize::from(a) % 4]);
        let (status, headers, answer) = self.ask(wire::named(person, wire::initialize(revision))).await;
        assert_eq!((status, &answer["result"]["protocolVersion"]), (StatusCode::OK, &json!(revision.as_str())));
        let id = headers["mcp-session-id"].to_str().expect("an id").to_owned();
        assert!(self.sessions.iter().all(|session| session.id != id), "one id twice");
        self.streams.push(Stream::default());
        let due = Due { wants: LISTS.into(), ..Due::default() };
        let general_log = self.streams.len() - 1;
        let session = self.sessions.len();
        self.streams[general_log].session = Some(session);
        let (general, gone, may_be_gone, unsure, purged) = (None, false, false, false, false);
        self.sessions.push(Session {
            id,
            person,
            revision,
            next_id: 1,
            due,
            general,
            general_log,
            gone,
            may_be_gone,
            unsure,
            purged,
        });
        let ready = wire::notification(revision, "notifications/initialized", json!({}));
        let request = self.own(session, ready);
        assert_eq!(self.ask(request).await.0, StatusCode::ACCEPTED);
        format!("session {session} of {revision:?} for {}", wire::PEOPLE[person])
    }

    fn act(&self, a: u8) -> Act {
        let tell = [0, 1, 3, 20][usize::from(a & 3)];
        let wait = [0, 0, 10, 20_000][usize::from(a >> 2 & 3)];
        let ends = [End::Result, End::Result, End::Error, End::Panic, End::Hang, End::Ask, End::Ask, End::LetGo];
        Act { tag: self.calls.len(), tell, wait, end: ends[usize::from(a >> 4 & 7)] }
    }

    fn enter(&mut self, session: Option<usize>, calls: Vec<Call>) -> usize {
        let tags = calls.iter().map(|call| call.act.tag).collect();
        self.calls.extend(calls);
        self.streams.push(Stream { session, calls: tags, ..Stream::default() });
        self.streams.len() - 1
    }

    fn call_in(&mut self, session: usize, a: u8, b: u8) -> String {
        let own = &mut self.sessions[session];
        let (id, revision) = (own.next_id, own.revision);
        own.next_id += 1;
        if own.may_be_gone {
            return "a session that may be gone".to_owned();
        }
        let act = self.act(a);
        let mut call = Call::new(act.clone(), id, Some(session));
        let request = self.own(session, wire::call(revision, "prompts/get", params(&act), id));
        let request = Self::accepting(request, b, &mut call);
        let stream = self.enter(Some(session), vec![call]);
        let connection = self.connect(request, Reads::Answer(stream), 0);
        format!("connection {connection}: {act:?} with id {id} in session {session}")
    }

    fn call_alone(&mut self, who: u8, a: u8, b: u8) -> String {
        let revision = if who & 0x20 == 0 { MODERN } else { LEGACY[usize::from(b >> 4) % 4] };
        let (act, id) = (self.act(a), self.next_id);
        self.next_id += 1;
        let mut call = Call::new(act.clone(), id, None);
        call.is_modern = revision == MODERN;
        call.person = usize::from(who & 1);
        let request = wire::named(call.person, wire::call(revision, "prompts/get", params(&act), id));
        let request = Self::accepting(request, b, &mut call);
        let stream = self.enter(None, vec![call]);
        let connection = self.connect(request, Reads::Answer(stream), 0);
        format!("connection {connection}: {act:?} with id {id} of {revision:?}")
    }

    fn accepting(request: Request<Bytes>, b: u8, call: &mut Call) -> Request<Bytes> {
        match b & 7 {
            0 => {
                call.json_only = true;
                wire::with("accept", "application/json", request)
            }
            1 => wire::with("accept", "text/event-stream", request),
            _ => request,
        }
    }

    /// Reads so many times, or as often as there is something.
    fn read(&mut self, who: u8, a: u8) -> String {
        if self.connections.is_empty() {
            return "nothing to read".to_owned();
        }
        let connection = usize::from(who) % self.connections.len();
        let most = if a > 200 { 1000 } else { usize::from(a % 8) + 1 };
        let read = (0..most).take_while(|_| self.look(connection)).count();
        format!("read {read} times from connection {connection}")
    }

    /// A connection breaks.
    fn hang_up(&mut self, who: u8) -> String {
        if self.connections.is_empty() {
            return "nothing to hang up".to_owned();
        }
        let number = usize::from(who) % self.connections.len();
        let connection = &mut self.connections[number];
        let was_gone = connection.slot.is_gone();
        connection.slot = Slot::Gone;
        if !was_gone && !connection.superseded {
            match connection.reads {
                Reads::Answer(stream) => self.streams[stream].lost = true,
                Reads::General { session, .. } => {
                    let session = &mut self.sessions[session];
                    session.general = None;
                    if !self.has_store {
                        session.due.due.clear();
                    }
                }
                Reads::Listen(_) | Reads::Anything => {}
            }
        }
        format!("hang up connection {number}")
    }

    /// Takes a request of the session back, known or not.
    async fn cancel(&mut self, session: usize, a: u8) -> String {
        let (id, revision) = (usize::from(a % 8) + 1, self.sessions[session].revision);
        let params = json!({"requestId": id, "reason": "model"});
        let request = wire::notification(revision, "notifications/cancelled", params);
        let Some((status, _)) = self.in_session(session, request).await else { return "gone".to_owned() };
        assert_eq!(status, StatusCode::ACCEPTED);
        for call in &mut self.calls {
            call.cancelled |= call.session == Some(session) && call.id == id;
        }
        format!("cancel {id} in session {session}")
    }

    /// Opens the general stream.
    async fn get(&mut self, session: usize, a: u8) -> String {
        if self.sessions[session].may_be_gone {
            return "a session that may be gone".to_owned();
        }
        let request = self.own(session, wire::bare(Method::GET));
        if a & 0x30 == 0x30 {
            let stranger = 1 - self.sessions[session].person;
            let (status, ..) = self.ask(wire::named(stranger, request)).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "a stranger's GET");
            return format!("a stranger's GET of session {session}");
        }
        self.open_general(session, request)
    }

    fn open_general(&mut self, session: usize, request: Request<Bytes>) -> String {
        let is_open = self.sessions[session].general.is_some();
        let stream = if self.has_store {
            self.sessions[session].general_log
        } else {
            self.streams.push(Stream { session: Some(session), ..Stream::default() });
            self.streams.len() - 1
        };
        let at = self.streams[stream].log.len();
        let unsure = self.sessions[session].unsure;
        let reads = if unsure { Reads::Anything } else { Reads::General { session, stream } };
        let connection = self.connect(request, reads, at);
        let opened = !self.connections[connection].slot.is_gone();
        if !unsure {
            assert_eq!(opened, !is_open || self.takes_over, "a second GET");
        }
        if opened {
            self.supersede_general(session, connection);
        }
        format!("connection {connection}: GET of session {session}, opened: {opened}")
    }

    fn supersede_general(&mut self, session: usize, connection: usize) {
        // What it is told for what was purged it may be told on a later stream.
        self.connections[connection].lenient = self.sessions[session].purged;
        if let Some(before) = self.sessions[session].general.replace(connection) {
            self.connections[before].superseded = true;
        }
    }

    /// Comes back with any id that anybody has read.
    async fn resume(&mut self, session: usize, a: u8, b: u8) -> String {
        if self.ids.is_empty() || self.sessions[session].may_be_gone {
            return "no id to resume from".to_owned();
        }
        let (stream, id) = self.ids[(usize::from(a) | usize::from(b) << 8) % self.ids.len()].clone();
        let request = self.own(session, wire::with("last-event-id", &id, wire::bare(Method::GET)));
        let words = format!("resume from {id} in session {session}");
        if self.streams[stream].session != Some(session) {
            let (status, ..) = self.ask(request).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "another session's event");
            return words + ", a foreign one";
        }
        let at = self.streams[stream].ids[&id];
        if stream == self.sessions[session].general_log {
            return self.resume_general(session, request, at, &words);
        }
        let own = &self.streams[stream];
        let is_read = at == own.log.len();
        let is_over = own.calls.iter().all(|tag| self.calls[*tag].answered);
        if is_read && is_over && !self.tiny_store {
            return words + ": " + &self.open_general(session, request);
        }
        if is_read && own.calls.iter().any(|tag| self.calls[*tag].cancelled) || self.tiny_store {
            // The rest of it, the general stream, or nothing.
            self.connect(request, Reads::Anything, 0);
            self.sessions[session].unsure = true;
            self.streams[stream].lost = true;
            let reading = self.connections.iter_mut().filter(|other| other.reads == Reads::Answer(stream));
            reading.for_each(|other| other.reads = Reads::Anything);
            return words + ", of which nobody knows what is left";
        }
        let connection = self.connect(request, Reads::Answer(stream), at);
        assert!(!self.connections[connection].slot.is_gone(), "not resumed");
        for (number, other) in self.connections.iter_mut().enumerate() {
            other.superseded |= number != connection && other.reads == Reads::Answer(stream);
        }
        self.streams[stream].lost = false;
        format!("connection {connection}: {words}")
    }

    fn resume_general(&mut self, session: usize, request: Request<Bytes>, at: usize, words: &str) -> String {
        let stream = self.sessions[session].general_log;
        let reads = if self.sessions[session].unsure { Reads::Anything } else { Reads::General { session, stream } };
        let connection = self.connect(request, reads, at);
        assert!(!self.connections[connection].slot.is_gone(), "not resumed");
        self.sessions[session].purged |= self.tiny_store;
        self.supersede_general(session, connection);
        format!("connection {connection}: {words}, the general stream")
    }

    fn publish(&mut self, a: u8) -> String {
        let change = match a % 6 {
            0 => Change::Tools,
            1 => Change::Prompts,
            2 => Change::Resources,
            uri => Change::Updated(usize::from(uri) - 3),
        };
        match change {
            Change::Tools => self.changes.tools_list_changed(),
            Change::Prompts => self.changes.prompts_list_changed(),
            Change::Resources => self.changes.resources_list_changed(),
            Change::Updated(uri) => self.changes.resource_updated(URIS[uri]),
        }
        let keeps = self.has_store;
        let open = self.sessions.iter_mut().filter(|session| keeps || session.general.is_some());
        open.for_each(|session| session.due.publish(change));
        self.listeners.iter_mut().for_each(|listener| listener.due.publish(change));
        format!("publish {change:?}")
    }

    async fn subscribe(&mut self, session: usize, a: u8, b: u8) -> String {
        let (uri, subscribes) = (usize::from(a) % 3, b & 3 != 0);
        let method = if subscribes { "resources/subscribe" } else { "resources/unsubscribe" };
        let id = self.sessions[session].next_id;
        self.sessions[session].next_id += 1;
        let request = wire::call(self.sessions[session].revision, method, json!({"uri": URIS[uri]}), id);
        let request = wire::with("accept", "application/json", request);
        let Some((status, answer)) = self.in_session(session, request).await else { return "gone".to_owned() };
        assert_eq!((status, &answer["id"], &answer["result"]), (StatusCode::OK, &json!(id), &json!({})));
        let due = &mut self.sessions[session].due;
        if subscribes {
            due.wants.insert(Change::Updated(uri));
        } else {
            due.wants.remove(&Change::Updated(uri));
            due.due.remove(&Change::Updated(uri));
        }
        format!("{method} {uri} in session {session}")
    }

    async fn listen(&mut self, who: u8, a: u8) -> String {
        if self.listeners.len() >= 4 {
            return "no more listeners".to_owned();
        }
        let bit = |bit: u8| a & 1 << bit != 0;
        let uris: Vec<_> = (0..3).filter(|uri| bit(3 + *uri)).map(usize::from).collect();
        let filter = json!({"toolsListChanged": bit(0), "promptsListChanged": bit(1), "resourcesListChanged": bit(2),
            "resourceSubscriptions": uris.iter().map(|uri| URIS[*uri]).collect::<Vec<_>>()});
        let lists = LISTS.into_iter().enumerate().filter(|(at, _)| bit(*at as u8)).map(|(_, list)| list);
        let wants = lists.chain(uris.into_iter().map(Change::Updated)).collect();
        let id = self.next_id;
        self.next_id += 1;
        let request = wire::call(MODERN, "subscriptions/listen", json!({"notifications": filter}), id);
        let request = wire::named(usize::from(who & 1), request);
        let due = Due { wants, ..Due::default() };
        self.listeners.push(Listener { id, due, acknowledged: false });
        let listener = self.listeners.len() - 1;
        let connection = self.connect(request, Reads::Listen(listener), 0);
        for _ in 0..20 {
            if self.listeners[listener].acknowledged {
                break;
            }
            self.look(connection);
            tokio::task::yield_now().await;
        }
        assert!(self.listeners[listener].acknowledged, "no acknowledgement");
        format!("connection {connection}: listener {listener} to {:?}", self.listeners[listener].due.wants)
    }

    async fn pass(&mut self, a: u8) -> String {
        let time = [1, 1, 10, 10, 100, 1000, 4000, 5000, 6000, 15_000, 15_001, 20_000, 31_000, 1, 10, 660_000];
        let time = Duration::from_millis(time[usize::from(a & 15)]);
        tokio::time::advance(time).await;
        if time > Duration::from_secs(600) {
            for session in 0..self.sessions.len() {
                // A stream that is open holds it.
                let general = self.sessions[session].general;
                let is_held = general.is_some_and(|general| matches!(self.connections[general].slot, Slot::Open(_)));
                self.sessions[session].may_be_gone |= !is_held || self.sessions[session].unsure;
            }
        }
        format!("{time:?} pass")
    }

    /// Answers a question, perhaps one that another session was asked.
    async fn reply(&mut self, session: usize, a: u8, b: u8) -> String {
        let id = if b & 1 == 0 {
            let mut own: Vec<_> = self.asks.keys().filter(|(of, _)| *of == session).map(|(_, id)| *id).collect();
            own.sort_unstable();
            if own.is_empty() { u64::from(a) } else { own[usize::from(a) % own.len()] }
        } else {
            u64::from(a % 8)
        };
        let result = json!({"action": "accept", "content": {"word": "x"}});
        let response = wire::post(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        let Some((status, _)) = self.in_session(session, response).await else { return "gone".to_owned() };
        let known = self.asks.contains_key(&(session, id));
        // A question that is asked but was not read yet may be answered by one who guesses its number: it is their own.
        let asks = self.calls.iter().any(|call| call.session == Some(session) && call.act.end == End::Ask);
        assert!(status == StatusCode::BAD_REQUEST || status == StatusCode::ACCEPTED && (known || asks), "{status}");
        format!("answer question {id} in session {session}: {status}")
    }

    async fn delete(&mut self, session: usize) -> String {
        let Some((status, _)) = self.in_session(session, wire::bare(Method::DELETE)).await else {
            return "gone".to_owned();
        };
        assert_eq!(status, StatusCode::NO_CONTENT);
        self.lose(session);
        format!("delete session {session}")
    }

    /// The next round of a question of 2026-07-28, by whom it was asked or by somebody else.
    async fn retry(&mut self, a: u8, b: u8) -> String {
        let asked: Vec<_> = self.calls.iter().filter(|call| call.state.is_some()).map(|call| call.act.tag).collect();
        if asked.is_empty() {
            return "no round to go on with".to_owned();
        }
        let (tag, id) = (asked[usize::from(a) % asked.len()], self.next_id);
        self.next_id += 1;
        let call = &self.calls[tag];
        if call.act.wait > 0 {
            return "a round that takes time".to_owned();
        }
        let (owner, state) = (call.person, call.state.clone().expect("a state"));
        let (person, is_changed) = (usize::from(b >> 2 & 1), b & 0x80 != 0);
        let mut params = params(&call.act);
        params["requestState"] = state;
        params["inputResponses"] = json!({"q": {"action": "accept", "content": {"word": "x"}}});
        if is_changed {
            params["tell"] = json!(7);
        }
        let request = wire::named(person, wire::call(MODERN, "prompts/get", params, id));
        let (status, _, answer) = self.ask(wire::with("accept", "application/json", request)).await;
        if person == owner && !is_changed {
            let heard = &answer["result"]["heard"];
            assert_eq!((status, &heard["action"]), (StatusCode::OK, &json!("accept")), "{answer}");
            assert_eq!((&answer["id"], &answer["result"]["tag"]), (&json!(id), &json!(tag)));
        } else {
            assert_eq!((status, &answer["error"]["code"]), (StatusCode::BAD_REQUEST, &json!(-32602)), "{answer}");
        }
        format!("another round of {tag} by {}, changed: {is_changed}", wire::PEOPLE[person])
    }

    fn batch(&mut self, session: Option<usize>, a: u8, b: u8) -> String {
        let has_batches = |session: &usize| {
            self.sessions[*session].revision == Revision::V2025_03_26 && !self.sessions[*session].may_be_gone
        };
        let session = session.filter(has_batches);
        let mut next_id = session.map_or(self.next_id, |session| self.sessions[session].next_id);
        let (mut elements, mut calls) = (Vec::new(), Vec::new());
        for n in 0..2 + usize::from(b >> 6) {
            let act = Act { tag: self.calls.len() + n, ..self.act(a.rotate_left(n as u32)) };
            let message = json!({"jsonrpc": "2.0", "id": next_id, "method": "prompts/get", "params": params(&act)});
            elements.push(message);
            calls.push(Call::new(act, next_id, session));
            next_id += 1;
        }
        elements.push(json!({"jsonrpc": "2.0", "method": "notifications/y"}));
        let mut request = wire::post(&Value::Array(elements));
        match session {
            Some(session) => {
                self.sessions[session].next_id = next_id;
                request = self.own(session, request);
            }
            None => self.next_id = next_id,
        }
        if b & 7 == 0 {
            calls.iter_mut().for_each(|call| call.json_only = true);
            request = wire::with("accept", "application/json", request);
        }
        let words = format!("{:?} in session {session:?}", calls.iter().map(|call| &call.act).collect::<Vec<_>>());
        let stream = self.enter(session, calls);
        let connection = self.connect(request, Reads::Answer(stream), 0);
        format!("connection {connection}: a batch of {words}")
    }

    /// Somebody else's request, cancellation or DELETE in a session.
    async fn foreign(&mut self, session: usize, a: u8) -> String {
        let Session { id, person, revision, next_id, .. } = &self.sessions[session];
        let act = Act { tag: usize::MAX, ..Act::default() };
        let request = match a % 4 {
            0 => wire::call(*revision, "prompts/get", params(&act), *next_id),
            1 => wire::notification(*revision, "notifications/cancelled", json!({"requestId": a % 8})),
            2 => wire::post(&json!({"jsonrpc": "2.0", "id": a % 8, "result": {}})),
            _ => wire::bare(Method::DELETE),
        };
        let request = wire::inside(id, wire::named(1 - person, request));
        let (status, ..) = self.ask(request).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "a stranger in a session");
        format!("a stranger in session {session}: {}", a % 4)
    }

    /// What is no proper request.
    async fn odd(&mut self, session: Option<usize>, a: u8) -> String {
        let odd = ["{", "[]", "[1]", "7", "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"x\"}", "null", ""];
        let body = odd[usize::from(a) % odd.len()];
        let mut request = wire::post(&json!(null)).map(|_| Bytes::from_static(body.as_bytes()));
        if let Some(session) = session {
            request = self.own(session, request);
        }
        let (status, _, answer) = self.ask(request).await;
        // An element that is no message has an error of its own.
        let element = answer.get(0).unwrap_or(&answer);
        let is_refused = status.is_client_error() || status == StatusCode::OK && element["error"]["code"] == -32600;
        assert!(is_refused, "{body} got {status}: {answer}");
        format!("{body:?}")
    }
}

fn params(act: &Act) -> Value {
    let Act { tag, tell, wait, end } = act;
    json!({"name": "t", "tag": tag, "tell": tell, "wait": wait, "end": format!("{end:?}")})
}
