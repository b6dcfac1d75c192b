//! Indexing the memory files of workspaces anew.
//!
//! A file is replaced in one transaction: who searches meanwhile, or after a kill, finds each file as it was or as it is,
//! never half of one. Nothing is dropped before its replacement is there, also when all is built anew.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::db::{Db, DbErrorKind};
use crate::fs::{Beneath, FsError};
use crate::model::{
    AgentId, AgentStatus, CORE_MEMORY_FILE, IndexedFile, MemoryFileParser, Reindexed, SkippedFile,
};
use crate::service::error::InDb;
use crate::service::vfs::blocking;
use crate::service::worker::workspace_of;
use crate::service::{Service, ServiceError};
use crate::store::StoreError;
use crate::store::agent::memory_index;

/// Largest file that is indexed: it is held as a whole. 16 MiB.
pub const MAX_MEMORY_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Most files of one workspace that are indexed.
const MAX_FILES: usize = 10_000;

/// Folders below `memory` that are gone into.
const MAX_DEPTH: usize = 8;

/// Folder of daily files.
const DAILY_FOLDER: &str = "memory";

impl Service {
    /// Brings the index over `MEMORY.md` and `memory/**/*.md` of workspaces up to date, of an agent or of all that are not
    /// retired.
    ///
    /// Only files whose lines have changed are written, and rows of files that are gone go. The word index is repaired
    /// where it does not agree with its rows. A workspace that is not there changes nothing. Links that lead out of a
    /// workspace are not followed; files above [`MAX_MEMORY_FILE_BYTES`] are named and keep what was indexed of them.
    ///
    /// * `is_rebuild`: writes every file and all words anew, whatever the hashes say.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when a workspace cannot be read or SQLite
    /// fails; what was indexed until then stays.
    pub async fn reindex_memory(
        &self,
        agent: Option<&AgentId>,
        is_rebuild: bool,
    ) -> Result<Vec<Reindexed>, ServiceError> {
        let mut done = Vec::new();
        for record in self.agents_or(agent).await? {
            if agent.is_none() && record.status == AgentStatus::Retired {
                continue;
            }
            let id = record.agent_id;
            if let Some(db) = self.agent_unless_broken(&id, agent.is_some()).await? {
                done.push(self.reindex_agent(&db, id, is_rebuild).await?);
            }
        }
        Ok(done)
    }

    async fn reindex_agent(
        &self,
        db: &Db,
        id: AgentId,
        is_rebuild: bool,
    ) -> Result<Reindexed, ServiceError> {
        let mut report = Reindexed::of(id);
        report.words_rebuilt = repair_words(db, is_rebuild).await?;
        let workspace = workspace_of(self.layout(), &self.config(), &report.agent_id);
        if !workspace.is_dir() {
            report.has_workspace = false;
            return Ok(report);
        }
        let prefix = self.name_of(&workspace);
        let (disk, places) = {
            let at = workspace.clone();
            blocking(&workspace, move || {
                let disk = Beneath::open(&at)?;
                let places = memory_files(&disk)?;
                Ok((Arc::new(disk), places))
            })
            .await?
        };
        let mut seen = HashSet::new();
        let own = self.name_of(&self.layout().workspace(report.agent_id.as_str()));
        for place in places {
            let path = format!("{prefix}/{place}");
            seen.insert(path.clone());
            let (disk, named) = (Arc::clone(&disk), path.clone());
            let read = blocking(&workspace, move || read_file(&disk, &place, named)).await?;
            match read {
                Outcome::File(file) => take(db, file, is_rebuild, &mut report).await?,
                Outcome::Skipped(reason) => report.skipped.push(SkippedFile { path, reason }),
                Outcome::Gone => {
                    seen.remove(&path);
                }
            }
        }
        report.removed = remove_gone(db, &[&prefix, &own], seen).await?;
        Ok(report)
    }

    /// How the index names a workspace: relative to the root where it lies in it, so that a root can move.
    fn name_of(&self, workspace: &Path) -> String {
        let inside = workspace.strip_prefix(self.root()).unwrap_or(workspace);
        inside.to_string_lossy().trim_end_matches('/').to_owned()
    }
}

/// What became of reading a file.
enum Outcome {
    File(IndexedFile),
    Skipped(String),
    Gone,
}

/// Places of memory files, in order, at most [`MAX_FILES`].
fn memory_files(disk: &Beneath) -> Result<Vec<String>, FsError> {
    let mut places = Vec::new();
    if let Ok(Some(found)) = disk.look(CORE_MEMORY_FILE)
        && !found.is_folder
    {
        places.push(CORE_MEMORY_FILE.to_owned());
    }
    let has_daily = matches!(disk.look(DAILY_FOLDER), Ok(Some(found)) if found.is_folder);
    let mut folders = Vec::new();
    if has_daily {
        folders.push((DAILY_FOLDER.to_owned(), 0));
    }
    while let Some((folder, depth)) = folders.pop() {
        for (name, found) in disk.list(&folder)? {
            let place = format!("{folder}/{name}");
            if name.starts_with('.') {
                continue;
            } else if found.is_folder {
                // A link may lead in a circle. What it leads to inside of the folder is found without it.
                if depth < MAX_DEPTH && !disk.path().join(&place).is_symlink() {
                    folders.push((place, depth + 1));
                }
            } else if name.ends_with(".md") && places.len() < MAX_FILES {
                places.push(place);
            }
        }
    }
    places.sort();
    Ok(places)
}

/// Reads a file, never more of it than the bound, whatever it grows to meanwhile.
fn read_file(disk: &Beneath, place: &str, path: String) -> Result<Outcome, FsError> {
    let Some(found) = disk.look(place)? else {
        return Ok(Outcome::Gone);
    };
    let file = match disk.open_file(place) {
        Ok(file) => file,
        Err(error) => return Ok(Outcome::Skipped(error.to_string())),
    };
    let mut bytes = Vec::new();
    let mut bounded = file.take(MAX_MEMORY_FILE_BYTES + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(FsError::at("read", &disk.path().join(place)))?;
    if bytes.len() as u64 > MAX_MEMORY_FILE_BYTES {
        let reason = format!("is larger than {MAX_MEMORY_FILE_BYTES} bytes");
        return Ok(Outcome::Skipped(reason));
    }
    let name = place.rsplit('/').next().unwrap_or(place);
    let mut parser = MemoryFileParser::new(name);
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let whole = text.strip_suffix(b"\n").unwrap_or(text);
    if !text.is_empty() {
        for line in whole.split(|byte| *byte == b'\n') {
            parser.line(line.strip_suffix(b"\r").unwrap_or(line));
        }
    }
    Ok(Outcome::File(parser.finish(
        path,
        found.modified_at_ms,
        size,
    )))
}

/// Takes a file into the index, unless it is there as it is.
async fn take(
    db: &Db,
    file: IndexedFile,
    is_rebuild: bool,
    report: &mut Reindexed,
) -> Result<(), ServiceError> {
    report.files += 1;
    report.entries += file.entries.len() as u64;
    let mut conn = db.read().await?;
    let known = memory_index::hash_of(&mut conn, &file.path)
        .await
        .in_db(db)?;
    drop(conn);
    if !is_rebuild && known.as_deref() == Some(file.hash.as_str()) {
        return Ok(());
    }
    report.indexed += 1;
    db.write(move |tx| Box::pin(async move { Ok(memory_index::replace(tx, &file).await?) }))
        .await
}

/// Deletes what is indexed of files that are not there any more: below these workspaces, and below one outside of the root
/// that was the agent's before. What an import took from places that agents share stays. Gives how many files those were.
async fn remove_gone(
    db: &Db,
    workspaces: &[&str],
    seen: HashSet<String>,
) -> Result<u64, ServiceError> {
    let mut conn = db.read().await?;
    let known = memory_index::paths(&mut conn).await.in_db(db)?;
    drop(conn);
    let gone: Vec<String> = known
        .into_iter()
        .filter(|path| {
            let is_own = workspaces
                .iter()
                .any(|one| Path::new(path).starts_with(one));
            !seen.contains(path) && (is_own || Path::new(path).is_absolute())
        })
        .collect();
    let count = gone.len() as u64;
    for path in gone {
        db.write(move |tx| {
            Box::pin(async move { Ok::<_, ServiceError>(memory_index::remove(tx, &path).await?) })
        })
        .await?;
    }
    Ok(count)
}

/// Builds the word index anew where it does not agree with its rows, or where that is asked for; says whether it did.
async fn repair_words(db: &Db, is_asked: bool) -> Result<bool, ServiceError> {
    db.write(move |tx| {
        Box::pin(async move {
            let agrees = match memory_index::check_words(tx).await {
                Ok(()) => true,
                Err(StoreError::Db(error)) if error.kind() == DbErrorKind::Corrupt => false,
                Err(error) => return Err(error.into()),
            };
            if is_asked || !agrees {
                memory_index::rebuild(tx).await?;
            }
            Ok(is_asked || !agrees)
        })
    })
    .await
}
