//! The pure core: what the bytes and headers of every protocol revision mean.
//!
//! No I/O, no runtime, no clock and no randomness: everything here is a function of its arguments, so every rule of
//! the wire can be tried without a server. The rooms above decide *when*; this one decides *what*.

pub(crate) mod accept;
mod authority;
pub(crate) mod challenge;
pub(crate) mod classify;
pub(crate) mod cors;
pub(crate) mod envelope;
pub(crate) mod ground;
pub(crate) mod host;
pub(crate) mod initialize;
pub(crate) mod input;
mod integer;
pub(crate) mod kept_id;
pub(crate) mod ladder;
pub(crate) mod legacy;
pub(crate) mod level;
pub(crate) mod mirror;
pub(crate) mod modern;
pub(crate) mod names;
pub(crate) mod origin;
pub(crate) mod parameter_headers;
pub(crate) mod refusal;
pub(crate) mod revision;
pub(crate) mod scan;
pub(crate) mod sentinel;
pub(crate) mod shape;
pub(crate) mod sse;
pub(crate) mod status;
pub(crate) mod token;
pub(crate) mod trace_context;
