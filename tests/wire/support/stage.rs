//! A handler whose requests enter, wait and leave as the test tells them to.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use mcp_transport::{CancelCause, McpError, Reply, Request, RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::handler::Script;

/// What the requests of one handler are doing, each under the `name` of its params.
///
/// `x/echo` answers with its params at once. `x/hold` waits to be released. `x/meet` waits until as many as its `of` says
/// are in at once. `x/fail` answers with an error, `x/panic` panics. Each first sends as many notifications as its
/// `tell` says.
#[derive(Clone, Default)]
pub struct Stage(Arc<Inner>);

#[derive(Default)]
struct Inner {
    acts: Mutex<Acts>,
    moved: Notify,
}

#[derive(Default)]
struct Acts {
    by_name: BTreeMap<String, Act>,
    released: BTreeSet<String>,
    meeting: usize,
    /// How many requests have come to the handler.
    runs: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Entered,
    Answered,
    /// Its future was dropped, and what its context said was the cause.
    Dropped(Option<CancelCause>),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    name: String,
    of: usize,
    tell: usize,
}

impl Stage {
    /// The handler.
    pub fn script(&self) -> Script {
        let stage = self.clone();
        Script::new(move |request, cx| stage.clone().act(request, cx))
    }

    /// Waits until the request of this name has come to the handler.
    pub async fn entered(&self, name: &str) {
        self.until(|acts| acts.by_name.contains_key(name).then_some(())).await;
    }

    /// Lets the request of this name go on.
    pub fn release(&self, name: &str) {
        self.acts().released.insert(name.to_owned());
        self.0.moved.notify_waiters();
    }

    /// Waits until the request of this name was answered.
    pub async fn answered(&self, name: &str) {
        self.until(|acts| (acts.by_name.get(name) == Some(&Act::Answered)).then_some(())).await;
    }

    /// Waits until the future of the request of this name was dropped, and returns what its context said of the cause.
    pub async fn dropped(&self, name: &str) -> Option<CancelCause> {
        let dropped = |acts: &Acts| match acts.by_name.get(name) {
            Some(Act::Dropped(cause)) => Some(*cause),
            _ => None,
        };
        self.until(dropped).await
    }

    /// Whether the request of this name is with the handler.
    pub fn is_in(&self, name: &str) -> bool {
        self.acts().by_name.get(name) == Some(&Act::Entered)
    }

    /// How many requests have come to the handler since the last time.
    pub fn take_runs(&self) -> usize {
        std::mem::take(&mut self.acts().runs)
    }

    async fn act(self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let Params { name, of, tell } = request.params().unwrap_or_default();
        self.acts().runs += 1;
        let mut presence = Presence::enter(&self, &name, &cx);
        for n in 0..tell {
            cx.notify("notifications/x", json!({"name": name, "n": n})).await?;
        }
        let answer = match request.method() {
            "x/echo" => Reply::of(request.params::<Value>().unwrap_or_default()),
            "x/hold" => {
                self.until(|acts| acts.released.contains(&name).then_some(())).await;
                Reply::of(json!({"name": name}))
            }
            "x/meet" => {
                self.acts().meeting += 1;
                self.0.moved.notify_waiters();
                self.until(|acts| (acts.meeting >= of).then_some(())).await;
                Reply::of(json!({"name": name}))
            }
            "x/fail" => Err(McpError::new(-7, "as asked")),
            "x/panic" => std::panic::resume_unwind(Box::new("as asked")),
            _ => Err(McpError::method_not_found()),
        };
        presence.end = Act::Answered;
        answer
    }

    async fn until<T>(&self, look: impl Fn(&Acts) -> Option<T>) -> T {
        loop {
            let mut moved = pin!(self.0.moved.notified());
            moved.as_mut().enable();
            if let Some(seen) = look(&self.acts()) {
                return seen;
            }
            moved.await;
        }
    }

    fn acts(&self) -> MutexGuard<'_, Acts> {
        self.0.acts.lock().expect("nobody panicked")
    }

    fn note(&self, name: &str, act: Act) {
        self.acts().by_name.insert(name.to_owned(), act);
        self.0.moved.notify_waiters();
    }
}

/// One request with the handler, until it is answered or dropped.
struct Presence {
    stage: Stage,
    name: String,
    cx: RequestContext,
    end: Act,
}

impl Presence {
    fn enter(stage: &Stage, name: &str, cx: &RequestContext) -> Self {
        stage.note(name, Act::Entered);
        Self { stage: stage.clone(), name: name.to_owned(), cx: cx.clone(), end: Act::Dropped(None) }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let end = match self.end {
            Act::Dropped(_) => Act::Dropped(self.cx.cancel_cause()),
            end => end,
        };
        self.stage.note(&self.name, end);
    }
}
