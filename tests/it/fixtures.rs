//! The fixtures themselves: what is committed equals its recipe, and the tools that compare can fail.

mod openclaw;
mod recipes;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::support::dump::{self, Skip};
use crate::support::legacy;
use crate::support::sqlite::{self, Journal, PrivateCopy};
use crate::support::tree;

/// Set to rebuild the committed sample from its recipe.
const BLESS: &str = "ZEROCLAW_BLESS";

/// The committed sample, rebuilt first when asked: once, before any test of this module looks at it.
fn committed_sample() -> &'static Path {
    static SAMPLE: OnceLock<PathBuf> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let committed = legacy::sample_dir();
        if std::env::var_os(BLESS).is_some() {
            let scratch = tempfile::tempdir().unwrap();
            bless(legacy::build_sample(scratch.path()).root(), &committed);
        }
        committed
    })
}

#[test]
fn the_sample_is_what_its_recipe_makes() {
    let scratch = tempfile::tempdir().unwrap();

    let fresh = legacy::build_sample(scratch.path());

    assert_eq!(
        differences(fresh.root(), committed_sample()),
        Vec::<String>::new()
    );
}

fn bless(fresh: &Path, committed: &Path) {
    if committed.exists() {
        fs::remove_dir_all(committed).unwrap();
    }
    legacy::copy_tree(fresh, committed);
}

/// Names what differs between two installs: databases by schema and rows, everything else by bytes.
fn differences(left: &Path, right: &Path) -> Vec<String> {
    let (names, others) = (files(left), files(right));
    let mut found: Vec<String> = names
        .symmetric_difference(&others)
        .map(|name| format!("{} is in one of them only", name.display()))
        .collect();
    for name in names.intersection(&others) {
        if !same(&left.join(name), &right.join(name)) {
            found.push(format!("{} differs", name.display()));
        }
    }
    found
}

fn files(dir: &Path) -> BTreeSet<PathBuf> {
    walkdir::WalkDir::new(dir)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(dir).unwrap().to_owned())
        .collect()
}

fn same(left: &Path, right: &Path) -> bool {
    match left.extension().and_then(|e| e.to_str()) {
        Some("db") => said(left) == said(right),
        // A log has random salts; its rows were compared with its main file.
        Some("db-wal") => {
            fs::metadata(left).unwrap().len() > 0 && fs::metadata(right).unwrap().len() > 0
        }
        _ => fs::read(left).unwrap() == fs::read(right).unwrap(),
    }
}

fn said(store: &Path) -> (String, String) {
    (
        dump::schema_dump(store),
        dump::logical_dump(store, Skip::NOTHING),
    )
}

#[test]
fn the_sample_holds_what_its_readme_counts() {
    let sessions = committed_sample().join("data/sessions/sessions.db");
    let brain = committed_sample().join("data/memory/brain.db");
    let jobs = committed_sample().join("data/cron/jobs.db");
    let control = committed_sample().join("data/control_plane.db");

    let counted = [
        sqlite::number(&sessions, "SELECT count(*) FROM session_metadata"),
        sqlite::number(&sessions, "SELECT count(*) FROM sessions"),
        sqlite::number(&brain, "SELECT count(*) FROM memories"),
        sqlite::number(&jobs, "SELECT count(*) FROM cron_jobs"),
        sqlite::number(&jobs, "SELECT count(*) FROM cron_runs"),
        sqlite::number(&control, "SELECT count(*) FROM tasks"),
    ];

    assert_eq!(counted, [8, 60, 12, 6, 9, 5]);
}

#[test]
fn two_sessions_of_the_sample_live_in_the_log_alone() {
    let sessions = committed_sample().join("data/sessions/sessions.db");
    let without_log = PrivateCopy::without_sidecars(&sessions);

    let seen = sqlite::number_in(&without_log, "SELECT count(*) FROM session_metadata").unwrap();

    assert_eq!(seen, 6);
}

#[test]
fn reading_the_sample_leaves_it_as_it_was() {
    let before = tree::tree_hash(committed_sample());

    differences(committed_sample(), committed_sample());

    tree::assert_same_tree(&before, &tree::tree_hash(committed_sample()));
}

#[test]
fn the_comparison_sees_one_changed_row_one_changed_byte_and_one_more_file() {
    let scratch = tempfile::tempdir().unwrap();
    let altered = legacy::LegacyInstall::new(scratch.path());
    legacy::copy_tree(committed_sample(), altered.root());

    altered
        .alter(
            "data/memory/brain.db",
            Journal::Wal,
            "UPDATE memories SET pinned = 1 WHERE key = 'empty'",
        )
        .file("data/sessions/archive/2026-01-05_old_talk.jsonl", b"{}\n")
        .file("data/sessions/more.jsonl", b"");

    assert_eq!(
        differences(committed_sample(), altered.root()),
        [
            "data/sessions/more.jsonl is in one of them only",
            "data/memory/brain.db differs",
            "data/sessions/archive/2026-01-05_old_talk.jsonl differs",
        ]
    );
}
