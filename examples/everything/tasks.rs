//! The extension `io.modelcontextprotocol/tasks`: work that goes on after its call was answered. The client asks how it
//! stands (`tasks/get`), answers its questions (`tasks/update`) and may end it (`tasks/cancel`).
//!
//! The transport knows nothing of it but the header that repeats the task's id. All else is here.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_transport::{McpError, Principal, Reply, Request, RequestContext};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long a task is kept after it was made, whatever has become of it.
const TTL: Duration = Duration::from_secs(300);

/// How many tasks are kept at a time. Without a bound, a client could fill the memory within their time to live.
const MAX_TASKS: usize = 1000;

/// The error where there are as many.
const TOO_MANY_TASKS: i32 = 1;

/// How often a client should ask.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Whether the client of this request can follow a task.
pub fn are_supported(cx: &RequestContext) -> bool {
    cx.client_capabilities().declares(&["extensions", EXTENSION])
}

/// The error for clients that cannot. It is what 2026-07-28 wants to read, also where it calls `tasks/*`; the extension is
/// of that revision, and the older ones, which have no such error, read an internal one.
pub fn require(cx: &RequestContext) -> Result<(), McpError> {
    match are_supported(cx) {
        true => Ok(()),
        false => Err(McpError::missing_capabilities(json!({ "extensions": { (EXTENSION): {} } }))),
    }
}

/// All tasks, by id.
#[derive(Default)]
pub struct Tasks(Mutex<HashMap<String, Arc<Task>>>);

pub struct Task {
    id: String,
    /// Nobody else can see it.
    owner: Option<Principal>,
    created: SystemTime,
    work: OnceLock<AbortHandle>,
    state: Mutex<State>,
}

struct State {
    updated: SystemTime,
    /// What waits for the client, by key.
    asked: BTreeMap<String, Asked>,
    end: Option<End>,
}

struct Asked {
    request: Value,
    answer: oneshot::Sender<Value>,
}

enum End {
    Completed(Value),
    Failed(McpError),
    Cancelled,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    task_id: String,
    #[serde(default)]
    input_responses: BTreeMap<String, Value>,
}

impl Tasks {
    /// Starts work that ends with a result or an error, and answers with the task that it is.
    pub fn start<W>(&self, cx: &RequestContext, work: impl FnOnce(Arc<Task>) -> W) -> Result<Reply, McpError>
    where
        W: Future<Output = Result<Value, McpError>> + Send + 'static,
    {
        let mut all = self.all();
        make_room(&mut all)?;
        let now = SystemTime::now();
        let state = Mutex::new(State { updated: now, asked: BTreeMap::new(), end: None });
        let (owner, work_handle) = (cx.principal().cloned(), OnceLock::new());
        let task = Arc::new(Task { id: new_id()?, owner, created: now, work: work_handle, state });
        let mut created = task.summary(&task.state());
        created["resultType"] = json!("task");

        let running = tokio::spawn(work(Arc::clone(&task)));
        task.work.get_or_init(|| running.abort_handle());
        all.insert(task.id.clone(), Arc::clone(&task));
        tokio::spawn(async move {
            task.end(match running.await {
                Ok(Ok(result)) => End::Completed(result),
                Ok(Err(error)) => End::Failed(error),
                Err(ended) if ended.is_cancelled() => End::Cancelled,
                Err(panicked) => End::Failed(McpError::internal(panicked)),
            });
        });
        Reply::of(created)
    }

    pub fn get(&self, request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
        Reply::of(self.find(&request.params()?, cx)?.detailed())
    }

    /// Answers that nobody waits for are ignored.
    pub fn update(&self, request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
        let params = request.params()?;
        let task = self.find(&params, cx)?;
        for (key, answer) in params.input_responses {
            task.answer(&key, answer);
        }
        Reply::empty()
    }

    pub fn cancel(&self, request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
        self.find(&request.params()?, cx)?.cancel();
        Reply::empty()
    }

    fn find(&self, params: &Params, cx: &RequestContext) -> Result<Arc<Task>, McpError> {
        require(cx)?;
        let task = self.all().get(&params.task_id).cloned();
        let task = task.filter(|task| task.owner.as_ref() == cx.principal());
        task.ok_or_else(|| McpError::invalid_params("There is no such task"))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Task>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Discards the old tasks. An error if there is no room for another all the same.
fn make_room(all: &mut HashMap<String, Arc<Task>>) -> Result<(), McpError> {
    all.retain(|_, task| {
        let is_young = task.created.elapsed().is_ok_and(|age| age < TTL);
        if !is_young {
            task.cancel();
        }
        is_young
    });
    match all.len() < MAX_TASKS {
        true => Ok(()),
        false => Err(McpError::new(TOO_MANY_TASKS, "There are too many tasks, try again later")),
    }
}

impl Task {
    /// Asks the client, and waits for what it sends by `tasks/update`. Each question has a key of its own.
    pub async fn ask(&self, key: &str, request: Value) -> Result<Value, McpError> {
        let (answer, answered) = oneshot::channel();
        self.put(key, Asked { request, answer });
        answered.await.map_err(McpError::internal)
    }

    fn put(&self, key: &str, asked: Asked) {
        let mut state = self.state();
        state.asked.insert(key.to_owned(), asked);
        state.updated = SystemTime::now();
    }

    fn answer(&self, key: &str, answer: Value) {
        let mut state = self.state();
        if let Some(asked) = state.asked.remove(key) {
            state.updated = SystemTime::now();
            // Who asked may have gone.
            let _ = asked.answer.send(answer);
        }
    }

    /// Drops the work where it stands. One that is over is not changed by it.
    fn cancel(&self) {
        if let Some(work) = self.work.get() {
            work.abort();
        }
    }

    fn end(&self, end: End) {
        let mut state = self.state();
        *state = State { updated: SystemTime::now(), asked: BTreeMap::new(), end: Some(end) };
    }

    /// What is said of a task in any status.
    fn summary(&self, state: &State) -> Value {
        let status = match &state.end {
            Some(End::Completed(_)) => "completed",
            Some(End::Failed(_)) => "failed",
            Some(End::Cancelled) => "cancelled",
            None if state.asked.is_empty() => "working",
            None => "input_required",
        };
        json!({
            "taskId": self.id,
            "status": status,
            "createdAt": humantime::format_rfc3339_millis(self.created).to_string(),
            "lastUpdatedAt": humantime::format_rfc3339_millis(state.updated).to_string(),
            "ttlMs": TTL.as_secs() * 1000,
            "pollIntervalMs": POLL_INTERVAL.subsec_millis(),
        })
    }

    /// That, and what there is to see in its status.
    fn detailed(&self) -> Value {
        let state = self.state();
        let mut task = self.summary(&state);
        match &state.end {
            Some(End::Completed(result)) => task["result"] = result.clone(),
            Some(End::Failed(error)) => task["error"] = json!({ "code": error.code(), "message": error.message() }),
            None if !state.asked.is_empty() => {
                let requests = state.asked.iter().map(|(key, asked)| (key.clone(), asked.request.clone()));
                task["inputRequests"] = requests.collect();
            }
            None | Some(End::Cancelled) => {}
        }
        task
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that nobody can guess.
fn new_id() -> Result<String, McpError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(McpError::internal)?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}
