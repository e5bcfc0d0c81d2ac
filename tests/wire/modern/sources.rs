//! Where the transport learns which arguments are mirrored: from a hook, or from the handler's own `tools/list`.

mod failing;
mod fresh;
mod hook;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_transport::{
    Capabilities, Limits, LogLevel, McpError, Principal, Progress, Reply, Request, RequestContext,
    StreamableHttpBuilder, StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::advance;

use super::{Heard, INTERNAL, MISMATCH, tool_call};
use crate::harness::{Carrier, Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::{CAPABILITIES, CLAIM, CLIENT_INFO, Call, ID, LOG_LEVEL, meta};

pub fn register(wire: &mut Wire) {
    wire.modern("param/source", Carriers::Every, asked_once);
    wire.modern("param/source/caller", Carriers::Every, caller);
    wire.modern("param/source/pages", Carriers::Every, pages);
    wire.modern("param/source/caps", Carriers::Clock, caps);
    wire.modern("param/source/cycles", Carriers::Every, cycles);
    wire.modern("param/source/principals", Carriers::Every, principals);
    wire.modern("param/source/bounded", Carriers::Clock, bounded);
    wire.modern("param/source/odd-tools", Carriers::Every, odd_tools);
    wire.modern("param/source/undeclared", Carriers::Every, undeclared);
    hook::register(wire);
    fresh::register(wire);
    failing::register(wire);
}

const REGION: &str = "mcp-param-region";

/// What the handler's `tools/list` does.
#[derive(Clone)]
enum List {
    /// This result.
    Is(Value),
    /// By cursor.
    Pages(fn(Option<&str>) -> Value),
    /// By principal.
    For(fn(Option<&str>) -> Value),
    Fails,
    FailsInside,
    /// Panics when it is polled.
    Panics,
    /// This result once it is notified; its first part when it is asked.
    Waits(Arc<Notify>, Arc<Notify>, Value),
}

/// A server whose list of tools is the test's to change.
struct Source {
    client: Client,
    service: StreamableHttpService,
    heard: Heard,
    list: Arc<Mutex<List>>,
    asked: Arc<AtomicUsize>,
    ran: Arc<AtomicUsize>,
}

/// `tools/call`: what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Ran,
    Error(u16, i64),
}

const REFUSED: Outcome = Outcome::Error(400, MISMATCH);
const FAILED: Outcome = Outcome::Error(200, INTERNAL);

impl Source {
    async fn open(cx: Cx, list: List) -> Self {
        Self::built(cx, list, |builder| builder).await
    }

    async fn built(cx: Cx, list: List, build: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> Self {
        let list = Arc::new(Mutex::new(list));
        let (asked, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let script = Script::new({
            let (list, asked, ran) = (Arc::clone(&list), Arc::clone(&asked), Arc::clone(&ran));
            move |request, cx| {
                let listing = request.method() == "tools/list";
                if listing { &asked } else { &ran }.fetch_add(1, Ordering::SeqCst);
                let list = list.lock().expect("a list").clone();
                async move { if listing { list.answer(&request, &cx).await } else { Reply::empty() } }
            }
        });
        let heard = Heard::default();
        let builder = StreamableHttpService::builder(script).observer(heard.clone()).principal(|head| {
            let user = head.headers.get("x-user")?.to_str().ok()?;
            Some(Principal::new(user))
        });
        let service = build(builder).build().expect("a service");
        Self { client: cx.serve(service.clone()).await, service, heard, list, asked, ran }
    }

    fn set(&self, list: List) {
        *self.list.lock().expect("a list") = list;
    }

    /// How often the list has been asked for since this was last looked at.
    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    async fn send(&self, call: Call) -> Outcome {
        self.ran.store(0, Ordering::SeqCst);
        let answer = self.client.send(call).await;
        let status = answer.status.as_u16();
        let response = answer.json().await;
        assert_eq!(response["id"], ID, "{response}");
        let ran = self.ran.load(Ordering::SeqCst);
        match response["error"]["code"].as_i64() {
            None => {
                assert_eq!((status, ran), (200, 1), "{response}");
                Outcome::Ran
            }
            Some(code) => {
                assert_eq!(ran, 0, "refused, yet the handler ran");
                Outcome::Error(status, code)
            }
        }
    }

    /// Calls `echo` for the region `eu`, with the right header.
    async fn right(&self) -> Outcome {
        self.send(tool_call(json!({"region": "eu"})).header(REGION, "eu")).await
    }

    /// The same with a wrong one.
    async fn wrong(&self) -> Outcome {
        self.send(tool_call(json!({"region": "eu"})).header(REGION, "us")).await
    }

    /// The same without.
    async fn bare(&self) -> Outcome {
        self.send(tool_call(json!({"region": "eu"}))).await
    }

    /// A client asks for the list.
    async fn list(&self, call: Call) -> Value {
        self.client.send(call).await.result().await
    }
}

impl List {
    async fn answer(self, request: &Request, cx: &RequestContext) -> Result<Reply, McpError> {
        match self {
            Self::Is(result) => Reply::of(&result),
            Self::Pages(page) => {
                let params: Value = request.params()?;
                Reply::of(&page(params["cursor"].as_str()))
            }
            Self::For(list) => Reply::of(&list(cx.principal().map(Principal::as_str))),
            Self::Fails => Err(McpError::invalid_params("no list today")),
            Self::FailsInside => Err(McpError::internal("the tool database is on fire")),
            Self::Panics => {
                tokio::task::yield_now().await;
                panic!("the list fell over")
            }
            Self::Waits(entered, until, result) => {
                entered.notify_one();
                until.notified().await;
                Reply::of(&result)
            }
        }
    }
}

/// A tool of this name whose argument `region` is mirrored.
fn annotated(name: &str) -> Value {
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"region": region}}})
}

/// The tool `echo` with nothing mirrored.
fn plain() -> Value {
    json!({"name": "echo", "inputSchema": {"type": "object"}})
}

/// A list that mirrors `region`.
fn strict() -> List {
    List::Is(json!({"tools": [annotated("echo")]}))
}

/// A list that mirrors nothing.
fn lax() -> List {
    List::Is(json!({"tools": [plain()]}))
}

async fn asked_once(cx: Cx) {
    let source = Source::open(cx, strict()).await;
    assert_eq!(source.asked(), 0, "nothing is asked before it is needed");
    assert_eq!(source.right().await, Outcome::Ran);
    assert_eq!(source.asked(), 1);
    for _ in 0..5 {
        assert_eq!(source.right().await, Outcome::Ran);
    }
    let other = Call::modern("tools/call", json!({"name": "other", "arguments": {"region": "eu"}}));
    assert_eq!(source.send(other).await, Outcome::Ran);
    assert_eq!(source.send(Call::modern("prompts/get", json!({"name": "echo"}))).await, Outcome::Ran);
    assert_eq!(source.asked(), 0, "and not again");
    assert_eq!(source.bare().await, REFUSED);
    assert_eq!(source.wrong().await, REFUSED);
}

/// The list is asked for in the caller's name, and what it sends on the way reaches nobody.
async fn caller(cx: Cx) {
    #[derive(Clone)]
    struct Trace(&'static str);

    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = Script::new({
        let seen = Arc::clone(&seen);
        move |request, cx| {
            let seen = Arc::clone(&seen);
            async move {
                if request.method() != "tools/list" {
                    return Reply::empty();
                }
                let params: Value = request.params()?;
                let header = |name: &str| cx.http()?.headers.get(name)?.to_str().ok().map(str::to_owned);
                seen.lock().expect("no panic").push(json!({
                    "meta": params["_meta"],
                    "cursor": params.get("cursor"),
                    "principal": cx.principal().map(Principal::as_str),
                    "revision": cx.revision().as_str(),
                    "client": cx.client_info().map(|info| info.name),
                    "sampling": cx.client_capabilities().declares(&["sampling"]),
                    "token": header("authorization"),
                    "trace": cx.extensions().get::<Trace>().map(|trace| trace.0),
                }));
                cx.progress(Progress::new(1.0)).await;
                cx.log(LogLevel::Emergency, "listing").await?;
                cx.notify("notifications/x", json!({})).await?;
                Reply::of(&json!({"tools": [annotated("echo")]}))
            }
        }
    });
    let builder = StreamableHttpService::builder(script).principal(|_| Some(Principal::new("ann")));
    let client = cx.serve(builder.build().expect("a service")).await;
    let mut call = tool_call(json!({"region": "eu"})).header(REGION, "eu").header("authorization", "Bearer x");
    call.set(&meta(CAPABILITIES), json!({"sampling": {}}));
    call.set(&meta(LOG_LEVEL), "debug");
    call.set("/params/_meta/progressToken", "t");
    call.extensions.insert(Trace("abc"));
    client.send(call).await.result().await;

    let trace = (cx.carrier == Carrier::Clock).then_some("abc");
    let expected = json!([{
        "meta": {
            CLAIM: "2026-07-28",
            CAPABILITIES: {"sampling": {}},
            CLIENT_INFO: {"name": "wire", "version": "1"},
        },
        "cursor": null,
        "principal": "ann",
        "revision": "2026-07-28",
        "client": "wire",
        "sampling": true,
        "token": "Bearer x",
        "trace": trace,
    }]);
    assert_eq!(json!(*seen.lock().expect("no panic")), expected);
}

/// `count` pages, the last of which has the annotated tool.
fn paged(cursor: Option<&str>, count: usize) -> Value {
    let page: usize = cursor.map_or(1, |cursor| cursor.parse().expect("one of our cursors"));
    if page == count {
        return json!({"tools": [annotated("echo")]});
    }
    json!({"tools": [{"name": format!("t{page}"), "inputSchema": {"type": "object"}}], "nextCursor": (page + 1).to_string()})
}

async fn pages(cx: Cx) {
    let source = Source::open(cx, List::Pages(|cursor| paged(cursor, 3))).await;
    assert_eq!(source.right().await, Outcome::Ran);
    assert_eq!(source.asked(), 3);
    assert_eq!(source.right().await, Outcome::Ran);
    assert_eq!(source.asked(), 0);
    assert_eq!(source.bare().await, REFUSED);
    assert_eq!(source.asked(), 3);
    // A page may be empty, and `null` is no cursor.
    source.set(List::Pages(|cursor| match cursor {
        None => json!({"tools": [], "nextCursor": ""}),
        Some("") => json!({"tools": [annotated("echo")], "nextCursor": null}),
        Some(other) => panic!("nobody gave out {other}"),
    }));
    source.service.changes().tools_list_changed();
    assert_eq!(source.bare().await, REFUSED);
    assert_eq!(source.asked(), 2);
}

async fn caps(cx: Cx) {
    let limited = |list: List, limits: Limits| Source::built(cx, list, |builder| builder.limits(limits));
    let three = List::Pages(|cursor| paged(cursor, 3));
    let source = limited(three.clone(), Limits::default().listing_pages(3)).await;
    assert_eq!(source.bare().await, REFUSED);
    let source = limited(three.clone(), Limits::default().listing_pages(2)).await;
    assert_eq!((source.right().await, source.asked()), (FAILED, 2), "one page too many");
    let source = limited(three.clone(), Limits::default().listing_tools(3)).await;
    assert_eq!(source.bare().await, REFUSED);
    let source = limited(three, Limits::default().listing_tools(2)).await;
    assert_eq!((source.right().await, source.asked()), (FAILED, 3), "one tool too many");
    // The defaults.
    let source = Source::open(cx, List::Pages(|cursor| paged(cursor, 100))).await;
    assert_eq!((source.bare().await, source.asked()), (REFUSED, 100));
    let source = Source::open(cx, List::Pages(|cursor| paged(cursor, 101))).await;
    assert_eq!((source.right().await, source.asked()), (FAILED, 100));
    let tools = |count: usize| {
        let mut tools = vec![plain(); count - 1];
        tools.push(annotated("echo"));
        List::Is(json!({ "tools": tools }))
    };
    assert_eq!(Source::open(cx, tools(10_000)).await.bare().await, REFUSED);
    let source = Source::open(cx, tools(10_001)).await;
    assert_eq!(source.right().await, FAILED);
    source.list(Call::modern("tools/list", json!({}))).await;
    assert_eq!(source.right().await, FAILED, "too much for one client, too much to learn from");
}

async fn cycles(cx: Cx) {
    let source = Source::open(cx, List::Pages(|_| json!({"tools": [annotated("echo")], "nextCursor": "a"}))).await;
    assert_eq!((source.right().await, source.asked()), (FAILED, 2), "a page that leads to itself");
    source.set(List::Pages(|cursor| {
        let next = match cursor {
            Some("a") => "b",
            Some("b") => "c",
            _ => "a",
        };
        json!({"tools": [annotated("echo")], "nextCursor": next})
    }));
    assert_eq!((source.right().await, source.asked()), (FAILED, 4), "a circle of three");
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 4), "nothing was learned on the way");
}

async fn principals(cx: Cx) {
    let source = Source::open(
        cx,
        List::For(|user| match user {
            Some("ann") => json!({"tools": [annotated("echo")]}),
            Some("bob") => json!({"tools": [plain()]}),
            _ => json!({"tools": []}),
        }),
    )
    .await;
    for _ in 0..2 {
        let bare = || tool_call(json!({"region": "eu"}));
        assert_eq!(source.send(bare().header("x-user", "ann").header(REGION, "eu")).await, Outcome::Ran);
        assert_eq!(source.send(bare().header("x-user", "bob").header(REGION, "us")).await, Outcome::Ran);
        assert_eq!(source.send(bare().header("x-user", "bob")).await, Outcome::Ran);
        assert_eq!(source.send(bare()).await, Outcome::Ran);
        assert_eq!(source.send(bare().header("x-user", "Ann")).await, Outcome::Ran, "another one");
    }
    assert_eq!(source.asked(), 4, "once for each of four");
    let bare = tool_call(json!({"region": "eu"})).header("x-user", "ann");
    assert_eq!(source.send(bare).await, REFUSED);
    // What is served to one teaches nothing about another.
    source.asked();
    source.list(Call::modern("tools/list", json!({})).header("x-user", "bob")).await;
    assert_eq!(source.asked(), 1);
    let right = tool_call(json!({"region": "eu"})).header("x-user", "ann").header(REGION, "eu");
    assert_eq!((source.send(right).await, source.asked()), (Outcome::Ran, 0));
}

async fn bounded(cx: Cx) {
    let source = Source::open(cx, strict()).await;
    let call = |user: usize| {
        source.send(tool_call(json!({"region": "eu"})).header(REGION, "eu").header("x-user", user.to_string()))
    };
    for user in 0..1024 {
        assert_eq!(call(user).await, Outcome::Ran);
        advance(Duration::from_millis(1)).await;
    }
    assert_eq!(source.asked(), 1024);
    assert_eq!(call(0).await, Outcome::Ran);
    assert_eq!(call(1023).await, Outcome::Ran);
    assert_eq!(source.asked(), 0, "all of them are known");
    assert_eq!(call(1024).await, Outcome::Ran);
    assert_eq!(source.asked(), 1, "one more than fits");
    for user in 1..=1024 {
        assert_eq!(call(user).await, Outcome::Ran);
    }
    assert_eq!(source.asked(), 0, "the rest is still known");
    assert_eq!(call(0).await, Outcome::Ran);
    assert_eq!(source.asked(), 1, "the first to expire had to go");
}

/// What does not matter here, does no harm here.
async fn odd_tools(cx: Cx) {
    let echo = annotated("echo");
    for tools in [
        json!([{"name": "x"}, echo]),
        json!([{"name": "x", "inputSchema": null}, echo]),
        json!([{"name": "x", "inputSchema": true}, echo]),
        json!([{"name": "x", "inputSchema": {"properties": 7}}, echo]),
        json!([{"name": "", "inputSchema": {}}, echo]),
        json!([{"name": "x\u{0}\u{1f600}", "inputSchema": {}, "icons": [1e300]}, echo]),
    ] {
        let source = Source::open(cx, List::Is(json!({"tools": tools, "more": {"ttlMs": 1}}))).await;
        assert_eq!(source.bare().await, REFUSED, "{tools}");
        assert_eq!(source.right().await, Outcome::Ran, "{tools}");
    }
    // Of a tool that is listed twice, the last one counts for the transport as for most clients.
    let source = Source::open(cx, List::Is(json!({"tools": [annotated("echo"), plain()]}))).await;
    assert_eq!(source.bare().await, Outcome::Ran);
    for name in ["ech\u{f6}", "echo\"", "echo\\"] {
        let source = Source::open(cx, List::Is(json!({"tools": [annotated(name)]}))).await;
        let call = || Call::modern("tools/call", json!({"name": name, "arguments": {"region": "eu"}}));
        assert_eq!(source.send(call()).await, REFUSED, "{name}");
        assert_eq!(source.send(call().header(REGION, "eu")).await, Outcome::Ran, "{name}");
    }
}

/// A handler that declares no tools is not asked for any.
async fn undeclared(cx: Cx) {
    let asked = Arc::new(AtomicUsize::new(0));
    let script = Script::new({
        let asked = Arc::clone(&asked);
        move |request, _| {
            asked.fetch_add(usize::from(request.method() == "tools/list"), Ordering::SeqCst);
            async { Reply::empty() }
        }
    });
    let client = cx.serve(StreamableHttpService::new(script.declaring(Capabilities::new().prompts()))).await;
    let answer = client.send(tool_call(json!({"region": "eu"})).header(REGION, "us")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
