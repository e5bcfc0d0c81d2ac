//! `resources/subscribe` and `resources/unsubscribe`.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{Capabilities, McpError, Sessions};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Bench;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::handler::Script;
use crate::support::request::{Call, ID};
use crate::support::session::{self, Session};

pub fn register(wire: &mut Wire) {
    wire.legacy("subscribe/delivers", Carriers::Every, delivers);
    wire.legacy("subscribe/delivers/refused", Carriers::Every, refused);
    wire.legacy("subscribe/delivers/veto", Carriers::Every, veto);
    wire.legacy("subscribe/delivers/slow-veto", Carriers::Every, slow_veto);
    wire.legacy("subscribe/delivers/while-decided", Carriers::Every, while_decided);
    wire.legacy("subscribe/delivers/bound", Carriers::Every, bound);
    wire.legacy("subscribe/delivers/unread", Carriers::Clock, unread);
}

async fn subscribe(session: &Session, uri: &str) {
    assert_eq!(session.result("resources/subscribe", json!({ "uri": uri })).await, json!({}));
}

async fn unsubscribe(session: &Session, uri: &str) {
    assert_eq!(session.result("resources/unsubscribe", json!({ "uri": uri })).await, json!({}));
}

/// The resource that the next event speaks of.
async fn updated(stream: &mut Answer) -> String {
    let message = stream.next_message().await.expect("an update");
    let uri = message["params"]["uri"].as_str().expect("a URI").to_owned();
    let method = "notifications/resources/updated";
    assert_eq!(message, json!({"jsonrpc": "2.0", "method": method, "params": {"uri": uri}}));
    uri
}

/// A session hears of the resources it has subscribed to, for as long as it wants to.
async fn delivers(cx: Cx) {
    let bench = Bench::open(cx).await;
    let (session, other) = (bench.session(cx).await, session::start(&bench.client, cx.revision).await);
    let (mut stream, mut others) = (session.listen().await, other.listen().await);
    let changes = bench.service.changes();
    let publish = |uris: &[&str]| uris.iter().for_each(|uri| changes.resource_updated(uri));
    publish(&["file:///a"]);
    subscribe(&session, "file:///a").await;
    // Twice is once.
    subscribe(&session, "file:///a").await;
    subscribe(&session, "").await;
    subscribe(&other, "file:///b").await;
    publish(&["file:///A", "file:///a/b", "file:///", "file:///a ", "file:///b", "", "file:///a"]);
    assert_eq!((updated(&mut stream).await, updated(&mut stream).await), (String::new(), "file:///a".to_owned()));
    assert_eq!(updated(&mut others).await, "file:///b");
    // A URI is what it says, however it is written.
    let mut odd = session.call("resources/subscribe", json!({"uri": "x:c\"\u{e9}", "_meta": {"progressToken": 1}}));
    odd.replace("x:c", "\\u0078:\\u0063");
    assert_eq!(bench.client.send(odd).await.result().await, json!({}));
    publish(&["x:c", "x:c\"\u{e9}"]);
    assert_eq!(updated(&mut stream).await, "x:c\"\u{e9}");

    unsubscribe(&session, "file:///a").await;
    unsubscribe(&session, "file:///a").await;
    unsubscribe(&session, "file:///never").await;
    // Another's subscription is another's.
    unsubscribe(&session, "file:///b").await;
    publish(&["file:///a", "file:///b", "", "file:///a"]);
    assert_eq!((updated(&mut stream).await, updated(&mut others).await), (String::new(), "file:///b".to_owned()));
    subscribe(&session, "file:///a").await;
    publish(&["file:///a"]);
    assert_eq!(updated(&mut stream).await, "file:///a");
    session.end().await;
    other.end().await;
    assert_eq!((stream.next_event().await, others.next_event().await), (None, None));
}

/// Where nothing could be delivered, that is the answer, in band.
async fn refused(cx: Cx) {
    let id = Some(json!(ID));
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    bench.life.take();
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let bad = [
            Value::Null,
            json!({}),
            json!({"uri": 7}),
            json!({"uri": null}),
            json!({"uri": ["a"]}),
            json!({"URI": "a"}),
            json!({"uri": {"uri": "a"}}),
        ];
        for params in bad {
            let answer = session.request(method, params).await;
            answer.error(StatusCode::OK, -32602, id.as_ref()).await;
        }
        let mut lone = session.call(method, json!({"uri": "a"}));
        lone.replace("\"a\"", "\"\\ud800\"");
        bench.client.send(lone).await.error(StatusCode::OK, -32602, id.as_ref()).await;
        let sessionless = Call::legacy(cx.revision, method, json!({"uri": "a"}));
        bench.client.send(sessionless).await.error(StatusCode::OK, -32600, id.as_ref()).await;
    }
    for capabilities in
        [Capabilities::new().resources(), Capabilities::new().resources_list_changed(), Capabilities::new()]
    {
        let mute = Bench::of(cx, |script, _| script.declaring(capabilities), |builder| builder).await;
        let session = mute.session(cx).await;
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            for call in
                [session.call(method, json!({"uri": "a"})), Call::legacy(cx.revision, method, json!({"uri": "a"}))]
            {
                mute.client.send(call).await.error(StatusCode::OK, -32601, id.as_ref()).await;
            }
        }
        assert!(mute.life.take().iter().all(|what| what.starts_with("opened")));
    }
    let none = Bench::with(cx, |builder| builder.sessions(Sessions::Off)).await;
    let call = Call::legacy(cx.revision, "resources/subscribe", json!({"uri": "a"}));
    none.client.send(call).await.error(StatusCode::OK, -32600, id.as_ref()).await;
    assert_eq!(bench.life.take(), [""; 0], "the handler is not asked for an answer");
}

/// The handler may say no, in its own words, and then nothing is delivered.
async fn veto(cx: Cx) {
    let declare = |script: Script, all| {
        script.declaring(all).deciding(|uri, cx| async move {
            let is_owner = cx.principal().is_some_and(|principal| principal.as_str() == "ada");
            match uri.as_str() {
                "file:///secret" if is_owner => Ok(()),
                "file:///secret" => Err(McpError::new(42, "Not yours").with_data(json!({ "uri": uri }))),
                "file:///none" => Err(McpError::resource_not_found(&uri)),
                "file:///broken" => Err(McpError::internal("a secret")),
                "file:///panic" => std::panic::resume_unwind(Box::new("as the test says")),
                _ => Ok(()),
            }
        })
    };
    let bench = Bench::of(cx, declare, |builder| builder).await;
    let session = bench.session(cx).await;
    let ada = session::open_by(&bench.client, session::initialize(cx.revision).header(session::ACCOUNT, "ada")).await;
    let (mut stream, mut adas) = (session.listen().await, ada.listen().await);
    let uris = ["file:///secret", "file:///none", "file:///broken", "file:///panic"];
    for (uri, code) in uris.into_iter().zip([42, -32002, -32603, -32603]) {
        let answer = session.request("resources/subscribe", json!({ "uri": uri })).await;
        let error = answer.error(StatusCode::OK, code, Some(&ID.into())).await;
        assert!(!error.to_string().contains("a secret") && !error.to_string().contains("as the test"), "{error}");
        let shows = matches!(code, 42 | -32002);
        assert_eq!(error.get("data").cloned(), shows.then(|| json!({ "uri": uri })));
    }
    subscribe(&ada, "file:///secret").await;
    subscribe(&session, "file:///open").await;
    uris.into_iter().chain(["file:///open"]).for_each(|uri| bench.service.changes().resource_updated(uri));
    assert_eq!(
        (updated(&mut stream).await, updated(&mut adas).await),
        ("file:///open".into(), "file:///secret".into())
    );
    // Whoever is refused keeps what it has; to unsubscribe nobody is asked.
    unsubscribe(&session, "file:///secret").await;
}

/// A decision may take its time; until it is made there is no subscription, and a cancelled one never is.
async fn slow_veto(cx: Cx) {
    let (asked, decide) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let declare = {
        let (asked, decide) = (Arc::clone(&asked), Arc::clone(&decide));
        move |script: Script, all| {
            script.declaring(all).deciding(move |_, _| {
                let (asked, decide) = (Arc::clone(&asked), Arc::clone(&decide));
                async move {
                    asked.notify_one();
                    decide.notified().await;
                    Ok(())
                }
            })
        }
    };
    let bench = Bench::of(cx, declare, |builder| builder).await;
    let session = bench.session(cx).await;
    let mut stream = session.listen().await;
    let changes = bench.service.changes();
    let asking = bench.send(session.call("resources/subscribe", json!({"uri": "file:///cancelled"})));
    asked.notified().await;
    session.cancel(ID).await;
    assert_eq!(asking.await.expect("an answer").text().await, "");

    let asking = bench.send(session.call("resources/subscribe", json!({"uri": "file:///a"})));
    asked.notified().await;
    changes.resource_updated("file:///a");
    decide.notify_one();
    assert_eq!(asking.await.expect("an answer").result().await, json!({}));
    assert_eq!(updated(&mut stream).await, "file:///a", "it changed while it was being decided");
    changes.resource_updated("file:///cancelled");
    changes.resource_updated("file:///a");
    assert_eq!(updated(&mut stream).await, "file:///a");
    session.end().await;
    assert_eq!(stream.next_event().await, None);
}

/// A change that comes while the handler decides is told once it has agreed, and not before; where it has not, never.
async fn while_decided(cx: Cx) {
    let (asked, decide) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let declare = {
        let (asked, decide) = (Arc::clone(&asked), Arc::clone(&decide));
        move |script: Script, all| {
            script.declaring(all).deciding(move |uri, _| {
                let (asked, decide) = (Arc::clone(&asked), Arc::clone(&decide));
                async move {
                    asked.notify_one();
                    decide.notified().await;
                    if uri.ends_with("no") { Err(McpError::invalid_params("no")) } else { Ok(()) }
                }
            })
        }
    };
    let bench = Bench::of(cx, declare, |builder| builder).await;
    let session = bench.session(cx).await;
    let mut stream = session.listen().await;
    let changes = bench.service.changes();
    for (uri, is_granted) in [("file:///no", false), ("file:///yes", true), ("file:///yes", true)] {
        let asking = bench.send(session.call("resources/subscribe", json!({ "uri": uri })));
        asked.notified().await;
        changes.resource_updated(uri);
        changes.tools_list_changed();
        let mut told = vec![stream.next_message().await.expect("an event")];
        if uri == "file:///yes" && told[0]["method"] == "notifications/resources/updated" {
            // Granted before, it is told at once.
            told.push(stream.next_message().await.expect("an event"));
        }
        assert_eq!(told.last().expect("one")["method"], "notifications/tools/list_changed");
        decide.notify_one();
        assert_eq!(asking.await.expect("an answer").json().await.get("result").is_some(), is_granted);
        if is_granted && told.len() == 1 {
            assert_eq!(updated(&mut stream).await, uri);
        }
    }
    changes.resource_updated("file:///no");
    changes.resource_updated("file:///yes");
    assert_eq!(updated(&mut stream).await, "file:///yes");
    session.end().await;
    assert_eq!(stream.next_event().await, None);
}

/// A session keeps 256 KiB of URIs, and says so when they are full.
async fn bound(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    // With what is kept beside each, four fill the room of a session.
    let long = |n: usize| format!("{n:05}{}", "x".repeat(64 * 1024 - 64 - 5));
    for n in 0..4 {
        subscribe(&session, &long(n)).await;
    }
    let answer = session.request("resources/subscribe", json!({"uri": "a"})).await;
    answer.error(StatusCode::OK, -32602, Some(&ID.into())).await;
    // What is there already costs nothing; another session has room of its own; what is given up is free.
    subscribe(&session, &long(0)).await;
    subscribe(&bench.session(cx).await, "a").await;
    unsubscribe(&session, &long(1)).await;
    unsubscribe(&session, &long(1)).await;
    subscribe(&session, &long(7)).await;
    let answer = session.request("resources/subscribe", json!({"uri": long(1)})).await;
    answer.error(StatusCode::OK, -32602, Some(&ID.into())).await;
    let mut stream = session.listen().await;
    for uri in ["a", &long(1), &long(7)] {
        bench.service.changes().resource_updated(uri);
    }
    assert_eq!(updated(&mut stream).await, long(7));
}

/// What was published and not yet read is taken back with its subscription.
async fn unread(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut stream = session.listen().await;
    subscribe(&session, "file:///a").await;
    subscribe(&session, "file:///b").await;
    for uri in ["file:///a", "file:///b", "file:///a"] {
        bench.service.changes().resource_updated(uri);
    }
    unsubscribe(&session, "file:///a").await;
    assert_eq!(updated(&mut stream).await, "file:///b");
    let quiet = tokio::time::timeout(Duration::from_secs(60), stream.next_event()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}
