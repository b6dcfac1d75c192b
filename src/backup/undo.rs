//! An import undone: the databases of before come back, and what was moved aside goes where it was.
//!
//! It is a restore of the tiers alone, under the restore's journal: until the swap begins all is as it was, after that
//! whoever opens the root next ends it. Nothing is deleted. What the import had made goes to `state/undone/<run>/`, each
//! thing under its old path. Which files those are, and what they hold, the caller knows; here they are places.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::BackupError;
use super::journal::{Journal, Phase, Swap, exists, free_name, staged};
use super::manifest::{Manifest, MemberKind, Role};
use super::restore::{PlanAction, PlanStep, agent_databases, refuse_links, roll_forward, synced};
use super::verify::{self, Verified, need};
use crate::db::DbCopy;
use crate::fs::{FsError, Layout, atomic, fault};
use crate::model::{MigrationRun, Tier};

/// Name of the record in the folder of what was made.
const RECORD: &str = "undo.json";

/// A path below the root. In the journal it is text, or bytes where it is no UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Place(PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Written> for Place {
    fn from(written: Written) -> Self {
        Self(match written {
            Written::Text(text) => text.into(),
            Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

impl From<Place> for Written {
    fn from(place: Place) -> Self {
        match place.0.into_os_string().into_string() {
            Ok(text) => Self::Text(text),
            Err(odd) => Self::Bytes(odd.as_bytes().to_vec()),
        }
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl Place {
    /// The path below the root.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn is_inside(&self) -> bool {
        let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_));
        !self.0.as_os_str().is_empty() && self.0.components().all(is_normal)
    }
}

/// An import to be undone.
#[derive(Clone, Debug)]
pub struct UndoJob {
    /// The run, as it is to stand in the control plane of before.
    pub run: MigrationRun,
    /// The root.
    pub layout: Layout,
    /// Archive of the databases of before; `None` where there were none.
    pub archive: Option<PathBuf>,
    /// What was moved aside: where it is, and where it was.
    pub moves: Vec<(Place, Place)>,
    /// What the import made besides databases.
    pub made: Vec<Place>,
    /// Folders that it made; those that are empty in the end go, in this order.
    pub folders: Vec<Place>,
    /// What is written into the folder of what was made, for people and tools.
    pub record: serde_json::Value,
}

/// The part of an undone import that the journal keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Undo {
    moves: Vec<(Place, Place)>,
    made: Vec<Place>,
    folders: Vec<Place>,
    record: serde_json::Value,
}

impl Undo {
    pub(super) fn is_inside(&self) -> bool {
        let moves = self.moves.iter().flat_map(|(from, to)| [from, to]);
        let mut places = moves.chain(&self.made).chain(&self.folders);
        places.all(Place::is_inside)
    }

    /// Ends what follows the swap of the databases; may be repeated from any point.
    pub(super) fn finish(&self, layout: &Layout, journal: &Journal) -> Result<(), BackupError> {
        let root = layout.root();
        let aside = journal.aside(layout);
        for made in &self.made {
            let from = root.join(&made.0);
            if exists(&from) {
                atomic::rename_synced(&from, &free_name(aside.join(&made.0)))?;
                fault("undo.aside");
            }
        }
        for (from, to) in &self.moves {
            let (from, to) = (root.join(&from.0), root.join(&to.0));
            match (exists(&from), exists(&to)) {
                (true, _) => atomic::rename_synced(&from, &to)?,
                // Moved already; nothing but this moves it.
                (false, true) => {}
                (false, false) => {
                    return Err(BackupError::Journal {
                        path: layout.restore_journal(),
                        reason: format!("{} is neither kept nor in its place", to.display()),
                    });
                }
            }
            fault("undo.back");
        }
        for folder in &self.folders {
            remove_empty(&root.join(&folder.0))?;
        }
        atomic::create_dir_private(&aside)?;
        let record = serde_json::to_vec_pretty(&self.record)
            .expect("invariant: a record has text keys and plain values only");
        atomic::write_private(&aside.join(RECORD), &record)?;
        fault("undo.recorded");
        Ok(())
    }
}

/// Removes a folder and all below it that are empty; what is not stays.
fn remove_empty(folder: &Path) -> Result<(), FsError> {
    let walk = walkdir::WalkDir::new(folder).contents_first(true);
    let mut is_removed = false;
    for entry in walk.into_iter().filter_map(Result::ok) {
        if entry.file_type().is_dir() {
            // One that is not empty says so itself.
            is_removed |= std::fs::remove_dir(entry.path()).is_ok();
        }
    }
    match folder.parent().filter(|_| is_removed) {
        Some(parent) if parent.is_dir() => atomic::sync_dir(parent),
        _ => Ok(()),
    }
}

/// Says what undoing does to databases; writes nothing.
///
/// * `before`: what the archive holds; `None` where there were no databases.
///
/// # Errors
///
/// [`BackupError`] when a folder on the way is a link or cannot be read.
pub fn plan_undo(job: &UndoJob, before: Option<&Manifest>) -> Result<Vec<PlanStep>, BackupError> {
    let layout = &job.layout;
    let size = |path: &str| {
        std::fs::symlink_metadata(layout.root().join(path)).map_or(0, |meta| meta.len())
    };
    let mut steps = Vec::new();
    for (path, bytes) in tiers(before) {
        let action = match exists(&layout.root().join(&path)) {
            true => PlanAction::Replace,
            false => PlanAction::Create,
        };
        steps.push(PlanStep {
            action,
            path,
            bytes,
        });
    }
    let global = layout.global_db();
    let global = layout.stored(&global).to_string_lossy().into_owned();
    let mut there = agent_databases(layout)?;
    there.insert(0, global);
    for path in there {
        let is_new = steps.iter().any(|step| step.path == path);
        if !is_new && exists(&layout.root().join(&path)) {
            steps.push(PlanStep {
                action: PlanAction::SetAside,
                bytes: size(&path),
                path,
            });
        }
    }
    for step in &steps {
        refuse_links(layout.root(), &step.path)?;
    }
    Ok(steps)
}

/// The tiers in an archive: path and size.
fn tiers(before: Option<&Manifest>) -> Vec<(String, u64)> {
    let members = before.iter().flat_map(|manifest| &manifest.members);
    members
        .filter(|member| {
            member.kind == MemberKind::Database
                && matches!(member.role, Some(Role::Global | Role::Agent))
        })
        .map(|member| (member.archive_path.clone(), member.bytes))
        .collect()
}

/// Undoes an import; gives the folder of what it had made.
///
/// The caller holds the root's lock and has [`super::recover`]ed it, has every database closed, and has made sure that
/// what is moved back is there and its place free.
///
/// * `before`: the proved archive, where the job names one.
///
/// # Errors
///
/// [`BackupError`]. Before the swap begins nothing has changed; after that, whoever comes next ends it.
pub async fn undo(job: &UndoJob, before: Option<&Verified>) -> Result<PathBuf, BackupError> {
    let layout = &job.layout;
    let steps = plan_undo(job, before.map(|verified| &verified.manifest))?;
    let new = tiers(before.map(|verified| &verified.manifest));
    need(
        &layout.state_dir(),
        new.iter().map(|(_, bytes)| bytes).sum(),
    )?;
    let undo = Undo {
        moves: job.moves.clone(),
        made: job.made.clone(),
        folders: job.folders.clone(),
        record: job.record.clone(),
    };
    let mut journal = Journal::undoing(&job.run.id, undo);
    journal.write(layout)?;
    fault("undo.staging");
    if let (Some(archive), Some(before)) = (&job.archive, before)
        && let Err(error) = stage(job, archive, before).await
    {
        // Nothing has changed yet; the first error is the one to tell.
        if let Err(error) = journal.clear(layout) {
            tracing::warn!(%error, "staging folder stays behind");
        }
        return Err(error);
    }
    fault("undo.staged");
    journal.swaps = steps
        .into_iter()
        .map(|step| Swap {
            has_new: step.action != PlanAction::SetAside,
            is_database: true,
            path: step.path,
        })
        .collect();
    journal.phase = Phase::Swapping;
    journal.write(layout)?;
    fault("undo.journalled");
    let aside = journal.aside(layout);
    roll_forward(layout, journal, 0).await?;
    Ok(aside)
}

/// Unpacks the databases of before, and tells the control plane that the run was undone.
async fn stage(job: &UndoJob, archive: &Path, before: &Verified) -> Result<(), BackupError> {
    let opened = verify::open(archive, None).await?;
    if *opened.manifest() != before.manifest {
        return Err(BackupError::Damaged {
            archive: archive.to_owned(),
            member: super::MANIFEST_NAME.to_owned(),
            reason: "changed since it was verified".to_owned(),
        });
    }
    let wanted: Vec<String> = tiers(Some(&before.manifest))
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let (layout, id) = (job.layout.clone(), job.run.id.clone());
    let unpacked = tokio::task::spawn_blocking(move || {
        opened.read_members(
            |member| {
                let path = &member.archive_path;
                wanted.contains(path).then(|| staged(&layout, &id, path))
            },
            |_, path| path.map_or(Ok(()), synced),
        )
    });
    unpacked.await.map_err(|_| BackupError::Stopped)??;
    fault("undo.unpacked");
    let global = super::restore::global_path(&before.manifest)?;
    let path = staged(&job.layout, &job.run.id, &global);
    let mut copy = DbCopy::open(&path, &Tier::Global).await?;
    let marked = copy.mark_undone(&job.run).await;
    copy.close().await?;
    marked?;
    synced(&path)
}

/// The run whose undoing was cut off, if one was.
///
/// # Errors
///
/// [`BackupError::Journal`] when the journal cannot be read.
pub fn unfinished_undo(layout: &Layout) -> Result<Option<String>, BackupError> {
    let journal = Journal::read(layout)?;
    Ok(journal
        .filter(|journal| journal.undo.is_some())
        .map(|journal| journal.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_the_journal_whatever_its_bytes() {
        for path in [&b"a/b"[..], b"u\xFF/%41"] {
            let place = Place(OsString::from_vec(path.to_vec()).into());

            let text = serde_json::to_string(&place).unwrap();

            assert_eq!(serde_json::from_str::<Place>(&text).unwrap(), place);
            assert!(place.is_inside());
        }
    }

    #[test]
    fn a_place_that_leads_out_of_the_root_is_seen() {
        for path in ["", "/etc/x", "a/../../x", "..", "./x"] {
            assert!(!Place(path.into()).is_inside(), "{path:?}");
        }
    }
}
