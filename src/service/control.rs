//! The control plane as those have it who work on it side by side: tasks of this process, and other processes with
//! connections of their own.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::{Service, ServiceError, open};
use crate::clock::Clock;
use crate::config::Config;
use crate::db::{Access, Db};
use crate::fs::{Layout, RootLock, SharedLock};
use crate::model::Tier;

/// The control plane's database, a clock and the configuration, shared by handles.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) db: Arc<Db>,
    pub(super) clock: Clock,
    pub(super) config: Config,
    /// Told of every message that is enqueued in this process.
    pub(super) enqueued: watch::Sender<()>,
    // Held for its drop.
    _hold: Option<SharedLock>,
}

impl Control {
    /// Of a root that a service has open.
    pub(super) fn of(service: &Service) -> Self {
        Self {
            db: Arc::clone(service.global()),
            clock: service.clock().clone(),
            config: (*service.config()).clone(),
            enqueued: service.enqueued().clone(),
            _hold: None,
        }
    }

    /// With a connection of its own, beside whoever holds the root. Where nobody does, restores and other writers of the
    /// whole root are kept out while this lives.
    pub(super) async fn open(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        let layout = Layout::new(root.to_owned());
        let hold = RootLock::shared_if_present(&layout)?;
        let config = Config::load(&layout.config_file())?.unwrap_or_default();
        let path = layout.global_db();
        if !path.exists() {
            return Err(ServiceError::NotInitialised {
                root: root.to_owned(),
            });
        }
        let access = Access::Write(open::write_access(&layout, &clock, &config));
        let db = Db::open(&path, &Tier::Global, access).await?;
        Ok(Self {
            db: Arc::new(db),
            clock,
            config,
            enqueued: watch::Sender::new(()),
            _hold: Some(hold),
        })
    }

    /// Finishes queued writes and closes the connection, where no other handle has it.
    pub(super) async fn close(self: Arc<Self>) {
        let Ok(control) = Arc::try_unwrap(self) else {
            return;
        };
        if let Ok(db) = Arc::try_unwrap(control.db) {
            db.close().await;
        }
    }
}
