//! The document that says which authorization servers issue tokens for this one (RFC 9728).

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Map, Value, json};

use super::resource::{self, Resource};
use crate::error::Error;
use crate::http::ResponseBody;
use crate::protocol::challenge;

/// What is served.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Says which authorization servers issue tokens for this server, and a few words about it: the document of RFC 9728,
/// which every client reads before it asks for a token.
///
/// ```
/// # use mcp_transport::auth::ResourceMetadata;
/// let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", "https://auth.example.com")
///     .scopes_supported(["files:read", "files:write"])
///     .resource_name("Files");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ResourceMetadata {
    resource: String,
    servers: Vec<String>,
    scopes: Vec<String>,
    members: Map<String, Value>,
}

impl ResourceMetadata {
    /// The document of the MCP server at this URL, as its clients know it, whose tokens this authorization server
    /// issues, named by its issuer identifier. Both are `https`, but for `http` on `localhost`, `127.0.0.1` and
    /// `[::1]`, without a query or a fragment; best without a slash at the end.
    pub fn new(resource: impl Into<String>, authorization_server: impl Into<String>) -> Self {
        let servers = vec![authorization_server.into()];
        Self { resource: resource.into(), servers, scopes: Vec::new(), members: Map::new() }
    }

    /// Another authorization server. Which one to use is the client's choice.
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.servers.push(issuer.into());
        self
    }

    /// The scopes that a client needs for the basic functions; those of single operations are better asked for when
    /// they are needed ([`Denied::insufficient_scope`](crate::Denied::insufficient_scope)). Default: not said.
    pub fn scopes_supported(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// The server's name, for people.
    pub fn resource_name(self, name: impl Into<String>) -> Self {
        self.member("resource_name", name.into())
    }

    /// The URL of a page for developers.
    pub fn resource_documentation(self, url: impl Into<String>) -> Self {
        self.member("resource_documentation", url.into())
    }

    /// Any other member of the document, such as `resource_policy_uri`. Those that the other methods set cannot be set
    /// here, nor can `bearer_methods_supported`, which is `["header"]`.
    pub fn member(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.members.insert(name.into(), value.into());
        self
    }

    /// The resource and the document, if both can be.
    pub(super) fn read(self) -> Result<(Resource, Bytes), Error> {
        let invalid = |setting| move |fault| Error::configuration(setting, fault);
        let resource = Resource::read(&self.resource).map_err(invalid("resource"))?;
        for server in &self.servers {
            resource::judge_issuer(server).map_err(invalid("authorization_server"))?;
        }
        judge_scopes("scopes_supported", &self.scopes)?;
        let mut document = self.members;
        document.insert("resource".to_owned(), json!(self.resource));
        document.insert("authorization_servers".to_owned(), json!(self.servers));
        document.insert("bearer_methods_supported".to_owned(), json!(["header"]));
        if !self.scopes.is_empty() {
            document.insert("scopes_supported".to_owned(), json!(self.scopes));
        }
        Ok((resource, Bytes::from(Value::Object(document).to_string())))
    }
}

/// Whether all can be scopes of this server.
pub(super) fn judge_scopes(setting: &'static str, scopes: &[String]) -> Result<(), Error> {
    if !scopes.iter().all(|scope| challenge::is_scope(scope)) {
        return Err(Error::configuration(setting, "a scope is one word of visible ASCII without \" and \\"));
    }
    if scopes.iter().any(|scope| scope == "offline_access") {
        // 2026-07-28, "Refresh Tokens".
        return Err(Error::configuration(setting, "offline_access is no requirement of a server"));
    }
    Ok(())
}

/// Serves the [`ResourceMetadata`] of a server, on whatever path it is mounted.
///
/// It belongs at [`AuthLayer::metadata_path`](super::AuthLayer::metadata_path), and may be at
/// `/.well-known/oauth-protected-resource` too, where there is one MCP server on the host. Everybody may read the
/// document, pages of every origin too, and keep it for an hour.
#[derive(Clone)]
pub struct MetadataService {
    document: Bytes,
}

impl MetadataService {
    pub(super) fn new(document: Bytes) -> Self {
        Self { document }
    }

    /// Answers one HTTP request, as the tower service does, for frameworks that do not speak tower.
    pub fn handle<B>(&self, request: &Request<B>) -> Response<ResponseBody> {
        self.answer(request.method())
    }

    pub(super) fn answer(&self, method: &Method) -> Response<ResponseBody> {
        let mut response = match *method {
            Method::GET => self.document(ResponseBody::full(self.document.clone())),
            Method::HEAD => self.document(ResponseBody::empty()),
            Method::OPTIONS => preflight(),
            _ => not_allowed(),
        };
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        response
    }

    fn document(&self, body: ResponseBody) -> Response<ResponseBody> {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(self.document.len()));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
        response
    }
}

/// Pages send what their client library does, such as `MCP-Protocol-Version`, so every header is allowed; nothing is
/// read of any.
fn preflight() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    // The star alone does not stand for `Authorization`.
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    response
}

fn not_allowed() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, METHODS);
    response
}

impl<B> tower_service::Service<Request<B>> for MetadataService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.handle(&request)))
    }
}

impl fmt::Debug for MetadataService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataService").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(metadata: ResourceMetadata) -> Value {
        let (_, document) = metadata.read().unwrap();
        serde_json::from_slice(&document).unwrap()
    }

    #[test]
    fn the_document_says_what_it_must() {
        let least = document(ResourceMetadata::new("https://a.test/mcp", "https://auth.test"));
        let expected = json!({
            "resource": "https://a.test/mcp",
            "authorization_servers": ["https://auth.test"],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!(least, expected);
        let whole = ResourceMetadata::new("https://a.test/mcp", "https://auth.test")
            .authorization_server("https://other.test/tenant")
            .scopes_supported(["a", "b:c"])
            .resource_name("A \"server\"")
            .resource_documentation("https://a.test/docs")
            .member("resource_policy_uri", "https://a.test/policy")
            .member("resource", "https://evil.test")
            .member("bearer_methods_supported", json!(["query"]));
        let expected = json!({
            "resource": "https://a.test/mcp",
            "authorization_servers": ["https://auth.test", "https://other.test/tenant"],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["a", "b:c"],
            "resource_name": "A \"server\"",
            "resource_documentation": "https://a.test/docs",
            "resource_policy_uri": "https://a.test/policy",
        });
        assert_eq!(document(whole), expected);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let good = || ResourceMetadata::new("https://a.test/mcp", "https://auth.test");
        for (metadata, names) in [
            (ResourceMetadata::new("a.test", "https://auth.test"), "resource"),
            (ResourceMetadata::new("https://a.test", "http://auth.test"), "authorization_server"),
            (good().authorization_server("https://auth.test?x"), "authorization_server"),
            (good().scopes_supported(["a b"]), "scopes_supported"),
            (good().scopes_supported(["a", ""]), "scopes_supported"),
            (good().scopes_supported(["offline_access"]), "scopes_supported"),
        ] {
            let error = metadata.read().unwrap_err();
            assert_eq!(error.to_string().split(':').next(), Some(names), "{error}");
        }
    }
}
