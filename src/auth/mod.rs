//! A resource server of OAuth: every request needs an access token (2026-07-28, "Authorization").
//!
//! An [`AuthLayer`] stands in front of the service. It reads the token of a request, has it verified by a
//! [`TokenVerifier`] of the application's own, and lets the request through with a [`Principal`](crate::Principal),
//! that the service finds by itself, and with the [`AccessToken`]. Who brings none, or one that is not accepted, gets
//! 401 and is told where to get one: the [`ResourceMetadata`] names the authorization servers. What a token *allows* is
//! only known once it is known what is asked: that is for [`authorize`](crate::StreamableHttpBuilder::authorize) to
//! say, behind the layer. This crate talks to no authorization server, and is none.
//!
//! ```
//! # use http::request;
//! # use mcp_transport::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};
//! # use mcp_transport::auth::{AccessToken, Resource, TokenError, TokenVerifier};
//! # struct Files;
//! # impl McpHandler for Files {
//! #     fn server_info(&self) -> ServerInfo { ServerInfo::new("files", "1") }
//! #     fn capabilities(&self) -> Capabilities { Capabilities::new().tools() }
//! #     async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> { Reply::empty() }
//! # }
//! # struct Jwks;
//! # impl TokenVerifier for Jwks {
//! #     async fn verify(&self, _: &str, _: &Resource, _: &request::Parts) -> Result<AccessToken, TokenError> {
//! #         Err(TokenError::Invalid)
//! #     }
//! # }
//! use mcp_transport::StreamableHttpService;
//! use mcp_transport::auth::{AuthLayer, ResourceMetadata};
//! use tower::Layer;
//!
//! let metadata = ResourceMetadata::new("https://mcp.example.com/mcp", "https://auth.example.com");
//! let auth = AuthLayer::builder(metadata, Jwks).initial_scopes(["files:read"]).build()?;
//! let mcp = StreamableHttpService::builder(Files)
//!     .authorize(|attempt| match (attempt.method(), attempt.name()) {
//!         ("tools/call", Some("delete")) => attempt.require(&["files:read", "files:write"]),
//!         _ => attempt.require(&["files:read"]),
//!     })
//!     .build()?;
//! let app: axum::Router = axum::Router::new()
//!     .route_service("/mcp", auth.layer(mcp))
//!     .route_service(auth.metadata_path(), auth.metadata_service());
//! # Ok::<(), mcp_transport::Error>(())
//! ```
//!
//! `Layer`, for the method `layer`, is of the crate `tower`, of which this needs no feature.
//!
//! In axum the layer can also stand behind its routes. Use `route_layer`: it covers the routes that stand before it and
//! nothing else. A `layer` covers the router's fallback too, so that unknown paths get 401 instead of 404.
//!
//! ```
//! # use mcp_transport::StreamableHttpService;
//! # use mcp_transport::auth::{AuthLayer, TokenVerifier};
//! # fn f(auth: AuthLayer<impl TokenVerifier>, mcp: StreamableHttpService) {
//! let app: axum::Router = axum::Router::new()
//!     .route_service("/mcp", mcp)
//!     .route_layer(auth.clone())
//!     // What comes after it needs no token.
//!     .route_service(auth.metadata_path(), auth.metadata_service());
//! # }
//! ```
//!
//! In actix-web (feature `actix`) the endpoint goes around the layer's service: `Endpoint::new(auth.layer(mcp))`.
//!
//! # What a client gets
//!
//! | request | answer |
//! |---|---|
//! | no token, or credentials of another scheme | 401, and a challenge without an error |
//! | a token that the verifier does not accept, that has expired, or that is for another server | 401, `invalid_token` |
//! | two `Authorization` headers, or one that holds anything but one token | 400, `invalid_request` |
//! | the verifier cannot tell | 503 and `Retry-After` |
//! | an operation that `authorize` denies for want of scopes | 403, `insufficient_scope` |
//! | GET of the metadata's path | the document, without a token |
//! | a browser's preflight | passes, without a token |
//!
//! Every challenge (`WWW-Authenticate: Bearer …`) names the document as `resource_metadata`. Those of the layer itself
//! are readable for pages of every origin, as the document is; all else is for the service to say. A token in the query
//! or the body of a request is not looked at (RFC 6750 has them, MCP forbids them), nor is any past 16 KiB.
//!
//! The layer answers requests for the document itself where it sees them. Where it only sees those of the MCP endpoint,
//! as above, mount [`metadata_service`](AuthLayer::metadata_service) beside it.
//!
//! # Security
//!
//! - **The audience is everything.** A token that was issued for another server must not work here, and
//!   [`TokenVerifier`] says how that is seen to. A token whose audience the verifier does not report is refused.
//! - **A token goes nowhere from here.** The layer takes the `Authorization` header away, the [`AccessToken`] does not
//!   hold the token, and neither appears in anything that is logged or sent. To call another service on the user's
//!   behalf, get a token for that one.
//! - **The principal is issuer and subject.** It is the same after a refresh: the client's session, its streams and
//!   questions stay its own, and nobody else's token opens them.
//! - **Time.** A token is judged when a request comes. An answer under way is not cut when it expires; streams of
//!   changes end then, unless [`OpenStreams::GoOn`].
//! - The layer must see every request: mount the service nowhere without it. Behind a proxy, HTTPS is the proxy's duty.

mod attempt;
mod body;
mod credentials;
mod layer;
mod metadata;
mod resource;
mod service;
mod token;

pub use body::AuthBody;
pub use layer::{AuthLayer, AuthLayerBuilder, OpenStreams};
pub use metadata::{MetadataService, ResourceMetadata};
pub use resource::Resource;
pub use service::{AuthFuture, AuthService};
pub use token::{AccessToken, Scopes, TokenError, TokenVerifier};
