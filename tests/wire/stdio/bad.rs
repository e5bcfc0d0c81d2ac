//! Lines that are no messages, or that nobody may answer.

use mcp_transport::{Limits, RefusalKind};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::peer::Peer;
use crate::support::seen::{Refusals, Seen};
use crate::support::stage::Stage;

pub fn register(wire: &mut Wire) {
    wire.any("stdio/bad-line", Carriers::Clock, each_fault_and_the_next_line);
    wire.any("stdio/bad-line/id", Carriers::Clock, a_readable_id_is_answered);
    wire.any("stdio/bad-line/run", Carriers::Clock, a_run_gets_a_few_replies);
    wire.any("stdio/bad-line/long", Carriers::Clock, one_byte_too_long);
    wire.any("stdio/notification", Carriers::Clock, never_answered);
    wire.any("stdio/stray-response", Carriers::Clock, responses_are_not_answered);
}

async fn echoes(peer: &mut Peer) {
    assert_eq!(peer.ask(peer.request("next", "x/echo", json!({"n": 1}))).await["n"], 1);
}

async fn each_fault_and_the_next_line(cx: Cx) {
    let mut peer = Peer::open(cx.revision, Stage::default().script()).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
    let faults: &[(&[u8], i64)] = &[
        (b"nonsense", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/echo\"", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/\xff\"}", -32700),
        (b"\0", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\0\"}", -32700),
        (b"{} {}", -32700),
        (deep.as_bytes(), -32700),
        (b"7", -32600),
        (b"\"text\"", -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b"[]", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x/echo\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"x/echo\"}", -32600),
    ];
    for (line, code) in faults {
        peer.write(line).await;
        peer.write("\n").await;
        peer.error(None, *code).await;
        echoes(&mut peer).await;
    }
}

async fn a_readable_id_is_answered(cx: Cx) {
    let mut peer = Peer::open(cx.revision, Stage::default().script()).await;
    // Not part of a run: each has an id of its own, so each is answered.
    for round in 0..5 {
        for line in [
            r#"{"id":ID,"method":"x/echo"}"#,
            r#"{"jsonrpc":"1.0","id":ID,"method":"x/echo"}"#,
            r#"{"jsonrpc":"2.0","id":ID,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":ID,"method":"x/echo","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":ID,"method":"x/echo","method":"x/echo"}"#,
            r#"{"jsonrpc":"2.0","id":ID}"#,
        ] {
            for id in ["7", "\"a\"", "12345678901234567890123"] {
                peer.write(format!("{}\n", line.replace("ID", id))).await;
                let id: Value = serde_json::from_str(id).expect("an id");
                peer.error(Some(id), -32600).await;
            }
        }
        assert!(round < 5);
    }
    peer.write("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x/echo\"}\n").await;
    peer.error(None, -32600).await;
}

async fn a_run_gets_a_few_replies(cx: Cx) {
    let refusals = Refusals::default();
    let observer = refusals.clone();
    let mut peer = Peer::built(cx.revision, Stage::default().script(), 1 << 20, |builder| builder.observer(observer))
        .ready()
        .await;
    for _ in 0..2 {
        peer.write("garbage\n".repeat(1000)).await;
        for _ in 0..3 {
            peer.error(None, -32700).await;
        }
        peer.silence().await;
        assert_eq!(refusals.take(), [RefusalKind::Syntax; 1000], "the application hears of each");
        // A message ends the run.
        echoes(&mut peer).await;
    }
}

async fn one_byte_too_long(cx: Cx) {
    let limits = || Limits::default().body_bytes(1000);
    let mut peer =
        Peer::built(cx.revision, Stage::default().script(), 1 << 20, |builder| builder.limits(limits())).ready().await;
    let padded = |peer: &Peer, length: usize| {
        let bare = peer.request("x", "x/echo", json!({"pad": ""})).to_string();
        let pad = "p".repeat(length - bare.len());
        format!("{}\n", peer.request("x", "x/echo", json!({"pad": pad})))
    };
    for length in [1001, 1002, 5000, 500_000] {
        let line = padded(&peer, length);
        peer.write(line).await;
        peer.error(None, -32700).await;
        let line = padded(&peer, 1000);
        peer.write(line).await;
        assert_eq!(peer.heard().await["id"], "x");
    }
    // Nothing of an endless line is kept, and it is answered before it ends.
    for _ in 0..100 {
        peer.write("x".repeat(100_000)).await;
    }
    peer.error(None, -32700).await;
    peer.silence().await;
    peer.write("x\n").await;
    echoes(&mut peer).await;
}

async fn never_answered(cx: Cx) {
    let seen = Seen::default();
    let mut peer = Peer::open(cx.revision, seen.script()).await;
    seen.take();
    for line in [
        r#"{"method":"x/y"}"#,
        r#"{"jsonrpc":2.0,"method":"x/y"}"#,
        r#"{"jsonrpc":"2.0","method":7}"#,
        r#"{"jsonrpc":"2.0","method":null,"params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"x/y","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"x/y","method":"x/y"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{"x":1}}"#,
        r#"{"jsonrpc":"2.0","method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}"#,
        r#"{"jsonrpc":"2.0","method":"x/y","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}}"#,
    ] {
        peer.write(format!("{line}\n")).await;
    }
    peer.silence().await;
    assert!(seen.take().is_empty(), "none of these reaches the handler");
    peer.send(peer.notification("x/good", json!({}))).await;
    peer.silence().await;
    assert_eq!(seen.methods(), ["x/good"]);
}

async fn responses_are_not_answered(cx: Cx) {
    let stage = Stage::default();
    let mut peer = Peer::open(cx.revision, stage.script()).await;
    peer.send(peer.request(1, "x/hold", json!({"name": "held"}))).await;
    stage.entered("held").await;
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#,
        // Broken ones, too.
        r#"{"id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    ] {
        peer.write(format!("{line}\n")).await;
    }
    peer.silence().await;
    assert!(stage.is_in("held"));
    stage.release("held");
    assert_eq!(peer.heard().await["result"]["name"], "held");
}
