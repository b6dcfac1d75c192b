//! What is asked of a move, and what is told of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::backup::{AdoptJob, Jobs, PlanStep};
use crate::model::{AgentId, AgentRecord};
use crate::service::backup::{CreateReport, KeySource, SealSource};

/// Which agent to write where.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The agent.
    pub agent: AgentId,
    /// File or existing folder for the archive; `None` for the folder `backups` of the root.
    pub output: Option<PathBuf>,
    /// Its own files too.
    pub include_workspace: bool,
    /// What the archive is encrypted to; `None` for a plain one.
    pub seal: Option<SealSource>,
}

/// An archive of one agent.
#[derive(Clone, Debug, Serialize)]
pub struct ExportReport {
    /// The archive.
    #[serde(flatten)]
    pub archive: CreateReport,
    /// The agent's row, as it travels.
    pub agent: AgentRecord,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Which agent to take from where.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The archive, of one agent or of a root.
    pub archive: PathBuf,
    /// What opens it, if it is encrypted.
    pub key: Option<KeySource>,
    /// The root to write.
    pub target: PathBuf,
    /// The agent in the archive; `None` when it holds one alone.
    pub agent: Option<AgentId>,
    /// Its name in the root; `None` to keep its own.
    pub name: Option<AgentId>,
    /// Everything of an agent that was deleted, its scheduled jobs so; `None` for database and workspace alone.
    pub whole: Option<Jobs>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Consent to write.
    pub yes: bool,
}

/// An import that was made, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct ImportReport {
    /// The archive.
    pub archive: PathBuf,
    /// The root.
    pub target: PathBuf,
    /// The agent's name in the archive.
    pub source_agent_id: AgentId,
    /// Its name in the root.
    pub agent_id: AgentId,
    /// Its row in the registry; `None` in a dry run.
    pub agent: Option<AgentRecord>,
    /// Whether the configuration names it and enables it; `None` when it does not name it, and in a dry run.
    pub enabled_in_config: Option<bool>,
    /// What is written; empty when an import that was cut off was finished instead.
    pub plan: Vec<PlanStep>,
    /// Rows of the control plane that are its now, by table; only where they come along, and not in a dry run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rows: BTreeMap<String, i64>,
    /// Whether it was done.
    pub written: bool,
    /// What a person should know.
    pub notes: Vec<String>,
}

impl ImportReport {
    /// One of which nothing is done yet.
    pub(super) fn of(job: &AdoptJob, target: PathBuf) -> Self {
        Self {
            archive: job.archive.clone(),
            target,
            source_agent_id: job.agent.clone(),
            agent_id: job.name.clone(),
            agent: None,
            enabled_in_config: None,
            plan: Vec::new(),
            rows: BTreeMap::new(),
            written: false,
            notes: Vec::new(),
        }
    }
}
