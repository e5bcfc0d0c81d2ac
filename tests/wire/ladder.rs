//! The ladder of checks: every fault of the tables alone, and with every later one that fits into the same request.

mod faults;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use mcp_transport::{Era, Limits, Reply, Revision, StreamableHttpService};
use serde_json::{Value, json};
use tower::service_fn;

use self::faults::{Fault, Id, LEGACY, MODERN, NOT_MODERN, SHARED, STREAM, part};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::{Call, ID, PROTOCOL_VERSION};
use crate::support::server::Body;

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
}

/// Each request with a fault behind which its id can be read, and the fault's name.
pub fn refused_by_name(revision: Revision) -> Vec<(&'static str, Call)> {
    let ladder = Ladder::request(revision);
    let kept = ladder.singles().into_iter().filter(|broken| broken.first.id == Id::Kept);
    kept.map(|broken| (broken.first.name, broken.call())).collect()
}

/// The service under test, and how often its handler ran for more than a listing.
pub async fn service(draining: bool) -> (StreamableHttpService, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let tools = json!({"tools": [{"name": TOOL, "inputSchema": schema}]});
    let (asked, told) = (Arc::clone(&runs), Arc::clone(&runs));
    let script = Script::new(move |request, _| {
        let listing = request.method() == "tools/list";
        asked.fetch_add(usize::from(!listing), Ordering::SeqCst);
        let answer = if listing { Reply::of(&tools) } else { Reply::empty() };
        async { answer }
    });
    let script = script.hearing(move |_, _| {
        told.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let service = StreamableHttpService::builder(script)
        .limits(Limits::default().body_bytes(BODY_LIMIT))
        .allow_host("localhost")
        .allow_host("127.0.0.1")
        .build()
        .expect("a service");
    if draining {
        service.drain(Duration::ZERO).await;
    }
    (service, runs)
}

/// A right request, and the faults it can have.
struct Ladder {
    revision: Revision,
    right: fn(Revision) -> Call,
    /// What the right request is answered with: a refusal for a GET or DELETE, which belongs to no session.
    bottom: StatusCode,
    /// Whether it carries an id that a refusal could name.
    has_id: bool,
    /// In the order in which they are judged.
    faults: Vec<&'static Fault>,
}

/// The ladder of a revision.
type Make = fn(Revision) -> Ladder;

impl Ladder {
    fn request(revision: Revision) -> Self {
        let faults = SHARED.iter().chain(own(revision)).filter(|fault| (fault.applies)(revision)).collect();
        Self { revision, right, bottom: StatusCode::OK, has_id: true, faults }
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
        Self { revision, right, bottom, has_id: false, faults }
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
        self.faults().any(|fault| fault.parts == part::SERVER)
    }

    /// The id of the answer: there is one if the first fault keeps it and the second leaves it readable.
    fn id(&self) -> Option<Value> {
        let readable = self.ladder.has_id && self.second.is_none_or(|second| second.parts & part::ID == 0);
        (self.first.id == Id::Kept && readable).then(|| ID.into())
    }

    /// Sends it, and says what is wrong with the answer.
    async fn judge(&self, server: &Client) -> Result<(), String> {
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
        if headers.contains_key(RETRY_AFTER) != (status == StatusCode::SERVICE_UNAVAILABLE) {
            return wrong("Retry-After without 503, or 503 without".to_owned());
        }
        Ok(())
    }
}

/// Sends all `requests` of a ladder, once it is sure that the request they break is right. Fails with the list of those
/// that were answered wrongly.
async fn climb(cx: Cx, ladder: Ladder, requests: fn(&Ladder) -> Vec<Broken<'_>>) {
    let ((open, runs), (draining, drained_runs)) = (service(false).await, service(true).await);
    let (open, draining) = (cx.serve(open).await, cx.serve(draining).await);
    let answer = open.send((ladder.right)(cx.revision)).await;
    let status = answer.status;
    assert_eq!(status, ladder.bottom, "the right request: {}", answer.text().await);
    let mut wrong = Vec::new();
    for request in requests(&ladder) {
        let server = if request.needs_draining() { &draining } else { &open };
        wrong.extend(request.judge(server).await.err());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let runs = (runs.load(Ordering::SeqCst), drained_runs.load(Ordering::SeqCst));
    let right = usize::from(matches!(ladder.bottom, StatusCode::OK | StatusCode::ACCEPTED));
    assert_eq!(runs, (right, 0), "the handler ran for the right request alone");
}

/// Every fault changes the right request, and every pair can be built.
fn every_fault_applies() {
    let written = |call: Call| (call.method.clone(), call.headers.clone(), call.into_bytes());
    let ladders: [(Make, _); 5] = [
        (Ladder::request, 300),
        (Ladder::notification, 300),
        (|revision| Ladder::without_body(Method::GET, revision), 10),
        (|revision| Ladder::without_body(Method::DELETE, revision), 10),
        (|revision| Ladder::without_body(Method::OPTIONS, revision), 5),
    ];
    for revision in Revision::ALL {
        for (ladder, least) in ladders {
            let ladder = ladder(revision);
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
    let server = cx.serve(service).await;
    let ladder = Ladder::request(cx.revision);
    for broken in ladder.singles().into_iter().chain(ladder.pairs()) {
        let forbidden = broken.first.status == StatusCode::FORBIDDEN;
        let judged = broken.judge(&server).await;
        assert_eq!(judged.is_ok(), forbidden, "{judged:?}");
    }
}
