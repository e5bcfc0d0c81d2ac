use http::header::HOST;

use super::*;

fn origins(listed: &[&str]) -> Origins {
    let mut origins = Origins::default();
    for origin in listed {
        origins.add(origin).unwrap();
    }
    origins
}

fn lines(values: &[&[u8]]) -> HeaderMap {
    values.iter().map(|value| (ORIGIN, HeaderValue::from_bytes(value).unwrap())).collect()
}

fn assert_allowed(origins: &Origins, origin: &str) {
    let headers = lines(&[origin.as_bytes()]);
    assert_eq!(origins.judge(&headers), Verdict::Allowed(&headers[ORIGIN]), "{origin}");
}

fn assert_refused(origins: &Origins, origin: &str) {
    assert_eq!(origins.judge(&lines(&[origin.as_bytes()])), Verdict::Refused, "{origin}");
}

#[test]
fn absent() {
    assert_eq!(origins(&[]).judge(&HeaderMap::new()), Verdict::Absent);
}

#[test]
fn loopback_is_allowed_by_default() {
    for host in ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"] {
        for port in ["", ":1", ":80", ":443", ":3000", ":65535"] {
            for scheme in ["http", "https", "HTTPS"] {
                assert_allowed(&origins(&[]), &format!("{scheme}://{host}{port}"));
            }
        }
    }
}

#[test]
fn loopback_can_be_left_to_the_list() {
    let mut origins = origins(&["http://localhost:3000"]);
    origins.loopback(Loopback::Listed);
    assert_allowed(&origins, "http://localhost:3000");
    for origin in ["http://localhost", "http://localhost:3001", "https://localhost:3000", "http://127.0.0.1:3000"] {
        assert_refused(&origins, origin);
    }
}

#[test]
fn own_address() {
    for (address, allowed, refused) in [
        (
            "192.168.1.5:8080",
            &["http://192.168.1.5:8080", "https://192.168.1.5:8080"][..],
            &["http://192.168.1.5", "http://192.168.1.5:8081", "http://192.168.1.50:8080", "ws://192.168.1.5:8080"][..],
        ),
        ("192.0.2.1:80", &["http://192.0.2.1", "http://192.0.2.1:80", "https://192.0.2.1:80"], &["https://192.0.2.1"]),
        ("192.0.2.1:443", &["https://192.0.2.1"], &["http://192.0.2.1"]),
        ("[2001:db8::1]:8080", &["http://[2001:db8::1]:8080"], &["http://[2001:db8::2]:8080"]),
        ("[fe80::1%3]:8080", &["http://[fe80::1]:8080"], &["http://[fe80::1%3]:8080"]),
        ("[::ffff:192.0.2.1]:8080", &["http://192.0.2.1:8080"], &["http://192.0.2.1"]),
    ] {
        let mut origins = origins(&[]);
        origins.add_address(address.parse().unwrap());
        allowed.iter().for_each(|origin| assert_allowed(&origins, origin));
        refused.iter().for_each(|origin| assert_refused(&origins, origin));
    }
}

#[test]
fn an_unspecified_address_adds_nothing() {
    for address in ["0.0.0.0:8080", "[::]:8080", "[::ffff:0.0.0.0]:8080", "192.0.2.1:0"] {
        let mut origins = origins(&[]);
        origins.add_address(address.parse().unwrap());
        assert!(origins.listed.is_empty(), "{address}");
        for origin in ["http://0.0.0.0:8080", "http://[::]:8080", "http://192.0.2.1:8080", "http://192.0.2.1"] {
            assert_refused(&origins, origin);
        }
    }
}

#[test]
fn listed() {
    for (entry, allowed, refused) in [
        (
            "https://App.Example.com",
            &["https://app.example.com", "HTTPS://APP.EXAMPLE.COM", "https://app.example.com:443"][..],
            &[
                "http://app.example.com",
                "https://app.example.com:444",
                "https://example.com",
                "https://x.app.example.com",
                "https://app.example.com.evil.test",
                "https://app-example.com",
                "https://app.example.co",
            ][..],
        ),
        ("http://example.com:80", &["http://example.com"], &["https://example.com", "https://example.com:80"]),
        ("http://example.com:3000", &["http://example.com:3000"], &["http://example.com", "http://example.com:300"]),
        ("https://[2001:DB8:0:0::1]", &["https://[2001:db8::1]"], &["https://[2001:db8::2]"]),
        ("https://xn--bcher-kva.example", &["https://xn--bcher-kva.example"], &["https://bücher.example"]),
        ("vscode-webview://1a2b3c", &["vscode-webview://1a2b3c"], &["vscode-webview://1a2b3d", "http://1a2b3c"]),
        ("vscode-file://vscode-app", &["vscode-file://vscode-app"], &["vscode-file://"]),
        (
            "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn",
            &["chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn"],
            &["moz-extension://nkbihfbeogaeaoehlefnkodbefgpgknn"],
        ),
        (
            "moz-extension://2b9b34e0-8a3d-4c51-9c43-0a6f4f1f6a7b",
            &["moz-extension://2b9b34e0-8a3d-4c51-9c43-0a6f4f1f6a7b"],
            &["moz-extension://2b9b34e0-8a3d-4c51-9c43-0a6f4f1f6a7c"],
        ),
        ("tauri://localhost", &["tauri://localhost", "http://localhost"], &["tauri://localhost:80"]),
    ] {
        let origins = origins(&[entry]);
        allowed.iter().for_each(|origin| assert_allowed(&origins, origin));
        refused.iter().for_each(|origin| assert_refused(&origins, origin));
    }
}

#[test]
fn everything_else_is_refused() {
    let origins = origins(&["https://example.com"]);
    for origin in [
        // No place at all.
        "",
        "null",
        "NULL",
        "*",
        "localhost",
        "localhost:3000",
        "//localhost",
        "://localhost",
        "http:localhost",
        "http:/localhost",
        "http//localhost",
        "http://",
        "file://",
        "data:text/html,x",
        "about:blank",
        // Another place.
        "http://evil.test",
        "http://localhost.evil.test",
        "http://evil.test.localhost",
        "http://127.0.0.1.evil.test",
        "http://127.0.0.1.nip.io",
        "http://localhosts",
        "http://127.0.0.2",
        "http://0.0.0.0",
        "http://[::ffff:127.0.0.1]",
        "tauri://localhost",
        "ws://localhost",
        // Dressed up as an allowed one.
        "http://evil.test#localhost",
        "evil.test#http://localhost",
        "http://evil.test?://localhost",
        "http://evil.test/http://localhost",
        "http://localhost@evil.test",
        "http://localhost:3000@evil.test",
        "http://evil.test@localhost",
        "http://@localhost",
        r"http://evil.test\localhost",
        r"http://localhost\.evil.test",
        "http://localhost%2eevil.test",
        "http://localhost%00.evil.test",
        "http://localhost_.evil.test",
        "http://http://localhost",
        "h ttp://localhost",
        "1http://localhost",
        "evil.test http://localhost",
        // Allowed but for what hangs on it.
        "http://localhost/",
        "http://localhost/path",
        "http://localhost?q",
        "http://localhost#f",
        "http://localhost.",
        "http://localhost:",
        "http://localhost:0",
        "http://localhost:080",
        "http://localhost:+80",
        "http://localhost:65536",
        "http://localhost:3000:3000",
        "http://localhost:3000/",
        "http://[::1",
        "http://::1",
        "http://[::1%25lo]",
        "http://[::1].evil.test",
        "https://example.com/",
        "https://example.com.",
        // Two in one line.
        "http://localhost http://evil.test",
        "http://localhost, http://evil.test",
        "http://localhost,https://example.com",
        "http://localhost http://localhost",
        "http://localhost ",
        "\thttp://localhost",
        // Not ASCII.
        "http://lоcalhost",
        "http://localhost\u{a0}",
        "http://localhost。evil.test",
    ] {
        assert_refused(&origins, origin);
    }
    assert_refused(&origins, &format!("http://{}", "a.".repeat(30_000)));
    assert_eq!(origins.judge(&lines(&[b"http://localhost\xff"])), Verdict::Refused);
    assert_eq!(origins.judge(&lines(&[b"\xff\xfehttp://localhost"])), Verdict::Refused);
}

#[test]
fn two_are_refused() {
    for values in [
        &["http://localhost", "http://localhost"][..],
        &["http://localhost", "http://evil.test"],
        &["http://evil.test", "http://localhost"],
        &["", "http://localhost"],
        &["http://localhost"; 10_000],
    ] {
        let values: Vec<_> = values.iter().map(|value| value.as_bytes()).collect();
        assert_eq!(origins(&[]).judge(&lines(&values)), Verdict::Refused);
    }
}

#[test]
fn not_from_host() {
    let mut headers = lines(&[b"http://rebound.test:8080"]);
    for host in ["rebound.test:8080", "localhost"] {
        headers.insert(HOST, host.parse().unwrap());
        assert_eq!(origins(&["https://example.com"]).judge(&headers), Verdict::Refused);
    }
    headers.remove(ORIGIN);
    assert_eq!(origins(&[]).judge(&headers), Verdict::Absent);
}

#[test]
fn a_bad_entry_says_what_to_change() {
    for (origin, advice) in [
        ("example.com", "with scheme and host"),
        ("", "with scheme and host"),
        ("localhost:3000", "with scheme and host"),
        ("ht_tp://example.com", "with scheme and host"),
        ("null", "list that origin"),
        ("*", "list every name in full"),
        ("https://*.example.com", "list every name in full"),
        ("https://example.com/", "no final slash"),
        ("https://example.com/mcp", "no path"),
        ("https://example.com?a", "query"),
        ("https://example.com#a", "fragment"),
        ("https://u:p@example.com", "leave out the user name"),
        ("https://example.com:https", "a number from 1 to 65535"),
        ("https://bücher.example", "xn--"),
        ("http://::1", "in brackets"),
        ("file://", "write the host"),
        ("https://a, https://b", "no path"),
        ("https://a\r\nx: y", "write the host"),
    ] {
        let mut origins = Origins::default();
        let error = origins.add(origin).unwrap_err().to_string();
        assert!(error.contains(advice) && error.contains(&format!("{origin:?}")), "{error}");
        assert!(origins.listed.is_empty());
    }
}
