//! What handlers send before their answers, and who waits for whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_transport::{LogLevel, Progress, Reply, RequestContext};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::peer::Peer;
use crate::support::request::LOG_LEVEL;

pub fn register(wire: &mut Wire) {
    wire.any("progress/rules/stdio", Carriers::Clock, progress);
    wire.any("log/declared/stdio", Carriers::Clock, undeclared_logging);
    wire.modern("log/gated/stdio", Carriers::Clock, gated);
    wire.any("answer/after-end/stdio", Carriers::Clock, nothing_after_the_answer);
    wire.any("stdio/backpressure", Carriers::Clock, a_stalled_reader_stops_the_handlers);
    wire.any("stdio/backpressure/cancel", Carriers::Clock, reading_goes_on);
}

async fn progress(cx: Cx) {
    let script = Script::new(|_, cx: RequestContext| async move {
        for step in [1.0, 1.0, 0.5, 2.0, f64::NAN, 3.5] {
            cx.progress(Progress::new(step).total(4.0)).await;
        }
        let late = cx.clone();
        tokio::spawn(async move { late.progress(Progress::new(9.0)).await });
        Reply::empty()
    });
    let mut peer = Peer::open(cx.revision, script).await;
    for token in [json!("token"), json!(7)] {
        let mut request = peer.request(1, "x/y", Value::Null);
        request["params"]["_meta"]["progressToken"] = token.clone();
        peer.send(request).await;
        for step in [json!(1), json!(2), json!(3.5)] {
            let params = json!({"progressToken": token, "progress": step, "total": 4});
            assert_eq!(
                peer.heard().await,
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            );
        }
        assert!(peer.heard().await["result"].is_object());
        peer.silence().await;
    }
    for token in [json!(null), json!(1.5), json!({}), json!(true)] {
        let mut request = peer.request(1, "x/y", Value::Null);
        request["params"]["_meta"]["progressToken"] = token;
        peer.ask(request).await;
    }
    peer.ask(peer.request(1, "x/y", Value::Null)).await;
}

fn logging() -> Script {
    Script::new(|_, cx: RequestContext| async move {
        for level in [LogLevel::Debug, LogLevel::Warning, LogLevel::Emergency] {
            cx.log(level, "text").await?;
        }
        Reply::empty()
    })
}

async fn undeclared_logging(cx: Cx) {
    let script = logging().declaring(mcp_transport::Capabilities::new().tools());
    let mut peer = Peer::open(cx.revision, script).await;
    let mut request = peer.request(1, "x/y", Value::Null);
    request["params"]["_meta"][LOG_LEVEL] = json!("debug");
    if cx.modern() {
        peer.ask(request).await;
    } else {
        peer.ask(peer.request(1, "x/y", Value::Null)).await;
    }
}

async fn gated(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, logging());
    // The level of a handshake's session is not theirs.
    peer.ask(crate::support::peer::initialize("hello", mcp_transport::Revision::V2025_11_25)).await;
    peer.ask(peer.request(1, "x/y", Value::Null)).await;
    for (least, count) in [("debug", 3), ("warning", 2), ("emergency", 1)] {
        let mut request = peer.request(1, "x/y", Value::Null);
        request["params"]["_meta"][LOG_LEVEL] = json!(least);
        peer.send(request).await;
        for message in peer.heard_all(count).await {
            assert_eq!(message["method"], "notifications/message");
        }
        assert!(peer.heard().await["result"].is_object());
    }
}

async fn nothing_after_the_answer(cx: Cx) {
    let script = Script::new(|_, cx: RequestContext| async move {
        tokio::spawn(async move {
            for n in 0..10 {
                tokio::task::yield_now().await;
                let _ = cx.notify("notifications/x", json!({"n": n})).await;
            }
        });
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        Reply::empty()
    });
    let mut peer = Peer::open(cx.revision, script).await;
    peer.send(peer.request(1, "x/y", Value::Null)).await;
    while peer.heard().await.get("id").is_none() {}
    peer.silence().await;
}

/// A handler that sends far more than fits, and counts how much of it was taken.
fn flood(sent: &Arc<AtomicUsize>) -> Script {
    let sent = Arc::clone(sent);
    Script::new(move |request, cx: RequestContext| {
        let sent = Arc::clone(&sent);
        async move {
            if request.method() == "x/flood" {
                for n in 0..1000 {
                    cx.notify("notifications/x", json!({"n": n, "pad": "x".repeat(1000)})).await?;
                    sent.fetch_add(1, Ordering::SeqCst);
                }
            }
            Reply::of(json!({"method": request.method()}))
        }
    })
}

const PIPE: usize = 4096;

async fn a_stalled_reader_stops_the_handlers(cx: Cx) {
    let sent = Arc::new(AtomicUsize::new(0));
    let limits = mcp_transport::Limits::default().queue_bytes(16 << 10);
    let mut peer = Peer::built(cx.revision, flood(&sent), PIPE, |builder| builder.limits(limits)).ready().await;
    peer.send(peer.request("flood", "x/flood", Value::Null)).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let taken = sent.load(Ordering::SeqCst);
    // What is on its way in the pipe, being written, and queued.
    assert!((8..40).contains(&taken), "{taken}");
    for n in 0..1000 {
        assert_eq!(peer.heard().await["params"]["n"], n);
    }
    assert_eq!(peer.heard().await["id"], "flood");
    assert_eq!(sent.load(Ordering::SeqCst), 1000);
}

/// Requests and cancellations are read while nothing can be written; answers wait for their turn.
async fn reading_goes_on(cx: Cx) {
    let sent = Arc::new(AtomicUsize::new(0));
    let limits = mcp_transport::Limits::default().queue_bytes(16 << 10);
    let mut peer = Peer::built(cx.revision, flood(&sent), PIPE, |builder| builder.limits(limits)).ready().await;
    peer.send(peer.request("flood", "x/flood", Value::Null)).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    for id in 0..100 {
        peer.send(peer.request(id, "x/y", Value::Null)).await;
    }
    peer.send(peer.notification("notifications/cancelled", json!({"requestId": "flood"}))).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(peer.transport.counts().in_flight, 0, "the flood was cancelled");
    let mut answers = 0;
    while answers < 100 {
        let message = peer.heard().await;
        if message["id"].is_number() {
            assert_eq!(message["id"], answers);
            answers += 1;
        }
    }
    peer.silence().await;
    assert!(sent.load(Ordering::SeqCst) < 100);
}
