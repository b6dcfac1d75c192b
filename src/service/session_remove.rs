//! Deleting sessions so that they can be had back, and the rules by which old ones go.
//!
//! A copy in the lossless form is on disk before the rows go, for as long as [`COPY_KEPT`]; `sessions import` takes it
//! in again. No rule is on by itself, zero switches one off, and what is pinned or in a turn stays whatever they say.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::InDb;
use super::session_change::{DeleteOptions, Deleted};
use super::{ExportFormat, Service, ServiceError};
use crate::clock::utc_stamp;
use crate::config::ConfigError;
use crate::fs::{FsError, atomic};
use crate::model::{AgentId, PageLimit, RetentionRules, SessionRecord, SessionStatus};
use crate::store::agent::session::{self, SessionFilter};
use crate::store::agent::session_change;

pub use plan::{Candidate, RetentionReason, plan_retention};

mod plan;

/// How long the copy of a deleted session is kept.
pub const COPY_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How to remove a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoveOptions {
    /// A pinned one too.
    pub even_pinned: bool,
    /// Without a copy: gone for good.
    pub without_copy: bool,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
}

/// A session that was removed, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The session as it was.
    pub session: SessionRecord,
    /// Bytes of its texts and JSON.
    pub bytes: i64,
    /// Its copy; `None` where none was wanted, or nothing was written.
    pub copy: Option<PathBuf>,
    /// Whether it is gone.
    pub deleted: bool,
}

/// How to apply retention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionOptions {
    /// Only this agent's sessions.
    pub agent: Option<AgentId>,
    /// The rules for every agent; `None` for those of the configuration.
    pub rules: Option<RetentionRules>,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
    /// Consent to what the plan says.
    pub yes: bool,
    /// The clock was looked at and is right.
    pub clock_is_right: bool,
}

/// A session that a rule takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionItem {
    /// Owner.
    pub agent_id: AgentId,
    /// The session.
    pub session_id: String,
    /// Its key.
    pub session_key: String,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// Bytes of its texts and JSON.
    pub bytes: i64,
    /// The rule.
    pub reason: RetentionReason,
    /// Its copy, once it is gone.
    pub copy: Option<PathBuf>,
    /// Whether it is gone.
    pub deleted: bool,
    /// Why it is not, though it was to go.
    pub error: Option<String>,
}

/// What retention did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionReport {
    /// Sessions looked at.
    pub sessions: usize,
    /// Sessions that no rule may touch: pinned, or in a turn.
    pub protected: usize,
    /// Sessions that go, oldest first.
    pub items: Vec<RetentionItem>,
    /// Whether any rule is on for any of the agents.
    pub rules_on: bool,
    /// Why the clock may be wrong; nothing goes until somebody looked.
    pub clock_doubt: Option<String>,
    /// Copies of sessions deleted earlier whose time is over.
    pub expired_copies: Vec<PathBuf>,
    /// Whether anything was deleted.
    pub written: bool,
}

impl Service {
    /// Deletes a session, and keeps a copy of it unless told otherwise.
    ///
    /// # Errors
    ///
    /// As [`Service::delete_session`]; [`ServiceError::Fs`] when the copy cannot be written, and then the session stays.
    pub async fn remove_session(
        &self,
        agent: &AgentId,
        session_id: &str,
        options: RemoveOptions,
    ) -> Result<Removed, ServiceError> {
        let delete = DeleteOptions {
            even_pinned: options.even_pinned,
            ..DeleteOptions::default()
        };
        let planned = self.plan_delete(agent, session_id, delete).await?;
        if options.dry_run {
            return Ok(removed(planned, None, false));
        }
        let copy = if options.without_copy {
            None
        } else {
            Some(self.copy_session(agent, session_id).await?)
        };
        let delete = DeleteOptions {
            // What was said after the copy was made would be in neither.
            only_with_events: copy.is_some().then_some(planned.session.event_count),
            ..delete
        };
        let done = self.delete_session(agent, session_id, delete).await;
        match done {
            Ok(done) => Ok(removed(done, copy, true)),
            Err(error) => {
                if let Some(copy) = copy {
                    atomic::remove_file_synced(&copy)?;
                }
                Err(error)
            }
        }
    }

    /// Writes the copy of a session that is to go: whole, synced, private.
    async fn copy_session(
        &self,
        agent: &AgentId,
        session_id: &str,
    ) -> Result<PathBuf, ServiceError> {
        let folder = self.layout().deleted_dir(agent.as_str());
        atomic::create_dir_private(&folder)?;
        let name = format!(
            "{}-{}.session",
            utc_stamp(self.clock().now_ms()),
            file_word(session_id)
        );
        let path = folder.join(name);
        let temp = atomic::private_temp_in(&folder)?;
        let mut out = BufWriter::new(temp.as_file());
        self.export_session(agent, session_id, ExportFormat::Jsonl, &mut out, &path)
            .await?;
        let flushed = out.flush();
        drop(out);
        flushed
            .and_then(|()| temp.as_file().sync_all())
            .map_err(|error| FsError::at("write", &path)(error))?;
        // A second deletion of one session within one second replaces nothing: it has another name.
        let path = free_name(path);
        atomic::persist_new(temp.path(), &path)?;
        Ok(path)
    }

    /// Removes the sessions that the rules name; see [`plan_retention`].
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown agent, [`ServiceError::Config`] where the configuration's rules cannot
    /// be read, and then nothing goes. A session that cannot be removed says so in its item.
    pub async fn apply_retention(
        &self,
        options: &RetentionOptions,
    ) -> Result<RetentionReport, ServiceError> {
        let now_ms = self.clock().now_ms();
        let mut found = Vec::new();
        let mut expired_copies = Vec::new();
        let mut items = Vec::new();
        let mut clock_doubt = None;
        let mut rules_on = false;
        for agent in self.agents_or(options.agent.as_ref()).await? {
            let id = agent.agent_id;
            let here = self.candidates(&id, options.agent.is_some()).await?;
            let rules = self.rules_of(options, &id)?;
            rules_on |= rules.is_any_on();
            let planned = plan_retention(&rules, now_ms, &here);
            clock_doubt = clock_doubt.or(planned.clock_doubt);
            items.extend(planned.items);
            found.extend(here);
            expired_copies.extend(self.expired_copies(&id, now_ms)?);
        }
        items.sort_by(|a, b| {
            (a.updated_at_ms, &a.session_id).cmp(&(b.updated_at_ms, &b.session_id))
        });
        if !expired_copies.is_empty() {
            // Their age is told by the same clock.
            let newest = found.iter().map(|it| it.updated_at_ms).max();
            let doubt = newest.and_then(|newest| plan::clock_doubt(now_ms, newest));
            clock_doubt = clock_doubt.or(doubt);
        }
        let may_write =
            options.yes && !options.dry_run && (clock_doubt.is_none() || options.clock_is_right);
        if may_write {
            for item in &mut items {
                self.remove_item(item).await;
            }
            for copy in &expired_copies {
                atomic::remove_file_synced(copy)?;
            }
        }
        Ok(RetentionReport {
            sessions: found.len(),
            protected: found.iter().filter(|it| it.is_protected).count(),
            items,
            rules_on,
            clock_doubt,
            expired_copies,
            written: may_write,
        })
    }

    fn rules_of(
        &self,
        options: &RetentionOptions,
        agent: &AgentId,
    ) -> Result<RetentionRules, ServiceError> {
        if let Some(rules) = options.rules {
            return Ok(rules);
        }
        let config = self.config();
        let rules = config.retention.rules_of(agent.as_str());
        rules.map_err(|fault| {
            let path = self.layout().config_file();
            let fault = fault.to_owned();
            ConfigError::Value { path, fault }.into()
        })
    }

    async fn remove_item(&self, item: &mut RetentionItem) {
        let options = RemoveOptions::default();
        let removed = self
            .remove_session(&item.agent_id, &item.session_id, options)
            .await;
        match removed {
            Ok(removed) => {
                item.copy = removed.copy;
                item.deleted = true;
            }
            Err(error) => item.error = Some(error.to_string()),
        }
    }

    async fn candidates(
        &self,
        agent: &AgentId,
        is_only: bool,
    ) -> Result<Vec<Candidate>, ServiceError> {
        let Some(db) = self.agent_unless_broken(agent, is_only).await? else {
            return Ok(Vec::new());
        };
        let mut conn = db.read().await?;
        let filter = SessionFilter {
            with_archived: true,
            ownerless: self.ownerless(&mut conn, db.version()).await.in_db(&db)?,
            ..SessionFilter::default()
        };
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let limit = PageLimit::from(crate::model::MAX_PAGE);
            let page = session::list(&mut conn, agent, &filter, before.as_deref(), limit).await;
            let page = page.in_db(&db)?;
            for session in page.items {
                let bytes = session_change::bytes_of(&mut conn, &session.session_id).await;
                found.push(Candidate {
                    agent_id: agent.clone(),
                    bytes: bytes.in_db(&db)?,
                    updated_at_ms: session.updated_at_ms,
                    is_protected: session.pinned_at_ms.is_some()
                        || session.status == SessionStatus::Running,
                    session_id: session.session_id,
                    session_key: session.session_key,
                });
            }
            before = page.next;
            if before.is_none() {
                return Ok(found);
            }
        }
    }

    /// Copies of deleted sessions that are older than promised, by the time in their names.
    fn expired_copies(&self, agent: &AgentId, now_ms: i64) -> Result<Vec<PathBuf>, ServiceError> {
        let folder = self.layout().deleted_dir(agent.as_str());
        let kept_ms = i64::try_from(COPY_KEPT.as_millis()).unwrap_or(i64::MAX);
        // Stamps sort as their times do.
        let oldest = utc_stamp(now_ms.saturating_sub(kept_ms));
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FsError::at("list", &folder)(error).into()),
        };
        let mut expired = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| FsError::at("list", &folder)(error))?;
            let name = entry.file_name();
            let stamp = name.to_str().and_then(|name| name.split_once('-'));
            let is_copy = Path::new(&name)
                .extension()
                .is_some_and(|end| end == "session");
            if is_copy
                && stamp.is_some_and(|(stamp, _)| stamp.len() == 16 && stamp < oldest.as_str())
            {
                expired.push(entry.path());
            }
        }
        expired.sort();
        Ok(expired)
    }
}

fn removed(done: Deleted, copy: Option<PathBuf>, deleted: bool) -> Removed {
    Removed {
        session: done.session,
        bytes: done.bytes,
        copy,
        deleted,
    }
}

/// The id where it is fit for a name, else its digest: an id may hold anything.
fn file_word(session_id: &str) -> String {
    let is_plain = session_id.len() <= 100
        && session_id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_plain {
        return session_id.to_owned();
    }
    let digest = Sha256::digest(session_id.as_bytes());
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn free_name(path: PathBuf) -> PathBuf {
    let mut free = path.clone();
    let mut number = 2_u32;
    while free.exists() {
        free = path.with_extension(format!("{number}.session"));
        number += 1;
    }
    free
}
