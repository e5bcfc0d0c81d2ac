use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use futures::FutureExt;

use super::*;
use crate::limits::Limits;
use crate::observer::Ear;
use crate::protocol::sse::Frame;
use crate::store::Store;

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(queue: &Queue) -> Poll<Option<Bytes>> {
    queue.poll_next(Turn::FIRST, &Context::from_waker(Waker::noop()))
}

fn send(queue: &Queue, message: impl Into<Bytes>) -> bool {
    queue.send(message.into(), || true).now_or_never().is_some()
}

const ANSWER: &str = "event: message\ndata: \"answer\"\n\n";

fn answer() -> AnswerFrame {
    AnswerFrame { status: StatusCode::OK, frame: Frame::message(&"answer").unwrap() }
}

fn message(text: &'static str) -> Poll<Option<Bytes>> {
    Poll::Ready(Some(Bytes::from_static(text.as_bytes())))
}

#[test]
fn messages_leave_in_the_order_they_came() {
    let queue = Queue::new(1024);
    assert!(poll(&queue).is_pending());
    assert!(send(&queue, "a") && send(&queue, "b"));
    queue.finish(answer());
    assert_eq!([poll(&queue), poll(&queue), poll(&queue)], [message("a"), message("b"), message(ANSWER)]);
    assert!(queue.is_drained(Turn::FIRST));
    assert_eq!(poll(&queue), Poll::Ready(None));
}

#[test]
fn it_holds_256_messages_or_all_its_bytes() {
    let queue = Queue::new(2560);
    assert!((0..256).all(|_| send(&queue, "tiny")));
    assert!(!send(&queue, ""), "no room for the smallest");
    assert_eq!(poll(&queue), message("tiny"));
    assert!(send(&queue, "0123456789") && !send(&queue, ""), "room for one of as much");

    let queue = Queue::new(2560);
    assert!(send(&queue, vec![0; 2000]) && !send(&queue, vec![0; 561]) && send(&queue, vec![0; 560]));
    let queue = Queue::new(2560);
    assert!(send(&queue, vec![0; 1 << 20]), "one that never fits needs all the room");
    assert!(!send(&queue, ""));
    assert!(poll(&queue).is_ready());
    assert!((0..256).all(|_| send(&queue, "")), "and gives no more back than it took");
    assert!(!send(&queue, ""));
}

#[test]
fn whoever_waits_is_served_in_turn() {
    let queue = Queue::new(256);
    assert!(send(&queue, vec![b'x'; 256]));
    let mut cx = Context::from_waker(Waker::noop());
    let mut first = pin!(queue.send("first".into(), || true));
    let mut second = pin!(queue.send("second".into(), || true));
    assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
    assert!(poll(&queue).is_ready());
    assert!(second.as_mut().poll(&mut cx).is_ready() && first.as_mut().poll(&mut cx).is_ready());
    drop(poll(&queue));
    drop(poll(&queue));
    // One that gives up while it waits leaves its turn to the next.
    assert!(send(&queue, vec![b'x'; 256]));
    let mut gives_up = Box::pin(queue.send(vec![0; 256].into(), || true));
    assert!(gives_up.as_mut().poll(&mut cx).is_pending());
    let mut waits: Pin<_> = Box::pin(queue.send("waits".into(), || true));
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    drop(gives_up);
    assert!(poll(&queue).is_ready());
    assert!(waits.as_mut().poll(&mut cx).is_ready());
    assert_eq!(poll(&queue), message("waits"));
}

#[test]
fn what_is_not_wanted_takes_no_room() {
    let queue = Queue::new(256);
    assert!((0..1000).all(|_| queue.send("no".into(), || false).now_or_never().is_some()));
    assert!((0..256).all(|_| send(&queue, "")));
}

#[test]
fn every_end_lets_the_waiting_go() {
    let ends: [fn(&Queue); 3] = [|queue| queue.finish(answer()), Queue::end, Queue::abandon];
    for end in ends {
        let queue = Queue::new(256);
        assert!(send(&queue, vec![0; 256]));
        let mut waits = pin!(queue.send("late".into(), || true));
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        end(&queue);
        assert!(waits.now_or_never().is_some());
        assert!(send(&queue, "late"), "dropped at once");
        let mut left = Vec::new();
        while let Poll::Ready(Some(message)) = poll(&queue) {
            left.push(message);
        }
        assert!(!left.contains(&Bytes::from_static(b"late")));
        assert!(queue.is_drained(Turn::FIRST));
    }
}

#[test]
fn what_was_abandoned_is_gone() {
    let queue = Queue::new(256);
    assert!(send(&queue, "a"));
    queue.abandon();
    queue.finish(answer());
    assert_eq!(poll(&queue), Poll::Ready(None));
}

#[test]
fn a_message_before_the_answers_makes_a_stream() {
    let outlook = |queue: &Queue| queue.poll_outlook(&Context::from_waker(Waker::noop()));
    let queue = Queue::new(256);
    assert_eq!(outlook(&queue), Poll::Pending);
    queue.answer(answer());
    assert_eq!(outlook(&queue), Poll::Pending, "another call of the batch may still send");
    queue.end();
    assert_eq!(outlook(&queue), Poll::Ready(Outlook::Answers));
    assert!(!queue.is_drained(Turn::FIRST));
    assert!(queue.take_answers().pop().is_some());
    assert!(queue.is_drained(Turn::FIRST));
    assert!((0..1000).all(|_| send(&queue, "late")), "nobody waits for a reader that never comes");

    let queue = Queue::new(256);
    assert!(send(&queue, "a"));
    queue.finish(answer());
    assert_eq!(outlook(&queue), Poll::Ready(Outlook::Messages));
}

#[test]
fn the_last_reader_to_look_is_woken() {
    let ways: [fn(&Queue); 4] =
        [|queue| assert!(send(queue, "a")), |queue| queue.finish(answer()), Queue::end, Queue::abandon];
    for wakes in ways {
        let queue = Queue::new(256);
        let (first, last) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        for reader in [&first, &last] {
            let waker = Waker::from(Arc::clone(reader));
            let cx = Context::from_waker(&waker);
            assert!(queue.poll_outlook(&cx).is_pending());
            assert!(queue.poll_next(Turn::FIRST, &cx).is_pending());
        }
        wakes(&queue);
        let woken = |woken: &Woken| woken.0.load(Ordering::SeqCst);
        assert_eq!((woken(&first), woken(&last)), (0, 1));
    }
}

/// Sends when it is woken: no sooner could anybody react to the answer.
struct Reacts(Arc<Queue>);

impl Wake for Reacts {
    fn wake(self: Arc<Self>) {
        send(&self.0, "late");
    }
}

#[test]
fn nothing_slips_in_behind_the_answer() {
    let queue = Arc::new(Queue::new(1024));
    let waker = Waker::from(Arc::new(Reacts(Arc::clone(&queue))));
    assert!(queue.poll_next(Turn::FIRST, &Context::from_waker(&waker)).is_pending());
    queue.finish(answer());
    assert_eq!([poll(&queue), poll(&queue)], [message(ANSWER), Poll::Ready(None)]);
}

#[test]
fn what_is_pushed_waits_for_no_room_and_takes_none() {
    let queue = Queue::new(256);
    assert!(send(&queue, [b'a'; 256].to_vec()));
    queue.push(&Bytes::from_static(b"b"));
    assert!(!send(&queue, "c"));
    assert_eq!(poll(&queue), Poll::Ready(Some(Bytes::from(vec![b'a'; 256]))));
    assert_eq!(poll(&queue), message("b"));
    // All the room is free again, and no more than there was.
    assert!(send(&queue, [b'd'; 256].to_vec()));
    assert!(!send(&queue, "e"));
    queue.end();
    queue.push(&Bytes::from_static(b"f"));
    assert_eq!((poll(&queue), poll(&queue)), (Poll::Ready(Some(Bytes::from(vec![b'd'; 256]))), Poll::Ready(None)));
}

/// A queue that is recorded, and its log.
fn recorded(capacity: u32, opening: Opening) -> (Arc<Queue>, Arc<Log>) {
    let log = Log::new(&Store::new(&Limits::default(), Ear::default()));
    let queue = Arc::new(Queue::new(capacity));
    queue.record(&log, opening);
    (queue, log)
}

fn read(queue: &Queue, turn: Turn) -> Poll<Option<String>> {
    let event = queue.poll_next(turn, &Context::from_waker(Waker::noop()));
    event.map(|event| {
        let event = event?;
        let text = std::str::from_utf8(&event).unwrap();
        Some(text.split_once('\n').unwrap().1.to_owned())
    })
}

fn event(text: &str) -> Poll<Option<String>> {
    Poll::Ready(Some(text.to_owned()))
}

const OVER: Poll<Option<String>> = Poll::Ready(None);

#[test]
fn what_was_queued_before_it_is_recorded_keeps_its_order() {
    let log = Log::new(&Store::new(&Limits::default(), Ear::default()));
    let queue = Arc::new(Queue::new(1024));
    assert!(send(&queue, "a"));
    queue.answer(answer());
    assert!(send(&queue, "b"));
    queue.record(&log, Opening::Marked);
    assert!(send(&queue, "c"));
    queue.finish(answer());
    let expected = ["data: \n\n", "a", ANSWER, "b", "c", ANSWER];
    for expected in expected {
        assert_eq!(read(&queue, Turn::FIRST), event(expected));
    }
    assert_eq!(read(&queue, Turn::FIRST), OVER);
    let turn = queue.resume(1).unwrap().unwrap();
    for expected in &expected[1..] {
        assert_eq!(read(&queue, turn), event(expected));
    }
    assert_eq!((read(&queue, turn), queue.resume(6)), (OVER, Ok(None)));
    assert_eq!(queue.resume(7), Err(Unresumable::Unknown));
}

#[test]
fn without_a_reader_nobody_waits_and_with_one_everybody_does() {
    let (queue, _log) = recorded(256, Opening::Plain);
    assert!(send(&queue, vec![b'x'; 256]) && !send(&queue, "a"));
    let mut cx = Context::from_waker(Waker::noop());
    let mut waiting = pin!(queue.send("b".into(), || true));
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    queue.leave(Turn::FIRST);
    assert!(waiting.as_mut().poll(&mut cx).is_ready());
    assert!((0..300).all(|_| send(&queue, vec![b'x'; 256])));
    let turn = queue.resume(300).unwrap().unwrap();
    // Two are to be replayed; there is room for what a queue holds beside them, and for no more.
    assert!(send(&queue, vec![b'y'; 256]) && !send(&queue, "c"));
    for _ in 0..2 {
        assert!(read(&queue, turn).is_ready());
        assert!(!send(&queue, "c"), "what is replayed gives no room back");
    }
    assert!(read(&queue, turn).is_ready() && send(&queue, vec![b'z'; 256]) && !send(&queue, "c"));
    // Whoever takes over gives the room back that the one before had not.
    let next = queue.resume(303).unwrap().unwrap();
    assert!(send(&queue, vec![b'z'; 256]) && !send(&queue, "c"));
    assert!(read(&queue, next).is_ready() && read(&queue, next).is_ready() && read(&queue, next).is_pending());
}

#[test]
fn a_reader_whose_turn_is_over_reads_ends_and_closes_nothing() {
    let (queue, _log) = recorded(256, Opening::Plain);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    assert!(queue.poll_next(Turn::FIRST, &Context::from_waker(&waker)).is_pending());
    let turn = queue.resume(0).unwrap().unwrap();
    assert_eq!((woken.0.load(Ordering::SeqCst), read(&queue, Turn::FIRST)), (1, OVER));
    assert!(queue.is_drained(Turn::FIRST) && !queue.is_drained(turn));
    queue.leave(Turn::FIRST);
    assert!(send(&queue, vec![b'x'; 256]) && !send(&queue, "a"), "somebody is there");
    assert!(read(&queue, turn).is_ready());
}

#[test]
fn a_reader_that_is_let_go_reads_what_is_queued_and_when_to_come_back() {
    let (queue, _log) = recorded(1024, Opening::Plain);
    assert!(send(&queue, "a"));
    assert!(queue.let_go(Duration::from_millis(7)) && !queue.let_go(Duration::ZERO));
    assert!((0..1000).all(|_| send(&queue, "b")), "nobody waits for one that goes");
    assert_eq!((read(&queue, Turn::FIRST), queue.is_drained(Turn::FIRST)), (event("a"), false));
    assert_eq!(read(&queue, Turn::FIRST), event("retry: 7\ndata: \n\n"));
    assert_eq!((queue.is_drained(Turn::FIRST), read(&queue, Turn::FIRST)), (true, OVER));
    queue.leave(Turn::FIRST);
    assert!(!queue.let_go(Duration::ZERO), "nobody is there");
    let turn = queue.resume(1000).unwrap().unwrap();
    assert_eq!((read(&queue, turn), read(&queue, turn), read(&queue, turn)), (event("b"), event("b"), Poll::Pending));
    assert!(queue.let_go(Duration::ZERO));
    queue.finish(answer());
    assert!(!queue.let_go(Duration::ZERO));
}

#[test]
fn one_without_an_answer_ends_again_and_again() {
    let (queue, log) = recorded(1024, Opening::Marked);
    queue.end();
    assert_eq!((read(&queue, Turn::FIRST), read(&queue, Turn::FIRST)), (event("data: \n\n"), OVER));
    queue.leave(Turn::FIRST);
    for _ in 0..2 {
        let turn = queue.resume(1).unwrap().unwrap();
        assert_eq!(read(&queue, turn), OVER);
    }
    log.close();
    assert_eq!(queue.resume(1), Err(Unresumable::Gone));
}

#[test]
fn what_is_no_stream_yet_becomes_one_to_let_its_client_go() {
    let log = Log::new(&Store::new(&Limits::default(), Ear::default()));
    let queue = Arc::new(Queue::new(1024));
    let cx = Context::from_waker(Waker::noop());
    assert!(queue.poll_outlook(&cx).is_pending());
    assert!(queue.let_go(Duration::from_secs(1)));
    assert_eq!(queue.poll_outlook(&cx), Poll::Ready(Outlook::Messages));
    queue.record(&log, Opening::Marked);
    assert_eq!(read(&queue, Turn::FIRST), event("data: \n\n"));
    assert_eq!((read(&queue, Turn::FIRST), read(&queue, Turn::FIRST)), (event("retry: 1000\ndata: \n\n"), OVER));
    // Unless it is answered before anybody looks.
    let queue = Queue::new(1024);
    assert!(queue.let_go(Duration::ZERO));
    queue.finish(answer());
    assert_eq!(queue.poll_outlook(&cx), Poll::Ready(Outlook::Answers));
    let queue = Queue::new(1024);
    queue.abandon();
    assert!(!queue.let_go(Duration::ZERO));
}
