//! How a root is beside what is in it: each check finds its fault, and `--fix` mends it or says who can.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::state::findings;
use crate::support::inhabited;
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite;

fn inhabited() -> Sandbox {
    let home = Sandbox::in_memory();
    inhabited::build(&home.root());
    home
}

fn look(home: &Sandbox) -> Value {
    let ran = home.zeroclaw(&["doctor", "--json"]);
    ran.json()
}

fn has(report: &Value, code: &str) -> bool {
    findings(report).iter().any(|(found, _)| found == code)
}

/// Fails unless a fault is found, leads to a remedy, and is gone after `--fix`, for which a second one finds nothing to do.
#[track_caller]
fn is_mended(home: &Sandbox, code: &str) {
    let found = look(home);
    assert!(has(&found, code), "no {code} in {found}");
    for finding in found["findings"].as_array().unwrap() {
        assert!(!finding["place"].as_str().unwrap().is_empty(), "{finding}");
        assert!(finding["remedy"].is_string(), "{finding}");
    }

    let fixed = home.zeroclaw(&["doctor", "--fix", "--json"]).json();

    assert_eq!(fixed["changed"], true, "{fixed}");
    assert!(!has(&fixed, code), "{fixed}");
    assert!(!has(&look(home), code));
    let before = home.tree();
    home.zeroclaw(&["doctor", "--fix"])
        .says("nothing was changed");
    home.is_unchanged_since(&before);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn make_old(path: &Path, age: Duration) {
    let file = File::open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

const HOUR: Duration = Duration::from_secs(60 * 60);

#[test]
fn c68_what_others_can_get_at_is_found_and_tightened() {
    let home = inhabited();
    let install = LegacyInstall::new(home.root());
    install
        .config("schema_version = 3\n[agents.atlas]\n")
        .secret_key()
        .file("ms365_token_cache_ab12.json", b"{}");
    let loose = [
        ("state", 0o755),
        ("state/state.sqlite", 0o644),
        ("agents/atlas/agent/agent.sqlite", 0o660),
        ("agents/atlas/agent", 0o711),
        (".secret_key", 0o640),
        ("ms365_token_cache_ab12.json", 0o604),
    ];
    for (path, mode) in loose {
        set_mode(&install.path(path), mode);
    }

    let found = look(&home);
    let named: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["code"] == "loose-mode")
        .map(|finding| finding["place"].as_str().unwrap())
        .collect();
    assert_eq!(named.len(), loose.len(), "{named:?}");
    is_mended(&home, "loose-mode");

    for (path, before) in loose {
        assert_eq!(mode(&install.path(path)), before & 0o700, "{path}");
    }
}

#[test]
fn c68_nothing_gets_looser_whatever_the_umask() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    set_mode(&install.path(".secret_key"), 0o400);
    set_mode(&home.root(), 0o500);
    set_mode(&home.root(), 0o700);
    let before: Vec<(std::path::PathBuf, u32)> = modes_below(&home.root());

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    for (path, mode_before) in before {
        if path.exists() {
            assert_eq!(mode(&path) & !mode_before, 0, "{}", path.display());
        }
    }
    assert_eq!(mode(&install.path(".secret_key")), 0o400);
}

fn modes_below(root: &Path) -> Vec<(std::path::PathBuf, u32)> {
    walkdir::WalkDir::new(root)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .map(|path| (path.clone(), mode(&path)))
        .collect()
}

#[test]
fn c68_as_root_in_the_home_of_another_user_what_is_made_is_given_to_that_user() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    if fs::metadata(home.root()).unwrap().uid() != 0 {
        println!("skipped: only root can run as root");
        return;
    }
    for (path, _) in modes_below(&home.root()) {
        std::os::unix::fs::lchown(path, Some(1000), Some(1000)).unwrap();
    }

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    let of_root: Vec<_> = modes_below(&home.root())
        .into_iter()
        .filter(|(path, _)| fs::symlink_metadata(path).unwrap().uid() == 0)
        .collect();
    assert!(of_root.is_empty(), "{of_root:?}");
    assert!(install.path("state/state.sqlite").exists());
    // One that a run without an end left behind is found and given back too.
    std::os::unix::fs::lchown(install.path("state/state.sqlite"), Some(0), Some(0)).unwrap();
    is_mended(&home, "foreign-owner");
}

#[test]
fn temporary_files_of_killed_processes_go_and_young_ones_stay() {
    let home = inhabited();
    let install = LegacyInstall::new(home.root());
    install
        .file("state/.zeroclaw-tmp-old", b"x")
        .file("backups/.zeroclaw-tmp-old", b"x")
        .file("backups/.zeroclaw-tmp-young", b"x")
        .file("state/.restore-dead/one", b"x");
    for path in [
        "state/.zeroclaw-tmp-old",
        "backups/.zeroclaw-tmp-old",
        "state/.restore-dead",
    ] {
        make_old(&install.path(path), 2 * HOUR);
    }
    let scratch = home.home().join("tmp/zeroclaw-check-dead");
    fs::create_dir(&scratch).unwrap();
    make_old(&scratch, 24 * 8 * HOUR);

    is_mended(&home, "leftover-temp");

    assert!(!install.path("state/.restore-dead").exists() && !scratch.exists());
    assert!(install.path("backups/.zeroclaw-tmp-young").exists());
}

#[test]
fn the_text_of_a_killed_writer_in_the_lock_is_told_and_cleared() {
    let home = inhabited();
    let lock = home.root().join("state/daemon.lock");
    fs::write(&lock, "{\"kind\":\"cli\",\"pid\":1}\n").unwrap();

    is_mended(&home, "stale-lock");

    assert_eq!(fs::metadata(&lock).unwrap().len(), 0);
}

#[test]
fn a_log_without_its_database_is_told_and_needs_a_person() {
    let home = inhabited();
    let database = home.root().join("agents/brook/agent/agent.sqlite");
    fs::write(sqlite::sidecar(&database, "-wal"), b"rows").unwrap();
    fs::rename(&database, home.home().join("elsewhere")).unwrap();

    let found = look(&home);

    let lone = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["code"] == "lone-log")
        .unwrap();
    assert_eq!(lone["level"], "warning");
    assert!(lone["remedy"].as_str().unwrap().contains("never pair it"));
}

#[test]
fn c44_an_unfit_filesystem_is_warned_of_and_the_exit_code_says_it() {
    let home = inhabited();
    for (kind, code) in [
        ("nfs4", "network-filesystem"),
        ("fuse.sshfs", "network-filesystem"),
        ("virtiofs", "shared-filesystem"),
        ("9p", "shared-filesystem"),
        ("tmpfs", "volatile-filesystem"),
        ("ramfs", "volatile-filesystem"),
    ] {
        let table = home.home().join("mountinfo");
        fs::write(&table, format!("22 1 254:0 / / rw - {kind} x rw\n")).unwrap();
        for args in [&["doctor"][..], &["doctor", "--fix"]] {
            let mut command = home.command(args);
            command.env("ZEROCLAW_MOUNTINFO", &table);

            Ran::of(command).exits(1).says(code).says("1 warning,");
        }
    }
}

#[test]
fn c44_a_synced_folder_is_warned_of() {
    let home = inhabited();
    fs::create_dir(home.home().join(".stfolder")).unwrap();

    home.zeroclaw(&["doctor"]).exits(1).says("synced-folder");
}

#[test]
fn c26_advice_changes_no_exit_code_and_every_finding_says_what_to_do() {
    let home = inhabited();
    let install = LegacyInstall::new(home.root());
    install.file("something/strange.bin", b"x");

    let report = home.zeroclaw(&["doctor", "--json"]).exits(0).json();

    assert!(
        has(&report, "unknown-files") && has(&report, "backup-missing")
            || has(&report, "backup-stale")
    );
    for (code, level) in findings(&report) {
        assert_eq!(level, "advice", "{code}");
    }
    home.zeroclaw(&["doctor"])
        .exits(0)
        .says("0 errors, 0 warnings")
        .says("next: zeroclaw backup create");
}

#[test]
fn the_verdict_counts_and_names_the_next_command() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());

    home.zeroclaw(&["doctor"])
        .exits(7)
        .says("; next: zeroclaw doctor --fix\n");
}

#[test]
fn c70_c28_a_look_at_a_read_only_root_works_and_changes_nothing() {
    let home = inhabited();
    set_mode(&home.root().join("state/state.sqlite"), 0o644);
    let before = home.tree();

    let report = look(&home);

    assert!(has(&report, "loose-mode"));
    home.is_unchanged_since(&before);
}
