//! Where the transport learns which arguments are mirrored: from a hook, or from the handler's own `tools/list`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_transport::{
    Capabilities, Changes, ExchangeEnd, Limits, LogLevel, McpError, McpHandler, Notification, ParameterHeaders,
    ParameterSource, Principal, Progress, RefusalKind, Reply, Request, RequestContext, ServerInfo,
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
    wire.modern("param/source/hook", Carriers::Every, hook);
    wire.modern("param/source/caller", Carriers::Every, caller);
    wire.modern("param/source/pages", Carriers::Every, pages);
    wire.modern("param/source/caps", Carriers::Clock, caps);
    wire.modern("param/source/cycles", Carriers::Every, cycles);
    wire.modern("param/source/principals", Carriers::Every, principals);
    wire.modern("param/source/bounded", Carriers::Clock, bounded);
    wire.modern("param/source/ttl", Carriers::Clock, time_to_live);
    wire.modern("param/source/ttl-of-pages", Carriers::Clock, time_to_live_of_pages);
    wire.modern("param/source/changes", Carriers::Every, published);
    wire.modern("param/source/changes-meanwhile", Carriers::Every, published_meanwhile);
    wire.modern("param/source/served", Carriers::Every, served);
    wire.modern("param/source/served-pages", Carriers::Every, served_pages);
    wire.modern("param/source/once-more", Carriers::Every, once_more);
    wire.modern("param/source/fails", Carriers::Every, fails);
    wire.modern("param/source/fails-after", Carriers::Every, fails_after);
    wire.modern("param/source/told", Carriers::Every, told);
    wire.modern("param/source/slow", Carriers::Clock, slow);
    wire.modern("param/source/leave", Carriers::Every, leave);
    wire.modern("param/source/odd-tools", Carriers::Every, odd_tools);
    wire.modern("param/source/undeclared", Carriers::Every, undeclared);
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

/// A handler with a hook of its own.
struct Hooked {
    script: Script,
    hook: fn(&str, &RequestContext) -> ParameterSource,
}

impl McpHandler for Hooked {
    fn server_info(&self) -> ServerInfo {
        self.script.server_info()
    }

    fn capabilities(&self) -> Capabilities {
        self.script.capabilities()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        self.script.request(request, cx).await
    }

    async fn notification(&self, notification: Notification, cx: RequestContext) {
        self.script.notification(notification, cx).await;
    }

    fn parameter_headers(&self, tool: &str, cx: &RequestContext) -> ParameterSource {
        (self.hook)(tool, cx)
    }
}

async fn hook(cx: Cx) {
    fn known(tool: &str, cx: &RequestContext) -> ParameterSource {
        let schema = annotated("x")["inputSchema"].take();
        match tool {
            "strict" => ParameterSource::Known(Arc::new(ParameterHeaders::of_schema(&schema))),
            "lax" => ParameterSource::Known(Arc::default()),
            "by caller" if cx.http().is_some_and(|head| head.headers.contains_key("x-user")) => known("strict", cx),
            "by caller" => known("lax", cx),
            "bad" => {
                let schema = json!({"properties": {"region": {"type": "number", "x-mcp-header": "Region"}}});
                ParameterSource::Known(Arc::new(ParameterHeaders::of_schema(&schema)))
            }
            "broken" => panic!("the hook fell over"),
            _ => ParameterSource::Listing,
        }
    }
    let (asked, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let script = Script::new({
        let (asked, ran) = (Arc::clone(&asked), Arc::clone(&ran));
        move |request, _| {
            let listing = request.method() == "tools/list";
            if listing { &asked } else { &ran }.fetch_add(1, Ordering::SeqCst);
            async move { Reply::of(&json!({"tools": [annotated("listed"), annotated("lax")]})) }
        }
    });
    let heard = Heard::default();
    let handler = Arc::new(Hooked { script, hook: known });
    let service = StreamableHttpService::builder(handler).observer(heard.clone()).build().expect("a service");
    let client = cx.serve(service).await;
    let send = |name: &str, header: Option<&str>, user: bool| {
        let mut call = Call::modern("tools/call", json!({"name": name, "arguments": {"region": "eu"}}));
        header.into_iter().for_each(|value| call.put(REGION, value));
        if user {
            call.put("x-user", "a");
        }
        let client = client.clone();
        async move { client.send(call).await.json().await["error"]["code"].as_i64() }
    };
    assert_eq!(send("strict", Some("eu"), false).await, None);
    assert_eq!(send("strict", Some("us"), false).await, Some(MISMATCH));
    assert_eq!(send("strict", None, false).await, Some(MISMATCH));
    assert_eq!(send("lax", None, false).await, None);
    assert_eq!(send("lax", Some("us"), false).await, None, "what the hook says is all");
    assert_eq!(send("by caller", None, true).await, Some(MISMATCH));
    assert_eq!(send("by caller", None, false).await, None);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "no list was asked for");
    assert_eq!(ran.load(Ordering::SeqCst), 4);

    assert_eq!(send("listed", None, false).await, Some(MISMATCH));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the hook sent it to the list");

    for _ in 0..2 {
        assert_eq!(send("bad", Some("us"), false).await, None);
    }
    let told = heard.misuses();
    assert!(told.len() == 1 && told[0].contains("\"bad\"") && told[0].contains("/properties/region"), "{told:?}");

    assert_eq!(send("broken", Some("eu"), false).await, Some(INTERNAL));
    assert_eq!(heard.panics(), ["the hook fell over"]);
    assert_eq!(ran.load(Ordering::SeqCst), 6);
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
            None => "a",
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

async fn time_to_live(cx: Cx) {
    let listed = |ttl: Value| List::Is(json!({"tools": [annotated("echo")], "ttlMs": ttl}));
    for (ttl, kept) in [
        (json!(5000), 5000),
        (json!(1), 1),
        (json!(3_600_000), 3_600_000),
        // What is no time is as good as none.
        (json!(-5), 60_000),
        (json!("5000"), 60_000),
        (json!(null), 60_000),
        (json!(1.5), 60_000),
        (json!({}), 60_000),
    ] {
        let source = Source::open(cx, listed(ttl.clone())).await;
        assert_eq!(source.right().await, Outcome::Ran, "{ttl}");
        assert_eq!(source.asked(), 1, "{ttl}");
        advance(Duration::from_millis(kept - 1)).await;
        assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0), "{ttl}: still fresh");
        advance(Duration::from_millis(2)).await;
        assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 1), "{ttl}: stale");
    }
    for forever in [u64::MAX, u64::MAX / 2, 1 << 53] {
        let source = Source::open(cx, listed(forever.into())).await;
        assert_eq!(source.right().await, Outcome::Ran, "{forever}");
        advance(Duration::from_secs(1 << 30)).await;
        assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 1), "{forever}");
    }
    let source = Source::open(cx, strict()).await;
    assert_eq!(source.right().await, Outcome::Ran);
    advance(Duration::from_millis(59_999)).await;
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 1), "a minute by default");
    // A list that is served begins anew.
    source.list(Call::modern("tools/list", json!({}))).await;
    advance(Duration::from_millis(59_999)).await;
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 1));
    // Staleness shows: the new list is what counts.
    source.set(lax());
    advance(Duration::from_millis(2)).await;
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 1));
    source.set(strict());
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0));
    advance(Duration::from_millis(60_001)).await;
    assert_eq!((source.bare().await, source.asked()), (REFUSED, 1));
}

/// Pages may differ in how long they keep; the list keeps as long as all of them do.
async fn time_to_live_of_pages(cx: Cx) {
    for order in [
        (|cursor: Option<&str>| match cursor {
            None => json!({"tools": [annotated("echo")], "nextCursor": "2", "ttlMs": 1000}),
            _ => json!({"tools": [], "ttlMs": 50_000}),
        }) as fn(Option<&str>) -> Value,
        |cursor| match cursor {
            None => json!({"tools": [annotated("echo")], "nextCursor": "2", "ttlMs": 50_000}),
            _ => json!({"tools": [], "ttlMs": 1000}),
        },
        |cursor| match cursor {
            None => json!({"tools": [annotated("echo")], "nextCursor": "2", "ttlMs": 1000}),
            _ => json!({"tools": []}),
        },
    ] {
        let source = Source::open(cx, List::Pages(order)).await;
        assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 2));
        advance(Duration::from_millis(999)).await;
        assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0));
        advance(Duration::from_millis(2)).await;
        assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 2));
    }
}

async fn published(cx: Cx) {
    let changes = Changes::new();
    let source = Source::built(cx, lax(), |builder| builder.changes(&changes)).await;
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 1));
    source.set(strict());
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0), "nobody said a word");
    for other in [Changes::prompts_list_changed, Changes::resources_list_changed] {
        other(&changes);
    }
    changes.resource_updated("file:///tools");
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0), "of the tools, nobody did");
    changes.tools_list_changed();
    assert_eq!((source.bare().await, source.asked()), (REFUSED, 1));
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0));
    source.service.changes().clone().tools_list_changed();
    source.set(lax());
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 1), "the service's handle is the same one");
}

/// A change that is published while a list is being made makes that list stale.
async fn published_meanwhile(cx: Cx) {
    for serving in [false, true] {
        let (entered, until) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let old = json!({"tools": [plain()]});
        let source = Source::open(cx, List::Waits(Arc::clone(&entered), Arc::clone(&until), old)).await;
        let first = if serving { Call::modern("tools/list", json!({})) } else { tool_call(json!({"region": "eu"})) };
        let answer = async {
            let answer = source.client.send(first).await;
            assert_eq!(answer.status, 200);
            answer.result().await
        };
        let change = async {
            entered.notified().await;
            source.set(strict());
            source.service.changes().tools_list_changed();
            until.notify_one();
        };
        tokio::join!(answer, change);
        source.asked();
        assert_eq!((source.bare().await, source.asked()), (REFUSED, 1), "serving: {serving}");
    }
}

async fn served(cx: Cx) {
    let source = Source::open(cx, strict()).await;
    source.list(Call::modern("tools/list", json!({}))).await;
    assert_eq!(source.asked(), 1);
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0), "learned from the first list served");
    // The new list demands what the old one did not, and the other way round.
    source.set(lax());
    source.list(Call::modern("tools/list", json!({}))).await;
    source.asked();
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0));
    source.set(strict());
    source.list(Call::modern("tools/list", json!({}))).await;
    source.asked();
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0));
    assert_eq!((source.bare().await, source.asked()), (REFUSED, 1));
    // A tool that is gone is gone.
    source.set(List::Is(json!({"tools": []})));
    source.list(Call::modern("tools/list", json!({}))).await;
    source.asked();
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0));
    // `null` is no cursor.
    source.set(strict());
    source.list(Call::modern("tools/list", json!({"cursor": null}))).await;
    source.asked();
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0));
    source.set(lax());
    source.list(Call::modern("tools/list", json!({"cursor": null}))).await;
    source.asked();
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0));
    // A list that fails teaches nothing.
    source.set(List::Fails);
    let answer = source.client.send(Call::modern("tools/list", json!({}))).await;
    assert_eq!(answer.status, 400);
    source.asked();
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0));
}

async fn served_pages(cx: Cx) {
    let page = |cursor: Option<&str>| {
        let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        Call::modern("tools/list", params)
    };
    let source = Source::open(cx, List::Pages(|cursor| paged(cursor, 2))).await;
    // One page of two is not the list: nothing is known of the other.
    source.list(page(None)).await;
    source.asked();
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 2));
    source.list(page(Some("2"))).await;
    source.asked();
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0));
    // The second page now says something else of its tool.
    source.set(List::Pages(|cursor| match cursor {
        None => json!({"tools": [], "nextCursor": "2"}),
        _ => json!({"tools": [plain()]}),
    }));
    source.list(page(Some("2"))).await;
    source.asked();
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 0));
    source.set(List::Pages(|cursor| paged(cursor, 2)));
    source.list(page(Some("2"))).await;
    source.asked();
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0));
    assert_eq!((source.bare().await, source.asked()), (REFUSED, 2));
    // A single page that is asked for by cursor is no whole list either.
    let fresh = Source::open(cx, List::Pages(|cursor| paged(cursor, 2))).await;
    fresh.list(page(Some("2"))).await;
    fresh.asked();
    assert_eq!((fresh.right().await, fresh.asked()), (Outcome::Ran, 2));
}

async fn once_more(cx: Cx) {
    let source = Source::open(cx, strict()).await;
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 1));
    // A tool changes and nobody says so.
    source.set(lax());
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0), "what agrees is not asked about");
    assert_eq!((source.bare().await, source.asked()), (Outcome::Ran, 1), "what does not is not refused unasked");
    assert_eq!((source.wrong().await, source.asked()), (Outcome::Ran, 0), "and what was learned stays");
    source.set(strict());
    source.service.changes().tools_list_changed();
    for _ in 0..3 {
        assert_eq!((source.wrong().await, source.asked()), (REFUSED, 1), "once, not more");
    }
    assert_eq!((source.right().await, source.asked()), (Outcome::Ran, 0));
    // The annotation moved to another header.
    let zone = json!({"type": "string", "x-mcp-header": "Zone"});
    source.set(List::Is(json!({"tools": [{"name": "echo", "inputSchema": {"properties": {"region": zone}}}]})));
    let call = || tool_call(json!({"region": "eu"})).header("mcp-param-zone", "eu");
    assert_eq!((source.send(call()).await, source.asked()), (Outcome::Ran, 1));
    assert_eq!((source.send(call()).await, source.asked()), (Outcome::Ran, 0));
}

/// Lists that count as failed.
fn failing() -> Vec<(&'static str, List)> {
    vec![
        ("an error", List::Fails),
        ("an internal error", List::FailsInside),
        ("a panic", List::Panics),
        ("no tools", List::Is(json!({}))),
        ("tools that are no list", List::Is(json!({"tools": {}}))),
        ("a tool that is none", List::Is(json!({"tools": [annotated("echo"), 7]}))),
        ("a tool without a name", List::Is(json!({"tools": [{"inputSchema": {}}]}))),
        ("a cursor that is none", List::Is(json!({"tools": [], "nextCursor": 7}))),
        ("a circle", List::Is(json!({"tools": [], "nextCursor": "a"}))),
        ("a second page that fails", {
            List::Pages(|cursor| match cursor {
                None => json!({"tools": [annotated("echo")], "nextCursor": "2"}),
                _ => json!({}),
            })
        }),
    ]
}

async fn fails(cx: Cx) {
    for (what, list) in failing() {
        let source = Source::open(cx, list).await;
        for value in ["eu", "us"] {
            let call = tool_call(json!({"region": "eu"})).header(REGION, value);
            assert_eq!(source.send(call).await, FAILED, "{what}: with a header it cannot be checked");
            assert_eq!(source.heard.refusals(), [RefusalKind::ListingFailed], "{what}");
            assert_eq!(source.heard.misuses(), [""; 0], "{what}");
        }
        let foreign = tool_call(json!({})).header("mcp-param-anything", "x");
        assert_eq!(source.send(foreign).await, FAILED, "{what}: any parameter header may be one");
        source.heard.refusals();

        assert_eq!(source.bare().await, Outcome::Ran, "{what}: without one it goes on");
        let told = source.heard.misuses();
        assert!(told.len() == 1 && told[0].contains("tools/list") && told[0].contains("\"echo\""), "{what}: {told:?}");
        assert_eq!(source.heard.refusals(), [], "{what}");

        source.asked();
        source.set(strict());
        assert_eq!(source.bare().await, REFUSED, "{what}: it works again");
        assert_eq!(source.right().await, Outcome::Ran, "{what}: it works again");
        assert_eq!(source.asked(), 1, "{what}");
        assert_eq!(source.heard.misuses(), [""; 0], "{what}");
    }
}

async fn fails_after(cx: Cx) {
    for (what, list) in failing() {
        let source = Source::open(cx, strict()).await;
        assert_eq!(source.right().await, Outcome::Ran);
        source.set(list);
        source.service.changes().tools_list_changed();
        for _ in 0..2 {
            source.asked();
            assert_eq!(source.right().await, Outcome::Ran, "{what}: the last good one is used");
            assert_ne!(source.asked(), 0, "{what}: and another is asked for");
            assert_eq!(source.wrong().await, REFUSED, "{what}");
            assert_eq!(source.bare().await, REFUSED, "{what}");
            assert_eq!(source.send(tool_call(json!({}))).await, Outcome::Ran, "{what}");
        }
        assert_eq!(source.heard.misuses(), [""; 0], "{what}: all calls were checked");
        // One principal's list is no other's last good one.
        let bob = tool_call(json!({"region": "eu"})).header("x-user", "bob");
        assert_eq!(source.send(bob).await, Outcome::Ran, "{what}");
        let bob = tool_call(json!({"region": "eu"})).header("x-user", "bob").header(REGION, "eu");
        assert_eq!(source.send(bob).await, FAILED, "{what}");

        source.set(lax());
        assert_eq!(source.bare().await, Outcome::Ran, "{what}: it works again");
    }
}

/// The application hears why its list failed; the client does not.
async fn told(cx: Cx) {
    for (list, panics, errors) in [
        (List::Panics, &["the list fell over"][..], 0),
        (List::FailsInside, &[][..], 1),
        (List::Fails, &[][..], 0),
        (List::Is(json!({})), &[][..], 0),
    ] {
        let source = Source::open(cx, list).await;
        let answer = source.client.send(tool_call(json!({"region": "eu"})).header(REGION, "eu")).await;
        let response = answer.json().await;
        assert_eq!(response["error"], json!({"code": INTERNAL, "message": "Internal error"}));
        assert_eq!(source.heard.panics(), panics);
        let told = source.heard.internal_errors();
        assert_eq!(told.len(), errors, "{told:?}");
        assert!(told.iter().all(|text| text.contains("on fire")), "{told:?}");
    }
}

/// A list that takes its time is part of the request: its clock runs, and what comes of it travels on its stream.
async fn slow(cx: Cx) {
    let (entered, until) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let waits = List::Waits(Arc::clone(&entered), Arc::clone(&until), json!({"tools": [annotated("echo")]}));
    let source = Source::open(cx, waits.clone()).await;
    let mut answer = source.client.send(tool_call(json!({"region": "eu"}))).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
    until.notify_one();
    let response = answer.next_message().await.expect("a response");
    assert_eq!((&response["id"], &response["error"]["code"]), (&json!(ID), &json!(MISMATCH)));
    assert_eq!(answer.next_message().await, None);
    assert_eq!(source.ran.load(Ordering::SeqCst), 0);

    let limits = Limits::default().handler_time(Duration::from_secs(5));
    let source = Source::built(cx, waits, |builder| builder.limits(limits)).await;
    assert_eq!(source.right().await, FAILED, "its time is the handler's time");
    assert_eq!(source.heard.refusals(), []);
}

/// A client that leaves while the tools are asked for takes the question along.
async fn leave(cx: Cx) {
    let (entered, until) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let result = json!({"tools": []});
    let source = Source::open(cx, List::Waits(Arc::clone(&entered), Arc::clone(&until), result)).await;
    let client = source.client.clone();
    let asking = tokio::spawn(async move { client.send(tool_call(json!({}))).await });
    entered.notified().await;
    asking.abort();
    let (method, end) = source.heard.end().await;
    assert_eq!(method, "tools/call");
    assert!(matches!(end, ExchangeEnd::Cancelled(_)), "{end:?}");
    assert_eq!(Arc::strong_count(&until), 2, "the list's future is gone: here and in the list itself are left");
    assert_eq!(source.ran.load(Ordering::SeqCst), 0);
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
