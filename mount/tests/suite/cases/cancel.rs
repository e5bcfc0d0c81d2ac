//! Clients that leave.

use serde_json::json;

use super::{BOUND, IN_SESSION, Suite};
use crate::site::{Site, soon, spawn, text};

pub(super) fn register(suite: &mut Suite) {
    suite.case("cancel/quiet", BOUND, quiet);
    suite.case("cancel/streaming", BOUND, streaming);
    suite.case("cancel/session", IN_SESSION, session);
    suite.case("cancel/notification", IN_SESSION, notification);
}

/// Before the answer has begun.
async fn quiet(site: Site) {
    let call = spawn(site.tool("wait", json!({ "streaming": false })));
    site.tally(|tally| tally.begun == 1).await;
    call.abort();
    site.tally(|tally| tally.dropped == 1).await;
}

/// In the middle of it, though nothing more is written.
async fn streaming(site: Site) {
    let mut stream = soon(site.tool("wait", json!({ "streaming": true })).stream()).await;
    assert_eq!(soon(stream.next()).await.unwrap()["method"], "notifications/progress");
    site.tally(|tally| tally.begun == 1).await;
    drop(stream);
    site.tally(|tally| tally.dropped == 1).await;
}

/// In a session the request goes on.
async fn session(site: Site) {
    let call = spawn(site.tool("wait", json!({ "streaming": false })));
    site.tally(|tally| tally.begun == 1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    // The server has had time to notice.
    assert_eq!(text(&site.tool("echo", json!({ "text": "still here" })).await), "still here");
    site.running.workshop.gate.add_permits(1);
    site.tally(|tally| tally.finished == 1 && tally.dropped == 0).await;
}

/// In a session the client says so.
async fn notification(site: Site) {
    let call = site.tool("wait", json!({ "streaming": true }));
    let mut stream = soon(call.stream()).await;
    assert_eq!(soon(stream.next()).await.unwrap()["method"], "notifications/progress");
    site.tally(|tally| tally.begun == 1).await;
    // `initialize` was the first request, this the second.
    let cancelled = json!({ "requestId": 2 });
    assert_eq!(site.notify("notifications/cancelled", cancelled).await.status, 202);
    site.tally(|tally| tally.dropped == 1).await;
    assert!(soon(stream.next()).await.is_none());
}
