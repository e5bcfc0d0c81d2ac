//! The ladder of checks: every fault of the tables alone, and with every later one that fits into the same request.

mod faults;
mod subjects;

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use mcp_transport::{Era, Limits, Reply, Revision, StreamableHttpService};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, yield_now};
use tower::service_fn;

use self::faults::{
    BUSY, DRAINING_IN_SESSION, END_OF_NOTHING, Fault, IN_SESSION, Id, LEGACY, LISTENING, LIVE, MODERN, NOT_MODERN,
    SECOND_STREAM, SHARED, STREAM, STREAM_OF_NOBODY, part,
};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, PROTOCOL_VERSION, SESSION_ID};
use crate::support::seen::Refusals;
use crate::support::server::Body;
use crate::support::session;

/// The longest body the service takes, in bytes. The right request is shorter.
const BODY_LIMIT: usize = 4096;

/// The tool the right requests call.
const TOOL: &str = "echo";

/// The header its argument `region` is mirrored into.
const MCP_PARAM: &str = "mcp-param-region";

pub fn register(wire: &mut Wire) {
    wire.harness("ladder-applies", Carriers::Clock, |_| async { every_fault_applies() });
    wire.harness("ladder-judges", Carriers::Every, judges);
    wire.any("http/rungs", Carriers::Every, |cx| climb(cx, Ladder::request(cx.revision), Ladder::singles));
    wire.any("http/rungs/pairs", Carriers::Every, |cx| climb(cx, Ladder::request(cx.revision), Ladder::pairs));
    let others: [(_, Make); 4] = [
        ("notification", Ladder::notification),
        ("get", |revision| Ladder::without_body(Method::GET, revision)),
        ("delete", |revision| Ladder::without_body(Method::DELETE, revision)),
        ("options", |revision| Ladder::without_body(Method::OPTIONS, revision)),
    ];
    for (name, ladder) in others {
        let row = format!("http/rungs/{name}");
        wire.any(&row, Carriers::Every, move |cx| climb(cx, ladder(cx.revision), Ladder::singles));
        wire.any(&format!("{row}-pairs"), Carriers::Clock, move |cx| climb(cx, ladder(cx.revision), Ladder::pairs));
    }
    wire.any_legacy("http/rungs/session-draining", Carriers::Every, gets_in_while_draining);
    let in_sessions: [(_, Make); 4] = [
        ("request", Ladder::session_request),
        ("notification", Ladder::session_notification),
        ("get", Ladder::session_get),
        ("delete", Ladder::session_delete),
    ];
    for (name, ladder) in in_sessions {
        let row = format!("http/rungs/session-{name}");
        wire.any_legacy(&row, Carriers::Every, move |cx| climb(cx, ladder(cx.revision), Ladder::singles));
        let pairs = format!("{row}-pairs");
        wire.any_legacy(&pairs, Carriers::Every, move |cx| climb(cx, ladder(cx.revision), Ladder::pairs));
    }
}

/// Each request with a fault behind which its id can be read, and the fault's name.
pub fn refused_by_name(revision: Revision) -> Vec<(&'static str, Call)> {
    let ladder = Ladder::request(revision);
    let kept = ladder.singles().into_iter().filter(|broken| broken.first.id == Id::Kept);
    kept.map(|broken| (broken.first.name, broken.call())).collect()
}

/// The method of the request that is being answered all the time.
const BUSY_METHOD: &str = "x/busy";

/// A server under test.
struct Served {
    client: Client,
    /// How often its handler ran for more than a listing.
    runs: Arc<AtomicUsize>,
    refusals: Refusals,
    /// What stands for the id of a session, and that id.
    sessions: Vec<(&'static str, String)>,
    /// Keeps its streams open, and a request of the live session unanswered.
    _open: Vec<JoinHandle<()>>,
}

impl Served {
    /// One that is open or draining, and may have sessions.
    async fn start(cx: Cx, draining: bool, in_session: bool) -> Self {
        let (service, runs, refusals) = service();
        let client = cx.serve(service.clone()).await;
        let mut served = Self { client, runs, refusals, sessions: Vec::new(), _open: Vec::new() };
        if in_session {
            served.open_sessions(cx, &service).await;
        }
        if draining {
            service.drain(Duration::ZERO).await;
            served.sessions.retain(|(name, _)| *name != LISTENING);
        }
        served.runs.store(0, Ordering::SeqCst);
        served
    }

    async fn open_sessions(&mut self, cx: Cx, service: &StreamableHttpService) {
        let live = session::open(&self.client, cx.revision).await;
        let listening = session::open(&self.client, cx.revision).await;
        let mut stream = listening.listen().await;
        let (client, busy) = (self.client.clone(), live.call(BUSY_METHOD, Value::Null).id(BUSY));
        self._open = vec![
            tokio::spawn(async move { while stream.chunk().await.is_some() {} }),
            tokio::spawn(async move { drop(client.send(busy).await.text().await) }),
        ];
        while service.counts().in_flight == 0 {
            yield_now().await;
        }
        self.sessions = vec![(LIVE, live.id), (LISTENING, listening.id)];
    }

    /// Sends a call, whose sessions are named by what stands for them.
    async fn send(&self, mut call: Call) -> Answer {
        for value in call.headers.values_mut() {
            if let Some((_, id)) = self.sessions.iter().find(|(name, _)| value == name) {
                *value = id.parse().expect("a session id is a header value");
            }
        }
        self.refusals.take();
        self.client.send(call).await
    }
}

/// The service under test, how often its handler ran for more than a listing, and what it refused.
pub fn service() -> (StreamableHttpService, Arc<AtomicUsize>, Refusals) {
    let (runs, refusals) = (Arc::new(AtomicUsize::new(0)), Refusals::default());
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tools = json!({"tools": [{"name": TOOL, "inputSchema": schema}]});
    let (asked, told) = (Arc::clone(&runs), Arc::clone(&runs));
    let script = Script::new(move |request, _| {
        let (listing, busy) = (request.method() == "tools/list", request.method() == BUSY_METHOD);
        asked.fetch_add(usize::from(!listing), Ordering::SeqCst);
        let answer = if listing { Reply::of(&tools) } else { Reply::empty() };
        async move { if busy { pending().await } else { answer } }
    });
    let script = script.hearing(move |_, _| {
        told.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let service = StreamableHttpService::builder(script)
        .limits(Limits::default().body_bytes(BODY_LIMIT))
        .allow_host("localhost")
        .allow_host("127.0.0.1")
        .observer(refusals.clone())
        .build()
        .expect("a service");
    (service, runs, refusals)
}

/// A right request, and the faults it can have.
struct Ladder {
    revision: Revision,
    right: fn(Revision) -> Call,
    /// What the right request is answered with: a refusal for a GET or DELETE, which belongs to no session.
    bottom: StatusCode,
    /// Whether it carries an id that a refusal could name.
    has_id: bool,
    /// Whether it is sent in a session.
    in_session: bool,
    /// In the order in which they are judged.
    faults: Vec<&'static Fault>,
}

/// The ladder of a revision.
type Make = fn(Revision) -> Ladder;

impl Ladder {
    fn request(revision: Revision) -> Self {
        let faults = SHARED.iter().chain(own(revision)).filter(|fault| (fault.applies)(revision)).collect();
        Self { revision, right, bottom: StatusCode::OK, has_id: true, in_session: false, faults }
    }

    /// The same without `id`: of what 2026-07-28 asks of a request, a notification owes but that its versions agree.
    fn notification(revision: Revision) -> Self {
        let mut ladder = Self::request(revision);
        ladder.faults.retain(|fault| fault.rung < 8 || revision.era() == Era::Legacy || NOTIFIED.contains(&fault.name));
        ladder.faults.retain(|fault| fault.parts & part::ID == 0 || fault.parts & part::METHOD != 0);
        Self { right: |revision| right(revision).notification(), bottom: StatusCode::ACCEPTED, has_id: false, ..ladder }
    }

    /// A GET, DELETE or OPTIONS, outside any session: the first two have nowhere to go.
    fn without_body(method: Method, revision: Revision) -> Self {
        let headers = LEGACY.iter().filter(|fault| fault.parts & !(part::VERSION | part::SESSION) == 0);
        let own: Vec<_> = match (&method, revision.era()) {
            (&Method::GET, Era::Legacy) => NOT_MODERN.iter().chain(STREAM).chain(headers).collect(),
            (&Method::DELETE, Era::Legacy) => NOT_MODERN.iter().chain(headers).collect(),
            _ => Vec::new(),
        };
        let faults = SHARED.iter().filter(|fault| fault.rung < 2).chain(own).collect();
        let (right, bottom): (fn(Revision) -> Call, _) = match (method, revision.era()) {
            (Method::GET, _) => (|revision| bare(Method::GET, revision), StatusCode::METHOD_NOT_ALLOWED),
            (Method::DELETE, Era::Legacy) => (|revision| bare(Method::DELETE, revision), StatusCode::BAD_REQUEST),
            (Method::DELETE, Era::Modern) => {
                (|revision| bare(Method::DELETE, revision), StatusCode::METHOD_NOT_ALLOWED)
            }
            _ => (|revision| bare(Method::OPTIONS, revision), StatusCode::NO_CONTENT),
        };
        Self { revision, right, bottom, has_id: false, in_session: false, faults }
    }

    /// A request in a session.
    fn session_request(revision: Revision) -> Self {
        let head = SHARED.iter().filter(|fault| (0..=5).contains(&fault.rung)).chain([&DRAINING_IN_SESSION]);
        let body = SHARED.iter().filter(|fault| fault.rung > 5);
        let faults = head.chain(body).chain(IN_SESSION).filter(|fault| (fault.applies)(revision)).collect();
        let right = |revision| right(revision).header(SESSION_ID, LIVE);
        Self { revision, right, bottom: StatusCode::OK, has_id: true, in_session: true, faults }
    }

    /// The same without `id`: it takes none, and `initialize` is no other notification than any.
    fn session_notification(revision: Revision) -> Self {
        let mut ladder = Self::session_request(revision);
        ladder.faults.retain(|fault| fault.parts & part::ID == 0 || fault.parts & part::METHOD != 0);
        ladder.faults.retain(|fault| fault.name != "initialize");
        let right = |revision| right(revision).header(SESSION_ID, LIVE).notification();
        Self { right, bottom: StatusCode::ACCEPTED, has_id: false, ..ladder }
    }

    /// A GET for the general stream of a session.
    fn session_get(revision: Revision) -> Self {
        let shared = SHARED.iter().filter(|fault| fault.rung < 2);
        let (versions, sessions) = in_session_headers();
        let own = NOT_MODERN.iter().chain(STREAM).chain(versions).chain([&STREAM_OF_NOBODY]).chain(sessions);
        let faults = shared.chain(own).chain([&SECOND_STREAM]).collect();
        let right = |revision| bare(Method::GET, revision).header(SESSION_ID, LIVE);
        Self { revision, right, bottom: StatusCode::OK, has_id: false, in_session: true, faults }
    }

    /// A DELETE of a session, which gets in while the server drains.
    fn session_delete(revision: Revision) -> Self {
        let shared = SHARED.iter().filter(|fault| (0..2).contains(&fault.rung));
        let (versions, sessions) = in_session_headers();
        let own = NOT_MODERN.iter().chain(versions).chain([&END_OF_NOTHING]).chain(sessions);
        let right = |revision| bare(Method::DELETE, revision).header(SESSION_ID, LIVE);
        let faults = shared.chain(own).collect();
        Self { revision, right, bottom: StatusCode::NO_CONTENT, has_id: false, in_session: true, faults }
    }

    /// Each fault alone.
    fn singles(&self) -> Vec<Broken<'_>> {
        self.faults.iter().map(|first| Broken { ladder: self, first, second: None }).collect()
    }

    /// Every two faults that fit into one request.
    fn pairs(&self) -> Vec<Broken<'_>> {
        let later = |at: usize, first: &'static Fault| {
            let fitting = self.faults[at + 1..].iter().filter(move |second| first.parts & second.parts == 0);
            fitting.map(move |second| Broken { ladder: self, first, second: Some(second) })
        };
        self.faults.iter().enumerate().flat_map(|(at, first)| later(at, first)).collect()
    }
}

/// The faults in the headers of a message in a session: those judged before its session is looked for, and the others.
fn in_session_headers() -> (impl Iterator<Item = &'static Fault>, impl Iterator<Item = &'static Fault>) {
    let headers = || IN_SESSION.iter().filter(|fault| fault.parts & !(part::VERSION | part::SESSION) == 0);
    let is_unknown = |fault: &&Fault| fault.status == StatusCode::NOT_FOUND;
    (headers().filter(move |fault| !is_unknown(fault)), headers().filter(is_unknown))
}

/// The request that every fault of a POST breaks.
fn right(revision: Revision) -> Call {
    let params = json!({"name": TOOL, "arguments": {"region": "eu"}, "_meta": {}});
    let call = Call::of(revision, "tools/call", params);
    match revision.era() {
        Era::Modern => call.header(MCP_PARAM, "eu"),
        Era::Legacy => call,
    }
}

/// A request without body. A GET asks for an event stream, which nothing but GET is judged by.
fn bare(method: Method, revision: Revision) -> Call {
    let mut call = Call::get();
    call.method = method;
    if revision >= Revision::V2025_06_18 { call.header(PROTOCOL_VERSION, revision.as_str()) } else { call }
}

/// What a POST of this revision is judged by, behind the shared rungs.
fn own(revision: Revision) -> &'static [Fault] {
    match revision.era() {
        Era::Modern => MODERN,
        Era::Legacy => LEGACY,
    }
}

/// The faults of [`MODERN`] that a notification can have.
const NOTIFIED: [&str; 8] = [
    "claim-doubled",
    "array",
    "response",
    "version-twice",
    "version-differs",
    "version-differs-legacy",
    "not-served",
    "not-served-legacy",
];

/// A request with one fault or two, and what it must be answered with.
struct Broken<'l> {
    ladder: &'l Ladder,
    first: &'static Fault,
    second: Option<&'static Fault>,
}

impl Broken<'_> {
    fn faults(&self) -> impl Iterator<Item = &'static Fault> {
        std::iter::once(self.first).chain(self.second)
    }

    fn call(&self) -> Call {
        let mut call = (self.ladder.right)(self.ladder.revision);
        self.faults().for_each(|fault| (fault.breaks)(&mut call));
        call
    }

    fn needs_draining(&self) -> bool {
        self.faults().any(|fault| fault.status == StatusCode::SERVICE_UNAVAILABLE)
    }

    /// The id of the answer: there is one if the first fault keeps it and the second leaves it readable.
    fn id(&self) -> Option<Value> {
        let spoils = |fault: &Fault| fault.parts & part::ID != 0 && fault.id == Id::None;
        let readable = self.ladder.has_id && self.second.is_none_or(|second| !spoils(second));
        (self.first.id == Id::Kept && readable).then(|| self.call().body["id"].clone())
    }

    /// Sends it, and says what is wrong with the answer.
    async fn judge(&self, server: &Served) -> Result<(), String> {
        let answer = server.send(self.call()).await;
        let (status, headers) = (answer.status, answer.headers.clone());
        let text = answer.text().await;
        let names: Vec<_> = self.faults().map(|fault| format!("{}-{}", fault.rung, fault.name)).collect();
        let wrong = |what: String| Err(format!("{}: {what}, with {status} {text}", names.join(" + ")));

        let error: Value = serde_json::from_str(&text).unwrap_or_default();
        if status != self.first.status || error["error"]["code"] != self.first.code {
            return wrong(format!("not {} {}", self.first.status, self.first.code));
        }
        if error.get("id") != self.id().as_ref() {
            return wrong(format!("the id is not {:?}", self.id()));
        }
        if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
            return wrong("not as application/json".to_owned());
        }
        let allow: Vec<_> = headers.get_all(ALLOW).iter().map(|allow| allow.to_str().unwrap_or_default()).collect();
        if allow != self.first.allow {
            return wrong(format!("allowed is {allow:?}"));
        }
        let heard = server.refusals.heard();
        let kinds: Vec<_> = heard.iter().map(|heard| heard.kind).collect();
        if self.first.kind.is_some_and(|kind| kinds != [kind]) {
            return wrong(format!("heard of as {kinds:?}"));
        }
        // Of two on the same rung either may be the one that is told of.
        let misled = || heard.iter().find_map(|heard| subjects::misled(self.first, heard));
        if let Some(what) = self.second.is_none().then(misled).flatten() {
            return wrong(what);
        }
        if headers.contains_key(RETRY_AFTER) != (status == StatusCode::SERVICE_UNAVAILABLE) {
            return wrong("Retry-After without 503, or 503 without".to_owned());
        }
        Ok(())
    }
}

/// Sends all `requests` of a ladder, once it is sure that the request they break is right. Fails with the list of those
/// that were answered wrongly.
async fn climb(cx: Cx, ladder: Ladder, requests: fn(&Ladder) -> Vec<Broken<'_>>) {
    let open = Served::start(cx, false, ladder.in_session).await;
    let draining = Served::start(cx, true, ladder.in_session).await;
    let mut wrong = Vec::new();
    for request in requests(&ladder) {
        let server = if request.needs_draining() { &draining } else { &open };
        wrong.extend(request.judge(server).await.err());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let runs = (open.runs.load(Ordering::SeqCst), draining.runs.load(Ordering::SeqCst));
    assert_eq!(runs, (0, 0), "the handler ran for none of them");
    // Last, since it may end the session they were sent in.
    let answer = open.send((ladder.right)(cx.revision)).await;
    assert_eq!(answer.status, ladder.bottom, "the right request");
    let asks = ladder.has_id || ladder.bottom == StatusCode::ACCEPTED;
    assert_eq!(open.runs.load(Ordering::SeqCst), usize::from(asks), "the handler ran for the right request");
}

/// While the server drains, the client of a live session may still answer, cancel and end it, and nothing else.
async fn gets_in_while_draining(cx: Cx) {
    let (service, runs, _) = service();
    let client = cx.serve(service.clone()).await;
    let live = session::open(&client, cx.revision).await;
    service.drain(Duration::ZERO).await;
    let response = json!({"jsonrpc": "2.0", "id": "x", "result": {}});
    let call = |method| Call::legacy(cx.revision, method, json!({"requestId": 7}));
    for (call, status) in [
        (live.post(response.clone()), StatusCode::BAD_REQUEST),
        (live.cancellation(7), StatusCode::ACCEPTED),
        (live.call("ping", Value::Null), StatusCode::SERVICE_UNAVAILABLE),
        (live.call("notifications/cancelled", json!({"requestId": 7})), StatusCode::SERVICE_UNAVAILABLE),
        (live.notification("notifications/initialized", Value::Null), StatusCode::SERVICE_UNAVAILABLE),
        (live.notification("notifications/x", Value::Null), StatusCode::SERVICE_UNAVAILABLE),
        (live.get(), StatusCode::SERVICE_UNAVAILABLE),
        (session::initialize(cx.revision), StatusCode::SERVICE_UNAVAILABLE),
        (Call::post(response.clone()), StatusCode::SERVICE_UNAVAILABLE),
        (Call::post(response).header(SESSION_ID, "none"), StatusCode::SERVICE_UNAVAILABLE),
        (call("notifications/cancelled").notification(), StatusCode::SERVICE_UNAVAILABLE),
        (call("notifications/cancelled").notification().header(SESSION_ID, "none"), StatusCode::SERVICE_UNAVAILABLE),
        (Call::bare(Method::DELETE), StatusCode::SERVICE_UNAVAILABLE),
        (Call::modern("x/y", json!({})).header(SESSION_ID, &live.id), StatusCode::SERVICE_UNAVAILABLE),
        (live.delete(), StatusCode::NO_CONTENT),
        (live.delete(), StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let said = format!("{} {:?} {}", call.method, call.headers, call.body);
        let answer = client.send(call).await;
        assert_eq!(answer.status, status, "{said}");
        if status == StatusCode::SERVICE_UNAVAILABLE {
            assert_ne!(answer.header(RETRY_AFTER.as_str()), "", "{said}");
            answer.error(status, -32603, None).await;
        }
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

/// Every fault changes the right request, and every pair can be built.
fn every_fault_applies() {
    let written = |call: Call| (call.method.clone(), call.headers.clone(), call.into_bytes());
    let ladders: [(Make, _); 9] = [
        (Ladder::request, 300),
        (Ladder::notification, 300),
        (|revision| Ladder::without_body(Method::GET, revision), 10),
        (|revision| Ladder::without_body(Method::DELETE, revision), 10),
        (|revision| Ladder::without_body(Method::OPTIONS, revision), 5),
        (Ladder::session_request, 400),
        (Ladder::session_notification, 300),
        (Ladder::session_get, 70),
        (Ladder::session_delete, 40),
    ];
    for revision in Revision::ALL {
        for (ladder, least) in ladders {
            let ladder = ladder(revision);
            if ladder.in_session && revision.era() == Era::Modern {
                continue;
            }
            let whole = written((ladder.right)(revision));
            assert!(whole.2.len() < BODY_LIMIT);
            for broken in ladder.singles().into_iter().filter(|broken| !broken.needs_draining()) {
                assert!(written(broken.call()) != whole, "{} changes nothing", broken.first.name);
            }
            let pairs = ladder.pairs();
            assert!(pairs.len() >= least || revision.era() == Era::Modern, "{revision}: {} pairs", pairs.len());
            pairs.into_iter().for_each(|broken| drop(written(broken.call())));
            let rungs: Vec<_> = ladder.faults.iter().map(|fault| fault.rung).collect();
            assert!(rungs.is_sorted(), "{rungs:?}");
        }
    }
}

/// A server that refuses all alike is right about the faults that are refused so, and about no other.
async fn judges(cx: Cx) {
    let service = service_fn(|_: Request<Body>| async {
        let body = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}).to_string();
        let response = Response::builder().status(StatusCode::FORBIDDEN).header(CONTENT_TYPE, "application/json");
        Ok::<_, Infallible>(response.body(Full::<Bytes>::from(body)).expect("a response"))
    });
    let client = cx.serve(service).await;
    let (runs, refusals) = (Arc::default(), Refusals::default());
    let server = Served { client, runs, refusals, sessions: Vec::new(), _open: Vec::new() };
    let ladder = Ladder::request(cx.revision);
    for broken in ladder.singles().into_iter().chain(ladder.pairs()) {
        let forbidden = broken.first.status == StatusCode::FORBIDDEN;
        let judged = broken.judge(&server).await;
        assert_eq!(judged.is_ok(), forbidden, "{judged:?}");
    }
}
