//! How published changes reach those who listen: `subscriptions/listen` streams and the general streams of sessions.

mod hub;
mod listening;
mod mailbox;
mod notice;

pub(crate) use hub::{Hub, Most, Place, Standing};
pub(crate) use listening::{Decided, Granting, cancelled};
pub(crate) use mailbox::{Mailbox, Subscribed, Wants};
