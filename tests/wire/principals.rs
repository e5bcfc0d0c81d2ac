//! Two principals who know everything of each other: session ids, event ids, request ids, subscription ids, request
//! states. A foreign one is told what is told of one that never was, byte for byte.

use std::time::Duration;

use http::StatusCode;
use mcp_transport::{
    Capabilities, EventStore, McpError, Principal, Question, Reply, Request, RequestContext, StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::dialogue::{asked, call, everything};
use crate::support::handler::Script;
use crate::support::request::{Call, SESSION_ID};
use crate::support::session::{self, ACCOUNT, Session, accepted};

pub fn register(wire: &mut Wire) {
    wire.legacy("session/owner/who-knows-all", Carriers::Every, in_sessions);
    wire.legacy("session/owner/own-session", Carriers::Every, from_a_session);
    wire.modern("session/none/who-knows-all", Carriers::Every, modern);
}

const LAST_EVENT_ID: &str = "last-event-id";

/// `x/ask` asks for roots and waits; anything else is answered at once.
async fn act(request: Request, cx: RequestContext) -> Result<Reply, McpError> {
    match request.method() {
        "x/ask" | "tools/call" => {
            let roots = cx.ask("roots", Question::roots()?).await?;
            Reply::of(json!({"content": [], "said": roots.json()}))
        }
        _ => Reply::of(json!({"tools": []})),
    }
}

fn service() -> StreamableHttpService {
    let capabilities = Capabilities::new().tools().tools_list_changed().resources_subscribe();
    let builder = StreamableHttpService::builder(Script::new(act).declaring(capabilities));
    let builder = builder.event_store(EventStore::InMemory);
    let builder = builder.principal(|head| Some(Principal::new(head.headers.get(ACCOUNT)?.to_str().ok()?)));
    builder.build().expect("a service")
}

async fn session_of(cx: Cx, client: &Client, account: &str) -> Session {
    let initialize = session::initialize_with(cx.revision.as_str(), everything());
    session::open_by(client, initialize.header(ACCOUNT, account)).await
}

/// All that a client can see of an answer.
async fn seen(answer: Answer) -> (StatusCode, Vec<(String, String)>, String) {
    let mut headers: Vec<_> =
        answer.headers.iter().map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect();
    headers.retain(|(name, _)| name != "date");
    headers.sort();
    (answer.status, headers, answer.text().await)
}

/// A session in which everything there is to know is at work.
struct Known {
    session: Session,
    general: Answer,
    stream: Answer,
    /// The id of the question that its client has yet to answer.
    question: Value,
    event: String,
}

impl Known {
    async fn open(cx: Cx, client: &Client) -> Self {
        let session = session_of(cx, client, "one").await;
        let general = session.listen().await;
        let mut stream = client.send(session.call("x/ask", json!({})).id("secret")).await;
        let event = loop {
            let event = stream.next_event().await.expect("an event");
            if event.data.as_deref().is_some_and(|data| !data.is_empty()) {
                break event;
            }
        };
        let question: Value = serde_json::from_str(event.data.as_deref().expect("data")).expect("a question");
        let (question, event) = (question["id"].clone(), event.id.expect("an id"));
        Self { session, general, stream, question, event }
    }

    /// It goes on as if nobody had known of it.
    async fn goes_on(mut self, service: &StreamableHttpService) {
        service.changes().tools_list_changed();
        let change = loop {
            // A stream may begin with an id alone (2025-11-25).
            let event = self.general.next_event().await.expect("an event");
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                break serde_json::from_str::<Value>(&data).expect("a message");
            }
        };
        assert_eq!(change["method"], "notifications/tools/list_changed");
        let response = json!({"jsonrpc": "2.0", "id": self.question, "result": {"roots": []}});
        accepted(self.session.client.send(self.session.post(response)).await).await;
        let rest = self.stream.events().await;
        let [answer] = &rest[..] else { panic!("the answer and nothing else: {rest:?}") };
        assert_eq!((&answer["id"], &answer["result"]["said"]), (&json!("secret"), &json!(r#"{"roots":[]}"#)));
    }
}

/// Everything that can be sent into a session by somebody who knows all of it.
fn attempts(known: &Known) -> Vec<Call> {
    let session = &known.session;
    let response = json!({"jsonrpc": "2.0", "id": known.question, "result": {"roots": [{"uri": "file:///stolen"}]}});
    vec![
        session.call("x/echo", json!({})),
        session.call("ping", Value::Null),
        session.call("logging/setLevel", json!({"level": "debug"})),
        session.call("resources/subscribe", json!({"uri": "a"})),
        session.call("x/echo", json!({})).id("secret"),
        session.cancellation("secret"),
        session.notification("notifications/initialized", Value::Null),
        session.post(response.clone()),
        session.post(json!([response])),
        session.sign(session::initialize(session.revision)),
        session.get(),
        session.get().header(LAST_EVENT_ID, &known.event),
        session.delete(),
    ]
}

/// A session of somebody else is as unknown as one that never was, whatever else of it is known.
async fn in_sessions(cx: Cx) {
    let service = service();
    let client = cx.serve(service.clone()).await;
    let known = Known::open(cx, &client).await;
    let before = service.counts();
    for account in [Some("two"), None] {
        let as_stranger = |call: Call| match account {
            Some(account) => call.header(ACCOUNT, account),
            None => call.without(ACCOUNT),
        };
        let nowhere = "A".repeat(known.session.id.len());
        for (foreign, unknown) in attempts(&known).into_iter().zip(attempts(&known)) {
            let what = format!("{} {}", foreign.method, foreign.body);
            let foreign = seen(client.send(as_stranger(foreign)).await).await;
            let unknown = seen(client.send(as_stranger(unknown).header(SESSION_ID, &nowhere)).await).await;
            assert_eq!(foreign, unknown, "{what}");
            assert_eq!(foreign.0, StatusCode::NOT_FOUND, "{what}");
        }
    }
    assert_eq!(service.counts(), before);
    known.goes_on(&service).await;
}

/// What is known of another's session is nothing in one's own, and nothing without one.
async fn from_a_session(cx: Cx) {
    let service = service();
    let client = cx.serve(service.clone()).await;
    let known = Known::open(cx, &client).await;
    let own = session_of(cx, &client, "two").await;
    let response = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}});
    let made_up = "A".repeat(22) + "-1";
    for (foreign, unknown, status) in [
        (own.cancellation("secret"), own.cancellation("unknown"), StatusCode::ACCEPTED),
        (own.post(response(&known.question)), own.post(response(&json!(77))), StatusCode::BAD_REQUEST),
        (
            own.get().header(LAST_EVENT_ID, &known.event),
            own.get().header(LAST_EVENT_ID, made_up),
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let what = format!("{} {}", foreign.method, foreign.body);
        let foreign = seen(client.send(foreign).await).await;
        assert_eq!(foreign, seen(client.send(unknown).await).await, "{what}");
        assert_eq!(foreign.0, status, "{what}");
    }
    // The same id is another's in another session.
    let mine = client.send(own.call("x/echo", json!({})).id("secret")).await.json().await;
    assert_eq!(mine["id"], "secret");
    let loose = Call::legacy(cx.revision, "notifications/cancelled", json!({"requestId": "secret"})).notification();
    accepted(client.send(loose.header(ACCOUNT, "one")).await).await;
    known.goes_on(&service).await;
}

/// A state is its owner's, and ids say nothing at all.
async fn modern(cx: Cx) {
    let service = service();
    let client = cx.serve(service.clone()).await;
    let one = |call: Call| call.header(ACCOUNT, "one");
    let listen =
        || Call::modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})).id("sub");
    let mut stream = client.send(one(listen())).await;
    stream.next_message().await.expect("an acknowledgement");
    let tool = || call("tools/call", json!({"name": "t", "arguments": {}}));
    let round = client.send(one(tool())).await.result().await;
    assert_eq!(asked(&round).len(), 1);
    let state = round["requestState"].as_str().expect("a state").to_owned();
    let retry = |state: &str| {
        let mut call = tool();
        call.set("/params/requestState", state);
        call.set("/params/inputResponses", json!({"roots": {"roots": []}}));
        call
    };
    let made_up = "A".repeat(state.len());
    for account in [Some("two"), None] {
        let by = |call: Call| match account {
            Some(account) => call.header(ACCOUNT, account),
            None => call,
        };
        let foreign = seen(client.send(by(retry(&state))).await).await;
        assert_eq!(foreign, seen(client.send(by(retry(&made_up))).await).await);
        assert_eq!(foreign.0, StatusCode::BAD_REQUEST);
        for id in ["sub", "unknown"] {
            let cancel = Call::modern("notifications/cancelled", json!({"requestId": id})).notification();
            accepted(client.send(by(cancel)).await).await;
        }
        // The same id is another subscription, and its end is nobody else's.
        let mut same = client.send(by(listen())).await;
        same.next_message().await.expect("an acknowledgement");
        drop(same);
    }
    while service.counts().streams > 1 {
        sleep(Duration::from_millis(1)).await;
    }
    service.changes().tools_list_changed();
    let change = timeout(Duration::from_secs(10), stream.next_message()).await.expect("in time").expect("an event");
    assert_eq!(change["method"], "notifications/tools/list_changed");
    let done = client.send(one(retry(&state))).await.result().await;
    assert_eq!(done["said"], r#"{"roots":[]}"#);
}
