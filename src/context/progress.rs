//! How far a request has come, as a client reads it.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// How far a request has come.
///
/// ```
/// use mcp_transport::Progress;
///
/// let progress = Progress::new(3.0).total(10.0).message("reticulating splines");
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    #[serde(serialize_with = "shortest")]
    pub(super) progress: f64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shortest_or_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'static, str>>,
}

impl Progress {
    /// This much is done, in any unit. It must rise from report to report: one that does not rise is dropped, and so is
    /// one that is no finite number.
    pub fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }

    /// Of this much, in the same unit. Default: unknown; so is what is no finite number.
    #[must_use]
    pub fn total(mut self, total: f64) -> Self {
        self.total = total.is_finite().then_some(total);
        self
    }

    /// Says in words what is going on (from 2025-03-26 on; older clients ignore it). Default: nothing.
    #[must_use]
    pub fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// The params of `notifications/progress`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProgressParams<'a> {
    pub(super) progress_token: &'a RawValue,
    #[serde(flatten)]
    pub(super) progress: &'a Progress,
}

/// A whole number as one: `50`, not `50.0`.
fn shortest<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation)] // whole and in range, as just seen
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

fn shortest_or_none<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => shortest(number, serializer),
        None => serializer.serialize_none(),
    }
}
