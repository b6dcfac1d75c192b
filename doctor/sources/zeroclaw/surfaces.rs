//! Where ZeroClaw keeps things: every surface, every place it can be in.
//!
//! The places of one store, where several exist, are different generations of it. Sessions are taken
//! oldest generation first, since order is history; jobs and memories newest first, since the newest
//! word holds.

use crate::doctor::sources::openclaw::surfaces::{KINDS, Kind};

/// A format this release reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Format {
    /// `sessions.db`.
    SessionsDb,
    /// `*.jsonl` in use.
    SessionLines,
    /// `*.jsonl` moved to the archive.
    ArchivedSessionLines,
    /// `acp-sessions.db`.
    AcpDb,
    /// `brain.db`.
    BrainDb,
    /// `discord.db`.
    ChannelArchive,
    /// `MEMORY.md` and daily files.
    Markdown,
    /// What was kept of a deleted agent.
    DeletedAgent,
    /// `jobs.db`.
    CronDb,
    /// `control_plane.db`.
    ControlDb,
    /// `delegate_results/<task id>.json`.
    ResultFile,
    /// `devices.db`.
    DevicesDb,
    /// `runs.db` of standing procedures.
    SopDb,
    /// `history.db` of the heartbeat.
    HeartbeatDb,
    /// `knowledge.db`.
    KnowledgeDb,
    /// `audit.db` of the memories.
    AuditDb,
    /// The list of paired tokens in `config.toml`.
    PairedTokens,
    /// `costs.jsonl`, and `costs.db`, which is lines too.
    Costs,
    /// `runtime-trace.jsonl` and its rotated parts.
    Trace,
    /// A cache, plain.
    Cache,
    /// A cache in a database.
    CacheDb,
    /// `memory.db`, the empty probe of the old program's self-test.
    SelfTestDb,
    /// Of another program.
    OpenClaw(Kind),
}

/// All formats of this program that this release reads.
const FORMATS: &[Format] = &[
    Format::SessionsDb,
    Format::SessionLines,
    Format::ArchivedSessionLines,
    Format::AcpDb,
    Format::BrainDb,
    Format::ChannelArchive,
    Format::Markdown,
    Format::DeletedAgent,
    Format::CronDb,
    Format::ControlDb,
    Format::ResultFile,
    Format::DevicesDb,
    Format::PairedTokens,
    Format::Costs,
    Format::Trace,
    Format::SopDb,
    Format::HeartbeatDb,
    Format::KnowledgeDb,
    Format::AuditDb,
    Format::Cache,
    Format::CacheDb,
    Format::SelfTestDb,
];

/// What a file looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A SQLite database, with sidecars.
    Database,
    /// A plain file.
    Plain,
}

/// What there is to know of a format beside how to read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surface {
    /// Its name, as `--only` takes it and receipts store it.
    pub(crate) name: &'static str,
    /// Table that most of it goes to.
    pub(crate) table: &'static str,
    /// What its files look like.
    pub(crate) shape: Shape,
    /// Whether its files stay where they are once their records are in: a person's own, or a program's
    /// that is still there.
    pub(crate) stays: bool,
    /// Why nothing of it comes in: it is moved aside with a receipt, and can be made anew.
    pub(crate) discarded: Option<&'static str>,
}

const fn surface(name: &'static str, table: &'static str, shape: Shape) -> Surface {
    Surface {
        name,
        table,
        shape,
        stays: false,
        discarded: None,
    }
}

const fn discarded(name: &'static str, shape: Shape, reason: &'static str) -> Surface {
    Surface {
        discarded: Some(reason),
        ..surface(name, "none", shape)
    }
}

impl Format {
    /// What there is to know of it.
    pub(crate) fn about(self) -> Surface {
        use Shape::{Database, Plain};
        match self {
            Self::SessionsDb => surface("sessions", "transcript_events", Database),
            Self::SessionLines => surface("session-files", "transcript_events", Plain),
            Self::ArchivedSessionLines => {
                surface("archived-session-files", "transcript_events", Plain)
            }
            Self::AcpDb => surface("acp-sessions", "transcript_events", Database),
            Self::BrainDb => surface("memories", "memories", Database),
            Self::ChannelArchive => surface("channel-archive", "memories", Database),
            Self::Markdown => Surface {
                stays: true,
                ..surface("memory-files", "memory_index_chunks", Plain)
            },
            Self::DeletedAgent => surface("deleted-agents", "memories", Plain),
            Self::CronDb => surface("cron", "cron_jobs", Database),
            Self::ControlDb => surface("tasks", "task_runs", Database),
            Self::ResultFile => surface(RESULTS, "run_artifacts", Plain),
            Self::DevicesDb => surface("devices", "device_auth_tokens", Database),
            Self::SopDb => surface("flows", "flow_runs", Database),
            Self::HeartbeatDb => surface("heartbeat", "task_runs", Database),
            Self::KnowledgeDb => surface("knowledge", "knowledge_nodes", Database),
            Self::AuditDb => surface("memory-audit", "audit_events", Database),
            Self::PairedTokens => Surface {
                stays: true,
                ..surface("paired-tokens", "device_auth_tokens", Plain)
            },
            Self::Costs => surface("costs", "usage_costs", Plain),
            Self::Trace => surface("logs", "diagnostic_events", Plain),
            Self::Cache => discarded("caches", Plain, "a cache, which is no state"),
            Self::CacheDb => discarded("cache-databases", Database, "a cache, which is no state"),
            Self::SelfTestDb => discarded("self-test", Database, "the empty probe of a self-test"),
            Self::OpenClaw(kind) => kind.about(),
        }
    }

    /// All formats, those of other programs too.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let others = KINDS.iter().copied().map(Self::OpenClaw);
        FORMATS.iter().copied().chain(others)
    }

    /// The program whose format it is.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::OpenClaw(_) => "openclaw",
            _ => "zeroclaw",
        }
    }

    /// Name of its surface.
    pub(crate) fn surface(self) -> &'static str {
        self.about().name
    }

    /// Where the old layout had it, below its workspace, where the 0.8 upgrade may have parted it from
    /// its log.
    pub(crate) fn in_old_workspace(self) -> Option<&'static str> {
        match self {
            Self::BrainDb => Some("memory/brain.db"),
            Self::DevicesDb => Some("devices.db"),
            Self::AuditDb => Some("memory/audit.db"),
            _ => None,
        }
    }

    /// Whether it is a SQLite file, with sidecars.
    pub(crate) fn is_sqlite(self) -> bool {
        self.about().shape == Shape::Database
    }
}

/// Name of the surface of results, also for files among them that are none.
pub(crate) const RESULTS: &str = "delegate-results";

/// Folders that results of background work lie in, without those of agents and of sessions elsewhere.
pub(crate) const RESULT_FOLDERS: [&str; 3] = [
    "data/delegate_results",
    "agents/*/workspace/delegate_results",
    "workspace/delegate_results",
];

/// Stores that name folders outside the root where results may lie.
pub(crate) const STORES_OF_FOLDERS: [&str; 2] = [
    "data/sessions/acp-sessions.db",
    "workspace/sessions/acp-sessions.db",
];

/// Folders of session stores, oldest generation first.
pub(crate) const SESSION_FOLDERS: [&str; 2] = ["workspace/sessions", "data/sessions"];

/// A place where files of a format may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// What is there.
    pub(crate) format: Format,
    /// Where, below the root; `*` stands for any part of one name.
    pub(crate) pattern: &'static str,
    /// Whether the old program still read this place: false where an upgrade lost it.
    pub(crate) is_current: bool,
}

const fn place(format: Format, pattern: &'static str) -> Place {
    Place {
        format,
        pattern,
        is_current: true,
    }
}

const fn lost_place(format: Format, pattern: &'static str) -> Place {
    Place {
        format,
        pattern,
        is_current: false,
    }
}

/// Places of everything but sessions and results, in the order in which they come in: of one store the newest
/// generation first, and what others point to before them.
pub(crate) const PLACES: &[Place] = &[
    // Oldest first, as all sessions: order is history.
    place(Format::AcpDb, "workspace/sessions/acp-sessions.db"),
    place(Format::AcpDb, "data/sessions/acp-sessions.db"),
    place(Format::BrainDb, "data/memory/brain.db"),
    place(Format::BrainDb, "agents/default/workspace/memory/brain.db"),
    place(Format::BrainDb, "workspace/memory/brain.db"),
    place(Format::ChannelArchive, "data/memory/discord.db"),
    place(
        Format::ChannelArchive,
        "agents/default/workspace/memory/discord.db",
    ),
    place(Format::ChannelArchive, "workspace/memory/discord.db"),
    place(Format::CronDb, "data/cron/jobs.db"),
    lost_place(Format::CronDb, "agents/default/workspace/cron/jobs.db"),
    place(Format::CronDb, "workspace/cron/jobs.db"),
    place(Format::ControlDb, "data/control_plane.db"),
    lost_place(
        Format::ControlDb,
        "agents/default/workspace/control_plane.db",
    ),
    place(Format::ControlDb, "workspace/control_plane.db"),
    place(Format::Markdown, "agents/*/workspace/MEMORY.md"),
    place(Format::Markdown, "agents/*/workspace/memory/*.md"),
    place(Format::Markdown, "data/MEMORY.md"),
    place(Format::Markdown, "data/memory/*.md"),
    place(Format::Markdown, "data/memory/archive/*.md"),
    place(Format::Markdown, "workspace/MEMORY.md"),
    place(Format::Markdown, "workspace/memory/*.md"),
    place(Format::Markdown, "workspace/memory/archive/*.md"),
    // The manifest first: it says what must lie beside it, so it also goes first.
    place(Format::DeletedAgent, "data/agents/_deleted/*/manifest.json"),
    place(
        Format::DeletedAgent,
        "data/agents/_deleted/*/cascade/memory.json",
    ),
    place(
        Format::DeletedAgent,
        "data/agents/_deleted/*/cascade/cron.json",
    ),
    place(
        Format::DeletedAgent,
        "data/agents/_deleted/*/cascade/acp.json",
    ),
    place(Format::DevicesDb, "data/devices.db"),
    place(Format::DevicesDb, "agents/default/workspace/devices.db"),
    place(Format::DevicesDb, "workspace/devices.db"),
    place(Format::PairedTokens, "config.toml"),
    place(Format::Costs, "data/state/costs.jsonl"),
    place(Format::Costs, "workspace/state/costs.jsonl"),
    place(Format::Costs, "data/.zeroclaw/costs.db"),
    place(Format::Costs, "workspace/.zeroclaw/costs.db"),
    lost_place(Format::Costs, "agents/default/workspace/.zeroclaw/costs.db"),
    place(Format::Trace, "data/state/runtime-trace.jsonl"),
    place(Format::Trace, "data/state/runtime-trace.*.jsonl"),
    place(Format::Trace, "workspace/state/runtime-trace.jsonl"),
    place(Format::Trace, "workspace/state/runtime-trace.*.jsonl"),
    place(Format::SopDb, "data/sop/runs.db"),
    lost_place(Format::SopDb, "agents/default/workspace/sop/runs.db"),
    place(Format::SopDb, "workspace/sop/runs.db"),
    place(Format::HeartbeatDb, "data/heartbeat/history.db"),
    lost_place(
        Format::HeartbeatDb,
        "agents/default/workspace/heartbeat/history.db",
    ),
    place(Format::HeartbeatDb, "workspace/heartbeat/history.db"),
    place(Format::KnowledgeDb, "knowledge.db"),
    place(Format::AuditDb, "data/memory/audit.db"),
    place(Format::AuditDb, "agents/default/workspace/memory/audit.db"),
    place(Format::AuditDb, "workspace/memory/audit.db"),
    place(Format::Cache, "data/state/models_cache.json"),
    place(Format::Cache, "workspace/state/models_cache.json"),
    place(Format::Cache, "agents/*/workspace/state/models_cache.json"),
    place(Format::Cache, "data/state/slash-commands.json"),
    place(Format::Cache, "workspace/state/slash-commands.json"),
    place(
        Format::Cache,
        "agents/*/workspace/state/slash-commands.json",
    ),
    place(Format::Cache, "data/state/memory_hygiene_state.json"),
    place(Format::Cache, "workspace/state/memory_hygiene_state.json"),
    place(Format::Cache, ".selftest_probe"),
    place(Format::Cache, "data/.selftest_probe"),
    place(Format::Cache, "workspace/.selftest_probe"),
    place(Format::Cache, "agents/*/workspace/.selftest_probe"),
    place(Format::Cache, ".zeroclaw_doctor_probe_*"),
    place(Format::Cache, "data/.zeroclaw_doctor_probe_*"),
    place(Format::Cache, "workspace/.zeroclaw_doctor_probe_*"),
    place(Format::Cache, "agents/*/workspace/.zeroclaw_doctor_probe_*"),
    place(Format::CacheDb, "data/memory/response_cache.db"),
    place(Format::CacheDb, "workspace/memory/response_cache.db"),
    place(
        Format::CacheDb,
        "agents/default/workspace/memory/response_cache.db",
    ),
    place(Format::SelfTestDb, "data/memory.db"),
    place(Format::SelfTestDb, "workspace/memory.db"),
];

/// What is to happen with a file that no reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Stays a file by design.
    Kept,
    /// No state: caches, logs, locks.
    Ignored,
    /// State that must not, or need not, come along; a receipt says so.
    Discarded,
}

/// Known files and folders that no reader takes: name of the surface, pattern, fate.
///
/// In a pattern `*` stands for any part of one name, and a `/` at the end for all below.
pub(crate) const OTHERS: &[(&str, &str, Fate)] = &[
    ("emergency stop", "estop-state.json", Fate::Kept),
    (
        "files of deleted agents",
        "data/agents/_deleted/*/workspace/",
        Fate::Kept,
    ),
];
