//! Host and port, as they stand in `Host`, in `:authority`, in an `Origin` and in the configuration.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host and, where one is written, its port.
///
/// Stricter than RFC 3986: no user info, no percent-encoding, no empty port, no empty label (so no final dot). What a
/// browser writes passes; what only looks like it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority<'a> {
    pub(super) host: Host<'a>,
    pub(super) port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads `host` or `host:port`, without allocating.
    pub(super) fn parse(text: &'a str) -> Result<Self, Fault> {
        if text.contains(['/', '\\', '?', '#']) {
            return Err(Fault::Path);
        }
        if text.contains('@') {
            return Err(Fault::UserInfo);
        }
        if text.contains('*') {
            return Err(Fault::Wildcard);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']').ok_or(Fault::Host)?;
                let port = match after {
                    "" => None,
                    after => Some(after.strip_prefix(':').ok_or(Fault::Host)?),
                };
                (Host::Address(IpAddr::V6(address.parse().map_err(|_| Fault::Host)?)), port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (Host::parse(host)?, Some(port)),
                None => (Host::parse(text)?, None),
            },
        };
        let port = port.map(parse_port).transpose()?;
        Ok(Self { host, port })
    }

    pub(super) fn into_owned(self) -> Authority<'static> {
        let host = match self.host {
            Host::Address(address) => Host::Address(address),
            Host::Name(name) => Host::Name(name.into_owned()),
        };
        Authority { host, port: self.port }
    }
}

/// A host: addresses are equal whichever way they are written, names in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host<'a> {
    Address(IpAddr),
    Name(Caseless<'a>),
}

impl<'a> Host<'a> {
    /// Reads a name or an IPv4 address; an IPv6 address needs its brackets.
    fn parse(text: &'a str) -> Result<Self, Fault> {
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        let label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if text.split('.').all(label) { Ok(Self::Name(Caseless::from(text))) } else { Err(Fault::Host) }
    }

    /// Whether this is `localhost`, `127.0.0.1` or `[::1]`.
    ///
    /// Only these three: `127.0.0.2` may be another's, and not every resolver keeps `*.localhost` on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => *address == Ipv4Addr::LOCALHOST || *address == Ipv6Addr::LOCALHOST,
            Self::Name(name) => name.is("localhost"),
        }
    }
}

/// Text that is the same in upper and in lower case (ASCII).
#[derive(Debug, Clone)]
pub(super) struct Caseless<'a>(Cow<'a, str>);

impl Caseless<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.eq_ignore_ascii_case(text)
    }

    pub(super) fn into_owned(self) -> Caseless<'static> {
        Caseless(Cow::Owned(self.0.into_owned()))
    }
}

impl<'a> From<&'a str> for Caseless<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl PartialEq for Caseless<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Eq for Caseless<'_> {}

/// Why a text is no host with an optional port, told to the developer who configured it. Never sent to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error(
        "write the host as a name in ASCII (`xn--…` for other alphabets) without a final dot, as an IPv4 address, \
         or as an IPv6 address in brackets"
    )]
    Host,
    #[error("end it after the host and port: no path, query or fragment, and no final slash")]
    Path,
    #[error("write the port as a number from 1 to 65535, or leave it out together with its colon")]
    Port,
    #[error("leave out the user name and password")]
    UserInfo,
    #[error("patterns are not supported: list every name in full")]
    Wildcard,
}

fn parse_port(text: &str) -> Result<u16, Fault> {
    // `u16::from_str` would take `+80` and `0080`, which no browser writes.
    if text.starts_with('0') || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Port);
    }
    text.parse().map_err(|_| Fault::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_writes_is_read() {
        for (text, host, port) in [
            ("example.com", Host::Name("example.com".into()), None),
            ("EXAMPLE.com:8080", Host::Name("example.COM".into()), Some(8080)),
            ("xn--bcher-kva.example:65535", Host::Name("xn--bcher-kva.example".into()), Some(65535)),
            ("my_host-1", Host::Name("my_host-1".into()), None),
            ("192.0.2.1:1", Host::Address([192, 0, 2, 1].into()), Some(1)),
            ("[::1]", Host::Address(Ipv6Addr::LOCALHOST.into()), None),
            ("[0:0:0:0:0:0:0:1]:80", Host::Address(Ipv6Addr::LOCALHOST.into()), Some(80)),
            ("[2001:DB8::a]", Host::Address("2001:db8::A".parse().unwrap()), None),
        ] {
            assert_eq!(Authority::parse(text), Ok(Authority { host, port }), "{text}");
        }
    }

    #[test]
    fn everything_else_is_a_fault() {
        for (fault, texts) in [
            (Fault::Path, &["a/", "a/b", "a?b", "a#b", r"a\b", "a:80/", "/"][..]),
            (Fault::UserInfo, &["u@a", "u:p@a", "@a", "localhost@evil.test"]),
            (Fault::Wildcard, &["*", "*.a", "a:*"]),
            (Fault::Port, &["a:", "a:0", "a:080", "a:+80", "a:-1", "a:65536", "a:80:80", "a: 80", "a:٣", "[::1]:"]),
            (
                Fault::Host,
                &[
                    "",
                    ":80",
                    ".",
                    "a.",
                    ".a",
                    "a..b",
                    "a b",
                    " a",
                    "a ",
                    "a\t",
                    "a%2eb",
                    "a,b",
                    "a;b",
                    "bücher.example",
                    "ｌocalhost",
                    "::1",
                    "[::1",
                    "[",
                    "[]",
                    "[::1]a",
                    "[::1]80",
                    "[::1%lo]",
                    "[::1%25lo]",
                    "[127.0.0.1]",
                    "[v1.a]",
                    "[[::1]]",
                    "a]",
                    "a[::1]",
                    "a\0",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(Authority::parse(text), Err(fault), "{text:?}");
            }
        }
    }

    #[test]
    fn loopback_is_three_hosts_and_no_more() {
        for (text, loopback) in [
            ("localhost", true),
            ("LocalHost", true),
            ("127.0.0.1", true),
            ("[::1]", true),
            ("127.0.0.2", false),
            ("127.1", false),
            ("0x7f.0.0.1", false),
            ("127.0.0.01", false),
            ("2130706433", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("[::ffff:127.0.0.1]", false),
            ("a.localhost", false),
            ("localhost.evil.test", false),
            ("localhost-", false),
        ] {
            assert_eq!(Authority::parse(text).unwrap().host.is_loopback(), loopback, "{text}");
        }
    }
}
