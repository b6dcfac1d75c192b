//! `[sop]`: how runs of standing procedures are held in bounds, and what becomes of an approval that nobody gives.

use std::time::Duration;

use toml::Value;

use super::section::{Section, Warnings};

/// What becomes of a run whose approval nobody gives in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalTimeout {
    /// It goes on waiting, and those who may approve are told again.
    #[default]
    Escalate,
    /// It is cancelled.
    Cancel,
    /// It goes on as if approved: only where the file says so in these words.
    AutoApprove,
}

/// What the configuration says of standing procedures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SopConfig {
    /// How many runs may be driven at once, of all procedures together.
    pub max_concurrent_total: u32,
    /// How long an approval may take; `None` for ever.
    pub approval_timeout: Option<Duration>,
    /// What happens then.
    pub approval_timeout_action: ApprovalTimeout,
}

impl Default for SopConfig {
    fn default() -> Self {
        Self {
            max_concurrent_total: 4,
            approval_timeout: Some(Duration::from_secs(300)),
            approval_timeout_action: ApprovalTimeout::Escalate,
        }
    }
}

/// Reads the part. A word that is none leaves approvals closed.
pub(super) fn read(sop: &Section<'_>, warnings: &mut Warnings) -> SopConfig {
    let usual = SopConfig::default();
    let count = |value: &Value| u32::try_from(value.as_integer()?).ok();
    let action = |value: &Value| match value.as_str() {
        Some("escalate") => Some(ApprovalTimeout::Escalate),
        Some("cancel") => Some(ApprovalTimeout::Cancel),
        Some("auto_approve") => Some(ApprovalTimeout::AutoApprove),
        _ => None,
    };
    let words = "\"escalate\", \"cancel\" or \"auto_approve\"";
    let number = "a whole number";
    let timeout = sop.get("approval_timeout_secs", number, count, warnings);
    SopConfig {
        max_concurrent_total: sop
            .get("max_concurrent_total", number, count, warnings)
            .filter(|total| *total > 0)
            .unwrap_or(usual.max_concurrent_total),
        approval_timeout: match timeout {
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(u64::from(seconds))),
            None => usual.approval_timeout,
        },
        approval_timeout_action: sop
            .get("approval_timeout_action", words, action, warnings)
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn approvals_open_by_themselves_only_where_the_file_says_so() {
        for (text, action, timeout, warnings) in [
            ("", ApprovalTimeout::Escalate, Some(300), 0),
            (
                "[sop]\napproval_timeout_secs = 0",
                ApprovalTimeout::Escalate,
                None,
                0,
            ),
            (
                "[sop]\napproval_timeout_action = \"auto_approve\"\napproval_timeout_secs = 9",
                ApprovalTimeout::AutoApprove,
                Some(9),
                0,
            ),
            (
                "[sop]\napproval_timeout_action = \"yes\"\napproval_timeout_secs = -1",
                ApprovalTimeout::Escalate,
                Some(300),
                2,
            ),
        ] {
            let config = Config::parse(text).unwrap();

            assert_eq!(config.sop.approval_timeout_action, action, "{text}");
            let seconds = config.sop.approval_timeout.map(|timeout| timeout.as_secs());
            assert_eq!(seconds, timeout, "{text}");
            assert_eq!(config.warnings.len(), warnings, "{text}");
            assert_eq!(config.sop.max_concurrent_total, 4, "{text}");
        }
    }
}
