//! What the tests are written with: a server, a client, right requests to break, and a handler that does as told.

pub mod check;
pub mod client;
pub mod dialogue;
pub mod fixture;
pub mod handler;
pub mod peer;
pub mod request;
pub mod seen;
pub mod server;
pub mod session;
pub mod sse;
pub mod stage;
