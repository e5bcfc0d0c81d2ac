//! The order in which a POST of 2026-07-28 is judged, up to its handler: body, era matrix, routing headers, method.
//!
//! The parameter headers, last before the handler, need the tool's schema: see `http::parameter_source`.

use std::borrow::Cow;

use http::HeaderMap;

use super::envelope::{Body, Claim, Kind, Message};
use super::ground::Ground;
use super::level::LogLevel;
use super::mirror::{self, Mirrored, NameSource};
use super::names::{header, meta, method};
use super::refusal::{Refusal, RefusalKind};
use super::revision::{Era, Revision, Revisions};

/// Methods that earlier revisions had and 2026-07-28 removed.
const REMOVED: [&str; 7] = [
    method::INITIALIZE,
    method::PING,
    method::SET_LEVEL,
    method::RESOURCES_SUBSCRIBE,
    method::RESOURCES_UNSUBSCRIBE,
    "tasks/list",
    "tasks/result",
];

/// A modern message that may go on to its handler.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) revision: Revision,
    pub(crate) message: Message,
}

/// Judges a modern POST. `name_source` tells which member of `params` the `Mcp-Name` of a method mirrors.
pub(crate) fn judge(
    headers: &HeaderMap,
    body: Body,
    served: Revisions,
    name_source: impl Fn(&str) -> NameSource,
) -> Result<Admitted, Refusal> {
    let judged = judge_body(headers, &body, served, name_source);
    let revision = judged.map_err(|refusal| refusal.with_id(body.request_id()))?;
    match body {
        Body::Message(message) => Ok(Admitted { revision, message }),
        Body::Batch(_) => Err(Refusal::new(RefusalKind::BatchNotAllowed).on(Ground::BatchModern)),
    }
}

fn judge_body(
    headers: &HeaderMap,
    body: &Body,
    served: Revisions,
    name_source: impl Fn(&str) -> NameSource,
) -> Result<Revision, Refusal> {
    if !served.serves(Era::Modern) {
        return Err(Refusal::new(RefusalKind::EraNotServed));
    }
    let Body::Message(message) = body else {
        return Err(Refusal::new(RefusalKind::BatchNotAllowed).on(Ground::BatchModern));
    };
    match message.kind {
        Kind::Response => Err(Refusal::new(RefusalKind::UnexpectedResponse).on(Ground::ResponseModern)),
        Kind::Notification => notification(headers, message, served),
        Kind::Request => request(headers, message, served, name_source),
    }
}

fn request(
    headers: &HeaderMap,
    message: &Message,
    served: Revisions,
    name_source: impl Fn(&str) -> NameSource,
) -> Result<Revision, Refusal> {
    let revision = version(headers, message, served)?;
    envelope(message)?;
    mirror::check_method(headers, message.method())?;
    let source = name_source(message.method());
    mirror::check_name(headers, source, mirrored_name(message, source).as_deref())?;
    if REMOVED.contains(&message.method()) {
        return Err(Refusal::new(RefusalKind::MethodNotFound));
    }
    Ok(revision)
}

/// Judges a request on a byte stream, which has no headers: its version, the rest of its envelope, its method.
pub(crate) fn judge_line(message: &Message, served: Revisions) -> Result<Revision, Refusal> {
    if !served.serves(Era::Modern) {
        return Err(Refusal::new(RefusalKind::EraNotServed));
    }
    let revision = claimed(message, served)?;
    envelope(message)?;
    if REMOVED.contains(&message.method()) {
        return Err(Refusal::new(RefusalKind::MethodNotFound));
    }
    Ok(revision)
}

/// The served revision that a message on a byte stream claims.
pub(crate) fn claimed(message: &Message, served: Revisions) -> Result<Revision, Refusal> {
    match message.claim() {
        Claim::Text(claim) => {
            let refusal = || Refusal::unsupported(served, Era::Modern, &claim).on(Ground::MetaVersionServed);
            served.named(Era::Modern, &claim).ok_or_else(refusal)
        }
        Claim::Absent | Claim::NotText => Err(required_version()),
    }
}

/// The member of `params` that `Mcp-Name` mirrors.
fn mirrored_name(message: &Message, source: NameSource) -> Option<Cow<'_, str>> {
    match source {
        NameSource::None => None,
        NameSource::Name => message.name().map(Cow::Borrowed),
        NameSource::Uri => message.uri().map(Cow::Borrowed),
        NameSource::TaskId => message.task_id(),
    }
}

/// The era matrix: what the header and the claim say, alone and together.
fn version(headers: &HeaderMap, message: &Message, served: Revisions) -> Result<Revision, Refusal> {
    let claim = message.claim();
    if message.method() == method::INITIALIZE && claim == Claim::Absent {
        return Err(Refusal::because(
            RefusalKind::HeaderMismatch,
            "initialize belongs to versions up to 2025-11-25; MCP-Protocol-Version names a later one",
        )
        .on(Ground::InitializeModern));
    }
    let header = match mirror::single(headers, &header::PROTOCOL_VERSION) {
        Mirrored::Value(version) => version,
        Mirrored::Missing => return Err(mismatch("MCP-Protocol-Version is missing")),
        Mirrored::Twice => return Err(mismatch("MCP-Protocol-Version came twice")),
        Mirrored::Bytes => {
            return Err(mismatch("MCP-Protocol-Version holds bytes outside visible ASCII"));
        }
    };
    let Claim::Text(claim) = claim else {
        return Err(match served.named(Era::Modern, header) {
            Some(_) => required(meta::PROTOCOL_VERSION, "a string", Ground::MetaVersion),
            None => Refusal::unsupported(served, Era::Modern, header),
        });
    };
    if header != claim {
        return Err(disagree());
    }
    served.named(Era::Modern, header).ok_or_else(|| Refusal::unsupported(served, Era::Modern, header))
}

/// What every request of 2026-07-28 carries in `_meta` beside its version.
pub(crate) fn envelope(message: &Message) -> Result<(), Refusal> {
    if !message.client_capabilities().is_some_and(|json| json.starts_with(b"{")) {
        return Err(required(meta::CLIENT_CAPABILITIES, "an object", Ground::MetaCapabilities));
    }
    if message.log_level().is_some_and(|json| LogLevel::from_json(json).is_none()) {
        return Err(Refusal::because(
            RefusalKind::InvalidMeta,
            format!("params._meta[\"{}\"] is not a log level", meta::LOG_LEVEL),
        )
        .on(Ground::MetaLogLevel));
    }
    Ok(())
}

/// A notification needs no header, no claim and no capabilities, for the revision defines none over HTTP. But where it
/// names its version twice over, both must be the same served one.
fn notification(headers: &HeaderMap, message: &Message, served: Revisions) -> Result<Revision, Refusal> {
    let newest = || served.of(Era::Modern).next().ok_or_else(|| Refusal::new(RefusalKind::EraNotServed));
    let claim = message.claim();
    match mirror::single(headers, &header::PROTOCOL_VERSION) {
        Mirrored::Twice => Err(mismatch("MCP-Protocol-Version came twice")),
        Mirrored::Bytes => Err(mismatch("MCP-Protocol-Version holds bytes outside visible ASCII")),
        Mirrored::Missing => newest(),
        Mirrored::Value(header) => match claim {
            Claim::Absent => newest(),
            Claim::Text(claim) if claim == header => {
                served.named(Era::Modern, header).ok_or_else(|| Refusal::unsupported(served, Era::Modern, header))
            }
            Claim::Text(_) | Claim::NotText => Err(disagree()),
        },
    }
}

fn mismatch(message: &'static str) -> Refusal {
    Refusal::because(RefusalKind::HeaderMismatch, message)
}

fn disagree() -> Refusal {
    Refusal::because(
        RefusalKind::HeaderMismatch,
        format!("MCP-Protocol-Version does not match params._meta[\"{}\"]", meta::PROTOCOL_VERSION),
    )
    .on(Ground::VersionsAgree)
}

/// A request has to say which revision it is of.
pub(crate) fn required_version() -> Refusal {
    required(meta::PROTOCOL_VERSION, "a string", Ground::MetaVersion)
}

fn required(key: &'static str, what: &'static str, ground: Ground) -> Refusal {
    let message = format!("params._meta[\"{key}\"] is required and must be {what}");
    Refusal::because(RefusalKind::InvalidMeta, message).on(ground)
}
