//! Lists that fail, take long, or are not waited for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_transport::{ExchangeEnd, Limits, RefusalKind};
use serde_json::json;
use tokio::sync::Notify;

use super::{FAILED, List, Outcome, REFUSED, REGION, Source, annotated, lax, strict};
use crate::harness::{Carriers, Cx, Wire};
use crate::modern::{INTERNAL, MISMATCH, tool_call};
use crate::support::request::ID;

pub fn register(wire: &mut Wire) {
    wire.modern("param/source/fails", Carriers::Every, fails);
    wire.modern("param/source/fails-after", Carriers::Every, fails_after);
    wire.modern("param/source/told", Carriers::Every, told);
    wire.modern("param/source/slow", Carriers::Clock, slow);
    wire.modern("param/source/leave", Carriers::Every, leave);
}

/// Lists that count as failed.
fn failing() -> Vec<(&'static str, List)> {
    vec![
        ("an error", List::Fails),
        ("an internal error", List::FailsInside),
        ("a panic", List::Panics),
        ("no tools", List::Is(json!({}))),
        ("tools that are no list", List::Is(json!({"tools": {}}))),
        ("a tool that is none", List::Is(json!({"tools": [annotated("echo"), 7]}))),
        ("a tool without a name", List::Is(json!({"tools": [{"inputSchema": {}}]}))),
        ("a cursor that is none", List::Is(json!({"tools": [], "nextCursor": 7}))),
        ("a circle", List::Is(json!({"tools": [], "nextCursor": "a"}))),
        ("a second page that fails", {
            List::Pages(|cursor| match cursor {
                None => json!({"tools": [annotated("echo")], "nextCursor": "2"}),
                _ => json!({}),
            })
        }),
    ]
}

async fn fails(cx: Cx) {
    for (what, list) in failing() {
        let source = Source::open(cx, list).await;
        for value in ["eu", "us"] {
            let call = tool_call(json!({"region": "eu"})).header(REGION, value);
            assert_eq!(source.send(call).await, FAILED, "{what}: with a header it cannot be checked");
            assert_eq!(source.heard.refusals(), [RefusalKind::ListingFailed], "{what}");
            assert_eq!(source.heard.misuses(), [""; 0], "{what}");
        }
        let foreign = tool_call(json!({})).header("mcp-param-anything", "x");
        assert_eq!(source.send(foreign).await, FAILED, "{what}: any parameter header may be one");
        source.heard.refusals();

        assert_eq!(source.bare().await, Outcome::Ran, "{what}: without one it goes on");
        let told = source.heard.misuses();
        assert!(told.len() == 1 && told[0].contains("tools/list") && told[0].contains("\"echo\""), "{what}: {told:?}");
        assert_eq!(source.heard.refusals(), [], "{what}");

        source.asked();
        source.set(strict());
        assert_eq!(source.bare().await, REFUSED, "{what}: it works again");
        assert_eq!(source.right().await, Outcome::Ran, "{what}: it works again");
        assert_eq!(source.asked(), 1, "{what}");
        assert_eq!(source.heard.misuses(), [""; 0], "{what}");
    }
}

async fn fails_after(cx: Cx) {
    for (what, list) in failing() {
        let source = Source::open(cx, strict()).await;
        assert_eq!(source.right().await, Outcome::Ran);
        source.set(list);
        source.service.changes().tools_list_changed();
        for _ in 0..2 {
            source.asked();
            assert_eq!(source.right().await, Outcome::Ran, "{what}: the last good one is used");
            assert_ne!(source.asked(), 0, "{what}: and another is asked for");
            assert_eq!(source.wrong().await, REFUSED, "{what}");
            assert_eq!(source.bare().await, REFUSED, "{what}");
            assert_eq!(source.send(tool_call(json!({}))).await, Outcome::Ran, "{what}");
        }
        assert_eq!(source.heard.misuses(), [""; 0], "{what}: all calls were checked");
        // One principal's list is no other's last good one.
        let bob = tool_call(json!({"region": "eu"})).header("x-user", "bob");
        assert_eq!(source.send(bob).await, Outcome::Ran, "{what}");
        let bob = tool_call(json!({"region": "eu"})).header("x-user", "bob").header(REGION, "eu");
        assert_eq!(source.send(bob).await, FAILED, "{what}");

        source.set(lax());
        assert_eq!(source.bare().await, Outcome::Ran, "{what}: it works again");
    }
}

/// The application hears why its list failed; the client does not.
async fn told(cx: Cx) {
    for (list, panics, errors) in [
        (List::Panics, &["the list fell over"][..], 0),
        (List::FailsInside, &[][..], 1),
        (List::Fails, &[][..], 0),
        (List::Is(json!({})), &[][..], 0),
    ] {
        let source = Source::open(cx, list).await;
        let answer = source.client.send(tool_call(json!({"region": "eu"})).header(REGION, "eu")).await;
        let response = answer.json().await;
        assert_eq!(response["error"], json!({"code": INTERNAL, "message": "Internal error"}));
        assert_eq!(source.heard.panics(), panics);
        let told = source.heard.internal_errors();
        assert_eq!(told.len(), errors, "{told:?}");
        assert!(told.iter().all(|text| text.contains("on fire")), "{told:?}");
    }
}

/// A list that takes its time is part of the request: its clock runs, and what comes of it travels on its stream.
async fn slow(cx: Cx) {
    let (entered, until) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let waits = List::Waits(Arc::clone(&entered), Arc::clone(&until), json!({"tools": [annotated("echo")]}));
    let source = Source::open(cx, waits.clone()).await;
    let mut answer = source.client.send(tool_call(json!({"region": "eu"}))).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
    until.notify_one();
    let response = answer.next_message().await.expect("a response");
    assert_eq!((&response["id"], &response["error"]["code"]), (&json!(ID), &json!(MISMATCH)));
    assert_eq!(answer.next_message().await, None);
    assert_eq!(source.ran.load(Ordering::SeqCst), 0);

    let limits = Limits::default().handler_time(Duration::from_secs(5));
    let source = Source::built(cx, waits, |builder| builder.limits(limits)).await;
    assert_eq!(source.right().await, FAILED, "its time is the handler's time");
    assert_eq!(source.heard.refusals(), []);
}

/// A client that leaves while the tools are asked for takes the question along.
async fn leave(cx: Cx) {
    let (entered, until) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let result = json!({"tools": []});
    let source = Source::open(cx, List::Waits(Arc::clone(&entered), Arc::clone(&until), result)).await;
    let client = source.client.clone();
    let asking = tokio::spawn(async move { client.send(tool_call(json!({}))).await });
    entered.notified().await;
    asking.abort();
    let (method, end) = source.heard.end().await;
    assert_eq!(method, "tools/call");
    assert!(matches!(end, ExchangeEnd::Cancelled(_)), "{end:?}");
    assert_eq!(Arc::strong_count(&until), 2, "the list's future is gone: here and in the list itself are left");
    assert_eq!(source.ran.load(Ordering::SeqCst), 0);
}
