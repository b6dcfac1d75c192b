//! A task that is being worked on.

use std::sync::Arc;

use super::TaskLedger;
use super::settle;
use crate::db::Db;
use crate::model::{CancelState, TaskClaim, TaskEnd, TaskProgress, TaskRun, TaskStatus};
use crate::service::ServiceError;
use crate::service::append::invalid;
use crate::store::global::task::life;

/// Most things that are kept of what a worker said; the oldest go.
const MAX_PROGRESS: usize = 64;
/// Longest of them, bytes; a longer one is cut.
const MAX_PROGRESS_BYTES: usize = 1_024;
/// Longest output in a row of the ledger, where the task has no agent to keep it, bytes.
const MAX_INLINE_BYTES: usize = 256 * 1_024;

/// A task that the caller holds.
///
/// Ended by [`settle`](Self::settle), or let go. One that is dropped instead, as by a panic or an aborted future, is settled
/// by what can be proven: an end that was decided and whose output is there counts, and all else is a failure. Exactly this
/// task is touched by that.
#[derive(Debug)]
pub struct TaskHandle {
    ledger: TaskLedger,
    agent_db: Option<Arc<Db>>,
    claim: TaskClaim,
    is_held: bool,
}

impl TaskHandle {
    pub(super) fn new(ledger: TaskLedger, agent_db: Option<Arc<Db>>, claim: TaskClaim) -> Self {
        Self {
            ledger,
            agent_db,
            claim,
            is_held: true,
        }
    }

    pub(super) fn ledger(&self) -> &TaskLedger {
        &self.ledger
    }

    /// Notes whether a use case beside this one has let go of it.
    pub(super) fn mark_let_go(&mut self, is_let_go: bool) {
        self.is_held = !is_let_go;
    }

    /// The claim, for writes of other use cases.
    #[must_use]
    pub fn claim(&self) -> &TaskClaim {
        &self.claim
    }

    /// Its row as it is now.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails or it is gone.
    pub async fn task(&self) -> Result<TaskRun, ServiceError> {
        self.ledger.row(&self.claim.task_id).await
    }

    /// Says that the worker lives; gives whether it is to stop, and notes that it knows.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the claim was lost: somebody else has said how the task ended.
    pub async fn beat(&self) -> Result<bool, ServiceError> {
        let (claim, at) = (self.claim.clone(), self.ledger.now());
        let done = self.ledger.db.write(move |tx| {
            Box::pin(async move {
                let Some(state) = life::beat(tx, &claim, at).await? else {
                    return Err(lost(&claim));
                };
                if state == CancelState::Requested {
                    life::acknowledge_cancel(tx, &claim).await?;
                }
                Ok(state != CancelState::None)
            })
        });
        done.await
    }

    /// Says how it goes. The last 64 are kept, of each the first 1,024 bytes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the claim was lost.
    pub async fn progress(&self, text: &str) -> Result<(), ServiceError> {
        let said = TaskProgress {
            at_ms: self.ledger.clock.now_ms(),
            text: text[..text.floor_char_boundary(MAX_PROGRESS_BYTES)].to_owned(),
        };
        let claim = self.claim.clone();
        let done = self.ledger.db.write(move |tx| {
            Box::pin(async move {
                let row = super::one(tx, &claim.task_id).await?;
                let mut all = row.map(|row| row.origin.progress).unwrap_or_default();
                all.push(said);
                let over = all.len().saturating_sub(MAX_PROGRESS);
                all.drain(..over);
                if life::set_progress(tx, &claim, &all).await? {
                    return Ok(());
                }
                Err(lost(&claim))
            })
        });
        done.await
    }

    /// Ends the task. Called again after a failure it goes on where it stopped.
    ///
    /// Where the task has an agent, its output is kept in the agent's database and the row refers to it: first it is
    /// written down how the task is to end, then the output, then the end, and a crash between them is recovered by what
    /// is there.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the claim was lost, [`ServiceError::Invalid`] for no end of a worker's.
    pub async fn settle(&mut self, end: TaskEnd) -> Result<(), ServiceError> {
        if !matches!(
            end.status,
            TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Cancelled
        ) {
            let word = end.status;
            return Err(invalid(
                "status",
                format!("{word} is no end a worker gives"),
            ));
        }
        match (&self.agent_db, &end.output) {
            (Some(agent_db), Some(_)) => {
                settle::publish(&self.ledger, agent_db, &self.claim, &end).await?;
            }
            (_, output) => {
                let bytes = output.as_ref().map_or(0, String::len);
                if bytes > MAX_INLINE_BYTES {
                    let most = format!(
                        "is {bytes} bytes, and without an agent {MAX_INLINE_BYTES} are kept"
                    );
                    return Err(invalid("output", most));
                }
                settle::end(&self.ledger, &self.claim, &end).await?;
            }
        }
        self.is_held = false;
        Ok(())
    }

    /// Lets go of it, for anybody to claim.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the claim was lost.
    pub async fn give_back(self) -> Result<(), ServiceError> {
        self.let_go(TaskStatus::Pending).await
    }

    /// Lets go of it until somebody resumes it.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the claim was lost.
    pub async fn pause(self) -> Result<(), ServiceError> {
        self.let_go(TaskStatus::Waiting).await
    }

    async fn let_go(mut self, status: TaskStatus) -> Result<(), ServiceError> {
        let claim = self.claim.clone();
        let done = self.ledger.db.write(move |tx| {
            Box::pin(async move {
                if life::let_go(tx, &claim, status).await? {
                    return Ok(());
                }
                Err(lost(&claim))
            })
        });
        let done: Result<(), ServiceError> = done.await;
        self.is_held = done.is_err();
        done
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        // Without a runtime the process is ending: it is proven gone then, and the next sweep does the same.
        let Some(runtime) = tokio::runtime::Handle::try_current()
            .ok()
            .filter(|_| self.is_held)
        else {
            return;
        };
        let (ledger, agent_db) = (self.ledger.clone(), self.agent_db.clone());
        let claim = self.claim.clone();
        runtime.spawn(async move {
            let recovered = settle::recover_own(&ledger, agent_db.as_ref(), &claim);
            if let Err(error) = recovered.await {
                tracing::warn!(%error, task = claim.task_id, "a dropped task stays until its process ends");
            }
        });
    }
}

/// The refusal of a write whose claim is held no more.
pub(super) fn lost(claim: &TaskClaim) -> ServiceError {
    ServiceError::Conflict {
        what: "task",
        name: claim.task_id.clone(),
        expected: format!("under claim {}", claim.fencing_token),
        found: "ended, or claimed by another".to_owned(),
    }
}
