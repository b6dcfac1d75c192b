//! What doctor saw, and what to do about it.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Worth knowing; never changes an exit code.
    Advice,
    /// Something remains that a person may want to act on.
    Warning,
    /// Something is wrong.
    Error,
}

impl Level {
    /// The word people read.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing doctor saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Stable name of the kind of finding.
    pub(crate) code: &'static str,
    /// How much it matters.
    pub(crate) level: Level,
    /// File, row or agent it is about.
    pub(crate) place: String,
    /// What is so.
    pub(crate) message: String,
    /// What to do; `None` where nothing needs doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Finding {
    /// A finding without a remedy.
    pub(crate) fn new(
        code: &'static str,
        level: Level,
        place: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            level,
            place: place.into(),
            message: message.into(),
            remedy: None,
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
