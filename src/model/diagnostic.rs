//! The log of what a runtime did.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// How grave an event is, from the least grave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticLevel {
    /// For who follows every step.
    Trace,
    /// For who looks for a cause.
    Debug,
    /// What happened.
    Info,
    /// What may need a look.
    Warn,
    /// What went wrong.
    Error,
}

text_enum!(DiagnosticLevel {
    Trace => "trace",
    Debug => "debug",
    Info => "info",
    Warn => "warn",
    Error => "error",
});

impl DiagnosticLevel {
    /// All, from the least grave up.
    pub const ALL: [Self; 5] = [
        Self::Trace,
        Self::Debug,
        Self::Info,
        Self::Warn,
        Self::Error,
    ];
}

/// One event of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosticEvent {
    /// Which log.
    pub scope: String,
    /// Its name there.
    pub event_key: String,
    /// When it happened.
    pub created_at_ms: i64,
    /// Order among events of one instant.
    pub sequence: i64,
    /// How grave it is.
    pub level: DiagnosticLevel,
    /// Part of the runtime.
    pub category: Option<String>,
    /// What that did.
    pub action: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// The name it ran under then, which may be of nobody by now.
    pub agent_id: Option<AgentId>,
    /// The event as it was recorded, JSON text; `{}` where it was left out of a copy.
    pub payload_json: String,
}

impl DiagnosticEvent {
    /// What it says for people, if anything.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let payload: serde_json::Value = serde_json::from_str(&self.payload_json).ok()?;
        payload["message"].as_str().map(str::to_owned)
    }
}
