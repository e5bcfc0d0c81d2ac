//! Streams that stay open, and what is kept for clients that come back.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures::FutureExt;
use http::Method;
use http_body::Body;
use http_body_util::BodyExt;
use mcp_transport::{EventStore, Limits, ResponseBody, Revision, StreamableHttpService};
use serde_json::{Value, json};

use crate::Case;
use crate::handler::Tools;
use crate::kit::{Again, RUNTIME, now, open, whole};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

/// A service, and so many streams that listen to it.
pub struct Listeners {
    pub service: StreamableHttpService,
    bodies: Vec<ResponseBody>,
}

impl Listeners {
    /// Opens them.
    pub fn open(count: usize) -> Self {
        let limits = Limits::default().listeners(count).listeners_by_caller(count);
        let service = StreamableHttpService::builder(Tools(2)).limits(limits).build().expect("limits");
        let request =
            Again::new(MODERN, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
        let bodies = (0..count).map(|_| now(&service, &request).into_body()).collect();
        let mut listeners = Self { service, bodies };
        listeners.read();
        listeners
    }

    /// Reads every stream until it has nothing to say. Returns how many events there were.
    pub fn read(&mut self) -> usize {
        let _guard = RUNTIME.enter();
        let mut cx = Context::from_waker(Waker::noop());
        let mut events = 0;
        for body in &mut self.bodies {
            while let Poll::Ready(Some(_)) = Pin::new(&mut *body).poll_frame(&mut cx) {
                events += 1;
            }
        }
        events
    }
}

/// The publish call, at so many listeners that have read all before.
pub fn publish(count: usize) -> Case {
    let listeners = Rc::new(RefCell::new(Listeners::open(count)));
    let service = listeners.borrow().service.clone();
    Case {
        before: Box::new(move || {
            listeners.borrow_mut().read();
        }),
        run: Box::new(move || service.changes().tools_list_changed()),
    }
}

/// The same, and every listener reads it.
pub fn deliver(count: usize) -> Case {
    let mut listeners = Listeners::open(count);
    Case::new(move || {
        listeners.service.changes().tools_list_changed();
        assert_eq!(listeners.read(), count);
    })
}

/// A client comes back and reads the last events of a stream.
pub fn resume(events: usize) -> Case {
    let limits = Limits::default().stored_events(2 * events);
    let service = StreamableHttpService::builder(Tools(2)).limits(limits).event_store(EventStore::InMemory);
    let service = service.build().expect("limits");
    let session = open(&service, LEGACY);
    let call = Again::call(LEGACY, "count", json!({ "to": events })).header("mcp-session-id", &session);
    let first = whole(&service, &call);
    let first = first.strip_prefix(b"id: ").and_then(|rest| rest.split(|byte| *byte == b'\n').next());
    let first = std::str::from_utf8(first.expect("an id")).expect("text");
    let mut request = Again::call(LEGACY, "echo", json!({}));
    *request.0.method_mut() = Method::GET;
    *request.0.body_mut() = Bytes::new();
    let request = request.header("mcp-session-id", &session).header("last-event-id", first);
    let request = request.header("accept", "text/event-stream");
    let read = move || {
        let body = whole(&service, &request);
        assert!(body.windows(7).filter(|bytes| bytes == b"\ndata: ").count() >= events);
    };
    read();
    Case::new(read)
}

/// A question: its round is sealed, and opened when the client comes back with the answer.
pub fn state() -> Case {
    let service = StreamableHttpService::new(Tools(2));
    let capabilities = json!({ "elicitation": {} });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let params = json!({ "name": "ask", "arguments": {}, "_meta": meta });
    let first = Again::new(MODERN, "tools/call", params.clone());
    let read = |body: ResponseBody| -> Value {
        let body = body.collect().now_or_never().expect("all of it").expect("a body").to_bytes();
        serde_json::from_slice(&body).expect("JSON")
    };
    Case::new(move || {
        let asked = read(now(&service, &first).into_body());
        let mut params = params.clone();
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({ "sure": { "action": "accept", "content": { "sure": true } } });
        let answered = RUNTIME.block_on(service.handle(Again::new(MODERN, "tools/call", params).once()));
        let answered = read(answered.into_body());
        assert_eq!(answered["result"]["content"][0]["text"], "done", "{answered}");
    })
}
