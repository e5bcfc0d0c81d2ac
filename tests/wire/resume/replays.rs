//! A client that comes back reads on where it left off.

use http::StatusCode;
use mcp_transport::Limits;
use serde_json::Value;

use super::{Bench, answered, listen, read, refused, rest, resume, said};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::ID;

pub fn register(wire: &mut Wire) {
    wire.legacy("resume/replays", Carriers::Every, replays);
    wire.legacy("resume/replays/that-stream-alone", Carriers::Every, that_stream_alone);
    wire.legacy("resume/replays/takes-over", Carriers::Every, takes_over);
    wire.legacy("resume/replays/two-at-once", Carriers::Every, two_at_once);
    wire.legacy("resume/replays/while-sending", Carriers::Every, while_sending);
    wire.legacy("resume/replays/nobody-waits", Carriers::Every, nobody_waits);
    wire.legacy("resume/replays/back-pressure", Carriers::Clock, back_pressure);
}

/// From any event on, while the work goes on, and then live.
async fn replays(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (mut stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    let mut ids = vec![first];
    for n in 1..4 {
        run.say(n).await;
        ids.push(read(&mut stream).await.expect("an event").0);
    }
    bench.leave(stream).await;
    for (seen, id) in (0..).zip(&ids) {
        let mut stream = resume(&session, id).await;
        for n in seen + 1..4 {
            assert_eq!(read(&mut stream).await.expect("an event").1, said(n));
        }
        bench.leave(stream).await;
    }
    let mut stream = resume(&session, &ids[3]).await;
    run.say(4).await;
    assert_eq!(read(&mut stream).await.expect("an event").1, said(4));
    run.answer("a");
    assert_eq!(rest(stream).await, [answered(ID, "a")]);
    assert_eq!(rest(resume(&session, &ids[2]).await).await, [said(3), said(4), answered(ID, "a")]);
}

/// Nothing of another stream of the session is among it; the others go on beside it, the general one too.
async fn that_stream_alone(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let mut general = listen(&session).await;
    let (one, first_run, first) = bench.streaming(session.call("x/work", Value::Null).id(1)).await;
    let (mut two, second_run, second) = bench.streaming(session.call("x/work", Value::Null).id(2)).await;
    bench.leave(one).await;
    for n in 1..3 {
        first_run.say(n).await;
        second_run.say(10 + n).await;
        bench.service.changes().tools_list_changed();
        assert_eq!(read(&mut two).await.expect("an event").1, said(10 + n));
        assert_eq!(read(&mut general).await.expect("an event").1, super::list_changed("tools"));
    }
    let one = resume(&session, &first).await;
    let two_again = resume(&session, &second).await;
    first_run.answer("one");
    second_run.answer("two");
    assert_eq!(rest(one).await, [said(1), said(2), answered(1, "one")]);
    assert_eq!(rest(two_again).await, [said(11), said(12), answered(2, "two")]);
    assert_eq!(rest(two).await, [Value::Null; 0], "superseded");
    bench.service.changes().prompts_list_changed();
    assert_eq!(read(&mut general).await.expect("an event").1, super::list_changed("prompts"));
}

/// A second reader takes the stream, and the first one ends, whether it reads or not.
async fn takes_over(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (mut stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    for n in 1..20 {
        run.say(n).await;
        let newer = resume(&session, &first).await;
        let older = std::mem::replace(&mut stream, resume(&session, &first).await);
        for superseded in [older, newer] {
            // Sockets may have carried some of it before.
            assert!(rest(superseded).await.len() <= usize::try_from(n).expect("a few"));
        }
        for m in 1..=n {
            assert_eq!(read(&mut stream).await.expect("an event").1, said(m));
        }
        bench.streams(1).await;
    }
    run.answer("a");
    assert_eq!(rest(stream).await, [answered(ID, "a")]);
}

/// Of two that come at the same moment one gets all, and the other ends.
async fn two_at_once(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    let first = &first;
    let come = std::cell::Cell::new(0);
    let reads: Vec<_> = (0..8)
        .map(|_| async {
            let stream = resume(&session, first).await;
            come.set(come.get() + 1);
            rest(stream).await
        })
        .collect();
    let (mut readers, ()) = tokio::join!(futures::future::join_all(reads), async {
        for n in 1..50 {
            run.say(n).await;
            tokio::task::yield_now().await;
        }
        // All have come before it ends.
        while come.get() < 8 || bench.service.counts().streams != 1 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        run.answer("a");
    });
    readers.sort_by_key(Vec::len);
    let mut expected: Vec<_> = (1..50).map(said).collect();
    expected.push(answered(ID, "a"));
    assert_eq!(readers.pop(), Some(expected.clone()));
    for reader in readers {
        assert_eq!(reader, expected[..reader.len()], "what the others saw is the beginning of it");
        assert!(reader.len() < expected.len());
    }
}

/// Whatever is sent while the client comes and goes arrives once, in order.
async fn while_sending(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    let (mut id, mut seen) = (first, Vec::new());
    let ((), ()) = tokio::join!(
        async {
            for n in 1..200 {
                run.say(n).await;
                tokio::task::yield_now().await;
            }
            run.answer("a");
        },
        async {
            'client: loop {
                let mut stream = resume(&session, &id).await;
                for _ in 0..7 {
                    let Some((next, message)) = read(&mut stream).await else { break 'client };
                    let is_last = message.get("id").is_some();
                    (id, _) = (next, seen.push(message));
                    if is_last {
                        break 'client;
                    }
                }
            }
        }
    );
    let mut expected: Vec<_> = (1..200).map(said).collect();
    expected.push(answered(ID, "a"));
    assert_eq!(seen, expected);
}

/// With nobody there a sender waits for nobody, and one that waits goes on when the client leaves.
async fn nobody_waits(cx: Cx) {
    let limits = Limits::default().queue_bytes(4096).stored_events(10);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    let sender = run.cx.clone();
    let sending = tokio::spawn(async move {
        for n in 1..=100_000 {
            sender.notify("notifications/x", serde_json::json!({ "n": n })).await.expect("an object");
        }
    });
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    assert!(!sending.is_finished(), "it waits for its reader");
    bench.leave(stream).await;
    sending.await.expect("nobody panicked");
    refused(&session, &first).await;
    run.answer("a");
}

/// While somebody is there again a sender waits as it did before.
async fn back_pressure(cx: Cx) {
    let limits = Limits::default().queue_bytes(256 << 10);
    let bench = Bench::with(cx, |builder| builder.limits(limits)).await;
    let session = bench.session(cx).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    for n in 1..=100 {
        run.say(n).await;
    }
    let mut stream = bench.client.send(super::after(&session, &first)).await;
    assert_eq!(stream.status, StatusCode::OK);
    let sender = run.cx.clone();
    let sending = tokio::spawn(async move {
        for n in 101..=700 {
            sender.notify("notifications/x", serde_json::json!({ "n": n })).await.expect("an object");
        }
    });
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(!sending.is_finished());
    for n in 1..=700 {
        assert_eq!(read(&mut stream).await.expect("an event").1, said(n));
    }
    sending.await.expect("nobody panicked");
    run.answer("a");
    assert_eq!(rest(stream).await, [answered(ID, "a")]);
}
