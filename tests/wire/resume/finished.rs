//! The id of a stream that has been read to its end: what reads on is the general stream.

use http::StatusCode;
use mcp_transport::SecondGet;
use serde_json::Value;

use super::{Bench, after, answered, list_changed, listen, read, rest, resume, skip_mark};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::ID;

pub fn register(wire: &mut Wire) {
    wire.legacy("resume/finished", Carriers::Every, finished);
    wire.legacy("resume/finished/one-is-open", Carriers::Every, one_is_open);
    wire.legacy("resume/finished/newest-wins", Carriers::Every, newest_wins);
}

/// Reads a stream to its end; returns the id of its last event.
async fn finish(bench: &Bench, session: &super::Session) -> String {
    let (mut stream, run, _) = bench.streaming(session.call("x/work", Value::Null)).await;
    run.answer("a");
    let (last, message) = read(&mut stream).await.expect("an event");
    assert_eq!((message, read(&mut stream).await), (answered(ID, "a"), None));
    last
}

/// Clients exist that open their general stream with the id of the last answer they read.
async fn finished(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let last = finish(&bench, &session).await;
    for _ in 0..3 {
        let mut general = resume(&session, &last).await;
        skip_mark(&mut general, cx.revision).await;
        bench.service.changes().tools_list_changed();
        let (id, message) = read(&mut general).await.expect("an event");
        assert_eq!(message, list_changed("tools"));
        bench.leave(general).await;
        // From here on it is the general stream's id that reads on.
        bench.service.changes().prompts_list_changed();
        let mut general = resume(&session, &id).await;
        assert_eq!(read(&mut general).await.expect("an event").1, list_changed("prompts"));
        bench.leave(general).await;
    }
    let general = resume(&session, &last).await;
    session.end().await;
    drop(general);
}

/// There is one general stream: the open one stays, and the id of a stream that has something left still reads that.
async fn one_is_open(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let last = finish(&bench, &session).await;
    let (stream, run, first) = bench.streaming(session.call("x/work", Value::Null)).await;
    bench.leave(stream).await;
    let mut general = listen(&session).await;
    bench.client.send(after(&session, &last)).await.error(StatusCode::CONFLICT, -32600, None).await;
    let rest_of_it = resume(&session, &first).await;
    run.answer("b");
    assert_eq!(rest(rest_of_it).await, [answered(ID, "b")]);
    bench.service.changes().tools_list_changed();
    assert_eq!(read(&mut general).await.expect("an event").1, list_changed("tools"));
}

/// Where the newest GET is to win, it wins by such an id too.
async fn newest_wins(cx: Cx) {
    let bench = Bench::with(cx, |builder| builder.second_get(SecondGet::TakesOver)).await;
    let session = bench.session(cx).await;
    let last = finish(&bench, &session).await;
    let older = listen(&session).await;
    let mut general = resume(&session, &last).await;
    skip_mark(&mut general, cx.revision).await;
    assert_eq!(rest(older).await, [Value::Null; 0]);
    bench.service.changes().tools_list_changed();
    assert_eq!(read(&mut general).await.expect("an event").1, list_changed("tools"));
}
