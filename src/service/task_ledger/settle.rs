//! How a task's end is published: intent, output, end; and how a crash between them is recovered.
//!
//! The output is in the agent's database and the task in the control plane, and no transaction spans both. So first the
//! control plane is told how the task is to end and what digest the output has. Then the output is stored. Then one
//! transaction compares owner and intent, ends the task and deletes the intent. What a crash leaves is recovered so:
//!
//! | what is found | what becomes of it |
//! |---|---|
//! | the task is gone or has ended | the intent is dropped |
//! | the task is another owner's | the intent is dropped |
//! | the owner lives, or nobody can tell | nothing |
//! | the output is there with that digest | the task ends as was decided |
//! | it is missing, or holds other bytes | the task has failed |
//! | a status of another release | nothing; a person decides |
//!
//! Only afterwards is what still runs under a dead owner lost.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::handle::lost;
use super::{TaskLedger, one};
use crate::db::{Db, WriteTx};
use crate::fs::{fault, process};
use crate::model::{
    ArtifactInfo, CancelState, ErrorKind, ProcessIdentity, RunArtifact, TaskClaim, TaskEnd,
    TaskRun, TaskSettlement, TaskStatus,
};
use crate::service::ServiceError;
use crate::service::error::InDb;
use crate::store::StoreError;
use crate::store::agent::artifact;
use crate::store::global::settlement;
use crate::store::global::task::life;

/// Start of the output's name among the outputs of its task; its digest follows, so that no other takes its place.
const OUTPUT: &str = "output";
/// Kind of it.
const KIND: &str = "task-output";
/// Tries of a step while others keep a database busy.
const TRIES: u32 = 5;
/// Pause between them.
const PAUSE: Duration = Duration::from_millis(100);

/// What became of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovered {
    /// The task has ended so.
    Applied(TaskStatus),
    /// It meant nothing any more.
    Dropped,
    /// Nothing can be said yet.
    Left,
}

/// Tries a step again while others keep a database busy: each is harmless to repeat.
async fn retried<T, F>(mut step: impl FnMut() -> F) -> Result<T, ServiceError>
where
    F: Future<Output = Result<T, ServiceError>>,
{
    for _ in 1..TRIES {
        match step().await {
            Err(error) if error.kind() == ErrorKind::Busy => tokio::time::sleep(PAUSE).await,
            done => return done,
        }
    }
    step().await
}

fn reference(task_id: &str) -> String {
    format!("artifact:{task_id}")
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;

    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Ends a task in one step: nothing is published beside it.
pub(super) async fn end(
    ledger: &TaskLedger,
    claim: &TaskClaim,
    end: &TaskEnd,
) -> Result<(), ServiceError> {
    retried(|| end_once(ledger, claim, end)).await
}

async fn end_once(
    ledger: &TaskLedger,
    claim: &TaskClaim,
    end: &TaskEnd,
) -> Result<(), ServiceError> {
    let (held, end, now_ms) = (claim.clone(), end.clone(), ledger.clock.now_ms());
    let done = ledger
        .db
        .write(move |tx| Box::pin(async move { life::settle(tx, &held, &end, now_ms).await }));
    let done: Result<bool, StoreError> = done.await;
    if done? { Ok(()) } else { Err(lost(claim)) }
}

/// Ends a task whose output is kept by its agent.
pub(super) async fn publish(
    ledger: &TaskLedger,
    agent_db: &Arc<Db>,
    claim: &TaskClaim,
    end: &TaskEnd,
) -> Result<(), ServiceError> {
    let bytes = end.output.clone().unwrap_or_default().into_bytes();
    let intent = intent(claim, end, &bytes, ledger.clock.now_ms());
    fault("settle.begin");
    retried(|| decide(ledger, claim, &intent)).await?;
    fault("settle.intent");
    let output = output(&intent, bytes, ledger.clock.now_ms());
    retried(|| store(agent_db, &output)).await?;
    fault("settle.output");
    retried(|| promote(ledger, claim, &intent)).await?;
    fault("settle.end");
    Ok(())
}

fn intent(claim: &TaskClaim, end: &TaskEnd, bytes: &[u8], now_ms: i64) -> TaskSettlement {
    let is_good = end.status == TaskStatus::Succeeded;
    let digest = sha256(bytes);
    TaskSettlement {
        task_id: claim.task_id.clone(),
        owner_pid: claim.owner.pid_column(),
        owner_start_identity: claim.owner.start_column(),
        owner_boot_id: claim.owner.boot_id.clone().unwrap_or_default(),
        desired_status: end.status.as_str().to_owned(),
        artifact_path: format!("{OUTPUT}/{}", &digest[..12]),
        artifact_ref: is_good.then(|| reference(&claim.task_id)),
        artifact_sha256: digest,
        terminal_error: end.error.clone(),
        created_at_ms: Some(now_ms),
        detail_json: None,
    }
}

/// Writes down how the task is to end; the same again is no news.
async fn decide(
    ledger: &TaskLedger,
    claim: &TaskClaim,
    intent: &TaskSettlement,
) -> Result<(), ServiceError> {
    let (claim, intent) = (claim.clone(), intent.clone());
    let done = ledger.db.write(move |tx| {
        Box::pin(async move {
            let task = one(tx, &claim.task_id).await?;
            let is_held = |task: TaskRun| {
                task.status == TaskStatus::Running
                    && task.origin.fencing_token == claim.fencing_token
                    && is_owner(&task, &intent)
            };
            if !task.is_some_and(is_held) {
                return Err(lost(&claim));
            }
            if settlement::insert_new(tx, &intent).await? {
                return Ok(());
            }
            let found = settlement::get_many(tx, &[&claim.task_id]).await?.pop();
            let is_same = found.as_ref().is_some_and(|found| {
                (&found.desired_status, &found.artifact_sha256)
                    == (&intent.desired_status, &intent.artifact_sha256)
                    && found.owner_pid == intent.owner_pid
                    && found.owner_start_identity == intent.owner_start_identity
            });
            if is_same { Ok(()) } else { Err(lost(&claim)) }
        })
    });
    done.await
}

fn output(intent: &TaskSettlement, blob: Vec<u8>, now_ms: i64) -> RunArtifact {
    RunArtifact {
        about: ArtifactInfo {
            run_id: intent.task_id.clone(),
            path: intent.artifact_path.clone(),
            kind: KIND.to_owned(),
            metadata_json: serde_json::json!({ "status": intent.desired_status }).to_string(),
            sha256: intent.artifact_sha256.clone(),
            size_bytes: i64::try_from(blob.len()).unwrap_or(i64::MAX),
            created_at_ms: now_ms,
        },
        blob,
    }
}

async fn store(agent_db: &Arc<Db>, output: &RunArtifact) -> Result<(), ServiceError> {
    let output = output.clone();
    let done = agent_db.write(move |tx| {
        Box::pin(async move { artifact::insert_new(tx, &output).await.map(|_| ()) })
    });
    let done: Result<(), StoreError> = done.await;
    done.in_db(agent_db)
}

/// Compares owner and intent, ends the task and deletes the intent: all or nothing.
async fn promote(
    ledger: &TaskLedger,
    claim: &TaskClaim,
    intent: &TaskSettlement,
) -> Result<(), ServiceError> {
    let (claim, intent, now_ms) = (claim.clone(), intent.clone(), ledger.clock.now_ms());
    let done = ledger.db.write(move |tx| {
        Box::pin(async move {
            let end = decided(&intent).unwrap_or_else(|| TaskEnd::succeeded(None));
            let is_decided = settlement::delete(tx, &intent).await?;
            if is_decided && life::settle(tx, &claim, &end, now_ms).await? {
                return Ok(());
            }
            Err(lost(&claim))
        })
    });
    done.await
}

/// The end that an intent wants; `None` for a word of another release.
fn decided(intent: &TaskSettlement) -> Option<TaskEnd> {
    let status = TaskStatus::parse(&intent.desired_status).filter(|status| status.is_end())?;
    let is_good = status == TaskStatus::Succeeded;
    Some(TaskEnd {
        status,
        status_detail: None,
        output: intent.artifact_ref.clone().filter(|_| is_good),
        error: intent.terminal_error.clone(),
    })
}

/// Whether an intent is of the process that the task is with.
fn is_owner(task: &TaskRun, intent: &TaskSettlement) -> bool {
    let origin = &task.origin;
    let boot = origin
        .execution_owner_boot_id
        .as_deref()
        .unwrap_or_default();
    origin.execution_owner_pid == Some(intent.owner_pid)
        && origin.execution_owner_start_identity == intent.owner_start_identity
        && boot == intent.owner_boot_id
}

fn owner_of(intent: &TaskSettlement) -> Option<ProcessIdentity> {
    let start = intent.owner_start_identity.as_deref();
    ProcessIdentity::from_columns(intent.owner_pid, start, Some(&intent.owner_boot_id))
}

/// Whether the process that decided is proven gone.
pub(super) fn is_abandoned(intent: &TaskSettlement) -> bool {
    owner_of(intent).is_some_and(|owner| process::liveness(&owner).is_gone())
}

/// Settles an intent by the table above. Its owner is known to be gone.
///
/// * `agent_db`: where the output would be; `None` when the agent is gone, and its outputs with it.
pub(super) async fn recover(
    ledger: &TaskLedger,
    agent_db: Option<&Arc<Db>>,
    intent: &TaskSettlement,
) -> Result<Recovered, ServiceError> {
    let Some(mut end) = decided(intent) else {
        return Ok(Recovered::Left);
    };
    if let Err(reason) = prove(agent_db, intent).await? {
        end = TaskEnd::of(
            TaskStatus::Failed,
            format!("its output was not proven: {reason}"),
        );
    }
    fault("recover.proven");
    let (seen, now_ms) = (intent.clone(), ledger.clock.now_ms());
    let done = ledger
        .db
        .write(move |tx| Box::pin(async move { apply(tx, &seen, &end, now_ms).await }));
    let done: Result<Recovered, StoreError> = done.await;
    fault("recover.applied");
    Ok(done?)
}

async fn apply(
    tx: &mut WriteTx<'_>,
    intent: &TaskSettlement,
    end: &TaskEnd,
    now_ms: i64,
) -> Result<Recovered, StoreError> {
    if !settlement::delete(tx, intent).await? {
        // Somebody else was here.
        return Ok(Recovered::Dropped);
    }
    let task = one(tx, &intent.task_id).await?;
    let Some(task) = task.filter(|task| !task.status.is_end() && is_owner(task, intent)) else {
        return Ok(Recovered::Dropped);
    };
    let is_ended = life::end_as_seen(tx, &task, end, now_ms).await?;
    Ok(if is_ended {
        Recovered::Applied(end.status)
    } else {
        Recovered::Dropped
    })
}

/// Whether the output is there as it was decided, or what is wrong with it.
async fn prove(
    agent_db: Option<&Arc<Db>>,
    intent: &TaskSettlement,
) -> Result<Result<(), String>, ServiceError> {
    let expected = reference(&intent.task_id);
    if intent.desired_status == TaskStatus::Succeeded.as_str()
        && intent.artifact_ref.as_ref() != Some(&expected)
    {
        return Ok(Err("it is not referred to".to_owned()));
    }
    let Some(db) = agent_db else {
        return Ok(Err("its agent is gone".to_owned()));
    };
    let mut conn = db.read().await?;
    let found = artifact::get(&mut conn, &intent.task_id, &intent.artifact_path)
        .await
        .in_db(db)?;
    Ok(match found {
        None => Err("it is missing".to_owned()),
        Some(found) if sha256(&found.blob) != intent.artifact_sha256 => {
            Err("it holds other bytes than were decided on".to_owned())
        }
        Some(_) => Ok(()),
    })
}

/// Settles exactly one task whose worker of this process has ended without an end.
pub(super) async fn recover_own(
    ledger: &TaskLedger,
    agent_db: Option<&Arc<Db>>,
    claim: &TaskClaim,
) -> Result<(), ServiceError> {
    let mut conn = ledger.db.read().await?;
    let found = settlement::get_many(&mut conn, &[&claim.task_id]).await;
    let intent = found.in_db(&ledger.db)?.pop();
    drop(conn);
    let task = ledger.row(&claim.task_id).await?;
    if task.status != TaskStatus::Running || task.origin.fencing_token != claim.fencing_token {
        return Ok(());
    }
    if let Some(intent) = intent.filter(|intent| is_owner(&task, intent))
        && recover(ledger, agent_db, &intent).await? != Recovered::Left
    {
        return Ok(());
    }
    let ended = if task.origin.cancel_state == CancelState::None {
        TaskEnd::of(TaskStatus::Failed, "its worker stopped without an end")
    } else {
        TaskEnd::of(TaskStatus::Cancelled, "its worker stopped when asked to")
    };
    end(ledger, claim, &ended).await
}
