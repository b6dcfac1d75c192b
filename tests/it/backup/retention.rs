//! Archives that pile up, are deleted by rule, or were not made for long.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use zeroclaw::clock::Clock;
use zeroclaw::fs::process;
use zeroclaw::model::{BackupFreshness, BackupStatus, ErrorKind, KeepReason};
use zeroclaw::service::backup::{
    self, CreateOptions, PruneAction, PruneOptions, PruneReport, Rules,
};
use zeroclaw::service::{Service, ServiceError, StatusReport};

use super::home::{Home, NOW_MS, pack, runs, unpack};
use crate::support::sqlite::{self, Journal};
use crate::support::tree::{assert_same_tree, tree_hash};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Makes an archive in the root's own folder, or another one, that is `days` old at [`NOW_MS`].
async fn made(home: &Home, days: i64, output: Option<PathBuf>) -> PathBuf {
    let options = CreateOptions {
        output,
        ..CreateOptions::default()
    };
    let clock = Clock::fixed(NOW_MS - days * DAY_MS);
    let made = backup::create(&home.root(), clock, options).await;
    made.unwrap().archive
}

fn last(count: u32) -> PruneOptions {
    PruneOptions {
        rules: Rules {
            last: count,
            ..Rules::default()
        },
        ..PruneOptions::default()
    }
}

/// The plan, and what is carried out; fails if they differ or anything else changes.
async fn prune(home: &Home, options: PruneOptions, now_ms: i64) -> PruneReport {
    let folder = options.folder.clone();
    let folder = folder.unwrap_or_else(|| home.root().join("backups"));
    let before = tree_hash(home.path("").as_path());
    let plan = PruneOptions {
        dry_run: true,
        ..options.clone()
    };
    let unasked = backup::prune(&home.root(), Clock::fixed(now_ms), options.clone()).await;
    let planned = backup::prune(&home.root(), Clock::fixed(now_ms), plan).await;
    assert_same_tree(&before, &tree_hash(home.path("").as_path()));
    let files = files_in(&folder);
    let options = PruneOptions {
        yes: true,
        ..options
    };

    let done = backup::prune(&home.root(), Clock::fixed(now_ms), options).await;

    let (unasked, planned, done) = (unasked.unwrap(), planned.unwrap(), done.unwrap());
    assert!(!unasked.written && !planned.written && done.written);
    let deletes = |report: &PruneReport| -> BTreeSet<PathBuf> {
        report.to_delete().map(|item| item.path.clone()).collect()
    };
    assert_eq!(deletes(&unasked), deletes(&done));
    assert_eq!(deletes(&planned), deletes(&done));
    let gone: BTreeSet<PathBuf> = files.difference(&files_in(&folder)).cloned().collect();
    assert_eq!(gone, deletes(&done));
    assert!(done.to_delete().all(|it| it.deleted && it.error.is_none()));
    done
}

fn files_in(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn reasons<'r>(report: &'r PruneReport, archive: &Path) -> &'r [KeepReason] {
    let item = report.archives.iter().find(|it| it.path == archive);
    &item.unwrap().reasons
}

async fn status(home: &Home, now_ms: i64) -> StatusReport {
    let service = Service::look(&home.root(), Clock::fixed(now_ms))
        .await
        .unwrap();
    let status = service.status().await.unwrap();
    service.close().await;
    status
}

#[tokio::test]
async fn c58_backups_in_the_roots_own_folder_do_not_hold_each_other() {
    let home = Home::with_two_agents().await;

    // All three in one second.
    let mut sizes = Vec::new();
    let mut names = BTreeSet::new();
    for _ in 0..3 {
        let archive = made(&home, 0, None).await;
        sizes.push(fs::metadata(&archive).unwrap().len());
        let members = unpack(&archive);
        assert!(!members.iter().any(|(name, _)| name.starts_with("backups")));
        names.insert(archive);
    }

    assert_eq!(names.len(), 3);
    // Each holds one more row that records a run, and one more line that says what was left out.
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    assert!(most - least < least / 2, "{sizes:?}");
}

#[tokio::test]
async fn c59_the_age_of_the_newest_good_backup_is_told() {
    let home = Home::with_two_agents().await;

    let none = status(&home, NOW_MS).await;
    let archive = made(&home, 0, None).await;
    let fresh = status(&home, NOW_MS + 14 * DAY_MS).await;
    let stale = status(&home, NOW_MS + 15 * DAY_MS).await;
    let early = status(&home, NOW_MS - 30 * DAY_MS).await;
    fs::remove_file(&archive).unwrap();
    let gone = status(&home, NOW_MS).await;

    let freshness = |status: &StatusReport| status.backup_freshness.unwrap();
    assert_eq!(freshness(&none), BackupFreshness::Missing);
    assert!(none.warnings[0].contains("zeroclaw backup create"));
    assert_eq!(freshness(&fresh), BackupFreshness::Fresh);
    assert_eq!(fresh.backup_age_ms, Some(14 * DAY_MS));
    assert_eq!(fresh.warnings, Vec::<String>::new());
    assert_eq!(freshness(&stale), BackupFreshness::Stale);
    assert!(stale.warnings[0].contains("15 days"), "{stale:?}");
    // A clock that was a month ahead must not keep the warning away for a month.
    assert_eq!(freshness(&early), BackupFreshness::Missing);
    // Nor must an archive that somebody deleted.
    assert_eq!(freshness(&gone), BackupFreshness::Missing);
}

#[tokio::test]
async fn c59_a_failed_backup_makes_nothing_fresh() {
    let home = Home::with_two_agents().await;
    let taken = home.path("taken");
    fs::write(&taken, "").unwrap();
    let options = CreateOptions {
        output: Some(taken),
        ..CreateOptions::default()
    };

    home.create(options).await.unwrap_err();

    let status = status(&home, NOW_MS).await;
    assert_eq!(status.backup_freshness, Some(BackupFreshness::Missing));
}

#[tokio::test]
async fn c59_only_a_run_whose_process_is_gone_is_interrupted() {
    let home = Home::with_two_agents().await;
    let mine = serde_json::to_value(process::own()).unwrap();
    let mut dead = mine.clone();
    dead["start_ticks"] = 1.into();
    let mut held = sqlite::open(&home.global(), Journal::Wal).await;
    for (id, process) in [("dead", &dead), ("living", &mine)] {
        let row = format!(
            "INSERT INTO backup_runs (id, kind, created_at_ms, archive_path, status, manifest_json)
             VALUES ('{id}', 'create', 1, '', 'running', '{}')",
            serde_json::json!({ "process": process })
        );
        sqlite::run(&mut held, &row).await;
    }
    sqlx::Connection::close(held).await.unwrap();
    let stored = |id: &str| {
        let sql = format!("SELECT status, finished_at_ms FROM backup_runs WHERE id = '{id}'");
        sqlite::rows(&home.global(), &sql).remove(0)
    };
    let root = home.root();
    let shown = async |id: &str| {
        let runs = runs(&root).await;
        runs.into_iter().find(|run| run.id == id).unwrap().status
    };

    // Shown at once, without a write.
    assert_eq!(shown("dead").await, BackupStatus::Interrupted);
    assert_eq!(shown("living").await, BackupStatus::Running);
    assert_eq!(stored("dead")[0], "running");

    home.archive().await;

    assert_eq!(stored("dead"), ["interrupted", &NOW_MS.to_string()]);
    assert_eq!(stored("living")[0], "running");
}

#[tokio::test]
async fn c59_a_dead_run_is_marked_beside_a_writer_that_lives() {
    let home = Home::with_two_agents().await;
    let mut mark = serde_json::to_value(process::own()).unwrap();
    mark["start_ticks"] = 1.into();
    let mut held = sqlite::open(&home.global(), Journal::Wal).await;
    let row = format!(
        "INSERT INTO backup_runs (id, kind, created_at_ms, archive_path, status, manifest_json)
         VALUES ('dead', 'create', 1, '', 'running', '{}')",
        serde_json::json!({ "process": mark })
    );
    sqlite::run(&mut held, &row).await;
    sqlx::Connection::close(held).await.unwrap();
    let importer = super::home::open(&home.root()).await;

    home.archive().await;

    importer.close().await;
    let sql = "SELECT status FROM backup_runs WHERE id = 'dead'";
    assert_eq!(sqlite::rows(&home.global(), sql), [["interrupted"]]);
}

#[tokio::test]
async fn c67_a_dry_run_lists_what_the_real_run_deletes() {
    let home = Home::with_two_agents().await;
    let mut archives = Vec::new();
    for days in [0, 1, 2, 9, 40] {
        archives.push(made(&home, days, None).await);
    }
    fs::write(home.root().join("backups/notes.txt"), "mine").unwrap();
    let options = PruneOptions {
        rules: Rules {
            last: 1,
            daily: 2,
            weekly: 0,
            monthly: 2,
        },
        ..PruneOptions::default()
    };

    let done = prune(&home, options.clone(), NOW_MS).await;
    let again = prune(&home, options, NOW_MS).await;

    let gone: BTreeSet<_> = done.to_delete().map(|it| it.path.clone()).collect();
    // Today, yesterday, and October; the rest of November goes.
    assert_eq!(gone, archives[2..4].iter().cloned().collect());
    use KeepReason::{Daily, Last, Monthly, Newest};
    assert_eq!(reasons(&done, &archives[0]), [Last, Daily, Monthly, Newest]);
    assert_eq!(reasons(&done, &archives[4]), [Monthly]);
    assert_eq!(again.to_delete().count(), 0);
    assert!(home.root().join("backups/notes.txt").exists());
    // What is left is good, and the newest is still what status speaks of.
    for archive in [&archives[0], &archives[1], &archives[4]] {
        super::home::verify(archive).await.unwrap();
    }
    let last = status(&home, NOW_MS).await.last_backup.unwrap();
    assert_eq!(Path::new(&last.archive_path), archives[0]);
}

#[tokio::test]
async fn c67_without_a_rule_nothing_is_deleted() {
    let home = Home::with_two_agents().await;
    let archive = made(&home, 400, None).await;
    made(&home, 300, None).await;
    let options = PruneOptions {
        yes: true,
        ..last(0)
    };

    let refused = backup::prune(&home.root(), Clock::fixed(NOW_MS), options).await;

    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
    assert!(archive.exists());
}

#[tokio::test]
async fn c67_what_is_not_surely_an_archive_to_delete_stays() {
    let home = Home::with_two_agents().await;
    let folder = home.root().join("backups");
    let oldest = made(&home, 9, None).await;
    let whole = made(&home, 5, None).await;
    let names = [
        "zeroclaw-backup-20261101T000000Z-aaaa-before-import.tar.gz",
        "golden.tar.gz",
        "no ending",
    ];
    for name in names {
        fs::copy(&oldest, folder.join(name)).unwrap();
    }
    let link = folder.join("zeroclaw-backup-20261102T000000Z-aaaa.tar.gz");
    std::os::unix::fs::symlink(&oldest, &link).unwrap();
    let strange = folder.join("zeroclaw-backup-20261103T000000Z-aaaa.tar.gz");
    fs::write(&strange, "no archive at all").unwrap();
    // One agent alone, as an export would be.
    let export = folder.join("zeroclaw-backup-20261104T000000Z-aaaa.tar.gz");
    let mut members = unpack(&oldest);
    members.retain(|(name, _)| name.starts_with("agents/atlas") || name.starts_with("manifest"));
    let mut manifest: serde_json::Value = serde_json::from_slice(&members[0].1).unwrap();
    let listed = manifest["members"].as_array_mut().unwrap();
    listed.retain(|it| it["agent_id"] == "atlas");
    members[0].1 = serde_json::to_vec(&manifest).unwrap();
    let digest = crate::support::recipe::sha256_hex(&members[0].1);
    members[1].1 = format!("{digest}  manifest.json\n").into_bytes();
    pack(&export, &members);

    let done = prune(&home, last(1), NOW_MS).await;

    let gone: Vec<_> = done.to_delete().map(|it| &it.path).collect();
    assert_eq!(gone, [&oldest]);
    let of = |name: &str| reasons(&done, &folder.join(name));
    assert_eq!(of(names[0]), [KeepReason::BeforeImport]);
    assert_eq!(of(names[1]), [KeepReason::OwnName]);
    assert_eq!(of(names[2]), [KeepReason::OwnName]);
    assert_eq!(reasons(&done, &export), [KeepReason::NotWhole]);
    assert_eq!(done.untouched.len(), 1);
    assert_eq!(done.untouched[0].path, strange);
    assert!(whole.exists());

    let options = PruneOptions {
        with_before_import: true,
        ..last(1)
    };
    let done = prune(&home, options, NOW_MS).await;
    let gone: Vec<_> = done.to_delete().map(|it| &it.path).collect();
    assert_eq!(gone, [&folder.join(names[0])]);
}

/// An archive cut short has a good list of contents. Counted as the newest, it would cost the last good one.
#[tokio::test]
async fn c67_a_damaged_newest_archive_does_not_push_out_the_last_good_one() {
    let home = Home::with_two_agents().await;
    let old = made(&home, 9, None).await;
    let good = made(&home, 5, None).await;
    let cut = made(&home, 1, None).await;
    let bytes = fs::read(&cut).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 20]).unwrap();

    let done = prune(&home, last(1), NOW_MS).await;

    assert_eq!(done.untouched.len(), 1);
    assert_eq!(done.untouched[0].path, cut);
    assert!(cut.exists() && good.exists() && !old.exists());
    assert!(reasons(&done, &good).contains(&KeepReason::Newest));
}

#[tokio::test]
async fn c67_a_clock_that_jumps_deletes_nothing_unasked() {
    let home = Home::with_two_agents().await;
    let mut archives = Vec::new();
    for days in [3, 2, 1] {
        archives.push(made(&home, days, None).await);
    }
    let week = PruneOptions {
        rules: Rules {
            daily: 7,
            ..Rules::default()
        },
        ..PruneOptions::default()
    };

    // Ahead: rules count archives, not ages.
    let ahead = prune(&home, week.clone(), NOW_MS + 60 * DAY_MS).await;
    let jumped = made(&home, -60, None).await;
    // Back: what was dated meanwhile stays, is named, and takes nobody's place.
    let back = prune(&home, last(3), NOW_MS).await;
    let before_all = prune(&home, last(1), NOW_MS - 100 * DAY_MS).await;

    assert_eq!(ahead.to_delete().count(), 0);
    assert_eq!(back.to_delete().count(), 0);
    assert_eq!(reasons(&back, &jumped), [KeepReason::Future]);
    assert!(back.warnings[0].contains("in the future"));
    assert!(back.warnings[0].contains(jumped.to_str().unwrap()));
    assert_eq!(before_all.to_delete().count(), 0);

    fs::remove_file(&jumped).unwrap();
    let doubtful = prune(&home, last(1), NOW_MS + 70 * DAY_MS).await;
    assert_eq!(doubtful.to_delete().count(), 2);
    assert!(doubtful.warnings[0].contains("clock"), "{doubtful:?}");
}

#[tokio::test]
async fn any_folder_can_be_listed_and_pruned_and_a_missing_one_is_named() {
    let home = Home::with_two_agents().await;
    let folder = home.path("- far away");
    fs::create_dir(&folder).unwrap();
    let old = made(&home, 2, Some(folder.clone())).await;
    let new = made(&home, 1, Some(folder.clone())).await;
    fs::write(folder.join("broken.tar.gz"), "x").unwrap();
    let clock = || Clock::fixed(NOW_MS);

    let own = backup::inventory(&home.root(), clock(), None).await;
    let listed = backup::inventory(&home.root(), clock(), Some(&folder)).await;
    let listed = listed.unwrap();
    let missing = home.path("missing");
    let no_list = backup::inventory(&home.root(), clock(), Some(&missing)).await;
    let options = PruneOptions {
        folder: Some(missing),
        ..last(1)
    };
    let no_prune = backup::prune(&home.root(), clock(), options).await;
    let options = PruneOptions {
        folder: Some(folder.clone()),
        ..last(1)
    };
    let pruned = prune(&home, options, NOW_MS).await;

    assert!(own.unwrap().is_empty());
    let readable = listed.iter().filter(|it| it.error.is_none());
    assert!(readable.clone().all(|it| it.is_recorded
        && it.databases == Some(3)
        && it.has_secrets == Some(true)
        && it.created_at_ms.is_some()));
    assert_eq!(readable.count(), 2);
    assert_eq!(listed[0].path, folder.join("broken.tar.gz"));
    assert!(!listed[0].is_recorded && listed[0].error.is_some());
    let kind = |result: Result<(), ServiceError>| result.unwrap_err().kind();
    assert_eq!(kind(no_list.map(|_| ())), ErrorKind::NotFound);
    assert_eq!(kind(no_prune.map(|_| ())), ErrorKind::NotFound);
    let actions = pruned.archives.iter().map(|it| (it.action, &it.path));
    assert_eq!(
        actions.collect::<Vec<_>>(),
        [(PruneAction::Keep, &new), (PruneAction::Delete, &old)]
    );
}

#[tokio::test]
async fn only_the_file_that_was_listed_is_deleted() {
    let home = Home::empty();
    let name = home.path("zeroclaw-backup-one.tar.gz");
    let gone = home.path("zeroclaw-backup-two.tar.gz");
    for path in [&name, &gone] {
        fs::write(path, "listed").unwrap();
    }
    let listed = zeroclaw::backup::inventory(&home.path("")).await.unwrap();
    let other = home.path("other");
    fs::write(&other, "listed").unwrap();

    fs::rename(&other, &name).unwrap();
    fs::remove_file(&gone).unwrap();

    assert_eq!(listed.len(), 2);
    listed[0].delete().unwrap_err();
    assert!(name.exists());
    listed[1].delete().unwrap();
}
