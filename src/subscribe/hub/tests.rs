//! The hub against a model: which streams are open, and what each has yet to be told.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Barrier, Mutex};
use std::thread;

use super::*;
use crate::subscribe::mailbox::tests::{NAMES, Random, name};
use crate::subscribe::mailbox::{Subscribed, Wants};
use crate::sync::lock;

const EVERY_LIST: Wants = Wants { tools: true, prompts: true, resources: true };

fn change(name: &str) -> Change<'_> {
    match name {
        "tools" => Change::Tools,
        "prompts" => Change::Prompts,
        "resources" => Change::Resources,
        uri => Change::Resource(uri),
    }
}

/// Everything that can be read at once.
fn read(place: &Place) -> (BTreeSet<String>, bool) {
    let cx = Context::from_waker(Waker::noop());
    let mut told = BTreeSet::new();
    loop {
        match place.poll_next(&cx) {
            Poll::Ready(Some(notice)) => assert!(told.insert(name(&notice)), "told twice: {notice:?}"),
            Poll::Ready(None) => return (told, true),
            Poll::Pending => return (told, false),
        }
    }
}

/// An open stream, and what it has yet to be told.
struct Open {
    place: Place,
    wants: BTreeSet<&'static str>,
    due: BTreeSet<String>,
}

#[test]
fn agrees_with_the_model() {
    for seed in 1..=150 {
        let mut random = Random::seeded(seed);
        let hub = Arc::new(Hub::default());
        let mut open: Vec<Open> = Vec::new();
        for _ in 0..300 {
            match random.below(10) {
                0..=2 if open.len() < 6 => {
                    let mailbox = Arc::new(Mailbox::default());
                    let uris = ["a", "b"].into_iter().filter(|_| random.one_in(2));
                    let mut wants: BTreeSet<_> = uris.collect();
                    wants.iter().for_each(|uri| assert_eq!(mailbox.subscribe(uri), Subscribed::New));
                    let turn = mailbox.open(Wants { tools: true, ..Wants::default() }).unwrap();
                    wants.insert("tools");
                    open.push(Open { place: hub.add(&mailbox, turn), wants, due: BTreeSet::new() });
                }
                3 if !open.is_empty() => {
                    open.swap_remove(random.below(open.len()));
                }
                4..=7 => {
                    let name = NAMES[random.below(7)];
                    hub.changed(change(name));
                    open.iter_mut().filter(|stream| stream.wants.contains(name)).for_each(|stream| {
                        stream.due.insert(name.to_owned());
                    });
                }
                _ if !open.is_empty() => {
                    let index = random.below(open.len());
                    let due = std::mem::take(&mut open[index].due);
                    assert_eq!(read(&open[index].place), (due, false), "seed {seed}");
                }
                _ => {}
            }
        }
        hub.end_all();
        for stream in open {
            assert_eq!(read(&stream.place), (stream.due, true), "what is due is told before the end");
        }
        is_empty(&hub);
    }
}

fn is_empty(hub: &Hub) {
    assert_eq!(hub.len(), 0);
}

#[test]
fn a_superseded_stream_does_not_hear_for_its_successor() {
    let hub = Arc::new(Hub::default());
    let mailbox = Arc::new(Mailbox::default());
    let old = hub.add(&mailbox, mailbox.open(EVERY_LIST).unwrap());
    let new = hub.add(&mailbox, mailbox.take_over(EVERY_LIST).unwrap().0);
    let cx = Context::from_waker(Waker::noop());
    // Delivered for both places in turn, with a read in between: as good as two threads could do it.
    let streams: Vec<_> = [&old, &new].map(|place| (Arc::clone(&place.mailbox), place.turn)).into();
    let mut told = 0;
    for (mailbox, turn) in streams {
        drop(mailbox.deliver(Addressee::Turn(turn), &Notice::Tools));
        told += usize::from(matches!(new.poll_next(&cx), Poll::Ready(Some(Notice::Tools))));
    }
    assert_eq!(told, 1);
    drop(old);
    assert!(mailbox.is_open(), "the old one closes nothing");
    drop(new);
    assert!(!mailbox.is_open());
    is_empty(&hub);
}

#[test]
fn whoever_comes_after_the_end_is_ended() {
    let hub = Arc::new(Hub::default());
    hub.end_all();
    let mailbox = Arc::new(Mailbox::default());
    let place = hub.add(&mailbox, mailbox.open(EVERY_LIST).unwrap());
    hub.changed(Change::Tools);
    assert_eq!(read(&place), (BTreeSet::new(), true));
}

/// A waker may do anything, such as drop the very stream that it is to wake.
#[test]
fn wakers_run_under_no_lock() {
    struct Dropping(Mutex<Option<Place>>, Arc<Hub>);

    impl std::task::Wake for Dropping {
        fn wake(self: Arc<Self>) {
            drop(lock(&self.0).take());
            self.1.changed(Change::Prompts);
        }
    }

    for ends in [false, true] {
        let hub = Arc::new(Hub::default());
        let mut wakers = Vec::new();
        for _ in 0..40 {
            let mailbox = Arc::new(Mailbox::default());
            let place = hub.add(&mailbox, mailbox.open(EVERY_LIST).unwrap());
            let waker = Arc::new(Dropping(Mutex::default(), Arc::clone(&hub)));
            let as_waker = Waker::from(Arc::clone(&waker));
            assert!(place.poll_next(&Context::from_waker(&as_waker)).is_pending());
            *lock(&waker.0) = Some(place);
            wakers.push(waker);
        }
        match ends {
            true => hub.end_all(),
            false => hub.changed(Change::Tools),
        }
        is_empty(&hub);
    }
}

/// Publishers, readers, and streams that come and go, all at once: whatever was published last for a stream, while it
/// was open, is told.
#[test]
fn nothing_is_lost_between_threads() {
    let hub = Arc::new(Hub::default());
    let start = Arc::new(Barrier::new(4));
    let publishers = [0, 1].map(|number| {
        let (hub, start) = (Arc::clone(&hub), Arc::clone(&start));
        thread::spawn(move || {
            let uri = format!("r{number}");
            start.wait();
            for _ in 0..3000 {
                hub.changed(Change::Resource(&uri));
                hub.changed(Change::Tools);
            }
        })
    });
    let readers = [0, 1].map(|_| {
        let (hub, start) = (Arc::clone(&hub), Arc::clone(&start));
        thread::spawn(move || {
            let mut counts: HashMap<String, usize> = HashMap::new();
            start.wait();
            for _ in 0..1000 {
                let mailbox = Arc::new(Mailbox::default());
                let _ = (mailbox.subscribe("r0"), mailbox.subscribe("r1"), mailbox.subscribe("mine"));
                let turn = mailbox.open(Wants { tools: true, ..Wants::default() }).unwrap();
                let place = hub.add(&mailbox, turn);
                hub.changed(Change::Resource("mine"));
                let (told, ended) = read_some(&place);
                assert!(told.contains("mine") && !ended, "{told:?}");
                told.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
            }
            counts
        })
    });
    publishers.into_iter().for_each(|thread| thread.join().unwrap());
    for reader in readers {
        assert_eq!(reader.join().unwrap()["mine"], 1000);
    }
    is_empty(&hub);
}

/// As [`read`], while others publish: some of it may come again.
fn read_some(place: &Place) -> (BTreeSet<String>, bool) {
    let cx = Context::from_waker(Waker::noop());
    let mut told = BTreeSet::new();
    for _ in 0..20 {
        match place.poll_next(&cx) {
            Poll::Ready(Some(notice)) => {
                told.insert(name(&notice));
                if told.contains("mine") {
                    break;
                }
            }
            Poll::Ready(None) => return (told, true),
            Poll::Pending => break,
        }
    }
    (told, false)
}
