//! Where ZeroClaw keeps things: every surface, every place it can be in.
//!
//! The places of one store, where several exist, are different generations of it. Sessions are taken
//! oldest generation first, since order is history; jobs and memories newest first, since the newest
//! word holds.

/// A format this release reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Format {
    /// `sessions.db`.
    SessionsDb,
    /// `*.jsonl` in use.
    SessionLines,
    /// `*.jsonl` moved to the archive.
    ArchivedSessionLines,
    /// `brain.db`.
    BrainDb,
    /// `jobs.db`.
    CronDb,
}

/// All formats this release reads.
pub(crate) const FORMATS: [Format; 5] = [
    Format::SessionsDb,
    Format::SessionLines,
    Format::ArchivedSessionLines,
    Format::BrainDb,
    Format::CronDb,
];

impl Format {
    /// Name of its surface, as `--only` takes it and receipts store it.
    pub(crate) fn surface(self) -> &'static str {
        match self {
            Self::SessionsDb => "sessions",
            Self::SessionLines => "session-files",
            Self::ArchivedSessionLines => "archived-session-files",
            Self::BrainDb => "memories",
            Self::CronDb => "cron",
        }
    }

    /// Table that most of it goes to.
    pub(crate) fn target_table(self) -> &'static str {
        match self {
            Self::SessionsDb | Self::SessionLines | Self::ArchivedSessionLines => {
                "transcript_events"
            }
            Self::BrainDb => "memories",
            Self::CronDb => "cron_jobs",
        }
    }

    /// Whether it is a SQLite file, with sidecars.
    pub(crate) fn is_sqlite(self) -> bool {
        matches!(self, Self::SessionsDb | Self::BrainDb | Self::CronDb)
    }
}

/// Folders of session stores, oldest generation first.
pub(crate) const SESSION_FOLDERS: [&str; 2] = ["workspace/sessions", "data/sessions"];

/// Memory stores, newest generation first.
pub(crate) const BRAINS: [&str; 3] = [
    "data/memory/brain.db",
    "agents/default/workspace/memory/brain.db",
    "workspace/memory/brain.db",
];

/// Job stores, newest generation first; the second is where the 0.8 upgrade lost them.
pub(crate) const CRON_STORES: [(&str, bool); 3] = [
    ("data/cron/jobs.db", true),
    ("agents/default/workspace/cron/jobs.db", false),
    ("workspace/cron/jobs.db", true),
];

/// What is to happen with a file that no reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// State that a later release will import; it stays in place until then.
    Later,
    /// Stays a file by design.
    Kept,
    /// No state: caches, logs, locks.
    Ignored,
}

/// Known files and folders that no reader takes: name of the surface, pattern, fate.
///
/// In a pattern `*` stands for any part of one name, and a `/` at the end for all below.
pub(crate) const OTHERS: &[(&str, &str, Fate)] = &[
    ("config", "config.toml", Fate::Kept),
    ("config", "config.toml.bak", Fate::Kept),
    ("config", "config.toml.backup", Fate::Kept),
    ("secret key", ".secret_key", Fate::Kept),
    ("secret key", "data/.secret_key", Fate::Kept),
    ("ACP sessions", "data/sessions/acp-sessions.db", Fate::Later),
    (
        "ACP sessions",
        "workspace/sessions/acp-sessions.db",
        Fate::Later,
    ),
    ("control plane", "data/control_plane.db", Fate::Later),
    ("delegate results", "data/delegate_results/", Fate::Later),
    (
        "delegate results",
        "workspace/delegate_results/",
        Fate::Later,
    ),
    (
        "delegate results",
        "agents/*/workspace/delegate_results/",
        Fate::Later,
    ),
    ("SOP runs", "data/sop/runs.db", Fate::Later),
    ("devices", "data/devices.db", Fate::Later),
    ("devices", "workspace/devices.db", Fate::Later),
    ("costs", "data/state/costs.jsonl", Fate::Later),
    ("costs", "workspace/state/costs.jsonl", Fate::Later),
    ("costs", "data/.zeroclaw/costs.db", Fate::Later),
    ("costs", "workspace/.zeroclaw/costs.db", Fate::Later),
    (
        "costs",
        "agents/default/workspace/.zeroclaw/costs.db",
        Fate::Later,
    ),
    (
        "runtime trace",
        "data/state/runtime-trace*.jsonl",
        Fate::Later,
    ),
    (
        "runtime trace",
        "workspace/state/runtime-trace*.jsonl",
        Fate::Later,
    ),
    ("heartbeat", "data/heartbeat/history.db", Fate::Later),
    ("heartbeat", "workspace/heartbeat/history.db", Fate::Later),
    (
        "heartbeat",
        "agents/default/workspace/heartbeat/history.db",
        Fate::Later,
    ),
    ("memory audit", "data/memory/audit.db", Fate::Later),
    ("memory audit", "workspace/memory/audit.db", Fate::Later),
    ("channel archive", "data/memory/discord.db", Fate::Later),
    (
        "channel archive",
        "workspace/memory/discord.db",
        Fate::Later,
    ),
    (
        "channel archive",
        "agents/default/workspace/memory/discord.db",
        Fate::Later,
    ),
    ("knowledge graph", "knowledge.db", Fate::Later),
    ("emergency stop", "estop-state.json", Fate::Later),
    ("deleted agents", "data/agents/_deleted/", Fate::Later),
    ("Markdown memories", "data/MEMORY.md", Fate::Later),
    ("Markdown memories", "data/memory/*.md", Fate::Later),
    (
        "Markdown memories",
        "agents/*/workspace/MEMORY.md",
        Fate::Later,
    ),
    (
        "Markdown memories",
        "agents/*/workspace/memory/*.md",
        Fate::Later,
    ),
    ("memory snapshot", "data/MEMORY_SNAPSHOT.md", Fate::Kept),
    ("audit log", "audit.log", Fate::Kept),
    ("web logins", "data/webauthn_credentials.json", Fate::Kept),
    ("provider logins", "auth-profiles.json", Fate::Kept),
    ("one-time password", "otp-secret", Fate::Kept),
    ("ACP bridge", "acp-bridge-token", Fate::Kept),
    ("channel logins", "state/matrix/", Fate::Kept),
    ("channel logins", "state/whatsapp-web/", Fate::Kept),
    (
        "response cache",
        "data/memory/response_cache.db",
        Fate::Ignored,
    ),
    ("self-test leftover", "data/memory.db", Fate::Ignored),
    ("liveness", "state/daemon_state.json", Fate::Ignored),
    ("liveness", "data/daemon.sock", Fate::Ignored),
    ("liveness", "data/daemon.sock.lock", Fate::Ignored),
    ("model cache", "data/state/models_cache.json", Fate::Ignored),
    (
        "hygiene state",
        "data/state/memory_hygiene_state.json",
        Fate::Ignored,
    ),
];
