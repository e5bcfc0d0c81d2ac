//! TLS by rustls, for HTTP/1.1 and HTTP/2 as the client prefers, and a shutdown that drains.
//!
//!     cargo run --example tls -- --http 127.0.0.1:8443 --certificate server.pem --key server.key

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use mcp_transport::{
    Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo, StreamableHttpService,
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

struct Secret;

impl McpHandler for Secret {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("secret", env!("CARGO_PKG_VERSION"))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().resources()
    }

    async fn request(&self, request: Request, _: RequestContext) -> Result<Reply, McpError> {
        match request.method() {
            "resources/list" => Reply::of(json!({ "resources": [{ "uri": "secret:///word", "name": "word" }] })),
            "resources/read" if request.uri() == Some("secret:///word") => {
                Reply::of(json!({ "contents": [{ "uri": "secret:///word", "text": "swordfish" }] }))
            }
            "resources/read" => Err(McpError::resource_not_found(request.uri().unwrap_or_default())),
            _ => Err(McpError::method_not_found()),
        }
    }
}

/// The value after `--name`.
fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let certificates = CertificateDer::pem_file_iter(argument("--certificate").ok_or("--certificate FILE")?)?;
    let key = PrivateKeyDer::from_pem_file(argument("--key").ok_or("--key FILE")?)?;
    let certificates = certificates.collect::<Result<_, _>>()?;
    let mut tls = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key)?;
    // Without this every client speaks HTTP/1.1.
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(tls));

    let listener = TcpListener::bind(argument("--http").as_deref().unwrap_or("127.0.0.1:8443")).await?;
    println!("listening on https://{}/mcp", listener.local_addr()?);
    let mcp = StreamableHttpService::new(Secret);
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new());
    server.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(tokio::signal::ctrl_c());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stop => break,
        };
        let Ok((socket, _)) = accepted else {
            // Out of file descriptors, most likely: some will be given back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let (tls, server, watcher) = (tls.clone(), server.clone(), graceful.watcher());
        let service = TowerToHyperService::new(mcp.clone());
        tokio::spawn(async move {
            // Whoever connects and then says nothing must not stay for ever.
            let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(10), tls.accept(socket)).await else {
                return;
            };
            let connection = server.serve_connection(TokioIo::new(stream), service).into_owned();
            let _ = watcher.watch(connection).await;
        });
    }
    println!("{:?}", mcp.drain(Duration::from_secs(30)).await);
    // Every connection closes now, but for those whose peer is gone without a word.
    let _ = tokio::time::timeout(Duration::from_secs(5), graceful.shutdown()).await;
    Ok(())
}
