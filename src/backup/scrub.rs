//! What of each table goes into an archive without secrets.
//!
//! Decided by the schema and never by how a name sounds: every table of both tiers stands here with a decision, and a
//! test fails when one does not. What people and agents said is no credential; it stays, and the output says so.

use std::path::Path;

use super::BackupError;
use super::manifest::LeftOut;
use crate::db::{DbCopy, Erase, Erased, Sealed};
use crate::model::Tier;

/// What happens to a table.
#[derive(Clone, Copy, Debug)]
enum Decision {
    /// It holds no credential, and this is why.
    Keep(
        #[cfg_attr(not(test), expect(dead_code, reason = "for who reads the table"))] &'static str,
    ),
    /// All rows go; this is what they are, and what that means after a restore.
    DropRows(&'static str),
    /// Columns are emptied.
    ScrubColumns(&'static [Scrub]),
}

/// A column that is emptied.
#[derive(Clone, Copy, Debug)]
struct Scrub {
    column: &'static str,
    /// Only in rows where this column holds this text.
    only: Option<(&'static str, &'static str)>,
    /// What it holds, and what that means after a restore.
    what: &'static str,
}

use Decision::{DropRows, Keep, ScrubColumns};

const GLOBAL: &[(&str, Decision)] = &[
    ("schema_meta", Keep("versions and times")),
    ("agent_databases", Keep("names and paths of agents")),
    (
        "state_leases",
        DropRows("leases of processes; a restore clears them anyway"),
    ),
    ("migration_runs", Keep("places and counts, never values")),
    ("migration_sources", Keep("digests, places and counts")),
    ("backup_runs", Keep("paths and lists of contents")),
    (
        "task_runs",
        Keep("what was done and said, as in transcripts"),
    ),
    (
        "task_delivery_state",
        Keep("whom to tell: names of channels and people, as in transcripts"),
    ),
    (
        "goal_tasks",
        Keep("what people asked for, as in transcripts"),
    ),
    (
        "task_continuations",
        Keep("where a conversation goes on: names of channels and people"),
    ),
    (
        "task_settlements",
        Keep("how a task was to end: a path and a digest"),
    ),
    ("cron_jobs", ScrubColumns(CRON_JOBS)),
    (
        "device_identities",
        Keep("names and kinds of devices, which open nothing"),
    ),
    (
        "device_auth_tokens",
        DropRows("digests of the tokens of paired devices: pair them again"),
    ),
    (
        "device_bootstrap_tokens",
        DropRows("digests of pairing codes: make new ones"),
    ),
    (
        "device_pairing_requests",
        DropRows("digests of what devices collect tokens with: let them ask again"),
    ),
    (
        "channel_pairing_requests",
        DropRows("codes of strangers who wait: they get new ones"),
    ),
    (
        "channel_pairing_allow_entries",
        Keep("who may write on a channel: names, which open nothing"),
    ),
    (
        "acp_sessions",
        Keep("working folders and counters of sessions"),
    ),
    ("usage_costs", Keep("models, tokens and prices of calls")),
    ("diagnostic_events", ScrubColumns(DIAGNOSTIC_EVENTS)),
    (
        "flow_runs",
        Keep("what was done and said, as in transcripts"),
    ),
    (
        "flow_events",
        Keep("what was done and said, as in transcripts"),
    ),
    (
        "flow_proposals",
        Keep("procedures as agents wrote them: told to be inside"),
    ),
    (
        "delivery_queue_entries",
        Keep("what was said and to whom, as in transcripts"),
    ),
    (
        "commitments",
        Keep("what agents promised and to whom, as in transcripts"),
    ),
    (
        "flow_claims",
        DropRows("names of processes that drive runs, void once they are gone"),
    ),
    ("knowledge_nodes", Keep("what is known: told to be inside")),
    (
        "knowledge_edges",
        Keep("how what is known belongs together"),
    ),
    (
        "audit_events",
        Keep("what was done to memories, as they were asked for"),
    ),
    (
        "plugin_state_entries",
        DropRows(
            "what plugins keep, which may be their tokens: they start anew, and some want to be signed in again",
        ),
    ),
    (
        "plugin_blob_entries",
        DropRows("bytes that plugins keep, which may be their keys: as above"),
    ),
    (
        "plugin_binding_approvals",
        Keep("which plugin may answer where: names of channels and accounts"),
    ),
    (
        "installed_plugin_index",
        DropRows(
            "where plugins were installed from, addresses with tokens among it: the runtime looks again",
        ),
    ),
];

const DIAGNOSTIC_EVENTS: &[Scrub] = &[Scrub {
    column: "payload_json",
    only: None,
    what: "log events whole, with what tools were given and gave, addresses and tokens among it; when, who and what \
           stay in the columns beside it",
}];

const CRON_JOBS: &[Scrub] = &[
    Scrub {
        column: "delivery_to",
        only: Some(("delivery_mode", "webhook")),
        what: "the address of a webhook, which opens it to whoever has it: enter it again",
    },
    Scrub {
        column: "failure_alert_to",
        only: Some(("failure_alert_channel", "webhook")),
        what: "the address of a webhook for alerts, which opens it to whoever has it: enter it again",
    },
    Scrub {
        column: "job_json",
        only: None,
        what: "the definition as it came in, with addresses of webhooks; the columns beside it hold the job",
    },
];

const AGENT: &[(&str, Decision)] = &[
    ("schema_meta", Keep("versions and times")),
    ("migration_sources", Keep("digests and counts")),
    ("conversations", Keep("who talks where")),
    ("sessions", Keep("names and states of sessions")),
    ("session_routes", Keep("which session a key leads to")),
    (
        "session_entries",
        Keep(
            "settings of a session as its origin kept them, beside its credentials and not with them",
        ),
    ),
    ("session_conversations", Keep("which session belongs where")),
    (
        "transcript_events",
        Keep("what was said: told to be inside"),
    ),
    ("transcript_event_identities", Keep("ids of events")),
    ("transcript_snapshots", Keep("places in transcripts")),
    (
        "state_leases",
        Keep("names of processes, void once they are gone"),
    ),
    ("transcript_events_fts", Keep("words of transcript_events")),
    ("run_artifacts", Keep("what runs gave: told to be inside")),
    ("memories", Keep("what is remembered: told to be inside")),
    ("memories_fts", Keep("words of memories")),
    (
        "tool_artifacts",
        Keep("what tools were given and gave, as in transcripts"),
    ),
    (
        "vfs_entries",
        Keep("files of the agent: its own work, told to be inside"),
    ),
    ("vfs_chunks", Keep("bytes of larger files of the agent")),
    ("vfs_entries_fts", Keep("words of vfs_entries")),
    (
        "memory_index_sources",
        Keep("names and digests of indexed files"),
    ),
    (
        "memory_index_chunks",
        Keep("entries of indexed files, as in memories"),
    ),
    (
        "memory_index_chunks_fts",
        Keep("words of memory_index_chunks"),
    ),
    ("memory_index_state", Keep("a counter")),
    (
        "trajectory_runtime_events",
        Keep("what runtimes did, as in transcripts"),
    ),
    (
        "acp_parent_stream_events",
        Keep("what was told to a parent, as in transcripts"),
    ),
    (
        "cache_entries",
        DropRows("answers of services that can be asked again, whatever they hold"),
    ),
];

/// One thing to take out, as it is told.
struct Step {
    erase: Erase,
    what: &'static str,
}

fn steps(decisions: &[(&'static str, Decision)]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (table, decision) in decisions {
        match *decision {
            Keep(_) => {}
            DropRows(what) => steps.push(Step {
                erase: Erase {
                    table,
                    only: None,
                    what: Erased::Row,
                },
                what,
            }),
            ScrubColumns(columns) => steps.extend(columns.iter().map(|scrub| Step {
                erase: Erase {
                    table,
                    only: scrub.only,
                    what: Erased::Column(scrub.column),
                },
                what: scrub.what,
            })),
        }
    }
    steps
}

fn decisions(tier: &Tier) -> &'static [(&'static str, Decision)] {
    match tier {
        Tier::Global => GLOBAL,
        Tier::Agent(_) => AGENT,
    }
}

/// Dropped because a restore voids them anyway, not for what they say.
const OPEN: [&str; 2] = ["state_leases", "flow_claims"];

/// What may hold credentials: queries do not read what an archive without secrets does not hold.
#[must_use]
pub fn sealed(tier: &Tier) -> Vec<Sealed> {
    let steps = steps(decisions(tier)).into_iter();
    steps
        .filter(|step| !OPEN.contains(&step.erase.table))
        .map(|step| Sealed {
            table: step.erase.table,
            column: match step.erase.what {
                Erased::Row => None,
                Erased::Column(column) => Some(column),
            },
        })
        .collect()
}

/// Makes a captured copy fit to travel: nothing of deleted rows in it, and no credentials unless they are wanted.
///
/// Gives what was taken out, by column.
///
/// # Errors
///
/// [`BackupError`] when SQLite fails, or a look at the finished file still finds what should be gone.
pub(super) async fn clean(
    copy: &Path,
    tier: &Tier,
    archive_path: &str,
    with_secrets: bool,
) -> Result<Vec<LeftOut>, BackupError> {
    let steps = match with_secrets {
        true => Vec::new(),
        false => steps(decisions(tier)),
    };
    let erasures: Vec<Erase> = steps.iter().map(|step| step.erase).collect();
    let mut db = DbCopy::open(copy, tier).await?;
    let remembers = db.forget_deleted().await?;
    let changed = db.erase(&erasures).await?;
    if remembers || changed.iter().any(|count| *count > 0) {
        db = db.rewrite(tier).await?;
    }
    // Asked of the file as it will travel, not of what the erasure claims.
    let remains = db.remains(&erasures).await?;
    db.close().await?;
    if let Some(at) = remains.iter().position(|count| *count > 0) {
        return Err(BackupError::Unscrubbed {
            tier: tier.to_string(),
            table: steps[at].erase.table,
            rows: remains[at],
        });
    }
    let told = steps.iter().zip(changed).filter(|(_, count)| *count > 0);
    Ok(told
        .map(|(step, count)| left_out(archive_path, step, count))
        .collect())
}

/// What [`clean`] would take out of a tier without secrets, before anybody has looked whether it is there.
pub(super) fn planned(tier: &Tier, archive_path: &str) -> Vec<LeftOut> {
    let steps = steps(decisions(tier)).into_iter();
    steps
        .map(|step| LeftOut {
            path: place(archive_path, &step),
            reason: step.what.to_owned(),
            is_secret: true,
        })
        .collect()
}

fn left_out(archive_path: &str, step: &Step, count: u64) -> LeftOut {
    let rows = if count == 1 { "row" } else { "rows" };
    LeftOut {
        path: place(archive_path, step),
        reason: format!("{} ({count} {rows})", step.what),
        is_secret: true,
    }
}

fn place(archive_path: &str, step: &Step) -> String {
    let place = match step.erase.what {
        Erased::Row => step.erase.table.to_owned(),
        Erased::Column(column) => format!("{}.{column}", step.erase.table),
    };
    format!("{archive_path}: {place}")
}

#[cfg(test)]
mod tests;
