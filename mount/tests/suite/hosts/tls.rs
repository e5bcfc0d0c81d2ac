//! TLS by rustls, HTTP/1.1 or HTTP/2 as the two sides agree.

use std::sync::Arc;

use rcgen::CertifiedKey;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{Ground, hyper};
use mount::remote::Version;

pub async fn serve(ground: Ground, acceptor: TlsAcceptor) {
    let (listener, service, drained) = ground.drained();
    hyper::accept(listener, Some(acceptor), drained, service).await;
}

/// The two ends of a server that is called `localhost`.
pub fn pair(version: Version) -> (TlsAcceptor, TlsConnector) {
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut server =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert.der().clone()], key.into()).unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let mut client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = match version {
        Version::H1 => vec![b"http/1.1".to_vec()],
        Version::H2 => vec![b"h2".to_vec()],
    };
    (TlsAcceptor::from(Arc::new(server)), TlsConnector::from(Arc::new(client)))
}
