//! Streamable HTTP: one endpoint for every revision, as a tower service.
//!
//! A request climbs the ladder: its head (`admit`), its body (`read`), its era and what that asks (`post`). What passes
//! becomes an exchange; whatever comes out becomes a response (`respond`).

mod admit;
mod body;
mod builder;
mod ends;
mod future;
mod general;
mod legacy_post;
mod listen;
mod listing;
mod parameter_source;
mod post;
mod read;
mod respond;
mod resume;
mod service;

pub use body::ResponseBody;
pub use builder::StreamableHttpBuilder;
#[cfg(feature = "auth")]
pub(crate) use ends::StreamsEnd;
pub use future::{ResponseFuture, ServiceFuture};
pub use general::SecondGet;
#[cfg(feature = "auth")]
pub(crate) use respond::RETRY_SECONDS;
pub use service::{Sessions, StreamableHttpService};

#[cfg(test)]
mod tests;
