//! How a message of the handshake era is judged: version, then session. And what both transports ask of `initialize`
//! and of batches.

use http::HeaderMap;
use serde::Deserialize;

use super::envelope::{Batch, Body, Kind, Message};
use super::ground::Ground;
use super::mirror::{self, Mirrored};
use super::modern;
use super::names::{header, method};
use super::refusal::{Refusal, RefusalKind};
use super::revision::{Era, Revision, Revisions};

/// What a request without session and without version header is taken for (2026-07-28, Streamable HTTP, "Protocol
/// Version Header"): the last revision that had no such header.
const ASSUMED: Revision = Revision::V2025_03_26;

/// What the headers of a legacy message say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Headers<'h> {
    /// The served revision the version header names, where there is one.
    pub(crate) version: Option<Revision>,
    /// The session named.
    pub(crate) session: Option<&'h str>,
}

impl<'h> Headers<'h> {
    /// Reads the headers of a message of any method. Doubled ones first, then the version.
    pub(crate) fn read(headers: &'h HeaderMap, served: Revisions) -> Result<Self, Refusal> {
        let session = mirror::single(headers, &header::SESSION_ID);
        let version = mirror::single(headers, &header::PROTOCOL_VERSION);
        if session == Mirrored::Twice {
            return Err(Refusal::because(RefusalKind::DuplicateHeader, "Mcp-Session-Id came twice"));
        }
        let version = match version {
            Mirrored::Twice => {
                let refusal = Refusal::because(RefusalKind::DuplicateHeader, "MCP-Protocol-Version came twice");
                return Err(refusal.on(Ground::VersionHeaderOnce));
            }
            Mirrored::Missing => None,
            Mirrored::Bytes => return Err(Refusal::unsupported(served, Era::Legacy, "")),
            Mirrored::Value(name) => {
                Some(served.named(Era::Legacy, name).ok_or_else(|| Refusal::unsupported(served, Era::Legacy, name))?)
            }
        };
        let session = match session {
            Mirrored::Missing | Mirrored::Twice => None,
            Mirrored::Bytes => return Err(Refusal::new(RefusalKind::UnknownSession)),
            Mirrored::Value(id) => Some(id),
        };
        Ok(Self { version, session })
    }
}

/// The revision of a request that belongs to no session.
pub(crate) fn sessionless(version: Option<Revision>, served: Revisions) -> Result<Revision, Refusal> {
    match version {
        Some(version) => Ok(version),
        None if served.contains(ASSUMED) => Ok(ASSUMED),
        None => Err(Refusal::unsupported(served, Era::Legacy, ASSUMED.as_str())),
    }
}

/// The answer to a legacy POST where no legacy revision is served. It names the versions that are, so that a client
/// that opens with `initialize` knows what to speak.
pub(crate) fn not_served(headers: &HeaderMap, body: &Body, served: Revisions) -> Refusal {
    let message = match body {
        Body::Message(message) => Some(message),
        Body::Batch(_) => None,
    };
    let refusal = match (message, mirror::single(headers, &header::PROTOCOL_VERSION)) {
        (Some(message), _) if message.kind == Kind::Request && message.method() == method::INITIALIZE => {
            unsupported_initialize(message, served)
        }
        (_, Mirrored::Missing) => Refusal::because(RefusalKind::HeaderMismatch, "MCP-Protocol-Version is missing"),
        (_, Mirrored::Value(version)) => Refusal::unsupported(served, Era::Modern, version),
        (_, Mirrored::Twice | Mirrored::Bytes) => Refusal::unsupported(served, Era::Modern, ""),
    };
    refusal.with_id(body.request_id())
}

/// The answer to a legacy request on a byte stream where no legacy revision is served. That to `initialize` names the
/// versions that are.
pub(crate) fn line_not_served(message: &Message, served: Revisions) -> Refusal {
    if message.method() == method::INITIALIZE {
        return unsupported_initialize(message, served);
    }
    modern::required_version()
}

/// The revision of what comes on a byte stream before `initialize`: the one that adds least to an answer.
pub(crate) fn before_initialize(served: Revisions) -> Result<Revision, Refusal> {
    served.of(Era::Legacy).last().ok_or_else(|| Refusal::new(RefusalKind::EraNotServed))
}

/// The revision `initialize` is answered with: the one asked for if it is served, else the newest legacy one. An
/// unknown version is not an error there, since no legacy client understands one.
pub(crate) fn negotiate(requested: &str, served: Revisions) -> Result<Revision, Refusal> {
    let revision = served.named(Era::Legacy, requested).or_else(|| served.of(Era::Legacy).next());
    revision.ok_or_else(|| Refusal::new(RefusalKind::EraNotServed))
}

/// Whether a batch has as many messages as it may.
pub(crate) fn judge_batch(batch: &Batch, most: usize) -> Result<(), Refusal> {
    if batch.is_empty() {
        return Err(Refusal::because(RefusalKind::Shape, "A batch has at least one message").on(Ground::BatchEmpty));
    }
    if batch.len > most {
        let refusal = Refusal::because(RefusalKind::Shape, format!("A batch has at most {most} messages"));
        return Err(refusal.on(Ground::BatchLength));
    }
    Ok(())
}

/// Whether a request may stand in a batch.
pub(crate) fn judge_element(request: &Message) -> Result<(), Refusal> {
    if request.method() == method::INITIALIZE {
        let refusal = Refusal::because(RefusalKind::Shape, "initialize must not be part of a batch");
        return Err(refusal.on(Ground::BatchInitialize));
    }
    Ok(())
}

/// The answer to an `initialize` where no revision that has it is served.
fn unsupported_initialize(message: &Message, served: Revisions) -> Refusal {
    let requested = initialize_version(message).unwrap_or_default();
    Refusal::unsupported(served, Era::Modern, &requested).on(Ground::VersionInitialize)
}

fn initialize_version(message: &Message) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        protocol_version: String,
    }
    serde_json::from_slice::<Params>(message.params()?).ok().map(|params| params.protocol_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation_never_fails_while_a_legacy_revision_is_served() {
        let all = Revisions::all();
        assert_eq!(negotiate("2024-11-05", all).unwrap(), Revision::V2024_11_05);
        for unknown in ["2026-07-28", "1999-01-01", "", "DRAFT"] {
            assert_eq!(negotiate(unknown, all).unwrap(), Revision::V2025_11_25, "{unknown}");
        }
        let without = all.without(Revision::V2025_11_25);
        assert_eq!(negotiate("2025-11-25", without).unwrap(), Revision::V2025_06_18);
        let refusal = negotiate("2025-11-25", Revisions::modern_only()).unwrap_err();
        assert_eq!(refusal.kind(), RefusalKind::EraNotServed);
    }

    #[test]
    fn a_request_without_version_is_2025_03_26() {
        assert_eq!(sessionless(None, Revisions::all()).unwrap(), Revision::V2025_03_26);
        let without = Revisions::all().without(Revision::V2025_03_26);
        assert_eq!(sessionless(None, without).unwrap_err().kind(), RefusalKind::UnsupportedVersion);
    }
}
