//! What earlier revisions had over HTTP and 2026-07-28 has not: sessions, GET and DELETE, resuming.

use std::sync::{Arc, Mutex};

use http::Method;
use mcp_transport::{Progress, Reply, Revisions, StreamableHttpService};
use serde_json::json;
use tokio::task::yield_now;

use super::{Site, Verdict, refused_bare, tool_call};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, PROTOCOL_VERSION, SESSION_ID};
use crate::support::sse::{Event, Frame};

pub fn register(wire: &mut Wire) {
    wire.modern("session/none", Carriers::Every, no_session);
    wire.modern("get/405", Carriers::Every, only_post);
    wire.modern("resume/none", Carriers::Every, no_resume);
}

async fn no_session(cx: Cx) {
    let site = Site::open(cx).await;
    for session in [&b"none"[..], b"", b"\xff", b"1868a90c-7f4e-4f0e-8d5e-1f1f1f1f1f1f"] {
        site.passes(tool_call(json!({})).header(SESSION_ID, session), "any session").await;
        let twice = tool_call(json!({})).header(SESSION_ID, session).also(SESSION_ID, "other");
        site.passes(twice, "two sessions").await;
        let told = Call::post(json!({"jsonrpc": "2.0", "method": "notifications/x"}));
        let told = told.header(PROTOCOL_VERSION, "2026-07-28").header(SESSION_ID, session);
        assert_eq!(site.verdict(told).await, Verdict::Heard);
    }
    for call in [
        tool_call(json!({})).header(SESSION_ID, "mine"),
        tool_call(json!({})),
        Call::modern("server/discover", json!({})),
        Call::modern("server/discover", json!({})).header(SESSION_ID, "mine"),
        Call::modern("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})),
        Call::modern("tools/list", json!({})).header("accept", "text/event-stream").header(SESSION_ID, "mine"),
        tool_call(json!({})).without("mcp-method").header(SESSION_ID, "mine"),
    ] {
        let answer = site.client.send(call).await;
        assert!(!answer.headers.contains_key(SESSION_ID), "{answer:?}");
    }
}

async fn only_post(cx: Cx) {
    let site = Site::open(cx).await;
    let only_modern = Site::built(cx, json!([]), |builder| builder.revisions(Revisions::modern_only())).await;
    for site in [&site, &only_modern] {
        for method in [Method::GET, Method::DELETE] {
            for version in ["2026-07-28", "2099-12-31", " 2026-07-28\t"] {
                let bare = || Call::bare(method.clone()).header(PROTOCOL_VERSION, version);
                for call in [
                    bare(),
                    bare().header("accept", "text/event-stream"),
                    bare().header("accept", "text/html"),
                    bare().header(SESSION_ID, "none"),
                    bare().header(SESSION_ID, "a").also(SESSION_ID, "b"),
                    bare().header("last-event-id", "7"),
                    bare().also(PROTOCOL_VERSION, "2025-11-25"),
                ] {
                    let answer = site.client.send(call).await;
                    assert_eq!(answer.header("allow"), "POST", "{method} {version}");
                    let error = answer.error(http::StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
                    assert!(!error.to_string().contains(version), "{error}");
                }
            }
        }
    }
    // Not because of anything else about them.
    let legacy = Call::get().header(PROTOCOL_VERSION, "2025-11-25").header(SESSION_ID, "none");
    assert_eq!(site.verdict(legacy).await, refused_bare(404, -32600));
}

async fn no_resume(cx: Cx) {
    let seen = Arc::new(Mutex::new(0));
    let script = Script::new({
        let seen = Arc::clone(&seen);
        move |_, cx| {
            *seen.lock().expect("no panic") += 1;
            async move {
                for step in 1..=3 {
                    cx.progress(Progress::new(f64::from(step))).await;
                    yield_now().await;
                }
                Reply::empty()
            }
        }
    });
    let service = StreamableHttpService::new(script);
    let client = cx.serve(service.clone()).await;
    for id in ["1", "", "0_7", "https://example.test/\u{7f}x"] {
        let mut call = Call::modern("x/y", json!({}));
        call.set("/params/_meta/progressToken", "t");
        let id = id.replace('\u{7f}', "");
        let mut answer = client.send(call.header("last-event-id", id)).await;
        assert_eq!(answer.status, 200);
        let mut data = 0;
        while let Some(frame) = answer.frame().await {
            let Frame::Event(Event { id, retry, data: Some(_) }) = frame else {
                panic!("nothing but messages: {frame:?}");
            };
            assert_eq!((id, retry), (None, None));
            data += 1;
        }
        assert_eq!(data, 4, "from its beginning, whatever the client says it has seen");
    }
    let sse = Call::modern("x/y", json!({})).header("accept", "text/event-stream");
    let mut answer = client.send(sse).await;
    let event = answer.next_event().await.expect("the response");
    assert_eq!((event.id, event.retry), (None, None));
    assert_eq!(*seen.lock().expect("no panic"), 5);
    drop(answer);
    assert_eq!(service.counts().in_flight, 0);

    let resuming = Call::get().header(PROTOCOL_VERSION, "2026-07-28").header("last-event-id", ID.to_string());
    assert_eq!(client.send(resuming).await.status, 405);
}
