//! Thousands of questions from tasks on several threads, answered, ignored, late and cancelled: none hangs, and what the
//! client was told of its answer is true.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use mcp_transport::{
    Ask, AskError, Capabilities, InputResponse, Limits, McpError, McpHandler, Question, Reply, RequestContext,
    Revision, ServerInfo, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::support::{LEGACY, Random, call, inside, messages, notify, open, ready, send, until};

const CLIENTS: usize = 8;
const EACH: usize = 60;
const PATIENCE: Duration = Duration::from_secs(15);

/// Asks as its arguments say, and counts the tasks that still wait.
#[derive(Clone, Default)]
struct Asks(Arc<AtomicUsize>);

#[derive(Clone, Copy, Deserialize)]
enum Way {
    /// Tasks ask, and the handler waits for all.
    Joined,
    /// Tasks ask, and the handler answers meanwhile.
    Left,
    /// The handler asks, too.
    Both,
}

#[derive(Deserialize)]
struct Arguments {
    way: Way,
    tasks: usize,
    yields: usize,
    /// Milliseconds.
    patience: Option<u64>,
}

struct Waiting(Asks);

impl Waiting {
    fn enter(asks: &Asks) -> Self {
        asks.0.fetch_add(1, Ordering::SeqCst);
        Self(asks.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn ask(cx: &RequestContext, text: &str, patience: Option<u64>) -> Result<Ask, McpError> {
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    let question = Question::sampling(json!({"messages": [message], "maxTokens": 1}))?;
    Ok(cx.ask(
        "q",
        match patience {
            Some(patience) => question.timeout(Duration::from_millis(patience)),
            None => question,
        },
    ))
}

fn told(outcome: &Result<InputResponse, AskError>) -> Result<String, McpError> {
    #[derive(Deserialize)]
    struct Said {
        model: String,
    }
    match outcome {
        Ok(response) => Ok(response.parse::<Said>()?.model),
        Err(error) => Ok(format!("{error:?}")),
    }
}

impl McpHandler for Asks {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("asks", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new()
    }

    async fn request(&self, request: mcp_transport::Request, cx: RequestContext) -> Result<Reply, McpError> {
        let Arguments { way, tasks, yields, patience } = request.arguments()?;
        let mut asking = JoinSet::new();
        for task in 0..tasks {
            let (cx, waiting) = (cx.clone(), Waiting::enter(self));
            asking.spawn(async move {
                for _ in 0..(task + yields) % 5 {
                    tokio::task::yield_now().await;
                }
                let outcome = ask(&cx, &task.to_string(), patience)?.await;
                drop(waiting);
                Ok::<_, McpError>((task.to_string(), told(&outcome)?))
            });
        }
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        let mut outcomes = BTreeMap::new();
        match way {
            Way::Joined => {
                while let Some(outcome) = asking.join_next().await {
                    let (task, outcome) = outcome.map_err(McpError::internal)??;
                    outcomes.insert(task, outcome);
                }
            }
            Way::Left => asking.detach_all(),
            Way::Both => {
                asking.detach_all();
                let own = ask(&cx, "own", patience)?.await;
                outcomes.insert("own".to_owned(), told(&own)?);
            }
        }
        Reply::of(json!({ "outcomes": outcomes }))
    }
}

fn serve() -> (Asks, StreamableHttpService) {
    let asks = Asks::default();
    let limits = Limits::default().rounds(1_000);
    (asks.clone(), StreamableHttpService::builder(asks).limits(limits).build().expect("a service"))
}

fn arguments(random: &mut Random, patience: Option<usize>) -> Value {
    let way = random.of(&["Joined", "Left", "Both"]);
    json!({"way": way, "tasks": random.below(5), "yields": random.below(8), "patience": patience})
}

/// The answer that says what was asked.
fn says(params: &Value) -> Value {
    let text = &params["messages"][0]["content"]["text"];
    json!({"role": "assistant", "content": {"type": "text", "text": ""}, "model": format!("to {}", text.as_str().expect("a text"))})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rounds_end_whoever_asks() {
    let random = Random::new();
    let (asks, service) = serve();
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (service, mut random) = (service.clone(), random.fork(client as u64));
        clients.spawn(async move {
            for _ in 0..EACH {
                let arguments = arguments(&mut random, None);
                let outcomes = timeout(PATIENCE, rounds(&service, &arguments, &mut random)).await;
                let outcomes = outcomes.unwrap_or_else(|_| panic!("it hangs: {arguments}"));
                for (task, outcome) in outcomes.as_object().expect("a map") {
                    assert_eq!(*outcome, format!("to {task}"));
                }
                if arguments["way"] == "Joined" {
                    assert_eq!(
                        outcomes.as_object().map(serde_json::Map::len),
                        arguments["tasks"].as_u64().map(|n| n as usize)
                    );
                }
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("a client");
    }
    until("all tasks", || asks.0.load(Ordering::SeqCst) == 0).await;
    assert_eq!(service.counts().in_flight, 0);
}

/// Plays a call to its end, and answers some of what is asked in each round.
async fn rounds(service: &StreamableHttpService, arguments: &Value, random: &mut Random) -> Value {
    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}});
    let mut params = json!({"name": "t", "arguments": arguments, "_meta": capabilities});
    loop {
        let request = call(Revision::V2026_07_28, "tools/call", params.clone(), 1);
        let response = messages(send(service, request).await).await.pop().expect("a response");
        let result = &response["result"];
        if result["resultType"] == "complete" {
            return result["outcomes"].clone();
        }
        let asked = result["inputRequests"].as_object().unwrap_or_else(|| panic!("no questions: {response}"));
        assert!(!asked.is_empty());
        let answers =
            asked.iter().filter(|_| !random.one_in(3)).map(|(key, asked)| (key.clone(), says(&asked["params"])));
        let answers: serde_json::Map<_, _> = answers.collect();
        params["inputResponses"] = answers.into();
        params["requestState"] = result["requestState"].clone();
    }
}

/// Clients that answer at once, late or never, and that cancel: an answer that was accepted is the one the handler got,
/// and every other was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_client_is_told_of_its_answers_is_true() {
    let random = Random::new();
    let (asks, service) = serve();
    let (accepted, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (service, mut random) = (service.clone(), random.fork(client as u64));
        let (accepted, refused) = (Arc::clone(&accepted), Arc::clone(&refused));
        clients.spawn(async move {
            let revision = LEGACY[client % 4];
            let info = json!({"name": "stress", "version": "1"});
            let params =
                json!({"protocolVersion": revision.as_str(), "capabilities": {"sampling": {}}, "clientInfo": info});
            let session = open(&service, call(Revision::V2024_11_05, "initialize", params, 1)).await;
            ready(&service, revision, &session).await;
            for number in 0..EACH {
                let patience = 1 + random.below(4);
                let arguments = arguments(&mut random, Some(patience));
                let params = json!({"name": "t", "arguments": arguments});
                let request = inside(&session, call(revision, "tools/call", params, number + 1));
                let cancels = random.one_in(8);
                let played = play(&service, revision, &session, request, &mut random, cancels.then_some(number + 1));
                let played = timeout(PATIENCE, played).await.unwrap_or_else(|_| panic!("it hangs: {arguments}"));
                let (told, outcomes) = played;
                for (text, was_taken) in &told {
                    let counter = if *was_taken { &accepted } else { &refused };
                    counter.fetch_add(1, Ordering::SeqCst);
                    let Some(outcome) = outcomes.get(text) else { continue };
                    let expected = if *was_taken { format!("to {text}") } else { "TimedOut".to_owned() };
                    assert_eq!(*outcome, expected, "{arguments}");
                }
            }
            send(&service, super::support::bare(http::Method::DELETE, &session)).await;
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("a client");
    }
    until("all tasks", || asks.0.load(Ordering::SeqCst) == 0).await;
    assert_eq!(service.counts().in_flight, 0);
    let (accepted, refused) = (accepted.load(Ordering::SeqCst), refused.load(Ordering::SeqCst));
    assert!(accepted > EACH && refused > 0, "{accepted} accepted, {refused} refused: too little was tried");
}

/// Reads an answer, and answers what is asked on it. Returns what became of the answers, and the outcomes.
async fn play(
    service: &StreamableHttpService,
    revision: Revision,
    session: &str,
    request: Request<Bytes>,
    random: &mut Random,
    cancels: Option<usize>,
) -> (Vec<(String, bool)>, Value) {
    let mut body = send(service, request).await.into_body();
    let (mut read, mut answering, mut outcomes) = (Vec::new(), JoinSet::new(), Value::Null);
    while let Some(frame) = body.frame().await {
        read.extend_from_slice(&frame.unwrap_or_else(|never| match never {}).into_data().expect("data"));
        let text = String::from_utf8(std::mem::take(&mut read)).expect("whole events");
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        for message in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if message["method"] != "sampling/createMessage" {
                outcomes = message.pointer("/result/outcomes").cloned().unwrap_or(outcomes);
                continue;
            }
            if let Some(id) = cancels {
                let cancel = notify(revision, "notifications/cancelled").map(|_| {
                    let params = json!({ "requestId": id });
                    Bytes::from(
                        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string(),
                    )
                });
                let (service, cancel) = (service.clone(), inside(session, cancel));
                let delay = Duration::from_millis(random.below(3) as u64);
                tokio::spawn(async move {
                    sleep(delay).await;
                    send(&service, cancel).await;
                });
            }
            let delay = Duration::from_micros(random.below(5_000) as u64);
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": says(&message["params"])});
            let response = notify(revision, "x").map(|_| Bytes::from(response.to_string()));
            let (service, response) = (service.clone(), inside(session, response));
            let text = message["params"]["messages"][0]["content"]["text"].as_str().expect("a text").to_owned();
            let is_late = random.one_in(2);
            answering.spawn(async move {
                if is_late {
                    sleep(delay).await;
                }
                let status = send(&service, response).await.status();
                assert!([StatusCode::ACCEPTED, StatusCode::BAD_REQUEST].contains(&status), "{status}");
                (text, status == StatusCode::ACCEPTED)
            });
        }
    }
    (answering.join_all().await, outcomes)
}
