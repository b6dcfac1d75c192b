//! A released migration stays as it is.

use std::collections::BTreeMap;
use std::path::Path;

use walkdir::WalkDir;
use zeroclaw::db::known_version;

use super::{package, tiers};
use crate::support::recipe::sha256_hex;

/// Files by their path below `migrations/`.
type Files = BTreeMap<String, Vec<u8>>;

fn files_below(dir: &Path) -> Files {
    let files = WalkDir::new(dir).into_iter().map(Result::unwrap);
    files
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "sql"))
        .map(|entry| {
            let path = entry.path().strip_prefix(dir).unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            (path.to_str().unwrap().to_owned(), bytes)
        })
        .collect()
}

/// What breaks the promise of `list`, lines of a digest and a file.
fn thawed(list: &str, files: &Files) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let frozen: BTreeMap<&str, &str> = lines
        .map(|line| {
            let (digest, path) = line.split_once("  ").unwrap_or((line, ""));
            (path, digest)
        })
        .collect();
    let mut found = Vec::new();
    for (path, digest) in &frozen {
        match files.get(*path) {
            None => found.push(format!("{path} is released and gone")),
            Some(bytes) if sha256_hex(bytes) != **digest => {
                found.push(format!("{path} is released and has changed"));
            }
            Some(_) => {}
        }
    }
    let unlisted = files
        .keys()
        .filter(|path| !frozen.contains_key(path.as_str()));
    found.extend(unlisted.map(|path| format!("{path} is not listed")));
    found
}

/// Numbers of a tier's files that do not run from 1 without gaps.
fn misnumbered(tier: &str, files: &Files) -> Vec<String> {
    let of_tier = files
        .keys()
        .filter_map(|path| path.strip_prefix(tier)?.strip_prefix('/'));
    of_tier
        .zip(1..)
        .filter(|(name, number)| !name.starts_with(&format!("{number:04}_")))
        .map(|(name, number)| format!("{tier}/{name} stands where {number:04} should"))
        .collect()
}

#[test]
fn released_migrations_stay_as_they_are() {
    let list = std::fs::read_to_string(package("migrations/frozen.txt")).unwrap();

    let found = thawed(&list, &files_below(&package("migrations")));

    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_changed_missing_or_new_migration_is_found() {
    let list = std::fs::read_to_string(package("migrations/frozen.txt")).unwrap();
    let files = files_below(&package("migrations"));
    let first = "global/0001_control.sql".to_owned();
    let (mut changed, mut missing, mut more) = (files.clone(), files.clone(), files);
    changed.get_mut(&first).unwrap().push(b'\n');
    missing.remove(&first);
    more.insert("global/0099_more.sql".to_owned(), Vec::new());

    assert_eq!(
        thawed(&list, &changed),
        [format!("{first} is released and has changed")]
    );
    assert_eq!(
        thawed(&list, &missing),
        [format!("{first} is released and gone")]
    );
    assert_eq!(thawed(&list, &more), ["global/0099_more.sql is not listed"]);
}

#[test]
fn migrations_are_numbered_without_gaps_and_all_compiled_in() {
    let files = files_below(&package("migrations"));

    for (name, tier) in tiers() {
        assert_eq!(misnumbered(name, &files), Vec::<String>::new());
        let count = files.keys().filter(|path| path.starts_with(name)).count();
        assert_eq!(
            known_version(&tier),
            i64::try_from(count).unwrap(),
            "{name}"
        );
    }

    let mut gap = files;
    gap.remove("agent/0002_sessions.sql");
    assert!(!misnumbered("agent", &gap).is_empty());
}

#[test]
fn sql_files_end_their_lines_with_lf() {
    // A checksum is over bytes: the same file with other line ends would be another migration.
    for place in ["migrations", "schema", "tests/fixtures/db"] {
        for (path, bytes) in files_below(&package(place)) {
            assert!(!bytes.contains(&b'\r'), "{place}/{path} has a CR");
            assert!(
                bytes.ends_with(b"\n"),
                "{place}/{path} lacks its last line end"
            );
        }
    }
}
