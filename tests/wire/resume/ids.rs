//! The ids of events, and the event that a stream begins with.

use std::collections::BTreeSet;

use http::StatusCode;
use http::header::ACCEPT;
use mcp_transport::{EventStore, Progress, Revision};
use serde_json::{Value, json};

use super::{Bench, LAST_EVENT_ID, answered, list_changed, read, refused, rest, resume, said, skip_mark};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, ID, SESSION_ID};
use crate::support::session::{self, initialize};

pub fn register(wire: &mut Wire) {
    wire.legacy("resume/ids", Carriers::Every, ids);
    wire.legacy("resume/ids/nobody-there", Carriers::Every, nobody_there);
    wire.legacy("resume/ids/initialize", Carriers::Every, of_initialize);
    wire.legacy("resume/ids/sessionless", Carriers::Every, sessionless);
    wire.legacy("resume/ids/no-store", Carriers::Every, no_store);
    wire.only(Revision::V2025_03_26, "batch/concurrent/ids", Carriers::Every, of_a_batch);
    wire.only(Revision::V2025_11_25, "resume/prime", Carriers::Every, prime);
    wire.only(Revision::V2025_11_25, "resume/prime/committed", Carriers::Clock, prime_committed);
    wire.legacy("resume/ids/unprimed", Carriers::Every, unprimed);
    wire.modern("resume/none/store", Carriers::Every, modern);
}

/// The part of an id that names the stream.
fn stream_of(id: &str) -> &str {
    id.rsplit_once('-').expect("a stream and a number").0
}

/// Every event has one that no other has, in all of a session's streams, and that says of which stream it is.
async fn ids(cx: Cx) {
    let bench = Bench::open(cx).await;
    let mut seen = BTreeSet::new();
    let mut streams = BTreeSet::new();
    for session in [bench.session(cx).await, bench.session(cx).await] {
        let mut general = session.listen().await;
        let mark = skip_mark(&mut general, cx.revision).await;
        bench.service.changes().tools_list_changed();
        let (id, message) = read(&mut general).await.expect("an event");
        assert_eq!(message, list_changed("tools"));
        for id in mark.iter().chain([&id]) {
            assert_eq!(stream_of(id), stream_of(mark.as_ref().unwrap_or(id)));
            assert!(seen.insert(id.clone()));
        }
        streams.insert(stream_of(&id).to_owned());
        for _ in 0..2 {
            let (mut stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
            let cx = run.cx.clone();
            cx.log(mcp_transport::LogLevel::Error, "x").await.expect("text");
            cx.progress(Progress::new(1.0)).await;
            run.answer("a");
            assert!(seen.insert(first.clone()));
            let mut messages = 0;
            while let Some((id, _)) = read(&mut stream).await {
                assert_eq!(stream_of(&id), stream_of(&first));
                assert!(seen.insert(id));
                messages += 1;
            }
            assert_eq!(messages, 2, "a log message and the answer; nobody asked for progress");
            streams.insert(stream_of(&first).to_owned());
        }
        drop(general);
        bench.streams(0).await;
    }
    assert_eq!(streams.len(), 6, "one for each stream");
    // 128 bits of chance, in characters that are safe in a header.
    assert!(streams.iter().all(|stream| stream.len() >= 22 && stream.bytes().all(|byte| byte.is_ascii_graphic())));
    let prefixes: BTreeSet<_> = streams.iter().map(|stream| &stream[..8]).collect();
    assert_eq!(prefixes.len(), 6, "{streams:?}");
}

/// An event has its id when it is queued: what was sent while nobody was there is read with the ids it would have had.
async fn nobody_there(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    for n in 1..4 {
        run.say(n).await;
    }
    let mut stream = resume(&session, &first).await;
    let mut ids = Vec::new();
    for n in 1..4 {
        let (id, message) = read(&mut stream).await.expect("an event");
        assert_eq!(message, said(n));
        ids.push(id);
    }
    bench.leave(stream).await;
    let mut again = resume(&session, &first).await;
    for id in &ids {
        assert_eq!(&read(&mut again).await.expect("an event").0, id);
    }
    run.say(4).await;
    assert_eq!(read(&mut again).await.expect("an event").1, said(4));
}

/// A client that takes nothing but streams gets a stream for its first answer too.
async fn of_initialize(cx: Cx) {
    let bench = Bench::open(cx).await;
    let mut stream = bench.client.send(initialize(cx.revision).header(ACCEPT.as_str(), "text/event-stream")).await;
    let id = stream.header(SESSION_ID).to_owned();
    skip_mark(&mut stream, cx.revision).await;
    let (last, message) = read(&mut stream).await.expect("an event");
    assert_eq!(message["result"]["protocolVersion"], cx.revision.as_str());
    assert_eq!(read(&mut stream).await, None);
    bench.leave(stream).await;
    // Its id opens the general stream: nothing else is left to read.
    let session = session::Session {
        client: bench.client.clone(),
        revision: cx.revision,
        id,
        account: None,
        initialized: message["result"].clone(),
    };
    let mut general = resume(&session, &last).await;
    skip_mark(&mut general, cx.revision).await;
    bench.service.changes().prompts_list_changed();
    assert_eq!(read(&mut general).await.expect("an event").1, list_changed("prompts"));
}

/// Without a session nothing could be resumed.
async fn sessionless(cx: Cx) {
    let bench = Bench::open(cx).await;
    let asking = bench.send(Call::legacy(cx.revision, "x/work", Value::Null));
    let run = bench.run().await;
    assert!(!run.cx.close_connection(std::time::Duration::ZERO));
    run.say(0).await;
    run.answer("a");
    let mut stream = asking.await.expect("an answer");
    for message in [said(0), answered(ID, "a")] {
        let event = stream.next_event().await.expect("an event");
        assert_eq!((event.id, event.retry), (None, None));
        assert_eq!(serde_json::from_str::<Value>(&event.data.expect("data")).expect("JSON"), message);
    }
    assert_eq!(stream.next_event().await, None);
}

/// Nothing is kept unless it is asked for.
async fn no_store(cx: Cx) {
    let bench = Bench::with(cx, |builder| builder.event_store(EventStore::None)).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    assert!(!run.cx.close_connection(std::time::Duration::ZERO));
    run.say(0).await;
    let mut stream = asking.await.expect("an answer");
    let event = stream.next_event().await.expect("an event");
    assert_eq!((event.id, event.retry), (None, None));
    run.answer("a");
    assert_eq!(stream.events().await, [answered(ID, "a")]);
    // What an id says is ignored, whatever it says.
    for id in ["AAAAAAAAAAAAAAAAAAAAAA-1", "1", "", &"x".repeat(5000)] {
        let mut general = bench.client.send(session.get().header(LAST_EVENT_ID, id).also(LAST_EVENT_ID, id)).await;
        assert_eq!(general.status, StatusCode::OK);
        assert!(matches!(general.frame().await, Some(super::Frame::Comment(_))));
        bench.service.changes().tools_list_changed();
        let event = general.next_event().await.expect("an event");
        assert_eq!((event.id, event.retry), (None, None));
        bench.leave(general).await;
    }
}

/// The events of a batch have ids too, its answers among them, in the order in which they are read.
async fn of_a_batch(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let element = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "x/work"});
    let asking = bench.send(session.post(json!([element(1), element(2), element(3)])));
    let runs = [bench.run().await, bench.run().await, bench.run().await];
    let [one, two, three] = runs;
    one.say(0).await;
    let mut stream = asking.await.expect("an answer");
    let (first, message) = read(&mut stream).await.expect("an event");
    assert_eq!(message, said(0));
    one.answer("one");
    let (second, message) = read(&mut stream).await.expect("an event");
    assert_eq!(message, answered(1, "one"));
    bench.leave(stream).await;
    two.say(1).await;
    let two_cx = two.cx.clone();
    two.answer("two");
    while bench.service.counts().in_flight > 1 {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    two_cx.notify("notifications/x", json!({"n": "late"})).await.expect("an object");
    three.say(2).await;
    three.answer("three");
    let expected = [answered(1, "one"), said(1), answered(2, "two"), said(2), answered(3, "three")];
    assert_eq!(rest(resume(&session, &first).await).await, expected);
    assert_eq!(rest(resume(&session, &second).await).await, expected[1..]);
    refused(&session, format!("{}-99", stream_of(&first))).await;
}

/// A stream begins with an id, from which all of it can be had.
async fn prime(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    run.say(0).await;
    let mut stream = asking.await.expect("an answer");
    let raw = stream.chunk().await.expect("an event");
    let raw = std::str::from_utf8(&raw).expect("text");
    let id = raw.strip_prefix("id: ").and_then(|rest| rest.split_once('\n')).expect("an id").0;
    assert!(raw.starts_with(&format!("id: {id}\ndata: \n\n")), "{raw}");
    bench.leave(stream).await;
    run.answer("a");
    assert_eq!(rest(resume(&session, id).await).await, [said(0), answered(ID, "a")]);

    // An answer that streams only because nothing else is accepted begins so as well.
    let call = session.call("x/quick", Value::Null).header(ACCEPT.as_str(), "text/event-stream");
    let mut stream = bench.client.send(call).await;
    let id = skip_mark(&mut stream, cx.revision).await.expect("an id");
    assert_eq!(read(&mut stream).await.expect("an event").1["result"], json!({}));
    assert_eq!(read(&mut stream).await, None);
    assert_eq!(rest(resume(&session, &id).await).await.len(), 1);

    // And the general stream.
    let mut general = session.listen().await;
    let id = skip_mark(&mut general, cx.revision).await.expect("an id");
    bench.leave(general).await;
    bench.service.changes().tools_list_changed();
    let mut general = resume(&session, &id).await;
    assert_eq!(read(&mut general).await.expect("an event").1, list_changed("tools"));
}

/// One that streams because its handler is silent begins with an id at the commit time.
async fn prime_committed(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    let mut stream = asking.await.expect("an answer");
    let id = skip_mark(&mut stream, cx.revision).await.expect("an id");
    bench.leave(stream).await;
    run.answer("a");
    assert_eq!(rest(resume(&session, &id).await).await, [answered(ID, "a")]);
}

/// Older clients would take an event without data for a broken message: their streams begin with a message, or a comment
/// where a GET opened them.
async fn unprimed(cx: Cx) {
    if cx.revision == Revision::V2025_11_25 {
        return;
    }
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    assert!(!run.cx.close_connection(std::time::Duration::ZERO));
    run.say(0).await;
    run.answer("a");
    assert_eq!(rest(asking.await.expect("an answer")).await, [said(0), answered(ID, "a")]);
    let mut general = session.listen().await;
    bench.service.changes().tools_list_changed();
    assert_eq!(read(&mut general).await.expect("an event").1, list_changed("tools"));
}

/// 2026-07-28 has none of this, whatever is configured: no ids, and a lost connection cancels.
async fn modern(cx: Cx) {
    let bench = Bench::open(cx).await;
    let asking = bench.send(Call::modern("x/work", json!({})).header(LAST_EVENT_ID, "AAAAAAAAAAAAAAAAAAAAAA-1"));
    let run = bench.run().await;
    assert!(!run.cx.close_connection(std::time::Duration::ZERO));
    run.say(0).await;
    let mut stream = asking.await.expect("an answer");
    let event = stream.next_event().await.expect("an event");
    assert_eq!((event.id, event.retry), (None, None));
    drop(stream);
    assert_eq!(run.cx.cancelled().await, mcp_transport::CancelCause::Disconnected);
}
