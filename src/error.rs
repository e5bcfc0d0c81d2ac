//! What building or running a transport can fail with.

use std::error::Error as StdError;
use std::fmt;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a transport could not be built or had to stop.
///
/// Opaque: [`kind`](Self::kind) says whose move it is, the message says what to change.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
}

/// What kind of [`Error`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration contradicts itself or holds a value that cannot be. The message names the fields.
    Configuration,
}

impl Error {
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Configuration, message: message.into(), source: None }
    }

    #[must_use]
    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns its kind.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
