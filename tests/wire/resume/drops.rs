//! A client that may lose its connection at any byte ends up with everything, once, in order.

use mcp_transport::Revision;
use serde_json::Value;

use super::{Bench, Run, after, answered, list_changed, said};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::session::Session;
use crate::support::sse::{Decoder, Frame};

pub fn register(wire: &mut Wire) {
    wire.legacy("resume/replays/any-byte", Carriers::Every, at_any_byte_of_the_answer);
    wire.legacy("resume/replays/any-byte-of-a-replay", Carriers::Every, at_any_byte_of_a_replay);
    wire.legacy("resume/replays/every-few-bytes", Carriers::Every, every_few_bytes);
    wire.legacy("resume/replays/any-byte-of-the-general-stream", Carriers::Every, at_any_byte_of_the_general_stream);
}

/// What a client has read: whole events alone, for one whose closing blank line never arrived was never delivered.
#[derive(Default)]
struct Reader {
    last: Option<String>,
    messages: Vec<Value>,
}

/// How a connection was lost.
#[derive(Debug, PartialEq, Eq)]
enum Lost {
    /// After as many bytes as it was to have.
    Cut,
    /// The stream ended before.
    Ended,
}

impl Reader {
    /// Reads that many bytes of a stream, and then breaks off, inside whatever event that is.
    async fn read(&mut self, mut stream: Answer, mut bytes: usize) -> Lost {
        let mut decoder = Decoder::default();
        while bytes > 0 {
            let Some(chunk) = stream.chunk().await else {
                return Lost::Ended;
            };
            let read = bytes.min(chunk.len());
            decoder.push(&chunk[..read]);
            bytes -= read;
            while let Some(frame) = decoder.next().expect("a strict event stream") {
                self.take(frame);
            }
        }
        Lost::Cut
    }

    fn take(&mut self, frame: Frame) {
        let Frame::Event(event) = frame else { return };
        self.last = event.id.or_else(|| self.last.take());
        let data = event.data.unwrap_or_default();
        if !data.is_empty() {
            self.messages.push(serde_json::from_str(&data).expect("a message"));
        }
    }

    /// Comes back for the rest, and reads that many bytes of it.
    async fn read_on(&mut self, session: &Session, bytes: usize) -> Lost {
        let last = self.last.clone().expect("an id");
        let stream = session.client.send(after(session, &last)).await;
        assert_eq!(stream.status, http::StatusCode::OK);
        self.read(stream, bytes).await
    }
}

/// A call that has said 0 to 2.
async fn begun(bench: &Bench, session: &Session) -> (Answer, Run) {
    let asking = bench.send(session.call("x/work", Value::Null));
    let run = bench.run().await;
    for n in 0..3 {
        run.say(n).await;
    }
    (asking.await.expect("an answer"), run)
}

/// Everything that call is to deliver once it has said 3 and answered.
fn everything() -> Vec<Value> {
    let mut everything: Vec<_> = (0..4).map(said).collect();
    everything.push(answered(crate::support::request::ID, "a"));
    everything
}

/// How long the stream is that [`begun`] begins, and how long its first event.
async fn lengths(cx: Cx, bench: &Bench, session: &Session) -> (usize, usize) {
    let (mut stream, run) = begun(bench, session).await;
    let mut lengths = Vec::new();
    let mut bytes = Vec::new();
    let events = if cx.revision == Revision::V2025_11_25 { 4 } else { 3 };
    while lengths.len() < events {
        bytes.extend_from_slice(&stream.chunk().await.expect("an event"));
        lengths = bytes.windows(2).enumerate().filter(|(_, pair)| pair == b"\n\n").map(|(at, _)| at + 2).collect();
    }
    run.answer("a");
    (lengths[0], lengths[events - 1])
}

/// The connection of the POST is lost at any byte of it.
async fn at_any_byte_of_the_answer(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (first, whole) = lengths(cx, &bench, &session).await;
    for cut in 0..=whole {
        let (stream, run) = begun(&bench, &session).await;
        let mut reader = Reader::default();
        assert_eq!(reader.read(stream, cut).await, Lost::Cut);
        // Whether the server knows already makes no difference.
        run.say(3).await;
        if cut % 2 == 0 {
            bench.streams(0).await;
        }
        run.answer("a");
        assert_eq!(reader.last.is_some(), cut >= first);
        if cut >= first {
            assert_eq!(reader.read_on(&session, usize::MAX).await, Lost::Ended);
            assert_eq!(reader.messages, everything(), "cut at {cut}");
        }
        bench.streams(0).await;
    }
}

/// The connection of the GET that reads on is lost at any byte of it, and a third one has the rest.
async fn at_any_byte_of_a_replay(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (first, _) = lengths(cx, &bench, &session).await;
    for cut in 0.. {
        let (stream, run) = begun(&bench, &session).await;
        let mut reader = Reader::default();
        reader.read(stream, first).await;
        run.say(3).await;
        run.answer("a");
        let lost = reader.read_on(&session, cut).await;
        if lost == Lost::Cut && reader.messages.len() < 5 {
            assert_eq!(reader.read_on(&session, usize::MAX).await, Lost::Ended);
        }
        assert_eq!(reader.messages, everything(), "cut at {cut}");
        bench.streams(0).await;
        if lost == Lost::Ended {
            assert!(cut > 400, "{cut}");
            break;
        }
    }
}

/// No connection lives longer than so many bytes, as long as that is one event.
async fn every_few_bytes(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let (first, _) = lengths(cx, &bench, &session).await;
    // The comment a GET begins with, and the longest event.
    for bytes in 160..320 {
        let (stream, run) = begun(&bench, &session).await;
        let mut reader = Reader::default();
        reader.read(stream, bytes.max(first)).await;
        run.say(3).await;
        run.answer("a");
        while reader.messages.len() < 5 {
            let before = reader.messages.len();
            reader.read_on(&session, bytes).await;
            assert!(reader.messages.len() > before, "{bytes} bytes are an event");
        }
        assert_eq!(reader.messages, everything(), "{bytes} bytes at a time");
        bench.streams(0).await;
    }
}

/// The same of the general stream, which has no end.
async fn at_any_byte_of_the_general_stream(cx: Cx) {
    let bench = Bench::open(cx).await;
    for cut in 0.. {
        let session = bench.session(cx).await;
        let mut reader = Reader::default();
        let stream = session.client.send(session.get()).await;
        for list in ["tools", "prompts"] {
            publish(&bench, list);
        }
        // Two lists, and what 2025-11-25 begins with.
        if cut > 400 {
            break;
        }
        let reading = tokio::time::timeout(std::time::Duration::from_millis(50), reader.read(stream, cut));
        let Ok(lost) = reading.await else { break };
        assert_eq!(lost, Lost::Cut);
        bench.streams(0).await;
        publish(&bench, "resources");
        if reader.last.is_some() {
            let stream = session.client.send(after(&session, &reader.last.clone().expect("an id"))).await;
            session.end().await;
            reader.read(stream, usize::MAX).await;
            let mut heard = reader.messages;
            assert_eq!(heard.len(), 3, "cut at {cut}: {heard:?}");
            heard.dedup();
            for list in ["tools", "prompts", "resources"] {
                assert!(heard.contains(&list_changed(list)), "cut at {cut}: {heard:?}");
            }
        }
        bench.streams(0).await;
    }
}

fn publish(bench: &Bench, list: &str) {
    match list {
        "tools" => bench.service.changes().tools_list_changed(),
        "prompts" => bench.service.changes().prompts_list_changed(),
        _ => bench.service.changes().resources_list_changed(),
    }
}
