//! A drain under load: two hundred exchanges of every kind, each answered or reported cut.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{
    Capabilities, Limits, McpError, Question, Reply, Request, RequestContext, Revision, StdioTransport,
    StreamableHttpService, Transport, drain_all,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::harness::{Carrier, Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::dialogue::everything;
use crate::support::handler::Script;
use crate::support::peer::Peer;
use crate::support::request::Call;
use crate::support::session::{self, Session};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("shutdown/drain/under-load", Carriers::Every, under_load);
    wire.any("shutdown/drain/starting", Carriers::Clock, while_starting);
}

/// `x/quick` is through soon, `x/stuck` never. Each tells something first where it is asked to; `x/ask` asks, and waits for
/// ever.
async fn act(request: Request, cx: RequestContext, entered: Arc<Semaphore>) -> Result<Reply, McpError> {
    let params: Value = request.params().unwrap_or_default();
    if params["tell"] == true {
        cx.notify("notifications/x", json!({})).await?;
    }
    entered.add_permits(1);
    match request.method() {
        "x/quick" => sleep(Duration::from_millis(200)).await,
        "x/ask" => {
            let _ = cx.ask("roots", Question::roots()?).await?;
        }
        _ => std::future::pending().await,
    }
    Reply::of(json!({"did": request.method()}))
}

/// What became of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Answered,
    Cut,
    /// A stream that has no answer of its own came to its end.
    Ended,
}

/// Reads an answer to its end, whatever its form, and judges each response in it.
async fn judged(answer: Answer) -> Vec<Became> {
    let messages = if answer.header("content-type") == "application/json" {
        match answer.json().await {
            Value::Array(messages) => messages,
            message => vec![message],
        }
    } else {
        assert_eq!(answer.status, StatusCode::OK);
        answer.events().await
    };
    let responses = messages.iter().filter(|message| message.get("method").is_none());
    let mut became: Vec<_> = responses
        .map(|response| match &response["error"] {
            Value::Null => Became::Answered,
            error => {
                assert_eq!(*error, json!({"code": -32603, "message": "The server is shutting down"}));
                Became::Cut
            }
        })
        .collect();
    if became.is_empty() {
        became.push(Became::Ended);
    }
    became
}

/// The exchanges under way.
struct Load {
    client: Client,
    all: JoinSet<Vec<Became>>,
}

impl Load {
    fn send(&mut self, call: Call) {
        let client = self.client.clone();
        self.all.spawn(async move { judged(client.send(call).await).await });
    }

    fn read(&mut self, stream: Answer) {
        self.all.spawn(judged(stream));
    }

    /// One of everything, over and over: twenty exchanges, in whose handlers eighteen requests are.
    async fn more(&mut self, cx: Cx, session: &Session, n: usize) {
        let client = self.client.clone();
        let loose = |method: &str, tell: bool| Call::of(cx.revision, method, json!({ "tell": tell }));
        for (method, tell) in [("x/quick", false), ("x/quick", true), ("x/stuck", false), ("x/stuck", true)] {
            self.send(loose(method, tell).id(n));
            self.send(Call::modern(method, json!({ "tell": tell })).id(n));
            self.send(session.call(method, json!({ "tell": tell })).id(format!("{method} {tell} {n}")));
        }
        self.send(session.call("x/ask", json!({})).id(format!("ask {n}")));
        let element = |id: String, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
        let batch = json!([element(format!("b1 {n}"), "x/quick"), element(format!("b2 {n}"), "x/stuck")]);
        let mut call = Call::of(Revision::V2025_03_26, "x", json!({}));
        call.body = batch;
        self.send(call);
        for _ in 0..3 {
            self.send(loose("x/stuck", false).header("accept", "application/json").id(n));
        }
        let mut listener = client.send(Call::modern("subscriptions/listen", json!({"notifications": {}})).id(n)).await;
        listener.next_message().await.expect("an acknowledgement");
        self.read(listener);
        let other = session::open(&client, session.revision).await;
        self.read(other.listen().await);
    }
}

const ROUNDS: usize = 10;

async fn under_load(cx: Cx) {
    let entered = Arc::new(Semaphore::new(0));
    let script = Script::new({
        let entered = Arc::clone(&entered);
        move |request, cx| act(request, cx, Arc::clone(&entered))
    });
    let script = script.declaring(Capabilities::new().tools_list_changed().resources_subscribe());
    let service = StreamableHttpService::new(script.clone());
    let mut load = Load { client: cx.serve(service.clone()).await, all: JoinSet::new() };
    let revision = if cx.modern() { Revision::V2025_11_25 } else { cx.revision };
    let initialize = session::initialize_with(revision.as_str(), everything());
    let session = session::open_by(&load.client, initialize).await;
    let mut peer = Peer::open(cx.revision, script).await;
    for n in 0..ROUNDS {
        load.more(cx, &session, n).await;
        peer.send(peer.request(format!("stuck {n}"), "x/stuck", json!({}))).await;
        peer.send(peer.request(format!("quick {n}"), "x/quick", json!({}))).await;
    }
    assert!(load.all.len() + 2 * ROUNDS >= 200, "{} exchanges", load.all.len() + 2 * ROUNDS);
    drop(entered.acquire_many(u32::try_from(20 * ROUNDS).expect("few")).await);
    let since = Instant::now();
    // By the wall clock the machine may be busy.
    let within = Duration::from_secs(if cx.carrier == Carrier::Clock { 1 } else { 4 });
    // Several at once, of which one is given up half way.
    let (one, two) = (service.clone(), service.clone());
    let given_up = timeout(Duration::from_millis(50), two.drain(within));
    let transports: [&dyn Transport; 2] = [&one, &peer.transport];
    let (reports, again, given_up) = tokio::join!(drain_all(&transports, within), service.drain(within), given_up);
    assert!(given_up.is_err());
    if cx.carrier == Carrier::Clock {
        assert!(since.elapsed() <= within + Duration::from_secs(1), "{:?}", since.elapsed());
    }
    let became: Vec<_> = timeout(Duration::from_secs(10), load.all.join_all()).await.expect("nobody hangs").concat();
    let count = |wanted| became.iter().filter(|became| **became == wanted).count();
    // Of each round seven are quick, eleven are stuck or ask, and two listen.
    assert_eq!(count(Became::Answered), 7 * ROUNDS + ROUNDS, "listeners are answered too");
    assert_eq!(count(Became::Cut), 11 * ROUNDS);
    assert_eq!(count(Became::Ended), ROUNDS, "the general streams");
    assert_eq!((reports[0].cut, again.cut), (11 * ROUNDS, 11 * ROUNDS));
    assert!(reports[0].in_flight >= reports[0].cut);
    assert_eq!(reports[1].cut, ROUNDS);
    let mut told = Vec::new();
    while let Some(message) = timeout(Duration::from_secs(10), peer.next()).await.expect("it ends") {
        told.push(message);
    }
    let cut = told.iter().filter(|message| message["error"]["message"] == "The server is shutting down").count();
    assert_eq!((told.len(), cut), (2 * ROUNDS, ROUNDS));
    let counts = service.counts();
    assert_eq!((counts.in_flight, counts.streams), (0, 0));
    // And once more, when it is over.
    assert_eq!(service.drain(within).await.cut, 0);
}

/// A transport that is told to stop before it has begun takes nothing, and says so.
async fn while_starting(cx: Cx) {
    let service = StreamableHttpService::new(Stage::default().script());
    assert_eq!(service.drain(Duration::from_secs(5)).await.cut, 0);
    let client = cx.serve(service.clone()).await;
    let answer = client.send(Call::of(cx.revision, "x/echo", json!({}))).await;
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, None).await;
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let transport = StdioTransport::builder(Stage::default().script()).limits(Limits::default()).io(reader, writer);
    let transport = transport.build().expect("a transport");
    transport.drain(Duration::from_secs(5)).await;
    let served = timeout(Duration::from_secs(60), transport.serve()).await.expect("it ends").expect("no error");
    assert_eq!(served, mcp_transport::ServeEnd::Drained);
    drop(ours);
}
