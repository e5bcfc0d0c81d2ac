use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

use super::*;
use crate::protocol::names::{header, meta};
use crate::{
    Capabilities, Era, EventStore, McpError, McpHandler, Notification, Principal, Progress, Question, Reply,
    RequestContext, Revision, ServerInfo, StreamableHttpService,
};

/// Answers with what the test asks for in `params.name`.
struct Subject;

#[derive(Clone)]
struct Account(&'static str);

impl McpHandler for Subject {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("subject", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().prompts()
    }

    async fn request(&self, request: crate::Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.name() {
            Some("progress") => {
                for done in [1.0, 2.0] {
                    cx.progress(Progress::new(done)).await;
                }
            }
            Some("endless") => loop {
                cx.notify("notifications/tick", json!({})).await?;
            },
            Some("slow") => tokio::time::sleep(Duration::from_secs(60)).await,
            Some("asks") => {
                cx.progress(Progress::new(1.0)).await;
                let mut said = Vec::new();
                for text in ["one", "two"] {
                    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
                    let question = Question::sampling(json!({"messages": [message], "maxTokens": 1}))?;
                    said.push(cx.ask("q", question).await?.parse::<Value>()?["model"].clone());
                }
                return Reply::of(json!({"said": said, "id": request.id().to_string()}));
            }
            Some("refused") => return Err(McpError::invalid_params("no")),
            _ => {}
        }
        Reply::of(json!({
            "id": request.id().to_string(),
            "revision": cx.revision().as_str(),
            "principal": cx.principal().map(Principal::as_str),
            "authorization": cx.http().and_then(|head| head.headers.get("authorization")?.to_str().ok()),
            "can sample": cx.client_capabilities().declares(&["sampling"]),
        }))
    }

    async fn notification(&self, _: Notification, _: RequestContext) {}
}

fn service() -> StreamableHttpService {
    service_with(EventStore::None)
}

fn service_with(store: EventStore) -> StreamableHttpService {
    let builder = StreamableHttpService::builder(Subject).allow_host("localhost").event_store(store);
    let builder = builder.principal(|head| Some(Principal::new(head.extensions.get::<Account>()?.0)));
    builder.build().unwrap()
}

fn client() -> Client {
    Client::new(service())
}

fn message_of<T>(panicking: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(panicking()))).expect_err("a panic");
    *panic.downcast::<String>().expect("a text")
}

#[tokio::test]
async fn every_revision_is_answered() {
    let client = client();
    for (id, revision) in (1..).zip(Revision::ALL) {
        let answer = client.call(revision, "prompts/get", json!({ "name": "a" })).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.headers["content-type"], "application/json");
        let assumed = if revision < Revision::V2025_06_18 { Revision::V2025_03_26 } else { revision };
        assert_eq!(answer.result()["revision"], assumed.as_str());
        assert_eq!(answer.response()["id"], id, "requests are numbered");
        assert_eq!((answer.messages.len(), answer.notifications().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_stream_is_read_to_its_end_or_message_by_message() {
    let client = client();
    for revision in Revision::ALL {
        let call =
            || client.call(revision, "prompts/get", json!({ "name": "progress", "_meta": { "progressToken": 7 } }));
        let answer = call().await;
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        assert_eq!(answer.notifications().len(), 2);
        assert_eq!(answer.notifications()[1]["params"], json!({ "progressToken": 7, "progress": 2 }));
        assert_eq!(answer.result()["can sample"], false);

        let mut stream = call().stream().await;
        assert_eq!(stream.status, StatusCode::OK);
        assert_eq!(stream.next().await.unwrap()["params"]["progress"], 1);
        let rest = stream.finish().await;
        assert_eq!((rest.messages.len(), rest.notifications().len()), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn to_drop_is_to_leave() {
    let service = service();
    let client = Client::new(service.clone());
    let call = |name| client.call(Revision::V2026_07_28, "prompts/get", json!({ "name": name }));

    let mut stream = call("endless").stream().await;
    assert_eq!(stream.next().await.unwrap()["method"], "notifications/tick");
    assert_eq!(service.counts().in_flight, 1);
    drop(stream);
    tokio::task::yield_now().await;
    assert_eq!(service.counts().in_flight, 0, "left after the first message");

    let mut unanswered = Box::pin(call("slow").stream());
    assert!(unanswered.as_mut().now_or_never().is_none());
    assert_eq!(service.counts().in_flight, 1);
    drop(unanswered);
    assert_eq!(service.counts().in_flight, 0, "left before the head");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_message_loses_none() {
    let mut stream = client().call(Revision::V2026_07_28, "prompts/get", json!({ "name": "slow" })).stream().await;
    while tokio::time::timeout(Duration::from_secs(1), stream.next()).await.is_err() {}
    let answer = stream.finish().await;
    assert!(answer.messages.is_empty(), "the one message was taken: {answer}");
}

#[tokio::test]
async fn errors_and_notifications() {
    let client = client();
    let refused = client.call(Revision::V2026_07_28, "prompts/get", json!({ "name": "refused" })).await;
    assert_eq!((refused.status, &refused.error()["code"]), (StatusCode::BAD_REQUEST, &json!(-32602)));
    let heard = client.notify(Revision::V2026_07_28, "notifications/a", ()).await;
    assert_eq!((heard.status, heard.messages.len()), (StatusCode::ACCEPTED, 0));
}

#[tokio::test]
async fn a_call_can_be_adjusted() {
    let client = client().capabilities(json!({ "sampling": {} })).path("/elsewhere");
    let call = client.call(Revision::V2026_07_28, "prompts/get", json!({ "name": "a" }));
    assert!(format!("{call:?}").contains("/elsewhere"));
    let answer = call.header("Authorization", "Bearer a").extension(Account("ann")).await;
    let result = answer.result();
    assert_eq!(result["authorization"], "Bearer a");
    assert_eq!(result["principal"], "ann");
    assert_eq!(result["can sample"], true);

    let own = json!({ "name": "a", "_meta": { meta::CLIENT_CAPABILITIES: { "roots": {} } } });
    let answer = client.call(Revision::V2026_07_28, "prompts/get", own).await;
    assert_eq!(answer.result()["can sample"], false, "what params say goes first");

    let elsewhere = client.call(Revision::V2026_07_28, "prompts/get", ()).header("host", "evil.test").await;
    assert_eq!(elsewhere.status, StatusCode::FORBIDDEN);
    let html = client.call(Revision::V2026_07_28, "prompts/get", ()).header("accept", "text/html").await;
    assert_eq!(html.status, StatusCode::NOT_ACCEPTABLE, "a header is replaced, not doubled");

    let mut raw = request(Revision::V2026_07_28, "prompts/get", json!({ "name": "a" }));
    assert_eq!(client.send(raw.clone()).await.status, StatusCode::OK);
    raw.headers_mut().insert("host", "evil.test".parse().unwrap());
    assert_eq!(client.send(raw).await.status, StatusCode::FORBIDDEN, "a host of its own is kept");
}

#[test]
fn requests_say_what_their_revision_asks_for() {
    for revision in Revision::ALL {
        let request = request(revision, "resources/read", json!({ "uri": "file:///ä" }));
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/mcp"));
        assert_eq!(request.headers()["accept"], "application/json, text/event-stream");
        assert_eq!(body["id"], 1);
        assert_eq!(body["params"]["uri"], "file:///ä");
        let version = request.headers().get(header::PROTOCOL_VERSION).map(|version| version.to_str().unwrap());
        assert_eq!(version, (revision >= Revision::V2025_06_18).then_some(revision.as_str()));
        let meta = &body["params"]["_meta"];
        match revision.era() {
            Era::Legacy => {
                assert!(!request.headers().contains_key(header::MCP_METHOD), "{revision}");
                assert!(!request.headers().contains_key(header::MCP_NAME), "{revision}");
                assert!(meta.is_null(), "{revision}");
            }
            Era::Modern => {
                assert_eq!(request.headers()[header::MCP_METHOD], "resources/read");
                assert_eq!(request.headers()[header::MCP_NAME], "=?base64?ZmlsZTovLy/DpA==?=");
                assert_eq!(meta[meta::PROTOCOL_VERSION], revision.as_str());
                assert_eq!(meta[meta::CLIENT_CAPABILITIES], json!({}));
                assert_eq!(meta[meta::CLIENT_INFO]["version"], env!("CARGO_PKG_VERSION"));
            }
        }
    }
    let bare = request(Revision::V2025_11_25, "tools/list", ());
    assert!(!String::from_utf8_lossy(bare.body()).contains("params"));
    for (method, member) in [("tools/call", "name"), ("prompts/get", "name"), ("tasks/get", "taskId")] {
        let request = request(Revision::V2026_07_28, method, json!({ member: "a" }));
        assert_eq!(request.headers()[header::MCP_NAME], "a", "{method}");
    }
}

/// What is no JSON-RPC comes from a layer in front.
#[tokio::test]
async fn other_answers_have_no_messages() {
    let service = |kind: &'static str, body: &'static str| {
        tower::service_fn(move |_: http::Request<Body>| async move {
            Ok(Response::builder().status(401).header("content-type", kind).body(Full::<Bytes>::from(body)).unwrap())
        })
    };
    for (kind, body) in [("text/plain", "who are you?"), ("application/json", "{\"error\":\"who?\"}"), ("a/b", "")] {
        let answer = Client::new(service(kind, body)).call(Revision::V2026_07_28, "ping", ()).await;
        assert_eq!((answer.status, answer.messages.len()), (StatusCode::UNAUTHORIZED, 0));
        let message = message_of(|| answer.result());
        assert!(message.contains("401 Unauthorized") && (body.is_empty() || message.contains("who")), "{message}");
    }
    let batch = service("application/json", "[{\"jsonrpc\":\"2.0\"},{\"jsonrpc\":\"2.0\"}]");
    assert_eq!(Client::new(batch).call(Revision::V2025_03_26, "ping", ()).await.messages.len(), 2);
}

#[tokio::test]
async fn what_a_test_cannot_go_on_without_is_said() {
    let client = client();
    let result = client.call(Revision::V2026_07_28, "prompts/get", json!({ "name": "a" })).await;
    let message = message_of(|| result.error());
    assert!(message.starts_with("no error in an answer with status 200 OK\n{"), "{message}");
    let error = client.call(Revision::V2026_07_28, "prompts/get", json!({ "name": "refused" })).await;
    assert!(message_of(|| error.result()).contains("-32602"));
    let accepted = client.notify(Revision::V2026_07_28, "a", ()).await;
    assert_eq!(message_of(|| accepted.response()), "no response in an answer with status 202 Accepted");

    let revision = Revision::V2026_07_28;
    for (expected, panicking) in [
        ("params must be an object, not [1]", Box::new(|| drop(request(revision, "a", [1]))) as Box<dyn Fn()>),
        ("\"a\\nb\" cannot stand in a header", Box::new(|| drop(request(revision, "a\nb", ())))),
        ("\"a b\" is no name of a header", Box::new(|| drop(client.notify(revision, "a", ()).header("a b", "")))),
    ] {
        assert_eq!(message_of(panicking), expected);
    }
    assert!(message_of(|| client.clone().path("a b")).starts_with("\"a b\" is no path"));
}

/// The answer of a client that answers everything, and what it was asked.
fn answers(asked: &mut Vec<String>) -> impl FnMut(&str, &Value) -> Value {
    |method, params| {
        let text = params["messages"][0]["content"]["text"].as_str().unwrap();
        asked.push(format!("{method} {text}"));
        json!({"role": "assistant", "content": {"type": "text", "text": ""}, "model": text.to_uppercase()})
    }
}

#[tokio::test]
async fn questions_are_answered_in_every_revision() {
    // With a store streams begin with an event for its id alone, which is no message.
    let clients = [EventStore::None, EventStore::InMemory]
        .map(|store| Client::new(service_with(store)).capabilities(json!({"sampling": {}})));
    for (client, revision) in clients.iter().flat_map(|client| Revision::ALL.map(|revision| (client, revision))) {
        let mut headers = Vec::new();
        if revision.era() == Era::Legacy {
            let info = json!({"name": "t", "version": "1"});
            let params =
                json!({"protocolVersion": revision.as_str(), "capabilities": {"sampling": {}}, "clientInfo": info});
            let opened = client.call(revision, "initialize", params).extension(Account("one")).await;
            let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
            headers.push(("mcp-session-id", session));
            let ready = client.notify(revision, "notifications/initialized", ()).header(headers[0].0, &headers[0].1);
            assert_eq!(ready.extension(Account("one")).await.status, StatusCode::ACCEPTED);
        }
        let params = json!({"name": "asks", "_meta": {"progressToken": 1}});
        let call = client.call(revision, "prompts/get", params).extension(Account("one"));
        let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
        let mut asked = Vec::new();
        let answer = call.answering(answers(&mut asked)).await;
        assert_eq!(asked, ["sampling/createMessage one", "sampling/createMessage two"]);
        assert_eq!(answer.result()["said"], json!(["ONE", "TWO"]));
        let progress = answer.messages.iter().filter(|message| message["method"] == "notifications/progress").count();
        let rounds = if revision.era() == Era::Legacy { 1 } else { 3 };
        assert_eq!((answer.status, progress, answer.messages.len()), (StatusCode::OK, rounds, 3 + rounds));
        // What asks nothing is answered as ever.
        let plain = client.call(revision, "prompts/get", json!({"name": "refused"}));
        assert_eq!(plain.answering(answers(&mut asked)).await.error()["code"], -32602);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_taken_ends_the_test() {
    /// Asks, and takes no answer.
    async fn deaf(request: http::Request<Body>) -> Result<Response<Full<Bytes>>, Infallible> {
        let body = http_body_util::BodyExt::collect(request.into_body()).await.unwrap().to_bytes();
        let is_response = serde_json::from_slice::<Value>(&body).unwrap().get("result").is_some();
        if is_response {
            return Ok(Response::builder().status(400).body(Full::default()).unwrap());
        }
        let text = "data: {\"id\":5,\"method\":\"roots/list\"}\n\n";
        Ok(Response::builder().header("content-type", "text/event-stream").body(Full::from(text)).unwrap())
    }
    let client = Client::new(tower::service_fn(deaf));
    let call = client.call(Revision::V2025_11_25, "x/y", ()).answering(|_, _| json!({"roots": []}));
    assert!(AssertUnwindSafe(call).catch_unwind().await.is_err());
}
