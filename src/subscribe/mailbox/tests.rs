//! The mailbox against a model that is too simple to be wrong: for every change what must be told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

/// Counts how often a reader was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Random numbers that are the same on every run with the same seed.
pub(crate) struct Random(u64);

impl Random {
    /// `seed` is not zero.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % most
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A change by its name: a list, or the URI of a resource.
pub(crate) fn notice(name: &str) -> Notice {
    match name {
        "tools" => Notice::Tools,
        "prompts" => Notice::Prompts,
        "resources" => Notice::Resources,
        uri => Notice::Updated(Arc::new(Updated::new(uri))),
    }
}

pub(crate) fn name(notice: &Notice) -> String {
    match notice {
        Notice::Tools => "tools".to_owned(),
        Notice::Prompts => "prompts".to_owned(),
        Notice::Resources => "resources".to_owned(),
        Notice::Updated(updated) => updated.uri.to_string(),
        Notice::Message(_) => "a message".to_owned(),
    }
}

const LISTS: [&str; 3] = ["tools", "prompts", "resources"];
const URIS: [&str; 4] = ["a", "b", "", "file:///c"];
pub(crate) const NAMES: [&str; 7] = ["tools", "prompts", "resources", "a", "b", "", "file:///c"];

/// What a mailbox is, as one would tell it.
#[derive(Default)]
struct Model {
    wants: BTreeSet<&'static str>,
    subscribed: BTreeSet<&'static str>,
    /// What has changed since it was last told, and when it first did.
    due: BTreeMap<&'static str, u64>,
    clock: u64,
    open: Option<Turn>,
    ended: bool,
}

impl Model {
    fn publish(&mut self, name: &'static str) {
        self.clock += 1;
        let wanted = self.wants.contains(name) || self.subscribed.contains(name);
        if self.open.is_some() && wanted {
            self.due.entry(name).or_insert(self.clock);
        }
    }

    /// Lists come first and in their order, resources in the order in which they changed.
    fn next(&mut self) -> Option<&'static str> {
        let list = LISTS.into_iter().find(|list| self.due.contains_key(list));
        let resource = self.due.iter().min_by_key(|(_, when)| **when).map(|(name, _)| *name);
        let next = list.or(resource)?;
        self.due.remove(next);
        Some(next)
    }
}

/// A mailbox, its model, and the turns of all streams there ever were.
struct Trial {
    mailbox: Mailbox,
    model: Model,
    turns: Vec<Turn>,
    woken: Arc<Woken>,
    /// Whether the reader of the open stream has been told to wait, and not been woken since.
    waits: bool,
    wakes: usize,
}

impl Trial {
    fn new() -> Self {
        Self {
            mailbox: Mailbox::default(),
            model: Model::default(),
            turns: Vec::new(),
            woken: Arc::default(),
            waits: false,
            wakes: 0,
        }
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(20) {
            0 => self.open(random),
            1 => self.close(random),
            2 if random.one_in(20) => self.end(),
            2..=4 => self.subscribe(random),
            5 => {
                let uri = URIS[random.below(4)];
                self.mailbox.unsubscribe(uri);
                self.model.subscribed.remove(uri);
                self.model.due.remove(uri);
            }
            6..=13 => self.publish(NAMES[random.below(7)], random),
            _ => self.read(),
        }
        let is_open = self.model.open.is_some() && !self.model.ended;
        assert_eq!(self.mailbox.is_open(), is_open);
    }

    fn open(&mut self, random: &mut Random) {
        let wants = Wants { tools: random.one_in(2), prompts: random.one_in(2), resources: random.one_in(2) };
        let takes_over = random.one_in(2);
        let turn = if takes_over {
            let taken = self.mailbox.take_over(wants);
            taken.map(|(turn, superseded)| {
                superseded.into_iter().for_each(Waker::wake);
                turn
            })
        } else {
            self.mailbox.open(wants)
        };
        let may = !self.model.ended && (takes_over || self.model.open.is_none());
        assert_eq!(turn.is_some(), may);
        let Some(turn) = turn else {
            return;
        };
        assert!(!self.turns.contains(&turn), "a turn is nobody else's");
        self.turns.push(turn);
        self.model.open = Some(turn);
        let wanted = LISTS.into_iter().zip([wants.tools, wants.prompts, wants.resources]);
        self.model.wants = wanted.filter_map(|(list, wanted)| wanted.then_some(list)).collect();
        // The one that was superseded has to hear of it.
        self.wakes += usize::from(std::mem::take(&mut self.waits));
        self.check_wakes();
    }

    /// Any stream may go, also one that was superseded long ago.
    fn close(&mut self, random: &mut Random) {
        let Some(&turn) = self.turns.get(random.below(self.turns.len().max(1))) else {
            return;
        };
        self.mailbox.close(turn);
        if self.model.open == Some(turn) && !self.model.ended {
            self.model.open = None;
            self.model.due.clear();
            self.waits = false;
        }
    }

    fn end(&mut self) {
        self.mailbox.end();
        self.model.ended = true;
        self.wakes += usize::from(std::mem::take(&mut self.waits));
        self.check_wakes();
    }

    fn subscribe(&mut self, random: &mut Random) {
        let uri = URIS[random.below(4)];
        let expected = if self.model.subscribed.insert(uri) { Subscribed::New } else { Subscribed::Already };
        assert_eq!(self.mailbox.subscribe(uri), expected);
    }

    /// A change comes once for the open stream, and perhaps for streams that are not open any more.
    fn publish(&mut self, name: &'static str, random: &mut Random) {
        let superseded = self.turns.iter().copied().find(|turn| self.model.open != Some(*turn));
        if let Some(turn) = superseded.filter(|_| random.one_in(2)) {
            let delivered = self.mailbox.deliver(Addressee::Turn(turn), &notice(name));
            assert!(!matches!(delivered, Delivered::Noted(Some(_))), "{delivered:?}");
        }
        let Some(turn) = self.model.open else {
            return;
        };
        let before = self.model.due.len();
        let was_due = self.model.due.contains_key(name);
        if !self.model.ended {
            self.model.publish(name);
        }
        let delivered = self.mailbox.deliver(Addressee::Turn(turn), &notice(name));
        match delivered {
            Delivered::Merged => assert!(was_due && !self.model.ended, "two are made one only where one waits"),
            Delivered::Noted(_) => assert!(!was_due && !self.model.ended, "one that waits is not noted again"),
            // One that waits may not be wanted any more.
            Delivered::Unwanted => {}
        }
        let reader = match delivered {
            Delivered::Noted(reader) => reader,
            Delivered::Unwanted | Delivered::Merged => None,
        };
        let is_news = self.model.due.len() > before;
        assert_eq!(reader.is_some(), is_news && self.waits, "the reader is woken where there is news, and only then");
        self.waits &= reader.is_none();
        self.wakes += usize::from(reader.is_some());
        reader.into_iter().for_each(Waker::wake);
    }

    fn read(&mut self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        let cx = Context::from_waker(&waker);
        if let Some(&superseded) = self.turns.iter().rev().nth(1) {
            assert!(matches!(self.mailbox.poll_next(superseded, &cx), Poll::Ready(None)));
        }
        let Some(turn) = self.model.open else {
            return;
        };
        let told = self.mailbox.poll_next(turn, &cx).map(|notice| notice.as_ref().map(name));
        let expected = match self.model.next() {
            Some(next) => Poll::Ready(Some(next.to_owned())),
            None if self.model.ended => Poll::Ready(None),
            None => Poll::Pending,
        };
        assert_eq!(told, expected);
        self.waits |= told.is_pending();
        self.check_wakes();
    }

    fn check_wakes(&self) {
        assert_eq!(self.woken.0.load(Ordering::SeqCst), self.wakes);
    }
}

#[test]
fn agrees_with_the_model() {
    for seed in 1..=400 {
        let mut random = Random::seeded(seed);
        let mut trial = Trial::new();
        for step in 0..300 {
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| trial.step(&mut random)));
            run.unwrap_or_else(|panic| {
                eprintln!("seed {seed}, step {step}");
                std::panic::resume_unwind(panic);
            });
        }
    }
}

#[test]
fn what_is_kept_is_bounded() {
    for length in [0, 100, 5000] {
        let mailbox = Mailbox::default();
        let uris = |from: usize| (from..).map(move |n| format!("{n:0length$}"));
        let turn = mailbox.open(Wants { tools: true, prompts: true, resources: true }).unwrap();
        let kept: Vec<_> = uris(0).take_while(|uri| mailbox.subscribe(uri) == Subscribed::New).collect();
        let bytes: usize = kept.iter().map(|uri| uri.len() + OVERHEAD).sum();
        assert!(bytes <= MOST_BYTES && bytes + length.max(5) + OVERHEAD > MOST_BYTES, "{length}: {bytes}");
        for _ in 0..3 {
            uris(0).take(kept.len() + 10).for_each(|uri| drop(mailbox.deliver(Addressee::Turn(turn), &notice(&uri))));
        }
        let state = mailbox.state();
        assert_eq!(state.updated.len(), kept.len(), "{length}: one change for each");
        assert_eq!((state.bytes, state.resources.len()), (bytes, kept.len()));
        drop(state);
        // What is given back may be taken again, and is counted right however often.
        for _ in 0..3 {
            kept.iter().for_each(|uri| mailbox.unsubscribe(uri));
            kept.iter().for_each(|uri| mailbox.unsubscribe(uri));
            let state = mailbox.state();
            assert_eq!((state.bytes, state.resources.len(), state.updated.len()), (0, 0, 0));
            drop(state);
            assert!(kept.iter().all(|uri| mailbox.subscribe(uri) == Subscribed::New));
            assert!(kept.iter().all(|uri| mailbox.subscribe(uri) == Subscribed::Already));
            let longest = "x".repeat(MOST_BYTES);
            assert_eq!(mailbox.subscribe(&longest), Subscribed::TooMany);
        }
    }
}

#[test]
fn an_empty_uri_is_not_free() {
    let mailbox = Mailbox::default();
    assert_eq!(mailbox.subscribe(""), Subscribed::New);
    assert_eq!(mailbox.state().bytes, OVERHEAD);
}

/// A client that does not read its stream keeps neither many messages nor large ones; what takes a message back gets
/// in.
#[test]
fn messages_are_bounded_by_their_count_and_by_their_bytes() {
    for (length, most) in [(1, MOST_MESSAGES), (100 << 10, 11), (2 << 20, 1)] {
        let mailbox = Mailbox::default();
        let turn = mailbox.open(Wants::default()).unwrap();
        let event = Bytes::from(vec![b'x'; length]);
        let fill = || (0..1000).take_while(|_| mailbox.send(event.clone(), || true)).count();
        assert_eq!(fill(), most);
        mailbox.push(event.clone());
        let mut read = 0;
        while mailbox.poll_next(turn, &Context::from_waker(Waker::noop())).is_ready() {
            read += 1;
        }
        assert_eq!((read, fill()), (most + 1, most));
    }
}
