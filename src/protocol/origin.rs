//! Which web pages may talk to this server: the `Origin` header, judged on every method.

use std::net::SocketAddr;

use http::header::ORIGIN;
use http::{HeaderMap, HeaderValue};

use super::authority::{Authority, Caseless, Fault, Host};

/// The origins whose pages are served. Default: loopback, see [`Loopback::Allowed`].
///
/// It is built from the configuration alone. The request's own `Host` never adds to it: after DNS rebinding that is
/// the attacker's name too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    listed: Vec<Origin<'static>>,
    loopback: Loopback,
}

impl Origins {
    /// Lists an origin as a browser writes it: scheme, host, and the port where it is not the scheme's default one.
    ///
    /// Any scheme with a host will do, such as `vscode-webview://…` or `chrome-extension://…`. An origin that stands
    /// for more than one place (`null`, `file://`, a pattern) is refused.
    pub(crate) fn add(&mut self, origin: &str) -> Result<(), InvalidOrigin> {
        let parsed = Origin::parse(origin).map_err(|problem| InvalidOrigin { origin: origin.to_owned(), problem })?;
        self.listed.push(parsed.into_owned());
        Ok(())
    }

    /// Allows pages that come from the server's own address, over http and https.
    ///
    /// An address that is only known to the listener (`0.0.0.0`, `::`, port 0) is no origin, and adds nothing.
    pub(crate) fn add_address(&mut self, address: SocketAddr) {
        // A dual-stack listener names an IPv4 address in IPv6 clothes; browsers write the plain one.
        let ip = address.ip().to_canonical();
        if ip.is_unspecified() || address.port() == 0 {
            return;
        }
        self.listed.extend(["http", "https"].map(|scheme| Origin {
            scheme: Caseless::from(scheme),
            authority: Authority { host: Host::Address(ip), port: Some(address.port()) },
        }));
    }

    /// Decides whether pages on this machine are served without being listed.
    pub(crate) fn loopback(&mut self, loopback: Loopback) {
        self.loopback = loopback;
    }

    /// Judges the `Origin` of a request. Allocates nothing.
    pub(crate) fn judge<'h>(&self, headers: &'h HeaderMap) -> Verdict<'h> {
        let mut lines = headers.get_all(ORIGIN).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Verdict::Absent,
            (Some(line), None) if line.to_str().is_ok_and(|origin| self.allows(origin)) => Verdict::Allowed(line),
            _ => Verdict::Refused,
        }
    }

    fn allows(&self, origin: &str) -> bool {
        Origin::parse(origin).is_ok_and(|origin| {
            (self.loopback == Loopback::Allowed && origin.is_loopback()) || self.listed.contains(&origin)
        })
    }
}

/// What becomes of pages served from this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Loopback {
    /// `localhost`, `127.0.0.1` and `[::1]` are allowed over http and https, at any port.
    #[default]
    Allowed,
    /// They are treated as any other origin, and have to be listed.
    Listed,
}

/// What the `Origin` of a request means for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict<'h> {
    /// There is none: not a browser, or a GET to the page's own origin. The request goes on.
    Absent,
    /// The request goes on, and its answer names this origin.
    Allowed(&'h HeaderValue),
    /// 403, whatever the method.
    Refused,
}

/// An origin that cannot be listed, and what to change about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin:?} cannot be an allowed origin: {problem}")]
pub(crate) struct InvalidOrigin {
    origin: String,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Authority(#[from] Fault),
    #[error("every sandboxed frame and local file is `null`; serve the page over http or https and list that origin")]
    Null,
    #[error("write it as a browser does, with scheme and host, such as `https://example.com`")]
    Scheme,
}

/// Scheme, host and port, a default port filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin<'a> {
    scheme: Caseless<'a>,
    authority: Authority<'a>,
}

impl<'a> Origin<'a> {
    fn parse(origin: &'a str) -> Result<Self, Problem> {
        let Some((scheme, authority)) = origin.split_once("://") else {
            return Err(match origin {
                _ if origin.contains('*') => Fault::Wildcard.into(),
                _ if origin.eq_ignore_ascii_case("null") => Problem::Null,
                _ => Problem::Scheme,
            });
        };
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.bytes().all(known) {
            return Err(Problem::Scheme);
        }
        let scheme = Caseless::from(scheme);
        let mut authority = Authority::parse(authority)?;
        authority.port = authority.port.or_else(|| default_port(&scheme));
        Ok(Self { scheme, authority })
    }

    fn is_loopback(&self) -> bool {
        default_port(&self.scheme).is_some() && self.authority.host.is_loopback()
    }

    fn into_owned(self) -> Origin<'static> {
        Origin { scheme: self.scheme.into_owned(), authority: self.authority.into_owned() }
    }
}

/// The port that browsers leave out; only http and https have one.
fn default_port(scheme: &Caseless<'_>) -> Option<u16> {
    if scheme.is("http") {
        Some(80)
    } else if scheme.is("https") {
        Some(443)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
