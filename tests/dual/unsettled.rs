//! Servers that start, drain, are shut or are silent: none of that says anything about their era.

use std::time::Duration;

use mcp_transport::{CancelCause, Counts, DrainReport, Era};
use serde_json::json;
use tokio::time::Instant;

use crate::client::{DEADLINE, DualClient, Failure};
use crate::eras::{policies, works};
use crate::server::{End, Server, answering, one_after_another, refusing, silent};

/// Whatever stands where the server will be, the client fails, has settled nothing, and finds it once it is there.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_yet() {
    for (revisions, expected) in policies() {
        let server = Server::new(revisions);
        let modern_error = json!({"error": {"code": -32022, "data": {"supported": ["2026-07-28"]}}}).to_string();
        let stages = [
            (refusing(), Failure::Unreachable),
            (answering(503, ""), Failure::Unavailable(503)),
            (answering(502, "<html>Bad gateway</html>"), Failure::Unavailable(502)),
            (answering(503, modern_error), Failure::Unavailable(503)),
            (answering(401, ""), Failure::Forbidden(401)),
            (answering(403, ""), Failure::Forbidden(403)),
            (silent(), Failure::TimedOut),
        ];
        let (connectors, failures): (Vec<_>, Vec<_>) = stages.into_iter().unzip();
        let there = one_after_another(connectors.into_iter().chain([server.connector()]));
        let mut client = DualClient::new(there);
        for failure in failures {
            let begun = Instant::now();
            assert_eq!(client.connect().await, Err(failure.clone()));
            assert_eq!((&client.verdict, client.sent.len()), (&None, 1));
            let waited = if failure == Failure::TimedOut { DEADLINE } else { Duration::ZERO };
            assert_eq!(begun.elapsed(), waited, "{failure:?}");
            client.sent.clear();
        }
        client.connect().await.expect("a connection");
        works(&mut client, &server, expected).await;
    }
}

/// What is known before the server goes down is not forgotten.
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_down_between_discovery_and_initialize() {
    for (revisions, expected) in policies() {
        let server = Server::new(revisions);
        let way = one_after_another([server.connector(), answering(503, ""), refusing(), server.connector()]);
        let mut client = DualClient::new(way);
        if client.connect().await == Ok(Era::Modern) {
            continue;
        }
        assert_eq!(client.connect().await, Err(Failure::Unreachable));
        assert_eq!(client.connect().await, Ok(Era::Legacy));
        assert_eq!(client.methods()[..3], ["server/discover", "initialize", "initialize"]);
        works(&mut client, &server, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_may_not_talk_to_the_server() {
    for (revisions, expected) in policies() {
        let server = Server::new(revisions);
        let mut client = DualClient::new(server.connector());
        client.origin = Some("https://evil.test");
        assert_eq!(client.connect().await, Err(Failure::Forbidden(403)));
        assert_eq!(client.verdict, None);
        client.origin = None;
        client.connect().await.expect("a connection");
        works(&mut client, &server, expected).await;
    }
}

/// A server that drains takes nobody in and lets nobody draw conclusions; who is in gets an answer, once.
#[tokio::test(start_paused = true)]
async fn a_server_that_drains() {
    for (revisions, expected) in policies() {
        for (pause_ms, cut) in [(10_000, 0), (50_000, 1)] {
            let (server, next) = (Server::new(revisions), Server::new(revisions));
            let mut inside = DualClient::new(server.connector());
            inside.connect().await.expect("a connection");
            let mut idle = DualClient::new(server.connector());
            idle.connect().await.expect("a connection");
            let calling = tokio::spawn(async move {
                let called = inside.call(&json!({"word": "done", "tell": 0, "pause_ms": pause_ms})).await;
                (inside, called)
            });
            let draining = tokio::spawn({
                let service = server.service.clone();
                async move {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    service.drain(Duration::from_secs(30)).await
                }
            });
            tokio::time::sleep(Duration::from_secs(2)).await;

            let mut late = DualClient::new(one_after_another([server.connector(), next.connector()]));
            assert_eq!(late.connect().await, Err(Failure::Unavailable(503)));
            assert_eq!((&late.verdict, late.sent.len()), (&None, 1));
            let called = idle.call(&json!({"word": "late", "tell": 0, "pause_ms": 0})).await;
            assert_eq!(called, Err(Failure::Unavailable(503)));

            let DrainReport { in_flight, cut: were_cut, .. } = draining.await.expect("a report");
            assert_eq!((in_flight, were_cut), (1, cut));
            let (mut inside, called) = calling.await.expect("an outcome");
            let calls = inside.methods().iter().filter(|method| **method == "tools/call").count();
            assert_eq!((calls, server.runs.list().len()), (1, 1), "what was answered was sent or ran again");
            let end = server.runs.list()[0].end.map(|(end, _)| end);
            if cut == 0 {
                assert_eq!(called.expect("a result")["content"][0]["text"], "done");
                assert_eq!(end, Some(End::Answered));
            } else {
                assert!(matches!(&called, Err(Failure::Error(200, error)) if error["code"] == -32603), "{called:?}");
                assert_eq!(end, Some(End::Dropped(Some(CancelCause::Drained))));
            }
            // What is left to say is still heard.
            inside.close().await;
            idle.close().await;
            assert_eq!(server.service.counts(), Counts::default());

            late.connect().await.expect("a connection");
            works(&mut late, &next, expected).await;
        }
    }
}

/// Keep-alive comments do not extend the deadline, and past it the handler is told in its era's way, at once.
#[tokio::test(start_paused = true)]
async fn a_handler_that_never_ends() {
    for (revisions, expected) in policies() {
        for tell in [0, 1_000_000] {
            let server = Server::new(revisions);
            let mut client = DualClient::new(server.connector());
            let era = client.connect().await.expect("a connection");
            let begun = Instant::now();
            let pause_ms: u64 = if tell == 0 { 1_000_000 } else { 1_000 };
            let called = client.call(&json!({"word": "never", "tell": tell, "pause_ms": pause_ms})).await;
            assert_eq!((called, begun.elapsed()), (Err(Failure::TimedOut), DEADLINE));
            assert_eq!(client.heard.len(), if tell == 0 { 0 } else { 59 });
            tokio::time::sleep(Duration::from_millis(1)).await;
            let runs = server.runs.list();
            assert_eq!(runs.len(), 1, "a call past its deadline ran again");
            let cause = if era == Era::Modern { CancelCause::Disconnected } else { CancelCause::Requested };
            assert_eq!(runs[0].end, Some((End::Dropped(Some(cause)), begun + DEADLINE)));
            works(&mut client, &server, expected).await;
            client.close().await;
            assert_eq!(server.service.counts(), Counts::default());
        }
    }
}
