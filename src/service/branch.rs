//! Moving in a transcript: back, to another branch, beside; and cutting it.
//!
//! Appends never make a branch by accident; these calls are how one comes to be.

use serde::{Deserialize, Serialize};

use super::append::{check, insert_events, named};
use super::changes::{Change, ChangeKind};
use super::error::InDb;
use super::transcript::no_session;
use super::{Service, ServiceError};
use crate::db::WriteTx;
use crate::model::{
    AgentId, Append, AppendEvent, Appended, EventPlace, PageLimit, Place, SessionTarget,
};
use crate::store::agent::branch::{self, Reach, Run, Stand};
use crate::store::agent::session_change;

/// Where a session stands after a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The session.
    pub session_id: String,
    /// The event it stands at; `None` before its first one.
    pub tail: Option<EventPlace>,
    /// Events that were deleted.
    pub deleted: u64,
}

impl Service {
    /// Takes the conversation back to an event of its branch, or before its first. Nothing is deleted: the next append
    /// begins a new branch there.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown session or event, [`ServiceError::Conflict`] for an event that is
    /// not on the branch.
    pub async fn rewind(
        &self,
        agent: &AgentId,
        session_id: &str,
        to: Place,
    ) -> Result<Moved, ServiceError> {
        let id = session_id.to_owned();
        self.move_session(agent, session_id, move |tx, now_ms| {
            Box::pin(async move {
                let stand = stand_of(tx, &id).await?;
                let seq = place_of(tx, &stand, &to).await?;
                if seq > 0 && !is_on_branch(tx, &stand, seq).await? {
                    return Err(ServiceError::Conflict {
                        what: "event",
                        name: name_of(&to),
                        expected: "on the branch the conversation is on".to_owned(),
                        found: "on another one".to_owned(),
                    });
                }
                go_to(tx, &id, &stand, seq, now_ms).await
            })
        })
        .await
    }

    /// Lets the conversation stand at any event, also of another branch.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown session or event.
    pub async fn switch_branch(
        &self,
        agent: &AgentId,
        session_id: &str,
        to: Place,
    ) -> Result<Moved, ServiceError> {
        let id = session_id.to_owned();
        self.move_session(agent, session_id, move |tx, now_ms| {
            Box::pin(async move {
                let stand = stand_of(tx, &id).await?;
                let seq = place_of(tx, &stand, &to).await?;
                go_to(tx, &id, &stand, seq, now_ms).await
            })
        })
        .await
    }

    /// Appends events behind any earlier event, as a branch of their own; the conversation stands at their end then.
    ///
    /// # Errors
    ///
    /// As [`Service::append`] and [`Service::switch_branch`].
    pub async fn branch(
        &self,
        agent: &AgentId,
        session_id: &str,
        from: Place,
        events: Vec<AppendEvent>,
    ) -> Result<Appended, ServiceError> {
        check(&Append::new(
            SessionTarget::Id(session_id.to_owned()),
            events.clone(),
        ))?;
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        let id = session_id.to_owned();
        let tell = self.teller(agent, session_id, ChangeKind::Moved);
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    let stand = stand_of(tx, &id).await?;
                    let seq = place_of(tx, &stand, &from).await?;
                    branch::set_leaf(tx, stand.session_no, seq, now_ms).await?;
                    let stand = stand_of(tx, &id).await?;
                    let events = insert_events(tx, &id, &stand, events, None, now_ms).await?;
                    Ok(Appended {
                        session_id: id,
                        events,
                        is_new_session: false,
                        is_repeat: false,
                    })
                })
            },
            move |_| tell(),
        );
        done.await.map_err(|error| named(error, &db))
    }

    /// Deletes all events behind a place, on whatever branch, for good. Where the conversation stood behind it, it
    /// stands at the nearest event that is left of its branch.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown session or event.
    pub async fn truncate(
        &self,
        agent: &AgentId,
        session_id: &str,
        after: Place,
    ) -> Result<Moved, ServiceError> {
        let id = session_id.to_owned();
        self.move_session(agent, session_id, move |tx, now_ms| {
            Box::pin(async move {
                let stand = stand_of(tx, &id).await?;
                let seq = place_of(tx, &stand, &after).await?;
                // Found while what leads there is still there.
                let left = match stand.leaf_seq {
                    Some(leaf) if leaf > seq => Some(nearest(tx, &stand, leaf, seq).await?),
                    _ => None,
                };
                let deleted = branch::cut(tx, &id, stand.session_no, seq).await?;
                session_change::touch(tx, stand.session_no, now_ms).await?;
                if let Some(left) = left {
                    branch::set_leaf(tx, stand.session_no, left, now_ms).await?;
                }
                moved(tx, id, deleted).await
            })
        })
        .await
    }

    /// The ends of all branches of a session, newest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session.
    pub async fn branches(
        &self,
        agent: &AgentId,
        session_id: &str,
        limit: PageLimit,
    ) -> Result<Vec<EventPlace>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let stand = branch::stand(&mut conn, session_id).await.in_db(&db)?;
        let stand = stand.ok_or_else(|| no_session(session_id))?;
        branch::tips(&mut conn, stand.session_no, limit)
            .await
            .in_db(&db)
    }

    /// Runs one move in a transaction and tells of it.
    pub(super) async fn move_session<F>(
        &self,
        agent: &AgentId,
        session_id: &str,
        work: F,
    ) -> Result<Moved, ServiceError>
    where
        F: for<'t, 'c> FnOnce(
                &'t mut WriteTx<'c>,
                i64,
            ) -> crate::db::BoxFuture<'t, Result<Moved, ServiceError>>
            + Send
            + 'static,
    {
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        let tell = self.teller(agent, session_id, ChangeKind::Moved);
        db.write_then(move |tx| work(tx, now_ms), move |_| tell())
            .await
            .map_err(|error| named(error, &db))
    }

    /// What tells of a change once it is committed.
    pub(super) fn teller(
        &self,
        agent: &AgentId,
        session_id: &str,
        kind: ChangeKind,
    ) -> impl FnOnce() + Send + 'static {
        let changes = self.changes().sender();
        let change = Change {
            agent_id: agent.clone(),
            session_id: session_id.to_owned(),
            kind,
        };
        move || changes.tell(change)
    }
}

pub(super) async fn stand_of(
    tx: &mut WriteTx<'_>,
    session_id: &str,
) -> Result<Stand, ServiceError> {
    let stand = branch::stand(tx, session_id).await?;
    stand.ok_or_else(|| no_session(session_id))
}

fn name_of(place: &Place) -> String {
    match place {
        Place::Start => "start".to_owned(),
        Place::Event(id) => id.clone(),
    }
}

/// The number of a place; 0 for the start.
pub(super) async fn place_of(
    tx: &mut WriteTx<'_>,
    stand: &Stand,
    place: &Place,
) -> Result<i64, ServiceError> {
    let Place::Event(id) = place else {
        return Ok(0);
    };
    let seq = branch::seq_of(tx, stand.session_no, id).await?;
    seq.ok_or_else(|| ServiceError::NotFound {
        what: "event",
        name: id.clone(),
    })
}

async fn is_on_branch(tx: &mut WriteTx<'_>, stand: &Stand, seq: i64) -> Result<bool, ServiceError> {
    let Some(leaf) = stand.leaf_seq else {
        return Ok(true);
    };
    let reach = Reach {
        above: seq - 1,
        events: i64::MAX,
    };
    let runs = branch::runs(tx, stand.session_no, leaf, reach).await?;
    Ok(runs.iter().any(|run| (run.first..=run.last).contains(&seq)))
}

pub(super) async fn go_to(
    tx: &mut WriteTx<'_>,
    id: &str,
    stand: &Stand,
    seq: i64,
    now_ms: i64,
) -> Result<Moved, ServiceError> {
    let newest = branch::newest_seq(tx, stand.session_no).await?;
    // A session that was never taken back is read without walking its branch: it stays one where it can.
    if stand.leaf_seq.is_some() || seq != newest {
        branch::set_leaf(tx, stand.session_no, seq, now_ms).await?;
    }
    moved(tx, id.to_owned(), 0).await
}

async fn moved(
    tx: &mut WriteTx<'_>,
    session_id: String,
    deleted: u64,
) -> Result<Moved, ServiceError> {
    let stand = stand_of(tx, &session_id).await?;
    let seq = match stand.leaf_seq {
        Some(seq) => seq,
        None => branch::newest_seq(tx, stand.session_no).await?,
    };
    Ok(Moved {
        session_id,
        tail: stand.tail_id.map(|event_id| EventPlace { seq, event_id }),
        deleted,
    })
}

/// The last place up to `seq` on the branch that ends at `leaf`; 0 if there is none.
async fn nearest(
    tx: &mut WriteTx<'_>,
    stand: &Stand,
    leaf: i64,
    seq: i64,
) -> Result<i64, ServiceError> {
    let runs = branch::runs(tx, stand.session_no, leaf, Reach::START).await?;
    for run in runs.iter().rev().filter(|run| run.first <= seq) {
        let part = Run {
            first: run.first,
            last: run.last.min(seq),
        };
        if let Some(last) = branch::last_in(tx, stand.session_no, part).await? {
            return Ok(last);
        }
    }
    Ok(0)
}
