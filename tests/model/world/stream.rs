//! What a stream must carry, and what it did carry.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::handler::{Act, End};
use super::wire::Event;

/// A request, and how far its answer has come.
#[derive(Debug)]
pub struct Call {
    pub act: Act,
    pub id: usize,
    /// The number of its session; `None` where it belongs to none.
    pub session: Option<usize>,
    /// Who asks, where it belongs to no session.
    pub person: usize,
    pub is_modern: bool,
    pub json_only: bool,
    /// Its client took it back, perhaps too late.
    pub cancelled: bool,
    /// The server was told to stop: it may have been cut.
    pub drained: bool,
    told: usize,
    asked: bool,
    taken_back: bool,
    pub answered: bool,
    /// The state of a question that ended its round.
    pub state: Option<Value>,
}

impl Call {
    pub fn new(act: Act, id: usize, session: Option<usize>) -> Self {
        Self {
            act,
            id,
            session,
            person: 0,
            is_modern: false,
            json_only: false,
            cancelled: false,
            drained: false,
            told: 0,
            asked: false,
            taken_back: false,
            answered: false,
            state: None,
        }
    }

    /// Whether whoever reads its stream must have read its answer, once all is quiet.
    pub fn is_owed(&self) -> bool {
        !self.answered && !self.cancelled && (self.drained || self.act.end != End::Hang)
    }

    fn tells(&self) -> usize {
        match self.act.end {
            _ if self.json_only => 0,
            End::LetGo => self.act.tell + 1,
            _ => self.act.tell,
        }
    }

    /// What was told comes in order, and nothing after the answer.
    pub fn note(&mut self, n: usize) {
        assert!(!self.answered && n == self.told && n < self.tells(), "note {n} of {self:?}");
        self.told += 1;
    }

    /// A question, on its own stream or on another: only on its own there is an order between it and all else.
    pub fn ask(&mut self, on_own: bool) {
        let is_due = self.act.end == End::Ask && !self.asked && !self.is_modern;
        let is_in_order = !on_own || self.told == self.tells() && !self.answered;
        assert!(is_due && is_in_order, "a question of {self:?}");
        self.asked = true;
    }

    pub fn take_back(&mut self) {
        assert!(self.asked && !self.taken_back, "nothing to take back: {self:?}");
        self.taken_back = true;
    }

    /// Its answer, the last of it.
    pub fn answer(&mut self, message: &Value) {
        assert!(!self.answered, "answered twice: {self:?}, {message}");
        self.answered = true;
        let (result, code) = (message.get("result"), message["error"]["code"].as_i64());
        if self.drained && code == Some(-32603) {
            return;
        }
        let is_right = match self.act.end {
            End::Result | End::LetGo => result.is_some_and(|result| result["tag"] == self.act.tag),
            End::Error => code == Some(-32000) && message["error"]["message"] == *format!("{}", self.act.tag),
            End::Panic => code == Some(-32603),
            End::Hang => false,
            End::Ask if self.is_modern => result.is_some_and(|result| {
                self.state = result.get("requestState").cloned();
                result["tag"] == self.act.tag || result["resultType"] == "input_required"
            }),
            // Or nobody answered in time.
            End::Ask => result.is_none_or(|result| result["tag"] == self.act.tag),
        };
        assert!(is_right, "{message} answers {self:?}");
        assert_eq!(self.told, self.tells(), "an answer before all was told: {self:?}");
    }
}

/// The stream of a POST's answer, whoever reads it.
#[derive(Debug, Default)]
pub struct Stream {
    pub session: Option<usize>,
    /// The tags of its calls.
    pub calls: Vec<usize>,
    /// The messages, as far as any reader has come.
    pub log: Vec<Value>,
    /// Behind how many messages an id stands.
    pub ids: HashMap<String, usize>,
    /// Nobody reads it any more.
    pub lost: bool,
}

impl Stream {
    /// Takes what a reader at `at` read next. Returns the message if nobody has read it before.
    pub fn read(&mut self, at: &mut usize, event: Event) -> Option<Value> {
        let is_message = event.message.is_some();
        let mut new = None;
        if let Some(message) = event.message {
            match self.log.get(*at) {
                Some(known) => assert_eq!(*known, message, "read before as another message"),
                None => {
                    self.log.push(message.clone());
                    new = Some(message);
                }
            }
            *at += 1;
        }
        if let Some(id) = event.id {
            let known = *self.ids.entry(id.clone()).or_insert(*at);
            assert_eq!(known, *at, "the id {id} stands elsewhere too (message: {is_message})");
        }
        new
    }
}

/// A published change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    Updated(usize),
}

pub const LISTS: [Change; 3] = [Change::Tools, Change::Prompts, Change::Resources];
pub const URIS: [&str; 3] = ["a:0", "a:1", "a:2"];

impl Change {
    /// The change that a message tells of.
    pub fn of(message: &Value) -> Option<Self> {
        Some(match message["method"].as_str()? {
            "notifications/tools/list_changed" => Self::Tools,
            "notifications/prompts/list_changed" => Self::Prompts,
            "notifications/resources/list_changed" => Self::Resources,
            "notifications/resources/updated" => {
                let uri = message["params"]["uri"].as_str().expect("a URI");
                Self::Updated(URIS.iter().position(|known| *known == uri).expect("a URI of ours"))
            }
            _ => return None,
        })
    }
}

/// The changes that somebody must hear of.
#[derive(Debug, Default)]
pub struct Due {
    pub wants: BTreeSet<Change>,
    pub due: BTreeSet<Change>,
}

impl Due {
    pub fn publish(&mut self, change: Change) {
        if self.wants.contains(&change) {
            self.due.insert(change);
        }
    }

    /// Each change is told once for as often as it must be, and none that nobody made.
    pub fn hear(&mut self, change: Change) {
        assert!(self.due.remove(&change), "{change:?} is not due: {self:?}");
    }
}
