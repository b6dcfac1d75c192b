//! The way in for rows from elsewhere: long transactions, receipts, the registry.
//!
//! It knows nothing of where rows come from; its caller reads that.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Service, ServiceError};
use crate::db::{BulkTx, Db, Reader, WriteTx};
use crate::fs::process;
use crate::model::{
    AgentId, AgentRecord, AgentStatus, BackupRun, KindCount, MigrationRun, SourceReceipt, Tier,
};
use crate::store::agent::{memory, memory_index, search, session};
use crate::store::global::{backup, lease, migration};

/// Lease scope that shows who owns a root.
const OWNER_SCOPE: &str = "gateway_locks";

/// A root open for import; it holds the root against everybody else.
#[derive(Debug)]
pub struct Importer {
    service: Service,
    // One share more for each open transaction.
    open: Arc<()>,
}

/// One long, durable transaction on one tier.
#[derive(Debug)]
pub struct ImportTx {
    tx: BulkTx,
    _open: Arc<()>,
}

impl ImportTx {
    /// The transaction, for store functions.
    pub fn tx(&mut self) -> WriteTx<'_> {
        self.tx.tx()
    }

    /// Commits; once this returns the rows are on disk.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite cannot commit; nothing of the transaction remains.
    pub async fn commit(self) -> Result<(), ServiceError> {
        Ok(self.tx.commit().await?)
    }
}

impl Importer {
    /// Imports into the root of `service`, which must be open for writing.
    #[must_use]
    pub fn new(service: Service) -> Self {
        Self {
            service,
            open: Arc::new(()),
        }
    }

    /// The service underneath.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Shows in the control plane who holds the root, for the length of a run.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn show_owner(&self, owner: &str) -> Result<(), ServiceError> {
        let now_ms = self.service.clock().now_ms();
        let row = lease::Lease {
            scope: OWNER_SCOPE.to_owned(),
            lease_key: "root".to_owned(),
            owner: owner.to_owned(),
            process: Some(process::own()),
            heartbeat_at_ms: Some(now_ms),
            created_at_ms: now_ms,
            ..lease::Lease::default()
        };
        self.write_global(move |tx| Box::pin(async move { Ok(lease::replace(tx, &row).await?) }))
            .await
    }

    /// Takes that back.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn hide_owner(&self, owner: &str) -> Result<(), ServiceError> {
        let owner = owner.to_owned();
        self.write_global(move |tx| {
            Box::pin(async move {
                lease::release(tx, OWNER_SCOPE, "root", &owner).await?;
                Ok(())
            })
        })
        .await
    }

    /// Registers agents and makes their databases where they are missing. An empty one is open for being filled from
    /// then on.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when a database cannot be made.
    pub async fn ensure_agent(
        &self,
        id: &AgentId,
        status: AgentStatus,
        reason: Option<&str>,
    ) -> Result<(), ServiceError> {
        let db = self.service.ensure_agent(id, status, reason).await?;
        let mut conn = db.read().await?;
        let is_empty =
            session::count(&mut conn).await?.0 == 0 && memory::count(&mut conn).await? == 0;
        drop((conn, db));
        if is_empty {
            self.service.load_agent(id).await;
        }
        Ok(())
    }

    /// All agents of the registry.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn agents(&self) -> Result<Vec<AgentRecord>, ServiceError> {
        self.service.agents().await
    }

    /// Begins a long transaction on one tier.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the tier cannot be opened or is held.
    pub async fn begin(&self, tier: &Tier) -> Result<ImportTx, ServiceError> {
        let db = match tier {
            Tier::Global => self.service.global().clone(),
            Tier::Agent(id) => self.service.agent(id).await?,
        };
        let others = Arc::strong_count(&self.open) - 1;
        Ok(ImportTx {
            tx: db.begin_bulk_beside(others).await?,
            _open: Arc::clone(&self.open),
        })
    }

    /// A connection to read what is committed on one tier. While a transaction is open on an agent's, it may have to
    /// wait for that.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the tier cannot be opened.
    pub async fn read(&self, tier: &Tier) -> Result<Reader, ServiceError> {
        let db = match tier {
            Tier::Global => self.service.global().clone(),
            Tier::Agent(id) => self.service.agent(id).await?,
        };
        Ok(db.read().await?)
    }

    /// Records that a run begins.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn insert_run(&self, run: &MigrationRun) -> Result<(), ServiceError> {
        let run = run.clone();
        self.write_global(move |tx| {
            Box::pin(async move { Ok(migration::insert_run(tx, &run).await?) })
        })
        .await
    }

    /// Brings a run's record up to date.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn update_run(&self, run: &MigrationRun) -> Result<(), ServiceError> {
        let run = run.clone();
        self.write_global(move |tx| {
            Box::pin(async move { Ok(migration::update_run(tx, &run).await?) })
        })
        .await
    }

    /// Writes how a run ended and takes back who held the root, in one transaction.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn finish_run(&self, run: &MigrationRun, owner: &str) -> Result<(), ServiceError> {
        let (run, owner) = (run.clone(), owner.to_owned());
        self.write_global(move |tx| {
            Box::pin(async move {
                migration::update_run(tx, &run).await?;
                lease::release(tx, OWNER_SCOPE, "root", &owner).await?;
                Ok(())
            })
        })
        .await
    }

    /// Records an archive made for the import, once.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn record_backup(&self, run: BackupRun) -> Result<(), ServiceError> {
        self.write_global(move |tx| {
            Box::pin(async move {
                backup::forget(tx, &run.id).await?;
                Ok(backup::insert(tx, &run).await?)
            })
        })
        .await
    }

    /// Writes receipts, all in one transaction, and gives them back.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails or a receipt does not balance.
    pub async fn put_receipts(
        &self,
        receipts: Vec<SourceReceipt>,
    ) -> Result<Vec<SourceReceipt>, ServiceError> {
        let global = self.service.global();
        global
            .write(move |tx| {
                Box::pin(async move {
                    for receipt in &receipts {
                        migration::upsert_source(tx, receipt).await?;
                    }
                    Ok(receipts)
                })
            })
            .await
    }

    /// Receipts of one run whose sources are proven, or copies, and not moved aside yet.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn unmoved(&self, run_id: &str) -> Result<Vec<SourceReceipt>, ServiceError> {
        let mut conn = self.service.global().read().await?;
        Ok(migration::list_unmoved(&mut conn, run_id).await?)
    }

    /// All records of one run's sources together.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn total_of(&self, run_id: &str) -> Result<KindCount, ServiceError> {
        let mut conn = self.service.global().read().await?;
        Ok(migration::total_of(&mut conn, run_id).await?)
    }

    /// Agents whose full-text indexes lack rows, and how many, or were being built when a run was cut off; one whose
    /// database cannot be opened is left out.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when a tier cannot be read.
    pub async fn unindexed(&self) -> Result<BTreeMap<AgentId, u64>, ServiceError> {
        let mut found = BTreeMap::new();
        for agent in self.agents().await? {
            let Some(db) = self
                .service
                .agent_unless_broken(&agent.agent_id, false)
                .await?
            else {
                continue;
            };
            let mut conn = db.read().await?;
            // More indexed than there are is behind too.
            let behind = search::pending(&mut conn).await?.unsigned_abs()
                + memory::pending(&mut conn).await?.unsigned_abs();
            if behind != 0 || search::is_bulk(&mut conn).await? {
                found.insert(agent.agent_id, behind);
            }
        }
        Ok(found)
    }

    /// Completes one agent's full-text indexes, in slices.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails; what is indexed stays indexed.
    pub async fn index(&self, id: &AgentId) -> Result<(), ServiceError> {
        self.index_with(id, &|_| {}).await
    }

    /// The same for who wants to know how far it is.
    ///
    /// * `count`: hears the rows of each slice.
    ///
    /// # Errors
    ///
    /// As [`Importer::index`].
    pub async fn index_with(
        &self,
        id: &AgentId,
        count: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ServiceError> {
        let db = self.service.agent(id).await?;
        set_bulk(&db, true).await?;
        loop {
            let taken = db
                .write(|tx| {
                    Box::pin(
                        async move { search::index_slice(tx).await.map_err(ServiceError::from) },
                    )
                })
                .await?;
            if taken == 0 {
                break;
            }
            count(taken);
        }
        let mut conn = db.read().await?;
        let behind = memory::pending(&mut conn).await?;
        drop(conn);
        if behind != 0 {
            db.write(|tx| {
                Box::pin(async move { memory::rebuild(tx).await.map_err(ServiceError::from) })
            })
            .await?;
            count(behind.unsigned_abs());
        }
        set_bulk(&db, false).await
    }

    /// Builds one agent's full-text indexes anew from its rows.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails; the old indexes then remain.
    pub async fn rebuild(&self, id: &AgentId) -> Result<(), ServiceError> {
        let db = self.service.agent(id).await?;
        db.write(|tx| {
            Box::pin(async move {
                search::rebuild(tx).await?;
                memory::rebuild(tx).await?;
                memory_index::rebuild(tx).await.map_err(ServiceError::from)
            })
        })
        .await
    }

    async fn write_global<F>(&self, work: F) -> Result<(), ServiceError>
    where
        F: for<'t, 'c> FnOnce(
                &'t mut WriteTx<'c>,
            ) -> crate::db::BoxFuture<'t, Result<(), ServiceError>>
            + Send
            + 'static,
    {
        self.service.global().write(work).await
    }

    /// Ends the import: closes every tier and lets the root go.
    pub async fn close(self) {
        self.service.close().await;
    }
}

async fn set_bulk(db: &Db, is_bulk: bool) -> Result<(), ServiceError> {
    db.write(move |tx| {
        Box::pin(async move {
            search::set_bulk(tx, is_bulk)
                .await
                .map_err(ServiceError::from)
        })
    })
    .await
}
