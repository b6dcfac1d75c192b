//! Where OpenClaw keeps things: every surface, and what becomes of it.
//!
//! What a reader takes is a [`Kind`]. Everything else stands in [`OTHERS`], with the reason why it does not come
//! along; a file that neither knows is named as unknown.

use crate::doctor::sources::zeroclaw::surfaces::{Fate, Shape, Surface};

/// A format that a reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// `sessions.json`.
    SessionIndex,
    /// `*.jsonl` that a key leads to, or none.
    Transcript,
    /// `*.jsonl.reset.*` and its like.
    PastTranscript,
    /// `cron/jobs.json`.
    CronJobs,
    /// `cron/runs/*.jsonl`.
    CronRuns,
    /// `devices/paired.json`.
    Devices,
    /// `delivery-queue/*.json` and its like.
    Deliveries,
    /// `state/openclaw.sqlite`.
    StateDb,
    /// `openclaw-agent.sqlite`.
    AgentDb,
}

/// All kinds.
pub(crate) const KINDS: &[Kind] = &[
    Kind::SessionIndex,
    Kind::Transcript,
    Kind::PastTranscript,
    Kind::CronJobs,
    Kind::CronRuns,
    Kind::Devices,
    Kind::Deliveries,
    Kind::StateDb,
    Kind::AgentDb,
];

/// Places of what is known by its place alone, in the order in which it comes in.
pub(crate) const PLACES: &[(Kind, &str)] = &[
    // What a database says is newer than the files it was made from.
    (Kind::StateDb, "state/openclaw.sqlite"),
    (Kind::AgentDb, "agents/*/agent/openclaw-agent.sqlite"),
    (Kind::CronJobs, "cron/jobs.json"),
    (Kind::CronRuns, "cron/runs/*.jsonl"),
    (Kind::Devices, "devices/paired.json"),
    (Kind::Deliveries, "delivery-queue/*.json"),
    (Kind::Deliveries, "delivery-queue/failed/*.json"),
    (Kind::Deliveries, "session-delivery-queue/*.json"),
    (Kind::Deliveries, "session-delivery-queue/failed/*.json"),
];

const fn plain(name: &'static str, table: &'static str) -> Surface {
    Surface {
        name,
        table,
        shape: Shape::Plain,
        // A home of another program is copied from.
        stays: true,
        discarded: None,
    }
}

const fn database(name: &'static str, table: &'static str) -> Surface {
    Surface {
        shape: Shape::Database,
        ..plain(name, table)
    }
}

impl Kind {
    /// What there is to know of it.
    pub(crate) fn about(self) -> Surface {
        match self {
            Self::SessionIndex => plain("openclaw-sessions", "sessions"),
            Self::Transcript => plain("openclaw-transcripts", "transcript_events"),
            Self::PastTranscript => plain("openclaw-past-transcripts", "transcript_events"),
            Self::CronJobs => plain("openclaw-cron", "cron_jobs"),
            Self::CronRuns => plain("openclaw-cron-runs", "task_runs"),
            Self::Devices => plain("openclaw-devices", "device_auth_tokens"),
            Self::Deliveries => plain("openclaw-deliveries", "delivery_queue_entries"),
            Self::StateDb => database("openclaw-state", "task_runs"),
            Self::AgentDb => database("openclaw-agents", "transcript_events"),
        }
    }
}

/// Files that no reader takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Name of the surface.
    pub(crate) surface: &'static str,
    /// Where, below the home: `*` stands for any part of one name, a `/` at the end for all below.
    pub(crate) pattern: &'static str,
    /// What becomes of them.
    pub(crate) fate: Fate,
    /// Why.
    pub(crate) reason: &'static str,
}

const fn kept(surface: &'static str, pattern: &'static str, reason: &'static str) -> Rest {
    Rest {
        surface,
        pattern,
        fate: Fate::Kept,
        reason,
    }
}

const fn dropped(surface: &'static str, pattern: &'static str, reason: &'static str) -> Rest {
    Rest {
        surface,
        pattern,
        fate: Fate::Discarded,
        reason,
    }
}

const fn ignored(surface: &'static str, pattern: &'static str, reason: &'static str) -> Rest {
    Rest {
        surface,
        pattern,
        fate: Fate::Ignored,
        reason,
    }
}

const LATER: &str = "not carried over by this release; it stays there";
const SECRET: &str = "a secret of the old program; sign in anew, or set it in the configuration";
const EXPIRED: &str = "short-lived; it has run out";
const DERIVED: &str = "made from other files; it is made anew";
const LOCK: &str = "a lock of a process that is gone";
const HISTORY: &str = "a copy of a session that came in";
const OTHER_PROGRAM: &str = "belongs to the old program itself";
const TEXTS: &str = "a person's own files; copy them into the agent's workspace";
const LOG: &str = "a log of the old program; it may hold secrets";

/// Known files that no reader takes. The first row that fits a file is its row.
pub(crate) const OTHERS: &[Rest] = &[
    kept(
        "configuration",
        "openclaw.json",
        "read for agents, keys and paths; see the fragment",
    ),
    kept(
        "configuration",
        "clawdbot.json",
        "read for agents, keys and paths; see the fragment",
    ),
    kept(
        "configuration",
        "moldbot.json",
        "read for agents, keys and paths; see the fragment",
    ),
    kept(
        "configuration",
        "moltbot.json",
        "read for agents, keys and paths; see the fragment",
    ),
    ignored("configuration copies", "openclaw.json.*", OTHER_PROGRAM),
    ignored("configuration copies", "clawdbot.json.*", OTHER_PROGRAM),
    dropped(
        "configuration copies",
        "config-journal-fingerprint.key",
        OTHER_PROGRAM,
    ),
    kept("environment", ".env", SECRET),
    // Beside sessions.
    kept(
        "trajectories",
        "agents/*/sessions/*.trajectory.jsonl",
        LATER,
    ),
    kept(
        "trajectories",
        "agents/*/sessions/*.trajectory-path.json",
        LATER,
    ),
    kept("ACP streams", "agents/*/sessions/*.acp-stream.jsonl", LATER),
    kept(
        "compaction copies",
        "agents/*/sessions/*.checkpoint.*",
        HISTORY,
    ),
    kept(
        "packed transcripts",
        "agents/*/sessions/*.zst",
        "packed by zstd, which this release cannot read; unpack it to import it",
    ),
    kept("repair copies", "agents/*/sessions/*.bak-*", HISTORY),
    kept("repair copies", "agents/*/sessions/*-repair-*", HISTORY),
    kept(
        "imported by the old program",
        "agents/*/sessions/*.migrated*",
        HISTORY,
    ),
    kept(
        "imported by the old program",
        "agents/*/session-sqlite-import-archive/",
        HISTORY,
    ),
    kept(
        "imported by the old program",
        "session-sqlite-migration-runs/",
        HISTORY,
    ),
    dropped(
        "codex bindings",
        "agents/*/sessions/*.codex-app-server.json",
        "a standing permission of another program",
    ),
    ignored("locks", "agents/*/sessions/*.lock", LOCK),
    ignored(
        "index copies",
        "agents/*/sessions/sessions.json.bak*",
        "an older state of an index",
    ),
    ignored(
        "temporary files",
        "agents/*/sessions/*.tmp",
        "never was whole",
    ),
    dropped("prompt texts", "agents/*/sessions/skills-prompts/", DERIVED),
    kept(
        "telegram",
        "agents/*/sessions/sessions.json.telegram-*",
        LATER,
    ),
    kept("learnings", "agents/*/sessions/*.learnings.json", LATER),
    // Beside agents.
    kept("credentials", "agents/*/agent/auth-profiles.json*", SECRET),
    kept("credentials", "agents/*/agent/auth-state.json*", SECRET),
    kept("credentials", "agents/*/agent/auth.json*", SECRET),
    dropped("model catalogues", "agents/*/agent/models.json*", DERIVED),
    ignored("model catalogues", "agents/*/agent/plugins/", DERIVED),
    kept(
        "agent preferences",
        "agents/*/agent/settings.json",
        OTHER_PROGRAM,
    ),
    ignored(
        "agent locks",
        "agents/*/agent/openclaw-agent.sqlite.*",
        LOCK,
    ),
    ignored("agent files", "agents/*/agent/bin/", OTHER_PROGRAM),
    ignored("agent files", "agents/*/agent/tmp/", OTHER_PROGRAM),
    ignored("agent locks", "agents/*/qmd-write.lock.lock", LOCK),
    kept("external memory tool", "agents/*/qmd/", OTHER_PROGRAM),
    kept("older agent folder", "agent/", SECRET),
    // Credentials and identity.
    kept("matrix", "credentials/matrix/", SECRET),
    kept(
        "whatsapp",
        "credentials/whatsapp/",
        "state of a ratchet; two copies of it break each other",
    ),
    dropped(
        "token caches",
        "credentials/github-copilot.token.json",
        EXPIRED,
    ),
    kept("channel pairing", "credentials/*-pairing.json", LATER),
    kept("allow lists", "credentials/*-allowFrom.json", LATER),
    kept("credentials", "credentials/", SECRET),
    kept("credentials", "mcp-oauth/", SECRET),
    kept("device identity", "identity/", SECRET),
    dropped("device requests", "devices/pending.json", EXPIRED),
    dropped("device requests", "devices/bootstrap.json", EXPIRED),
    kept("devices", "devices/", LATER),
    dropped("device requests", "nodes/pending.json", EXPIRED),
    kept("nodes", "nodes/", LATER),
    kept("push", "push/", SECRET),
    kept("node host", "node.json", LATER),
    kept(
        "exec approvals",
        "exec-approvals.json*",
        "a policy: what was allowed there is not allowed here unasked",
    ),
    ignored("exec approvals", "exec-approvals.sock", OTHER_PROGRAM),
    kept(
        "plugin approvals",
        "plugin-binding-approvals.json",
        "a policy: what was allowed there is not allowed here unasked",
    ),
    // Work.
    kept("cron state", "cron/*-state.json", "read with the jobs"),
    ignored("cron copies", "cron/*.bak*", "an older state of the jobs"),
    ignored("cron", "cron/", "no jobs and no runs"),
    dropped("sent messages", "delivery-queue/*.delivered", "it was sent"),
    dropped(
        "sent messages",
        "session-delivery-queue/*.delivered",
        "it was sent",
    ),
    ignored("delivery", "delivery-queue/", "never was whole"),
    ignored("delivery", "session-delivery-queue/", "never was whole"),
    kept("databases", "state/", LATER),
    kept("databases", "tasks/", LATER),
    kept("databases", "plugin-state/", LATER),
    dropped("memory index", "memory/", DERIVED),
    dropped(
        "subagent runs",
        "subagents/",
        "work of a process that is gone",
    ),
    dropped(
        "commitments",
        "commitments/",
        "what was promised then would be said now",
    ),
    dropped(
        "restart",
        "restart-sentinel.json",
        "a restart that is long past",
    ),
    dropped(
        "restart",
        "gateway-restart-intent.json",
        "a restart that is long past",
    ),
    dropped(
        "restart",
        "gateway-supervisor-restart-handoff.json",
        "a restart that is long past",
    ),
    ignored("locks", "gateway.*.lock", LOCK),
    ignored("locks", "qmd/embed.lock.lock", LOCK),
    dropped("gateway instance", "gateway-instance-id", OTHER_PROGRAM),
    dropped("update check", "update-check.json", OTHER_PROGRAM),
    dropped("config health", "logs/config-health.json", OTHER_PROGRAM),
    kept("audit", "audit/", LOG),
    kept("command log", "logs/commands.log", LOG),
    kept("logs", "logs/", LOG),
    kept("voice", "settings/", LATER),
    dropped("tui", "tui/", OTHER_PROGRAM),
    kept("bindings", "bindings/", LATER),
    dropped(
        "phone control",
        "plugins/phone-control/",
        "a switch that must not come back alive",
    ),
    kept("plugins", "plugins/", LATER),
    dropped("sandboxes", "sandbox/", "containers of the old program"),
    kept("ACP ledger", "acp/", LATER),
    kept("workspaces", "workspace-attestations/", LATER),
    kept(
        "media",
        "media/",
        "referred to by transcripts; it stays there",
    ),
    dropped("debug captures", "debug-proxy/", OTHER_PROGRAM),
    dropped(
        "rescue requests",
        "crestodian/",
        "an approval that nobody waits for any more",
    ),
    dropped(
        "rescue requests",
        "openclaw/",
        "an approval that nobody waits for any more",
    ),
    kept("voice calls", "voice-calls/", LATER),
    kept("skill proposals", "skill-workshop/", LATER),
    dropped(
        "process leases",
        "process-leases.json",
        "processes of another boot",
    ),
    dropped("pairing notes", "device-pair-notify.json", EXPIRED),
    dropped("port guard", "port-guard.json", OTHER_PROGRAM),
    dropped("uploads", "msteams-pending-uploads.json", EXPIRED),
    kept("msteams", "msteams-*.json", LATER),
    kept("telegram", "telegram/", LATER),
    kept("discord", "discord/", LATER),
    kept("matrix", "matrix/", SECRET),
    kept("imessage", "imessage/", LATER),
    kept("bluebubbles", "bluebubbles/", LATER),
    kept("nostr", "nostr/", LATER),
    kept("qqbot", "qqbot/", LATER),
    kept("feishu", "feishu/", LATER),
    // A person's own.
    kept("workspaces", "workspace/", TEXTS),
    kept("workspaces", "workspace-*/", TEXTS),
    kept("skills", "skills/", TEXTS),
    kept("hooks", "hooks/", TEXTS),
    ignored("program files", "extensions/", OTHER_PROGRAM),
    ignored("program files", "plugin-skills/", OTHER_PROGRAM),
    ignored("program files", "tools/", OTHER_PROGRAM),
    ignored("program files", "browser/", OTHER_PROGRAM),
    ignored("program files", "sandboxes/", OTHER_PROGRAM),
    ignored("program files", "canvas/", OTHER_PROGRAM),
    ignored("program files", "completions/", OTHER_PROGRAM),
    ignored("caches", "cache/", DERIVED),
    ignored("caches", "tmp/", DERIVED),
    ignored(
        "sessions of the oldest layout",
        "sessions/",
        "no transcript and no index",
    ),
];
