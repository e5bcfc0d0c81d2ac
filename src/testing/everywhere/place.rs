//! Where a handler is run.

use std::fmt;

use crate::protocol::revision::{Era, Revision};

/// A revision on a transport: where [`everywhere`](super::everywhere()) runs a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// The revision that the client speaks.
    pub revision: Revision,
    /// What carries it.
    pub carrier: Carrier,
}

/// What carries a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Carrier {
    /// Streamable HTTP, without a session: 2026-07-28 has none, and clients from 2025-03-26 on may do without.
    Http,
    /// Streamable HTTP in a session (up to 2025-11-25).
    HttpSession,
    /// A byte stream.
    Stdio,
}

impl Place {
    /// All of them, the one that the others are compared with first.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for revision in Revision::ALL.into_iter().rev() {
            // Outside a session nothing tells 2024-11-05 from the revision after it.
            if revision > Revision::V2024_11_05 {
                all.push(Self { revision, carrier: Carrier::Http });
            }
            if revision.era() == Era::Legacy {
                all.push(Self { revision, carrier: Carrier::HttpSession });
            }
            all.push(Self { revision, carrier: Carrier::Stdio });
        }
        all
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let carrier = match self.carrier {
            Carrier::Http => "over HTTP",
            Carrier::HttpSession => "over HTTP in a session",
            Carrier::Stdio => "on a byte stream",
        };
        write!(f, "{} {carrier}", self.revision)
    }
}
