//! What the general stream carries, and what it does not.

use http::StatusCode;
use mcp_transport::{Capabilities, Progress, Reply, RequestContext, StreamableHttpService};
use serde_json::{Value, json};

use super::{END, ended, heard, list_changed, listening, serving, until, updated};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::session;
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.legacy("get/carries", Carriers::Every, carries);
    wire.legacy("get/carries/undeclared", Carriers::Every, undeclared);
    wire.legacy("get/carries/subscribed", Carriers::Every, subscribed);
    wire.legacy("get/carries/never-a-response", Carriers::Every, never_a_response);
    wire.legacy("get/late", Carriers::Every, late);
    wire.legacy("get/none-open", Carriers::Every, none_open);
    wire.legacy("get/none-open/unread", Carriers::Clock, unread);
    wire.legacy("get/no-broadcast", Carriers::Every, no_broadcast);
    wire.legacy("get/no-broadcast/two-sessions", Carriers::Every, two_sessions);
}

/// Each list change, in the exact form of its notification; those that wait are one each.
async fn carries(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    assert_eq!(session.initialized["capabilities"]["tools"], json!({"listChanged": true}));
    let changes = service.changes();
    changes.tools_list_changed();
    assert_eq!(heard(&mut stream, &service).await, [list_changed("tools")]);
    changes.prompts_list_changed();
    assert_eq!(heard(&mut stream, &service).await, [list_changed("prompts")]);
    changes.resources_list_changed();
    assert_eq!(heard(&mut stream, &service).await, [list_changed("resources")]);
    for _ in 0..10 {
        changes.resources_list_changed();
        changes.prompts_list_changed();
        changes.tools_list_changed();
    }
    // At most: a reader may have taken some between two of them.
    let several = heard(&mut stream, &service).await;
    for list in ["tools", "prompts", "resources"] {
        assert!(several.contains(&list_changed(list)), "{several:?}");
    }
    assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
    session.end().await;
    assert_eq!(stream.events().await, [Value::Null; 0]);
}

/// What is not declared is not delivered, though it is published.
async fn undeclared(cx: Cx) {
    let all = Capabilities::new().tools().prompts().resources();
    let declared = [
        (all.clone(), None),
        (all.clone().tools_list_changed(), Some("tools")),
        (all.clone().prompts_list_changed(), Some("prompts")),
        (all.clone().resources_list_changed(), Some("resources")),
        (all.resources_subscribe(), None),
    ];
    for (capabilities, list) in declared {
        let service = StreamableHttpService::new(Stage::default().script().declaring(capabilities));
        let client = cx.serve(service.clone()).await;
        let session = session::open(&client, cx.revision).await;
        let stream = session.listen().await;
        service.changes().tools_list_changed();
        service.changes().prompts_list_changed();
        service.changes().resources_list_changed();
        service.changes().resource_updated(END);
        // What was published before the end comes before it.
        session.end().await;
        let expected: Vec<_> = list.into_iter().map(list_changed).collect();
        assert_eq!(stream.events().await, expected, "{list:?}");
    }
}

/// Updates of exactly what this session has subscribed to, until it unsubscribes.
async fn subscribed(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    let odd = "odd:\"\\\u{1F600}\n";
    for uri in ["file:///a", odd, ""] {
        for _ in 0..2 {
            assert_eq!(session.result("resources/subscribe", json!({"uri": uri})).await, json!({}));
        }
    }
    let publish = |uris: &[&str]| uris.iter().for_each(|uri| service.changes().resource_updated(uri));
    publish(&["file:///a", "file:///b", "file:///A", "file:///a/", odd, ""]);
    assert_eq!(heard(&mut stream, &service).await, [updated("file:///a"), updated(odd), updated("")]);
    assert_eq!(session.result("resources/unsubscribe", json!({"uri": odd})).await, json!({}));
    assert_eq!(session.result("resources/unsubscribe", json!({"uri": "file:///never"})).await, json!({}));
    publish(&["", odd, "file:///a"]);
    assert_eq!(heard(&mut stream, &service).await, [updated(""), updated("file:///a")]);
}

/// Responses and what belongs to a request stay on that request's own answer.
async fn never_a_response(cx: Cx) {
    let script = Script::new(|request, cx: RequestContext| async move {
        match request.method() {
            "x/quiet" => {}
            "x/fail" => return Err(mcp_transport::McpError::method_not_found()),
            _ => {
                cx.progress(Progress::new(1.0)).await;
                cx.log(mcp_transport::LogLevel::Error, "x").await?;
                cx.notify("notifications/x", json!({})).await?;
            }
        }
        cx.changes().tools_list_changed();
        Reply::empty()
    });
    let capabilities = Capabilities::new().tools_list_changed().resources_subscribe().logging();
    let service = StreamableHttpService::new(script.declaring(capabilities));
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    session.request("x/fail", json!({})).await.error(StatusCode::OK, -32601, Some(&1.into())).await;
    session.request("ping", json!({})).await.result().await;
    assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
    session.request("x/quiet", json!({})).await.result().await;
    assert_eq!(heard(&mut stream, &service).await, [list_changed("tools")]);
    let told = session.request("x/tell", json!({"_meta": {"progressToken": 1}})).await.events().await;
    let methods: Vec<_> = told.iter().map(|message| message["method"].as_str()).collect();
    let three = [Some("notifications/progress"), Some("notifications/message"), Some("notifications/x"), None];
    assert_eq!(methods, three, "{told:?}");
    assert_eq!(heard(&mut stream, &service).await, [list_changed("tools")]);

    // Nor when its own connection is gone.
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    let asking = tokio::spawn({
        let session = session.clone();
        async move { session.request("x/hold", json!({"name": "left"})).await }
    });
    stage.entered("left").await;
    asking.abort();
    let _ = asking.await;
    stage.release("left");
    stage.answered("left").await;
    until(|| service.counts().in_flight == 0).await;
    assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
}

/// A subscription made before the stream opened delivers once it does.
async fn late(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::start(&client, cx.revision).await;
    for uri in [END, "file:///a"] {
        session.result("resources/subscribe", json!({"uri": uri})).await;
    }
    session.notify("notifications/initialized", Value::Null).await;
    for _ in 0..2 {
        let mut stream = session.listen().await;
        service.changes().resource_updated("file:///a");
        service.changes().resource_updated("file:///b");
        assert_eq!(heard(&mut stream, &service).await, [updated("file:///a")]);
        // And again with the next stream.
        drop(stream);
        until(|| service.counts().streams == 0).await;
    }
}

/// Nobody there: what is published is dropped, before the first stream and between two.
async fn none_open(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let session = session::open(&client, cx.revision).await;
    session.result("resources/subscribe", json!({"uri": END})).await;
    for _ in 0..2 {
        service.changes().tools_list_changed();
        service.changes().resources_list_changed();
        service.changes().resource_updated(END);
        let mut stream = session.listen().await;
        service.changes().prompts_list_changed();
        service.changes().resource_updated(END);
        assert_eq!(stream.next_message().await, Some(list_changed("prompts")));
        assert_eq!(stream.next_message().await, Some(updated(END)));
        assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
        drop(stream);
        until(|| service.counts().streams == 0).await;
    }
    let stream = session.listen().await;
    session.end().await;
    assert_eq!(stream.events().await, [Value::Null; 0]);
}

/// What a stream has not read when its client goes is gone with it: nothing is kept for the next.
async fn unread(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, stream) = listening(&client, cx.revision).await;
    service.changes().tools_list_changed();
    service.changes().resource_updated(END);
    drop(stream);
    let mut stream = session.listen().await;
    service.changes().prompts_list_changed();
    assert_eq!(heard(&mut stream, &service).await, [list_changed("prompts")]);
    service.changes().resource_updated(END);
    assert_eq!(stream.next_message().await, Some(updated(END)), "once, and it is due again");
    assert_eq!(heard(&mut stream, &service).await, [Value::Null; 0]);
}

/// What goes to the general stream goes to no answer's, and the other way round.
async fn no_broadcast(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (session, mut stream) = listening(&client, cx.revision).await;
    let mut answers = Vec::new();
    for (id, name) in ["one", "two"].into_iter().enumerate() {
        let call = session.call("x/hold", json!({"name": name, "tell": 1})).id(id);
        let mut answer = client.send(call).await;
        assert_eq!(answer.next_message().await.expect("an event")["params"]["name"], name);
        answers.push((name, answer));
    }
    service.changes().tools_list_changed();
    assert_eq!(heard(&mut stream, &service).await, [list_changed("tools")]);
    for (name, answer) in answers {
        service.changes().prompts_list_changed();
        service.changes().resource_updated(END);
        stage.release(name);
        let rest = answer.events().await;
        assert_eq!((rest.len(), &rest[0]["result"]), (1, &json!({"name": name})));
    }
    assert_eq!(stream.next_message().await, Some(list_changed("prompts")));
    session.end().await;
    ended(stream).await;
}

/// Each session hears of a change once, on its own stream, and only of its own subscriptions.
async fn two_sessions(cx: Cx) {
    let stage = Stage::default();
    let service = serving(&stage);
    let client = cx.serve(service.clone()).await;
    let (one, mut first) = listening(&client, cx.revision).await;
    let (other, mut second) = listening(&client, cx.revision).await;
    let third = session::open(&client, cx.revision).await.listen().await;
    one.result("resources/subscribe", json!({"uri": "file:///one"})).await;
    other.result("resources/subscribe", json!({"uri": "file:///other"})).await;
    service.changes().tools_list_changed();
    service.changes().resource_updated("file:///one");
    service.changes().resource_updated("file:///other");
    service.changes().resource_updated(END);
    for (stream, own) in [(&mut first, "file:///one"), (&mut second, "file:///other")] {
        for expected in [list_changed("tools"), updated(own), updated(END)] {
            assert_eq!(stream.next_message().await, Some(expected));
        }
    }
    // The end of one is not the other's.
    one.end().await;
    assert_eq!(first.events().await, [Value::Null; 0]);
    assert_eq!(heard(&mut second, &service).await, [Value::Null; 0]);
    drop(third);
}
