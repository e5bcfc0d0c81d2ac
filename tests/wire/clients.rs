//! What real clients send, byte for byte, and what they trip over.
//!
//! The rules are the contract's, and their rows have tests of their own; here they are held against requests that nobody
//! made up for a test.

mod first;
mod legacy;
mod modern;
mod written;

use mcp_transport::{
    CancelCause, Capabilities, Era, LogLevel, McpError, Progress, Reply, Request, RequestContext, Revision,
    StreamableHttpBuilder, StreamableHttpService,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::harness::Wire;
use crate::support::fixture;
use crate::support::handler::Script;

pub fn register(wire: &mut Wire) {
    legacy::register(wire);
    modern::register(wire);
    first::register(wire);
    written::register(wire);
}

/// A server with the tools that the fixtures call, and what it sees of the sleeps.
fn building() -> (StreamableHttpBuilder, Sleeps) {
    let (entering, entered) = unbounded_channel();
    let (ending, ended) = unbounded_channel();
    let script = Script::new(move |request, cx| answer(request, cx, entering.clone(), ending.clone()))
        .declaring(Capabilities::new().tools_list_changed().logging());
    (StreamableHttpService::builder(script), Sleeps { entered, ended })
}

fn serving() -> (StreamableHttpService, Sleeps) {
    let (builder, sleeps) = building();
    (builder.build().expect("a service"), sleeps)
}

struct Sleeps {
    entered: UnboundedReceiver<()>,
    ended: UnboundedReceiver<Option<CancelCause>>,
}

impl Sleeps {
    /// Waits until a sleep has begun.
    async fn entered(&mut self) {
        self.entered.recv().await.expect("a handler");
    }

    /// Waits until a sleep was dropped, and returns what its context said of the cause.
    async fn ended(&mut self) -> Option<CancelCause> {
        self.ended.recv().await.expect("a handler")
    }
}

/// Every answer reports progress, for those who asked for it.
async fn answer(
    request: Request,
    cx: RequestContext,
    entering: UnboundedSender<()>,
    ending: UnboundedSender<Option<CancelCause>>,
) -> Result<Reply, McpError> {
    match (request.method(), request.name()) {
        ("tools/list", _) => {
            cx.progress(Progress::new(1.0)).await;
            Reply::of(json!({"tools": [], "revision": cx.revision().as_str()}))
        }
        ("tools/call", Some("count")) => {
            for n in 1..=5 {
                cx.progress(Progress::new(f64::from(n))).await;
                cx.log(LogLevel::Info, n).await?;
            }
            Reply::of(json!({"content": []}))
        }
        ("tools/call", Some("sleep")) => {
            let _asleep = Asleep { cx, ending };
            let _ = entering.send(());
            std::future::pending().await
        }
        ("tools/call", Some("change")) => {
            cx.changes().tools_list_changed();
            Reply::of(json!({"content": []}))
        }
        _ => Err(McpError::method_not_found()),
    }
}

struct Asleep {
    cx: RequestContext,
    ending: UnboundedSender<Option<CancelCause>>,
}

impl Drop for Asleep {
    fn drop(&mut self) {
        let _ = self.ending.send(self.cx.cancel_cause());
    }
}

/// The revisions up to 2025-11-25.
fn legacy_revisions() -> impl Iterator<Item = Revision> {
    Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy)
}

/// The id of a message, as its client wrote it.
fn id(client: &str, step: &str) -> Value {
    fixture::message(client, step)["id"].clone()
}

/// Waits for what has no other sign than its effect.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
