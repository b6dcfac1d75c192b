//! An import undone, as a use case: what was written since, and the way back.
//!
//! It knows nothing of what the import took in: its caller says what lies where.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::error::InDb;
use super::open::finish_cut_off;
use super::{Importer, Service, ServiceError};
use crate::backup;
use crate::clock::Clock;
use crate::fs::{Layout, RootLock};
use crate::model::{MigrationRun, Tier};
use crate::store::global::migration;

pub use crate::backup::{Place, PlanAction, PlanStep, UndoJob, Verified};

/// Tables whose rows say what doctor, backup and leases did, and not what a person would miss.
const BOOKS: [&str; 6] = [
    "schema_meta",
    "state_leases",
    "agent_databases",
    "migration_runs",
    "migration_sources",
    "backup_runs",
];

/// Rows of each table, by tier.
pub type RowCounts = BTreeMap<String, BTreeMap<String, i64>>;

/// Rows of one table that came or went since an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowsSince {
    /// `global`, or `agent` and its id.
    pub tier: String,
    /// The table.
    pub table: String,
    /// Rows that were written: at least as many as there are more of, and those whose own times say so.
    pub written: i64,
    /// Rows that are gone.
    pub deleted: i64,
}

impl Importer {
    /// Rows of each table of every tier, but for the books; a tier that cannot be opened is left out.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when a table cannot be read.
    pub async fn rows(&self) -> Result<RowCounts, ServiceError> {
        let service = self.service();
        let mut found = RowCounts::new();
        found.insert(Tier::Global.to_string(), service.global().rows().await?);
        for agent in service.agents().await? {
            let id = agent.agent_id;
            if let Some(db) = service.agent_unless_broken(&id, false).await? {
                found.insert(Tier::Agent(id).to_string(), db.rows().await?);
            }
        }
        for tables in found.values_mut() {
            tables.retain(|table, rows| *rows > 0 && !BOOKS.contains(&table.as_str()));
        }
        Ok(found)
    }
}

impl Service {
    /// Rows that came or went since an instant, by tier and table; only tables of which some did.
    ///
    /// A row counts as written when its own times are later, and rows count that there are more of than there were:
    /// the greater of both, so that neither a clock that was set back nor a row changed in place hides one. What was
    /// changed in a table that keeps no times, and rows deleted for as many new ones there, leave no trace to count.
    ///
    /// * `then`: rows of that instant; `None` where nobody counted, and only times can tell.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when a table cannot be read. A tier that cannot be opened is named in the second list.
    pub async fn rows_since(
        &self,
        since_ms: i64,
        then: Option<&RowCounts>,
    ) -> Result<(Vec<RowsSince>, Vec<String>), ServiceError> {
        let mut found = Vec::new();
        let mut unreadable = Vec::new();
        let mut tiers = vec![Tier::Global];
        tiers.extend(
            self.agents()
                .await?
                .into_iter()
                .map(|it| Tier::Agent(it.agent_id)),
        );
        for tier in tiers {
            let name = tier.to_string();
            let db = match &tier {
                Tier::Global => Some(self.global().clone()),
                Tier::Agent(id) => self.agent_unless_broken(id, false).await?,
            };
            let Some(db) = db else {
                unreadable.push(name);
                continue;
            };
            let now = db.rows_since(since_ms).await?;
            let none = BTreeMap::new();
            let before = then.map(|then| then.get(&name).unwrap_or(&none));
            let gone = before.into_iter().flat_map(BTreeMap::keys);
            let tables: BTreeSet<&String> = now.keys().chain(gone).collect();
            for table in tables {
                let is = now.get(table).copied().unwrap_or_default();
                let was = before.map_or(is.rows, |before| before.get(table).copied().unwrap_or(0));
                let since = RowsSince {
                    tier: name.clone(),
                    table: table.clone(),
                    written: is.younger.max(is.rows - was).max(0),
                    deleted: (was - is.rows).max(0),
                };
                let is_told = since.written + since.deleted > 0;
                if is_told && !BOOKS.contains(&table.as_str()) {
                    found.push(since);
                }
            }
        }
        Ok((found, unreadable))
    }

    /// Every run, newest first, in the order in which they began, whatever the clock said.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn runs_in_order(&self) -> Result<Vec<MigrationRun>, ServiceError> {
        let mut conn = self.global().read().await?;
        migration::list_runs_in_order(&mut conn)
            .await
            .in_db(self.global())
    }
}

/// Ends a restore, or an undone import, that was cut off; does nothing where none was.
///
/// # Errors
///
/// [`ServiceError`] when somebody holds the root, or files cannot be moved.
pub async fn finish(layout: &Layout, clock: &Clock) -> Result<(), ServiceError> {
    finish_cut_off(layout, clock).await
}

/// The run whose undoing was cut off, if one was.
///
/// # Errors
///
/// [`ServiceError`] when the journal cannot be read.
pub fn unfinished(layout: &Layout) -> Result<Option<String>, ServiceError> {
    Ok(backup::unfinished_undo(layout)?)
}

/// Proves the archive of before, and says what undoing does to each database; writes nothing.
///
/// # Errors
///
/// [`ServiceError`] when the archive is damaged, newer or gone.
pub async fn plan(job: &UndoJob) -> Result<(Option<Verified>, Vec<PlanStep>), ServiceError> {
    let before = match &job.archive {
        Some(archive) => Some(backup::verify(archive, None).await?),
        None => None,
    };
    let steps = backup::plan_undo(job, before.as_ref().map(|it| &it.manifest))?;
    Ok((before, steps))
}

/// Undoes an import; gives the folder of what it had made.
///
/// * `lock`: the root's, taken before the plan was made.
///
/// # Errors
///
/// [`ServiceError`]. Before the swap begins nothing has changed; after that, whoever comes next ends it.
pub async fn carry_out(
    lock: RootLock,
    job: &UndoJob,
    before: Option<&Verified>,
) -> Result<std::path::PathBuf, ServiceError> {
    let aside = backup::undo(job, before).await?;
    if job.archive.is_none() {
        lock.remove(&job.layout)?;
    }
    Ok(aside)
}
