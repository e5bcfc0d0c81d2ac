//! When a stream of changes has to end by itself: with the access token that opened it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::Extensions;
use tokio::time::{Sleep, sleep};

use crate::limits::NEVER;

/// When the streams of changes that a request opens have to end. A layer in front leaves it in the head.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "auth"), allow(dead_code))] // only the layer makes one
pub(crate) struct StreamsEnd(pub(crate) SystemTime);

/// The timer of one stream, if it has to end.
#[derive(Debug, Default)]
pub(super) struct Ends(Option<Pin<Box<Sleep>>>);

impl Ends {
    /// What a layer in front has said of it.
    pub(super) fn of(extensions: &Extensions) -> Self {
        Self(extensions.get::<StreamsEnd>().map(|StreamsEnd(end)| {
            let left = end.duration_since(SystemTime::now()).unwrap_or_default();
            Box::pin(sleep(left.min(NEVER)))
        }))
    }

    /// Ready at the end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Pending, |end| end.as_mut().poll(cx))
    }
}
