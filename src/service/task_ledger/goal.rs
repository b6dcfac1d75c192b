//! Goals: tasks with an objective, limits, reasons to wait, and a place to go on.
//!
//! The row of the task says how a goal stands; what is beside it changes in the same transaction. What is left of its limits
//! is derived from the cost ledger each time, so that it cannot disagree with it.

use serde::{Deserialize, Serialize};

use super::handle::{TaskHandle, lost};
use super::{TaskLedger, create, not_found};
use crate::model::{CostSums, GoalTask, NewTask, TaskContinuation, TaskRun, TaskStatus, UsageCost};
use crate::service::append::invalid;
use crate::service::error::InDb;
use crate::service::{Service, ServiceError};
use crate::store::global::task::life;
use crate::store::global::{continuation, cost, goal};

/// The producer's word for a task that pursues a goal.
const GOAL: &str = "goal";

/// What a goal is to reach, and within which limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewGoal {
    /// What it is to reach.
    pub objective: String,
    /// Tokens it may use.
    pub token_limit: Option<i64>,
    /// US dollars it may cost.
    pub cost_limit_usd: Option<f64>,
    /// JSON text of where and to whom it goes on.
    pub context_json: Option<String>,
}

/// Why a goal waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalPause {
    /// In a word, `needs_user_input` for one.
    pub reason: String,
    /// For people.
    pub description: Option<String>,
    /// JSON array of what stands in the way: kind, message, payload.
    pub blockers_json: String,
}

/// What a goal has used, and what is left of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalBudget {
    /// All calls that served it.
    pub used: CostSums,
    /// Tokens that are left, 0 for none; `None` without a limit.
    pub tokens_left: Option<i64>,
    /// US dollars that are left, 0 for none; `None` without a limit.
    pub usd_left: Option<f64>,
}

impl GoalBudget {
    /// Whether a limit is reached.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.tokens_left == Some(0) || self.usd_left.is_some_and(|left| left <= 0.0)
    }
}

fn check(goal: &NewGoal) -> Result<(), ServiceError> {
    if goal.objective.trim().is_empty() {
        return Err(invalid("objective", "is empty"));
    }
    if goal.token_limit.is_some_and(|limit| limit < 0) {
        return Err(invalid("token limit", "is negative"));
    }
    let is_limit = |limit: f64| limit.is_finite() && limit >= 0.0;
    if !goal.cost_limit_usd.is_none_or(is_limit) {
        return Err(invalid("cost limit", "is no amount"));
    }
    check_json("context", goal.context_json.as_deref())
}

fn check_json(what: &'static str, json: Option<&str>) -> Result<(), ServiceError> {
    let is_json = |json: &str| serde_json::from_str::<serde_json::Value>(json).is_ok();
    match json {
        Some(json) if !is_json(json) => Err(invalid(what, "is no JSON")),
        _ => Ok(()),
    }
}

impl TaskLedger {
    /// Creates a task that pursues a goal.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), and [`ServiceError::Conflict`] where the
    /// same agent pursues another goal for the same asker.
    pub async fn create_goal(&self, new: NewTask, goal: NewGoal) -> Result<TaskRun, ServiceError> {
        check(&goal)?;
        let now_ms = self.clock.now_ms();
        let new = NewTask {
            task_kind: Some(GOAL.to_owned()),
            ..new
        };
        let done = self.db.write(move |tx| {
            Box::pin(async move {
                let task = create(tx, new, now_ms).await?;
                if let Some(other) = goal::active_beside(tx, &task).await? {
                    return Err(ServiceError::Conflict {
                        what: "goal",
                        name: goal.objective,
                        expected: "the only one of its agent and asker".to_owned(),
                        found: format!("beside {other}, which has not ended"),
                    });
                }
                let row = GoalTask {
                    task_id: task.task_id.clone(),
                    objective: goal.objective,
                    effective_token_limit: goal.token_limit,
                    effective_cost_limit_usd: goal.cost_limit_usd,
                    pause_reason: None,
                    pause_description: None,
                    blockers_json: "[]".to_owned(),
                    detail_json: None,
                };
                goal::insert_new(tx, &row).await?;
                if let Some(context_json) = goal.context_json {
                    let row = TaskContinuation {
                        task_id: task.task_id.clone(),
                        context_json,
                        detail_json: None,
                    };
                    continuation::insert_new(tx, &row).await?;
                }
                Ok(task)
            })
        });
        done.await
    }

    /// Lets a goal that waits go on: nothing stands in its way any more. Gives where it goes on, for whoever resumes it;
    /// `None` when it did not wait, or has no such place.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn resume_goal(&self, task_id: &str) -> Result<Option<String>, ServiceError> {
        let id = self.get(task_id).await?.task_id;
        let done = self.db.write(move |tx| {
            Box::pin(async move {
                if !life::resume(tx, &id).await? {
                    return Ok(None);
                }
                goal::set_pause(tx, &id, None, None, "[]").await?;
                let place = continuation::get_many(tx, &[&id]).await?.pop();
                continuation::delete(tx, &id).await?;
                Ok(place.map(|place| place.context_json))
            })
        });
        done.await
    }

    /// What a goal has used by the cost ledger, and what is left.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`ServiceError::NotFound`] for a task that pursues none.
    pub async fn goal_budget(&self, task_id: &str) -> Result<GoalBudget, ServiceError> {
        let id = self.get(task_id).await?.task_id;
        let mut conn = self.db.read().await?;
        let found = goal::get_many(&mut conn, &[&id]).await.in_db(&self.db)?;
        let goal = found.into_iter().next().ok_or_else(|| not_found(&id))?;
        let used = cost::of_goal(&mut conn, &id).await.in_db(&self.db)?;
        let tokens = |limit: i64| limit.saturating_sub(used.total_tokens).max(0);
        Ok(GoalBudget {
            tokens_left: goal.effective_token_limit.map(tokens),
            usd_left: goal
                .effective_cost_limit_usd
                .map(|limit| (limit - used.cost_usd).max(0.0)),
            used,
        })
    }
}

impl TaskHandle {
    /// Lets go of a goal until somebody resumes it, and says why it waits.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the claim was lost, [`ServiceError::Invalid`] when blockers are no JSON.
    pub async fn pause_goal(mut self, pause: GoalPause) -> Result<(), ServiceError> {
        check_json("blockers", Some(&pause.blockers_json))?;
        let claim = self.claim().clone();
        let done = self.ledger().db.write(move |tx| {
            Box::pin(async move {
                if !life::let_go(tx, &claim, TaskStatus::Waiting).await? {
                    return Err(lost(&claim));
                }
                let (reason, description) = (Some(&*pause.reason), pause.description.as_deref());
                let blockers = &pause.blockers_json;
                goal::set_pause(tx, &claim.task_id, reason, description, blockers).await?;
                Ok(())
            })
        });
        let done: Result<(), ServiceError> = done.await;
        self.mark_let_go(done.is_ok());
        done
    }
}

impl Service {
    /// Records what a call of a model cost, at the price it had; the same id again is no news. Says whether it is new.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for negative numbers, [`ServiceError`] when SQLite fails.
    pub async fn record_cost(&self, cost: UsageCost) -> Result<bool, ServiceError> {
        let counts = [cost.input_tokens, cost.output_tokens, cost.total_tokens];
        let is_price = cost.cost_usd.is_finite() && cost.cost_usd >= 0.0;
        if counts.iter().any(|count| *count < 0) || !is_price {
            return Err(invalid("cost", "is negative or no number"));
        }
        let done = self.global().write(move |tx| {
            Box::pin(async move { Ok(cost::insert_new(tx, &[cost]).await? == 1) })
        });
        done.await
    }
}
