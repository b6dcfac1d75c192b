//! A copy of a database, at rest and private: what it says of itself, and the few rows an archive
//! must read or clear.
//!
//! Those rows are the registry, leases and the record of backups. They are touched here and not in
//! `store`, because archives stand beside `store`, not above it, and because a copy has no writer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sqlx::{Connection, Row, SqliteConnection};

use super::check::{FULL_TEXT_INDEXES, check_connection, check_full_text, check_relations};
use super::error::{DbError, OpenError};
use super::open::Db;
use super::options::read_options;
use super::snapshot::open_snapshot;
use crate::model::{AgentId, AgentRecord, AgentStatus, BackupRun, CheckOutcome, Tier};

pub use self::erase::{Erase, Erased};

mod erase;

/// An open copy.
#[derive(Debug)]
pub struct DbCopy {
    path: PathBuf,
    conn: SqliteConnection,
}

impl DbCopy {
    /// Opens a copy that claims to be of `tier`, and proves that it says so itself.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when it is of another tier or agent, newer than this release, lacks a table,
    /// or cannot be read.
    pub async fn open(path: &Path, tier: &Tier) -> Result<Self, OpenError> {
        Ok(Self {
            path: path.to_owned(),
            conn: open_snapshot(path, tier).await?,
        })
    }

    /// Opens a copy of any origin, to read.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when it cannot be read.
    pub async fn open_foreign(path: &Path) -> Result<Self, OpenError> {
        let conn = SqliteConnection::connect_with(&read_options(path)).await;
        let conn = conn.map_err(|error| DbError::from(error).at(path))?;
        Ok(Self {
            path: path.to_owned(),
            conn,
        })
    }

    /// Its schema version.
    ///
    /// # Errors
    ///
    /// [`DbError`] when it cannot be read.
    pub async fn version(&mut self) -> Result<i64, DbError> {
        let path = self.path.clone();
        sqlx::query_scalar("SELECT user_version FROM pragma_user_version")
            .fetch_one(&mut self.conn)
            .await
            .map_err(|error| DbError::from(error).at(&path))
    }

    /// Rows of each ordinary table; virtual ones, their shadows and SQLite's own are left out.
    ///
    /// # Errors
    ///
    /// [`DbError`] when a table cannot be read.
    pub async fn rows(&mut self) -> Result<BTreeMap<String, i64>, DbError> {
        let rows = super::rows::count(&mut self.conn).await;
        rows.map_err(|error| error.at(&self.path))
    }

    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.conn
    }

    /// `PRAGMA integrity_check`, as [`check_connection`].
    ///
    /// # Errors
    ///
    /// [`DbError`] when the check itself cannot run.
    pub async fn integrity(&mut self) -> Result<CheckOutcome, DbError> {
        check_connection(&mut self.conn).await
    }

    /// `PRAGMA foreign_key_check`, as [`check_relations`].
    ///
    /// # Errors
    ///
    /// [`DbError`] when the check itself cannot run.
    pub async fn relations(&mut self) -> Result<CheckOutcome, DbError> {
        check_relations(&mut self.conn).await
    }

    /// Every full-text index against its rows, as [`check_full_text`].
    ///
    /// # Errors
    ///
    /// [`DbError`] when the check itself cannot run.
    pub async fn full_text(&mut self) -> Result<CheckOutcome, DbError> {
        check_full_text(&mut self.conn, &FULL_TEXT_INDEXES).await
    }

    /// The registry of a copied control plane: each agent and the path of its database.
    ///
    /// # Errors
    ///
    /// [`DbError`] when it cannot be read.
    pub async fn registry(&mut self) -> Result<Vec<(String, String)>, DbError> {
        let path = self.path.clone();
        registered(&mut self.conn)
            .await
            .map_err(|error| error.at(&path))
    }

    /// One agent's row of a copied control plane; `None` when it has none or this release cannot
    /// read it.
    ///
    /// # Errors
    ///
    /// [`DbError`] when the registry cannot be read.
    pub async fn agent(&mut self, id: &AgentId) -> Result<Option<AgentRecord>, DbError> {
        let row = sqlx::query(
            "SELECT path, schema_version, status, status_reason, created_at_ms, last_seen_at_ms, size_bytes
             FROM agent_databases WHERE agent_id = ?1",
        )
        .bind(id.as_str())
        .fetch_optional(&mut self.conn)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let Some(status) = AgentStatus::parse(row.try_get("status")?) else {
            return Ok(None);
        };
        Ok(Some(AgentRecord {
            agent_id: id.clone(),
            path: row.try_get("path")?,
            schema_version: row.try_get("schema_version")?,
            status,
            status_reason: row.try_get("status_reason")?,
            created_at_ms: row.try_get("created_at_ms")?,
            last_seen_at_ms: row.try_get("last_seen_at_ms")?,
            size_bytes: row.try_get("size_bytes")?,
        }))
    }

    /// Makes a copied control plane the one of a restored root, in one transaction.
    ///
    /// Leases go: they name processes of another machine or time. Runs that were under way end as
    /// interrupted, but for the one that wrote the archive, which is known to have ended well.
    ///
    /// * `archive_id`, `archive`, `bytes`: the run that wrote the archive, and the archive.
    /// * `restored`: the run to record.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails; nothing is changed then.
    pub async fn mark_restored(
        &mut self,
        archive_id: &str,
        archive: &str,
        bytes: i64,
        restored: &BackupRun,
    ) -> Result<(), DbError> {
        let mut tx = self.conn.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM state_leases")
            .execute(&mut *tx)
            .await?;
        sqlx::query(
            "UPDATE backup_runs SET status = 'completed', finished_at_ms = created_at_ms,
                 archive_path = ?2, archive_bytes = ?3
             WHERE id = ?1 AND status = 'running'",
        )
        .bind(archive_id)
        .bind(archive)
        .bind(bytes)
        .execute(&mut *tx)
        .await?;
        sqlx::query(
            "UPDATE backup_runs SET status = 'interrupted', finished_at_ms = ?1 WHERE status = 'running'",
        )
        .bind(restored.created_at_ms)
        .execute(&mut *tx)
        .await?;
        insert_run(&mut tx, restored).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes a copied agent's database that of `agent`.
    ///
    /// `schema_meta` is the only place in the tier that names its agent; keys of sessions are opaque.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails; nothing is changed then.
    pub async fn give_to(&mut self, agent: &AgentId) -> Result<(), DbError> {
        let mut tx = self.conn.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("UPDATE schema_meta SET agent_id = ?1 WHERE role = 'agent'")
            .bind(agent.as_str())
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(())
    }

    /// Closes the copy; no sidecar stays beside it.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails.
    pub async fn close(self) -> Result<(), DbError> {
        let closed = self.conn.close().await;
        closed.map_err(|error| DbError::from(error).at(&self.path))
    }
}

impl Db {
    /// The registry of a control plane: each agent and the path of its database, by name.
    ///
    /// # Errors
    ///
    /// [`DbError`] when it cannot be read.
    pub async fn registry(&self) -> Result<Vec<(String, String)>, DbError> {
        let mut conn = self.read().await?;
        registered(&mut conn)
            .await
            .map_err(|error| error.at(self.path()))
    }

    /// Registers the one agent that was restored, and records the run that did it.
    ///
    /// May be repeated: a restore that was cut off is finished by whoever comes next.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails.
    pub async fn put_restored(
        &self,
        agent: AgentRecord,
        restored: BackupRun,
    ) -> Result<(), DbError> {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "INSERT INTO agent_databases
                         (agent_id, path, schema_version, status, status_reason, created_at_ms, last_seen_at_ms, size_bytes)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                     ON CONFLICT (agent_id) DO UPDATE SET
                         path = excluded.path,
                         schema_version = excluded.schema_version,
                         status = excluded.status,
                         status_reason = excluded.status_reason,
                         last_seen_at_ms = excluded.last_seen_at_ms,
                         size_bytes = excluded.size_bytes",
                )
                .bind(agent.agent_id.as_str())
                .bind(&agent.path)
                .bind(agent.schema_version)
                .bind(agent.status.as_str())
                .bind(&agent.status_reason)
                .bind(agent.created_at_ms)
                .bind(agent.last_seen_at_ms)
                .bind(agent.size_bytes)
                .execute(&mut **tx)
                .await?;
                insert_run(tx, &restored).await
            })
        })
        .await
    }
}

pub(super) async fn registered(
    conn: &mut SqliteConnection,
) -> Result<Vec<(String, String)>, DbError> {
    Ok(
        sqlx::query_as("SELECT agent_id, path FROM agent_databases ORDER BY agent_id")
            .fetch_all(conn)
            .await?,
    )
}

async fn insert_run(conn: &mut SqliteConnection, run: &BackupRun) -> Result<(), DbError> {
    sqlx::query(
        "INSERT OR IGNORE INTO backup_runs
             (id, kind, created_at_ms, finished_at_ms, archive_path, archive_bytes, status, error, manifest_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .bind(&run.id)
    .bind(run.kind.as_str())
    .bind(run.created_at_ms)
    .bind(run.finished_at_ms)
    .bind(&run.archive_path)
    .bind(run.archive_bytes)
    .bind(run.status.as_str())
    .bind(&run.error)
    .bind(&run.manifest_json)
    .execute(conn)
    .await?;
    Ok(())
}
