//! One row of `tasks`, with what other tables say of it.

use serde_json::{Map, Value};
use zeroclaw::model::{
    AgentId, CancelState, RunArtifact, TaskDelivery, TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus,
};

use super::super::super::sqlite::Values;
use super::super::result_file::{self, Kept};
use super::extra::Folded;
use super::goal::{detail, raw};
use super::intents::{Intent, Proven, Settled};
use super::{Notes, all_columns};
use crate::doctor::owner::Owners;
use crate::doctor::rows::background::{BackgroundTask, SaidBy};
use crate::doctor::units::LegacyTime;

const TASK: [&str; 20] = [
    "id",
    "kind",
    "agent",
    "status",
    "owner_pid",
    "owner_boot_id",
    "heartbeat_at",
    "depth",
    "parent_id",
    "originator_route",
    "delivered",
    "idem_key",
    "principal_id",
    "started_at",
    "finished_at",
    "output",
    "error",
    // Of builds after version 8; the second is how such columns are named elsewhere.
    "originator_chain",
    "originator_chain_json",
    "cancellation_state",
];
/// Place of the output among the columns.
pub(super) const OUTPUT: usize = 15;

/// All columns to read: the known ones first.
pub(super) fn columns(present: &[String]) -> Vec<&str> {
    all_columns(&TASK, present)
}

/// Columns that nobody here knows.
pub(super) fn unknown(present: &[String]) -> Vec<&str> {
    let names = present.iter().map(String::as_str);
    names.filter(|name| !TASK.contains(name)).collect()
}

/// What other tables say of a task.
pub(super) struct Beside<'a> {
    pub(super) owners: &'a Owners,
    pub(super) extra: Folded,
    pub(super) intent: Option<Intent>,
}

/// A task that was read.
pub(super) struct Given {
    pub(super) task: BackgroundTask,
    /// What became of its decided end, if it had one.
    pub(super) settled: Option<Settled>,
    /// Its output, where no other source brings it, and who keeps it.
    pub(super) artifact: Option<(AgentId, RunArtifact)>,
    /// Rows of unknown tables that it holds now.
    pub(super) folded: u64,
    pub(super) notes: Notes,
}

/// What a word says of how a task stands; `None` for an unknown one.
///
/// What ran or was about to run is lost: its program is gone, and nothing starts by being imported.
/// What waited for a person or for something else still waits.
fn standing(word: &str) -> Option<TaskStatus> {
    Some(match word {
        "completed" | "succeeded" => TaskStatus::Succeeded,
        "failed" => TaskStatus::Failed,
        "cancelled" | "canceled" => TaskStatus::Cancelled,
        "timed_out" => TaskStatus::TimedOut,
        "lost" | "running" | "queued" | "pending" | "validating" | "retrying" => TaskStatus::Lost,
        "paused" | "waiting" | "needs_review" => TaskStatus::Waiting,
        _ => return None,
    })
}

/// Whether a word is an end; `lost` is one, what became lost by the import is none.
pub(super) fn is_end(word: &str) -> bool {
    match standing(word) {
        Some(TaskStatus::Lost) => word == TaskStatus::Lost.as_str(),
        Some(TaskStatus::Waiting) | None => false,
        Some(_) => true,
    }
}

/// Reads a row by the names of its columns; `prove` looks for what proves a decided end.
pub(super) fn task(
    values: &Values,
    names: &[&str],
    beside: Beside<'_>,
    prove: impl FnOnce(&Intent) -> Result<Proven, String>,
) -> Result<Given, String> {
    let mut row = Row {
        values,
        details: Map::new(),
        notes: Notes::new(),
    };
    let task_id = values.hint(0).ok_or("its id is missing or not UTF-8")?;
    let word = values.hint(3).ok_or("its status is missing or not UTF-8")?;
    let mut task = row.plain(task_id, &word, beside.owners);
    let mut artifact = None;
    let settled = beside.intent.map(|intent| {
        let (settled, found) = row.settle(&mut task, &word, intent, prove);
        artifact = found;
        settled
    });
    if task.status == TaskStatus::Lost && !is_end(&word) {
        row.notes.push((
            "interrupted-task",
            format!("was {word} when its program ended; comes in as lost"),
        ));
    }
    row.details.extend(beside.extra.tables);
    task.detail_json = detail(row.details, values, names, TASK.len());
    let caller = task.origin.originator_route.as_deref();
    let owner = caller.and_then(|caller| beside.owners.named(caller).ok());
    let owner = owner.or_else(|| Some(beside.owners.fallback().ok()?.agent));
    Ok(Given {
        artifact: owner.zip(artifact),
        folded: beside.extra.count,
        notes: row.notes,
        settled,
        task: BackgroundTask {
            delivery: delivery(values, &task),
            task,
            said_by: SaidBy::Store,
        },
    })
}

fn delivery(values: &Values, task: &TaskRun) -> Option<TaskDelivery> {
    let is_delivered = values.integer(10).unwrap_or(0) != 0;
    let route = task.origin.originator_route.as_deref();
    (is_delivered || route.is_some()).then(|| TaskDelivery {
        task_id: task.task_id.clone(),
        requester_origin_json: route.map(|route| serde_json::json!({ "route": route }).to_string()),
        is_delivered,
        last_notified_event_at_ms: None,
    })
}

/// A row while it is read: what no column takes gathers beside it.
struct Row<'v> {
    values: &'v Values,
    details: Map<String, Value>,
    notes: Notes,
}

impl Row<'_> {
    fn keep(&mut self, column: usize, code: &'static str, message: String) {
        self.details
            .insert(TASK[column].to_owned(), raw(self.values, column));
        self.notes.push((code, message));
    }

    fn text(&mut self, column: usize) -> Option<String> {
        let text = self.values.text(column);
        match text {
            Ok(text) => text.map(str::to_owned),
            Err(_) => {
                let name = TASK[column];
                self.keep(
                    column,
                    "not-text",
                    format!("its {name} is no text; kept beside as bytes"),
                );
                None
            }
        }
    }

    fn time(&mut self, column: usize) -> Option<i64> {
        let text = self.text(column).filter(|text| !text.is_empty())?;
        let time = LegacyTime::parse(&text).map(LegacyTime::ms);
        if time.is_none() {
            let name = TASK[column];
            self.keep(
                column,
                "no-time",
                format!("its {name} is no time; kept beside"),
            );
        }
        time
    }

    fn agent(&mut self, owners: &Owners) -> Option<AgentId> {
        let alias = self.text(2).filter(|alias| !alias.is_empty())?;
        match owners.named(&alias) {
            Ok(agent) => Some(agent),
            Err(reason) => {
                self.keep(
                    2,
                    "illegal-agent-name",
                    format!("{reason}; the task comes in without"),
                );
                None
            }
        }
    }

    fn chain(&mut self) -> Option<Vec<String>> {
        let column = [17, 18]
            .into_iter()
            .find(|column| self.values.bytes(*column).is_some())?;
        let json = self.text(column)?;
        let chain = serde_json::from_str(&json).ok();
        if chain.is_none() {
            let message = "its chain of callers is no JSON list of names; kept beside";
            self.keep(column, "no-callers", message.to_owned());
        }
        chain
    }

    fn cancel(&mut self) -> CancelState {
        let word = self.text(19).filter(|word| !word.is_empty());
        let Some(word) = word else {
            return CancelState::None;
        };
        CancelState::parse(&word).unwrap_or_else(|| {
            let message = format!("its cancellation is {word:?}; kept beside");
            self.keep(19, "unknown-cancellation", message);
            CancelState::None
        })
    }

    /// The task as the row has it, what ran taken for lost.
    fn plain(&mut self, task_id: String, word: &str, owners: &Owners) -> TaskRun {
        let status = standing(word).unwrap_or_else(|| {
            let message = format!("its status {word:?} is unknown; comes in as lost");
            self.notes.push(("unknown-status", message));
            TaskStatus::Lost
        });
        let task_kind = self.text(1);
        let owner_kind = match task_kind.as_deref() {
            Some("delegate") => TaskOwnerKind::Delegate,
            Some("subagent") => TaskOwnerKind::Subagent,
            _ => TaskOwnerKind::Task,
        };
        let (started_at_ms, ended_at_ms) = (self.time(13), self.time(14));
        let spent = ended_at_ms.zip(started_at_ms);
        let error = self.text(16);
        let gone = status == TaskStatus::Lost && !is_end(word) && error.is_none();
        TaskRun {
            task_id,
            owner_kind,
            source_id: None,
            agent_id: self.agent(owners),
            label: None,
            status,
            status_detail: Some(word.to_owned()),
            created_at_ms: started_at_ms.or(ended_at_ms).unwrap_or(0),
            started_at_ms,
            ended_at_ms,
            duration_ms: spent.map(|(end, start)| end.saturating_sub(start).max(0)),
            output: self.text(OUTPUT),
            error: if gone {
                Some("the program that ran it was gone when it was imported".to_owned())
            } else {
                error
            },
            detail_json: None,
            origin: TaskOrigin {
                task_kind,
                parent_task_id: self.text(8).filter(|parent| !parent.is_empty()),
                originator_route: self.text(9).filter(|route| !route.is_empty()),
                principal_id: self.text(12),
                caller_chain: self.chain(),
                depth: self.values.integer(7).unwrap_or(0).max(0),
                idempotency_key: self.text(11),
                execution_owner_pid: self.values.integer(4).filter(|pid| *pid != 0),
                execution_owner_start_identity: None,
                execution_owner_boot_id: self.text(5).filter(|boot| !boot.is_empty()),
                heartbeat_at_ms: self.time(6),
                cancel_state: self.cancel(),
                ..TaskOrigin::default()
            },
        }
    }

    /// Settles a task whose end was decided and not applied, by what can be proven; its output where
    /// no other source brings it.
    fn settle(
        &mut self,
        task: &mut TaskRun,
        word: &str,
        intent: Intent,
        prove: impl FnOnce(&Intent) -> Result<Proven, String>,
    ) -> (Settled, Option<RunArtifact>) {
        let is_of_owner = self.values.integer(4).unwrap_or(0) == intent.owner_pid
            && self.values.hint(5).unwrap_or_default() == intent.owner_boot_id;
        if is_end(word) || !is_of_owner {
            let why = if is_of_owner {
                "had ended already"
            } else {
                "belongs to another process"
            };
            let message = format!(
                "{why}; the end {:?} decided for it is dropped",
                intent.desired
            );
            self.notes.push(("settlement-dropped", message));
            return (Settled::Dropped, None);
        }
        if !is_end(&intent.desired) {
            let message = format!(
                "is to become {:?}, which is no end; kept as it is",
                intent.desired
            );
            self.notes.push(("settlement-kept", message));
            return (Settled::Kept(Box::new(intent.settlement())), None);
        }
        task.ended_at_ms = task.ended_at_ms.or(task.origin.heartbeat_at_ms);
        let proven = match prove(&intent) {
            Ok(proven) => proven,
            Err(reason) => {
                // Never an end that nothing proves.
                task.status = TaskStatus::Failed;
                task.status_detail = Some("settlement_failed".to_owned());
                task.error = Some(format!(
                    "{:?} was decided for it, but {reason}",
                    intent.desired
                ));
                let message = format!("{reason}; comes in as failed");
                self.notes.push(("settlement-failed", message));
                return (Settled::Applied, None);
            }
        };
        task.status = standing(&intent.desired).unwrap_or(TaskStatus::Failed);
        task.status_detail = Some(intent.desired.clone());
        task.output = intent
            .artifact_ref
            .clone()
            .filter(|_| task.status == TaskStatus::Succeeded);
        task.error.clone_from(&intent.terminal_error);
        let message = format!(
            "comes in as {}, which was decided and is proven",
            intent.desired
        );
        self.notes.push(("settlement-applied", message));
        let artifact = proven.elsewhere.map(|output| {
            result_file::artifact(Kept {
                task_id: &task.task_id,
                agent: task.agent_id.as_ref().map(AgentId::as_str),
                status: Some(&intent.desired),
                output,
                file_sha256: &intent.artifact_sha256,
                made_at_ms: task.ended_at_ms.unwrap_or(task.created_at_ms),
            })
        });
        (Settled::Applied, artifact)
    }
}
