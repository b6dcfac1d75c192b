//! Finds results of background work: in folders of the root, and where sessions of other programs worked.
//!
//! A client's folder may lie anywhere. What is found outside the root is read and never moved; a path
//! of another machine leads nowhere and is passed over.

use std::path::{Path, PathBuf};

use zeroclaw::fs::{FsError, Layout};

use super::names::escaped;
use super::owner::Owners;
use super::scan::{
    Disposition, Other, Scan, is_link, is_regular, matching, names, not_followed, source,
};
use super::sources::ReadError;
use super::sources::rows::{Found, Table, each_row};
use super::sources::sqlite::LegacyDb;
use super::sources::zeroclaw::result_file::ResultFolder;
use super::sources::zeroclaw::surfaces::{
    Fate, Format, RESULT_FOLDERS, RESULTS, STORES_OF_FOLDERS,
};

/// Name of the folder in a workspace.
const FOLDER: &str = "delegate_results";

/// Folders of results that earlier runs have moved aside; a decided end may still need one as its proof.
pub(crate) fn retired(root: &Path) -> Result<Vec<PathBuf>, FsError> {
    let aside = Layout::new(root.to_owned()).migrated_dir();
    let below = aside.strip_prefix(root).unwrap_or(&aside).to_owned();
    let mut found = Vec::new();
    for pattern in RESULT_FOLDERS {
        found.extend(matching(root, &format!("{}/*/{pattern}", below.display()))?);
    }
    Ok(found)
}

/// All folders that results may lie in and that are there, those of the root first.
pub(crate) async fn folders(
    root: &Path,
    owners: &Owners,
    scratch: &Path,
) -> Result<Vec<ResultFolder>, FsError> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    for pattern in RESULT_FOLDERS {
        for relative in matching(root, pattern)? {
            let mut parts = relative.iter();
            let owner = (parts.next() == Some("agents".as_ref()))
                .then(|| parts.next().map(|alias| escaped(Path::new(alias))));
            add(
                root,
                relative.clone(),
                owner.flatten(),
                &mut found,
                &mut seen,
            );
        }
    }
    for (alias, agent) in &owners.config().agents {
        if let Some(workspace) = &agent.workspace_path {
            let folder = expanded(workspace).join(FOLDER);
            add(root, folder, Some(alias.clone()), &mut found, &mut seen);
        }
    }
    for store in STORES_OF_FOLDERS {
        // What is wrong with such a store is said when it is read itself.
        for (folder, owner) in told(&root.join(store), scratch).await.unwrap_or_default() {
            add(root, folder.join(FOLDER), owner, &mut found, &mut seen);
        }
    }
    Ok(found)
}

/// A path with the home folder for `~`.
fn expanded(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}

/// Adds a folder that is there and was not found another way.
fn add(
    root: &Path,
    folder: PathBuf,
    owner: Option<String>,
    found: &mut Vec<ResultFolder>,
    seen: &mut Vec<PathBuf>,
) {
    let Ok(real) = std::fs::canonicalize(root.join(&folder)) else {
        return;
    };
    if !real.is_dir() || seen.contains(&real) {
        return;
    }
    seen.push(real);
    let relative = match folder.strip_prefix(root) {
        Ok(below) => below.to_owned(),
        Err(_) => folder,
    };
    found.push(ResultFolder { relative, owner });
}

/// Folders that a store names, and the agents that worked there.
async fn told(store: &Path, scratch: &Path) -> Result<Vec<(PathBuf, Option<String>)>, ReadError> {
    if !is_regular(store) {
        return Ok(Vec::new());
    }
    let mut db = LegacyDb::open(store, scratch).await?;
    let mut folders: Vec<(PathBuf, Option<String>)> = Vec::new();
    let table = Table {
        name: "acp_sessions",
        wanted: &["workspace_dir", "agent_alias"],
        order: "workspace_dir",
    };
    let read = each_row(&mut db, table, async |found| {
        let Found::Row(values) = found else {
            return Ok(());
        };
        let folder = values.hint(0).map(PathBuf::from);
        if let Some(folder) = folder.filter(|folder| folder.is_absolute())
            && folders.last().is_none_or(|(last, _)| *last != folder)
        {
            folders.push((folder, values.hint(1)));
        }
        Ok(())
    });
    let read = read.await;
    db.close().await;
    read.map(|_| folders)
}

/// Adds all results, and names what lies among them and is none.
pub(super) async fn scan(
    root: &Path,
    owners: &Owners,
    scratch: &Path,
    scan: &mut Scan,
) -> Result<(), FsError> {
    for folder in folders(root, owners, scratch).await? {
        if is_link(&root.join(&folder.relative)) {
            scan.findings.push(not_followed(&folder.relative));
            continue;
        }
        for name in names(&root.join(&folder.relative))? {
            let relative = folder.relative.join(&name);
            let path = root.join(&relative);
            if is_link(&path) {
                scan.findings.push(not_followed(&relative));
                continue;
            }
            let ending = Path::new(&name)
                .extension()
                .and_then(|ending| ending.to_str());
            if ending == Some("json") && is_regular(&path) {
                let key = folder.owner.clone().unwrap_or_default();
                let disposition = Disposition::Import;
                scan.sources.push(source(
                    root,
                    &relative,
                    Format::ResultFile,
                    key,
                    disposition,
                )?);
                continue;
            }
            // One cut off while it was written never was a result: its task says what is known.
            let fate = match ending {
                Some("tmp") => Fate::Ignored,
                _ => Fate::Kept,
            };
            scan.others.push(Other {
                surface: RESULTS,
                files: 1,
                bytes: std::fs::metadata(&path).map_or(0, |meta| meta.len()),
                relative,
                fate,
                reason: None,
            });
        }
    }
    Ok(())
}
