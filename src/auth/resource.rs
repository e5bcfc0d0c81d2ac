//! The URI that names the server.

use std::fmt;
use std::sync::Arc;

use http::Uri;

/// Where the document of a resource lies: between its host and its path (RFC 9728, section 3).
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The URI that names this server to authorization servers and in tokens, such as `https://mcp.example.com/mcp`
/// (2026-07-28, "Canonical Server URI").
#[derive(Clone, PartialEq, Eq)]
pub struct Resource {
    uri: Arc<str>,
    uniform: Arc<str>,
    metadata: Arc<str>,
    metadata_path: Arc<str>,
}

impl Resource {
    /// Reads one; the error says what is wrong with it.
    pub(super) fn read(uri: &str) -> Result<Self, &'static str> {
        let (origin, path) = split(uri)?;
        let path = if path == "/" { "" } else { path };
        let metadata_path = format!("{WELL_KNOWN}{path}");
        Ok(Self {
            uniform: uniform(uri).ok_or("not a URI")?.into(),
            metadata: format!("{origin}{metadata_path}").into(),
            metadata_path: metadata_path.into(),
            uri: uri.into(),
        })
    }

    /// Returns the URI, as it was given.
    pub fn as_str(&self) -> &str {
        &self.uri
    }

    /// Returns whether `audience` is this URI. Upper case in scheme and host makes no difference, nor does one slash at
    /// the end.
    pub fn is(&self, audience: &str) -> bool {
        uniform(audience).is_some_and(|audience| audience == *self.uniform)
    }

    /// Returns where its [`ResourceMetadata`](super::ResourceMetadata) lies.
    pub fn metadata_url(&self) -> &str {
        &self.metadata
    }

    /// Returns the path of that.
    pub(super) fn metadata_path(&self) -> &str {
        &self.metadata_path
    }

    pub(super) fn shared_metadata_url(&self) -> Arc<str> {
        Arc::clone(&self.metadata)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resource").field(&self.uri).finish()
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.uri)
    }
}

/// Whether it can name an authorization server.
pub(super) fn judge_issuer(uri: &str) -> Result<(), &'static str> {
    split(uri).map(|_| ())
}

/// Splits an URI that names a server into its origin and its path.
fn split(uri: &str) -> Result<(&str, &str), &'static str> {
    if !uri.chars().all(is_uri_char) {
        return Err("a character that no URI has");
    }
    if uri.contains(['?', '#']) {
        return Err("a query or a fragment");
    }
    let parsed: Uri = uri.parse().map_err(|_| "not a URI")?;
    let (Some(scheme), Some(authority)) = (parsed.scheme_str(), parsed.authority()) else {
        return Err("not an absolute URI");
    };
    if authority.host().is_empty() || authority.as_str().contains('@') {
        return Err("no host, or a user");
    }
    let is_loopback = matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]");
    if scheme != "https" && !(scheme == "http" && is_loopback) {
        return Err("not https, which only this machine itself can do without");
    }
    let path_at = scheme.len() + "://".len() + authority.as_str().len();
    uri.split_at_checked(path_at).ok_or("not a URI")
}

/// The same for all ways to write it.
fn uniform(uri: &str) -> Option<String> {
    let scheme_end = uri.find("://")? + "://".len();
    let (scheme, rest) = uri.split_at_checked(scheme_end)?;
    let (host, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len()))?;
    let path = path.strip_suffix('/').unwrap_or(path);
    Some(format!("{}{}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase()))
}

/// The characters of a URI (RFC 3986, section 2). What ends a quoted string is none.
const fn is_uri_char(char: char) -> bool {
    char.is_ascii_alphanumeric()
        || matches!(char, '-' | '.' | '_' | '~' | ':' | '/' | '?' | '#' | '[' | ']' | '@' | '!' | '$' | '&' | '\'')
        || matches!(char, '(' | ')' | '*' | '+' | ',' | ';' | '=' | '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lies_between_host_and_path() {
        for (uri, metadata) in [
            ("https://a.test/mcp", "https://a.test/.well-known/oauth-protected-resource/mcp"),
            ("https://a.test/public/mcp/", "https://a.test/.well-known/oauth-protected-resource/public/mcp/"),
            ("https://a.test", "https://a.test/.well-known/oauth-protected-resource"),
            ("https://a.test/", "https://a.test/.well-known/oauth-protected-resource"),
            ("https://a.test:8443/x", "https://a.test:8443/.well-known/oauth-protected-resource/x"),
            ("http://localhost:80/x", "http://localhost:80/.well-known/oauth-protected-resource/x"),
            ("http://127.0.0.1:1", "http://127.0.0.1:1/.well-known/oauth-protected-resource"),
            ("http://[::1]:1/x", "http://[::1]:1/.well-known/oauth-protected-resource/x"),
        ] {
            let resource = Resource::read(uri).expect(uri);
            assert_eq!(resource.metadata_url(), metadata, "{uri}");
            assert!(metadata.ends_with(resource.metadata_path()));
            assert_eq!(resource.as_str(), uri);
            assert!(resource.is(uri));
        }
    }

    #[test]
    fn what_names_no_server_is_refused() {
        for uri in [
            "",
            "/mcp",
            "mcp.example.com",
            "mcp.example.com/mcp",
            "https://",
            "https:///mcp",
            "https://a.test/mcp#x",
            "https://a.test/mcp?x",
            "https://user@a.test/mcp",
            "https://user:secret@a.test/mcp",
            "http://a.test/mcp",
            "http://localhost.evil.test/mcp",
            "ftp://a.test/mcp",
            "https://a.test/\"mcp",
            "https://a.test/\\mcp",
            "https://a.test/ mcp",
            "https://a.test/mcp\r\nx",
            "https://a.test/\u{e9}",
            "urn:mcp:a",
        ] {
            assert!(Resource::read(uri).is_err(), "{uri:?}");
            assert!(judge_issuer(uri).is_err(), "{uri:?}");
        }
    }

    #[test]
    fn an_audience_is_compared_as_a_name() {
        let resource = Resource::read("https://A.test:8443/Mcp").expect("a resource");
        for same in ["https://a.test:8443/Mcp", "HTTPS://A.TEST:8443/Mcp/", "https://A.test:8443/Mcp/"] {
            assert!(resource.is(same), "{same}");
        }
        for other in [
            "",
            "a",
            "https://a.test:8443",
            "https://a.test:8443/mcp",
            "https://a.test/Mcp",
            "http://a.test:8443/Mcp",
            "https://a.test:8443/Mcp//",
            "https://a.test:8443/Mcp/x",
            "https://a.test:8443/Mcp?x",
            "https://a.test:8443.evil.test/Mcp",
            " https://a.test:8443/Mcp",
        ] {
            assert!(!resource.is(other), "{other}");
        }
        assert!(Resource::read("https://a.test").expect("a resource").is("https://a.test/"));
    }
}
