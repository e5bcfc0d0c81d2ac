//! What is kept of the event streams of sessions, so that a client whose connection broke can have it again (up to
//! 2025-11-25, "Resumability and Redelivery").
//!
//! A [`Record`] gives the events of one stream their ids and writes them into the [`Log`] of its session; the [`Store`]
//! bounds all logs of a transport. What a client reads, recorded or not, it reads from a [`Queue`](queue::Queue).

mod bounds;
mod general;
mod id;
mod log;
pub(crate) mod queue;
mod record;

pub(crate) use bounds::Store;
pub(crate) use general::General;
pub(crate) use id::EventId;
pub(crate) use log::{Found, Log};
pub(crate) use record::{Record, Unresumable};

/// Whether the event streams of sessions can be resumed (up to 2025-11-25; later revisions know neither sessions nor
/// resuming).
///
/// With a store every event of a session's streams has an id. A client whose connection broke sends a GET with the last
/// id it read as `Last-Event-ID`, and reads on from there. Changes that are published while no GET stream is open are
/// kept for the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventStore {
    /// They cannot. Events have no ids, and `Last-Event-ID` is ignored.
    #[default]
    None,
    /// They can, for as long as [`Limits::stored_events`](crate::Limits::stored_events),
    /// [`stored_bytes`](crate::Limits::stored_bytes), [`stored_bytes_in_all`](crate::Limits::stored_bytes_in_all) and
    /// [`stored_for`](crate::Limits::stored_for) allow. What is kept is kept in this process: a client must come back
    /// to the same one, and while it is away no [drain](crate::Transport::drain) waits for it.
    InMemory,
}

#[cfg(test)]
mod tests;
