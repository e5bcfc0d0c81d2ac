//! The optional host list: the names under which this server answers.

use http::header::HOST;
use http::{HeaderMap, Uri};

use super::authority::{Authority, Fault};

/// The hosts a request may name. Default: none listed, and the host is not judged.
///
/// With a list, a page that reaches this server under a name of its own (DNS rebinding) is refused even where its
/// client sends no `Origin`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts(Vec<Authority<'static>>);

impl Hosts {
    /// Lists a host: a name or an address (IPv6 in brackets), in any case, with or without a port.
    ///
    /// Without a port the entry matches every port. With one it matches a request that names exactly this port, so not
    /// one that leaves out the default port of its scheme.
    pub(crate) fn add(&mut self, host: &str) -> Result<(), InvalidHost> {
        let authority = parse(host).map_err(|problem| InvalidHost { host: host.to_owned(), problem })?;
        self.0.push(authority.into_owned());
        Ok(())
    }

    /// Whether the request names a listed host, in each place where it names one: `:authority` (or the authority of
    /// an absolute request target) and `Host`. A request that names none, or has two `Host` lines, does not.
    pub(crate) fn judge(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let mut lines = headers.get_all(HOST).iter();
        match (uri.authority(), lines.next(), lines.next()) {
            (None, None, _) | (_, _, Some(_)) => false,
            (authority, line, None) => {
                authority.is_none_or(|authority| self.lists(authority.as_str()))
                    && line.is_none_or(|line| line.to_str().is_ok_and(|host| self.lists(host)))
            }
        }
    }

    fn lists(&self, host: &str) -> bool {
        Authority::parse(host).is_ok_and(|named| {
            self.0
                .iter()
                .any(|listed| listed.host == named.host && (listed.port.is_none() || listed.port == named.port))
        })
    }
}

/// A host that cannot stand in the list, and what to change about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host:?} cannot be an allowed host: {problem}")]
pub(crate) struct InvalidHost {
    host: String,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Authority(#[from] Fault),
    #[error("leave out the scheme and its `://`")]
    Scheme,
}

fn parse(host: &str) -> Result<Authority<'_>, Problem> {
    if host.contains("://") {
        return Err(Problem::Scheme);
    }
    Ok(Authority::parse(host)?)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn hosts(listed: &[&str]) -> Hosts {
        let mut hosts = Hosts::default();
        for host in listed {
            hosts.add(host).unwrap();
        }
        hosts
    }

    fn lines(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (HOST, HeaderValue::from_bytes(value.as_bytes()).unwrap())).collect()
    }

    #[test]
    fn without_a_list_nothing_is_judged() {
        let path = Uri::from_static("/mcp");
        for values in [&[][..], &["evil.test"], &["a", "b"], &[""]] {
            assert!(hosts(&[]).judge(&lines(values), &path), "{values:?}");
        }
    }

    #[test]
    fn the_host_header_is_judged() {
        let hosts = hosts(&["Example.com", "api.example.com:8443", "[2001:db8::1]", "192.0.2.1:80"]);
        for (values, allowed) in [
            (&["example.com"][..], true),
            (&["EXAMPLE.COM"], true),
            (&["example.com:1"], true),
            (&["api.example.com:8443"], true),
            (&["[2001:DB8:0::1]:3000"], true),
            (&["192.0.2.1:80"], true),
            (&["api.example.com"], false),
            (&["api.example.com:8444"], false),
            (&["192.0.2.1"], false),
            (&["localhost"], false),
            (&["example.com.evil.test"], false),
            (&["evil.test.example.com"], false),
            (&["example.com."], false),
            (&["example.com:"], false),
            (&["example.com:0"], false),
            (&["example.com:99999"], false),
            (&["example.com/"], false),
            (&["example.com#evil.test"], false),
            (&["u@example.com"], false),
            (&["example.com@evil.test"], false),
            (&["example.com, evil.test"], false),
            (&["example.com evil.test"], false),
            (&["http://example.com"], false),
            (&["exämple.com"], false),
            (&["2001:db8::1"], false),
            (&["*"], false),
            (&[""], false),
            (&[], false),
            (&["example.com", "example.com"], false),
            (&["example.com", "evil.test"], false),
        ] {
            assert_eq!(hosts.judge(&lines(values), &Uri::from_static("/mcp")), allowed, "{values:?}");
        }
    }

    #[test]
    fn an_authority_counts_and_both_must_match() {
        let hosts = hosts(&["example.com"]);
        for (uri, values, allowed) in [
            ("https://example.com/mcp", &[][..], true),
            ("https://example.com:8443/mcp", &[], true),
            ("https://example.com/mcp", &["example.com"], true),
            ("https://example.com/mcp", &["evil.test"], false),
            ("https://evil.test/mcp", &["example.com"], false),
            ("https://evil.test/mcp", &[], false),
            ("https://u@example.com/mcp", &[], false),
            ("https://example.com@evil.test/mcp", &[], false),
            ("https://example.com/mcp", &["example.com", "example.com"], false),
            ("/example.com", &[], false),
            ("*", &[], false),
        ] {
            assert_eq!(hosts.judge(&lines(values), &uri.parse().unwrap()), allowed, "{uri} {values:?}");
        }
    }

    #[test]
    fn a_bad_entry_says_what_to_change() {
        for (host, advice) in [
            ("https://example.com", "leave out the scheme"),
            ("example.com/mcp", "no path"),
            ("*.example.com", "list every name in full"),
            ("u@example.com", "leave out the user name"),
            ("example.com:http", "a number from 1 to 65535"),
            ("example.com:0", "a number from 1 to 65535"),
            ("bücher.example", "xn--"),
            ("::1", "in brackets"),
            ("example.com.", "without a final dot"),
            ("", "write the host"),
        ] {
            let mut hosts = Hosts::default();
            let error = hosts.add(host).unwrap_err().to_string();
            assert!(error.contains(advice) && error.contains(&format!("{host:?}")), "{error}");
            assert!(hosts.0.is_empty());
        }
    }
}
