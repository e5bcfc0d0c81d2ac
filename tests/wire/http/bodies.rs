//! Bodies in pieces: too long, and broken off.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::header::CONTENT_LENGTH;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::json;
use tokio::sync::Semaphore;
use tower::ServiceExt;

use super::{Seen, right, service};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::request::{Call, SESSION_ID};
use crate::support::server::{self, Body};

/// The limit of [`service`].
const LIMIT: usize = 4096;

pub fn register(wire: &mut Wire) {
    wire.any("http/rungs/body-limit", Carriers::Every, limit);
    wire.any("http/rungs/body-without-end", Carriers::Every, without_end);
    wire.any("http/rungs/body-announced", Carriers::H1, announced);
    wire.any("http/aborted", Carriers::Every, aborted);
    wire.any("http/aborted/raw", Carriers::H1, aborted_raw);
}

/// A right request whose body is this long.
fn long(cx: Cx, length: usize) -> (Call, Vec<u8>) {
    let mut bytes = right(cx).into_bytes();
    bytes.resize(length, b' ');
    (right(cx), bytes)
}

/// The request with its body in pieces of a length nobody announces.
fn in_pieces(call: Call, bytes: &[u8]) -> Request<Body> {
    let pieces: Vec<_> = bytes.chunks(1000).map(Bytes::copy_from_slice).collect();
    let pieces = stream::iter(pieces).map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
    call.with_body(server::body(StreamBody::new(pieces)))
}

async fn limit(cx: Cx) {
    let (service, seen) = service();
    let client = cx.serve(service).await;
    for (length, taken) in [(LIMIT - 1, true), (LIMIT, true), (LIMIT + 1, false), (2 * LIMIT, false)] {
        let ((whole, bytes), (parts, _)) = (long(cx, length), long(cx, length));
        let answers = [client.send(whole.raw(bytes.clone())).await, client.send_body(in_pieces(parts, &bytes)).await];
        for answer in answers {
            if taken {
                assert_eq!(answer.result().await["method"], "x/ask", "{length}");
            } else {
                answer.error(StatusCode::PAYLOAD_TOO_LARGE, -32600, None).await;
            }
        }
    }
    assert_eq!(seen.methods(), ["x/ask"; 4]);

    let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "pad": "a".repeat(LIMIT)});
    let answer = client.send(Call::of(cx.revision, "initialize", initialize)).await;
    assert_eq!(answer.header(SESSION_ID), "");
    answer.error(StatusCode::PAYLOAD_TOO_LARGE, -32600, None).await;
}

/// The answer does not wait for the end of a body that is too long already.
async fn without_end(cx: Cx) {
    let (service, _) = service();
    let client = cx.serve(service).await;
    let pieces = stream::iter(vec![Bytes::from_static(&[b' '; 1000]); 5]).chain(stream::pending());
    let body = StreamBody::new(pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece))));
    let answer = client.send_body(right(cx).with_body(body)).await;
    answer.error(StatusCode::PAYLOAD_TOO_LARGE, -32600, None).await;
}

/// Nor for the first byte of a body that says how long it is.
async fn announced(cx: Cx) {
    let (service, _) = service();
    let client = cx.serve(service).await;
    for length in ["4097", "5000000000"] {
        let mut raw = client.raw(head(cx, CONTENT_LENGTH.as_str(), length)).await;
        assert_eq!(raw.status().await, Some(StatusCode::PAYLOAD_TOO_LARGE), "{length}");
        assert!(raw.until("-32600").await.contains("-32600"));
    }
}

/// The head of the right request with one header more, over HTTP/1.1.
fn head(cx: Cx, name: &str, value: &str) -> String {
    let mut head = String::from("POST /mcp HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in &right(cx).headers {
        head += &format!("{name}: {}\r\n", value.to_str().expect("visible ASCII"));
    }
    head + &format!("{name}: {value}\r\n\r\n")
}

/// The service, and semaphores that get a permit for each request it begins with and is done with, answered or not.
fn watched() -> (server::Boxed, Seen, Arc<Semaphore>, Arc<Semaphore>) {
    let (service, seen) = service();
    let (begun, done) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let service = server::boxed(service).map_future({
        let (begun, done) = (Arc::clone(&begun), Arc::clone(&done));
        move |response| {
            begun.add_permits(1);
            let done = Done(Arc::clone(&done));
            async move {
                let response = response.await;
                drop(done);
                response
            }
        }
    });
    (server::boxed(service), seen, begun, done)
}

struct Done(Arc<Semaphore>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

async fn one(permit: &Semaphore) {
    permit.acquire().await.expect("never closed").forget();
}

/// A body that breaks off, be it behind a whole message, is nobody's order.
async fn aborted(cx: Cx) {
    let (service, seen, begun, done) = watched();
    let client = cx.serve(service).await;
    let whole = right(cx).into_bytes();
    for cut in [0, 1, whole.len() / 2, whole.len() - 1, whole.len()] {
        let first = stream::iter([Ok(Frame::data(Bytes::copy_from_slice(&whole[..cut])))]);
        let begun = Arc::clone(&begun);
        let breaks = stream::once(async move {
            one(&begun).await;
            Err(io::Error::from(io::ErrorKind::BrokenPipe))
        });
        let body = StreamBody::new(first.chain(breaks));
        // Where the connection broke there is nobody left to answer.
        if let Ok(answer) = client.another().try_send(right(cx).with_body(body)).await {
            answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
        }
        one(&done).await;
        assert_eq!(seen.methods(), [""; 0], "{cut}");
    }
    assert_eq!(client.send(right(cx)).await.result().await["method"], "x/ask");
}

/// Announced or in chunks, over a connection whose client has no more to say.
async fn aborted_raw(cx: Cx) {
    let (service, seen, _, done) = watched();
    let client = cx.serve(service).await;
    let whole = String::from_utf8(right(cx).into_bytes()).expect("JSON");
    let announced = head(cx, CONTENT_LENGTH.as_str(), &(whole.len() + 1).to_string());
    let chunked = head(cx, "transfer-encoding", "chunked");
    for request in [
        format!("{announced}{whole}"),
        announced.clone(),
        format!("{chunked}{:x}\r\n{whole}\r\n", whole.len()),
        format!("{chunked}{:x}\r\n{whole}", whole.len() + 1),
        format!("{chunked}{:x}\r\n{whole}\r\nnonsense\r\n", whole.len()),
        chunked.clone(),
    ] {
        let mut raw = client.raw(&request).await;
        raw.finish().await;
        let status = raw.status().await;
        assert!(status.is_none_or(|status| status == StatusCode::BAD_REQUEST), "{status:?} to {request}");
        one(&done).await;
        assert_eq!(seen.methods(), [""; 0], "{request}");
    }
}
