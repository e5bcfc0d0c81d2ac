//! The ladder of checks: every fault of the tables alone, and with every later one that fits into the same request.

mod faults;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use mcp_transport::{Era, Limits, Revision, StreamableHttpService, Transport};
use serde_json::{Value, json};
use tower::service_fn;

use self::faults::{Fault, Id, LEGACY, MODERN, SHARED, part};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::{Call, ID};
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
    wire.any("http/rungs", Carriers::Every, |cx| climb(cx, singles(cx.revision)));
    wire.any("http/rungs/pairs", Carriers::Every, |cx| climb(cx, pairs(cx.revision)));
}

/// The service under test.
async fn service(draining: bool) -> StreamableHttpService {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": region}});
    let service = StreamableHttpService::builder(Script::echo(json!([{"name": TOOL, "inputSchema": schema}])))
        .limits(Limits::default().body_bytes(BODY_LIMIT))
        .allow_host("localhost")
        .allow_host("127.0.0.1")
        .build()
        .expect("a service");
    if draining {
        service.drain(Duration::ZERO).await;
    }
    service
}

/// The request that every fault here breaks.
fn right(revision: Revision) -> Call {
    let params = json!({"name": TOOL, "arguments": {"region": "eu"}, "_meta": {}});
    let call = Call::of(revision, "tools/call", params);
    match revision.era() {
        Era::Modern => call.header(MCP_PARAM, "eu"),
        Era::Legacy => call,
    }
}

/// The faults a request of this revision can have, in the order in which they are judged.
fn table(revision: Revision) -> Vec<&'static Fault> {
    let own = match revision.era() {
        Era::Modern => MODERN,
        Era::Legacy => LEGACY,
    };
    SHARED.iter().chain(own).filter(|fault| (fault.applies)(revision)).collect()
}

/// Each fault alone.
fn singles(revision: Revision) -> Vec<Broken> {
    table(revision).into_iter().map(|fault| Broken { revision, first: fault, second: None }).collect()
}

/// Every two faults that fit into one request.
fn pairs(revision: Revision) -> Vec<Broken> {
    let table = table(revision);
    let later = |at: usize, first: &'static Fault| {
        let fitting = table[at + 1..].iter().filter(|second| first.parts & second.parts == 0);
        fitting.map(move |&second| Broken { revision, first, second: Some(second) })
    };
    table.iter().enumerate().flat_map(|(at, first)| later(at, first)).collect()
}

/// A request with one fault or two, and what it must be answered with.
struct Broken {
    revision: Revision,
    first: &'static Fault,
    second: Option<&'static Fault>,
}

impl Broken {
    fn faults(&self) -> impl Iterator<Item = &'static Fault> {
        std::iter::once(self.first).chain(self.second)
    }

    fn call(&self) -> Call {
        let mut call = right(self.revision);
        self.faults().for_each(|fault| (fault.breaks)(&mut call));
        call
    }

    fn needs_draining(&self) -> bool {
        self.faults().any(|fault| fault.parts == part::SERVER)
    }

    /// The id of the answer: there is one if the first fault keeps it and the second leaves it readable.
    fn id(&self) -> Option<Value> {
        let readable = self.second.is_none_or(|second| second.parts & part::ID == 0);
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
        if headers.contains_key(ALLOW) != (status == StatusCode::METHOD_NOT_ALLOWED) {
            return wrong("Allow without 405, or 405 without".to_owned());
        }
        if headers.contains_key(RETRY_AFTER) != (status == StatusCode::SERVICE_UNAVAILABLE) {
            return wrong("Retry-After without 503, or 503 without".to_owned());
        }
        Ok(())
    }
}

/// Sends all of `requests`, once it is sure that the request they break is right. Fails with the list of those that
/// were answered wrongly.
async fn climb(cx: Cx, requests: Vec<Broken>) {
    let open = cx.serve(service(false).await).await;
    let draining = cx.serve(service(true).await).await;
    let answer = open.send(right(cx.revision)).await;
    let status = answer.status;
    assert_eq!(status, StatusCode::OK, "the right request: {}", answer.text().await);
    let mut wrong = Vec::new();
    for request in requests {
        let server = if request.needs_draining() { &draining } else { &open };
        wrong.extend(request.judge(server).await.err());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every fault changes the right request, and every pair can be built.
fn every_fault_applies() {
    let written = |call: Call| (call.method.clone(), call.headers.clone(), call.into_bytes());
    for revision in Revision::ALL {
        let whole = written(right(revision));
        assert!(whole.2.len() < BODY_LIMIT);
        for broken in singles(revision).into_iter().filter(|broken| !broken.needs_draining()) {
            assert!(written(broken.call()) != whole, "{} changes nothing", broken.first.name);
        }
        let pairs = pairs(revision);
        assert!(pairs.len() > 300, "{revision}: {} pairs", pairs.len());
        pairs.into_iter().for_each(|broken| drop(written(broken.call())));
        let rungs: Vec<_> = table(revision).into_iter().map(|fault| fault.rung).collect();
        assert!(rungs.is_sorted(), "{rungs:?}");
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
    for broken in singles(cx.revision).into_iter().chain(pairs(cx.revision)) {
        let forbidden = broken.first.status == StatusCode::FORBIDDEN;
        let judged = broken.judge(&server).await;
        assert_eq!(judged.is_ok(), forbidden, "{judged:?}");
    }
}
