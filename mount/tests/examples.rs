//! Every example, started as a process of its own, answers clients of both eras, and stops when it is told to.
//!
//! `cargo test` builds the examples before it runs this. `cargo test --test examples` alone does not.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use mcp_transport::Revision;
use mcp_transport::testing::{Answer, Call, Client};
use mount::remote::{Remote, Version};
use rcgen::CertifiedKey;
use serde_json::{Value, json};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const ERAS: [Revision; 2] = [Revision::V2025_06_18, Revision::V2026_07_28];

/// An example that runs until this is dropped.
struct Example {
    process: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
    path: String,
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(binary(name));
        command.args(["--http", "127.0.0.1:0"]).args(arguments).stdout(Stdio::piped());
        let mut process = command.spawn().expect("run `cargo test`");
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let url = line.trim_end().split_once("://").unwrap_or_else(|| panic!("{name} says {line:?}")).1;
        let (address, path) = url.split_once('/').unwrap();
        Self { address: address.to_owned(), path: format!("/{path}"), process, stdout }
    }

    fn client(&self, version: Version, tls: Option<TlsConnector>) -> Client {
        Client::new(Remote::new(self.address.parse().unwrap(), version, tls)).path(&self.path)
    }

    /// Interrupts it, and returns its last words.
    fn interrupt(mut self) -> String {
        let kill = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let mut last_words = String::new();
        self.stdout.read_to_string(&mut last_words).unwrap();
        assert!(self.process.wait().unwrap().success());
        last_words
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Cargo puts the tests into `deps`, and the examples beside it.
fn binary(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    profile.join("examples").join(format!("{example}{}", std::env::consts::EXE_SUFFIX))
}

fn call(client: &Client, revision: Revision, tool: &str, arguments: Value) -> Call {
    let meta = json!({ "progressToken": 1 });
    client.call(revision, "tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
}

fn text(answer: &Answer) -> &str {
    answer.result()["content"][0]["text"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn actix() {
    let actix = Example::start("actix", &[]);
    let client = actix.client(Version::H1, None);
    for revision in ERAS {
        let greeting = call(&client, revision, "greet", json!({}));
        assert_eq!(greeting.await.status, 401);
        let greeting = call(&client, revision, "greet", json!({})).header("authorization", "Bearer ada");
        assert_eq!(text(&greeting.await), "Hello, ada!");
    }
    assert_eq!(actix.interrupt(), "DrainReport { in_flight: 0, cut: 0 }\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics() {
    let metrics = Example::start("metrics", &[]);
    let client = metrics.client(Version::H1, None);
    for revision in ERAS {
        assert_eq!(text(&call(&client, revision, "hello", json!({})).await), "Hello!");
        assert_eq!(client.call(revision, "acme/anything", ()).await.error()["code"], -32601);
    }
    let _session = client.session(Revision::V2025_11_25).await;
    let wrong = client.call(Revision::V2026_07_28, "tools/call", json!({ "name": "hello" })).header("mcp-name", "x");
    assert_eq!(wrong.await.status, 400);

    let page = Client::new(Remote::new(metrics.address.parse().unwrap(), Version::H1, None)).path("/metrics");
    let page = page.send(http::Request::get("/metrics").body("".into()).unwrap()).await.to_string();
    for line in [
        r#"mcp_exchanges_total{era="modern",revision="2026-07-28",method="tools/call",outcome="result"} 1"#,
        r#"mcp_exchanges_total{era="legacy",revision="2025-06-18",method="other",outcome="error"} 1"#,
        r#"mcp_refusals_total{kind="HeaderMismatch"} 1"#,
        "mcp_sessions 1",
        "mcp_exchanges_in_flight 0",
    ] {
        // The client shows a text that is no JSON-RPC as Rust writes it.
        assert!(page.contains(&line.escape_debug().to_string()), "{line} is not in {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls() {
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = std::env::temp_dir().join(format!("mcp-transport-tls-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    fs::write(&certificate, cert.pem()).unwrap();
    fs::write(&key, signing_key.serialize_pem()).unwrap();
    let arguments = ["--certificate", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let tls = Example::start("tls", &arguments);
    fs::remove_dir_all(&folder).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    for (version, protocol) in [(Version::H1, "http/1.1"), (Version::H2, "h2")] {
        config.alpn_protocols = vec![protocol.into()];
        let client = tls.client(version, Some(TlsConnector::from(Arc::new(config.clone()))));
        for revision in ERAS {
            let word = client.call(revision, "resources/read", json!({ "uri": "secret:///word" })).await;
            assert_eq!(word.result()["contents"][0]["text"], "swordfish");
        }
    }
    assert_eq!(tls.interrupt(), "DrainReport { in_flight: 0, cut: 0 }\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn tower_stack() {
    let stack = Example::start("tower_stack", &[]);
    for version in [Version::H1, Version::H2] {
        let client = stack.client(version, None);
        for revision in ERAS {
            let counting = call(&client, revision, "count", json!({ "to": 3 })).header("accept-encoding", "gzip");
            let answer = counting.await;
            assert_eq!((text(&answer), answer.notifications().len()), ("counted to 3", 3));
            let listing = client.call(revision, "tools/list", ()).header("accept-encoding", "gzip").stream().await;
            assert_eq!(listing.headers["content-encoding"], "gzip");
        }
    }
}
