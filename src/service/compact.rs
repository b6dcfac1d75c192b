//! Making databases smaller: room first, proof before and after.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Service, ServiceError};
use crate::db::{Db, DbPages};
use crate::fs::{sidecars, space};
use crate::model::{AgentId, CompactRefusal, RootCompacted, Tier, TierCompacted};

/// Room left free on top of what is needed, bytes: others write there too.
const SLACK_BYTES: u64 = 16 << 20;

impl Service {
    /// Writes databases anew without gaps, and gives the rest back to the disk.
    ///
    /// One that is damaged, or for which there is no room, is left as it is and named in the answer; the others are done.
    /// The root is this service's own meanwhile: it must be open for writing.
    ///
    /// * `agent`: only its database.
    /// * `is_dry_run`: says what it would do; looking is enough for that.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent; [`ServiceError::Conflict`] where rows were lost, which
    /// no release of SQLite is known to do: the archive made before is the way back.
    pub async fn compact_databases(
        &self,
        agent: Option<&AgentId>,
        is_dry_run: bool,
    ) -> Result<RootCompacted, ServiceError> {
        let mut tiers = Vec::new();
        if agent.is_none() {
            tiers.push(self.compact_tier(&Tier::Global, is_dry_run).await?);
        }
        for record in self.agents_or(agent).await? {
            let tier = Tier::Agent(record.agent_id);
            tiers.push(self.compact_tier(&tier, is_dry_run).await?);
        }
        let freed = |tier: &TierCompacted| tier.before_bytes.saturating_sub(tier.after_bytes);
        Ok(RootCompacted {
            freed_bytes: tiers.iter().map(freed).sum(),
            tiers,
            is_dry_run,
        })
    }

    async fn compact_tier(
        &self,
        tier: &Tier,
        is_dry_run: bool,
    ) -> Result<TierCompacted, ServiceError> {
        let path = match tier {
            Tier::Global => self.layout().global_db(),
            Tier::Agent(id) => self.layout().agent_db(id.as_str()),
        };
        let before_bytes = size_with_log(&path);
        let mut done = TierCompacted {
            tier: tier.to_string(),
            before_bytes,
            after_bytes: before_bytes,
            needed_bytes: 0,
            available_bytes: space::free_bytes(&path)?,
            refused: None,
            reason: None,
        };
        let refuse = |done: &mut TierCompacted, why, reason| {
            done.refused = Some(why);
            done.reason = Some(reason);
        };
        let opened = match tier {
            Tier::Global => Ok(self.global().clone()),
            Tier::Agent(id) => self.agent(id).await,
        };
        let db = match opened {
            Ok(db) => db,
            Err(error) => {
                refuse(&mut done, CompactRefusal::Unreadable, error.to_string());
                return Ok(done);
            }
        };
        let pages = db.pages().await?;
        let room = Room::of(&db, pages)?;
        done.needed_bytes = room.beside;
        if let Some(lack) = room.lack() {
            refuse(&mut done, CompactRefusal::NoSpace, lack);
            return Ok(done);
        }
        if is_dry_run {
            done.after_bytes = pages.live_bytes().min(before_bytes);
            return Ok(done);
        }
        if let Some(fault) = compact(&db, tier, pages).await? {
            refuse(&mut done, CompactRefusal::Damaged, fault);
        }
        done.after_bytes = size_with_log(&path);
        Ok(done)
    }
}

/// Says why it was left as it is, if it was.
async fn compact(db: &Db, tier: &Tier, pages: DbPages) -> Result<Option<String>, ServiceError> {
    let before = db.prove().await?;
    if let Some(fault) = before.fault() {
        return Ok(Some(format!("it is damaged: {fault}")));
    }
    db.compact(pages).await?;
    let after = db.prove().await?;
    if let Some(fault) = after.fault() {
        return Ok(Some(format!("it is damaged since: {fault}")));
    }
    if after.rows != before.rows {
        return Err(ServiceError::Conflict {
            what: "database",
            name: tier.to_string(),
            expected: format!("with {:?} rows", before.rows),
            found: format!("with {:?}", after.rows),
        });
    }
    Ok(None)
}

/// What it needs, and where.
struct Room {
    beside: u64,
    beside_available: u64,
    scratch: Option<(PathBuf, u64, u64)>,
}

impl Room {
    fn of(db: &Db, pages: DbPages) -> Result<Self, ServiceError> {
        let (beside, scratch) = db.room_to_compact(pages);
        let mut room = Self {
            beside: beside + SLACK_BYTES,
            beside_available: space::free_bytes(db.path())?,
            scratch: None,
        };
        if let Some((folder, bytes)) = scratch {
            let available = space::free_bytes(&folder)?;
            // On one file system both come out of one room.
            if device(&folder) == device(db.path()) {
                room.beside += bytes;
            } else {
                room.scratch = Some((folder, bytes + SLACK_BYTES, available));
            }
        }
        Ok(room)
    }

    /// Where there is too little.
    fn lack(&self) -> Option<String> {
        if self.beside_available < self.beside {
            return Some(format!(
                "it needs {} bytes beside the file, and there are {}",
                self.beside, self.beside_available
            ));
        }
        let (folder, needed, available) = self.scratch.as_ref()?;
        (available < needed).then(|| {
            let folder = folder.display();
            format!("it needs {needed} bytes in {folder}, and there are {available}; TMPDIR names another place")
        })
    }
}

fn device(path: &Path) -> Option<u64> {
    Some(std::fs::metadata(path).ok()?.dev())
}

fn size_with_log(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let [wal, _, _] = sidecars(path);
    size(path) + size(&wal)
}
