//! What the usual layers in front do to event streams, and how to keep them from it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use http::{HeaderMap, Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use mcp_transport::testing::{Call, Client};
use mcp_transport::{Limits, Revision, StreamableHttpService};
use mount::handler::{Tally, Workshop};
use serde_json::json;
use tower::{Layer, ServiceExt};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::cors::{Any, CorsLayer};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::{RequestBodyTimeoutLayer, ResponseBodyTimeoutLayer, TimeoutLayer};
use tower_http::trace::TraceLayer;

const MODERN: Revision = Revision::V2026_07_28;

fn serving(limits: Limits) -> (Arc<Workshop>, StreamableHttpService) {
    let workshop = Arc::new(Workshop::default());
    let service = StreamableHttpService::builder(Arc::clone(&workshop)).changes(&workshop.changes).limits(limits);
    (Arc::clone(&workshop), service.allow_origin("https://app.example").build().unwrap())
}

/// Waits for ever, after a report where it is to stream.
fn wait(client: &Client, streaming: bool) -> Call {
    let meta = json!({ "progressToken": 1 });
    client.call(MODERN, "tools/call", json!({ "name": "wait", "arguments": { "streaming": streaming }, "_meta": meta }))
}

fn echo(client: &Client, text: &str) -> Call {
    client.call(MODERN, "tools/call", json!({ "name": "echo", "arguments": { "text": text } }))
}

fn tally(workshop: &Workshop) -> Tally {
    *workshop.tally.borrow()
}

fn encoding(headers: &HeaderMap) -> Option<&str> {
    headers.get("content-encoding").map(|encoding| encoding.to_str().unwrap())
}

/// tower-http knows the type of event streams: JSON is compressed, they are not.
#[tokio::test(start_paused = true)]
async fn compression_leaves_event_streams_alone() {
    let (workshop, service) = serving(Limits::default());
    let client = Client::new(CompressionLayer::new().layer(service));
    let answer = echo(&client, &"a".repeat(100)).header("accept-encoding", "gzip").stream().await;
    assert_eq!(encoding(&answer.headers), Some("gzip"));

    let mut answer = wait(&client, true).header("accept-encoding", "gzip").stream().await;
    assert_eq!(encoding(&answer.headers), None);
    assert_eq!(answer.next().await.unwrap()["method"], "notifications/progress");
    workshop.gate.add_permits(1);
    assert_eq!(answer.next().await.unwrap()["result"]["resultType"], "complete");
}

/// A predicate of one's own has to say so itself.
#[tokio::test(start_paused = true)]
async fn compression_of_ones_own_says_so() {
    let (_, service) = serving(Limits::default());
    let forgets = CompressionLayer::new().compress_when(SizeAbove::default());
    let client = Client::new(forgets.layer(service.clone()));
    let answer = wait(&client, true).header("accept-encoding", "gzip").stream().await;
    assert_eq!(encoding(&answer.headers), Some("gzip"));

    let knows = SizeAbove::default().and(NotForContentType::SSE);
    let client = Client::new(CompressionLayer::new().compress_when(knows).layer(service));
    let mut answer = wait(&client, true).header("accept-encoding", "gzip").stream().await;
    assert_eq!(encoding(&answer.headers), None);
    assert_eq!(answer.next().await.unwrap()["method"], "notifications/progress");
}

/// A time limit counts to the head of the answer. It cuts a silent handler that has not begun one, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_timeout_cuts_the_head() {
    let seconds = |seconds| TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(seconds));
    let (workshop, service) = serving(Limits::default());
    let client = Client::new(seconds(10).layer(service.clone()));
    assert_eq!(wait(&client, false).await.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(tally(&workshop), Tally { begun: 1, finished: 0, dropped: 1 });

    // Longer than the 15 seconds after which the transport begins every answer, it cuts nothing.
    let client = Client::new(seconds(20).layer(service));
    let answer = wait(&client, false).stream().await;
    assert_eq!(answer.status, StatusCode::OK);
    let reading = tokio::spawn(answer.finish());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    workshop.gate.add_permits(1);
    assert_eq!(reading.await.unwrap().result()["content"][0]["text"], "let go on");
    assert_eq!(tally(&workshop), Tally { begun: 2, finished: 1, dropped: 1 });

    // So it is with a shorter one, where the transport begins sooner.
    let (workshop, service) = serving(Limits::default().commit_after(Duration::from_secs(5)));
    let client = Client::new(seconds(10).layer(service));
    assert_eq!(wait(&client, false).stream().await.status, StatusCode::OK);
    assert_eq!(tally(&workshop).begun, 1);
}

/// A limit on the silence of a body has to be longer than the keep-alive interval, which is 15 seconds give or take.
#[tokio::test(start_paused = true)]
async fn a_body_timeout_counts_silence() {
    let (workshop, service) = serving(Limits::default());
    for (seconds, lasts) in [(10, false), (30, true)] {
        let layer = ResponseBodyTimeoutLayer::new(Duration::from_secs(seconds));
        let stack = layer.layer(service.clone());
        let request = mcp_transport::testing::request(
            MODERN,
            "tools/call",
            json!({
                "name": "wait", "arguments": { "streaming": true }, "_meta": { "progressToken": 1 },
            }),
        );
        let response = stack.oneshot(request.map(http_body_util::Full::new)).await.unwrap();
        let mut body = std::pin::pin!(response.into_body());
        let read = async { while let Some(Ok(_)) = body.frame().await {} };
        let ended = tokio::time::timeout(Duration::from_secs(3600), read).await;
        assert_eq!(ended.is_err(), lasts, "{seconds} s");
    }
    drop(workshop);
}

/// A layer that answers for CORS takes the preflights, and what it says stands in place of what the service says.
#[tokio::test(start_paused = true)]
async fn cors_in_front_has_the_last_word() {
    let (_, service) = serving(Limits::default());
    let origin = "https://app.example";
    let preflight = || {
        let request = Request::options("/mcp").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "mcp-method").body(Bytes::new()).unwrap()
    };

    let alone = Client::new(service.clone());
    let answer = alone.send(preflight()).await;
    assert_eq!(answer.headers["access-control-allow-origin"], origin);
    let allowed = answer.headers["access-control-allow-headers"].to_str().unwrap().to_lowercase();
    assert!(allowed.contains("mcp-method"), "{allowed}");

    // With methods and no headers, the page may not send what the protocol asks for.
    let cors = CorsLayer::new().allow_origin(Any).allow_methods([http::Method::POST]);
    let fronted = Client::new(cors.layer(service));
    let answer = fronted.send(preflight()).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(!answer.headers.contains_key("access-control-allow-headers"));
    // No header comes twice, but pages that the service refuses are told by the layer that they may read on.
    let answer = echo(&fronted, "page").header("origin", origin).await;
    let origins: Vec<_> = answer.headers.get_all("access-control-allow-origin").iter().collect();
    assert_eq!(origins, ["*"]);
    let answer = echo(&fronted, "page").header("origin", "https://evil.example").await;
    assert_eq!(
        (answer.status, &answer.headers["access-control-allow-origin"]),
        (StatusCode::FORBIDDEN, &"*".parse().unwrap())
    );
}

/// A layer that limits bodies answers in its own words, or breaks the body off: leave the limit to the service.
#[tokio::test(start_paused = true)]
async fn a_body_limit_in_front_hides_why() {
    let (_, service) = serving(Limits::default());
    let long = || {
        mcp_transport::testing::request(
            MODERN,
            "tools/call",
            json!({
                "name": "echo", "arguments": { "text": "a".repeat(1000) },
            }),
        )
    };
    let stack = RequestBodyLimitLayer::new(100).layer(service);
    let mut announced = long().map(http_body_util::Full::new);
    announced.headers_mut().insert("content-length", 1000.into());
    let response = stack.clone().oneshot(announced).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");

    let response = stack.oneshot(long().map(http_body_util::Full::new)).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

/// axum's own limit is one of its extractors.
#[tokio::test(start_paused = true)]
async fn axums_body_limit_does_not_apply() {
    let (_, service) = serving(Limits::default());
    let app = Router::new().route_service("/mcp", service).layer(DefaultBodyLimit::max(10));
    let answer = echo(&Client::new(app), &"a".repeat(100)).await;
    assert_eq!(answer.status, StatusCode::OK);
}

/// A body that does not come is the business of a layer, or of the proxy in front.
#[tokio::test(start_paused = true)]
async fn a_request_body_timeout_ends_slow_uploads() {
    let (_, service) = serving(Limits::default());
    let stack = RequestBodyTimeoutLayer::new(Duration::from_secs(10)).layer(service);
    let (head, body) = mcp_transport::testing::request(MODERN, "ping", ()).into_parts();
    let half = stream::once(async move { Ok::<_, Infallible>(Frame::data(body.slice(..10))) });
    let request = Request::from_parts(head, StreamBody::new(half.chain(stream::pending())));
    let response = tokio::time::timeout(Duration::from_secs(60), stack.oneshot(request)).await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

/// Whoever looks on changes nothing.
#[tokio::test(start_paused = true)]
async fn tracing_looks_on() {
    let (workshop, service) = serving(Limits::default());
    let client = Client::new(TraceLayer::new_for_http().layer(service));
    let mut answer = wait(&client, true).stream().await;
    assert_eq!(answer.next().now_or_never().flatten().unwrap()["method"], "notifications/progress");
    drop(answer);
    tokio::task::yield_now().await;
    assert_eq!(tally(&workshop), Tally { begun: 1, finished: 0, dropped: 1 });
}
