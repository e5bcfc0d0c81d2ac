//! Filters that are none, and clients that could not read the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use serde_json::{Value, json};

use super::{Site, all, ended, listen, script};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, ID};

pub fn register(wire: &mut Wire) {
    wire.modern("listen/bad-filter", Carriers::Every, bad_filter);
    wire.modern("listen/bad-filter/accept", Carriers::Every, not_acceptable);
}

async fn bad_filter(cx: Cx) {
    let asked = Arc::new(AtomicUsize::new(0));
    let script = script().deciding({
        let asked = Arc::clone(&asked);
        move |_, _| {
            asked.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        }
    });
    let site = Site::with(cx, script).await;
    let refuse = async |call: Call, what: &str| {
        let answer = site.client.send(call).await;
        let error = answer.error(StatusCode::BAD_REQUEST, -32602, Some(&ID.into())).await;
        assert!(error["message"].as_str().is_some_and(|message| message.contains("notifications")), "{what}: {error}");
        assert_eq!(site.service.counts().streams, 0, "{what}");
        assert_eq!(site.service.counts().in_flight, 0, "{what}");
    };
    refuse(Call::modern("subscriptions/listen", json!({})), "missing").await;
    let mut misspelt = Call::modern("subscriptions/listen", json!({}));
    misspelt.set("/params/Notifications", all(&["a"]));
    refuse(misspelt, "misspelt").await;
    let ill_typed =
        ["null", "true", "0", "\"toolsListChanged\"", "[]", "[true]", "[true,true,true,[\"a\"]]", "[{}]", "\"\""];
    for filter in ill_typed {
        let mut call = listen(json!("PLACE"));
        call.replace("\"PLACE\"", filter);
        refuse(call, filter).await;
    }
    for member in ["toolsListChanged", "promptsListChanged", "resourcesListChanged"] {
        for value in ["null", "0", "1", "\"true\"", "[]", "[true]", "{}", "1e999"] {
            refuse(with(member, value), &format!("{member}: {value}")).await;
        }
    }
    let member = "resourceSubscriptions";
    for value in [
        "null",
        "true",
        "1",
        "\"a\"",
        "{}",
        "{\"a\":true}",
        "[1]",
        "[null]",
        "[[\"a\"]]",
        "[{\"uri\":\"a\"}]",
        "[\"a\",1]",
        "[\"a\",null]",
        "[\"\\ud800\"]",
    ] {
        refuse(with(member, value), &format!("{member}: {value}")).await;
        // However the client would have read the stream.
        refuse(with(member, value).header("accept", "text/event-stream"), value).await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0, "the handler was asked");
    assert_eq!(site.client.send(listen(all(&["a"]))).await.status, StatusCode::OK);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// A good filter but for one member.
fn with(member: &str, value: &str) -> Call {
    let mut filter = all(&["a"]);
    filter[member] = json!("PLACE");
    let mut call = listen(filter);
    call.replace("\"PLACE\"", value);
    call
}

/// Only an event stream can be listened to.
async fn not_acceptable(cx: Cx) {
    for accept in [None, Some("text/event-stream"), Some("*/*"), Some("application/json, text/*;q=0.1")] {
        let site = Site::open(cx).await;
        let call = listen(json!({})).without("accept");
        let call = accept.map_or_else(|| listen(json!({})).without("accept"), |accept| call.header("accept", accept));
        let (stream, _) = site.listen(call).await;
        assert_eq!(site.end(stream).await, [ended(ID)] as [Value; 1]);
    }
    let site = Site::open(cx).await;
    for accept in ["application/json", "application/*", "application/json, text/event-stream;q=0"] {
        for filter in [all(&["a"]), json!("bad")] {
            let answer = site.client.send(listen(filter).header("accept", accept)).await;
            answer.error(StatusCode::NOT_ACCEPTABLE, -32600, Some(&ID.into())).await;
        }
    }
    assert_eq!(site.service.counts().streams, 0);
}
