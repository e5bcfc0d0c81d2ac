//! One JSON-RPC message a line, over standard input and output or any other byte stream.
//!
//! Whatever is read (`lines`) is judged (`receive`, `handshake`), and what passes is owed an answer (`owed`).
//! Everything that is said goes through one outbox, which the task that reads also writes (`serve`, `output`).

mod builder;
mod connection;
mod handshake;
mod hooks;
pub(crate) mod lines;
mod listen;
mod output;
mod owed;
mod process;
mod receive;
mod serve;
mod transport;

pub use builder::StdioBuilder;
pub use transport::{ServeEnd, StdioTransport};
