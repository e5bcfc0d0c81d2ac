//! Where the members that the transport judges and stamps stand in a reply.

use std::ops::Range;

use super::ReplyFault;
use super::value::Written;
use crate::protocol::names;
use crate::protocol::scan;

/// A member that the transport judges or stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    ResultType,
    TtlMs,
    CacheScope,
    /// Only looked at.
    StructuredContent,
    Meta,
    /// Of `_meta`, all others of the result.
    ServerInfo,
}

impl Member {
    pub(super) const OF_RESULT: &'static [Self] =
        &[Self::ResultType, Self::TtlMs, Self::CacheScope, Self::StructuredContent, Self::Meta];
    pub(super) const OF_META: &'static [Self] = &[Self::ServerInfo];

    /// The one of `known` that has this key.
    pub(super) fn among(known: &[Self], key: &[u8]) -> Option<Self> {
        known.iter().find(|member| member.name().as_bytes() == key).copied()
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ResultType => "resultType",
            Self::TtlMs => "ttlMs",
            Self::CacheScope => "cacheScope",
            Self::StructuredContent => "structuredContent",
            Self::Meta => "_meta",
            Self::ServerInfo => names::meta::SERVER_INFO,
        }
    }
}

/// A stretch of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Place {
    pub(super) fn range(self) -> Range<usize> {
        self.start..self.end
    }

    pub(super) fn of(self, buf: &[u8]) -> &[u8] {
        buf.get(self.range()).unwrap_or_default()
    }
}

/// The places of the values of those members that are there.
#[derive(Debug, Default)]
pub(super) struct Places {
    result_type: Option<Place>,
    ttl_ms: Option<Place>,
    cache_scope: Option<Place>,
    structured_content: Option<Place>,
    meta: Option<Place>,
    server_info: Option<Place>,
    written: Written,
}

impl Places {
    pub(super) fn get(&self, member: Member) -> Option<Place> {
        match member {
            Member::ResultType => self.result_type,
            Member::TtlMs => self.ttl_ms,
            Member::CacheScope => self.cache_scope,
            Member::StructuredContent => self.structured_content,
            Member::Meta => self.meta,
            Member::ServerInfo => self.server_info,
        }
    }

    /// Remembers how a part of the reply was written.
    pub(super) fn note(&mut self, written: Written) {
        if written == Written::Copied {
            self.written = written;
        }
    }

    /// Whether any of the reply was copied.
    pub(super) fn written(&self) -> Written {
        self.written
    }

    /// Remembers where a member stands, which it does once if it is judged or stamped.
    pub(super) fn record(&mut self, member: Member, place: Place) -> Result<(), ReplyFault> {
        match self.slot(member).replace(place) {
            None => Ok(()),
            Some(_) if member == Member::StructuredContent => Ok(()),
            Some(_) => Err(ReplyFault::Twice(member.name())),
        }
    }

    /// Remembers where a member has been stamped.
    pub(super) fn set(&mut self, member: Member, place: Place) {
        *self.slot(member) = Some(place);
    }

    /// Finds the `known` members of an object that is already written, and those of its `_meta`.
    pub(super) fn scan(&mut self, buf: &[u8], object: Place, known: &[Member]) -> Result<(), ReplyFault> {
        let mut recorded = Ok(());
        let walk = scan::members(object.of(buf), |key, value| {
            let Some(member) = Member::among(known, key) else {
                return;
            };
            let value = value.range();
            let place = Place { start: object.start + value.start, end: object.start + value.end };
            if let Err(fault) = self.record(member, place) {
                recorded = Err(fault);
            }
        })?;
        if !walk.is_object {
            return Err(ReplyFault::NotAnObject);
        }
        recorded?;
        match self.meta {
            Some(meta) if known.contains(&Member::Meta) => {
                self.scan(buf, meta, Member::OF_META).map_err(ReplyFault::in_meta)
            }
            _ => Ok(()),
        }
    }

    /// Follows an edit of the buffer, which put `added` bytes in the place of what stood `at`: a whole value, or
    /// nothing.
    pub(super) fn shift(&mut self, at: Place, added: usize) {
        let all = [
            &mut self.result_type,
            &mut self.ttl_ms,
            &mut self.cache_scope,
            &mut self.structured_content,
            &mut self.meta,
            &mut self.server_info,
        ];
        for place in all.into_iter().flatten() {
            for position in [&mut place.start, &mut place.end] {
                if *position > at.start {
                    *position = *position - at.range().len() + added;
                }
            }
        }
    }

    fn slot(&mut self, member: Member) -> &mut Option<Place> {
        match member {
            Member::ResultType => &mut self.result_type,
            Member::TtlMs => &mut self.ttl_ms,
            Member::CacheScope => &mut self.cache_scope,
            Member::StructuredContent => &mut self.structured_content,
            Member::Meta => &mut self.meta,
            Member::ServerInfo => &mut self.server_info,
        }
    }
}
