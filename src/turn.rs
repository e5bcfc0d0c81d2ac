//! Whose turn it is to read a stream.

/// Counts the readers of one stream, so that an older one knows that it has been superseded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn(u64);

impl Turn {
    /// The reader that a stream begins with.
    pub(crate) const FIRST: Self = Self(0);

    /// The one after it.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
