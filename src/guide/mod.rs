//! The guide: one page for each subject, from the first handler to many nodes.
//!
//! | page | read it when |
//! |---|---|
//! | [`handlers`] | you write a handler: requests, results, errors, tests |
//! | [`eras`] | you wonder which revision a client gets, and what differs |
//! | [`mounting`] | you mount the service in axum, hyper, actix-web, a tower stack, or behind a proxy |
//! | [`byte_streams`] | clients come over stdio, a Unix socket or TCP |
//! | [`sessions`] | you keep state for each client |
//! | [`streaming`] | you report progress, log, or publish changes |
//! | [`asking`] | a tool has to ask its user, the client's model, or for its roots |
//! | [`resuming`] | connections break, or tools run for hours |
//! | [`cancellation`] | work has to stop when nobody waits for it |
//! | [`limits`] | you choose bounds, or a client ran into one |
//! | [`security`] | the server is reachable by anybody but yourself |
//! | [`shutdown`] | you deploy |
//! | [`scaling`] | one process is not enough, or you want to know when it will not be |
//! | [`from_rmcp`] | you come from the `rmcp` crate |
//! | [`faq`] | a client gets 400, 404, 406, 429, nothing at all, or the wrong era |

pub mod handlers {
    #![doc = include_str!("handlers.md")]
}

pub mod eras {
    #![doc = include_str!("eras.md")]
}

pub mod mounting {
    #![doc = include_str!("mounting.md")]
}

pub mod byte_streams {
    #![doc = include_str!("byte_streams.md")]
}

pub mod sessions {
    #![doc = include_str!("sessions.md")]
}

pub mod streaming {
    #![doc = include_str!("streaming.md")]
}

pub mod asking {
    #![doc = include_str!("asking.md")]
}

pub mod resuming {
    #![doc = include_str!("resuming.md")]
}

pub mod cancellation {
    #![doc = include_str!("cancellation.md")]
}

pub mod limits {
    #![doc = include_str!("limits.md")]
}

pub mod security {
    #![doc = include_str!("security.md")]
}

pub mod shutdown {
    #![doc = include_str!("shutdown.md")]
}

pub mod scaling {
    #![doc = include_str!("scaling.md")]
}

pub mod from_rmcp {
    #![doc = include_str!("from_rmcp.md")]
}

pub mod faq {
    #![doc = include_str!("faq.md")]
}
