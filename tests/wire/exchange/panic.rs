//! Handlers that panic, wherever they can.

use std::future::pending;
use std::panic::resume_unwind;
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{
    Capabilities, Exchange, ExchangeEnd, Limits, McpError, McpHandler, Observer, ParameterSource, Reply, Request,
    RequestContext, ServerInfo, StreamableHttpService,
};
use serde_json::{Value, json};

use super::{METHOD, Signal, all_quiet, is_internal, is_late, is_reply, messages, observed, reply, tell, told, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("fault/panic", Carriers::Every, that_request_alone);
    wire.any("fault/panic/dropped-by-deadline", Carriers::Clock, in_a_destructor_at_the_deadline);
    wire.any("fault/panic/dropped-by-client", Carriers::Sockets, in_a_destructor_when_the_client_leaves);
    wire.any("fault/panic/notification", Carriers::Every, in_a_notification_hook);
    wire.any("fault/panic/observer", Carriers::Every, in_an_observer);
    wire.modern_part_of_any("fault/panic/parameter-headers", Carriers::Every, in_the_hook_of_parameter_headers);
    wire.modern_part_of_any("fault/panic/listing", Carriers::Every, in_a_listing_of_the_transports_own);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new("in a destructor"));
    }
}

/// Panics with this kind of payload. Past the panic hook, which would write to the log of the tests.
fn boom(payload: &str) -> ! {
    match payload {
        "str" => resume_unwind(Box::new("boom")),
        "string" => resume_unwind(Box::new("boom".to_owned())),
        "bomb" => resume_unwind(Box::new(Bomb)),
        _ => resume_unwind(Box::new(7)),
    }
}

/// Panics at the place that `params.at` names.
fn panicking(go: &Signal) -> Script {
    let go = go.clone();
    Script::new(move |request, cx| {
        let go = go.clone();
        async move {
            let params: Value = request.params()?;
            let payload = params["payload"].as_str().unwrap_or("str");
            match params["at"].as_str() {
                Some("once") => boom(payload),
                Some("later") => {
                    tokio::task::yield_now().await;
                    boom(payload)
                }
                Some("message") => {
                    tell(&cx, 1).await;
                    boom(payload)
                }
                Some("stream") => {
                    tell(&cx, 1).await;
                    tokio::task::yield_now().await;
                    boom(payload)
                }
                Some("end") => {
                    let _bomb = Bomb;
                    reply(1)
                }
                Some("bystander") => {
                    go.taken().await;
                    reply(1)
                }
                _ => reply(1),
            }
        }
    })
}

fn at(cx: Cx, place: &str, payload: &str) -> Call {
    let mut call = work(cx);
    call.set("/params/at", place);
    call.set("/params/payload", payload);
    call
}

async fn that_request_alone(cx: Cx) {
    let go = Signal::new();
    let (service, heard) = observed(panicking(&go), Limits::default());
    let client = cx.serve(service.clone()).await;
    let bystander = tokio::spawn({
        let (client, call) = (client.clone(), at(cx, "bystander", ""));
        async move { client.send(call).await.json().await }
    });
    let mut said = Vec::new();
    for payload in ["str", "string", "other", "bomb"] {
        for place in ["once", "later", "message", "stream", "end"] {
            let answer = client.send(at(cx, place, payload)).await;
            assert_eq!(answer.status, StatusCode::OK);
            let response = match place {
                "message" | "stream" => {
                    let (sent, response) = messages(answer).await;
                    assert_eq!(sent, [told(1)]);
                    response
                }
                _ => answer.json().await,
            };
            assert!(is_internal(&response), "{place}: {response}");
            said.push(match (place, payload) {
                ("end", _) => "in a destructor",
                (_, "str" | "string") => "boom",
                _ => "a panic that carries no text",
            });
        }
    }
    let panicked: Vec<_> = said.iter().map(|said| format!("{METHOD} {said}")).collect();
    assert_eq!(heard.of("panicked"), panicked);
    assert_eq!(heard.of("ended"), vec!["Error(-32603)"; said.len()]);
    assert!(is_reply(&client.send(at(cx, "nowhere", "")).await.json().await, 1));
    go.give();
    assert!(is_reply(&bystander.await.expect("an answer"), 1));
    assert_eq!(service.counts_now(), (0, 0));
}

/// [`mcp_transport::Transport::counts`] as a pair.
trait CountsNow {
    fn counts_now(&self) -> (usize, usize);
}

impl CountsNow for StreamableHttpService {
    fn counts_now(&self) -> (usize, usize) {
        let counts = mcp_transport::Transport::counts(self);
        (counts.in_flight, counts.streams)
    }
}

/// Holds a bomb until it is cancelled.
fn holding(entered: &Signal) -> Script {
    let entered = entered.clone();
    Script::new(move |request, cx| {
        let entered = entered.clone();
        async move {
            let _bomb = (request.method() == METHOD).then(|| Bomb);
            if request.params::<Value>()?["streams"] == true {
                tell(&cx, 1).await;
            }
            entered.give();
            pending::<()>().await;
            reply(0)
        }
    })
}

async fn in_a_destructor_at_the_deadline(cx: Cx) {
    let limits = Limits::default().handler_time(Duration::from_secs(1));
    let (service, heard) = observed(holding(&Signal::new()), limits);
    let client = cx.serve(service.clone()).await;
    for streams in [false, true] {
        let mut call = work(cx);
        call.set("/params/streams", streams);
        let answer = client.send(call).await;
        let response = if streams { messages(answer).await.1 } else { answer.json().await };
        assert!(is_late(&response), "{response}");
    }
    assert_eq!(heard.of("panicked"), vec![format!("{METHOD} in a destructor"); 2]);
    assert_eq!(heard.of("ended"), vec!["Cancelled(Deadline)"; 2]);
    assert_eq!(service.counts_now(), (0, 0));
}

/// The server goes on, and over HTTP/2 so does the connection.
async fn in_a_destructor_when_the_client_leaves(cx: Cx) {
    let entered = Signal::new();
    let (service, heard) = observed(holding(&entered), Limits::default());
    let client = cx.serve(service.clone()).await;
    let mut bystander = Call::of(cx.revision, "prompts/list", json!({}));
    bystander.set("/params/streams", true);
    let mut bystander = client.send(bystander).await;
    entered.taken().await;
    for streams in [false, true] {
        let mut call = work(cx);
        call.set("/params/streams", streams);
        let asking = tokio::spawn({
            let client = client.clone();
            async move { client.send(call).await }
        });
        entered.taken().await;
        if streams {
            drop(asking.await);
        } else {
            asking.abort();
        }
        while heard.of("ended").len() < 1 + usize::from(streams) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(heard.of("panicked"), vec![format!("{METHOD} in a destructor"); 2]);
    assert_eq!(heard.of("ended"), vec!["Cancelled(Disconnected)"; 2]);
    assert_eq!(bystander.next_message().await, Some(told(1)));
    assert_eq!(service.counts_now(), (1, 1));
    drop(bystander);
    all_quiet(&service).await;
}

async fn in_a_notification_hook(cx: Cx) {
    let script = Script::new(|_, _| async { reply(1) }).hearing(|notification, _| async move {
        match notification.method() {
            "notifications/once" => boom("str"),
            "notifications/later" => {
                tokio::task::yield_now().await;
                boom("bomb")
            }
            _ => drop(std::panic::catch_unwind(|| Bomb)),
        }
    });
    let (service, heard) = observed(script, Limits::default());
    let client = cx.serve(service.clone()).await;
    for method in ["notifications/once", "notifications/later", "notifications/end"] {
        let answer = client.send(Call::of(cx.revision, method, json!({})).notification()).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED);
        assert_eq!(answer.text().await, "");
        all_quiet(&service).await;
    }
    assert_eq!(
        heard.of("panicked"),
        [
            "notifications/once boom",
            "notifications/later a panic that carries no text",
            "notifications/end in a destructor"
        ]
    );
    assert!(is_reply(&client.send(work(cx)).await.json().await, 1));
}

/// Panics at the end of every exchange.
struct Touchy;

impl Observer for Touchy {
    fn exchange_ended(&self, _: &Exchange<'_>, _: ExchangeEnd) {
        boom("str");
    }
}

/// It is the application's own fault, and costs that request its answer. The client must not wait for it for ever.
async fn in_an_observer(cx: Cx) {
    let script = panicking(&Signal::new());
    let service = StreamableHttpService::builder(script).observer(Touchy).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    assert_eq!(client.send(at(cx, "stream", "")).await.events().await, [told(1)]);
    all_quiet(&service).await;
}

/// A handler whose annotations cannot be learned.
struct Hook;

impl McpHandler for Hook {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("wire", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> {
        reply(1)
    }

    fn parameter_headers(&self, tool: &str, _: &RequestContext) -> ParameterSource {
        match tool {
            "bad" => boom("str"),
            _ => ParameterSource::default(),
        }
    }
}

async fn in_the_hook_of_parameter_headers(cx: Cx) {
    let heard = super::Heard::default();
    let service = StreamableHttpService::builder(Hook).observer(heard.clone()).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    if !cx.modern() {
        // No header is mirrored there, so nobody asks.
        let answer = client.send(Call::legacy(cx.revision, "tools/call", json!({"name": "bad"}))).await;
        assert!(is_reply(&answer.json().await, 1));
        return;
    }
    let answer = client.send(Call::modern("tools/call", json!({"name": "bad"}))).await;
    assert!(is_internal(&answer.json().await));
    assert_eq!(heard.of("panicked"), ["tools/call boom"]);
    let answer = client.send(Call::modern("tools/call", json!({"name": "good"}))).await;
    assert!(is_reply(&answer.json().await, 1));
    assert_eq!(service.counts_now(), (0, 0));
}

/// The transport asks for the tools on its own; that the handler panics there is the application's to know.
async fn in_a_listing_of_the_transports_own(cx: Cx) {
    let script = Script::new(|request, _| async move {
        match request.method() {
            "tools/list" => boom("str"),
            _ => reply(1),
        }
    });
    let (service, heard) = observed(script, Limits::default());
    let client = cx.serve(service.clone()).await;
    let call = || Call::of(cx.revision, "tools/call", json!({"name": "t"}));
    let with_header = client.send(call().header("mcp-param-region", "eu")).await;
    if !cx.modern() {
        assert!(is_reply(&with_header.json().await, 1), "nobody asks");
        assert_eq!(heard.of("panicked"), Vec::<String>::new());
        return;
    }
    assert!(is_internal(&with_header.json().await));
    assert!(is_reply(&client.send(call()).await.json().await, 1));
    assert_eq!(heard.of("panicked"), ["tools/list boom", "tools/list boom"]);
    assert_eq!(service.counts_now(), (0, 0));
}
