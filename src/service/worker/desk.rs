//! The control plane over connections of one's own, beside whoever holds the root.

use std::path::Path;
use std::sync::Arc;

use crate::clock::Clock;
use crate::config::Config;
use crate::db::{Access, Db};
use crate::fs::{Layout, RootLock, SharedLock};
use crate::model::Tier;
use crate::service::task_ledger::TaskLedger;
use crate::service::{Leases, ServiceError, open};

/// Tasks and leases of a root that somebody else may hold.
///
/// Call [`TaskDesk::close`] at the end.
#[derive(Debug)]
pub struct TaskDesk {
    clock: Clock,
    global: Arc<Db>,
    // Held for its drop: where nobody holds the root, restores and other writers of the whole root are kept out.
    _hold: SharedLock,
}

impl TaskDesk {
    /// Opens the control plane of an existing root.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when there is none, or it cannot be opened.
    pub async fn open(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        let layout = Layout::new(root.to_owned());
        let hold = RootLock::shared_if_present(&layout)?;
        if !layout.global_db().exists() {
            return Err(ServiceError::NotInitialised {
                root: root.to_owned(),
            });
        }
        let config = Config::load(&layout.config_file())?.unwrap_or_default();
        let access = Access::Write(open::write_access(&layout, &clock, &config));
        let global = Db::open(&layout.global_db(), &Tier::Global, access).await?;
        Ok(Self {
            clock,
            global: Arc::new(global),
            _hold: hold,
        })
    }

    /// The tasks of the root, for the operator.
    #[must_use]
    pub fn tasks(&self) -> TaskLedger {
        TaskLedger::new(Arc::clone(&self.global), self.clock.clone())
    }

    /// The leases of the root.
    #[must_use]
    pub fn leases(&self) -> Leases {
        Leases::new(Arc::clone(&self.global), self.clock.clone())
    }

    /// Finishes queued writes and closes its connection.
    pub async fn close(self) {
        if let Ok(db) = Arc::try_unwrap(self.global) {
            db.close().await;
        }
    }
}
