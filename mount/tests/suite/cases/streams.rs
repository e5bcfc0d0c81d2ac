//! Event streams: each event arrives when it is sent, whoever sends it.

use http::StatusCode;
use serde_json::json;

use super::{EVERYONE, REACHABLE, Suite};
use crate::site::{Site, soon, text};

pub(super) fn register(suite: &mut Suite) {
    suite.case("progress", EVERYONE, progress);
    suite.case("at-once", EVERYONE, at_once);
    suite.case("ask", REACHABLE, ask);
    suite.case("changes", REACHABLE, changes);
}

async fn progress(site: Site) {
    let answer = site.tool("count", json!({ "to": 300 })).await;
    assert_eq!(text(&answer), "counted to 300");
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    assert!(!answer.headers.contains_key("content-length"));
    let reports = answer.notifications().iter().map(|report| report["params"]["progress"].as_u64().unwrap());
    assert!(reports.eq(1..=300));
}

/// A report is there before the handler goes on.
async fn at_once(site: Site) {
    let call = site.tool("wait", json!({ "streaming": true }));
    // As a browser or a library would send it, and a layer that compresses would like to see it.
    let mut stream = soon(call.header("accept-encoding", "gzip, br").stream()).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    assert!(!stream.headers.contains_key("content-encoding"));
    assert_eq!(soon(stream.next()).await.unwrap()["method"], "notifications/progress");
    site.tally(|tally| tally.begun == 1).await;
    site.running.workshop.gate.add_permits(1);
    assert_eq!(text(&soon(stream.finish()).await), "let go on");
}

async fn ask(site: Site) {
    let call = site.tool("ask", json!({}));
    let answer = call
        .answering(|method, params| {
            assert_eq!((method, &params["message"]), ("elicitation/create", &json!("Do you agree?")));
            json!({ "action": "accept", "content": { "agreed": true } })
        })
        .await;
    assert_eq!((answer.status, text(&answer)), (StatusCode::OK, "agreed"));
}

/// Changes arrive when they are published, and the stream of a client that leaves is gone.
async fn changes(site: Site) {
    let mut stream = soon(site.listen()).await;
    site.streams(1).await;
    for _ in 0..3 {
        site.running.workshop.changes.tools_list_changed();
        assert_eq!(soon(stream.next()).await.unwrap()["method"], "notifications/tools/list_changed");
    }
    drop(stream);
    site.streams(0).await;
}
