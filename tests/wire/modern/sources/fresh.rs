//! How long what was learned counts, and what makes it count no longer.

use std::sync::Arc;
use std::time::Duration;

use mcp_transport::Changes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::advance;

use super::{List, Outcome, REFUSED, Source, annotated, lax, paged, plain, strict};
use crate::harness::{Carriers, Cx, Wire};
use crate::modern::tool_call;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.modern("param/source/ttl", Carriers::Clock, time_to_live);
    wire.modern("param/source/ttl-of-pages", Carriers::Clock, time_to_live_of_pages);
    wire.modern("param/source/changes", Carriers::Every, published);
    wire.modern("param/source/changes-meanwhile", Carriers::Every, published_meanwhile);
    wire.modern("param/source/served", Carriers::Every, served);
    wire.modern("param/source/served-pages", Carriers::Every, served_pages);
    wire.modern("param/source/once-more", Carriers::Every, once_more);
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
        let mut call = Call::modern("tools/list", json!({}));
        cursor.into_iter().for_each(|cursor| call.set("/params/cursor", cursor));
        call
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
