//! Telling whoever waits that a task has ended.
//!
//! The message of an end has a key that follows from the task, so that a task that is settled twice is told of once.

use serde::Deserialize;
use serde_json::json;

use super::{Deliveries, Enqueued, insert};
use crate::db::WriteTx;
use crate::model::{
    DeliveryEntry, DeliveryRoute, DeliveryStatus, NewDelivery, TaskRun, TaskStatus,
};
use crate::service::ServiceError;
use crate::service::append::named;
use crate::store::global::{delivery, task};

/// Kind of the messages that tell an end.
const KIND: &str = "task_end";
/// Longest part of what a task gave that its message repeats, characters; the task has the whole.
const MAX_OUTPUT: usize = 64 * 1024;

/// Where a request came from, as far as an answer needs it.
#[derive(Deserialize)]
struct Origin {
    channel: Option<String>,
    account_id: Option<String>,
    #[serde(alias = "to")]
    target: Option<String>,
    thread_id: Option<String>,
    session_key: Option<String>,
}

impl Deliveries {
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

/// The same inside the transaction that ends the task: no end is ever forgotten between the two.
pub(in crate::service) async fn enqueue(
    tx: &mut WriteTx<'_>,
    task_id: &str,
    now_ms: i64,
) -> Result<Option<Enqueued>, ServiceError> {
    let found = task::get_many(tx, &[task_id]).await?.pop();
    let task = found.ok_or_else(|| ServiceError::NotFound {
        what: "task",
        name: task_id.to_owned(),
    })?;
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
    let mut new = NewDelivery::new(route, text_of(&task)).with_key(format!("task-end:{task_id}"));
    new.entry_kind = Some(KIND.to_owned());
    new.task_id = Some(task.task_id);
    insert(tx, &new, now_ms).await.map(Some)
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
