//! The same without the feature: nothing.

use std::sync::Arc;

use crate::exchange::Outcome;
use crate::exchange::call::Call;
use crate::observer::{ExchangeEnd, Observer};

/// Nothing around a call.
#[derive(Debug)]
pub(crate) struct CallSpan;

#[allow(clippy::unused_self)] // as the span that is there with the feature
impl CallSpan {
    #[inline]
    pub(crate) const fn of(_: &Call) -> Self {
        Self
    }

    #[inline]
    pub(crate) fn run<T>(&self, run: impl FnOnce() -> T) -> T {
        run()
    }

    #[inline]
    pub(crate) const fn answered(&self, _: &Call, _: &Outcome) {}

    #[inline]
    pub(crate) const fn ended(&self, _: ExchangeEnd) {}
}

/// The application's observer, and nobody else.
pub(crate) fn traced(observer: Arc<dyn Observer>) -> Arc<dyn Observer> {
    observer
}
