//! The severities of `notifications/message`.

use serde::{Deserialize, Serialize};

/// The severity of a log message, as in RFC 5424, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
#[allow(clippy::exhaustive_enums)] // syslog has had these eight since 1980
pub enum LogLevel {
    /// Detailed information for debugging.
    Debug,
    /// General information.
    Info,
    /// Normal but significant.
    Notice,
    /// A warning.
    Warning,
    /// An error.
    Error,
    /// A critical condition.
    Critical,
    /// Action must be taken at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    const ALL: [(&'static str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// The level of this number, as `as u8` gives it.
    pub(crate) fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).map_or(Self::Info, |(_, level)| *level)
    }

    /// Reads a level from its JSON text.
    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }
}

impl TryFrom<String> for LogLevel {
    type Error = &'static str;

    fn try_from(word: String) -> Result<Self, &'static str> {
        let level = Self::ALL.into_iter().find(|(name, _)| *name == word);
        level.map(|(_, level)| level).ok_or("not a log level")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_the_eight_words_in_order() {
        let words = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
        let levels: Vec<_> = words.iter().map(|w| LogLevel::from_json(format!("{w:?}").as_bytes()).unwrap()).collect();
        assert!(levels.is_sorted());
        for bad in ["\"Info\"", "\"warn\"", "3", "null", "\"\"", "{\"info\":null}"] {
            assert_eq!(LogLevel::from_json(bad.as_bytes()), None, "{bad}");
        }
    }
}
