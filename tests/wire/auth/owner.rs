//! Whose a session is: the subject's of the issuer, whatever its token.

use http::StatusCode;
use http::header::CONTENT_TYPE;
use mcp_transport::Revision;
use serde_json::{Value, json};

use super::{Site, bearing, principal};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::request::{Call, SESSION_ID};
use crate::support::session::{self, Session};

pub fn register(wire: &mut Wire) {
    wire.any("auth/owner", Carriers::Every, same_subject);
    wire.any_legacy("auth/owner/refreshed", Carriers::Every, refreshed);
    wire.any_legacy("auth/owner/stranger", Carriers::Every, stranger);
}

/// Opens a session with a token.
pub async fn open(site: &Site, token: &str) -> Session {
    let session = session::start_by(&site.client, bearing(session::initialize(site.cx.revision), token)).await;
    let initialized = session.notification("notifications/initialized", Value::Null);
    session::accepted(site.client.send(bearing(initialized, token)).await).await;
    session
}

async fn same_subject(cx: Cx) {
    let site = Site::open(cx).await;
    for token in ["alice.1", "alice.2", "alice"] {
        let result = site.client.send(bearing(site.call(), token)).await.result().await;
        assert_eq!(result["principal"], principal("alice"));
    }
    let result = site.client.send(bearing(site.call(), "bob.1")).await.result().await;
    assert_eq!(result["principal"], principal("bob"));
}

/// A new token of the same subject reads on, and ends what the old one began.
async fn refreshed(cx: Cx) {
    let site = Site::open(cx).await;
    let session = open(&site, "alice.1").await;
    for token in ["alice.1", "alice.2", "alice.3.other+scopes"] {
        let call = bearing(session.call("prompts/get", json!({"name": "a"})), token);
        assert_eq!(site.client.send(call).await.result().await["principal"], principal("alice"));
    }
    let stream = site.client.send(bearing(session.get(), "alice.4")).await;
    assert_eq!(stream.status, StatusCode::OK);
    // The old one has been revoked: with it the session is out of reach, and lives.
    let answer = site.client.send(bearing(session.call("ping", Value::Null), "forged")).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let answer = site.client.send(session.call("ping", Value::Null)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let answer = site.client.send(bearing(session.delete(), "alice.5")).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}

/// All that the head and the body of an answer say.
async fn said(answer: Answer) -> (StatusCode, String, String) {
    let headers =
        answer.headers.iter().filter(|(name, _)| *name != "date").map(|(name, value)| format!("{name}: {value:?}"));
    let (status, mut headers) = (answer.status, headers.collect::<Vec<_>>());
    headers.sort();
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "application/json");
    (status, headers.join("\n"), answer.text().await)
}

/// Somebody else's session is none, in every word.
async fn stranger(cx: Cx) {
    let site = Site::open(cx).await;
    let session = open(&site, "alice.1").await;
    let calls: [fn(&Session) -> Call; 6] = [
        |session| session.call("prompts/get", json!({"name": "a"})),
        |session| session.notification("notifications/x", Value::Null),
        |session| session.cancellation(1),
        |session| session.post(json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        Session::get,
        Session::delete,
    ];
    for call in calls {
        let theirs = said(site.client.send(bearing(call(&session), "bob")).await).await;
        let nobodys = bearing(call(&session), "bob").header(SESSION_ID, "1234567890");
        assert_eq!(theirs, said(site.client.send(nobodys).await).await);
        assert_eq!(theirs.0, StatusCode::NOT_FOUND);
    }
    // The subject of another issuer would be somebody else too, but the name alone is not: it takes the token.
    assert_eq!(site.ran().iter().filter(|method| *method == "prompts/get").count(), 0);
    let answer = site.client.send(bearing(session.call("ping", Value::Null), "alice.2")).await;
    assert_eq!(answer.result().await, json!({}));
    assert!(site.cx.revision <= Revision::V2025_11_25);
}
