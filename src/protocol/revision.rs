//! The protocol revisions, the two eras they fall into, and the set of them that a server serves.

use std::fmt;

/// How a revision carries its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums)] // a third era would be a new transport
pub enum Era {
    /// 2024-11-05 to 2025-11-25: an `initialize` handshake, and sessions over HTTP.
    Legacy,
    /// 2026-07-28 and later: every request carries its version and the client's capabilities.
    Modern,
}

impl Era {
    /// Returns `legacy` or `modern`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A published revision of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, and the only one with JSON-RPC batches.
    V2025_03_26,
    /// 2025-06-18: the `MCP-Protocol-Version` header, elicitation, structured tool output.
    V2025_06_18,
    /// 2025-11-25, the last with a handshake.
    V2025_11_25,
    /// 2026-07-28: stateless.
    V2026_07_28,
}

impl Revision {
    /// Every revision this crate implements, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// Returns the revision of this name, such as `2026-07-28`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Returns the name that stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era it belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether a body may be a batch (2025-03-26 only).
    pub(crate) const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// Whether a stream begins with an event that has an id and no data, and may be left and taken up again at the
    /// server's word (2025-11-25 only).
    pub(crate) const fn has_polling(self) -> bool {
        matches!(self, Self::V2025_11_25)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The revisions a transport serves. Default: [`Revisions::all`].
///
/// A revision that is left out is unknown to the transport in every rule: it is not negotiated, not listed, and a
/// request that names it is refused.
///
/// ```
/// use mcp_transport::{Revision, Revisions};
///
/// let served = Revisions::all().without(Revision::V2024_11_05);
/// assert!(!served.contains(Revision::V2024_11_05));
/// assert!(Revisions::modern_only().contains(Revision::V2026_07_28));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Revisions(u8);

impl Revisions {
    /// Every revision this crate implements.
    pub const fn all() -> Self {
        Self(0b1_1111)
    }

    /// The revisions from 2026-07-28 on: clients that open with `initialize` are told which versions to speak.
    pub const fn modern_only() -> Self {
        Self(Revision::V2026_07_28.bit())
    }

    /// The revisions up to 2025-11-25: clients that speak both eras fall back to `initialize`.
    pub const fn legacy_only() -> Self {
        Self(Self::all().0 & !Self::modern_only().0)
    }

    /// Exactly these.
    pub fn only(revisions: impl IntoIterator<Item = Revision>) -> Self {
        Self(revisions.into_iter().fold(0, |set, revision| set | revision.bit()))
    }

    /// The same set less one.
    #[must_use]
    pub const fn without(self, revision: Revision) -> Self {
        Self(self.0 & !revision.bit())
    }

    /// Whether this revision is served.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & revision.bit() != 0
    }

    /// Whether no revision is served.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The revisions in the set, newest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().rev().filter(move |revision| self.contains(*revision))
    }

    /// The revisions of one era, newest first.
    pub(crate) fn of(self, era: Era) -> impl Iterator<Item = Revision> {
        self.iter().filter(move |revision| revision.era() == era)
    }

    /// Whether any revision of the era is served.
    pub(crate) fn serves(self, era: Era) -> bool {
        self.of(era).next().is_some()
    }

    /// The served revision of this name, if it belongs to the era.
    pub(crate) fn named(self, era: Era, name: &str) -> Option<Revision> {
        self.of(era).find(|revision| revision.as_str() == name)
    }
}

impl Default for Revisions {
    fn default() -> Self {
        Self::all()
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
