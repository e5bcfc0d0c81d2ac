//! Behind OAuth: every request needs an access token, and one of the tools needs a scope of its own.
//!
//!     cargo run --example auth -- --http 127.0.0.1:8080 --issuer http://localhost:9000 --key "our secret"
//!
//! The tokens are JWTs that the authorization server at `--issuer` signs with the key that both know (HS256). A real one
//! signs with a key of its own and publishes the other half: then the rules name that algorithm, and the key comes from its
//! `jwks_uri`.

use std::time::{Duration, SystemTime};

use axum::http::request;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use mcp_transport::auth::{AccessToken, AuthLayer, Resource, ResourceMetadata, TokenError, TokenVerifier};
use mcp_transport::{
    Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
};
use serde::Deserialize;
use serde_json::json;
use tower::Layer;

struct Files;

impl McpHandler for Files {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("files", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let who = cx.principal().ok_or_else(|| McpError::internal("the layer in front is missing"))?;
        let text = match (request.method(), request.name()) {
            ("tools/list", _) => {
                let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
                return Reply::of(json!({ "tools": [tool("look"), tool("delete")] }));
            }
            ("tools/call", Some("look")) => format!("{} sees a file", who.as_str()),
            ("tools/call", Some("delete")) => format!("{} has deleted it", who.as_str()),
            ("tools/call", _) => return Err(McpError::invalid_params("There is no such tool")),
            _ => return Err(McpError::method_not_found()),
        };
        Reply::of(json!({ "content": [{ "type": "text", "text": text }] }))
    }
}

/// Reads the tokens of one authorization server.
struct Jwt {
    key: DecodingKey,
    rules: Validation,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: String,
    exp: u64,
    scope: String,
}

impl Jwt {
    fn new(issuer: &str, key: &str, resource: &str) -> Self {
        // One algorithm, whatever a token says of itself.
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_required_spec_claims(&["iss", "sub", "aud", "exp"]);
        rules.set_issuer(&[issuer]);
        rules.set_audience(&[resource]);
        rules.leeway = 0;
        Self { key: DecodingKey::from_secret(key.as_bytes()), rules }
    }
}

impl TokenVerifier for Jwt {
    async fn verify(&self, token: &str, _: &Resource, _: &request::Parts) -> Result<AccessToken, TokenError> {
        let read = jsonwebtoken::decode::<Claims>(token, &self.key, &self.rules);
        let claims = read.map_err(|error| match error.kind() {
            ErrorKind::ExpiredSignature => TokenError::Expired,
            _ => TokenError::Invalid,
        })?;
        let Claims { iss, sub, aud, exp, scope } = claims.claims;
        let expires = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(exp)).ok_or(TokenError::Invalid)?;
        Ok(AccessToken::new(&iss, &sub).audience([aud]).scope(&scope).expires_at(expires))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |name: &str| std::env::args().skip_while(|argument| argument != name).nth(1);
    let issuer = argument("--issuer").unwrap_or_else(|| "http://localhost:9000".to_owned());
    let key = argument("--key").unwrap_or_else(|| "our secret".to_owned());
    let address = argument("--http").unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    // What clients know it as: a real server's name and `https`.
    let resource = format!("http://{}/mcp", listener.local_addr()?);

    let metadata = ResourceMetadata::new(&resource, &issuer).scopes_supported(["files:read"]).resource_name("Files");
    let verifier = Jwt::new(&issuer, &key, &resource);
    let auth = AuthLayer::builder(metadata, verifier).initial_scopes(["files:read"]).build()?;
    let mcp = StreamableHttpService::builder(Files)
        .authorize(|attempt| match (attempt.method(), attempt.name()) {
            ("tools/call", Some("delete")) => attempt.require(&["files:read", "files:write"]),
            _ => attempt.require(&["files:read"]),
        })
        .build()?;
    let app = axum::Router::new()
        .route_service("/mcp", auth.layer(mcp))
        .route_service(auth.metadata_path(), auth.metadata_service());
    println!("listening on {resource}");
    axum::serve(listener, app).await?;
    Ok(())
}
