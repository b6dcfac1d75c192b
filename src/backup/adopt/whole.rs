//! What the control plane had of an agent that comes back.

use super::AdoptJob;
use crate::backup::journal::staged;
use crate::backup::manifest::Manifest;
use crate::backup::restore::synced;
use crate::backup::{BackupError, life, names};
use crate::db::{Access, Db, TaskMention};
use crate::model::Tier;

/// What becomes of scheduled jobs that come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// They are off until somebody switches them on.
    Off,
    /// They are on where they were.
    AsTheyWere,
}

/// Why a job that came back is off.
const JOB_OFF: &str = "restored with its agent";

/// The tasks of others that name the agent, by the name it gets.
pub(super) fn mentions(job: &AdoptJob, manifest: &Manifest) -> Vec<TaskMention> {
    let mentions = manifest.mentions.iter().cloned();
    let (old, new) = (format!("\"{}\"", job.agent), format!("\"{}\"", job.name));
    mentions
        .map(|mention| TaskMention {
            // Names have no character that JSON writes in another way.
            caller_chain_json: mention
                .caller_chain_json
                .map(|chain| chain.replace(&old, &new)),
            ..mention
        })
        .collect()
}

/// Renames and migrates the rows of the control plane, and switches its jobs off where that is wanted.
pub(super) async fn settle_rows(job: &AdoptJob, jobs: Jobs) -> Result<(), BackupError> {
    let path = staged(&job.layout, &job.id, names::GLOBAL_DB);
    let access = life::access(&job.layout, job.now_ms);
    let rows = Db::open(&path, &Tier::Global, Access::Write(access)).await?;
    let settled = async {
        if job.name != job.agent {
            rows.rename_agent(&job.agent, &job.name, job.database())
                .await?;
        }
        match jobs {
            Jobs::Off => rows.disable_jobs(JOB_OFF).await,
            Jobs::AsTheyWere => Ok(()),
        }
    };
    let settled = settled.await;
    rows.close().await;
    settled?;
    synced(&path)
}
