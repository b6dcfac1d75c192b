//! How old the newest good backup is, for those who never look.

use std::path::{Path, PathBuf};

use super::super::ServiceError;
use super::record;
use crate::db::Reader;
use crate::fs::Layout;
use crate::model::{BackupFreshness, BackupRun};
use crate::store::global::backup::{self, MAX_RUNS};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// A backup older than this is stale, days.
const STALE_AFTER_DAYS: i64 = 14;
/// How far ahead a backup may be dated: clocks are set right by seconds, not by days.
const CLOCK_TOLERANCE_MS: i64 = DAY_MS;

/// The newest good backup, seen from a moment.
pub(in crate::service) struct LastBackup {
    /// Its run; `None` if there is none.
    pub(in crate::service) run: Option<BackupRun>,
    now_ms: i64,
}

impl LastBackup {
    /// Finds it among the recorded runs.
    ///
    /// Runs dated later than now do not count, or one wrong clock would silence every warning until that day. Nor do
    /// those whose archive is gone from the root's own folder; whether one elsewhere is still there cannot be known.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the runs cannot be read.
    pub(in crate::service) async fn find(
        conn: &mut Reader,
        layout: &Layout,
        now_ms: i64,
    ) -> Result<Self, ServiceError> {
        let shown = |run| record::shown(layout, run);
        let mut until_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        for _ in 0..MAX_RUNS {
            let run = backup::latest_good(conn, until_ms).await?.map(shown);
            match &run {
                Some(run) if is_gone(layout, &run.archive_path) => {
                    until_ms = run.created_at_ms.saturating_sub(1);
                }
                _ => return Ok(Self { run, now_ms }),
            }
        }
        Ok(Self { run: None, now_ms })
    }

    /// Its age, ms.
    pub(in crate::service) fn age_ms(&self) -> Option<i64> {
        let run = self.run.as_ref()?;
        Some(self.now_ms.saturating_sub(run.created_at_ms).max(0))
    }

    /// Whether it is recent enough.
    pub(in crate::service) fn freshness(&self) -> BackupFreshness {
        match self.age_ms() {
            None => BackupFreshness::Missing,
            Some(age) if age > STALE_AFTER_DAYS * DAY_MS => BackupFreshness::Stale,
            Some(_) => BackupFreshness::Fresh,
        }
    }

    /// What to tell a person who does not ask.
    pub(in crate::service) fn warning(&self) -> Option<String> {
        match self.freshness() {
            BackupFreshness::Fresh => None,
            BackupFreshness::Missing => {
                Some("there is no good backup; `zeroclaw backup create` makes one".to_owned())
            }
            BackupFreshness::Stale => Some(format!(
                "the newest good backup is {} days old; `zeroclaw backup create` makes another",
                self.age_ms()? / DAY_MS
            )),
        }
    }
}

/// Whether an archive that was written into the root's own folder is there no more.
fn is_gone(layout: &Layout, archive: &str) -> bool {
    let path = PathBuf::from(archive);
    path.starts_with(layout.backups_dir()) && !is_there(&path)
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
