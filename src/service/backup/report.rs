//! What is asked of a backup, and what is told of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use super::keys::{KeySource, SealSource};
use crate::backup::{
    BackupDone, Encryption, LeftOut, Manifest, MemberKind, PlanStep, Proof, Role, Scope,
};
use crate::model::AgentId;

/// How an archive is to be made.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// File or existing folder for the archive; `None` for the folder `backups` of the root.
    pub output: Option<PathBuf>,
    /// The configuration, keys, databases of other programs, and credentials in our own tables too.
    pub with_secrets: bool,
    /// The agents' own files too.
    pub include_workspace: bool,
    /// Read the archive back before it gets its name.
    pub verify: bool,
    /// What the archive is encrypted to; `None` for a plain one.
    pub seal: Option<SealSource>,
    /// Only say what would be done.
    pub dry_run: bool,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            output: None,
            with_secrets: true,
            include_workspace: false,
            verify: true,
            seal: None,
            dry_run: false,
        }
    }
}

/// An archive that was made, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct CreateReport {
    /// The archive.
    pub archive: PathBuf,
    /// Its size; 0 for a dry run.
    pub bytes: u64,
    /// Identity of the backup.
    pub id: String,
    /// What is in it. A dry run has sizes, but no digests or rows.
    pub members: Vec<MemberReport>,
    /// What lies in the root and is not in it.
    pub left_out: Vec<LeftOut>,
    /// Whether secrets are inside.
    pub has_secrets: bool,
    /// How it is encrypted, or would be; `None` when it is not.
    pub encryption: Option<Encryption>,
    /// Whether it was proved, as far as [`proof`](Self::proof) goes.
    pub verified: bool,
    /// What was proved; `None` when nothing was.
    pub proof: Option<Proof>,
    /// How long it took.
    pub duration_ms: u64,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// One file of an archive.
#[derive(Clone, Debug, Serialize)]
pub struct MemberReport {
    /// What it is.
    pub kind: MemberKind,
    /// Whose database it is; only for databases.
    pub role: Option<Role>,
    /// The agent, for an agent's database.
    pub agent_id: Option<AgentId>,
    /// Path in the archive and in the root.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// SHA-256, lower-case hex; empty in a dry run.
    pub sha256: String,
    /// Rows of each table; only for databases.
    pub rows: Option<BTreeMap<String, i64>>,
    /// `ok`, or what SQLite found wrong; only for databases.
    pub integrity: Option<String>,
}

/// A proved archive.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// The archive.
    pub archive: PathBuf,
    /// Identity of the backup.
    pub id: String,
    /// What it is of.
    pub scope: Scope,
    /// When it was made, Unix milliseconds.
    pub created_at_ms: i64,
    /// How it is encrypted; `None` when it is not.
    pub encryption: Option<Encryption>,
    /// What is in it.
    pub members: Vec<MemberReport>,
    /// What a person should know; nothing of it makes the archive bad.
    pub findings: Vec<String>,
    /// Always true: an archive that is not good is an error.
    pub ok: bool,
}

/// What is to be restored, and where.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// The archive.
    pub archive: PathBuf,
    /// What opens it, if it is encrypted.
    pub key: Option<KeySource>,
    /// The root to write; it need not exist.
    pub target: PathBuf,
    /// One agent alone; `None` for everything.
    pub agent: Option<AgentId>,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Consent to write.
    pub yes: bool,
}

/// A restore that was made, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreReport {
    /// The archive.
    pub archive: PathBuf,
    /// The root.
    pub target: PathBuf,
    /// What happens to each file.
    pub plan: Vec<PlanStep>,
    /// Whether it was done.
    pub written: bool,
    /// Where the old files are, if there were any.
    pub previous: Option<PathBuf>,
    /// What a person should know.
    pub notes: Vec<String>,
}

pub(in crate::service) fn create_report(
    done: BackupDone,
    encryption: Option<Encryption>,
    started: Instant,
    dry_run: bool,
) -> CreateReport {
    CreateReport {
        archive: done.archive,
        bytes: done.bytes,
        id: done.manifest.id.clone(),
        left_out: done.manifest.left_out.clone(),
        has_secrets: done.manifest.has_secrets,
        members: member_reports(done.manifest),
        encryption,
        verified: done.proof.is_some(),
        proof: done.proof,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        warnings: done.warnings,
        dry_run,
    }
}

pub(super) fn member_reports(manifest: Manifest) -> Vec<MemberReport> {
    let members = manifest.members.into_iter();
    members
        .map(|member| MemberReport {
            kind: member.kind,
            role: member.role,
            agent_id: member.agent_id,
            path: member.archive_path,
            bytes: member.bytes,
            sha256: member.sha256,
            rows: member.rows,
            integrity: member.integrity,
        })
        .collect()
}
