//! Events are read as they come: what a server says, and above all what it asks, does not wait for the end of its stream.

use std::time::Duration;

use mcp_transport::{Counts, Era};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::client::DualClient;
use crate::eras::policies;
use crate::http1::Stream;
use crate::server::{Server, answering, by_hand, one_after_another, read_request, respond};

#[tokio::test(start_paused = true)]
async fn progress_is_heard_when_it_is_made() {
    for (revisions, _) in policies() {
        let server = Server::new(revisions);
        let mut client = DualClient::new(server.connector());
        client.connect().await.expect("a connection");
        let begun = Instant::now();
        client.call(&json!({"word": "done", "tell": 5, "pause_ms": 700})).await.expect("a result");
        let heard: Vec<_> = client.heard.iter().map(|(at, message)| (*at - begun, &message["params"])).collect();
        let (id, _) = client.sent.last().expect("a call");
        for (n, (at, params)) in heard.iter().enumerate() {
            assert_eq!(*at, Duration::from_millis(700) * (u32::try_from(n).expect("few") + 1));
            assert_eq!((&params["progressToken"], params["progress"].as_f64()), (id, Some(n as f64)));
        }
        assert_eq!(heard.len(), 5);
    }
}

/// The server asks on the stream of the call, which goes on once the client has answered.
#[tokio::test(start_paused = true)]
async fn a_ping_from_the_handler_costs_no_time() {
    for (revisions, _) in policies() {
        let server = Server::new(revisions);
        let mut client = DualClient::new(server.connector());
        if client.connect().await != Ok(Era::Legacy) {
            continue;
        }
        let begun = Instant::now();
        let call = json!({"word": "done", "tell": 0, "pause_ms": 10, "ping": true});
        assert_eq!(client.call(&call).await.expect("a result")["content"][0]["text"], "done");
        assert_eq!((begun.elapsed(), server.runs.list().len()), (Duration::from_millis(10), 1));
        client.close().await;
        assert_eq!(server.service.counts(), Counts::default());
    }
}

/// A legacy server that no one here wrote may hold back its response until its `ping` is answered.
#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_while_the_stream_is_open() {
    let (ponged, pong) = watch::channel(false);
    let server = by_hand(move |mut stream| {
        let (ponged, pong) = (ponged.clone(), pong.clone());
        async move {
            let message = read_request(&mut stream).await;
            match message["method"].as_str() {
                Some("initialize") => {
                    let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}});
                    let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    respond(&mut stream, 200, &response.to_string()).await;
                }
                Some("tools/call") => ping_first(stream, &message["id"], pong).await,
                Some(_) => respond(&mut stream, 202, "").await,
                None => {
                    assert_eq!(message, json!({"jsonrpc": "2.0", "id": "are you there", "result": {}}));
                    // Long enough for the other stream to end first, if anybody waited for that.
                    sleep(Duration::from_secs(1)).await;
                    respond(&mut stream, 202, "").await;
                    ponged.send_replace(true);
                }
            }
        }
    });
    let mut client = DualClient::new(one_after_another([answering(404, ""), server]));
    client.connect().await.expect("a connection");
    let result = client.call(&json!({"word": "done"})).await.expect("a result");
    assert_eq!(result, json!({"content": []}));
    assert_eq!(client.methods(), ["server/discover", "initialize", "notifications/initialized", "tools/call"]);
}

async fn ping_first(mut stream: Box<dyn Stream>, id: &Value, mut pong: watch::Receiver<bool>) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("a client");
    event(&mut stream, &json!({"jsonrpc": "2.0", "id": "are you there", "method": "ping"})).await;
    pong.wait_for(|ponged| *ponged).await.expect("an answer to the ping");
    event(&mut stream, &json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})).await;
    stream.write_all(b"0\r\n\r\n").await.expect("a client");
}

async fn event(stream: &mut Box<dyn Stream>, message: &Value) {
    let event = format!("event: message\ndata: {message}\n\n");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    stream.write_all(chunk.as_bytes()).await.expect("a client");
}
