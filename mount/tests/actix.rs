//! What is actix's own: its middleware for compression, and the places where a handler can stand.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::middleware::Compress;
use actix_web::test::{TestRequest, call_and_read_body_json, call_service, init_service};
use actix_web::{App, HttpRequest, web};
use mcp_transport::actix::Endpoint;
use mcp_transport::auth::{AccessToken, AuthLayer, Resource, ResourceMetadata, TokenError, TokenVerifier};
use mcp_transport::{Revision, StreamableHttpService};
use mount::handler::{Tenant, Workshop};
use serde_json::{Value, json};
use tower::Layer;

/// A call of a tool, whose client takes gzip.
fn call(name: &str, arguments: Value) -> TestRequest {
    let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": 1 } });
    let (head, body) = mcp_transport::testing::request(Revision::V2026_07_28, "tools/call", params).into_parts();
    let request = TestRequest::post().uri("/mcp").insert_header(("accept-encoding", "gzip")).set_payload(body);
    head.headers.iter().fold(request, |request, (name, value)| request.append_header((name.as_str(), value.as_bytes())))
}

/// How many bytes there are before it waits.
async fn at_once<B: MessageBody>(mut body: Pin<&mut B>) -> usize {
    let mut bytes = 0;
    let read = async {
        while let Some(Ok(piece)) = poll_fn(|cx| body.as_mut().poll_next(cx)).await {
            bytes += piece.len();
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(200), read).await.is_err(), "it has ended");
    bytes
}

/// actix compresses event streams too. It lets each event out, so none waits for the next.
#[actix_web::test]
async fn compress_holds_no_event_back() {
    let workshop = Arc::new(Workshop::default());
    let mcp = Endpoint::new(StreamableHttpService::new(Arc::clone(&workshop)));
    let app = init_service(App::new().wrap(Compress::default()).route("/mcp", web::to(mcp))).await;
    let request = call("wait", json!({ "streaming": true })).to_request();
    let response = call_service(&app, request).await;
    assert_eq!(response.headers().get("content-encoding").unwrap(), "gzip");
    let mut body = pin!(response.into_body());
    // More than a header of gzip: the report of progress.
    assert!(at_once(body.as_mut()).await > 50);
    assert_eq!(workshop.tally.borrow().begun, 1);
}

/// Wrapped around other routes, it leaves these alone.
#[actix_web::test]
async fn compress_can_stand_beside() {
    let workshop = Arc::new(Workshop::default());
    let mcp = Endpoint::new(StreamableHttpService::new(Arc::clone(&workshop)));
    let pages = web::scope("/pages").wrap(Compress::default());
    let app = init_service(App::new().service(web::resource("/mcp").to(mcp)).service(pages)).await;
    let response = call_service(&app, call("wait", json!({ "streaming": true })).to_request()).await;
    assert!(!response.headers().contains_key("content-encoding"));
    let mut body = pin!(response.into_body());
    assert!(at_once(body.as_mut()).await > 50);
}

/// What the application keeps for all requests can be carried over too.
#[actix_web::test]
async fn application_data_is_carried() {
    let mcp =
        Endpoint::new(StreamableHttpService::new(Workshop::default())).carry(|request: &HttpRequest, extensions| {
            extensions.insert(request.app_data::<Tenant>().unwrap().clone());
        });
    let app = App::new().app_data(Tenant("acme".to_owned())).default_service(web::to(mcp));
    let answer: Value = call_and_read_body_json(&init_service(app).await, call("who", json!({})).to_request()).await;
    assert_eq!(answer["result"]["content"][0]["text"], "nobody of acme at unknown, request unnamed");
}

/// Takes the name of a user for a token.
struct Names;

impl TokenVerifier for Names {
    async fn verify(
        &self,
        token: &str,
        resource: &Resource,
        _: &http::request::Parts,
    ) -> Result<AccessToken, TokenError> {
        Ok(AccessToken::new("https://auth.example.com", token).audience([resource.as_str()]))
    }
}

/// Any tower service can stand there, such as one behind the layer for access tokens.
#[actix_web::test]
async fn a_layer_stands_in_front() {
    let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", "https://auth.example.com");
    let auth = AuthLayer::new(metadata, Names).unwrap();
    let mcp = Endpoint::new(auth.layer(StreamableHttpService::new(Workshop::default())));
    let app = init_service(App::new().route("/mcp", web::to(mcp))).await;
    let response = call_service(&app, call("who", json!({})).to_request()).await;
    assert_eq!(response.status(), 401);
    assert!(response.headers().contains_key("www-authenticate"));
    let known = call("who", json!({})).insert_header(("authorization", "Bearer ada"));
    let answer: Value = call_and_read_body_json(&app, known.to_request()).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("ada"), "{text}");
}
