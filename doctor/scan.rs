//! Phase one: finds every source under a root, without touching it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use zeroclaw::fs::{FsError, sidecars};

use super::finding::{Finding, Level};
use super::names::escaped;
use super::owner::Owners;
use super::results;
use super::sources::sqlite::{LegacyDb, is_sqlite};
use super::sources::zeroclaw::surfaces::{Fate, Format, PLACES, SESSION_FOLDERS, Shape};
use super::split_log;
use super::units::stable_id;

mod others;
pub(crate) mod rest;
mod session_folder;
mod source;
mod told;

use session_folder::session_folder;
pub(crate) use source::{Disposition, Source, content, digest, moved, source};

use told::{elsewhere, emergency_stop, sealed_tokens, unknown_pairing};

/// Files of one surface that no reader takes.
#[derive(Clone, Debug)]
pub(crate) struct Other {
    /// Name of the surface.
    pub(crate) surface: &'static str,
    /// Where, below the root.
    pub(crate) relative: PathBuf,
    /// What is to happen with them.
    pub(crate) fate: Fate,
    /// Why, where that is worth saying.
    pub(crate) reason: Option<&'static str>,
    /// How many files.
    pub(crate) files: u64,
    /// Their size, bytes.
    pub(crate) bytes: u64,
}

/// All that was found under a root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    /// Sources, in the order in which they are to come in.
    pub(crate) sources: Vec<Source>,
    /// What no reader takes.
    pub(crate) others: Vec<Other>,
    /// What else was seen.
    pub(crate) findings: Vec<Finding>,
}

/// Names the root in receipts: the root itself, or a foreign one by its path.
pub(crate) fn root_tag(foreign: Option<&Path>) -> String {
    foreign.map_or_else(
        || "root".to_owned(),
        |path| format!("from-{}", &stable_id(&[path.as_os_str().as_bytes()])[..12]),
    )
}

/// Finds everything under `root`; private copies go to `scratch`.
///
/// * `trace`: where the configuration says that the trace is, below the root or absolute.
pub(crate) async fn scan(
    root: &Path,
    owners: &Owners,
    scratch: &Path,
    trace: Option<&Path>,
) -> Result<Scan, FsError> {
    let mut scan = Scan::default();
    for folder in SESSION_FOLDERS {
        session_folder(root, Path::new(folder), scratch, &mut scan).await?;
    }
    elsewhere(root, &mut scan)?;
    for place in PLACES {
        for relative in matching(root, place.pattern)? {
            store(root, &relative, place.format, place.is_current, &mut scan)?;
        }
    }
    for relative in trace.map_or(Ok(Vec::new()), |trace| traces(root, trace))? {
        if scan
            .sources
            .iter()
            .all(|source| source.relative != relative)
        {
            store(root, &relative, Format::Trace, true, &mut scan)?;
        }
    }
    results::scan(root, owners, scratch, &mut scan).await?;
    emergency_stop(root, &mut scan);
    keep_used_probes(root, scratch, &mut scan).await;
    others::find(root, &mut scan)?;
    Ok(scan)
}

/// A database under a probe's name that holds rows is none: it is named, and stays.
async fn keep_used_probes(root: &Path, scratch: &Path, scan: &mut Scan) {
    let mut used = Vec::new();
    for source in &scan.sources {
        let is_probe = source.format == Format::SelfTestDb && is_sqlite(&source.path);
        if is_probe && !has_no_rows(&source.path, scratch).await {
            used.push(source.relative.clone());
        }
    }
    scan.sources
        .retain(|source| !used.contains(&source.relative));
    scan.findings.extend(used.iter().map(|relative| {
        let message = "a database that no table of old formats knows holds rows; left in place";
        let finding = Finding::new(
            "unknown-database",
            Level::Warning,
            escaped(relative),
            message,
        );
        finding.with_remedy(format!(
            "look into it: `sqlite3 {}`",
            root.join(relative).display()
        ))
    }));
}

async fn has_no_rows(path: &Path, scratch: &Path) -> bool {
    let read = async {
        let mut db = LegacyDb::open(path, scratch).await?;
        let is_empty = db.is_empty().await;
        db.close().await;
        is_empty
    };
    read.await.unwrap_or(false)
}

/// A trace in a place of its own, and its rotated parts beside it.
fn traces(root: &Path, trace: &Path) -> Result<Vec<PathBuf>, FsError> {
    let mut found = vec![trace.to_owned()];
    let folder = trace.parent().unwrap_or(Path::new(""));
    if let (Some(stem), Some(ending)) = (trace.file_stem(), trace.extension())
        && root.join(folder).is_dir()
    {
        let start = [stem.as_bytes(), b"."].concat();
        let end = [b".", ending.as_bytes()].concat();
        let parts = names(&root.join(folder))?.into_iter().filter(|name| {
            let name = name.as_bytes();
            name.len() > start.len() + end.len() && name.starts_with(&start) && name.ends_with(&end)
        });
        found.extend(parts.map(|name| folder.join(name)));
    }
    Ok(found)
}

/// Paths below `root` that a pattern stands for; one without `*` stands for itself, there or not.
pub(crate) fn matching(root: &Path, pattern: &str) -> Result<Vec<PathBuf>, FsError> {
    let pattern = pattern.trim_end_matches('/');
    if !pattern.contains('*') {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let mut found = vec![PathBuf::new()];
    for part in pattern.split('/') {
        found = expand(root, &found, part)?;
    }
    Ok(found)
}

/// Adds a store, if it is there.
fn store(
    root: &Path,
    relative: &Path,
    format: Format,
    is_current_place: bool,
    scan: &mut Scan,
) -> Result<(), FsError> {
    let path = root.join(relative);
    if is_link(&path) {
        scan.findings.push(not_followed(relative));
        return Ok(());
    }
    if !is_regular(&path) {
        return match format.about().shape {
            Shape::Database => lone_sidecars(root, relative, format, scan),
            Shape::Plain => Ok(()),
        };
    }
    // Old programs left files under the names of stores that never held one.
    let is_decoy = matches!(format, Format::BrainDb | Format::ChannelArchive) && !is_sqlite(&path);
    let is_empty = std::fs::metadata(&path).is_ok_and(|meta| meta.len() == 0);
    let discarded = format.about().discarded;
    if format.is_sqlite() && discarded.is_none() && (is_empty || is_decoy) {
        let message = "holds no database; left in place".to_owned();
        scan.findings.push(Finding::new(
            "no-database",
            Level::Advice,
            escaped(relative),
            message,
        ));
        return Ok(());
    }
    let disposition = discarded.map_or(Disposition::Import, |reason| {
        Disposition::Discard(reason.to_owned())
    });
    let mut source = source(root, relative, format, String::new(), disposition)?;
    source.is_current_place = is_current_place;
    if format == Format::DevicesDb {
        scan.findings.extend(unknown_pairing(root)?);
    }
    if format == Format::PairedTokens {
        scan.findings.extend(sealed_tokens(root)?);
        if source.bytes == 0 {
            return Ok(());
        }
    }
    scan.sources.push(source);
    Ok(())
}

/// Code of the finding of a log without its database; its place is the log's path.
pub(crate) const LONE_SIDECAR: &str = "lone-sidecar";

/// A log without its database is reported, not followed: paired with another one it would corrupt it.
/// One whose pair is whole in a safety copy is read there.
fn lone_sidecars(
    root: &Path,
    relative: &Path,
    format: Format,
    scan: &mut Scan,
) -> Result<(), FsError> {
    for log in sidecars(relative) {
        let path = root.join(&log);
        if !is_regular(&path) || std::fs::metadata(&path).is_ok_and(|meta| meta.len() == 0) {
            continue;
        }
        if let Some(in_workspace) = format.in_old_workspace()
            && let Some(database) = split_log::database_of(root, in_workspace, &path)?
        {
            let mut found = source(root, &database, format, String::new(), Disposition::Import)?;
            found.relative = log;
            scan.sources.push(found);
            continue;
        }
        let finding = Finding::new(
            LONE_SIDECAR,
            Level::Warning,
            escaped(&log),
            "a log without its database; left in place",
        );
        scan.findings
            .push(finding.with_remedy("keep it: with its own database it can be read again"));
    }
    Ok(())
}

/// A link may lead anywhere, also to what another root owns: it is named, and a person decides.
pub(super) fn not_followed(relative: &Path) -> Finding {
    let message = "is a link, which is not followed; nothing of it was taken";
    Finding::new("linked-source", Level::Warning, escaped(relative), message)
        .with_remedy("put the file itself in its place, then run `zeroclaw doctor --fix` again")
}

pub(crate) fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink())
}

pub(crate) fn is_regular(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Names in a folder, by bytes.
pub(crate) fn names(folder: &Path) -> Result<Vec<std::ffi::OsString>, FsError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(FsError::at("list", folder))? {
        names.push(entry.map_err(FsError::at("list", folder))?.file_name());
    }
    names.sort();
    Ok(names)
}

/// Appends one part of a pattern to each path that has it.
fn expand(root: &Path, found: &[PathBuf], part: &str) -> Result<Vec<PathBuf>, FsError> {
    let mut next = Vec::new();
    for base in found {
        if !part.contains('*') {
            let path = base.join(part);
            if std::fs::symlink_metadata(root.join(&path)).is_ok_and(|meta| !meta.is_symlink()) {
                next.push(path);
            }
            continue;
        }
        let folder = root.join(base);
        if folder.is_dir() {
            for name in names(&folder)? {
                let fits = is_of(name.as_bytes(), part);
                if fits {
                    next.push(base.join(&name));
                }
            }
        }
    }
    Ok(next)
}

/// Whether a name is of a pattern: `*` stands for any part of it.
fn is_of(name: &[u8], pattern: &str) -> bool {
    let (Some((before, rest)), Some((_, after))) =
        (pattern.split_once('*'), pattern.rsplit_once('*'))
    else {
        return name == pattern.as_bytes();
    };
    let middles = rest.rsplit_once('*').map_or("", |(middles, _)| middles);
    let Some(mut left) = name
        .strip_prefix(before.as_bytes())
        .and_then(|name| name.strip_suffix(after.as_bytes()))
    else {
        return false;
    };
    for middle in middles.split('*').filter(|middle| !middle.is_empty()) {
        let found = left
            .windows(middle.len())
            .position(|part| part == middle.as_bytes());
        match found {
            Some(at) => left = &left[at + middle.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_part_of_a_name_and_there_may_be_several() {
        for (pattern, name) in [
            ("a*", "a"),
            ("*.b.*", "x.b.y"),
            ("*-*-*.c", "1-2-3.c"),
            ("a*b*c", "abc"),
            ("a", "a"),
        ] {
            assert!(is_of(name.as_bytes(), pattern), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("a*a", "a"),
            ("*.b.*", "x.b"),
            ("a*b*c", "acb"),
            ("a", "ab"),
            ("*.c", "c"),
        ] {
            assert!(!is_of(name.as_bytes(), pattern), "{pattern} {name}");
        }
    }
}
