//! Ids that are none, ids of others, and what is bounded.

use std::time::Duration;

use http::StatusCode;
use mcp_transport::Limits;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Bench, LAST_EVENT_ID, after, answered, read, refused, rest, resume, said};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::ID;
use crate::support::session::{self, ACCOUNT, initialize};

pub fn register(wire: &mut Wire) {
    wire.legacy("resume/gone/unreadable", Carriers::Every, unreadable);
    wire.legacy("resume/gone/foreign", Carriers::Every, foreign);
    wire.legacy("resume/gone/answer", Carriers::Every, purged_answer);
    wire.legacy("resume/replays/dropped-again-and-again", Carriers::Every, dropped_again_and_again);
    wire.any_legacy("limit/each/stored-events", Carriers::Clock, stored_events);
    wire.any_legacy("limit/each/stored-bytes", Carriers::Clock, stored_bytes);
    wire.any_legacy("limit/each/stored-bytes-in-all", Carriers::Clock, stored_bytes_in_all);
    wire.any_legacy("limit/each/stored-for", Carriers::Clock, stored_for);
}

/// What was never given out is refused, and nothing of it repeated.
async fn unreadable(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    let (name, number) = first.rsplit_once('-').expect("an id");
    let number: u64 = number.parse().expect("a number");
    let ids = [
        "1".to_owned(),
        "x".to_owned(),
        "-".to_owned(),
        name.to_owned(),
        format!("{name}-"),
        format!("{name}-0"),
        format!("{name}-0{number}"),
        format!("{name}-+{number}"),
        format!("{name}-{}", number + 1),
        format!("{name}-{}", u64::MAX),
        format!("{name}-{}", "9".repeat(30)),
        format!("{name}{number}"),
        format!("{first}, {first}"),
        format!("{}-{number}", "A".repeat(22)),
        first.to_lowercase() + "x",
        "A".repeat(8000),
        format!("{name}-{}", "1".repeat(8000)),
    ];
    for id in &ids {
        let answer = bench.client.send(after(&session, id)).await;
        let error = answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
        assert!(!error.to_string().contains(name), "{error}");
    }
    refused(&session, [&first.as_bytes()[..5], b"\xff\xfe"].concat()).await;
    let twice = session.get().header(LAST_EVENT_ID, &first).also(LAST_EVENT_ID, &first);
    bench.client.send(twice).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    assert_eq!(bench.service.counts().streams, 0);
    // White space around it is not part of it, and an empty one says nothing.
    let stream = resume(&session, &format!(" {first}\t")).await;
    drop(session.client.send(session.get().header(LAST_EVENT_ID, "")).await);
    run.answer("a");
    assert_eq!(rest(stream).await, [answered(ID, "a")]);
}

/// An event of another session is none here, whoever asks; and a session of somebody else is no session.
async fn foreign(cx: Cx) {
    let bench = Bench::open(cx).await;
    let one = session::open_by(&bench.client, initialize(cx.revision).header(ACCOUNT, "one")).await;
    let same = session::open_by(&bench.client, initialize(cx.revision).header(ACCOUNT, "one")).await;
    let two = session::open_by(&bench.client, initialize(cx.revision).header(ACCOUNT, "two")).await;
    let (stream, run, first) = bench.streaming(one.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    for other in [&same, &two] {
        refused(other, &first).await;
    }
    for stranger in [after(&one, &first).header(ACCOUNT, "two"), after(&one, &first).without(ACCOUNT)] {
        bench.client.send(stranger).await.error(StatusCode::NOT_FOUND, -32600, None).await;
    }
    run.answer("secret");
    assert_eq!(rest(resume(&one, &first).await).await, [answered(ID, "secret")]);
    for other in [&same, &two] {
        refused(other, &first).await;
    }
}

/// Of an answer's stream nothing is left out: where what followed an event is gone, so is the event.
async fn purged_answer(cx: Cx) {
    let limits = Limits::default().stored_events(4);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    let (mut stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    let mut ids = vec![first];
    for n in 1..8 {
        run.say(n).await;
        ids.push(read(&mut stream).await.expect("an event").0);
    }
    bench.leave(stream).await;
    for id in &ids[..3] {
        refused(&session, id).await;
    }
    for (n, id) in (0..).zip(&ids).skip(3) {
        let mut stream = resume(&session, id).await;
        for n in n + 1..8 {
            assert_eq!(read(&mut stream).await.expect("an event").1, said(n));
        }
        bench.leave(stream).await;
    }
    // Other streams of the session push it out too, and then all of it is gone.
    run.answer("a");
    let (stream, other, _) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    for n in 1..4 {
        other.say(n).await;
    }
    for id in &ids {
        refused(&session, id).await;
    }
}

/// A client that breaks off while it is being replayed to, many times.
async fn dropped_again_and_again(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    for n in 1..100 {
        run.say(n).await;
    }
    for reads in 0..30 {
        let mut stream = resume(&session, &first).await;
        for n in 1..=reads {
            assert_eq!(read(&mut stream).await.expect("an event").1, said(n));
        }
    }
    run.answer("a");
    let mut expected: Vec<_> = (1..100).map(said).collect();
    expected.push(answered(ID, "a"));
    assert_eq!(rest(resume(&session, &first).await).await, expected);
}

/// A thousand events are kept, and not one more.
async fn stored_events(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    for n in 1..=1000 {
        run.say(n).await;
    }
    let mut stream = resume(&session, &first).await;
    let (second, _) = read(&mut stream).await.expect("an event");
    bench.leave(stream).await;
    run.say(1001).await;
    refused(&session, &first).await;
    let mut stream = resume(&session, &second).await;
    for n in 2..=1001 {
        assert_eq!(read(&mut stream).await.expect("an event").1, said(n));
    }
}

/// What an event of this many bytes of text is, sent to nobody.
async fn say_at_length(run: &super::Run, bytes: usize) {
    run.cx.notify("notifications/x", json!({ "text": "x".repeat(bytes) })).await.expect("an object");
}

/// Four MiB are kept, each event counted 256 bytes more than it has.
async fn stored_bytes(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    say_at_length(&run, 64 << 10).await;
    let mut stream = resume(&session, &first).await;
    let event = stream.chunk().await.expect("an event");
    bench.leave(stream).await;
    // Its number may become longer by a digit or two.
    let most = (4 << 20) / (event.len() + 256);
    for _ in 1..most {
        say_at_length(&run, 64 << 10).await;
    }
    let mut stream = resume(&session, &first).await;
    for _ in 0..most {
        read(&mut stream).await.expect("an event");
    }
    bench.leave(stream).await;
    say_at_length(&run, 64 << 10).await;
    refused(&session, &first).await;
    // One that is larger than all is not kept, and what is kept stays.
    let (stream, other, its_first) = bench.streaming(session.call("x/work", Value::Null).id(2)).await;
    bench.leave(stream).await;
    let mut stream = resume(&session, &its_first).await;
    say_at_length(&other, 5 << 20).await;
    let (its_second, _) = read(&mut stream).await.expect("whoever is there reads it all the same");
    bench.leave(stream).await;
    refused(&session, &its_first).await;
    other.answer("a");
    assert_eq!(rest(resume(&session, &its_second).await).await, [answered(2, "a")]);
}

/// What all sessions keep together is bounded too: the oldest go, whosever they are.
async fn stored_bytes_in_all(cx: Cx) {
    let limits = Limits::default().stored_bytes(100_000).stored_bytes_in_all(200_000);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        sleep(Duration::from_millis(1)).await;
        let session = bench.session(cx).await;
        let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
        bench.leave(stream).await;
        say_at_length(&run, 60_000).await;
        runs.push((session, run, first));
    }
    for (n, (session, _, first)) in runs.iter().enumerate() {
        if n < 2 {
            refused(session, first).await;
        } else {
            let mut stream = resume(session, first).await;
            assert!(read(&mut stream).await.is_some());
            bench.leave(stream).await;
        }
    }
    // A session that ends makes room for the others.
    runs[4].0.end().await;
    sleep(Duration::from_millis(1)).await;
    say_at_length(&runs[0].1, 60_000).await;
    for n in [2, 3] {
        let mut stream = resume(&runs[n].0, &runs[n].2).await;
        assert!(read(&mut stream).await.is_some());
    }
}

/// For ten minutes.
async fn stored_for(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    run.say(1).await;
    sleep(Duration::from_secs(590)).await;
    run.say(2).await;
    sleep(Duration::from_millis(9_990)).await;
    let mut stream = resume(&session, &first).await;
    let (second, _) = read(&mut stream).await.expect("an event");
    bench.leave(stream).await;
    sleep(Duration::from_millis(20)).await;
    refused(&session, &first).await;
    let mut stream = resume(&session, &second).await;
    assert_eq!(read(&mut stream).await.expect("an event").1, said(2));
}
