//! `notifications/cancelled` on a byte stream.

use mcp_transport::{CancelCause, McpError, Reply, RequestContext};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::peer::{Peer, initialize};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("stdio/cancel", Carriers::Clock, withheld);
    wire.any("stdio/cancel/next-line", Carriers::Clock, in_the_very_next_line);
    wire.any("stdio/cancel/spelling", Carriers::Clock, the_id_may_be_spelled_otherwise);
    wire.any("stdio/cancel/tasks", Carriers::Clock, tasks_hear_of_it_and_say_no_more);
    wire.any("stdio/cancel/ignored", Carriers::Clock, whatever_names_no_request_is_ignored);
    wire.legacy("cancel/ignored/stdio-initialize", Carriers::Clock, initialize_is_done_at_once);
}

fn cancelled(peer: &Peer, id: impl Into<Value>) -> Value {
    peer.notification("notifications/cancelled", json!({"requestId": id.into(), "reason": "no more"}))
}

async fn withheld(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    for id in [json!(7), json!("seven")] {
        let (name, other) = (id.to_string(), format!("beside {id}"));
        peer.send(peer.request(id.clone(), "x/hold", json!({"name": name}))).await;
        peer.send(peer.request("other", "x/hold", json!({"name": other}))).await;
        stage.entered(&name).await;
        stage.entered(&other).await;
        peer.send(cancelled(&peer, id.clone())).await;
        assert_eq!(stage.dropped(&name).await, Some(CancelCause::Requested));
        peer.silence().await;
        // The id is free, and nobody else was hit.
        assert_eq!(peer.ask(peer.request(id, "x/echo", json!({"n": 1}))).await["n"], 1);
        stage.release(&other);
        assert_eq!(peer.heard().await["id"], "other");
    }
}

async fn in_the_very_next_line(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    for round in 0..20 {
        let name = format!("round {round}");
        let hold = peer.request(round, "x/hold", json!({"name": name}));
        peer.send_all(&[hold, cancelled(&peer, round)]).await;
        assert_eq!(stage.dropped(&name).await, Some(CancelCause::Requested));
    }
    peer.silence().await;
}

async fn the_id_may_be_spelled_otherwise(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    for (id, same) in [("7", "7.0"), ("\"a\"", "\"\\u0061\"")] {
        let hold = peer.request("ID", "x/hold", json!({"name": id})).to_string().replace("\"ID\"", id);
        let cancel = cancelled(&peer, "ID").to_string().replace("\"ID\"", same);
        peer.write(format!("{hold}\n{cancel}\n")).await;
        assert_eq!(stage.dropped(id).await, Some(CancelCause::Requested));
    }
    peer.silence().await;
}

async fn tasks_hear_of_it_and_say_no_more(cx: Cx) {
    let (tell, told) = oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let script = Script::new(move |_, cx: RequestContext| {
        let tell = tell.lock().expect("nobody panicked").take();
        let task = cx;
        tokio::spawn(async move {
            let cause = task.cancelled().await;
            let reason = task.cancel_reason().map(str::to_owned);
            let _ = task.notify("notifications/late", json!({})).await;
            let _ = tell.map(|tell| tell.send((cause, reason)));
        });
        std::future::pending::<Result<Reply, McpError>>()
    });
    let mut peer = Peer::open(cx.revision, script).await;
    peer.send(peer.request(1, "x/y", Value::Null)).await;
    peer.send(cancelled(&peer, 1)).await;
    assert_eq!(told.await, Ok((CancelCause::Requested, Some("no more".to_owned()))));
    peer.silence().await;
}

async fn whatever_names_no_request_is_ignored(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    assert_eq!(peer.ask(peer.request("done", "x/echo", json!({"n": 1}))).await["n"], 1);
    peer.send(peer.request(1, "x/hold", json!({"name": "held"}))).await;
    stage.entered("held").await;
    for id in [json!("done"), json!("1"), json!(2), json!(null), json!({}), json!([1]), json!(1.5), json!(true)] {
        peer.send(cancelled(&peer, id)).await;
    }
    peer.send(peer.notification("notifications/cancelled", json!({}))).await;
    peer.silence().await;
    assert!(stage.is_in("held"));
    stage.release("held");
    assert_eq!(peer.heard().await["result"]["name"], "held");
}

async fn initialize_is_done_at_once(cx: Cx) {
    let mut peer = Peer::silent(cx.revision, Stage::default().script());
    peer.send_all(&[initialize(1, cx.revision), cancelled(&peer, 1)]).await;
    assert_eq!(peer.heard().await["result"]["protocolVersion"], cx.revision.as_str());
    peer.silence().await;
}
