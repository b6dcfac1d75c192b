//! Telling whoever waits that a task has ended.
//!
//! What is to be told follows from rows: a task that has ended, somebody who waits, and no message. So it does not matter who
//! ended the task, or who was killed right after: the sweep finds it. The key of the message follows from the task, so that
//! it is told of once.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Deliveries, Enqueued, QUEUE, insert};
use crate::db::WriteTx;
use crate::model::{
    DeliveryEntry, DeliveryRoute, DeliveryStatus, NewDelivery, PageLimit, TaskDelivery, TaskRun,
    TaskStatus,
};
use crate::service::ServiceError;
use crate::service::append::{check_name, named};
use crate::service::error::InDb;
use crate::store::global::{delivery, task};

/// Kind of the messages that tell an end.
const KIND: &str = "task_end";
/// What the key of such a message begins with; the task follows.
const KEY_START: &str = "task-end:";
/// Ends that one sweep tells of.
const SWEEP_BATCH: u32 = 50;
/// Longest part of what a task gave that its message repeats, characters; the task has the whole.
const MAX_OUTPUT: usize = 64 * 1024;

/// Where a request came from, as far as an answer needs it.
#[derive(Serialize, Deserialize)]
struct Origin {
    channel: Option<String>,
    account_id: Option<String>,
    #[serde(alias = "to")]
    target: Option<String>,
    thread_id: Option<String>,
    session_key: Option<String>,
}

impl Deliveries {
    /// Somebody waits for the end of a task: once it has ended, they are told. Whoever waited before is forgotten.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such task, [`ServiceError::Invalid`] for whom no channel could reach.
    pub async fn tell_of_end(
        &self,
        task_id: &str,
        route: DeliveryRoute,
    ) -> Result<(), ServiceError> {
        check_name("channel", &route.channel)?;
        check_name("target", &route.target)?;
        let origin = Origin {
            channel: Some(route.channel),
            account_id: route.account_id,
            target: Some(route.target),
            thread_id: route.thread_id,
            session_key: route.session_key,
        };
        let waiting = TaskDelivery {
            task_id: task_id.to_owned(),
            requester_origin_json: Some(serde_json::to_string(&origin).unwrap_or_default()),
            is_delivered: false,
            last_notified_event_at_ms: None,
        };
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let found = task::get_many(tx, &[&waiting.task_id]).await?;
                if found.is_empty() {
                    return Err(no_such_task(&waiting.task_id));
                }
                Ok(delivery::upsert(tx, &waiting).await?)
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))
    }

    /// Enqueues the messages of ends that nobody was told of yet, some of them; gives how many. Ends that are too old to be
    /// told stay untold.
    pub(super) async fn tell_ends(&self) -> Result<u64, ServiceError> {
        let since_ms = self.now_ms().saturating_sub(NewDelivery::MAX_AGE_MS);
        let limit = PageLimit::from(SWEEP_BATCH);
        let mut conn = self.control.db.read().await?;
        let found = delivery::untold_ends(&mut conn, since_ms, QUEUE, KEY_START, limit)
            .await
            .in_db(&self.control.db)?;
        drop(conn);
        let mut told = 0;
        for task_id in found {
            told += u64::from(self.enqueue_task_end(&task_id).await?.is_some());
        }
        Ok(told)
    }

    /// Enqueues the message that tells of a task's end; `None` where nobody waits for it, or nobody could be reached.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for a task that has not ended, [`ServiceError::NotFound`].
    pub async fn enqueue_task_end(&self, task_id: &str) -> Result<Option<Enqueued>, ServiceError> {
        let (id, now_ms) = (task_id.to_owned(), self.now_ms());
        let told = self.control.enqueued.clone();
        let done = self.control.db.write_then(
            move |tx| Box::pin(async move { enqueue(tx, &id, now_ms).await }),
            move |_| {
                told.send_replace(());
            },
        );
        done.await.map_err(|error| named(error, &self.control.db))
    }
}

async fn enqueue(
    tx: &mut WriteTx<'_>,
    task_id: &str,
    now_ms: i64,
) -> Result<Option<Enqueued>, ServiceError> {
    let found = task::get_many(tx, &[task_id]).await?.pop();
    let task = found.ok_or_else(|| no_such_task(task_id))?;
    if !has_ended(task.status) {
        return Err(ServiceError::Conflict {
            what: "task",
            name: task.task_id,
            expected: "at its end".to_owned(),
            found: task.status.to_string(),
        });
    }
    let waiting = delivery::get_many(tx, &[task_id]).await?.pop();
    let waiting = waiting.filter(|waiting| !waiting.is_delivered);
    let origin = waiting.and_then(|waiting| waiting.requester_origin_json);
    let Some(route) = origin.and_then(|origin| route_of(&origin, &task)) else {
        return Ok(None);
    };
    let mut new = NewDelivery::new(route, text_of(&task)).with_key(format!("{KEY_START}{task_id}"));
    new.entry_kind = Some(KIND.to_owned());
    new.task_id = Some(task.task_id);
    insert(tx, &new, now_ms).await.map(Some)
}

fn no_such_task(task_id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "task",
        name: task_id.to_owned(),
    }
}

fn has_ended(status: TaskStatus) -> bool {
    !matches!(
        status,
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::Waiting
    )
}

fn route_of(origin_json: &str, task: &TaskRun) -> Option<DeliveryRoute> {
    let origin: Origin = serde_json::from_str(origin_json).ok()?;
    let named = |name: Option<String>| name.filter(|name| !name.is_empty());
    Some(DeliveryRoute {
        channel: named(origin.channel)?,
        target: named(origin.target)?,
        account_id: named(origin.account_id),
        thread_id: named(origin.thread_id),
        session_key: named(origin.session_key),
        agent_id: task.agent_id.clone(),
    })
}

fn text_of(task: &TaskRun) -> String {
    let cut = |text: &Option<String>| {
        let text = text.as_ref()?;
        Some(text.chars().take(MAX_OUTPUT).collect::<String>())
    };
    json!({
        "task_id": task.task_id,
        "label": task.label,
        "status": task.status,
        "output": cut(&task.output),
        "error": cut(&task.error),
    })
    .to_string()
}

/// Whoever waited for the task of a message that was sent was told.
pub(super) async fn note(
    tx: &mut WriteTx<'_>,
    entry: &DeliveryEntry,
    now_ms: i64,
) -> Result<(), ServiceError> {
    if let Some(task_id) = entry.task_id.as_deref()
        && entry.status == DeliveryStatus::Sent
    {
        delivery::mark_delivered(tx, task_id, now_ms).await?;
    }
    Ok(())
}
