//! Deletes what was found to be proven, so that a kill leaves nothing half deleted that nobody knows.
//!
//! A database without its log, or a log without its database, would prove nothing any more. So a pair is moved to a
//! folder whose name says that all in it goes, the database first, and goes from there.

use std::path::{Path, PathBuf};

use zeroclaw::fs::{FsError, Layout, atomic, fault, sidecars};

use super::{CleanReport, CleanRun, RECORD};

/// How the names of folders end of which everything goes.
const GOING: &str = ".deleting";

/// Deletes what the report says.
pub(super) fn all(layout: &Layout, mut report: CleanReport) -> Result<CleanReport, FsError> {
    finish_cut_off(layout)?;
    for run in &report.runs {
        match run.what {
            "undone" => undone(layout, run)?,
            _ => sources(layout, run)?,
        }
    }
    for folder in [layout.migrated_dir(), layout.undone_dir()] {
        empty(&folder)?;
    }
    report.written = true;
    Ok(report)
}

fn sources(layout: &Layout, run: &CleanRun) -> Result<(), FsError> {
    let root = layout.root();
    let aside = layout.migrated_run_dir(&run.run);
    let going = going(&aside);
    for unit in &run.units {
        if unit.logs.is_empty() {
            remove(&root.join(&unit.main))?;
            fault("clean.file");
            continue;
        }
        for file in std::iter::once(&unit.main).chain(&unit.logs) {
            let from = root.join(file);
            let below = from.strip_prefix(&aside).unwrap_or(file).to_owned();
            atomic::rename_synced(&from, &going.join(below))?;
            fault("clean.pair");
        }
    }
    remove_all(&going)?;
    empty(&aside)
}

fn undone(layout: &Layout, run: &CleanRun) -> Result<(), FsError> {
    let folder = layout.undone_run_dir(&run.run);
    let going = going(&folder);
    // The cut-off one was ended before; this one is whole.
    if folder.exists() {
        atomic::rename_synced(&folder, &going)?;
    }
    fault("clean.undone");
    remove_undone(&going)
}

/// The record goes last: as long as it is there, the next clean knows what it goes on with.
fn remove_undone(folder: &Path) -> Result<(), FsError> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => remove_all(&path)?,
            false if entry.file_name() != RECORD => remove(&path)?,
            false => {}
        }
    }
    remove(&folder.join(RECORD))?;
    remove_all(folder)
}

/// Ends what an earlier clean had begun to delete.
fn finish_cut_off(layout: &Layout) -> Result<(), FsError> {
    for folder in [layout.migrated_dir(), layout.undone_dir()] {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(run) = name.to_str().and_then(|name| name.strip_suffix(GOING)) else {
                continue;
            };
            // Logs that had not followed their database yet.
            for file in walkdir::WalkDir::new(entry.path()).into_iter().flatten() {
                let below = file.path().strip_prefix(entry.path());
                let Ok(below) = below.map(|below| folder.join(run).join(below)) else {
                    continue;
                };
                for log in sidecars(&below) {
                    remove(&log)?;
                }
            }
            remove_undone(&entry.path())?;
        }
    }
    Ok(())
}

pub(super) fn going(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(GOING);
    name.into()
}

fn remove(file: &Path) -> Result<(), FsError> {
    gone(std::fs::remove_file(file), file)
}

fn remove_all(folder: &Path) -> Result<(), FsError> {
    gone(std::fs::remove_dir_all(folder), folder)
}

fn gone(removed: std::io::Result<()>, path: &Path) -> Result<(), FsError> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(FsError::at("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Removes a folder, and those in it, as far as they are empty; makes what went before durable.
pub(super) fn empty(folder: &Path) -> Result<(), FsError> {
    if !folder.is_dir() {
        return Ok(());
    }
    let walk = walkdir::WalkDir::new(folder).contents_first(true);
    for entry in walk.into_iter().flatten() {
        if entry.file_type().is_dir() && std::fs::remove_dir(entry.path()).is_err() {
            // One that is not empty stays, and what went from it is made durable.
            atomic::sync_dir(entry.path())?;
        }
    }
    match folder.parent().filter(|parent| parent.is_dir()) {
        Some(parent) => atomic::sync_dir(parent),
        None => Ok(()),
    }
}
