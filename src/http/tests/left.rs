//! What sessions and listeners leave in the maps, by whichever exit they go: nothing.

use std::sync::Arc;

use http::{Method, StatusCode};

use super::*;
use crate::admission::What;
use crate::{EventStore, Principal, Sessions};

/// Decides never, works never to an end.
struct Waits;

impl McpHandler for Waits {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("waits", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed().resources_subscribe()
    }

    async fn request(&self, request: crate::Request, cx: RequestContext) -> Result<Reply, McpError> {
        if request.method() == "stream" {
            cx.notify("notifications/said", json!({})).await?;
        }
        std::future::pending().await
    }

    async fn subscribe(&self, uri: String, _: RequestContext) -> Result<(), McpError> {
        match uri.as_str() {
            "wait" => std::future::pending().await,
            "panic" => std::panic::resume_unwind(Box::new("on purpose")),
            _ => Ok(()),
        }
    }
}

fn listen(uri: &str) -> Request<Full<Bytes>> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": [uri]});
    let params = json!({"_meta": meta, "notifications": filter});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params});
    let mut request = post("subscriptions/listen", Full::from(message.to_string()));
    request.extensions_mut().insert(Principal::new("somebody"));
    request
}

pub(super) async fn initialize(service: &StreamableHttpService) -> http::HeaderValue {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let answer = service.handle(legacy(&message)).await;
    answer.headers()["mcp-session-id"].clone()
}

pub(super) fn inside(session: &http::HeaderValue, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    request.headers_mut().insert("mcp-session-id", session.clone());
    request
}

fn bare(method: Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("/mcp").body(Full::default()).unwrap()
}

pub(super) async fn settled() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_exit_leaves_a_listener() {
    let limits = Limits::default().handler_time(Duration::from_secs(5));
    let service = StreamableHttpService::builder(Waits).limits(limits).build().unwrap();
    let (hub, lifecycle) = (&service.shared.hub, &service.shared.server.lifecycle);
    let admission = &service.shared.server.admission;
    // Streams, those counted, and the accounts of callers.
    let places = || (hub.len(), admission.held(What::Listeners), admission.accounts());
    let nothing = || {
        assert_eq!((places(), lifecycle.waiting()), ((0, 0, 0), 0));
        assert_eq!((admission.held(What::Requests), lifecycle.unread.len()), (0, 0));
        assert_eq!(lifecycle.counts(), crate::Counts::default());
    };

    let mut undecided = Box::pin(service.handle(listen("wait")));
    assert!(undecided.as_mut().now_or_never().is_none());
    assert_eq!((places(), lifecycle.waiting()), ((1, 1, 1), 1));
    assert_eq!(admission.held(What::Requests), 1);
    drop(undecided);
    nothing();

    assert!(text(service.handle(listen("wait")).await).contains("-32603"), "its time was up");
    nothing();
    assert!(text(service.handle(listen("panic")).await).contains("-32603"));
    nothing();

    let mut granted = service.handle(listen("a")).await.into_body();
    assert_eq!((places(), lifecycle.counts().streams), ((1, 1, 1), 1));
    assert_eq!(admission.held(What::Requests), 0, "one that listens is no request any more");
    assert!(granted.frame().await.is_some());
    drop(granted);
    nothing();

    let (granted, drained) = (service.handle(listen("a")).await, service.handle(listen("wait")));
    let (events, drained, report) =
        tokio::join!(granted.into_body().collect(), drained, service.drain(Duration::from_secs(1)));
    assert!(events.unwrap().to_bytes().ends_with(b"\n\n"));
    assert!(text(drained).contains("-32603"));
    assert_eq!((report.in_flight, report.cut), (1, 1));
    nothing();
}

#[tokio::test(start_paused = true)]
async fn no_exit_leaves_a_session() {
    let service = StreamableHttpService::builder(Waits).sessions(Sessions::Required).build().unwrap();
    let shared = Arc::clone(&service.shared);
    let nothing = || {
        assert_eq!((shared.hub.len(), shared.sessions.kept(), shared.sessions.len()), (0, 0, 0));
        assert_eq!(shared.server.lifecycle.waiting(), 0);
        assert_eq!(service.counts(), crate::Counts::default());
    };
    for way in ["delete", "expiry"] {
        let session = initialize(&service).await;
        let stream = service.handle(inside(&session, bare(Method::GET))).await.into_body();
        let state = shared.sessions.find(session.to_str().unwrap(), None).unwrap();
        let work =
            |method: &str, id: u32| inside(&session, legacy(&json!({"jsonrpc": "2.0", "id": id, "method": method})));
        let streaming = service.handle(work("stream", 1)).await.into_body();
        let mut waiting = Box::pin(service.handle(work("wait", 2)));
        assert!(waiting.as_mut().now_or_never().is_none());
        settled().await;
        assert_eq!((state.in_flight().len(), shared.sessions.kept(), shared.hub.len()), (2, 1, 1));
        drop((stream, streaming, waiting));
        settled().await;
        assert_eq!((state.in_flight().len(), shared.hub.len()), (2, 0), "the work goes on without a connection");
        if way == "delete" {
            let answer = service.handle(inside(&session, bare(Method::DELETE))).await;
            assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        } else {
            for id in [1, 2] {
                let params = json!({ "requestId": id });
                let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                service.handle(inside(&session, legacy(&cancel))).await;
            }
            settled().await;
            tokio::time::sleep(Duration::from_secs(32 * 60)).await;
        }
        settled().await;
        assert_eq!(state.in_flight().len(), 0);
        assert_eq!(Arc::strong_count(&state), 1, "{way}");
        nothing();
    }
}

#[tokio::test(start_paused = true)]
async fn no_exit_leaves_an_event() {
    let service = StreamableHttpService::builder(Waits).event_store(EventStore::InMemory).build().unwrap();
    let shared = Arc::clone(&service.shared);
    let store = Arc::clone(shared.sessions.store().unwrap());
    for way in ["delete", "expiry", "forgotten"] {
        let session = initialize(&service).await;
        let id = session.to_str().unwrap();
        let state = shared.sessions.find(id, None).unwrap();
        let work = |id: u32| inside(&session, legacy(&json!({"jsonrpc": "2.0", "id": id, "method": "stream"})));
        let streams = [service.handle(work(1)).await, service.handle(work(2)).await];
        let mut general = service.handle(inside(&session, bare(Method::GET))).await.into_body();
        service.changes().tools_list_changed();
        for _ in 0..2 {
            assert!(general.frame().await.is_some());
        }
        settled().await;
        assert_eq!((shared.hub.len(), store.kept().1), (1, 1), "its standing, its log");
        assert!(store.kept().0 > 3 * 256, "three events");
        drop((streams, general));
        settled().await;
        assert_eq!((state.in_flight().len(), shared.hub.len()), (2, 1));
        match way {
            "delete" => assert_eq!(service.handle(inside(&session, bare(Method::DELETE))).await.status(), 204),
            "expiry" => {
                for id in [1, 2] {
                    let params = json!({ "requestId": id });
                    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                    service.handle(inside(&session, legacy(&cancel))).await;
                }
                tokio::time::sleep(Duration::from_secs(15 * 60)).await;
                assert_eq!((shared.sessions.kept(), store.kept()), (1, (0, 0)), "its time is over, not its session's");
                tokio::time::sleep(Duration::from_secs(20 * 60)).await;
            }
            _ => shared.sessions.forget(&state),
        }
        settled().await;
        assert_eq!((shared.hub.len(), shared.sessions.kept(), store.kept()), (0, 0, (0, 0)), "{way}");
        assert_eq!(Arc::strong_count(&state), 1, "{way}");
    }
    let session = initialize(&service).await;
    let work = json!({"jsonrpc": "2.0", "id": 1, "method": "stream"});
    drop(service.handle(inside(&session, legacy(&work))).await);
    settled().await;
    assert_eq!(store.kept().1, 1);
    let log = Arc::downgrade(&shared.sessions.find(session.to_str().unwrap(), None).unwrap().kept().unwrap().log);
    service.drain(Duration::ZERO).await;
    settled().await;
    drop((service, shared));
    settled().await;
    assert_eq!((log.strong_count(), store.kept()), (0, (0, 0)), "with its transport");
}
