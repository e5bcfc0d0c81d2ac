//! When a stream of changes has to end by itself: with the access token that opened it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Extensions;
use tokio::time::Sleep;

/// The timer of one stream, if it has to end.
#[derive(Debug, Default)]
pub(super) struct Ends(Option<Pin<Box<Sleep>>>);

impl Ends {
    /// What a layer in front has said of it.
    #[cfg(feature = "auth")]
    pub(super) fn of(extensions: &Extensions) -> Self {
        let end = extensions.get::<crate::auth::StreamsEnd>();
        Self(end.map(|end| {
            let left = end.0.duration_since(std::time::SystemTime::now()).unwrap_or_default();
            Box::pin(tokio::time::sleep(left.min(crate::limits::NEVER)))
        }))
    }

    #[cfg(not(feature = "auth"))]
    pub(super) fn of(_: &Extensions) -> Self {
        Self::default()
    }

    /// Ready at the end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Pending, |end| end.as_mut().poll(cx))
    }
}
