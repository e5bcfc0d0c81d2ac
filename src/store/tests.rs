use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, advance};

use super::log::{Found, Log};
use super::record::{Record, Unresumable};
use super::{EventId, Store};
use crate::limits::Limits;
use crate::observer::Ear;

/// What an event of this many bytes costs beside them: its id, and the log's own.
const ID: usize = "id: AAAAAAAAAAAAAAAAAAAAAA-1\n".len();
const OVERHEAD: usize = 256;

fn limits() -> Limits {
    Limits::default().stored_events(3).stored_bytes(10_000).stored_bytes_in_all(30_000)
}

fn record(log: &Arc<Log>) -> Record {
    Record::begin(log, Found::General).unwrap()
}

/// An event that costs this much.
fn event(cost: usize) -> Bytes {
    vec![b'x'; cost - OVERHEAD - ID].into()
}

fn id(event: &Bytes) -> EventId {
    let line = event.split(|byte| *byte == b'\n').next().unwrap();
    EventId::read(line.strip_prefix(b"id: ").unwrap()).unwrap()
}

fn numbers(events: Result<VecDeque<Bytes>, Unresumable>) -> Result<Vec<u64>, Unresumable> {
    events.map(|events| events.iter().map(|event| id(event).number).collect())
}

const GONE: Result<Vec<u64>, Unresumable> = Err(Unresumable::Gone);

#[test]
fn a_stream_is_read_after_any_of_its_events_and_no_other() {
    let store = Store::new(&limits(), Ear::default());
    let log = Log::new(&store);
    let (mut one, mut other) = (record(&log), record(&log));
    let first = one.write(&event(300));
    other.write(&event(300));
    let second = one.write(&event(300));
    assert!(second.ends_with(&event(300)) && id(&first).stream == id(&second).stream);
    assert_eq!(one.after(0), Ok(VecDeque::from([first, second.clone()])));
    assert_eq!(one.after(1), Ok(VecDeque::from([second])));
    assert_eq!((numbers(one.after(2)), numbers(one.after(3))), (Ok(vec![]), Err(Unresumable::Unknown)));
    assert_eq!(numbers(other.after(0)), Ok(vec![1]));
    // A mark has an id, and is not kept.
    assert_eq!(id(&other.mark(None)).number, 2);
    assert_eq!((numbers(other.after(1)), numbers(other.after(2))), (Ok(vec![]), Ok(vec![])));
}

#[test]
fn of_all_streams_of_a_session_the_oldest_events_go() {
    let store = Store::new(&limits(), Ear::default());
    let log = Log::new(&store);
    let (mut one, mut other) = (record(&log), record(&log));
    one.write(&event(300));
    other.write(&event(300));
    one.write(&event(300));
    assert_eq!((store.kept(), numbers(one.after(0))), ((900, 1), Ok(vec![1, 2])));
    other.write(&event(300));
    assert_eq!(store.kept(), (900, 1), "three events");
    assert_eq!(
        (numbers(one.after(0)), numbers(one.after(1)), numbers(other.after(0))),
        (GONE, Ok(vec![2]), Ok(vec![1, 2]))
    );
    other.write(&event(9400));
    assert_eq!(store.kept(), (10_000, 1), "10,000 bytes");
    assert_eq!((numbers(other.after(0)), numbers(other.after(1))), (GONE, Ok(vec![2, 3])));
    other.write(&event(301));
    assert_eq!((store.kept(), numbers(other.after(2))), ((9_701, 1), Ok(vec![3, 4])));
    // One that is too large is not kept, and nothing goes for it.
    one.write(&event(10_001));
    assert_eq!((store.kept(), numbers(one.after(2)), numbers(other.after(2))), ((9_701, 1), GONE, Ok(vec![3, 4])));
}

#[test]
fn of_all_sessions_the_oldest_events_go() {
    let store = Store::new(&limits(), Ear::default());
    let logs: Vec<_> = (0..5).map(|_| Log::new(&store)).collect();
    let mut records: Vec<_> = logs.iter().map(record).collect();
    for round in 0..3 {
        for record in &mut records {
            record.write(&event(3000));
        }
        assert_eq!(store.kept(), ([15_000, 30_000, 30_000][round], 5));
    }
    for record in &records {
        assert_eq!((numbers(record.after(0)), numbers(record.after(1))), (GONE, Ok(vec![2, 3])));
    }
    // One that has had its turn has it again only when its next event is the oldest.
    records[3].write(&event(3000));
    assert_eq!((numbers(records[0].after(1)), numbers(records[0].after(2))), (GONE, Ok(vec![3])));
    assert_eq!(numbers(records[1].after(1)), Ok(vec![2, 3]));
    drop(logs);
    assert_eq!(store.kept(), (0, 0));
    assert_eq!(numbers(records[1].after(1)), GONE);
}

#[test]
fn a_session_without_events_is_in_nobodys_way() {
    let store = Store::new(&limits().stored_events(0), Ear::default());
    let log = Log::new(&store);
    record(&log).write(&event(300));
    assert_eq!(store.kept(), (0, 0));
    let store = Store::new(&limits().stored_bytes_in_all(0), Ear::default());
    let log = Log::new(&store);
    record(&log).write(&event(300));
    assert_eq!(store.kept(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_event_is_kept_for_its_time() {
    let store = Store::new(&limits().stored_for(Duration::from_secs(60)), Ear::default());
    let log = Log::new(&store);
    let mut record = record(&log);
    record.write(&event(300));
    advance(Duration::from_secs(30)).await;
    record.write(&event(300));
    advance(Duration::from_millis(29_999)).await;
    assert_eq!(numbers(record.after(0)), Ok(vec![1, 2]));
    advance(Duration::from_millis(1)).await;
    assert_eq!((numbers(record.after(0)), numbers(record.after(1))), (GONE, Ok(vec![2])));
    assert_eq!(store.kept(), (300, 1));
    advance(Duration::from_secs(60)).await;
    log.expire(Instant::now());
    assert_eq!(store.kept(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn of_a_stream_that_has_ended_nothing_stays_behind_its_last_event() {
    let store = Store::new(&limits().stored_for(Duration::from_secs(60)), Ear::default());
    let log = Log::new(&store);
    for has_last in [true, false] {
        let mut ending = record(&log);
        let stream = id(&ending.mark(None)).stream;
        if has_last {
            ending.write_last(&event(300));
        } else {
            ending.end();
        }
        assert_eq!(store.kept().1, 1);
        advance(Duration::from_millis(59_999)).await;
        assert!(log.find(stream).is_some());
        advance(Duration::from_millis(1)).await;
        assert!(log.find(stream).is_none());
        assert_eq!(store.kept(), (0, 0));
    }
}

#[test]
fn a_session_that_has_ended_keeps_nothing() {
    let store = Store::new(&limits(), Ear::default());
    let log = Log::new(&store);
    let mut record = record(&log);
    let stream = id(&record.write(&event(300))).stream;
    log.close();
    assert_eq!(store.kept(), (0, 0));
    assert_eq!(id(&record.write(&event(300))).number, 2, "it still has an id");
    assert_eq!((store.kept(), numbers(record.after(0))), ((0, 0), GONE));
    assert!(log.find(stream).is_none());
    assert!(Record::begin(&log, Found::General).is_none());
}
