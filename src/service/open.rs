//! A root and its tiers: who may open it, for what, and how many agents at once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use super::ServiceError;
use super::changes::Changes;
use super::error::InDb;
use super::tool_state::ToolStates;
use super::turn::Turns;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::db::{
    Access, Db, DbErrorKind, Durability, OpenError, Release, WriteAccess, known_version,
};
use crate::fs::{Holder, HolderKind, Layout, RootLock, SharedLock};
use crate::model::{AgentId, AgentRecord, AgentStatus, Tier};
use crate::store::global::agent;

mod daemon;

/// Agents kept open at once; each costs a MiB, a thread and three descriptors a connection.
const MAX_OPEN_AGENTS: usize = 28;

/// How long a command waits for another command to finish: longer than a large migration of one
/// tier, shorter than a person's patience.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Release name stamped on schemas.
pub(super) const APP_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A root, opened to look or to write.
///
/// Call [`Service::close`] at the end: it folds write-ahead logs into their databases.
#[derive(Debug)]
pub struct Service {
    layout: Layout,
    clock: Clock,
    config: RwLock<Arc<Config>>,
    // Counts up whenever the configuration is read anew.
    tool_states: ToolStates,
    hold: Hold,
    tiers: Tiers,
    changes: Changes,
    turns: Turns,
    enqueued: watch::Sender<()>,
}

/// The right under which a root is open. Held for its drop.
#[derive(Debug)]
pub(super) enum Hold {
    /// Looks; writers are kept out where the lock could be had.
    Look(SharedLock),
    /// Writes; everybody else is kept out.
    Write(
        #[expect(dead_code, reason = "held until the service closes")] RootLock,
        HolderKind,
    ),
}

/// The open databases of a root.
#[derive(Debug)]
pub struct Tiers {
    global: Arc<Db>,
    // Last used last.
    agents: Mutex<Vec<(AgentId, Arc<Db>)>>,
    // Agents whose databases are being filled.
    loading: Mutex<BTreeSet<AgentId>>,
}

impl Service {
    /// Makes a root: its state folder and an empty control plane. Says whether there was none.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when another process holds the root or the folder cannot be made.
    pub async fn init(
        root: &Path,
        clock: Clock,
        kind: HolderKind,
    ) -> Result<(Self, bool), ServiceError> {
        let layout = Layout::new(root.to_owned());
        let is_new = !is_initialised(&layout);
        let lock = RootLock::exclusive(
            &layout,
            Holder {
                kind,
                since_ms: clock.now_ms(),
            },
            LOCK_WAIT,
        )?;
        let service = Self::init_under(lock, kind, layout, clock).await?;
        Ok((service, is_new))
    }

    async fn init_under(
        lock: RootLock,
        kind: HolderKind,
        layout: Layout,
        clock: Clock,
    ) -> Result<Self, ServiceError> {
        crate::backup::recover(&layout, &clock).await?;
        let config = Config::load(&layout.config_file())?.unwrap_or_default();
        let access = write_access(&layout, &clock, &config);
        let global = Db::open_or_create(&layout.global_db(), &Tier::Global, access).await?;
        let hold = Hold::Write(lock, kind);
        Ok(Self::with(layout, clock, config, hold, global))
    }

    /// Opens an existing root for writing; an older control plane is migrated.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotInitialised`] when there is none, [`ServiceError::Lock`] when somebody
    /// holds it, [`ServiceError::Open`] when its control plane is newer, damaged or foreign.
    pub async fn open(root: &Path, clock: Clock, kind: HolderKind) -> Result<Self, ServiceError> {
        let layout = Layout::new(root.to_owned());
        // It may be an import whose undoing leaves no state.
        finish_cut_off(&layout, &clock).await?;
        if !is_initialised(&layout) {
            return Err(ServiceError::NotInitialised {
                root: root.to_owned(),
            });
        }
        Self::init(root, clock, kind)
            .await
            .map(|(service, _)| service)
    }

    /// Opens an existing root to look: nothing is created, migrated or checkpointed.
    ///
    /// # Errors
    ///
    /// As [`Service::open`]. A writer elsewhere does not keep a look out.
    pub async fn look(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        let layout = Layout::new(root.to_owned());
        finish_cut_off(&layout, &clock).await?;
        if !is_initialised(&layout) {
            return Err(ServiceError::NotInitialised {
                root: root.to_owned(),
            });
        }
        let lock = RootLock::shared_if_present(&layout)?;
        Self::look_with(layout, clock, lock).await
    }

    /// The same for who holds the root: nobody writes, so nothing is left beside the databases either.
    ///
    /// # Errors
    ///
    /// As [`Service::look`].
    pub async fn look_under(
        _lock: &RootLock,
        root: &Path,
        clock: Clock,
    ) -> Result<Self, ServiceError> {
        let layout = Layout::new(root.to_owned());
        if !is_initialised(&layout) {
            return Err(ServiceError::NotInitialised {
                root: root.to_owned(),
            });
        }
        Self::look_with(layout, clock, SharedLock::NoFile).await
    }

    async fn look_with(
        layout: Layout,
        clock: Clock,
        lock: SharedLock,
    ) -> Result<Self, ServiceError> {
        // A slip in the configuration must not hide the state: it is told, and defaults stand in.
        let config =
            Config::load(&layout.config_file()).map_or_else(unreadable, Option::unwrap_or_default);
        let is_at_rest = lock.is_at_rest();
        let global = Db::open(
            &layout.global_db(),
            &Tier::Global,
            Access::Look { is_at_rest },
        )
        .await;
        let global = match global {
            // Whoever was to make it was cut off; the next writer does.
            Err(OpenError::Empty { .. }) => {
                return Err(ServiceError::NotInitialised {
                    root: layout.root().to_owned(),
                });
            }
            global => global?,
        };
        Ok(Self::with(layout, clock, config, Hold::Look(lock), global))
    }

    fn with(layout: Layout, clock: Clock, config: Config, hold: Hold, global: Db) -> Self {
        let tiers = Tiers {
            global: Arc::new(global),
            agents: Mutex::new(Vec::new()),
            loading: Mutex::new(BTreeSet::new()),
        };
        Self {
            layout,
            clock,
            config: RwLock::new(Arc::new(config)),
            tool_states: ToolStates::new(),
            hold,
            tiers,
            changes: Changes::new(),
            turns: Turns::default(),
            enqueued: watch::Sender::new(()),
        }
    }

    /// The root folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.layout.root()
    }

    /// Where things lie.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The clock it was opened with.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The configuration as it was when last read.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        // Nobody panics while holding it: there is nothing to be left half done.
        let config = self
            .config
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Arc::clone(&config)
    }

    /// Which reading of the configuration this is, from 1; what was derived under an earlier one is void.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.tool_states.generation()
    }

    /// Reads the configuration anew and gives its generation; one that cannot be read changes nothing.
    ///
    /// How tiers are opened is decided when they are: durability holds for those opened from now on.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Config`] when the file cannot be read or is not TOML.
    pub fn reload(&self) -> Result<u64, ServiceError> {
        let config = Config::load(&self.layout.config_file())?.unwrap_or_default();
        let mut held = self
            .config
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *held = Arc::new(config);
        Ok(self.tool_states.next_generation())
    }

    /// What tools keep in memory.
    pub(super) fn tool_states(&self) -> &ToolStates {
        &self.tool_states
    }

    /// What was committed, for whoever listens.
    pub(super) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The turns of this process.
    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Told of every message that is enqueued in this process.
    pub(super) fn enqueued(&self) -> &watch::Sender<()> {
        &self.enqueued
    }

    /// Whether it was opened for writing: then nobody else writes the root.
    pub(super) fn is_writer(&self) -> bool {
        matches!(self.hold, Hold::Write(..))
    }

    /// The control plane.
    #[must_use]
    pub(crate) fn global(&self) -> &Arc<Db> {
        &self.tiers.global
    }

    /// Text of the lock of a writer that lives elsewhere, while looking.
    pub(crate) fn writer_elsewhere(&self) -> Option<Option<&crate::fs::LockText>> {
        match &self.hold {
            Hold::Look(SharedLock::WriterAlive(text)) => Some(text.as_ref()),
            Hold::Look(_) | Hold::Write(..) => None,
        }
    }

    /// Whether this is the daemon's own.
    pub(super) fn is_daemon(&self) -> bool {
        matches!(self.hold, Hold::Write(_, HolderKind::Daemon))
    }

    fn agent_access(&self) -> Access {
        match &self.hold {
            Hold::Look(lock) => Access::Look {
                is_at_rest: lock.is_at_rest(),
            },
            Hold::Write(..) => {
                Access::Write(write_access(&self.layout, &self.clock, &self.config()))
            }
        }
    }

    /// An agent's database, opened when first asked for.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError::Open`] when its
    /// database cannot be opened; other agents are not touched by that.
    pub(crate) async fn agent(&self, id: &AgentId) -> Result<Arc<Db>, ServiceError> {
        let mut open = self.tiers.agents.lock().await;
        if let Some(found) = open.iter().position(|(agent, _)| agent == id) {
            let entry = open.remove(found);
            let db = Arc::clone(&entry.1);
            open.push(entry);
            return Ok(db);
        }
        let path = self.agent_path(id).await?;
        let db = Arc::new(self.open_agent(&path, id).await?);
        make_room(&mut open).await;
        open.push((id.clone(), Arc::clone(&db)));
        Ok(db)
    }

    async fn open_agent(&self, path: &Path, id: &AgentId) -> Result<Db, OpenError> {
        let tier = Tier::Agent(id.clone());
        if self.tiers.loading.lock().await.contains(id) {
            let access = write_access(&self.layout, &self.clock, &self.config());
            match Db::open(path, &tier, Access::Load(access)).await {
                // Somebody looks at it: it is filled all the same, at a higher price.
                Err(OpenError::Db(error)) if error.kind() == DbErrorKind::Busy => {}
                opened => return opened,
            }
        }
        Db::open(path, &tier, self.agent_access()).await
    }

    /// From now on an agent's database, which must be empty, is open for being filled: see [`Access::Load`].
    pub(crate) async fn load_agent(&self, id: &AgentId) {
        let mut open = self.tiers.agents.lock().await;
        self.tiers.loading.lock().await.insert(id.clone());
        if let Some(found) = open.iter().position(|(agent, _)| agent == id) {
            let (_, db) = open.remove(found);
            close(db).await;
        }
    }

    async fn agent_path(&self, id: &AgentId) -> Result<PathBuf, ServiceError> {
        let mut conn = self.global().read().await?;
        let record = agent::get(&mut conn, id).await.in_db(self.global())?;
        let record = record.ok_or_else(|| ServiceError::NotFound {
            what: "agent",
            name: id.to_string(),
        })?;
        Ok(self.layout.root().join(record.path))
    }

    /// The same for a listing over several agents: one that cannot be opened is left out and named,
    /// unless it is the only one asked for.
    pub(crate) async fn agent_unless_broken(
        &self,
        id: &AgentId,
        is_only: bool,
    ) -> Result<Option<Arc<Db>>, ServiceError> {
        match self.agent(id).await {
            Ok(db) => Ok(Some(db)),
            Err(error @ ServiceError::Open(_)) if !is_only => {
                tracing::warn!(agent = %id, %error, "left out");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes an agent's database and registers it, or brings its row up to date.
    ///
    /// File first, row second: a rerun after a crash between them finishes.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the file cannot be made or the registry not written.
    pub(crate) async fn ensure_agent(
        &self,
        id: &AgentId,
        status: AgentStatus,
        reason: Option<&str>,
    ) -> Result<Arc<Db>, ServiceError> {
        let mut open = self.tiers.agents.lock().await;
        let db = match open.iter().find(|(agent, _)| agent == id) {
            Some((_, db)) => Arc::clone(db),
            None => {
                let access = write_access(&self.layout, &self.clock, &self.config());
                let tier = Tier::Agent(id.clone());
                let mut conn = self.global().read().await?;
                let db = match agent::get(&mut conn, id).await.in_db(self.global())? {
                    // One that was there and is gone is missed, not made up empty.
                    Some(known) => {
                        let path = self.layout.root().join(known.path);
                        Db::open(&path, &tier, Access::Write(access)).await?
                    }
                    None => {
                        let path = self.layout.agent_db(id.as_str());
                        Db::open_or_create(&path, &tier, access).await?
                    }
                };
                let db = Arc::new(db);
                make_room(&mut open).await;
                open.push((id.clone(), Arc::clone(&db)));
                db
            }
        };
        drop(open);
        let now_ms = self.clock.now_ms();
        let record = AgentRecord {
            agent_id: id.clone(),
            path: Layout::agent_db_relative(id.as_str())
                .to_string_lossy()
                .into_owned(),
            schema_version: known_version(db.tier()),
            status,
            status_reason: reason.map(str::to_owned),
            created_at_ms: now_ms,
            last_seen_at_ms: now_ms,
            size_bytes: None,
        };
        self.global()
            .write(move |tx| {
                Box::pin(
                    async move { agent::upsert(tx, &record).await.map_err(ServiceError::from) },
                )
            })
            .await?;
        Ok(db)
    }

    /// All agents of the registry.
    pub(crate) async fn agents(&self) -> Result<Vec<AgentRecord>, ServiceError> {
        let mut conn = self.global().read().await?;
        agent::list(&mut conn).await.in_db(self.global())
    }

    /// One agent by name, or all.
    pub(crate) async fn agents_or(
        &self,
        only: Option<&AgentId>,
    ) -> Result<Vec<AgentRecord>, ServiceError> {
        let Some(only) = only else {
            return self.agents().await;
        };
        let mut conn = self.global().read().await?;
        let record = agent::get(&mut conn, only).await.in_db(self.global())?;
        Ok(vec![record.ok_or_else(|| ServiceError::NotFound {
            what: "agent",
            name: only.to_string(),
        })?])
    }

    /// Finishes queued writes and closes every database.
    pub async fn close(self) {
        self.close_holding().await;
    }

    /// The same, and keeps the right under which the root was open: for what happens to files that nobody has open.
    pub(super) async fn close_holding(self) -> Hold {
        for (_, db) in self.tiers.agents.into_inner() {
            close(db).await;
        }
        close(self.tiers.global).await;
        self.hold
    }
}

/// A restore or an undone import was cut off: all-old or all-new first, whoever comes next.
pub(super) async fn finish_cut_off(layout: &Layout, clock: &Clock) -> Result<(), ServiceError> {
    if !layout.restore_journal().exists() {
        return Ok(());
    }
    let holder = Holder {
        kind: HolderKind::Restore,
        since_ms: clock.now_ms(),
    };
    let lock = RootLock::exclusive(layout, holder, LOCK_WAIT)?;
    crate::backup::recover(layout, clock).await?;
    if !layout.global_db().exists() {
        lock.remove(layout)?;
    }
    Ok(())
}

/// What stands in for a configuration that cannot be read, with the reason and the place.
fn unreadable(error: config::ConfigError) -> Config {
    let place = std::error::Error::source(&error).map(|source| format!(": {source}"));
    let warning = format!("{error}{}", place.unwrap_or_default());
    Config {
        warnings: vec![warning],
        ..Config::default()
    }
}

/// Closes the agent longest unused, if the bound is reached and nobody uses it.
async fn make_room(open: &mut Vec<(AgentId, Arc<Db>)>) {
    if open.len() < MAX_OPEN_AGENTS {
        return;
    }
    if let Some(idle) = open.iter().position(|(_, db)| Arc::strong_count(db) == 1) {
        let (_, db) = open.remove(idle);
        close(db).await;
    }
}

async fn close(db: Arc<Db>) {
    match Arc::try_unwrap(db) {
        Ok(db) => db.close().await,
        // Its user closes it by dropping; the log is then folded in by the next writer.
        Err(db) => tracing::debug!(path = %db.path().display(), "still in use at close"),
    }
}

/// Whether the control plane was ever made; an empty file is one whose maker was cut off.
pub(super) fn is_initialised(layout: &Layout) -> bool {
    std::fs::metadata(layout.global_db()).is_ok_and(|meta| meta.len() > 0)
}

pub(super) fn write_access(layout: &Layout, clock: &Clock, config: &Config) -> WriteAccess {
    let durability = match config.durability {
        config::Durability::Full => Durability::Full,
        config::Durability::Normal => Durability::Normal,
    };
    WriteAccess {
        durability,
        release: Release {
            app_version: APP_VERSION,
            now_ms: clock.now_ms(),
        },
        migrate_lock: layout.migrate_lock(),
    }
}
