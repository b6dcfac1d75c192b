//! Where the disk went.

mod kinds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Service, ServiceError};
use crate::db::{Db, DbError};
use crate::fs::measure::{Measured, measure};
use crate::fs::{sidecars, space};
use crate::model::{AgentId, FolderStats, KindStats, RootStats, TableStats, Tier, TierStats};

impl Service {
    /// Where the disk went: databases by table and kind, what is free in them, and the files beside them.
    ///
    /// Every page of every database is looked at. A database that cannot be read is named in the answer.
    ///
    /// * `agent`: only its database; folders are left out then.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when there is no such agent, or the file system cannot be asked.
    pub async fn stats(&self, agent: Option<&AgentId>) -> Result<RootStats, ServiceError> {
        let mut tiers = Vec::new();
        if agent.is_none() {
            tiers.push(self.tier_stats(&Tier::Global).await?);
        }
        for record in self.agents_or(agent).await? {
            tiers.push(self.tier_stats(&Tier::Agent(record.agent_id)).await?);
        }
        let folders = match agent {
            None => self.folders().await?,
            Some(_) => Vec::new(),
        };
        let total = measured(self.root().to_owned()).await?;
        Ok(RootStats {
            root: self.root().display().to_string(),
            total_bytes: total.bytes,
            available_bytes: space::free_bytes(self.root())?,
            kinds: by_kind(&tiers),
            tiers,
            folders,
        })
    }

    async fn tier_stats(&self, tier: &Tier) -> Result<TierStats, ServiceError> {
        let (path, workspace) = match tier {
            Tier::Global => (self.layout().global_db(), None),
            Tier::Agent(id) => (
                self.layout().agent_db(id.as_str()),
                Some(self.layout().workspace(id.as_str())),
            ),
        };
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        let [wal, _, _] = sidecars(&path);
        let workspace = match workspace {
            Some(folder) => measured(folder).await?,
            None => Measured::default(),
        };
        let mut stats = TierStats {
            tier: tier.to_string(),
            path: self.relative(&path),
            file_bytes: size(&path),
            wal_bytes: size(&wal),
            free_bytes: 0,
            workspace_bytes: workspace.bytes,
            tables: Vec::new(),
            error: None,
        };
        let db = match tier {
            Tier::Global => Ok(self.global().clone()),
            Tier::Agent(id) => self.agent(id).await,
        };
        let read = match db {
            Ok(db) => fill(&db, &mut stats).await.map_err(ServiceError::from),
            Err(error) => Err(error),
        };
        stats.error = read.err().map(|error| error.to_string());
        Ok(stats)
    }

    /// Files beside the databases, those without any left out.
    async fn folders(&self) -> Result<Vec<FolderStats>, ServiceError> {
        let layout = self.layout();
        let mut found = Vec::new();
        for (what, path) in [
            ("archives", layout.backups_dir()),
            ("old files of imports", layout.migrated_dir()),
            ("what imports could not read", layout.quarantines_dir()),
            ("old files of restores", layout.restored_dir()),
            ("what undone imports had made", layout.undone_dir()),
            ("copies of deleted sessions", layout.all_deleted_dir()),
        ] {
            let measured = measured(path.clone()).await?;
            if measured != Measured::default() {
                found.push(FolderStats {
                    what: what.to_owned(),
                    path: self.relative(&path),
                    files: measured.files,
                    bytes: measured.bytes,
                    unreadable: measured.unreadable,
                });
            }
        }
        Ok(found)
    }

    fn relative(&self, path: &Path) -> String {
        let relative = path.strip_prefix(self.root()).unwrap_or(path);
        relative.display().to_string()
    }
}

async fn fill(db: &Db, stats: &mut TierStats) -> Result<(), DbError> {
    stats.free_bytes = db.pages().await?.free_bytes();
    for (table, size) in db.table_sizes().await? {
        stats.tables.push(TableStats {
            kind: kinds::kind_of(&table).to_owned(),
            table,
            bytes: size.row_bytes + size.index_bytes,
            index_bytes: size.index_bytes,
            unused_bytes: size.unused_bytes,
        });
    }
    stats
        .tables
        .sort_by_key(|table| std::cmp::Reverse(table.bytes));
    Ok(())
}

fn by_kind(tiers: &[TierStats]) -> Vec<KindStats> {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for table in tiers.iter().flat_map(|tier| &tier.tables) {
        *kinds.entry(&table.kind).or_default() += table.bytes;
    }
    let mut kinds: Vec<_> = kinds
        .into_iter()
        .map(|(kind, bytes)| KindStats {
            kind: kind.to_owned(),
            bytes,
        })
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.bytes));
    kinds
}

async fn measured(path: PathBuf) -> Result<Measured, ServiceError> {
    let done = tokio::task::spawn_blocking(move || measure(&path)).await;
    done.map_err(|_| DbError::stopped().into())
}
