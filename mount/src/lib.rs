//! One handler, and the frameworks that serve it: see `tests/suite`.

pub mod handler;
pub mod remote;
