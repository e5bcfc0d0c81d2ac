//! Questions as clients of 2026-07-28 get them: the request is answered with `input_required`, and the client sends it
//! again with the answers (Multi Round-Trip Requests).
//!
//! The handler runs anew in every round. A question is known again by its digest and by its place among the questions
//! of the same digest, so that loops and joined branches find their own answers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::question::{AskError, InputResponse, Question};
use crate::sync::lock;

/// What travels from round to round, sealed, as the `requestState`.
///
/// Members that a node does not know are ignored. `once` is kept free for values that a handler will journal.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Carried {
    /// How many rounds there have been.
    pub(super) round: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<Asked>,
    /// The state of a handler that makes its rounds by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<String>,
}

impl Carried {
    /// What the first round leaves where nothing was asked.
    pub(super) fn first() -> Self {
        Self { round: 1, ..Self::default() }
    }

    pub(super) fn holds_anything(&self) -> bool {
        self.own.is_some() || !self.asked.is_empty()
    }
}

/// A question that has left.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asked {
    key: String,
    /// In hexadecimal: no JSON number holds so much.
    digest: String,
    /// Its place among the questions of this digest.
    nth: usize,
    /// When, in milliseconds since 1970.
    at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Answered>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Answered {
    at: u64,
    result: Box<RawValue>,
}

impl Answered {
    fn now(result: Box<RawValue>) -> Self {
        Self { at: now(), result }
    }
}

/// The questions of one run of a handler.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    round: u32,
    asked: Vec<Asked>,
    /// What the client sent without a state: answers by wire key.
    responses: BTreeMap<String, Box<RawValue>>,
    /// How many questions of each digest were asked in this run.
    places: HashMap<u128, usize>,
    /// The wire keys of this run.
    keys: HashSet<String>,
    /// The last number that made a key of a name: those before it stay taken, so that nobody has to try them again.
    numbers: HashMap<String, u64>,
    /// By slot, in the order in which they were first waited for.
    live: BTreeMap<u64, Live>,
    slots: u64,
    is_over: bool,
}

/// An unanswered question that somebody waits for.
#[derive(Debug)]
struct Live {
    asked: Asked,
    /// Whether it leaves for the first time.
    is_new: bool,
    question: Question,
    waker: Waker,
}

/// Where a question stands in its run: taken when it is asked, not when it is first polled, since `select!` polls in
/// any order.
#[derive(Debug)]
pub(super) struct Place {
    key: String,
    digest: u128,
    nth: usize,
    slot: Option<u64>,
}

/// A round that is over: these questions go to the client.
#[derive(Debug)]
pub(crate) struct Round {
    pub(super) questions: Vec<(String, Question)>,
    pub(super) carried: Carried,
}

impl Rounds {
    /// A run without a state: the first, or one whose client does not keep states.
    pub(super) fn first(responses: Option<&[u8]>) -> Self {
        Self(Mutex::new(State { responses: by_key(responses), ..State::default() }))
    }

    /// A run that goes on from what was carried and what the client answered. Of the answers, those count that were
    /// asked for. They are kept even where this run does not come to their question before it ends: nobody is asked
    /// twice.
    #[cfg(feature = "state")]
    pub(super) fn resume(carried: Carried, responses: Option<&[u8]>) -> Self {
        let Carried { round, mut asked, .. } = carried;
        let mut responses = by_key(responses);
        for asked in asked.iter_mut().filter(|asked| asked.answer.is_none()) {
            asked.answer = responses.remove(&asked.key).map(Answered::now);
        }
        Self(Mutex::new(State { round, asked, ..State::default() }))
    }

    pub(super) fn place(&self, name: &str, question: &Question) -> Place {
        let digest = question.digest(name);
        let mut state = self.state();
        let count = state.places.entry(digest).or_default();
        let nth = *count;
        *count += 1;
        let key = match state.asked(digest, nth) {
            Some(asked) => asked.key.clone(),
            None => state.free_key(name),
        };
        state.keys.insert(key.clone());
        Place { key, digest, nth, slot: None }
    }

    /// The answer to a question; pending where there is none yet. `Err` once the run is over.
    pub(super) fn poll(
        &self,
        place: &mut Place,
        question: &Question,
        cx: &Context<'_>,
    ) -> Poll<Result<InputResponse, AskError>> {
        let mut state = self.state();
        if state.is_over {
            return Poll::Ready(Err(AskError::Unreachable));
        }
        if let Some(slot) = place.slot {
            if let Some(live) = state.live.get_mut(&slot) {
                live.waker.clone_from(cx.waker());
            }
            return Poll::Pending;
        }
        let (asked, is_new) = state.look_up(place, question);
        if let Some(settled) = settle(&asked, is_new, question) {
            return Poll::Ready(settled);
        }
        state.slots += 1;
        let slot = state.slots;
        place.slot = Some(slot);
        let live = Live { asked, is_new, question: question.clone(), waker: cx.waker().clone() };
        state.live.insert(slot, live);
        Poll::Pending
    }

    /// Nobody waits for this question any more.
    pub(super) fn withdraw(&self, place: &Place) {
        if let Some(slot) = place.slot {
            let withdrawn = self.state().live.remove(&slot);
            // A waker may run anything when it is dropped.
            drop(withdrawn);
        }
    }

    /// Ends the run if it waits for its client.
    pub(super) fn end_round(&self) -> Option<Round> {
        let mut state = self.state();
        if state.is_over || state.live.is_empty() {
            return None;
        }
        state.is_over = true;
        let mut asked = std::mem::take(&mut state.asked);
        asked.extend(state.live.values().filter(|live| live.is_new).map(|live| live.asked.clone()));
        let questions = state.live.values().map(|live| (live.asked.key.clone(), live.question.clone())).collect();
        Some(Round { questions, carried: Carried { round: state.round + 1, asked, own: None } })
    }

    /// What a round by hand carries on, beside the handler's own state.
    pub(super) fn carry(&self) -> Carried {
        let state = self.state();
        Carried { round: state.round + 1, asked: state.asked.clone(), own: None }
    }

    /// The run is over: questions that are held elsewhere fail.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let live = std::mem::take(&mut state.live);
        drop(state);
        live.into_values().for_each(|live| live.waker.wake());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl State {
    fn asked(&self, digest: u128, nth: usize) -> Option<&Asked> {
        let digest = hex(digest);
        self.asked.iter().find(|asked| asked.nth == nth && asked.digest == digest)
    }

    /// The name, or the first of `name#2`, `name#3` … that no other question has.
    fn free_key(&mut self, name: &str) -> String {
        let is_free = |key: &str| !self.keys.contains(key) && !self.asked.iter().any(|asked| asked.key == key);
        if is_free(name) {
            return name.to_owned();
        }
        let last = self.numbers.get(name).copied().unwrap_or(1);
        let numbered = (last + 1..).map(|number| (number, format!("{name}#{number}")));
        let (number, key) = { numbered }.find(|(_, key)| is_free(key)).unwrap_or_default();
        self.numbers.insert(name.to_owned(), number);
        key
    }

    /// What is known of a question, and whether that is nothing. An answer of the wrong shape is none.
    fn look_up(&mut self, place: &Place, question: &Question) -> (Asked, bool) {
        let fits = |answer: &Answered| question.kind().is_answered_by(answer.result.get());
        let digest = hex(place.digest);
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.nth == place.nth && asked.digest == digest) {
            asked.answer = asked.answer.take().filter(fits);
            return (asked.clone(), false);
        }
        let answer = self.responses.remove(&place.key).map(Answered::now).filter(fits);
        let asked = Asked { key: place.key.clone(), digest, nth: place.nth, at: now(), answer };
        if asked.answer.is_some() {
            self.asked.push(asked.clone());
        }
        (asked, true)
    }
}

/// What comes of a question that is answered, or late.
fn settle(asked: &Asked, is_new: bool, question: &Question) -> Option<Result<InputResponse, AskError>> {
    let until = question.own_timeout().map_or(u64::MAX, |time| asked.at.saturating_add(millis(time)));
    match &asked.answer {
        Some(answer) if answer.at >= until => Some(Err(AskError::TimedOut)),
        Some(answer) => Some(Ok(InputResponse::new(answer.result.clone()))),
        None if !is_new && now() >= until => Some(Err(AskError::TimedOut)),
        None => None,
    }
}

/// The answers by key. What is no object holds none: all are asked for again.
fn by_key(responses: Option<&[u8]>) -> BTreeMap<String, Box<RawValue>> {
    let read = responses.and_then(|json| serde_json::from_slice(json).ok());
    read.map(|Responses(responses)| responses).unwrap_or_default()
}

/// Answers that are taken from one request. A state has room for fewer questions, and a client that sends more would
/// have each kept in many times its bytes.
const MOST_RESPONSES: usize = 1024;

/// The first [`MOST_RESPONSES`] answers of an object.
struct Responses(BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Responses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByKey;
        impl<'de> Visitor<'de> for ByKey {
            type Value = Responses;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Responses, A::Error> {
                let mut responses = BTreeMap::new();
                while responses.len() < MOST_RESPONSES {
                    let Some((key, response)) = members.next_entry()? else {
                        return Ok(Responses(responses));
                    };
                    responses.insert(key, response);
                }
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Responses(responses))
            }
        }
        deserializer.deserialize_map(ByKey)
    }
}

fn hex(digest: u128) -> String {
    format!("{digest:032x}")
}

fn now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
