//! Changes of sessions themselves: made, patched, rotated, copied, deleted.

use serde::{Deserialize, Serialize};

use super::append::{check_header, check_name, create_session, invalid, named, new_id};
use super::branch::{place_of, stand_of};
use super::changes::ChangeKind;
use super::error::InDb;
use super::transcript::no_session;
use super::{Service, ServiceError};
use crate::db::WriteTx;
use crate::model::{
    AgentId, FieldConflict, Place, SessionHeader, SessionPatch, SessionRecord, SessionStatus,
    SessionTarget,
};
use crate::store::agent::branch::{self, Reach, Run, Stand};
use crate::store::agent::{search, session, session_change};

/// What became of a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchOutcome {
    /// It was applied; the session as it is now.
    Applied(Box<SessionRecord>),
    /// Somebody changed the session meanwhile; nothing was applied.
    Conflict {
        /// The session as it is.
        current: Box<SessionRecord>,
        /// The fields of the patch that would change something.
        fields: Vec<FieldConflict>,
    },
}

/// A session put in the place of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// The key that leads to the new one now.
    pub session_key: String,
    /// The session it led to before; archived.
    pub old_session_id: String,
    /// The session it leads to now.
    pub new_session_id: String,
}

/// A copy of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The copy.
    pub session: SessionRecord,
    /// Its origin.
    pub forked_from: String,
}

/// How to delete a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteOptions {
    /// A pinned one too.
    pub even_pinned: bool,
    /// Only if it has as many events as this.
    pub only_with_events: Option<i64>,
}

/// What a deletion takes, or took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// The session as it was.
    pub session: SessionRecord,
    /// Bytes of its texts and JSON.
    pub bytes: i64,
}

impl Service {
    /// Makes a session without events.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when its id is taken or its key leads to another one.
    pub async fn create_session(
        &self,
        agent: &AgentId,
        target: SessionTarget,
        header: SessionHeader,
    ) -> Result<SessionRecord, ServiceError> {
        check_name("session", &String::from(&target))?;
        check_header(&header)?;
        let db = self.agent(agent).await?;
        let (owner, now_ms) = (agent.clone(), self.clock().now_ms());
        let done = db.write(move |tx| {
            Box::pin(async move {
                let id = match &target {
                    SessionTarget::Id(id) => id.clone(),
                    SessionTarget::Key(_) => new_id(),
                };
                let key = header.session_key.clone();
                let key = key.unwrap_or_else(|| String::from(&target));
                let is_taken = session::tail(tx, &id).await?.is_some();
                if is_taken || session::routed(tx, &key).await?.is_some() {
                    return Err(ServiceError::Conflict {
                        what: "session",
                        name: String::from(&target),
                        expected: "to be new".to_owned(),
                        found: "there already".to_owned(),
                    });
                }
                create_session(tx, &owner, &id, key, &header, now_ms).await?;
                record_of(tx, &owner, &id).await
            })
        });
        done.await.map_err(|error| named(error, &db))
    }

    /// Changes fields of a session, if it is still as the caller saw it.
    ///
    /// * `expected_revision`: [`SessionRecord::revision`] of what the caller saw; `None` for whatever it is.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError::Invalid`] for what no session may be.
    pub async fn patch_session(
        &self,
        agent: &AgentId,
        session_id: &str,
        patch: SessionPatch,
        expected_revision: Option<i64>,
    ) -> Result<PatchOutcome, ServiceError> {
        check_patch(&patch)?;
        let db = self.agent(agent).await?;
        let (owner, id) = (agent.clone(), session_id.to_owned());
        let now_ms = self.clock().now_ms();
        let tell = self.teller(agent, session_id, ChangeKind::Changed);
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    let current = record_of(tx, &owner, &id).await?;
                    let revision = expected_revision.unwrap_or(current.revision);
                    if session_change::patch(tx, &id, revision, &patch, now_ms).await? {
                        let patched = record_of(tx, &owner, &id).await?;
                        return Ok(PatchOutcome::Applied(Box::new(patched)));
                    }
                    Ok(PatchOutcome::Conflict {
                        fields: conflicts(&current, &patch),
                        current: Box::new(current),
                    })
                })
            },
            move |outcome: &PatchOutcome| {
                if matches!(outcome, PatchOutcome::Applied(_)) {
                    tell();
                }
            },
        );
        done.await.map_err(|error| named(error, &db))
    }

    /// Puts a new session behind the key of an old one, with the same settings and conversations and nothing said. The
    /// old one is archived.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError::TurnHeld`] while it is in a turn,
    /// [`ServiceError::Conflict`] when its key leads to another one already.
    pub async fn reset_session(
        &self,
        agent: &AgentId,
        session_id: &str,
    ) -> Result<Reset, ServiceError> {
        self.refuse_running(agent, session_id).await?;
        let db = self.agent(agent).await?;
        let (owner, id) = (agent.clone(), session_id.to_owned());
        let now_ms = self.clock().now_ms();
        let tell = self.teller(agent, session_id, ChangeKind::Changed);
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    let old = record_of(tx, &owner, &id).await?;
                    let live = session::routed(tx, &old.session_key).await?;
                    if live.as_ref().is_some_and(|live| *live != id) {
                        return Err(ServiceError::Conflict {
                            what: "session",
                            name: id,
                            expected: "to be what its key leads to".to_owned(),
                            found: "an earlier one".to_owned(),
                        });
                    }
                    rotate(tx, &old, now_ms).await
                })
            },
            move |_| tell(),
        );
        done.await.map_err(|error| named(error, &db))
    }

    /// Copies a session up to an event of it into a new one, with its settings and conversations.
    ///
    /// * `at`: the last event to copy; `None` for what the conversation stands at. Its branch is copied, no other.
    /// * `session_key`: route of the copy; `None` for its own id.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown session or event, [`ServiceError::Conflict`] when the key is taken.
    pub async fn fork_session(
        &self,
        agent: &AgentId,
        session_id: &str,
        at: Option<Place>,
        session_key: Option<String>,
    ) -> Result<Forked, ServiceError> {
        if let Some(key) = &session_key {
            check_name("session key", key)?;
        }
        let db = self.agent(agent).await?;
        let (owner, id) = (agent.clone(), session_id.to_owned());
        let now_ms = self.clock().now_ms();
        let new = new_id();
        let tell = self.teller(agent, &new, ChangeKind::Changed);
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    let key = session_key.unwrap_or_else(|| new.clone());
                    if session::routed(tx, &key).await?.is_some() {
                        return Err(ServiceError::Conflict {
                            what: "session key",
                            name: key,
                            expected: "to be free".to_owned(),
                            found: "taken".to_owned(),
                        });
                    }
                    copy(tx, &id, &new, &key, at, now_ms).await?;
                    Ok(Forked {
                        session: record_of(tx, &owner, &new).await?,
                        forked_from: id,
                    })
                })
            },
            move |_| tell(),
        );
        done.await.map_err(|error| named(error, &db))
    }

    /// What deleting a session would take.
    ///
    /// # Errors
    ///
    /// As [`Service::delete_session`].
    pub async fn plan_delete(
        &self,
        agent: &AgentId,
        session_id: &str,
        options: DeleteOptions,
    ) -> Result<Deleted, ServiceError> {
        self.refuse_running(agent, session_id).await?;
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let found = session::get(&mut conn, agent, session_id)
            .await
            .in_db(&db)?;
        let found = found.ok_or_else(|| no_session(session_id))?;
        refuse_pinned(&found, options)?;
        let tail = session::tail(&mut conn, session_id).await.in_db(&db)?;
        let session_no = tail.ok_or_else(|| no_session(session_id))?.session_no;
        let bytes = session_change::bytes(&mut conn, session_no)
            .await
            .in_db(&db)?;
        Ok(Deleted {
            session: found,
            bytes,
        })
    }

    /// Deletes a session with all it owns, for good: see [`Service::export_session`] for keeping a copy.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError::TurnHeld`] while it is in a turn,
    /// [`ServiceError::Protected`] for a pinned one.
    pub async fn delete_session(
        &self,
        agent: &AgentId,
        session_id: &str,
        options: DeleteOptions,
    ) -> Result<Deleted, ServiceError> {
        self.refuse_running(agent, session_id).await?;
        let db = self.agent(agent).await?;
        let (owner, id) = (agent.clone(), session_id.to_owned());
        let tell = self.teller(agent, session_id, ChangeKind::Deleted);
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    let session = record_of(tx, &owner, &id).await?;
                    refuse_pinned(&session, options)?;
                    if let Some(expected) = options.only_with_events
                        && expected != session.event_count
                    {
                        return Err(ServiceError::Conflict {
                            what: "session",
                            name: id,
                            expected: format!("with {expected} events"),
                            found: format!("with {}", session.event_count),
                        });
                    }
                    let stand = stand_of(tx, &id).await?;
                    let bytes = session_change::bytes(tx, stand.session_no).await?;
                    session_change::delete(tx, stand.session_no, &id).await?;
                    Ok(Deleted { session, bytes })
                })
            },
            move |_| tell(),
        );
        done.await.map_err(|error| named(error, &db))
    }

    /// Refuses what must not happen under a turn; a turn whose owner is gone is closed first.
    pub(super) async fn refuse_running(
        &self,
        agent: &AgentId,
        session_id: &str,
    ) -> Result<(), ServiceError> {
        match self.turn(agent, session_id).await? {
            Some(turn) => Err(ServiceError::TurnHeld {
                session_id: session_id.to_owned(),
                owner: Some(turn.owner),
            }),
            None => Ok(()),
        }
    }
}

fn refuse_pinned(session: &SessionRecord, options: DeleteOptions) -> Result<(), ServiceError> {
    if session.pinned_at_ms.is_some() && !options.even_pinned {
        return Err(ServiceError::Protected {
            session_id: session.session_id.clone(),
            reason: "is pinned",
        });
    }
    Ok(())
}

fn check_patch(patch: &SessionPatch) -> Result<(), ServiceError> {
    if patch.status == Some(SessionStatus::Running) {
        return Err(invalid("status", "running is set by a turn alone"));
    }
    let texts = [
        ("title", &patch.display_name),
        ("model provider", &patch.model_provider),
        ("model", &patch.model),
    ];
    for (what, text) in texts {
        if let Some(Some(text)) = text {
            check_name(what, text)?;
        }
    }
    Ok(())
}

fn conflicts(current: &SessionRecord, patch: &SessionPatch) -> Vec<FieldConflict> {
    let text = |field: &str, wanted: &Option<Option<String>>, found: &Option<String>| {
        let wanted = wanted.as_ref()?;
        (wanted != found).then(|| FieldConflict {
            field: field.to_owned(),
            wanted: wanted.clone(),
            found: found.clone(),
        })
    };
    let mark = |field: &str, wanted: Option<bool>, found: bool| {
        (wanted? != found).then(|| FieldConflict {
            field: field.to_owned(),
            wanted: wanted.map(|wanted| wanted.to_string()),
            found: Some(found.to_string()),
        })
    };
    let status = patch.status.filter(|status| *status != current.status);
    [
        text("display_name", &patch.display_name, &current.display_name),
        text(
            "model_provider",
            &patch.model_provider,
            &current.model_provider,
        ),
        text("model", &patch.model, &current.model),
        status.map(|status| FieldConflict {
            field: "status".to_owned(),
            wanted: Some(status.to_string()),
            found: Some(current.status.to_string()),
        }),
        mark(
            "is_archived",
            patch.is_archived,
            current.archived_at_ms.is_some(),
        ),
        mark("is_pinned", patch.is_pinned, current.pinned_at_ms.is_some()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

async fn record_of(
    tx: &mut WriteTx<'_>,
    agent: &AgentId,
    session_id: &str,
) -> Result<SessionRecord, ServiceError> {
    let found = session::get(tx, agent, session_id).await?;
    found.ok_or_else(|| no_session(session_id))
}

async fn rotate(
    tx: &mut WriteTx<'_>,
    old: &SessionRecord,
    now_ms: i64,
) -> Result<Reset, ServiceError> {
    let new_session_id = new_id();
    let key = old.session_key.clone();
    session_change::copy(tx, &old.session_id, &new_session_id, &key, now_ms).await?;
    session::set_route(tx, &key, &new_session_id, now_ms).await?;
    let archived = SessionPatch {
        is_archived: Some(true),
        ..SessionPatch::default()
    };
    session_change::patch(tx, &old.session_id, old.revision, &archived, now_ms).await?;
    Ok(Reset {
        session_key: key,
        old_session_id: old.session_id.clone(),
        new_session_id,
    })
}

async fn copy(
    tx: &mut WriteTx<'_>,
    from: &str,
    to: &str,
    key: &str,
    at: Option<Place>,
    now_ms: i64,
) -> Result<(), ServiceError> {
    let stand = stand_of(tx, from).await?;
    let runs = runs_to(tx, &stand, at.as_ref()).await?;
    let session_no = session_change::copy(tx, from, to, key, now_ms).await?;
    session::set_route(tx, key, to, now_ms).await?;
    let (mut events, mut messages) = (0, 0);
    for run in runs {
        let (more, said) = branch::copy_run(tx, stand.session_no, session_no, run).await?;
        events += more;
        messages += said;
    }
    session_change::set_counts(tx, session_no, events, messages).await?;
    let copied = branch::stand(tx, to).await?;
    let event = copied.and_then(|stand| stand.tail_id);
    session_change::set_origin(tx, session_no, from, event.as_deref()).await?;
    search::index_next(tx, events).await?;
    Ok(())
}

/// The branch that leads to a place.
async fn runs_to(
    tx: &mut WriteTx<'_>,
    stand: &Stand,
    at: Option<&Place>,
) -> Result<Vec<Run>, ServiceError> {
    let to = match at {
        Some(place) => Some(place_of(tx, stand, place).await?),
        None => stand.leaf_seq,
    };
    Ok(match to {
        Some(0) => Vec::new(),
        // Never taken back: the branch of each event is all that came before it.
        Some(last) if stand.leaf_seq.is_none() => vec![Run { first: 1, last }],
        Some(last) => branch::runs(tx, stand.session_no, last, Reach::START).await?,
        None => vec![Run::ALL],
    })
}
