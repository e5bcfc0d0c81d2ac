//! Requests and answers: what they carry, and what is refused.

use std::convert::Infallible;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::{Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};

use super::{EVERYONE, IN_SESSION, Suite};
use crate::hosts::{BODY_BYTES, PATH};
use crate::site::{Site, soon, text};

pub(super) fn register(suite: &mut Suite) {
    suite.case("call", EVERYONE, call);
    suite.case("caller", EVERYONE, caller);
    suite.case("stranger", EVERYONE, stranger);
    suite.case("notification", EVERYONE, notification);
    suite.case("refused", EVERYONE, refused);
    suite.case("browser", EVERYONE, browser);
    suite.case("body-limit/announced", EVERYONE, announced);
    suite.case("body-limit/unannounced", EVERYONE, unannounced);
    suite.case("delete", IN_SESSION, delete);
}

/// An answer is JSON of a known length, to the byte.
async fn call(site: Site) {
    for words in ["one two", "", "\u{1F980} \"\\\n"] {
        let answer = site.tool("echo", json!({ "text": words })).await;
        assert_eq!((answer.status, text(&answer)), (StatusCode::OK, words));
        assert_eq!(answer.headers["content-type"], "application/json");
        let length: usize = answer.headers["content-length"].to_str().unwrap().parse().unwrap();
        assert!(length >= answer.response().to_string().len() / 2, "{length}");
        assert!(!answer.headers.contains_key("transfer-encoding"));
    }
    let answer = site.call("tools/list", ()).await;
    assert_eq!(answer.result()["tools"].as_array().map(Vec::len), Some(5));
    let answer = site.call("x/unknown", ()).await;
    assert_eq!(answer.error()["code"], -32601);
    assert_eq!(answer.status == StatusCode::NOT_FOUND, site.modern());
}

/// The handler sees the request's headers, the principal, what a middleware left, and the peer.
async fn caller(site: Site) {
    let answer = site.tool("who", json!({})).await;
    assert_eq!(text(&answer), "ada of acme at 127.0.0.1, request 17");
}

/// The framework's own authentication stands in front, and the session is its principal's.
async fn stranger(site: Site) {
    let call = site.tool("who", json!({})).header("authorization", "Basic ada");
    assert_eq!(call.await.status, StatusCode::UNAUTHORIZED);
    let answer = site.tool("who", json!({})).header("authorization", "Bearer bob@acme").await;
    if site.caller == crate::site::Caller::Session {
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    } else {
        assert_eq!(text(&answer), "bob of acme at 127.0.0.1, request 17");
    }
}

async fn notification(site: Site) {
    let answer = site.notify("notifications/x", ()).await;
    assert_eq!((answer.status, answer.messages.len()), (StatusCode::ACCEPTED, 0));
}

/// What is refused says so in its own words, not in the framework's.
async fn refused(site: Site) {
    let answer = site.bare(Method::PUT).await;
    assert_eq!((answer.status, &answer.error()["code"]), (StatusCode::METHOD_NOT_ALLOWED, &json!(-32600)));
    assert!(answer.headers["allow"].to_str().unwrap().contains("POST"));
    let answer = site.tool("echo", json!({})).header("content-type", "text/plain").await;
    assert_eq!((answer.status, &answer.error()["code"]), (StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!(-32600)));
    let answer = site.tool("echo", json!({})).header("origin", "https://evil.example").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let answer = site.bare(Method::HEAD).await;
    assert_eq!((answer.status, answer.messages.len()), (StatusCode::METHOD_NOT_ALLOWED, 0));
}

/// A page from this machine may ask whether it may, and then do it.
async fn browser(site: Site) {
    let origin = "http://localhost:3000";
    let preflight = Request::options(PATH).header("origin", origin).header("access-control-request-method", "POST");
    let answer = site.send(preflight.body(Bytes::new()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(answer.headers["access-control-allow-origin"], origin);
    let answer = site.tool("echo", json!({ "text": "page" })).header("origin", origin).await;
    assert_eq!((text(&answer), &answer.headers["access-control-allow-origin"]), ("page", &origin.parse().unwrap()));
}

/// A body whose head says that it is too long is refused before it comes; one of just the limit is not.
async fn announced(site: Site) {
    let fits = request(&site, BODY_BYTES).map(Full::new);
    let fits = soon(site.running.remote.another().send(fits)).await.unwrap();
    assert_eq!(fits.status(), StatusCode::OK);
    let mut longer = request(&site, 0).map(|_| StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>()));
    longer.headers_mut().insert("content-length", (BODY_BYTES + 1).into());
    too_large(soon(site.running.remote.another().send(longer)).await.unwrap()).await;
}

/// One that does not say is refused as soon as it is, though it has not ended.
async fn unannounced(site: Site) {
    let endless = stream::iter([b"{".repeat(BODY_BYTES), b"{".to_vec()]).chain(stream::pending());
    let endless = endless.map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
    let request = request(&site, 0).map(|_| StreamBody::new(endless));
    too_large(soon(site.running.remote.another().send(request)).await.unwrap()).await;

    // And one in small pieces, which is not too long, is read.
    let (head, body) = self::request(&site, BODY_BYTES).into_parts();
    let pieces: Vec<_> =
        body.chunks(1000).map(|piece| Ok::<_, Infallible>(Frame::data(body.slice_ref(piece)))).collect();
    let request = Request::from_parts(head, StreamBody::new(stream::iter(pieces)));
    let answer = soon(site.running.remote.another().send(request)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

/// A call of `echo` whose body is so long, or as short as it can be.
fn request(site: &Site, length: usize) -> Request<Bytes> {
    let params = |text: String| json!({ "name": "echo", "arguments": { "text": text } });
    let of = |text| mcp_transport::testing::request(site.caller.revision(), "tools/call", params(text));
    let least = of(String::new()).body().len();
    let mut request = of("a".repeat(length.saturating_sub(least)));
    *request.uri_mut() = PATH.parse().unwrap();
    request.headers_mut().insert("authorization", "Bearer ada@acme".parse().unwrap());
    request
}

async fn too_large(answer: http::Response<mount::remote::Held>) {
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
    let error: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(error["error"]["code"], -32600, "{error}");
}

async fn delete(site: Site) {
    let answer = site.bare(Method::DELETE).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(site.call("tools/list", ()).await.status, StatusCode::NOT_FOUND);
}
