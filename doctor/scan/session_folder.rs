//! Folders with a session store and the files of sessions beside it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use zeroclaw::fs::FsError;

use super::{Disposition, Scan, Source, is_link, is_regular, names, not_followed, source, store};
use crate::doctor::names::{Ending, escaped, split_name};
use crate::doctor::sources::ReadError;
use crate::doctor::sources::sqlite::LegacyDb;
use crate::doctor::sources::zeroclaw::sessions_db;
use crate::doctor::sources::zeroclaw::surfaces::Format;

/// What a session store says of the files beside it.
#[derive(Default)]
struct Store {
    /// Keys that hold rows; `None` when the store cannot be read.
    keys: Option<HashSet<Vec<u8>>>,
    /// Files taken in, by name: digest and length.
    receipts: Vec<(String, String, i64)>,
}

async fn read_store(path: &Path, scratch: &Path) -> Store {
    if !is_regular(path) {
        return Store {
            keys: Some(HashSet::new()),
            receipts: Vec::new(),
        };
    }
    let read = async {
        let mut db = LegacyDb::open(path, scratch).await?;
        let keys = sessions_db::keys(&mut db).await?;
        let receipts = sessions_db::receipts(&mut db).await?;
        db.close().await;
        Ok::<_, ReadError>(Store {
            keys: Some(keys.into_iter().collect()),
            receipts,
        })
    };
    // What is wrong with it is said when it is read itself.
    read.await.unwrap_or_default()
}

pub(super) async fn session_folder(
    root: &Path,
    folder: &Path,
    scratch: &Path,
    scan: &mut Scan,
) -> Result<(), FsError> {
    if !root.join(folder).is_dir() {
        return Ok(());
    }
    let db = folder.join("sessions.db");
    store(root, &db, Format::SessionsDb, true, scan)?;
    let known = read_store(&root.join(&db), scratch).await;
    session_files(root, folder, &known, Format::SessionLines, scan)?;
    let archive = folder.join("archive");
    if root.join(&archive).is_dir() {
        session_files(root, &archive, &known, Format::ArchivedSessionLines, scan)?;
    }
    Ok(())
}

/// Adds the session files of one folder.
fn session_files(
    root: &Path,
    folder: &Path,
    known: &Store,
    format: Format,
    scan: &mut Scan,
) -> Result<(), FsError> {
    for name in names(&root.join(folder))? {
        let relative = folder.join(&name);
        if split_name(name.as_bytes()).is_some() && is_link(&root.join(&relative)) {
            scan.findings.push(not_followed(&relative));
        }
        let found = session_file(root, &relative, &name, known, format)?;
        scan.sources.extend(found);
    }
    Ok(())
}

fn session_file(
    root: &Path,
    relative: &Path,
    name: &OsStr,
    known: &Store,
    format: Format,
) -> Result<Option<Source>, FsError> {
    let path = root.join(relative);
    let Some((stem, ending)) = split_name(name.as_bytes()) else {
        return Ok(None);
    };
    if !is_regular(&path) || stem.is_empty() {
        return Ok(None);
    }
    let key = escaped(Path::new(OsStr::from_bytes(stem)));
    let mut found = source(root, relative, format, key, Disposition::Import)?;
    let has_rows = known.keys.as_ref().map(|keys| keys.contains(stem));
    found.disposition = match ending {
        Ending::Plain => Disposition::Import,
        Ending::Importing => {
            let name = format!("{}.jsonl", found.key);
            let is_receipted = known.receipts.iter().any(|(source, hash, length)| {
                *source == name
                    && *hash == found.sha256
                    && u64::try_from(*length) == Ok(found.bytes)
            });
            if is_receipted {
                Disposition::Discard(
                    "a receipt says that the session store has taken it in".to_owned(),
                )
            } else {
                Disposition::Import
            }
        }
        Ending::Migrated => match has_rows {
            Some(true) => {
                Disposition::Discard("a copy of what the session store has taken in".to_owned())
            }
            Some(false) => Disposition::Import,
            None => Disposition::Wait("the session store beside it cannot be read".to_owned()),
        },
    };
    Ok(Some(found))
}
