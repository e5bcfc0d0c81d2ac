//! The acknowledgement, and what its stream then carries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_transport::{Capabilities, LogLevel, McpError, Progress, Reply, RequestContext};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    PROMPTS, RESOURCES, SUBSCRIPTION_ID, Site, TOOLS, UPDATED, all, all_tagged, ended, everything, listen, script,
    tagged,
};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, LOG_LEVEL, meta};

pub fn register(wire: &mut Wire) {
    wire.modern("listen/ack-first", Carriers::Every, ack_first);
    wire.modern("listen/ack-first/ids", Carriers::Every, ids);
    wire.modern("listen/ack-first/declared", Carriers::Every, only_what_is_declared);
    wire.modern("listen/ack-first/asked", Carriers::Every, only_what_is_asked);
    wire.modern("listen/ack-first/vetoed", Carriers::Every, vetoed);
    wire.modern("listen/ack-first/uris", Carriers::Every, odd_uris);
    wire.modern("listen/ack-first/twice", Carriers::Every, the_same_uri_twice);
    wire.modern("listen/ack-first/too-much", Carriers::Every, more_uris_than_are_kept);
    wire.modern("listen/nothing-lost", Carriers::Every, published_by_the_hook);
    wire.modern("listen/nothing-lost/pending", Carriers::Every, published_while_the_hook_waits);
    wire.modern("listen/only-there", Carriers::Every, changes_on_no_answer);
    wire.modern("listen/only-there/hook", Carriers::Every, what_the_hook_sends);
}

async fn ack_first(cx: Cx) {
    let site = Site::open(cx).await;
    let mut asked = all(&["file:///a", "file:///b"]);
    asked["somethingElse"] = json!([1, {"nested": null}, "PLACE"]);
    let mut call = listen(asked);
    call.replace("\"PLACE\"", "1e999");
    let mut stream = site.client.send(call).await;
    assert_eq!(stream.header("cache-control"), "no-store");
    let granted = json!({ "notifications": all(&["file:///a", "file:///b"]) });
    let acknowledged = tagged(ID, "notifications/subscriptions/acknowledged", granted);
    // Published before the acknowledgement is read, and behind it all the same.
    site.publish_all(&["file:///b", "file:///c", "file:///a", "file:///"]);
    assert_eq!(stream.next_message().await, Some(acknowledged));
    for message in all_tagged(&["file:///b", "file:///a"]) {
        assert_eq!(stream.next_message().await, Some(message));
    }
    assert_eq!(site.end(stream).await, [ended(ID)]);
}

/// The id keeps its JSON type, and every digit and escape of its text.
async fn ids(cx: Cx) {
    let ids = ["7", "\"7\"", "0", "-0", "1.0", "12345678901234567890123", "\"\"", r#""\u0061 \"é\\ \u2028""#];
    let site = Site::open(cx).await;
    let mut streams = Vec::new();
    for id in ids {
        let mut call = listen(all(&["a"]));
        call.replace("\"id\":1", &format!("\"id\":{id}"));
        streams.push((id, site.client.send(call).await));
    }
    site.publish_all(&["a"]);
    let service = site.service.clone();
    let drain = tokio::spawn(async move { service.drain(Duration::from_secs(10)).await });
    for (id, mut stream) in streams {
        let tag = format!("\"{SUBSCRIPTION_ID}\":{id}");
        let mut count = 0;
        let mut last = String::new();
        while let Some(event) = stream.next_event().await {
            last = event.data.expect("data");
            let rest = last.split_once(&tag).unwrap_or_else(|| panic!("no {tag} in {last}")).1;
            assert!(rest.starts_with(['}', ',']), "more after {tag} in {last}");
            count += 1;
        }
        assert_eq!(count, 6, "{id}");
        assert!(last.contains(&format!("\"id\":{id}}}")) || last.contains(&format!("\"id\":{id},")), "{last}");
    }
    drain.await.expect("a drain ends when all is read");
}

/// Of what a client asks for, it is granted what the server declares.
async fn only_what_is_declared(cx: Cx) {
    let cases = [
        (Capabilities::new().tools_list_changed(), json!({"toolsListChanged": true}), Some(TOOLS)),
        (Capabilities::new().prompts_list_changed(), json!({"promptsListChanged": true}), Some(PROMPTS)),
        (Capabilities::new().resources_list_changed(), json!({"resourcesListChanged": true}), Some(RESOURCES)),
        (Capabilities::new().resources_subscribe(), json!({"resourceSubscriptions": ["a"]}), Some(UPDATED)),
        (Capabilities::new().tools().prompts().resources(), json!({}), None),
        (Capabilities::new(), json!({}), None),
    ];
    for (capabilities, expected, method) in cases {
        // What is not declared is not asked of the handler either.
        let subscribes = expected.get("resourceSubscriptions").is_some();
        let script = script()
            .declaring(capabilities)
            .deciding(move |_, _| async move { if subscribes { Ok(()) } else { panic!("nobody can subscribe here") } });
        let site = Site::with(cx, script).await;
        let (stream, granted) = site.listen(listen(all(&["a"]))).await;
        assert_eq!(granted, expected);
        site.publish_all(&["a"]);
        let params = if subscribes { json!({"uri": "a"}) } else { json!({}) };
        let mut messages: Vec<_> = method.into_iter().map(|method| tagged(ID, method, params.clone())).collect();
        messages.push(ended(ID));
        assert_eq!(site.end(stream).await, messages);
    }
}

/// What a client does not ask for, it is not told.
async fn only_what_is_asked(cx: Cx) {
    let cases = [
        (json!({"toolsListChanged": true}), json!({"toolsListChanged": true}), Some(TOOLS)),
        (json!({"promptsListChanged": true}), json!({"promptsListChanged": true}), Some(PROMPTS)),
        (json!({"resourcesListChanged": true}), json!({"resourcesListChanged": true}), Some(RESOURCES)),
        (json!({"resourceSubscriptions": ["a"]}), json!({"resourceSubscriptions": ["a"]}), Some(UPDATED)),
        (json!({"toolsListChanged": false, "resourceSubscriptions": []}), json!({}), None),
        (json!({"toolslistchanged": true, "tools_list_changed": true, "TOOLSLISTCHANGED": true}), json!({}), None),
        (json!({}), json!({}), None),
    ];
    for (asked, expected, method) in cases {
        let site = Site::open(cx).await;
        let (stream, granted) = site.listen(listen(asked)).await;
        assert_eq!(granted, expected);
        site.publish_all(&["a", "b"]);
        let params = if method == Some(UPDATED) { json!({"uri": "a"}) } else { json!({}) };
        let mut messages: Vec<_> = method.into_iter().map(|method| tagged(ID, method, params.clone())).collect();
        messages.push(ended(ID));
        assert_eq!(site.end(stream).await, messages);
    }
}

/// A resource that the handler refuses is left out, and nothing is told of it.
async fn vetoed(cx: Cx) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let script = script().deciding({
        let asked = Arc::clone(&asked);
        move |uri, cx: RequestContext| {
            let verdict = if uri.contains("secret") { Err(McpError::invalid_params("No.")) } else { Ok(()) };
            assert_eq!(cx.revision().as_str(), "2026-07-28");
            asked.lock().expect("nobody panicked").push(uri);
            // A change that happens before the veto.
            cx.changes().resource_updated("secret/1");
            async { verdict }
        }
    });
    let site = Site::with(cx, script).await;
    let (stream, granted) = site.listen(listen(all(&["a", "secret/1", "b", "secret/2"]))).await;
    assert_eq!(granted, all(&["a", "b"]));
    assert_eq!(*asked.lock().expect("nobody panicked"), ["a", "secret/1", "b", "secret/2"]);
    site.publish_all(&["secret/2", "b", "secret/1", "a"]);
    let mut messages = all_tagged(&["b", "a"]);
    messages.push(ended(ID));
    assert_eq!(site.end(stream).await, messages);

    let script = super::script().deciding(|_, _| async { Err(McpError::internal("the policy engine is down")) });
    let site = Site::with(cx, script).await;
    let (stream, granted) = site.listen(listen(json!({"resourceSubscriptions": ["a"]}))).await;
    assert_eq!(granted, json!({}), "nothing is granted, and nothing is said of why");
    site.publish_all(&["a"]);
    assert_eq!(site.end(stream).await, [ended(ID)]);
}

/// URIs are compared as the strings they are, however they were escaped on the way.
async fn odd_uris(cx: Cx) {
    let site = Site::open(cx).await;
    let mut call = listen(json!({"resourceSubscriptions": ["PLACE"]}));
    call.replace("[\"PLACE\"]", r#"["","file:\/\/\/\u00e9 \"q\"\n\u2028","A","a%20b"]"#);
    let uris = ["", "file:///é \"q\"\n\u{2028}", "A", "a%20b"];
    let (stream, granted) = site.listen(call).await;
    assert_eq!(granted, json!({ "resourceSubscriptions": uris }));
    site.publish_all(&["a", "a b", "file:///é"]);
    site.publish_all(&uris);
    let mut messages: Vec<_> = uris.iter().map(|uri| tagged(ID, UPDATED, json!({ "uri": uri }))).collect();
    messages.push(ended(ID));
    assert_eq!(site.end(stream).await, messages);
}

async fn the_same_uri_twice(cx: Cx) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let script = script().deciding({
        let asked = Arc::clone(&asked);
        move |uri, _| {
            let mut asked = asked.lock().expect("nobody panicked");
            let verdict = if asked.contains(&uri) { Err(McpError::invalid_params("Twice.")) } else { Ok(()) };
            asked.push(uri);
            async { verdict }
        }
    });
    let site = Site::with(cx, script).await;
    let (stream, granted) = site.listen(listen(all(&["a", "b", "a", "a"]))).await;
    assert_eq!(granted, all(&["a", "b"]));
    assert_eq!(*asked.lock().expect("nobody panicked"), ["a", "b"], "the handler decides once");
    site.publish_all(&["a"]);
    let mut messages = all_tagged(&["a"]);
    messages.push(ended(ID));
    assert_eq!(site.end(stream).await, messages);
}

/// A listener's URIs are bounded: those past it are left out, of whatever length they are.
async fn more_uris_than_are_kept(cx: Cx) {
    for (length, count) in [(5, 30_000), (4096, 500)] {
        let site = Site::open(cx).await;
        let uris: Vec<_> = (0..count).map(|n| format!("{n:0length$}")).collect();
        let (stream, granted) = site.listen(listen(json!({ "resourceSubscriptions": uris }))).await;
        let granted = granted["resourceSubscriptions"].as_array().expect("some").len();
        assert_eq!(granted, (256 << 10) / (length + 64), "{length}");
        let (last, first_refused) = (&uris[granted - 1], &uris[granted]);
        site.publish_all(&[last, first_refused]);
        assert_eq!(site.end(stream).await, [tagged(ID, UPDATED, json!({ "uri": last })), ended(ID)]);
    }
}

/// A change that happens while the handler decides is told right behind the acknowledgement.
async fn published_by_the_hook(cx: Cx) {
    let script = script().deciding(|uri, cx: RequestContext| async move {
        if uri == "a" {
            super::publish_all(cx.changes(), &["b", "a"]);
        }
        Ok(())
    });
    let site = Site::with(cx, script).await;
    let (stream, _) = site.listen(listen(all(&["a", "b"]))).await;
    let mut messages = all_tagged(&["b", "a"]);
    messages.push(ended(ID));
    assert_eq!(site.end(stream).await, messages);
}

async fn published_while_the_hook_waits(cx: Cx) {
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = script().deciding({
        let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
        move |_, _| {
            let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
            async move {
                entered.notify_one();
                go.notified().await;
                Ok(())
            }
        }
    });
    let site = Site::with(cx, script).await;
    let asking = {
        let client = site.client.clone();
        tokio::spawn(async move { client.send(listen(all(&["a", "b"]))).await })
    };
    entered.notified().await;
    assert_eq!(site.service.counts().in_flight, 1, "a request whose handler is at work");
    site.publish_all(&["b"]);
    go.notify_one();
    entered.notified().await;
    site.publish_all(&["a"]);
    go.notify_one();
    let mut stream = asking.await.expect("a stream");
    let first = stream.next_message().await.expect("an acknowledgement");
    assert_eq!(first["params"]["notifications"], all(&["a", "b"]));
    assert_eq!(site.service.counts().in_flight, 0, "a listener is no work");
    let mut messages = all_tagged(&["b", "a"]);
    messages.push(ended(ID));
    assert_eq!(site.end(stream).await, messages);
}

/// A handler's answer that streams carries what the handler sends for it, and no change; a listener the other way round.
async fn changes_on_no_answer(cx: Cx) {
    let script = Script::new(|_, cx: RequestContext| async move {
        cx.progress(Progress::new(1.0)).await;
        super::publish_all(cx.changes(), &["a"]);
        cx.log(LogLevel::Error, "half").await?;
        super::publish_all(cx.changes(), &["a"]);
        cx.notify("notifications/x", json!({})).await?;
        for method in [TOOLS, PROMPTS, RESOURCES, UPDATED] {
            assert!(cx.notify(method, json!({"uri": "a"})).await.is_err(), "{method}");
        }
        Reply::empty()
    });
    let site = Site::with(cx, script.declaring(everything())).await;
    let (stream, _) = site.listen(listen(all(&["a"]))).await;
    let mut call = Call::modern("x/y", json!({})).id("call");
    call.set("/params/_meta/progressToken", "t");
    call.set(&meta(LOG_LEVEL), "debug");
    let answer = site.client.send(call).await.events().await;
    let methods: Vec<_> = answer.iter().map(|message| message["method"].as_str().unwrap_or("response")).collect();
    assert_eq!(methods, ["notifications/progress", "notifications/message", "notifications/x", "response"]);
    let mut messages = all_tagged(&["a"]);
    messages.push(ended(ID));
    assert_eq!(site.end(stream).await, messages);
}

/// The hook has nowhere to send to, and is not held up by it.
async fn what_the_hook_sends(cx: Cx) {
    let script = script().deciding(|_, cx: RequestContext| async move {
        for step in 0..1000 {
            cx.progress(Progress::new(f64::from(step))).await;
            cx.log(LogLevel::Error, "deciding").await?;
            cx.notify("notifications/x", json!({"filler": "x".repeat(10_000)})).await?;
        }
        Ok(())
    });
    let site = Site::with(cx, script).await;
    let mut call = listen(all(&["a"]));
    call.set("/params/_meta/progressToken", "t");
    call.set(&meta(LOG_LEVEL), "debug");
    let (stream, granted) = site.listen(call).await;
    assert_eq!(granted, all(&["a"]));
    assert_eq!(site.end(stream).await, [ended(ID)] as [Value; 1]);
}
