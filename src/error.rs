//! What building or running a transport can fail with.

use std::error::Error as StdError;
use std::fmt;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a transport could not be built or had to stop.
///
/// [`kind`](Self::kind) says whose move it is; the message names the setting and says what is wrong with it.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// The setting or the step that went wrong.
    setting: &'static str,
    source: BoxError,
}

/// What kind of [`Error`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration contradicts itself or holds a value that cannot be.
    Configuration,
    /// Reading failed, or the process's own streams could not be had.
    Io,
    /// The transport serves its stream already, or has served it.
    Served,
}

impl Error {
    /// A value of `setting` that cannot be.
    pub(crate) fn configuration(setting: &'static str, source: impl Into<BoxError>) -> Self {
        let kind = ErrorKind::Configuration;
        Self { kind, setting, source: source.into() }
    }

    /// Reading failed, or there is nothing to read from.
    pub(crate) fn io(what: &'static str, source: std::io::Error) -> Self {
        Self { kind: ErrorKind::Io, setting: what, source: source.into() }
    }

    /// A stream can be served once.
    pub(crate) fn served() -> Self {
        Self { kind: ErrorKind::Served, setting: "serve", source: "a stream can be served once".into() }
    }

    /// Returns its kind.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.source)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // Its own text is part of ours.
        self.source.source()
    }
}
