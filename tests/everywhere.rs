//! The kit for applications (`testing::everywhere`), on handlers that are the same everywhere and on some that are not.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt;
use mcp_transport::testing::{Carrier, Client, Everywhere, everywhere};
use mcp_transport::{
    Capabilities, Changes, Era, LogLevel, McpError, McpHandler, Notification, Progress, Question, Reply, Request,
    RequestContext, ResultShape, Revision, ServerInfo, StreamableHttpService,
};
use serde_json::{Value, json};

/// Does what the name of the tool says, the same for everybody unless it says otherwise.
#[derive(Default)]
struct Tools {
    heard: AtomicU32,
    changes: Changes,
}

impl McpHandler for Tools {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("tools", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed().resources().logging()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "tools/list" => {
                let output = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
                let tool = json!({ "name": "t", "inputSchema": { "type": "object" }, "outputSchema": output });
                Reply::of(json!({ "tools": [tool], "ttlMs": 60_000, "cacheScope": "public" }))
            }
            "resources/read" => Err(McpError::resource_not_found(request.uri().unwrap_or_default())),
            _ => self.tool(request.name().unwrap_or_default(), &cx).await,
        }
    }

    async fn notification(&self, notification: Notification, _: RequestContext) {
        self.heard.fetch_add(1, Ordering::SeqCst);
        if notification.method() == "notifications/endless" {
            std::future::pending::<()>().await;
        }
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

impl Tools {
    async fn tool(&self, name: &str, cx: &RequestContext) -> Result<Reply, McpError> {
        match name {
            "reports" => {
                for done in [1.0, 2.0] {
                    cx.progress(Progress::new(done)).await;
                }
                cx.log(LogLevel::Warning, "careful").await?;
                cx.notify("notifications/acme", json!({ "n": 1 })).await?;
                Reply::of(text("reported"))
            }
            "shapes" => {
                let link = json!({ "type": "resource_link", "name": "notes", "uri": "file:///notes" });
                let audio = json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" });
                Reply::of(json!({ "content": [link, audio], "_meta": { "mine": 1 } }))
            }
            "structured" => Reply::of(json!({ "content": [], "structuredContent": { "n": 1, "a": [2] } })),
            "array" => Reply::of(json!({ "content": [], "structuredContent": [1, 2] })),
            "heard" => Reply::of(text(&self.heard.load(Ordering::SeqCst).to_string())),
            "breaks" => Err(McpError::internal("broken")),
            "needs" => Err(McpError::missing_capabilities(json!({ "roots": {} }))),
            "asks" => {
                cx.progress(Progress::new(1.0)).await;
                let schema = json!({ "type": "object", "properties": {} });
                let first = cx.ask("first", Question::form("First?", schema.clone())?).await?;
                let second = cx.ask("second", Question::form("Second?", schema)?).await?;
                Reply::of(text(&format!("{:?} {:?}", first.action(), second.action())))
            }
            "changes" => {
                self.changes.tools_list_changed();
                Reply::of(text("changed"))
            }
            "never" => std::future::pending().await,
            // Not the same everywhere.
            "revision" => Reply::of(text(cx.revision().as_str())),
            "chatty" => {
                if cx.session().is_some() {
                    cx.progress(Progress::new(1.0)).await;
                }
                Reply::of(text("said"))
            }
            "fails-for-old" if cx.revision() < Revision::V2025_06_18 => Err(McpError::invalid_params("too old")),
            "leaks" => Reply::of(json!({ "content": [], "resultType": "complete", "ttlMs": 1 })),
            _ => Reply::of(text("ok")),
        }
    }
}

fn call(name: &str) -> Value {
    json!({ "name": name, "_meta": { "progressToken": "t" } })
}

fn tools(names: &[&str]) -> Everywhere {
    names.iter().fold(everywhere(Tools::default), |all, name| all.call("tools/call", call(name)))
}

/// What a run that fails says.
async fn failure(all: Everywhere) -> String {
    let panic = AssertUnwindSafe(all.run()).catch_unwind().await.expect_err("it fails");
    panic.downcast_ref::<String>().expect("a text").clone()
}

#[tokio::test]
async fn what_is_the_same_is_the_same() {
    let all = tools(&["reports", "shapes", "structured", "array", "breaks", "needs", "x"]);
    let all = all.call("tools/list", ()).call("resources/read", json!({ "uri": "file:///none" }));
    let outcomes = all.call("acme/none", json!({ "name": "x" })).run().await;
    assert_eq!(outcomes.len(), 10);
    let methods: Vec<_> = outcomes[0].notifications().iter().map(|told| told["method"].clone()).collect();
    let progress = "notifications/progress";
    assert_eq!(methods, [progress, progress, "notifications/message", "notifications/acme"]);
    assert_eq!(outcomes[1].result()["_meta"]["mine"], 1);
    assert_eq!(outcomes[4].error()["code"], -32603);
    assert_eq!(outcomes[5].error()["code"], -32021);
    assert_eq!(outcomes[7].result()["ttlMs"], 60_000);
    assert_eq!(outcomes[8].error()["code"], -32602);
}

/// Each place has a handler of its own, which hears what is sent in order.
#[tokio::test]
async fn every_place_begins_anew() {
    let all = everywhere(Tools::default).notify("notifications/acme", ()).call("tools/call", call("heard"));
    let outcomes = all.notify("notifications/acme", ()).call("tools/call", call("heard")).run().await;
    let said: Vec<_> = outcomes.iter().map(|outcome| outcome.result()["content"][0]["text"].clone()).collect();
    assert_eq!(said, ["1", "2"]);
}

#[tokio::test]
async fn questions_are_answered_in_both_eras() {
    let all = tools(&["asks"]).capabilities(json!({ "elicitation": {} }));
    let all = all.only(|place| {
        let is_reachable = place.revision.era() == Era::Modern || place.carrier != Carrier::Http;
        is_reachable && place.revision >= Revision::V2025_06_18
    });
    let outcomes = all
        .answering(|method, params| {
            assert_eq!(method, "elicitation/create");
            json!({ "action": if params["message"] == "First?" { "decline" } else { "cancel" } })
        })
        .run()
        .await;
    assert_eq!(outcomes[0].result()["content"][0]["text"], "Some(Decline) Some(Cancel)");
}

#[tokio::test]
async fn a_question_that_nothing_answers_is_said() {
    let all = tools(&["asks"]).capabilities(json!({ "elicitation": {} }));
    let said = failure(all).await;
    assert_eq!(said, "2026-07-28 over HTTP: elicitation/create was asked, and nothing answers");
}

#[tokio::test]
async fn what_differs_is_named_with_its_place_and_call() {
    let said = failure(tools(&["x", "revision"])).await;
    // Of 13 places: the other one of the same revision is equal.
    assert!(said.starts_with("11 faults\n- "), "{said}");
    assert!(
        said.contains(
            "2025-06-18 over HTTP in a session: tools/call (2) is not as 2026-07-28 over HTTP at \
             /response/result/content/0/text\n    expected \"2026-07-28\"\n    got      \"2025-06-18\""
        ),
        "{said}"
    );
    assert!(!said.contains("2026-07-28 on a byte stream"), "{said}");

    let said = failure(tools(&["chatty"])).await;
    assert!(said.starts_with("8 faults"), "in four sessions over HTTP, and four on byte streams: {said}");
    assert!(said.contains("at /notifications/0\n    expected nothing"), "{said}");

    let said = failure(tools(&["fails-for-old"])).await;
    assert!(said.starts_with("5 faults"), "{said}");
    assert!(said.contains("2025-03-26 over HTTP: tools/call (1)") && said.contains("got      {"), "{said}");
}

/// With `AsWritten` a handler is on its own, and what it writes for one era goes to both.
#[tokio::test]
async fn a_leak_is_caught() {
    tools(&["leaks"]).run().await;
    let as_written = |all: Everywhere| {
        let all = all.http(|builder| builder.result_shape(ResultShape::AsWritten));
        all.stdio(|builder| builder.result_shape(ResultShape::AsWritten))
    };
    let said = failure(as_written(tools(&["leaks"]).call("tools/list", ()))).await;
    for place in ["2024-11-05 over HTTP in a session", "2025-11-25 over HTTP", "2025-03-26 on a byte stream"] {
        for leak in ["tools/call (1) leaks `resultType`", "tools/list (2) leaks `ttlMs`"] {
            assert!(said.contains(&format!("\n- {place}: {leak} in a result\n")), "{said}");
        }
    }
    assert!(!said.contains("\n- 2026-07-28"), "{said}");
    assert!(!said.contains("tools/call (1) leaks `ttlMs`"), "there it is the handler's own: {said}");
}

/// On a byte stream they come between its answers, elsewhere on a stream of their own.
#[tokio::test]
async fn published_changes_are_not_compared() {
    let changes = Changes::new();
    let [handler, http, stdio] = [changes.clone(), changes.clone(), changes];
    let all = everywhere(move || Tools { changes: handler.clone(), ..Tools::default() });
    let all = all.http(move |builder| builder.changes(&http)).stdio(move |builder| builder.changes(&stdio));
    let outcomes = all.call("tools/call", call("changes")).call("tools/call", call("x")).run().await;
    assert_eq!(outcomes[1].result()["content"][0]["text"], "ok");
    assert!(outcomes.iter().all(|outcome| outcome.notifications().is_empty()));
}

/// Nor is a hook: also where nothing but the wait itself moves the clock.
#[tokio::test(start_paused = true)]
async fn a_hook_is_waited_for_a_second() {
    let all = everywhere(Tools::default).notify("notifications/endless", ()).call("tools/call", call("heard"));
    assert_eq!(all.run().await[0].result()["content"][0]["text"], "1");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_waited_for_for_ever() {
    for carrier in [Carrier::Http, Carrier::HttpSession, Carrier::Stdio] {
        let said = failure(tools(&["never"]).only(move |place| place.carrier == carrier)).await;
        assert!(said.contains("tools/call (1) was not answered within a minute"), "{said}");
    }
}

#[tokio::test]
async fn a_place_has_to_be_left() {
    assert_eq!(failure(tools(&["x"]).only(|_| false)).await, "there is no place left to run in");
}

#[tokio::test]
async fn a_session_is_opened_for_the_client() {
    let client = Client::new(StreamableHttpService::new(Tools::default())).capabilities(json!({ "roots": {} }));
    for revision in Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy) {
        let session = client.session(revision).await;
        assert_eq!(session.initialized()["protocolVersion"], revision.as_str());
        assert_eq!(
            session.call("tools/call", call("revision")).await.result()["content"][0]["text"],
            revision.as_str()
        );
        let stream = session.listen().await;
        assert_eq!(stream.status, 200);
        let again = session.clone();
        assert_eq!(session.end().await.status, 204);
        assert_eq!(again.call("ping", ()).await.status, 404);
    }
    let panic =
        AssertUnwindSafe(client.session(Revision::V2026_07_28)).catch_unwind().await.expect_err("there is none");
    assert_eq!(panic.downcast_ref::<String>().expect("a text"), "2026-07-28 has no sessions");
}
