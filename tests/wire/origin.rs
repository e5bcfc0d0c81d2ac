//! Which web pages may talk to the server: the `Origin` header, judged on every method.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HOST, ORIGIN};
use http::{Method, StatusCode};
use mcp_transport::{Reply, StreamableHttpBuilder, StreamableHttpService};
use serde_json::json;

use crate::harness::{Carrier, Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("origin/absent", Carriers::Every, absent);
    wire.any("origin/loopback", Carriers::Every, loopback);
    wire.any("origin/loopback/switched-off", Carriers::Every, loopback_switched_off);
    wire.any("origin/own-address", Carriers::Every, own_address);
    wire.any("origin/own-address/unspecified", Carriers::Every, unspecified);
    wire.any("origin/listed", Carriers::Every, listed);
    wire.any("origin/refused", Carriers::Every, refused);
    wire.any("origin/refused/every-method", Carriers::Every, refused_on_every_method);
    wire.any("origin/refused/white-space", Carriers::H1, white_space);
    wire.any("origin/not-from-host", Carriers::Every, not_from_host);
}

/// A server, and how often its handler ran.
struct Site {
    cx: Cx,
    client: Client,
    ran: Arc<AtomicUsize>,
}

impl Site {
    async fn open(cx: Cx, configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> Self {
        let ran = Arc::new(AtomicUsize::new(0));
        let (asked, told) = (Arc::clone(&ran), Arc::clone(&ran));
        let handler = Script::new(move |_, _| {
            asked.fetch_add(1, Ordering::SeqCst);
            async { Reply::of(json!({"content": []})) }
        });
        let handler = handler.hearing(move |_, _| {
            told.fetch_add(1, Ordering::SeqCst);
            async {}
        });
        let service = configure(StreamableHttpService::builder(handler)).build().expect("a service");
        Self { cx, client: cx.serve(service).await, ran }
    }

    /// A request that is right but for what is said of its origin.
    fn call(&self) -> Call {
        Call::of(self.cx.revision, "prompts/get", json!({"name": "a"}))
    }

    /// A request with this origin is answered by the handler.
    async fn allows(&self, origin: impl AsRef<[u8]>) {
        let (origin, before) = (origin.as_ref(), self.ran.load(Ordering::SeqCst));
        let answer = self.client.send(self.call().header(ORIGIN.as_str(), origin)).await;
        let shown = String::from_utf8_lossy(origin);
        assert_eq!(answer.status, StatusCode::OK, "{shown:?}");
        assert_eq!(answer.headers[ACCESS_CONTROL_ALLOW_ORIGIN].as_bytes(), origin);
        assert_eq!(answer.result().await["content"], json!([]));
        assert_eq!(self.ran.load(Ordering::SeqCst), before + 1, "{shown:?}");
    }

    /// A request with this origin is refused.
    async fn refuses(&self, origin: impl AsRef<[u8]>) {
        self.refuses_call(self.call().header(ORIGIN.as_str(), origin.as_ref())).await;
    }

    /// The request gets 403, the handler does not run, and no page may read the answer.
    async fn refuses_call(&self, call: Call) {
        let origins: Vec<_> = call.headers.get_all(ORIGIN).iter().cloned().collect();
        let (method, before) = (call.method.clone(), self.ran.load(Ordering::SeqCst));
        let answer = self.client.send(call).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {origins:?}");
        assert!(!answer.headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN), "{method} {origins:?}");
        let error = answer.error(StatusCode::FORBIDDEN, -32600, None).await;
        assert_eq!(error, json!({"code": -32600, "message": "Origin not allowed"}), "nothing sent is repeated");
        assert_eq!(self.ran.load(Ordering::SeqCst), before, "{method} {origins:?} ran the handler");
    }
}

async fn absent(cx: Cx) {
    let site = Site::open(cx, |builder| builder.refuse_loopback_origins().allow_origin("https://app.test")).await;
    let answer = site.client.send(site.call()).await;
    assert!(!answer.headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    assert_eq!(answer.result().await["content"], json!([]));
    assert_eq!(site.ran.load(Ordering::SeqCst), 1);
    for method in [Method::GET, Method::DELETE, Method::OPTIONS] {
        let status = site.client.send(Call::bare(method.clone())).await.status;
        assert_ne!(status, StatusCode::FORBIDDEN, "{method}");
    }
}

async fn loopback(cx: Cx) {
    let site = Site::open(cx, |builder| builder).await;
    for host in ["localhost", "127.0.0.1", "[::1]", "LocalHost", "[0:0:0:0:0:0:0:1]"] {
        for scheme in ["http", "https", "HTTP", "Https"] {
            for port in ["", ":1", ":80", ":443", ":6274", ":65535"] {
                site.allows(format!("{scheme}://{host}{port}")).await;
            }
        }
    }
    // Neighbours of the three: another's machine, or another's software on this one.
    for origin in [
        "http://127.0.0.2",
        "http://127.1",
        "http://0x7f.0.0.1",
        "http://2130706433",
        "http://0.0.0.0",
        "http://[::]",
        "http://[::2]",
        "http://[::ffff:127.0.0.1]",
        "http://app.localhost",
        "http://localhost.",
        "http://localhost.localdomain",
        "ws://localhost",
        "ftp://localhost",
        "file://localhost",
        "chrome-extension://localhost",
    ] {
        site.refuses(origin).await;
    }
}

async fn loopback_switched_off(cx: Cx) {
    let site = Site::open(cx, |builder| builder.refuse_loopback_origins().allow_origin("http://localhost:6274")).await;
    site.allows("http://localhost:6274").await;
    for origin in ["http://localhost", "http://localhost:6275", "https://localhost:6274", "http://127.0.0.1:6274"] {
        site.refuses(origin).await;
    }
}

async fn own_address(cx: Cx) {
    let site = Site::open(cx, |builder| {
        let addresses = ["192.0.2.7:8080", "192.0.2.8:80", "192.0.2.9:443", "[2001:db8::7]:8080"];
        addresses.iter().fold(builder, |builder, address| builder.own_address(address.parse().expect("an address")))
    })
    .await;
    for origin in [
        "http://192.0.2.7:8080",
        "https://192.0.2.7:8080",
        "HTTP://192.0.2.7:8080",
        "http://192.0.2.8",
        "http://192.0.2.8:80",
        "https://192.0.2.8:80",
        "https://192.0.2.9",
        "https://192.0.2.9:443",
        "http://192.0.2.9:443",
        "http://[2001:db8::7]:8080",
        "https://[2001:DB8:0::7]:8080",
        // Loopback is allowed beside it.
        "http://localhost:1",
    ] {
        site.allows(origin).await;
    }
    for origin in [
        "http://192.0.2.7",
        "http://192.0.2.7:80",
        "https://192.0.2.7",
        "http://192.0.2.7:8081",
        "http://192.0.2.70:8080",
        "ws://192.0.2.7:8080",
        "https://192.0.2.8",
        "http://192.0.2.9",
        "http://[2001:db8::7]",
        "http://[2001:db8::8]:8080",
    ] {
        site.refuses(origin).await;
    }
}

async fn unspecified(cx: Cx) {
    let site = Site::open(cx, |builder| {
        let addresses = ["0.0.0.0:8080", "[::]:8080", "[::ffff:0.0.0.0]:8080", "192.0.2.7:0"];
        addresses.iter().fold(builder, |builder, address| builder.own_address(address.parse().expect("an address")))
    })
    .await;
    for origin in [
        "http://0.0.0.0:8080",
        "https://0.0.0.0:8080",
        "http://[::]:8080",
        "http://192.0.2.7:8080",
        "http://192.0.2.7",
        "http://192.0.2.7:0",
        "http://evil.test:8080",
    ] {
        site.refuses(origin).await;
    }
}

async fn listed(cx: Cx) {
    let site = Site::open(cx, |builder| {
        let origins = ["https://App.Test", "http://app.test:3000", "http://[2001:db8::1]:80", "vscode-webview://1a2b"];
        origins.into_iter().fold(builder, StreamableHttpBuilder::allow_origin)
    })
    .await;
    for origin in [
        "https://app.test",
        "https://app.test:443",
        "HTTPS://APP.TEST",
        "https://aPP.tEST:443",
        "http://app.test:3000",
        "http://[2001:db8::1]",
        "http://[2001:DB8:0:0::1]:80",
        "vscode-webview://1a2b",
        "VSCODE-webview://1A2B",
        "http://localhost:1",
    ] {
        site.allows(origin).await;
    }
    for origin in [
        "http://app.test",
        "https://app.test:80",
        "https://app.test:3000",
        "http://app.test:300",
        "http://app.test:30000",
        "https://www.app.test",
        "https://app.test.evil.test",
        "https://app-test",
        "https://app.tes",
        "https://xapp.test",
        "https://[2001:db8::1]",
        "vscode-webview://1a2c",
        "vscode-webview://1a2b:1",
        "http://1a2b",
    ] {
        site.refuses(origin).await;
    }
}

/// What is neither a listed origin nor one of this machine.
async fn refused(cx: Cx) {
    let site = Site::open(cx, |builder| builder.allow_origin("https://app.test")).await;
    for origin in [
        "",
        "null",
        "NULL",
        "*",
        "undefined",
        "evil.test",
        "http://evil.test",
        // Look-alikes.
        "http://localhost.evil.test",
        "http://localhost-evil.test",
        "http://evillocalhost",
        "http://127.0.0.1.evil.test",
        "http://127.0.0.1.nip.io",
        "http://evil.test.localhost",
        "evil.test#localhost",
        "evil.test#http://localhost",
        "http://evil.test#localhost",
        "http://evil.test#http://localhost",
        "http://evil.test?http://localhost",
        "http://evil.test/http://localhost",
        "http://evil.test\\@localhost",
        "http://localhost\\.evil.test",
        "http://localhost%2eevil.test",
        "http://localhost%00.evil.test",
        "http://local%68ost",
        "https://app.test.evil.test",
        "https://app.test%00",
        // A path, a query, a fragment.
        "http://localhost/",
        "http://localhost/mcp",
        "http://localhost:1/",
        "http://localhost?a",
        "http://localhost#a",
        "https://app.test/",
        // User info.
        "http://localhost@evil.test",
        "http://localhost:80@evil.test",
        "http://user@localhost",
        "http://user:password@localhost",
        "http://@localhost",
        "https://user@app.test",
        // Unparseable.
        "localhost",
        "localhost:6274",
        "//localhost",
        "://localhost",
        "http:localhost",
        "http:/localhost",
        "http:///localhost",
        "http://",
        "http://:80",
        "http://localhost:",
        "http://localhost:0",
        "http://localhost:080",
        "http://localhost:65536",
        "http://localhost:-1",
        "http://localhost:+80",
        "http://localhost:80:80",
        "http://localhost:http",
        "http://::1",
        "http://[::1",
        "http://[::1]x",
        "http://[::1%25lo]",
        "http://[127.0.0.1]",
        "http://local host",
        "http://localhost\t",
        "h ttp://localhost",
        "http ://localhost",
        "http://http://localhost",
        // Two of them in one value.
        "http://localhost http://evil.test",
        "http://localhost http://localhost",
        "http://localhost, http://localhost",
        "http://localhost,http://evil.test",
    ] {
        // HTTP itself takes the white space off the end of a value; see `white_space`.
        if !(origin.ends_with('\t') && cx.carrier != Carrier::Clock) {
            site.refuses(origin).await;
        }
    }
    site.refuses(b"http://localhost\xff").await;
    site.refuses("http://l\u{43e}calhost").await;
    site.refuses("http://localhost\u{3002}evil.test").await;
    site.refuses(format!("http://localhost.{}", "a.".repeat(2000))).await;
    site.refuses(format!("http://{}localhost", "a".repeat(4000))).await;

    for (first, second) in [
        ("http://localhost", "http://localhost"),
        ("http://localhost", "http://evil.test"),
        ("http://evil.test", "http://localhost"),
        ("https://app.test", "https://app.test"),
        ("", "http://localhost"),
        ("http://localhost", "null"),
    ] {
        site.refuses_call(site.call().header(ORIGIN.as_str(), first).also(ORIGIN.as_str(), second)).await;
    }
    // The service is none the worse for it.
    site.allows("https://app.test").await;
}

async fn refused_on_every_method(cx: Cx) {
    let site = Site::open(cx, |builder| builder).await;
    let methods = ["POST", "GET", "DELETE", "OPTIONS", "PUT", "PATCH", "PROPFIND"];
    for origin in ["http://evil.test", "null", ""] {
        for method in methods {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            site.refuses_call(Call::bare(method).header(ORIGIN.as_str(), origin)).await;
        }
        site.refuses_call(Call::get().header(ORIGIN.as_str(), origin)).await;
        site.refuses_call(site.call().notification().header(ORIGIN.as_str(), origin)).await;
        // Not even whether the body is JSON is told.
        site.refuses_call(site.call().raw("{").header(ORIGIN.as_str(), origin)).await;
    }
    let answer = site.client.send(Call::bare(Method::HEAD).header(ORIGIN.as_str(), "http://evil.test")).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
}

/// White space around a value, and the case of a name, are HTTP's and not the value's.
async fn white_space(cx: Cx) {
    let site = Site::open(cx, |builder| builder).await;
    for (line, status) in [
        ("origin: http://localhost:1", StatusCode::NO_CONTENT),
        ("ORIGIN:http://localhost:1", StatusCode::NO_CONTENT),
        ("Origin: \t http://localhost:1 \t ", StatusCode::NO_CONTENT),
        ("Origin: http://evil.test", StatusCode::FORBIDDEN),
        ("oRIGIN:http://evil.test", StatusCode::FORBIDDEN),
        ("Origin:", StatusCode::FORBIDDEN),
        ("Origin: \t", StatusCode::FORBIDDEN),
        ("Origin: http://localhost:1\r\norigin: http://localhost:1", StatusCode::FORBIDDEN),
    ] {
        let mut raw = site.client.raw(format!("OPTIONS /mcp HTTP/1.1\r\nhost: a\r\n{line}\r\n\r\n")).await;
        assert_eq!(raw.status().await, Some(status), "{line:?}");
    }
}

/// After DNS rebinding the request's own host is the attacker's name too.
async fn not_from_host(cx: Cx) {
    let site = Site::open(cx, |builder| builder.allow_host("rebound.test").allow_host("localhost")).await;
    let from = |host: &str, origin: &str| site.call().header(HOST.as_str(), host).header(ORIGIN.as_str(), origin);
    for (host, origin) in [
        ("rebound.test", "http://rebound.test"),
        ("rebound.test", "https://rebound.test"),
        ("rebound.test:8080", "http://rebound.test:8080"),
        ("localhost", "http://rebound.test"),
        ("localhost:8080", "http://rebound.test:8080"),
    ] {
        site.refuses_call(from(host, origin)).await;
    }
    for name in ["x-forwarded-host", "x-forwarded-server", "x-original-host", "forwarded", "referer", "via"] {
        let value = if name == "forwarded" { "host=evil.test;proto=http" } else { "evil.test" };
        site.refuses_call(from("localhost", "http://evil.test").header(name, value)).await;
    }
    // An allowed origin needs no host of its own name.
    let answer = site.client.send(from("rebound.test", "http://localhost:1")).await;
    assert_eq!(answer.status, StatusCode::OK);
}
