//! Who gets in, and what the others are told.

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, ORIGIN,
    RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Method, StatusCode};
use mcp_transport::RefusalKind;
use mcp_transport::auth::AuthLayer;
use tower::Layer;

use super::{Issuer, Other, RESOURCE, Site, WHERE, bearing, document, principal, refused};
use crate::harness::{Carrier, Carriers, Cx, Wire};
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("auth/required", Carriers::Every, required);
    wire.any("auth/required/other-schemes", Carriers::Every, other_schemes);
    wire.any("auth/required/not-in-the-query", Carriers::Every, in_the_query);
    wire.any("auth/required/any-service", Carriers::Every, any_service);
    wire.any("auth/credentials", Carriers::Every, malformed);
    wire.any("auth/verified", Carriers::Every, verified);
    wire.any("auth/verified/refused", Carriers::Every, not_accepted);
    wire.any("auth/verified/audience", Carriers::Every, audience);
    wire.any("auth/verified/unavailable", Carriers::Every, unavailable);
    wire.any("auth/browser", Carriers::Every, browser);
}

const REQUIRED: &str = "An access token is required";

/// Without a token nothing gets in, whatever it is, and that is no error.
async fn required(cx: Cx) {
    let site = Site::open(cx).await;
    let mut kinds = Vec::new();
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::OPTIONS] {
        let answer = site.client.send(Call::bare(method)).await;
        refused(answer, StatusCode::UNAUTHORIZED, &format!("Bearer {WHERE}"), REQUIRED).await;
        kinds.push(RefusalKind::Unauthenticated);
    }
    for call in [site.call(), site.call().notification(), Call::post("no message".into())] {
        let answer = site.client.send(call).await;
        refused(answer, StatusCode::UNAUTHORIZED, &format!("Bearer {WHERE}"), REQUIRED).await;
        kinds.push(RefusalKind::Unauthenticated);
    }
    let head = site.client.send(Call::bare(Method::HEAD)).await;
    assert_eq!(head.status, StatusCode::UNAUTHORIZED);
    assert_eq!(head.text().await, "");
    kinds.push(RefusalKind::Unauthenticated);
    assert_eq!(site.at_layer.take(), kinds);
    assert_eq!(site.behind.take(), []);
    assert_eq!(site.asked(), []);
    assert_eq!(site.ran(), [""; 0]);
}

async fn other_schemes(cx: Cx) {
    let site = Site::open(cx).await;
    for line in ["Basic YWxpY2U6eA==", "DPoP alice", "BearerToken alice", "Negotiate"] {
        let answer = site.client.send(site.call().header(AUTHORIZATION.as_str(), line)).await;
        refused(answer, StatusCode::UNAUTHORIZED, &format!("Bearer {WHERE}"), REQUIRED).await;
    }
    assert_eq!(site.asked(), []);
    assert_eq!(site.ran(), [""; 0]);
}

/// Nothing but the header is looked at, and what else there is does not hurt.
async fn in_the_query(cx: Cx) {
    let site = Site::open(cx).await;
    let query = || {
        let mut call = site.call();
        call.path.push_str("?access_token=alice");
        call
    };
    refused(site.client.send(query()).await, StatusCode::UNAUTHORIZED, &format!("Bearer {WHERE}"), REQUIRED).await;
    let mut cookie = site.call().header("cookie", "access_token=alice");
    cookie.set("/params/access_token", "alice");
    refused(site.client.send(cookie).await, StatusCode::UNAUTHORIZED, &format!("Bearer {WHERE}"), REQUIRED).await;
    assert_eq!(site.asked(), []);
    let result = site.client.send(bearing(query(), "bob")).await.result().await;
    assert_eq!(result["principal"], principal("bob"));
}

/// The layer stands in front of whatever it is given.
async fn any_service(cx: Cx) {
    let layer = AuthLayer::new(document(), std::sync::Arc::new(Issuer::default())).expect("a layer");
    let client = cx.serve(layer.layer(Other)).await;
    let answer = client.send(Call::bare(Method::PATCH)).await;
    let metadata = r#"Bearer resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp""#;
    refused(answer, StatusCode::UNAUTHORIZED, metadata, REQUIRED).await;
    for (method, token, said) in [(Method::PATCH, "alice", "alice"), (Method::GET, "bob.2", "bob")] {
        let answer = client.send(bearing(Call::bare(method.clone()), token)).await;
        assert_eq!(answer.text().await, format!("{method} {}", principal(said)));
    }
    let answer = client.send(preflight()).await;
    assert_eq!(answer.text().await, "OPTIONS nobody");
}

/// Who sends several tokens, or something that is none, is not guessed at.
async fn malformed(cx: Cx) {
    let site = Site::open(cx).await;
    const MESSAGE: &str = "Authorization must be Bearer and one token";
    let challenge = format!(r#"Bearer error="invalid_request", error_description="{MESSAGE}", {WHERE}"#);
    let long = format!("Bearer {}", "a".repeat(16 * 1024 + 1));
    let mut calls = vec![
        site.call().header(AUTHORIZATION.as_str(), "Bearer alice").also(AUTHORIZATION.as_str(), "Bearer alice"),
        site.call().header(AUTHORIZATION.as_str(), "Bearer alice").also(AUTHORIZATION.as_str(), "Basic YWxpY2U6eA=="),
        site.call().header(AUTHORIZATION.as_str(), "Basic YWxpY2U6eA==").also(AUTHORIZATION.as_str(), "Bearer alice"),
    ];
    for line in
        ["Bearer", "Bearer alice, Bearer bob", "Bearer alice bob", "Bearer \"alice\"", "Bearer\talice", "Bearer ="]
    {
        calls.push(site.call().header(AUTHORIZATION.as_str(), line));
    }
    calls.push(site.call().header(AUTHORIZATION.as_str(), b"Bearer alic\xe9"));
    if cx.carrier != Carrier::H2 {
        // Over HTTP/2 so much of a header is refused sooner.
        calls.push(site.call().header(AUTHORIZATION.as_str(), long));
    }
    let count = calls.len();
    for call in calls {
        refused(site.client.send(call).await, StatusCode::BAD_REQUEST, &challenge, MESSAGE).await;
    }
    assert_eq!(site.at_layer.take(), vec![RefusalKind::MalformedCredentials; count]);
    assert_eq!(site.asked(), []);
    assert_eq!(site.ran(), [""; 0]);
}

/// The verifier is asked once, and the handler knows all that it said and nothing of the token.
async fn verified(cx: Cx) {
    let site = Site::open(cx).await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let token = "alice.7.files-read+x~y/z".to_owned();
        let call = site.call().header(AUTHORIZATION.as_str(), format!("{scheme}  {token}"));
        let result = site.client.send(call).await.result().await;
        assert_eq!(result["principal"], principal("alice"));
        assert_eq!(result["serial"], "7");
        assert_eq!(result["scopes"], "files-read x~y/z");
        assert_eq!(result["authorization"], false);
        assert!(!result.to_string().contains(&token), "{result}");
        assert_eq!(site.asked(), [(token, RESOURCE.to_owned(), "/mcp".to_owned())]);
    }
    let answer = site.client.send(bearing(site.call().notification(), "alice")).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(site.ran().len(), 4);
    assert_eq!(site.at_layer.take(), []);
}

async fn not_accepted(cx: Cx) {
    let site = Site::open(cx).await;
    for (token, message, kind) in [
        ("forged", "The access token is invalid", RefusalKind::InvalidToken),
        ("old", "The access token has expired", RefusalKind::ExpiredToken),
        // The verifier lets it pass.
        ("alice.1.x.0", "The access token has expired", RefusalKind::ExpiredToken),
        ("nobodys", "The access token is for another resource", RefusalKind::WrongAudience),
        ("others", "The access token is for another resource", RefusalKind::WrongAudience),
        ("named", "The access token is for another resource", RefusalKind::WrongAudience),
    ] {
        let challenge = format!(r#"Bearer error="invalid_token", error_description="{message}", {WHERE}"#);
        let answer = site.client.send(bearing(site.call(), token)).await;
        refused(answer, StatusCode::UNAUTHORIZED, &challenge, message).await;
        assert_eq!(site.at_layer.take(), [kind]);
    }
    assert_eq!(site.ran(), [""; 0]);
}

/// A token for this server, or for what it is also called.
async fn audience(cx: Cx) {
    let site = Site::with(cx, |layer| layer.audience("api://mcp"), |service| service).await;
    for token in ["named", "among", "alice"] {
        assert_eq!(site.client.send(bearing(site.call(), token)).await.result().await["principal"], principal(token));
    }
    for token in ["nobodys", "others"] {
        assert_eq!(site.client.send(bearing(site.call(), token)).await.status, StatusCode::UNAUTHORIZED);
    }
}

/// Whoever cannot tell lets nobody in, and says nothing more.
async fn unavailable(cx: Cx) {
    let site = Site::open(cx).await;
    for token in ["unknowable", "panic"] {
        let answer = site.client.send(bearing(site.call(), token)).await;
        assert_eq!(answer.header(RETRY_AFTER.as_str()), "5");
        let message = "The access token cannot be verified now; try again later";
        refused(answer, StatusCode::SERVICE_UNAVAILABLE, "", message).await;
        assert_eq!(site.at_layer.take(), [RefusalKind::VerifierUnavailable]);
    }
    assert_eq!(site.ran(), [""; 0]);
    assert_eq!(site.client.send(bearing(site.call(), "alice")).await.status, StatusCode::OK);
}

fn preflight() -> Call {
    Call::bare(Method::OPTIONS)
        .header(ORIGIN.as_str(), "http://localhost:6274")
        .header(ACCESS_CONTROL_REQUEST_METHOD.as_str(), "POST")
}

/// A page asks first, without a token, and reads every challenge.
async fn browser(cx: Cx) {
    let site = Site::ruled(cx, |attempt| attempt.require(&["more"])).await;
    let answer = site.client.send(preflight()).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(answer.header(ACCESS_CONTROL_ALLOW_ORIGIN.as_str()), "http://localhost:6274");
    // With credentials of whatever kind, and from whatever origin: who may is the service's to say.
    let answer = site.client.send(preflight().header(AUTHORIZATION.as_str(), "Bearer forged")).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    let answer = site.client.send(preflight().header(ORIGIN.as_str(), "https://evil.test")).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(site.asked(), []);

    let page = |call: Call| call.header(ORIGIN.as_str(), "http://localhost:6274");
    let double = site.call().header(AUTHORIZATION.as_str(), "Bearer a").also(AUTHORIZATION.as_str(), "Bearer a");
    for (call, status, origin) in [
        (site.call(), StatusCode::UNAUTHORIZED, "*"),
        (bearing(site.call(), "forged"), StatusCode::UNAUTHORIZED, "*"),
        (double, StatusCode::BAD_REQUEST, "*"),
        (bearing(site.call(), "unknowable"), StatusCode::SERVICE_UNAVAILABLE, "*"),
        (bearing(site.call(), "alice"), StatusCode::FORBIDDEN, "http://localhost:6274"),
    ] {
        let answer = site.client.send(page(call)).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header(ACCESS_CONTROL_ALLOW_ORIGIN.as_str()), origin);
        assert!(answer.header(ACCESS_CONTROL_EXPOSE_HEADERS.as_str()).contains("WWW-Authenticate"), "{status}");
        assert_eq!(answer.headers.contains_key(WWW_AUTHENTICATE), status != StatusCode::SERVICE_UNAVAILABLE);
    }
}
