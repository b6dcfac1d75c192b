//! Background work as an import brings it: the task, whom to tell, and who said how it ended.
//!
//! Its end was written twice, by two writers that did not wait for each other: into a store of tasks
//! and into a file with the result. What holds in the end does not depend on which of the two comes
//! in first:
//!
//! * an end beats no end;
//! * a file that tells an end wins for status, output and error, as it did for its program;
//! * a file that holds nothing but an output wins for the output, and the store for the rest;
//! * of two files the one that says more wins, then the later one;
//! * what one of them does not know is filled in from the other, and what a store said of output and
//!   error in other words than its file is kept beside.

use serde_json::{Map, Value, json};
use zeroclaw::model::{AgentId, TaskDelivery, TaskRun, TaskStatus};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::{delivery, task};

use super::ImportRow;
use crate::doctor::record::kind;

/// Who says what a [`BackgroundTask`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaidBy {
    /// A store of tasks.
    Store,
    /// A file that tells the whole life of one task.
    StatusFile,
    /// A file that holds nothing but an output.
    OutputFile,
}

/// A task of background work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackgroundTask {
    /// The task.
    pub(crate) task: TaskRun,
    /// Whom to tell, where that is known.
    pub(crate) delivery: Option<TaskDelivery>,
    /// Who says so.
    pub(crate) said_by: SaidBy,
}

/// In `detail_json`: what the file with the result was.
const RESULT_FILE: &str = "result_file";
/// In `detail_json`: output and error in the words of a store, where those of a file hold.
const OUTPUT_OF_STORE: &str = "output_of_store";
const ERROR_OF_STORE: &str = "error_of_store";

/// What is kept of a file with a result beside what it says of the task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResultFile {
    /// 0 for no end and no output, 1 for an output alone, 2 for an end.
    pub(crate) weight: i64,
    /// When the work ended, as it says; the start of time where it does not.
    pub(crate) ended_at_ms: i64,
    /// SHA-256 of its bytes, hex.
    pub(crate) sha256: String,
    /// Who worked, as it says.
    pub(crate) agent: Option<String>,
}

impl ResultFile {
    /// Puts it among the details of a task.
    pub(crate) fn put(&self, details: &mut Map<String, Value>) {
        let file = json!({
            "weight": self.weight, "ended_at_ms": self.ended_at_ms, "sha256": self.sha256, "agent": self.agent,
        });
        details.insert(RESULT_FILE.to_owned(), file);
    }

    fn of(task: &TaskRun) -> Option<Self> {
        let details = details(task.detail_json.as_deref());
        let file = details.get(RESULT_FILE)?;
        Some(Self {
            weight: file["weight"].as_i64()?,
            ended_at_ms: file["ended_at_ms"].as_i64()?,
            sha256: file["sha256"].as_str()?.to_owned(),
            agent: file["agent"].as_str().map(str::to_owned),
        })
    }
}

fn details(json: Option<&str>) -> Map<String, Value> {
    match json.and_then(|json| serde_json::from_str(json).ok()) {
        Some(Value::Object(details)) => details,
        _ => Map::new(),
    }
}

/// Whether nobody knows how a task ended: it has not, or its end was not written down.
fn is_open(task: &TaskRun) -> bool {
    match task.status {
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::Waiting => true,
        // An import takes what ran for lost and keeps the word; a program that gave up said so.
        TaskStatus::Lost => task
            .status_detail
            .as_deref()
            .is_some_and(|word| word != TaskStatus::Lost.as_str()),
        _ => false,
    }
}

fn has_same_end(a: &TaskRun, b: &TaskRun) -> bool {
    let is_same = |a: &Option<String>, b: &Option<String>| b.is_none() || a == b;
    a.status == b.status
        && a.ended_at_ms == b.ended_at_ms
        && is_same(&a.output, &b.output)
        && is_same(&a.error, &b.error)
}

/// Takes over how `from` says that the task ended.
fn take_end(task: &mut TaskRun, from: &TaskRun) {
    let is_same_status = task.status == from.status;
    task.status = from.status;
    task.status_detail.clone_from(&from.status_detail);
    task.ended_at_ms = from.ended_at_ms.or(task.ended_at_ms);
    task.duration_ms = from.duration_ms.or(task.duration_ms);
    if from.output.is_some() {
        task.output.clone_from(&from.output);
    }
    if from.error.is_some() || !is_same_status {
        task.error.clone_from(&from.error);
    }
}

/// Fills in what is missing and has nothing to do with the end.
fn fill(task: &mut TaskRun, from: &TaskRun) {
    fn or<T: Clone>(into: &mut Option<T>, from: &Option<T>) {
        if into.is_none() {
            into.clone_from(from);
        }
    }
    if task.started_at_ms.is_none() && from.started_at_ms.is_some() {
        task.created_at_ms = from.created_at_ms;
    }
    or(&mut task.started_at_ms, &from.started_at_ms);
    or(&mut task.agent_id, &from.agent_id);
    or(&mut task.source_id, &from.source_id);
    or(&mut task.label, &from.label);
    let (origin, more) = (&mut task.origin, &from.origin);
    or(&mut origin.task_kind, &more.task_kind);
    or(&mut origin.parent_task_id, &more.parent_task_id);
    or(&mut origin.originator_route, &more.originator_route);
    or(&mut origin.principal_id, &more.principal_id);
    or(&mut origin.caller_chain, &more.caller_chain);
    or(&mut origin.idempotency_key, &more.idempotency_key);
    or(&mut origin.execution_owner_pid, &more.execution_owner_pid);
    or(
        &mut origin.execution_owner_boot_id,
        &more.execution_owner_boot_id,
    );
    or(&mut origin.heartbeat_at_ms, &more.heartbeat_at_ms);
    if origin.depth == 0 {
        origin.depth = more.depth;
    }
    let mut all = details(task.detail_json.as_deref());
    let before = all.len();
    for (name, value) in details(from.detail_json.as_deref()) {
        all.entry(name).or_insert(value);
    }
    if all.len() > before {
        task.detail_json = Some(Value::Object(all).to_string());
    }
}

/// Keeps what a store said where a file said it otherwise; a reference to the file says nothing.
fn keep_words(task: &mut TaskRun, store: &TaskRun) {
    if ResultFile::of(task).is_none() || is_open(store) || ResultFile::of(store).is_some() {
        return;
    }
    let mut all = details(task.detail_json.as_deref());
    let before = all.len();
    for (name, said, holds) in [
        (OUTPUT_OF_STORE, &store.output, &task.output),
        (ERROR_OF_STORE, &store.error, &task.error),
    ] {
        let is_reference = |said: &&String| said.starts_with("artifact:");
        if let Some(said) = said.as_ref().filter(|said| !is_reference(said))
            && Some(said) != holds.as_ref()
        {
            all.entry(name).or_insert_with(|| json!(said));
        }
    }
    if all.len() > before {
        task.detail_json = Some(Value::Object(all).to_string());
    }
}

/// Lets a file say what it knows of a task.
fn hear_file(task: &mut TaskRun, from: &TaskRun, file: &ResultFile, said_by: SaidBy) {
    if said_by == SaidBy::StatusFile && !is_open(from) {
        take_end(task, from);
    } else if from.output.is_some() {
        task.output.clone_from(&from.output);
    }
    let mut all = details(task.detail_json.as_deref());
    file.put(&mut all);
    task.detail_json = Some(Value::Object(all).to_string());
}

impl ImportRow for BackgroundTask {
    fn kind(&self) -> &'static str {
        kind::TASK
    }

    fn key(&self) -> String {
        self.task.task_id.clone()
    }

    fn agent(&self) -> Option<&AgentId> {
        // Who works, not who asked; a name that no configuration has is that of an agent of before.
        self.task.agent_id.as_ref()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let mut deliveries = delivery::get_many(conn, keys).await?;
        let tasks = task::get_many(conn, keys).await?.into_iter();
        Ok(tasks
            .map(|task| Self {
                delivery: deliveries
                    .iter()
                    .position(|delivery| delivery.task_id == task.task_id)
                    .map(|at| deliveries.swap_remove(at)),
                task,
                said_by: SaidBy::Store,
            })
            .collect())
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        let tasks: Vec<TaskRun> = rows.iter().map(|row| row.task.clone()).collect();
        task::insert_new(tx, &tasks).await?;
        for delivery in rows.iter().filter_map(|row| row.delivery.as_ref()) {
            delivery::upsert(tx, delivery).await?;
        }
        Ok(())
    }

    async fn update(tx: &mut WriteTx<'_>, row: &Self) -> Result<(), StoreError> {
        task::update(tx, &row.task).await?;
        match &row.delivery {
            Some(delivery) => delivery::upsert(tx, delivery).await,
            None => Ok(()),
        }
    }

    fn is_same(stored: &Self, read: &Self) -> bool {
        stored.task == read.task && stored.delivery == read.delivery
    }

    fn settled(stored: &Self, read: &Self) -> Option<Self> {
        let mut both = stored.clone();
        let file = ResultFile::of(&read.task);
        match file.filter(|_| read.said_by != SaidBy::Store) {
            Some(file) if Some(&file) > ResultFile::of(&stored.task).as_ref() => {
                hear_file(&mut both.task, &read.task, &file, read.said_by);
            }
            Some(_) => {}
            None if is_open(&stored.task) && !is_open(&read.task) => {
                take_end(&mut both.task, &read.task);
                if ResultFile::of(&stored.task).is_some() && stored.task.output.is_some() {
                    both.task.output.clone_from(&stored.task.output);
                }
            }
            None => {}
        }
        fill(&mut both.task, &read.task);
        let store = match read.said_by {
            SaidBy::Store => &read.task,
            SaidBy::StatusFile | SaidBy::OutputFile => &stored.task,
        };
        keep_words(&mut both.task, store);
        match (&mut both.delivery, &read.delivery) {
            (Some(both), Some(read)) => both.is_delivered |= read.is_delivered,
            (none, read) => {
                if none.is_none() {
                    none.clone_from(read);
                }
            }
        }
        (!Self::is_same(&both, stored)).then_some(both)
    }

    fn absorbs(stored: &Self, read: &Self) -> bool {
        if Self::settled(stored, read).is_some() {
            return false;
        }
        let (there, here) = (ResultFile::of(&stored.task), ResultFile::of(&read.task));
        // Another word than the one read stands only where one that beats it was heard.
        has_same_end(&stored.task, &read.task) || is_open(&read.task) || there > here
    }
}

#[cfg(test)]
mod tests;
