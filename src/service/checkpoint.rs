//! Checkpoints of a conversation, and compactions, which make one.

use serde::{Deserialize, Serialize};

use super::append::{check, check_name, check_parent, insert_events, invalid, named, new_id};
use super::branch::{Moved, go_to, stand_of};
use super::changes::{Change, ChangeKind};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::WriteTx;
use crate::model::{
    AgentId, Append, AppendEvent, EventPlace, PageLimit, Place, SessionTarget, Snapshot,
};
use crate::store::agent::branch::{self, Reach, Run, Stand};
use crate::store::agent::snapshot;

/// What a compaction did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The place before it.
    pub snapshot: Snapshot,
    /// The event that sums up what came before.
    pub event: EventPlace,
}

/// What a compaction writes down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The event that sums up; its type is usually `compaction`.
    pub summary: AppendEvent,
    /// What its maker notes about it, as JSON text.
    pub metadata_json: Option<String>,
    /// Compact only if the conversation stands there.
    pub expected_parent: Option<Place>,
}

impl Service {
    /// Notes where the conversation stands, to go back there later.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session.
    pub async fn checkpoint(
        &self,
        agent: &AgentId,
        session_id: &str,
        reason: &str,
        metadata_json: Option<String>,
    ) -> Result<Snapshot, ServiceError> {
        check_name("reason", reason)?;
        check_json(metadata_json.as_deref())?;
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        let (id, reason) = (session_id.to_owned(), reason.to_owned());
        let done = db.write(move |tx| {
            Box::pin(async move {
                let stand = stand_of(tx, &id).await?;
                note(tx, &id, &stand, reason, metadata_json, now_ms).await
            })
        });
        done.await.map_err(|error| named(error, &db))
    }

    /// Notes where the conversation stands and appends the event that sums it up, in one.
    ///
    /// # Errors
    ///
    /// As [`Service::append`].
    pub async fn compact(
        &self,
        agent: &AgentId,
        session_id: &str,
        compaction: Compaction,
    ) -> Result<Compacted, ServiceError> {
        check_json(compaction.metadata_json.as_deref())?;
        let to = SessionTarget::Id(session_id.to_owned());
        check(&Append::new(to, vec![compaction.summary.clone()]))?;
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        let id = session_id.to_owned();
        let tell = self.changes().sender();
        let (owner, told) = (agent.clone(), session_id.to_owned());
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    let stand = stand_of(tx, &id).await?;
                    if let Some(expected) = &compaction.expected_parent {
                        check_parent(&id, &stand, expected)?;
                    }
                    let reason = "compaction".to_owned();
                    let metadata = compaction.metadata_json;
                    let snapshot = note(tx, &id, &stand, reason, metadata, now_ms).await?;
                    let summary = vec![compaction.summary];
                    let mut events = insert_events(tx, &id, &stand, summary, None, now_ms).await?;
                    Ok(Compacted {
                        snapshot,
                        event: events.remove(0),
                    })
                })
            },
            move |done: &Compacted| {
                let last_seq = done.event.seq;
                tell.tell(Change {
                    agent_id: owner,
                    session_id: told,
                    kind: ChangeKind::Appended { last_seq },
                });
            },
        );
        done.await.map_err(|error| named(error, &db))
    }

    /// The checkpoints of a session, furthest into the transcript first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when they cannot be read.
    pub async fn checkpoints(
        &self,
        agent: &AgentId,
        session_id: &str,
        limit: PageLimit,
    ) -> Result<Vec<Snapshot>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        snapshot::list(&mut conn, session_id, limit)
            .await
            .in_db(&db)
    }

    /// Lets the conversation stand where a checkpoint was made.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown session or checkpoint.
    pub async fn restore_checkpoint(
        &self,
        agent: &AgentId,
        session_id: &str,
        snapshot_id: &str,
    ) -> Result<Moved, ServiceError> {
        let (id, name) = (session_id.to_owned(), snapshot_id.to_owned());
        self.move_session(agent, session_id, move |tx, now_ms| {
            Box::pin(async move {
                let stand = stand_of(tx, &id).await?;
                let found = snapshot::get(tx, &id, &name).await?;
                let found = found.ok_or(ServiceError::NotFound {
                    what: "checkpoint",
                    name,
                })?;
                go_to(tx, &id, &stand, found.seq, now_ms).await
            })
        })
        .await
    }
}

fn check_json(text: Option<&str>) -> Result<(), ServiceError> {
    match text {
        Some(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() => {
            Err(invalid("metadata_json", "is no JSON"))
        }
        _ => Ok(()),
    }
}

/// Notes where a session stands.
async fn note(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    stand: &Stand,
    reason: String,
    metadata_json: Option<String>,
    now_ms: i64,
) -> Result<Snapshot, ServiceError> {
    let session_no = stand.session_no;
    let (seq, runs) = match stand.leaf_seq {
        Some(0) => (0, Vec::new()),
        Some(leaf) => {
            let runs = branch::runs(tx, session_no, leaf, Reach::START).await?;
            (leaf, runs)
        }
        None => (branch::newest_seq(tx, session_no).await?, vec![Run::ALL]),
    };
    let mut event_count = 0;
    for run in runs {
        event_count += branch::count_in(tx, session_no, run).await?;
    }
    let made = Snapshot {
        snapshot_id: new_id(),
        reason,
        seq,
        event_count,
        created_at_ms: now_ms,
        metadata_json,
    };
    snapshot::insert(tx, session_id, &made).await?;
    Ok(made)
}
