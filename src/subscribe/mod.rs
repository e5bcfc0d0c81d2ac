//! How published changes reach those who listen: `subscriptions/listen` streams and the general streams of sessions.

mod hub;
mod mailbox;
mod notice;

pub(crate) use hub::{Hub, Place, Standing};
pub(crate) use mailbox::{Mailbox, Subscribed, Wants};
