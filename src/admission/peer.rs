//! How callers without a principal are told apart.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Whom a request without a [`Principal`](crate::Principal) comes from, as far as can be told: most often the address
/// of the connection.
///
/// It says who shares a limit, and nothing else: it is no proof of anything, and opens no session. See
/// [`StreamableHttpBuilder::peer`](crate::StreamableHttpBuilder::peer).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey(Key);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    /// As an IPv6 address, so that nothing is allocated for it.
    Address(Ipv6Addr),
    Name(Arc<str>),
}

impl PeerKey {
    /// Names a peer.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(Key::Name(name.into()))
    }

    /// The peer at an address: an IPv4 address, or the first 64 bits of an IPv6 address, since most who have one have
    /// all that begin alike.
    pub fn of_address(address: IpAddr) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)),
        };
        Self(Key::Address(address))
    }
}

impl From<IpAddr> for PeerKey {
    /// See [`of_address`](Self::of_address).
    fn from(address: IpAddr) -> Self {
        Self::of_address(address)
    }
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Key::Address(address) => f.debug_tuple("PeerKey").field(&address.to_canonical()).finish(),
            Key::Name(name) => f.debug_tuple("PeerKey").field(name).finish(),
        }
    }
}

/// Reads the peer from the head of an HTTP request.
pub(crate) type PeerOf = dyn Fn(&http::request::Parts) -> Option<PeerKey> + Send + Sync;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_one_peer_may_have_are_one() {
        let key = |text: &str| PeerKey::of_address(text.parse().unwrap());
        assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_ne!(key("192.0.2.1"), PeerKey::new("192.0.2.1"));
        assert_eq!(PeerKey::from(IpAddr::from([192, 0, 2, 1])), key("192.0.2.1"));
    }
}
