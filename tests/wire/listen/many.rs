//! Many listeners at once, and too many.

use http::StatusCode;
use mcp_transport::{Limits, Principal};
use serde_json::{Value, json};

use super::{Site, TOOLS, UPDATED, all, all_tagged, ended, listen, script, tagged};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Answer;
use crate::support::request::{Call, ID};
use crate::support::session::ACCOUNT;

pub fn register(wire: &mut Wire) {
    wire.modern("listen/many", Carriers::Every, each_its_own);
    wire.modern("listen/many/same-id", Carriers::Every, the_same_id);
    wire.modern("listen/many/in-all", Carriers::Every, limit_in_all);
    wire.modern("listen/many/by-principal", Carriers::Every, limit_by_principal);
    wire.modern("listen/many/none", Carriers::Every, no_listeners_at_all);
    wire.modern("listen/many/empty-grant", Carriers::Every, an_empty_grant_stays_open);
}

/// Each hears what it asked for, under its own id.
async fn each_its_own(cx: Cx) {
    let site = Site::open(cx).await;
    let (mut listeners, mut streams) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let uri = format!("r{}", number % 4);
        let filter = json!({"toolsListChanged": number % 2 == 0, "resourceSubscriptions": [uri]});
        let id = if number % 3 == 0 { json!(number) } else { json!(number.to_string()) };
        let (stream, _) = site.listen(listen(filter).id(id.clone())).await;
        listeners.push((number, id, uri));
        streams.push(stream);
    }
    assert_eq!(site.service.counts().streams, 40);
    site.publish_all(&["r0", "r2", "r3"]);
    for ((number, id, uri), told) in listeners.into_iter().zip(site.end_all(streams).await) {
        let mut messages = Vec::new();
        if number % 2 == 0 {
            messages.push(tagged(id.clone(), TOOLS, json!({})));
        }
        if uri != "r1" {
            messages.push(tagged(id.clone(), UPDATED, json!({ "uri": uri })));
        }
        messages.push(ended(id));
        assert_eq!(told, messages);
    }
}

/// Over HTTP an id is known to its own exchange only.
async fn the_same_id(cx: Cx) {
    let site = Site::open(cx).await;
    let (one, _) = site.listen(listen(all(&["a"]))).await;
    let (two, _) = site.listen(listen(all(&["a"]))).await;
    let (three, _) = site.listen(listen(all(&["a"]))).await;
    drop(two);
    site.streams(2).await;
    site.publish_all(&["a"]);
    let mut messages = all_tagged(&["a"]);
    messages.push(ended(ID));
    assert_eq!(site.end_all(vec![one, three]).await, [messages.clone(), messages]);
}

async fn turned_away(site: &Site, call: Call) {
    let answer = site.client.send(call).await;
    assert_eq!(answer.header("retry-after"), "5");
    answer.error(StatusCode::SERVICE_UNAVAILABLE, -32603, Some(&ID.into())).await;
}

async fn limit_in_all(cx: Cx) {
    let script = script().deciding(|uri, _| async move {
        assert_ne!(uri, "turned away", "refused before the handler is asked");
        Ok(())
    });
    let site = Site::built(cx, script, |builder| builder.limits(Limits::default().listeners(3))).await;
    for _ in 0..3 {
        let mut streams: Vec<Answer> = Vec::new();
        for _ in 0..3 {
            streams.push(site.listen(listen(all(&["a"]))).await.0);
        }
        for _ in 0..5 {
            turned_away(&site, listen(all(&["turned away"]))).await;
        }
        assert_eq!(site.service.counts().streams, 3);
        // Everything else goes on, and so does what is open.
        assert_eq!(site.client.send(Call::modern("server/discover", json!({}))).await.status, StatusCode::OK);
        site.publish_all(&["a"]);
        for stream in &mut streams {
            for message in all_tagged(&["a"]) {
                assert_eq!(stream.next_message().await, Some(message));
            }
        }
        streams.pop();
        site.streams(2).await;
        streams.push(site.listen(listen(all(&["a"]))).await.0);
        turned_away(&site, listen(json!({}))).await;
        // The filter is judged first: to try again later would not help.
        let answer = site.client.send(listen(json!([]))).await;
        answer.error(StatusCode::BAD_REQUEST, -32602, Some(&ID.into())).await;
        drop(streams);
        site.streams(0).await;
    }
}

async fn limit_by_principal(cx: Cx) {
    let limits = Limits::default().listeners(7).listeners_by_caller(2);
    let site = Site::built(cx, script(), |builder| {
        let principal = |head: &http::request::Parts| {
            let name = head.headers.get(ACCOUNT)?.to_str().ok()?;
            Some(Principal::new(name))
        };
        builder.limits(limits).principal(principal)
    })
    .await;
    for _ in 0..3 {
        let mut streams = Vec::new();
        for account in ["alice", "bob", "alice", "bob"] {
            streams.push(site.listen(listen(all(&[])).header(ACCOUNT, account)).await.0);
        }
        for account in ["alice", "bob", "alice"] {
            turned_away(&site, listen(json!({})).header(ACCOUNT, account)).await;
        }
        // Nobody in particular is bounded by the number in all only.
        for _ in 0..3 {
            streams.push(site.listen(listen(json!({}))).await.0);
        }
        turned_away(&site, listen(json!({}))).await;
        turned_away(&site, listen(json!({})).header(ACCOUNT, "carol")).await;
        drop(streams.remove(0));
        site.streams(6).await;
        turned_away(&site, listen(json!({})).header(ACCOUNT, "bob")).await;
        streams.push(site.listen(listen(json!({})).header(ACCOUNT, "alice")).await.0);
        turned_away(&site, listen(json!({})).header(ACCOUNT, "alice")).await;
        drop(streams);
        site.streams(0).await;
    }
}

async fn no_listeners_at_all(cx: Cx) {
    for limits in [Limits::default().listeners(0), Limits::default().listeners_by_caller(0)] {
        let site = Site::built(cx, script(), |builder| {
            builder.limits(limits).principal(|_| Some(Principal::new("everybody")))
        })
        .await;
        turned_away(&site, listen(json!({}))).await;
        assert_eq!(site.service.counts().streams, 0);
    }
}

/// There is nothing to say on it, and it is open all the same.
async fn an_empty_grant_stays_open(cx: Cx) {
    let site = Site::open(cx).await;
    let (mut stream, granted) = site.listen(listen(json!({}))).await;
    assert_eq!(granted, json!({}));
    site.publish_all(&["a"]);
    let silence = std::time::Duration::from_millis(50);
    let next = tokio::time::timeout(silence, stream.next_message()).await;
    assert!(next.is_err(), "nothing was granted, and it said {next:?}");
    assert_eq!(site.service.counts().streams, 1);
    assert_eq!(site.end(stream).await, [ended(ID)] as [Value; 1]);
}
