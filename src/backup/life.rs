//! Steps in an agent's life that span its files and both tiers: renamed, deleted, restored.
//!
//! Each is written down in the journal of restores before its first change and taken to its end by whoever opens the root
//! next. Every part may be repeated. Files come first where an agent changes its place, rows first where it goes: rows
//! never name what is not there.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::BackupError;
use super::journal::{Journal, Phase, exists, staged};
use super::names;
use super::restore::roll_forward;
use crate::db::{
    Access, Db, DbError, Durability, Release, TaskMention, WriteAccess, give_tier, put_belongings,
};
use crate::fs::{FsError, Layout, atomic, fault};
use crate::model::{AgentId, Tier};

/// A step that the journal keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub(super) enum Life {
    /// An agent gets another name.
    Rename {
        /// The name it has.
        old: AgentId,
        /// The name it gets.
        new: AgentId,
    },
    /// An agent goes; an archive has it.
    Delete {
        /// The agent.
        agent: AgentId,
    },
    /// An agent comes back: its rows wait in the staging folder.
    Restore {
        /// The agent.
        agent: AgentId,
        /// Tasks of others that named it.
        mentions: Vec<TaskMention>,
    },
}

impl Life {
    /// Takes the step to its end; may be repeated from any point.
    pub(super) async fn finish(
        self,
        layout: &Layout,
        id: &str,
        now_ms: i64,
    ) -> Result<(), BackupError> {
        let access = access(layout, now_ms);
        match self {
            Self::Rename { old, new } => finish_rename(layout, &old, &new, access).await,
            Self::Delete { agent } => finish_delete(layout, &agent, access).await,
            Self::Restore { agent, mentions } => {
                let rows = staged(layout, id, names::GLOBAL_DB);
                // The staging folder goes once all is done: a kill right after that left the journal alone.
                if exists(&rows) {
                    // Whoever ends it may be of a later release than who began it: both are of its schema then.
                    for path in [&layout.global_db(), &rows] {
                        let access = Access::Write(access.clone());
                        Db::open(path, &Tier::Global, access).await?.close().await;
                    }
                    put_belongings(&layout.global_db(), &rows, &agent, &mentions).await?;
                }
                fault("revive.rows");
                Ok(())
            }
        }
    }
}

/// Gives an agent another name: its folder, its database, and everything that the control plane has of it.
///
/// The caller holds the root's lock, has [`super::recover`]ed it, has every database closed, and has made sure that the
/// name is free and nobody uses the agent.
///
/// # Errors
///
/// [`BackupError`]. Where the folder cannot be moved nothing has changed; after that, whoever comes next ends it.
pub async fn rename(
    layout: &Layout,
    id: &str,
    old: &AgentId,
    new: &AgentId,
    now_ms: i64,
) -> Result<(), BackupError> {
    let life = Life::Rename {
        old: old.clone(),
        new: new.clone(),
    };
    let journal = begin(layout, id, life)?;
    fault("rename.journalled");
    if let Err(error) = move_folder(
        &layout.agent_dir(old.as_str()),
        &layout.agent_dir(new.as_str()),
    ) {
        // As it was: nothing else has been touched.
        if exists(&layout.agent_dir(old.as_str())) && !exists(&layout.agent_dir(new.as_str())) {
            journal.clear(layout)?;
        }
        return Err(error);
    }
    roll_forward(layout, journal, now_ms).await
}

/// Takes an agent out of the root: its rows, its folder, the copies of its deleted sessions.
///
/// The caller does what [`rename`]'s does, and has an archive of the agent.
///
/// # Errors
///
/// [`BackupError`]. Whoever comes next ends what was begun.
pub async fn forget(
    layout: &Layout,
    id: &str,
    agent: &AgentId,
    now_ms: i64,
) -> Result<(), BackupError> {
    let life = Life::Delete {
        agent: agent.clone(),
    };
    let journal = begin(layout, id, life)?;
    fault("delete.journalled");
    roll_forward(layout, journal, now_ms).await
}

fn begin(layout: &Layout, id: &str, life: Life) -> Result<Journal, BackupError> {
    let mut journal = Journal::living(id, life);
    journal.phase = Phase::Swapping;
    journal.write(layout)?;
    Ok(journal)
}

/// Why an agent's folder can be neither moved nor removed as a whole, if so.
#[must_use]
pub fn odd_place(layout: &Layout, agent: &AgentId) -> Option<&'static str> {
    let folder = layout.agent_dir(agent.as_str());
    let meta = match folder.symlink_metadata() {
        Ok(meta) => meta,
        Err(_) => return Some("its folder is not there"),
    };
    if meta.is_symlink() {
        return Some("its folder is a link");
    }
    let above = std::fs::metadata(layout.agents_dir());
    match above.is_ok_and(|above| above.dev() == meta.dev()) {
        true => None,
        false => Some("its folder is a mount point"),
    }
}

async fn finish_rename(
    layout: &Layout,
    old: &AgentId,
    new: &AgentId,
    access: WriteAccess,
) -> Result<(), BackupError> {
    move_folder(
        &layout.agent_dir(old.as_str()),
        &layout.agent_dir(new.as_str()),
    )?;
    fault("rename.moved");
    let deleted = layout.deleted_dir(old.as_str());
    if exists(&deleted) {
        move_folder(&deleted, &layout.deleted_dir(new.as_str()))?;
    }
    fault("rename.copies");
    let database = layout.agent_db(new.as_str());
    give_tier(&database, old, new, access.clone()).await?;
    fault("rename.tier");
    let path = Layout::agent_db_relative(new.as_str());
    let path = path.to_string_lossy().into_owned();
    let (old, new) = (old.clone(), new.clone());
    in_global(layout, access, async move |global| {
        global.rename_agent(&old, &new, path).await
    })
    .await?;
    fault("rename.rows");
    Ok(())
}

async fn finish_delete(
    layout: &Layout,
    agent: &AgentId,
    access: WriteAccess,
) -> Result<(), BackupError> {
    let name = agent.clone();
    in_global(layout, access, async move |global| {
        global.forget_agent(&name).await
    })
    .await?;
    fault("delete.rows");
    for folder in [
        layout.agent_dir(agent.as_str()),
        layout.deleted_dir(agent.as_str()),
    ] {
        remove_folder(folder).await?;
        fault("delete.folder");
    }
    Ok(())
}

/// Moves a folder, unless it was moved already.
fn move_folder(from: &Path, to: &Path) -> Result<(), BackupError> {
    match (exists(from), exists(to)) {
        (false, true) => Ok(()),
        _ => Ok(atomic::rename_synced(from, to)?),
    }
}

/// Removes a folder and all below it, off the runtime's threads.
async fn remove_folder(folder: PathBuf) -> Result<(), BackupError> {
    let removed = tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&folder) {
        Ok(()) => folder.parent().map_or(Ok(()), atomic::sync_dir),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FsError::at("remove", &folder)(error)),
    });
    Ok(removed.await.map_err(|_| BackupError::Stopped)??)
}

async fn in_global(
    layout: &Layout,
    access: WriteAccess,
    work: impl AsyncFnOnce(&Db) -> Result<(), DbError>,
) -> Result<(), BackupError> {
    let global = Db::open(&layout.global_db(), &Tier::Global, Access::Write(access)).await?;
    let done = work(&global).await;
    global.close().await;
    Ok(done?)
}

pub(super) fn access(layout: &Layout, now_ms: i64) -> WriteAccess {
    WriteAccess {
        durability: Durability::Full,
        release: Release {
            app_version: env!("CARGO_PKG_VERSION"),
            now_ms,
        },
        migrate_lock: layout.migrate_lock(),
    }
}
