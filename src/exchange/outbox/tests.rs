use futures::FutureExt;

use super::*;

fn line(length: usize) -> Bytes {
    Bytes::from(vec![b'x'; length])
}

fn take(outbox: &Outbox) -> Option<Parcel> {
    outbox.take(&mut BytesMut::new())
}

#[test]
fn what_is_ready_together_leaves_together() {
    let outbox = Outbox::new(1 << 20);
    for text in ["a\n", "b\n", "c\n"] {
        outbox.answer(Bytes::from_static(text.as_bytes()), 1);
    }
    let parcel = take(&outbox).unwrap();
    assert_eq!(&parcel.bytes[..], b"a\nb\nc\n");
    assert_eq!(outbox.unwritten(), 3, "not written yet");
    outbox.written(&parcel);
    assert_eq!(outbox.unwritten(), 0);
    assert!(take(&outbox).is_none());
}

#[test]
fn a_long_line_leaves_by_itself() {
    let outbox = Outbox::new(1 << 20);
    for length in [10, PARCEL, 10, PARCEL - 10, 1] {
        outbox.answer(line(length), 1);
    }
    let lengths: Vec<_> = std::iter::from_fn(|| take(&outbox)).map(|parcel| parcel.bytes.len()).collect();
    assert_eq!(lengths, [10, PARCEL, PARCEL, 1]);
}

#[test]
fn messages_wait_for_what_was_sent_to_be_written() {
    let outbox = Outbox::new(1024);
    assert!(outbox.send(line(1000), || true).now_or_never().is_some());
    assert!(outbox.send(line(100), || true).now_or_never().is_none());
    let parcel = take(&outbox).unwrap();
    assert!(outbox.send(line(100), || true).now_or_never().is_none(), "taken, but not written");
    outbox.written(&parcel);
    assert!(outbox.send(line(100), || true).now_or_never().is_some());
    assert!(outbox.send(line(100), || false).now_or_never().is_some());
    let parcel = take(&outbox).unwrap();
    assert_eq!(parcel.bytes.len(), 100, "the unwanted one was dropped");
    outbox.written(&parcel);
    assert_eq!(outbox.room.available_permits(), 1024);
}

#[test]
fn courtesies_past_their_bound_are_dropped() {
    let outbox = Outbox::new(1 << 20);
    (0..5000).for_each(|_| outbox.courtesy(line(10)));
    let parcel = take(&outbox).unwrap();
    assert_eq!(parcel.bytes.len(), 10 * MOST_COURTESIES);
    outbox.written(&parcel);
    (0..50).for_each(|_| outbox.courtesy(line(1 << 19)));
    assert_eq!(std::iter::from_fn(|| take(&outbox)).count(), 2, "by bytes, too");
}

#[test]
fn closed_it_takes_nothing_and_holds_nobody_up() {
    let outbox = Outbox::new(1024);
    outbox.answer(line(1), 1);
    outbox.send(line(1000), || true).now_or_never().unwrap();
    outbox.close();
    assert!(outbox.send(line(1000), || true).now_or_never().is_some());
    outbox.answer(line(1), 1);
    outbox.courtesy(line(1));
    assert!(take(&outbox).is_none());
    assert_eq!(outbox.unwritten(), 0);
}
