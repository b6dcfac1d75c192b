//! What a run moved aside: what of it goes back where, proved against the receipts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use zeroclaw::fs::{FsError, Layout, sidecars};
use zeroclaw::model::SourceReceipt;
use zeroclaw::service::undo::Place;

use super::{SourceBack, UndoError};
use crate::doctor::before::{Before, agent_folders};
use crate::doctor::names::{escaped, unescaped};
use crate::doctor::scan::digest;

/// What a run moved aside.
pub(super) struct Kept {
    /// Where each file is, and where it goes; both below the root.
    pub(super) moves: Vec<(Place, Place)>,
    /// Files that came to a place whose own file the run had moved already: they are set aside.
    pub(super) surplus: Vec<Place>,
}

impl Kept {
    pub(super) fn report(&self, layout: &Layout) -> Vec<SourceBack> {
        let back = |(from, to): &(Place, Place)| SourceBack {
            path: escaped(to.path()),
            kept_at: escaped(from.path()),
            bytes: std::fs::metadata(layout.root().join(from.path())).map_or(0, |meta| meta.len()),
        };
        self.moves.iter().map(back).collect()
    }
}

/// Finds what a run keeps, and proves that every source it took is among it, as it was, and its place free.
pub(super) fn find(
    layout: &Layout,
    run_id: &str,
    receipts: &[SourceReceipt],
) -> Result<Kept, UndoError> {
    let aside = layout.migrated_run_dir(run_id);
    let files = files_below(&aside)?;
    let mut places = BTreeMap::new();
    let mut moved: Vec<&SourceReceipt> = receipts
        .iter()
        .filter(|receipt| receipt.removed_source)
        .collect();
    // Of two that had one place the run took the older first: that is the one of before.
    moved.sort_by_key(|receipt| receipt.imported_at_ms);
    for receipt in moved {
        let Some(retired) = &receipt.retired_path else {
            return Err(UndoError::Cleaned {
                run: run_id.to_owned(),
            });
        };
        let path = layout.root().join(unescaped(retired));
        prove(&path, receipt)?;
        let Ok(kept) = path.strip_prefix(&aside) else {
            // It lies with another run, whose undoing brings it back.
            continue;
        };
        let place = unescaped(&receipt.source_path);
        for (log, place) in sidecars(kept).into_iter().zip(sidecars(&place)) {
            if files.contains(&log) {
                places.insert(log, place);
            }
        }
        places.insert(kept.to_owned(), place);
    }
    for file in &files {
        // What had a receipt of an earlier run came back unchanged, and was moved again.
        places
            .entry(file.clone())
            .or_insert_with(|| own_place(file, &files));
    }
    assign(layout, &aside, places)
}

/// Files below a folder, by path below it; none where there is no folder.
fn files_below(folder: &Path) -> Result<BTreeSet<PathBuf>, UndoError> {
    let mut files = BTreeSet::new();
    if !folder.is_dir() {
        return Ok(files);
    }
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.map_err(|error| FsError::at("list", folder)(error.into()))?;
        if !entry.file_type().is_dir()
            && let Ok(below) = entry.path().strip_prefix(folder)
        {
            files.insert(below.to_owned());
        }
    }
    Ok(files)
}

/// The source of a receipt is there, and holds what was read.
fn prove(path: &Path, receipt: &SourceReceipt) -> Result<(), UndoError> {
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(UndoError::Missing {
            what: "a source that the run moved aside",
            path: path.to_owned(),
        });
    }
    // A log whose database was read elsewhere has a receipt of both.
    let is_log = ["-wal", "-shm", "-journal"]
        .iter()
        .any(|end| receipt.source_path.ends_with(end));
    if !is_log && digest(path, true)?.1 != receipt.source_sha256 {
        return Err(UndoError::Changed {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// The place of a file without a receipt: its own path, without the number that a clash of names added.
fn own_place(file: &Path, files: &BTreeSet<PathBuf>) -> PathBuf {
    let number = file.extension().and_then(|number| number.to_str());
    let base = file.with_extension("");
    let is_number = number.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match is_number && files.contains(&base) {
        true => base,
        false => file.to_owned(),
    }
}

/// Gives each place to one file, and refuses when something stands there.
fn assign(
    layout: &Layout,
    aside: &Path,
    places: BTreeMap<PathBuf, PathBuf>,
) -> Result<Kept, UndoError> {
    let aside = layout.stored(aside);
    let mut kept = Kept {
        moves: Vec::new(),
        surplus: Vec::new(),
    };
    let mut given = BTreeSet::new();
    // In the order of names, `x` stands before `x.1`, which came to its place later.
    for (file, place) in places {
        let from = Place::from(aside.join(file));
        match given.insert(place.clone()) {
            true => kept.moves.push((from, Place::from(place))),
            false => kept.surplus.push(from),
        }
    }
    let mut taken = kept
        .moves
        .iter()
        .map(|(_, to)| layout.root().join(to.path()))
        .filter(|place| place.symlink_metadata().is_ok());
    match taken.next() {
        Some(path) => Err(UndoError::Taken {
            path,
            others: taken.count(),
        }),
        None => Ok(kept),
    }
}

/// Folders that the run made, in the order in which those that are empty can go.
pub(super) fn folders(layout: &Layout, run_id: &str, before: &Before) -> Vec<Place> {
    let mut made = vec![
        layout.migrated_run_dir(run_id),
        layout.migrated_dir(),
        layout.quarantines_dir(),
        layout.backups_dir(),
    ];
    for name in agent_folders(layout) {
        made.push(layout.agent_db_dir(&name));
        made.push(layout.agent_dir(&name));
    }
    made.push(layout.agents_dir());
    let below = made.iter().map(|path| layout.stored(path));
    let was_there = |path: &Path| {
        before
            .folders
            .iter()
            .any(|folder| path == Path::new(folder))
    };
    below
        .filter(|path| !was_there(path))
        .map(|path| Place::from(path.to_owned()))
        .collect()
}
