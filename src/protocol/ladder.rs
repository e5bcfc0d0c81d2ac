//! The rungs that are judged on the head of an HTTP request, before a byte of its body is read.

use http::{Method, request};

use super::accept::{self, Accepts};
use super::host::Hosts;
use super::origin::{Origins, Verdict};
use super::refusal::{Refusal, RefusalKind};
use super::revision::{Era, Revisions};

/// What the head of a request is judged by.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    pub(crate) hosts: Hosts,
    pub(crate) origins: Origins,
    pub(crate) revisions: Revisions,
}

/// One rung: returns why it fails.
type Check = fn(&Gate, &request::Parts) -> Option<RefusalKind>;

/// The ladder below the body, in order, from the origin up. Draining, the rung before, and the body, the rung after,
/// are the shell's.
const HEAD: [Check; 4] = [host, method, content_type, accepted];

impl Gate {
    /// Climbs the ladder; the first rung that fails answers. The origin has been judged, for the answer names it too.
    pub(crate) fn judge(&self, parts: &request::Parts, origin: Verdict<'_>) -> Result<(), Refusal> {
        if origin == Verdict::Refused {
            return Err(Refusal::new(RefusalKind::OriginNotAllowed));
        }
        match HEAD.iter().find_map(|check| check(self, parts)) {
            Some(kind) => Err(Refusal::new(kind)),
            None => Ok(()),
        }
    }

    /// The methods served, as `Allow` lists them.
    pub(crate) fn allowed_methods(&self) -> &'static str {
        if self.revisions.serves(Era::Legacy) { "POST, GET, DELETE" } else { "POST" }
    }
}

fn host(gate: &Gate, parts: &request::Parts) -> Option<RefusalKind> {
    (!gate.hosts.judge(&parts.headers, &parts.uri)).then_some(RefusalKind::HostNotAllowed)
}

fn method(gate: &Gate, parts: &request::Parts) -> Option<RefusalKind> {
    let served = match parts.method {
        Method::POST | Method::OPTIONS => true,
        Method::GET | Method::DELETE => gate.revisions.serves(Era::Legacy),
        _ => false,
    };
    (!served).then_some(RefusalKind::MethodNotAllowed)
}

fn content_type(_: &Gate, parts: &request::Parts) -> Option<RefusalKind> {
    let judged = parts.method == Method::POST;
    (judged && !accept::content_type_is_json(&parts.headers)).then_some(RefusalKind::ContentType)
}

fn accepted(_: &Gate, parts: &request::Parts) -> Option<RefusalKind> {
    let judged = parts.method == Method::POST;
    (judged && Accepts::of(&parts.headers) == Accepts::Neither).then_some(RefusalKind::NotAcceptable)
}
