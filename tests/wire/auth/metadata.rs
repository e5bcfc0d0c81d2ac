//! The document of RFC 9728.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ORIGIN,
};
use http::{Method, StatusCode};
use mcp_transport::auth::{AuthLayer, ResourceMetadata};
use serde_json::json;

use super::{Issuer, METADATA, ROOT, Site, document};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("auth/metadata", Carriers::Every, by_the_layer);
    wire.any("auth/metadata/service", Carriers::Every, by_its_service);
    wire.any("auth/metadata/no-path", Carriers::Every, no_path);
    wire.any("auth/metadata/configuration", Carriers::Clock, configuration);
}

fn at(path: &str, method: Method) -> Call {
    let mut call = Call::bare(method);
    path.clone_into(&mut call.path);
    call
}

/// Everybody gets it, whatever they bring along, and nobody changes it.
async fn is_served(client: &Client, path: &str) {
    let expected = json!({
        "resource": "https://mcp.test/mcp",
        "authorization_servers": ["https://auth.test"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["mcp:use"],
        "resource_name": "Wire",
    });
    let get = || at(path, Method::GET);
    let mut length = String::new();
    for call in [
        get(),
        get().header(ORIGIN.as_str(), "https://evil.test").header("mcp-protocol-version", "2025-06-18"),
        get().header(AUTHORIZATION.as_str(), "Bearer forged"),
        at(&format!("{path}?x=1"), Method::GET),
    ] {
        let answer = client.send(call).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header(ACCESS_CONTROL_ALLOW_ORIGIN.as_str()), "*");
        assert_eq!(answer.header(CACHE_CONTROL.as_str()), "public, max-age=3600");
        answer.header(CONTENT_LENGTH.as_str()).clone_into(&mut length);
        assert_eq!(answer.json().await, expected);
    }
    let head = client.send(at(path, Method::HEAD)).await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.header(CONTENT_TYPE.as_str()), "application/json");
    assert_eq!(head.header(CONTENT_LENGTH.as_str()), length);
    assert_eq!(head.text().await, "");
    let asking = at(path, Method::OPTIONS)
        .header(ORIGIN.as_str(), "https://evil.test")
        .header(ACCESS_CONTROL_REQUEST_METHOD.as_str(), "GET");
    let answer = client.send(asking).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(answer.header(ACCESS_CONTROL_ALLOW_ORIGIN.as_str()), "*");
    assert_eq!(answer.header(ACCESS_CONTROL_ALLOW_METHODS.as_str()), "GET, HEAD, OPTIONS");
    assert_eq!(answer.header(ACCESS_CONTROL_ALLOW_HEADERS.as_str()), "*, Authorization");
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let answer = client.send(at(path, method)).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.header(ALLOW.as_str()), "GET, HEAD, OPTIONS");
        assert_eq!(answer.header(ACCESS_CONTROL_ALLOW_ORIGIN.as_str()), "*");
        assert_eq!(answer.text().await, "");
    }
}

async fn by_the_layer(cx: Cx) {
    let site = Site::open(cx).await;
    for path in [METADATA, ROOT] {
        is_served(&site.client, path).await;
    }
    let others = [format!("{METADATA}/"), format!("{METADATA}x"), format!("{ROOT}/"), format!("{ROOT}/other")];
    for path in others.iter().map(String::as_str).chain(["/.well-known/oauth-protected-resourcex", "/mcp/.well-known"])
    {
        assert_eq!(site.client.send(at(path, Method::GET)).await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(site.asked(), []);
    assert_eq!(site.ran(), [""; 0]);
}

/// Wherever it is mounted.
async fn by_its_service(cx: Cx) {
    let layer = AuthLayer::new(document(), Issuer::default()).expect("a layer");
    assert_eq!(layer.metadata_path(), METADATA);
    assert_eq!(layer.resource().metadata_url(), format!("https://mcp.test{METADATA}"));
    let client = cx.serve(layer.metadata_service()).await;
    for path in [METADATA, "/elsewhere"] {
        is_served(&client, path).await;
    }
}

/// A server at the root of its host has but one path.
async fn no_path(cx: Cx) {
    for uri in ["https://mcp.test", "https://mcp.test/"] {
        let metadata = ResourceMetadata::new(uri, "https://auth.test");
        let layer = AuthLayer::new(metadata, Issuer::default()).expect("a layer");
        assert_eq!(layer.metadata_path(), ROOT);
        let client = cx.serve(tower::Layer::layer(&layer, super::Other)).await;
        let document = client.send(at(ROOT, Method::GET)).await.json().await;
        assert_eq!(document["resource"], uri);
        assert_eq!(client.send(at("/", Method::GET)).await.status, StatusCode::UNAUTHORIZED);
    }
}

/// What could be injected into a header, or cannot be, is refused before anything is served.
async fn configuration(_: Cx) {
    let built = |metadata: ResourceMetadata, scopes: &[&str]| {
        let builder = AuthLayer::builder(metadata, Issuer::default());
        builder.initial_scopes(scopes.iter().copied()).build().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(built(document(), &["a", "b:c"]), Ok(()));
    for scope in ["a b", "", "a\", error=\"x", "a\\", "a\r\nx: y", "\u{e9}", "offline_access"] {
        let error = built(document(), &[scope]).expect_err(scope);
        assert!(error.starts_with("initial_scopes: "), "{error}");
        let error = built(document().scopes_supported([scope]), &[]).expect_err(scope);
        assert!(error.starts_with("scopes_supported: "), "{error}");
    }
    for uri in ["https://mcp.test/\", x=\"", "https://mcp.test/\r\nx: y", "http://mcp.test", "mcp.test", "https://a@b"]
    {
        let error = built(ResourceMetadata::new(uri, "https://auth.test"), &[]).expect_err(uri);
        assert!(error.starts_with("resource: "), "{error}");
        let error = built(document().authorization_server(uri), &[]).expect_err(uri);
        assert!(error.starts_with("authorization_server: "), "{error}");
    }
}
