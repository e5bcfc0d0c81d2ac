//! Servers of every policy: the client ends in the right era, at the right version, and remembers it.

use mcp_transport::{Era, Revision, Revisions};
use serde_json::json;

use crate::client::{DualClient, Failure, Session, Verdict};
use crate::server::{End, Server, answering};

/// What is served, and what the client comes to.
pub fn policies() -> Vec<(Revisions, &'static str)> {
    let mut policies = vec![
        (Revisions::all(), "2026-07-28"),
        (Revisions::modern_only(), "2026-07-28"),
        (Revisions::legacy_only(), "2025-11-25"),
        (Revisions::legacy_only().without(Revision::V2025_11_25), "2025-06-18"),
    ];
    policies.extend(Revision::ALL.map(|revision| (Revisions::only([revision]), revision.as_str())));
    policies
}

/// The version that the client speaks.
pub fn version(client: &DualClient) -> &str {
    match (&client.verdict, &client.session) {
        (Some(Verdict::Modern { version }), None) | (Some(Verdict::Legacy { .. }), Some(Session { version, .. })) => {
            version
        }
        other => panic!("neither one era nor the other: {other:?}"),
    }
}

/// Asserts the era and version, and that a call is answered, in one run.
pub async fn works(client: &mut DualClient, server: &Server, expected: &str) {
    assert_eq!(version(client), expected);
    let before = server.runs.list().len();
    let result = client.call(&json!({"word": "done", "tell": 1, "pause_ms": 1})).await.expect("a result");
    assert_eq!(result["content"][0]["text"], "done");
    let runs = &server.runs.list()[before..];
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(runs[0].era == Era::Modern, expected == "2026-07-28");
    assert_eq!(runs[0].end.map(|(end, _)| end), Some(End::Answered));
}

#[tokio::test(start_paused = true)]
async fn each_policy_leads_to_its_era() {
    for (revisions, expected) in policies() {
        let server = Server::new(revisions);
        let mut client = DualClient::new(server.connector());
        let era = client.connect().await.expect("a connection");
        assert_eq!(era == Era::Modern, expected == "2026-07-28");
        works(&mut client, &server, expected).await;
        let handshake: &[_] = match era {
            Era::Modern => &["server/discover", "tools/call"],
            Era::Legacy => &["server/discover", "initialize", "notifications/initialized", "tools/call"],
        };
        assert_eq!(client.methods(), handshake);
        assert_eq!(server.service.counts().sessions, usize::from(era == Era::Legacy));
        client.close().await;
        assert_eq!(server.service.counts(), mcp_transport::Counts::default());
    }
}

#[tokio::test(start_paused = true)]
async fn the_verdict_is_remembered() {
    for (revisions, expected) in policies() {
        let server = Server::new(revisions);
        let mut client = DualClient::new(server.connector());
        client.connect().await.expect("a connection");
        client.close().await;
        client.sent.clear();
        client.connect().await.expect("a connection");
        assert!(!client.methods().contains(&"server/discover"), "{client:?}");
        works(&mut client, &server, expected).await;
    }
}

/// A version that the server does not know leads to one that it names, and never to the wrong era.
#[tokio::test(start_paused = true)]
async fn an_unknown_version_is_exchanged() {
    for (revisions, expected) in policies() {
        let server = Server::new(revisions);
        let mut client = DualClient::knowing(server.connector(), ["2027-01-01", "2026-07-28"]);
        let era = client.connect().await.expect("a connection");
        works(&mut client, &server, expected).await;
        let tried = client.methods().iter().filter(|method| **method == "server/discover").count();
        assert_eq!(tried, if era == Era::Modern { 2 } else { 1 });
        // What it is told at a call, it takes up likewise.
        if era == Era::Modern {
            client.verdict = Some(Verdict::Modern { version: "2027-01-01".to_owned() });
            let result = client.call(&json!({"word": "done", "tell": 0, "pause_ms": 0})).await.expect("a result");
            assert_eq!(result["content"][0]["text"], "done");
            assert_eq!((version(&client), server.runs.list().len()), ("2026-07-28", 2));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_common_version_nothing_is_settled() {
    for revisions in [Revisions::all(), Revisions::modern_only()] {
        let mut client = DualClient::knowing(Server::new(revisions).connector(), ["2027-01-01"]);
        let supported = vec!["2026-07-28".to_owned()];
        assert_eq!(client.connect().await, Err(Failure::NoCommonVersion(supported)));
        assert_eq!(client.verdict, None);
    }
}

/// Servers that no one here wrote may name legacy versions too, or none.
#[tokio::test(start_paused = true)]
async fn an_unsupported_version_may_lead_to_initialize() {
    for data in [json!({"supported": ["2024-11-05"]}), json!({"requested": "2026-07-28"}), json!(null)] {
        let error = json!({"code": -32022, "message": "Unsupported protocol version", "data": data});
        let refusing = answering(400, json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string());
        let server = Server::new(Revisions::legacy_only());
        let expected = if data["supported"].is_array() { "2024-11-05" } else { "2025-11-25" };
        let both = crate::server::one_after_another([refusing, server.connector()]);
        let mut client = DualClient::new(both);
        assert_eq!(client.connect().await, Ok(Era::Legacy));
        works(&mut client, &server, expected).await;
    }
}
