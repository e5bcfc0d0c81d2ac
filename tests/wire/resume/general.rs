//! The general stream, kept: what is published while it is closed waits for it, and a client that comes back has it whole.

use std::time::Duration;

use http::StatusCode;
use mcp_transport::Limits;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{Bench, list_changed, listen, read, refused, rest, resume, skip_mark};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::session::Session;

pub fn register(wire: &mut Wire) {
    wire.legacy("get/none-open/kept", Carriers::Every, kept_for_it);
    wire.legacy("get/none-open/kept-once", Carriers::Every, kept_once);
    wire.legacy("get/second/takes-over", Carriers::Every, takes_over);
    wire.legacy("get/second/takes-over-unread", Carriers::Clock, takes_over_unread);
    wire.legacy("resume/replays/general", Carriers::Every, replays);
    wire.legacy("resume/gone", Carriers::Every, purged);
    wire.legacy("resume/gone/expired", Carriers::Clock, expired);
    wire.legacy("resume/gone/undeclared", Carriers::Every, purged_undeclared);
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

/// What has been published so far and goes to this stream, with the id of the last event read.
async fn heard(bench: &Bench, session: &Session, stream: &mut Answer) -> (Vec<Value>, String) {
    const END: &str = "file:///end";
    session.result("resources/subscribe", json!({"uri": END})).await;
    bench.service.changes().resource_updated(END);
    let mut heard = Vec::new();
    loop {
        let (id, message) = read(stream).await.expect("the stream goes on");
        if message == updated(END) {
            return (heard, id);
        }
        heard.push(message);
    }
}

/// Nobody was there when it was published, before the first GET and between two: the next one carries it.
async fn kept_for_it(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    session.result("resources/subscribe", json!({"uri": "file:///a"})).await;
    for _ in 0..3 {
        for _ in 0..10 {
            bench.service.changes().tools_list_changed();
            bench.service.changes().resource_updated("file:///a");
            bench.service.changes().resource_updated("file:///unsubscribed");
        }
        let mut stream = listen(&session).await;
        assert_eq!(heard(&bench, &session, &mut stream).await.0, [list_changed("tools"), updated("file:///a")]);
        bench.leave(stream).await;
    }
    let other = bench.session(cx).await;
    let mut stream = listen(&other).await;
    assert_eq!(heard(&bench, &other, &mut stream).await.0, [Value::Null; 0], "it was not there when it happened");
}

/// What one GET has carried the next one does not.
async fn kept_once(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    bench.service.changes().tools_list_changed();
    let mut stream = listen(&session).await;
    assert_eq!(heard(&bench, &session, &mut stream).await.0, [list_changed("tools")]);
    bench.leave(stream).await;
    let mut stream = listen(&session).await;
    assert_eq!(heard(&bench, &session, &mut stream).await.0, [Value::Null; 0]);
}

/// A GET without an id is refused while another is open; one with an id of the stream takes it over.
async fn takes_over(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut stream = listen(&session).await;
    bench.service.changes().tools_list_changed();
    let (mut id, _) = read(&mut stream).await.expect("an event");
    for _ in 0..5 {
        bench.client.send(session.get()).await.error(StatusCode::CONFLICT, -32600, None).await;
        let newer = resume(&session, &id).await;
        assert_eq!(rest(stream).await, [Value::Null; 0], "superseded");
        stream = newer;
        bench.service.changes().prompts_list_changed();
        let message;
        (id, message) = read(&mut stream).await.expect("an event");
        assert_eq!(message, list_changed("prompts"));
    }
    bench.streams(1).await;
}

/// What the older one was sent and did not read goes to the newer one.
async fn takes_over_unread(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut stream = listen(&session).await;
    bench.service.changes().tools_list_changed();
    let (id, _) = read(&mut stream).await.expect("an event");
    bench.service.changes().prompts_list_changed();
    let mut newer = resume(&session, &id).await;
    assert_eq!(rest(stream).await, [Value::Null; 0]);
    assert_eq!(heard(&bench, &session, &mut newer).await.0, [list_changed("prompts")]);
    assert!(timeout(Duration::from_secs(5), newer.next_event()).await.is_err(), "and nothing twice");
}

/// From any of its events on, whoever has read them before, and then live.
async fn replays(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut stream = listen(&session).await;
    let lists = ["tools", "prompts", "resources", "tools", "prompts"];
    let publish = |list: &str| match list {
        "tools" => bench.service.changes().tools_list_changed(),
        "prompts" => bench.service.changes().prompts_list_changed(),
        _ => bench.service.changes().resources_list_changed(),
    };
    let mut ids = Vec::new();
    for list in lists {
        publish(list);
        let (id, message) = read(&mut stream).await.expect("an event");
        assert_eq!(message, list_changed(list));
        ids.push(id);
    }
    bench.leave(stream).await;
    for (n, id) in ids.iter().enumerate() {
        let mut stream = resume(&session, id).await;
        for (list, id) in lists.iter().zip(&ids).skip(n + 1) {
            assert_eq!(read(&mut stream).await.expect("an event"), (id.clone(), list_changed(list)));
        }
        bench.leave(stream).await;
    }
    // What is published meanwhile comes after it.
    publish("resources");
    let mut stream = resume(&session, &ids[3]).await;
    assert_eq!(read(&mut stream).await.expect("an event").1, list_changed("prompts"));
    assert_eq!(read(&mut stream).await.expect("an event").1, list_changed("resources"));
    publish("tools");
    assert_eq!(read(&mut stream).await.expect("an event").1, list_changed("tools"));
}

/// What followed is gone: every list may have changed, and is said once to have.
async fn purged(cx: Cx) {
    let limits = Limits::default().stored_events(3);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    let mut stream = listen(&session).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        bench.service.changes().tools_list_changed();
        ids.push(read(&mut stream).await.expect("an event").0);
    }
    bench.leave(stream).await;
    let every_list = ["tools", "prompts", "resources"].map(list_changed);
    let mut stream = resume(&session, &ids[0]).await;
    assert_eq!(heard(&bench, &session, &mut stream).await.0, every_list);
    // It takes the stream over, as any of its ids does.
    let mut newer = resume(&session, &ids[0]).await;
    assert_eq!(rest(stream).await, [Value::Null; 0]);
    let (heard_again, id) = heard(&bench, &session, &mut newer).await;
    assert_eq!(heard_again, every_list);
    bench.leave(newer).await;
    let mut stream = resume(&session, &id).await;
    assert_eq!(heard(&bench, &session, &mut stream).await.0, [Value::Null; 0], "this one has missed nothing");
    // One that was never given is no id.
    let (general, number) = id.rsplit_once('-').expect("an id");
    let never = number.parse::<u64>().expect("a number") + 1000;
    refused(&session, format!("{general}-{never}")).await;
}

/// The same by the clock.
async fn expired(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut stream = listen(&session).await;
    bench.service.changes().tools_list_changed();
    let (first, _) = read(&mut stream).await.expect("an event");
    bench.service.changes().prompts_list_changed();
    read(&mut stream).await.expect("an event");
    bench.leave(stream).await;
    sleep(Duration::from_secs(599)).await;
    let mut stream = resume(&session, &first).await;
    assert_eq!(heard(&bench, &session, &mut stream).await.0, [list_changed("prompts")]);
    bench.leave(stream).await;
    sleep(Duration::from_secs(1)).await;
    let mut stream = resume(&session, &first).await;
    let every_list = ["tools", "prompts", "resources"].map(list_changed);
    assert_eq!(heard(&bench, &session, &mut stream).await.0, every_list);
}

/// Only of lists whose changes are declared.
async fn purged_undeclared(cx: Cx) {
    let script = super::Script::new(|_, _| async { mcp_transport::Reply::of(json!({})) });
    let script = script.declaring(super::Capabilities::new().tools_list_changed().prompts().resources_subscribe());
    let builder = super::StreamableHttpService::builder(script).event_store(super::EventStore::InMemory);
    let service = builder.limits(Limits::default().stored_events(1)).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    let session = super::session::open(&client, cx.revision).await;
    let mut stream = session.listen().await;
    skip_mark(&mut stream, cx.revision).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        service.changes().prompts_list_changed();
        service.changes().tools_list_changed();
        let (id, message) = read(&mut stream).await.expect("an event");
        assert_eq!(message, list_changed("tools"));
        ids.push(id);
    }
    let mut stream = resume(&session, &ids[0]).await;
    assert_eq!(read(&mut stream).await.expect("an event").1, list_changed("tools"));
    session.end().await;
    assert_eq!(rest(stream).await, [Value::Null; 0]);
}
