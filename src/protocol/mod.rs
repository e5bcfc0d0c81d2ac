//! The pure core: what the bytes and headers of every protocol revision mean.
//!
//! No I/O, no runtime, no clock and no randomness: everything here is a function of its arguments, so every rule of
//! the wire can be tried without a server. The rooms above decide *when*; this one decides *what*.

pub(crate) mod names;
pub(crate) mod revision;
pub(crate) mod scan;
pub(crate) mod sse;
