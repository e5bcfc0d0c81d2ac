//! What `tracing` is told (feature `tracing`): a span for every exchange, events for what goes wrong. Without the
//! feature nothing is left of it.

#[cfg(feature = "tracing")]
mod events;
#[cfg(not(feature = "tracing"))]
mod off;
#[cfg(feature = "tracing")]
mod span;

#[cfg(feature = "tracing")]
pub(crate) use self::{events::traced, span::CallSpan};
#[cfg(not(feature = "tracing"))]
pub(crate) use off::{CallSpan, traced};
