//! By which rules old sessions go.

use serde::{Deserialize, Serialize};

/// Which sessions of each agent go. Zero and less switch a rule off; all are off by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionRules {
    /// Those not changed for more days than this.
    pub max_age_days: i64,
    /// All but this many of the newest.
    pub max_sessions: i64,
    /// The oldest, until texts and JSON of those that stay are no more bytes than this.
    pub max_bytes: i64,
}

impl RetentionRules {
    /// Whether any rule is on.
    #[must_use]
    pub fn is_any_on(&self) -> bool {
        self.max_age_days > 0 || self.max_sessions > 0 || self.max_bytes > 0
    }
}
