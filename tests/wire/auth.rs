//! A resource server of OAuth: what a token opens, and what a client is told that has none.

mod allowed;
mod challenge;
mod ends;
mod metadata;
mod owner;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{StatusCode, request};
use mcp_transport::auth::{
    AccessToken, AuthLayer, AuthLayerBuilder, AuthService, Resource, ResourceMetadata, TokenError, TokenVerifier,
};
use mcp_transport::{Attempt, Changes, Denied, McpError, Reply, StreamableHttpBuilder, StreamableHttpService};
use serde_json::{Value, json};
use tower::Layer;

use crate::harness::{Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::Call;
use crate::support::seen::Refusals;

pub fn register(wire: &mut Wire) {
    challenge::register(wire);
    metadata::register(wire);
    owner::register(wire);
    allowed::register(wire);
    ends::register(wire);
}

pub const RESOURCE: &str = "https://mcp.test/mcp";
pub const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";
pub const ROOT: &str = "/.well-known/oauth-protected-resource";

/// What every challenge of these servers ends with.
pub const WHERE: &str =
    r#"resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp", scope="mcp:use mcp:list""#;

/// What the verifier was asked: the token, the resource, and the path of the request.
type Asked = Arc<Mutex<Vec<(String, String, String)>>>;

/// Reads tokens that say what they are: `subject.serial.scope+scope`, of which the last two may be absent; and
/// `subject.serial.scopes.seconds` that expires so many from now. Some words stand for what can go wrong.
#[derive(Clone, Default)]
pub struct Issuer {
    asked: Asked,
}

/// A claim of the application's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Serial(pub String);

impl TokenVerifier for Issuer {
    async fn verify(&self, token: &str, resource: &Resource, head: &request::Parts) -> Result<AccessToken, TokenError> {
        let asked = (token.to_owned(), resource.to_string(), head.uri.path().to_owned());
        self.asked.lock().expect("nobody panicked").push(asked);
        tokio::task::yield_now().await;
        let mut parts = token.split('.');
        let subject = parts.next().unwrap_or_default();
        let read = AccessToken::new("https://auth.test", subject).audience([RESOURCE]);
        let read = match subject {
            "forged" => return Err(TokenError::Invalid),
            "old" => return Err(TokenError::Expired),
            "unknowable" => return Err(TokenError::Unavailable),
            "panic" => std::panic::resume_unwind(Box::new("on purpose")),
            "nobodys" => AccessToken::new("https://auth.test", subject),
            "others" => read.audience(["https://other.test/mcp", "mcp.test", "https://mcp.test"]),
            "named" => read.audience(["api://mcp"]),
            "among" => read.audience(["https://other.test", "HTTPS://MCP.test/mcp/"]),
            _ => read,
        };
        let serial = parts.next().unwrap_or_default();
        let read = read.with(Serial(serial.to_owned())).scope(&parts.next().unwrap_or_default().replace('+', " "));
        Ok(match parts.next().map(|seconds| seconds.parse().expect("seconds")) {
            Some(0) => read.expires_at(SystemTime::now()),
            Some(seconds) => read.expires_at(SystemTime::now() + Duration::from_secs(seconds)),
            None => read,
        })
    }
}

/// A protected server.
pub struct Site {
    pub cx: Cx,
    pub client: Client,
    pub service: StreamableHttpService,
    pub changes: Changes,
    /// What reached the handler: methods.
    pub ran: Arc<Mutex<Vec<String>>>,
    /// What the layer refused.
    pub at_layer: Refusals,
    /// What the service refused.
    pub behind: Refusals,
    pub issuer: Issuer,
}

impl Site {
    pub async fn open(cx: Cx) -> Self {
        Self::with(cx, |layer| layer, |service| service).await
    }

    /// A server whose rule is this.
    pub async fn ruled(cx: Cx, rule: impl Fn(&Attempt<'_>) -> Result<(), Denied> + Send + Sync + 'static) -> Self {
        Self::with(cx, |layer| layer, |service| service.authorize(rule)).await
    }

    pub async fn with(
        cx: Cx,
        layer: impl FnOnce(AuthLayerBuilder<Issuer>) -> AuthLayerBuilder<Issuer>,
        configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
    ) -> Self {
        let (issuer, ran) = (Issuer::default(), Arc::new(Mutex::new(Vec::new())));
        let (at_layer, behind, changes) = (Refusals::default(), Refusals::default(), Changes::new());
        let builder = StreamableHttpService::builder(script(&ran)).observer(behind.clone()).changes(&changes);
        let service = configure(builder).build().expect("a service");
        let builder = AuthLayer::builder(document(), issuer.clone());
        let builder = builder.initial_scopes(["mcp:use", "mcp:list"]).observer(at_layer.clone());
        let layered: AuthService<_, _> = layer(builder).build().expect("a layer").layer(service.clone());
        Self { cx, client: cx.serve(layered).await, service, changes, ran, at_layer, behind, issuer }
    }

    /// A request that is right but for its token.
    pub fn call(&self) -> Call {
        Call::of(self.cx.revision, "prompts/get", json!({"name": "a"}))
    }

    /// The methods that reached the handler since the last time; the transport's own listing is none.
    pub fn ran(&self) -> Vec<String> {
        std::mem::take(&mut self.ran.lock().expect("nobody panicked"))
    }

    /// What the verifier was asked since the last time.
    pub fn asked(&self) -> Vec<(String, String, String)> {
        std::mem::take(&mut self.issuer.asked.lock().expect("nobody panicked"))
    }
}

pub fn document() -> ResourceMetadata {
    ResourceMetadata::new(RESOURCE, "https://auth.test").scopes_supported(["mcp:use"]).resource_name("Wire")
}

/// Tells every request what it knows of who asks.
fn script(ran: &Arc<Mutex<Vec<String>>>) -> Script {
    let (asked, told) = (Arc::clone(ran), Arc::clone(ran));
    let script = Script::new(move |request, cx| {
        let asked = Arc::clone(&asked);
        async move {
            if request.method() == "tools/list" {
                return Reply::of(json!({"tools": []}));
            }
            asked.lock().expect("nobody panicked").push(request.method().to_owned());
            if request.name() == Some("ask") {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            let token = cx.extensions().get::<AccessToken>().ok_or_else(|| McpError::internal("no token"))?;
            let head = cx.http().ok_or_else(|| McpError::internal("no head"))?;
            Reply::of(json!({
                "content": [],
                "messages": [],
                "principal": cx.principal().map(|principal| principal.as_str()),
                "serial": token.get::<Serial>().map(|serial| serial.0.as_str()),
                "scopes": token.scopes().to_string(),
                "shown": format!("{token:?}"),
                "authorization": head.headers.contains_key(AUTHORIZATION),
            }))
        }
    });
    script
        .hearing(move |notification, _| {
            told.lock().expect("nobody panicked").push(notification.method().to_owned());
            async {}
        })
        .declaring(crate::listen::everything().tools().prompts().resources().completions())
}

pub fn bearing(call: Call, token: &str) -> Call {
    call.header(AUTHORIZATION.as_str(), format!("Bearer {token}"))
}

/// The principal of a subject of the issuer.
pub fn principal(subject: &str) -> String {
    format!(r#"["https://auth.test","{subject}"]"#)
}

/// Asserts that a refusal is this, and nothing more is told.
pub async fn refused(answer: Answer, status: StatusCode, challenge: &str, message: &str) {
    assert_eq!(answer.status, status);
    assert_eq!(answer.header(WWW_AUTHENTICATE.as_str()), challenge);
    let code = if status == StatusCode::SERVICE_UNAVAILABLE { -32603 } else { -32600 };
    let error = answer.error(status, code, None).await;
    assert_eq!(error, json!({"code": code, "message": message}));
}

/// Asserts that a request of this id wants for scopes, and that the client is told which.
pub async fn wanting(answer: Answer, scope: &str, id: Option<&Value>) {
    let expected = format!(
        r#"Bearer error="insufficient_scope", error_description="Not allowed", scope="{scope}", resource_metadata="https://mcp.test{METADATA}""#
    );
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.header(WWW_AUTHENTICATE.as_str()), expected);
    let error = answer.error(StatusCode::FORBIDDEN, -32600, id).await;
    assert_eq!(error, json!({"code": -32600, "message": "Not allowed"}));
}

/// A service of somebody else's, that says who gets through to it.
#[derive(Clone)]
pub struct Other;

impl<B> tower_service::Service<http::Request<B>> for Other {
    type Response = http::Response<http_body_util::Full<bytes::Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let principal = request.extensions().get::<mcp_transport::Principal>();
        let said = format!("{} {}", request.method(), principal.map_or("nobody", |principal| principal.as_str()));
        std::future::ready(Ok(http::Response::new(said.into())))
    }
}
