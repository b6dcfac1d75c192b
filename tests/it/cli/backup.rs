//! `zeroclaw backup` as a person uses it. What an archive holds is the business of the backup tests.

use std::path::PathBuf;

use zeroclaw::service::{Clock, HolderKind, Service};

use crate::support::inhabited;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;

const SECRET: &str = "key-SECRET-0123456789";

/// A root with something of everything, a key, and one archive of it.
fn with_archive() -> (Sandbox, String) {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    std::fs::write(home.root().join(".secret_key"), SECRET).unwrap();
    let made = home
        .zeroclaw(&["backup", "create", "--output", "one.tar.gz", "--json"])
        .exits(0);
    let archive = made.json()["archive"].as_str().unwrap().to_owned();
    (home, archive)
}

#[test]
fn an_archive_is_made_proved_listed_and_private() {
    let home = Sandbox::new();
    inhabited::build(&home.root());

    let made = home.zeroclaw(&["backup", "create"]).exits(0);

    assert!(made.stdout.contains("agents/atlas/agent/agent.sqlite"));
    assert!(made.stdout.contains("verified"));
    let archive: PathBuf = made
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("archive "))
        .map(|path| path.trim().into())
        .unwrap();
    assert!(archive.starts_with(home.root().join("backups")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&archive).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    home.zeroclaw(&["backup", "verify", archive.to_str().unwrap()])
        .exits(0)
        .says("good");
    home.zeroclaw(&["backup", "list"])
        .exits(0)
        .says(archive.to_str().unwrap());
}

#[test]
fn a_dry_run_of_a_backup_leaves_no_trace() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let before = home.tree();

    home.zeroclaw(&["backup", "create", "--dry-run"])
        .exits(0)
        .says("agents/brook/agent/agent.sqlite")
        .complains("nothing was written");

    home.is_unchanged_since(&before);
}

#[test]
fn c28_a_verification_and_a_dry_run_of_a_restore_leave_no_trace() {
    let (home, archive) = with_archive();
    let before = home.tree();

    home.zeroclaw(&["backup", "verify", &archive]).exits(0);
    home.zeroclaw(&["backup", "verify", "--deep", &archive])
        .exits(0);
    home.zeroclaw(&[
        "backup",
        "restore",
        &archive,
        "--target",
        "elsewhere",
        "--dry-run",
    ])
    .exits(0)
    .says("create")
    .complains("nothing was written");

    home.is_unchanged_since(&before);
}

#[test]
fn what_a_killed_verification_left_goes_with_the_next() {
    let (home, archive) = with_archive();
    let scratch = home.home().join("tmp");
    let left = || std::fs::read_dir(&scratch).unwrap().count();
    let mut killed = home.command(&["backup", "verify", &archive]);
    killed.env("ZEROCLAW_FAULT", "verify.proved");

    assert!(!killed.output().unwrap().status.success());
    assert_eq!(left(), 1);
    home.zeroclaw(&["backup", "verify", &archive]).exits(0);

    assert_eq!(left(), 0);
}

#[test]
fn a_restore_without_consent_exits_10_and_names_the_command() {
    let (home, archive) = with_archive();
    let before = home.tree();

    let refused = home
        .zeroclaw(&["backup", "restore", &archive])
        .exits(10)
        .says_nothing()
        .complains("--dry-run")
        .complains("--yes");

    assert!(refused.stderr.contains(home.root().to_str().unwrap()));
    home.is_unchanged_since(&before);
    home.zeroclaw(&["backup", "restore", &archive, "--dry-run", "--yes"])
        .exits(2);
}

#[test]
fn a_root_restored_elsewhere_shows_the_same() {
    let (home, archive) = with_archive();

    home.zeroclaw(&[
        "backup",
        "restore",
        &archive,
        "--target",
        "elsewhere",
        "--yes",
    ])
    .exits(0)
    .says("agents/atlas/agent/agent.sqlite");

    for args in [
        &["sessions", "list", "--archived", "--json"][..],
        &["sessions", "show", "large", "--all", "--json"],
        &["memory", "list", "--json"],
        &["cron", "runs", "--json"],
        &["doctor", "history", "--json"],
    ] {
        let here = home.zeroclaw(args).exits(0);
        let there = home
            .zeroclaw(&[&["--config-dir", "elsewhere"], args].concat())
            .exits(0);
        assert_eq!(here.json(), there.json(), "{args:?}");
    }
}

#[test]
fn a_flipped_byte_exits_6_and_a_missing_archive_9() {
    let (home, archive) = with_archive();
    let mut bytes = std::fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&archive, bytes).unwrap();
    let before = home.tree();

    for args in [
        &["backup", "verify", archive.as_str()][..],
        &[
            "backup",
            "restore",
            &archive,
            "--target",
            "elsewhere",
            "--yes",
        ],
    ] {
        home.zeroclaw(args)
            .exits(6)
            .says_nothing()
            .complains("is damaged");
    }
    home.zeroclaw(&["backup", "verify", "nowhere.tar.gz"])
        .exits(9)
        .says_nothing();

    home.is_unchanged_since(&before);
}

#[test]
fn a_restore_over_a_writer_exits_4() {
    let (home, archive) = with_archive();
    let service = block_on(Service::open(
        &home.root(),
        Clock::system(),
        HolderKind::Daemon,
    ))
    .unwrap();

    for consent in ["--dry-run", "--yes"] {
        home.zeroclaw(&["backup", "restore", &archive, consent])
            .exits(4)
            .says_nothing()
            .complains(&format!("daemon (pid {}", std::process::id()));
    }

    drop(service);
}

#[test]
fn secrets_are_told_of_and_never_told() {
    let (home, archive) = with_archive();

    for args in [
        &["backup", "create", "--dry-run"][..],
        &["backup", "verify", &archive],
        &["backup", "list", "--json"],
        &["backup", "restore", &archive, "--dry-run"],
    ] {
        let ran = home.zeroclaw(&[args, &["-vvv"]].concat()).exits(0);
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET));
    }
    home.zeroclaw(&["backup", "create", "--dry-run"])
        .says("inside: keep the archive as safe as the root");
    home.zeroclaw(&["backup", "create", "--dry-run", "--no-secrets"])
        .says("left out");
}

#[test]
fn every_field_of_a_report_is_documented() {
    let (home, archive) = with_archive();

    for args in [
        &["backup", "create", "--dry-run", "--json"][..],
        &["backup", "create", "--json"],
        &["backup", "create", "--no-secrets", "--json"],
        &["backup", "verify", &archive, "--json"],
        &["backup", "restore", &archive, "--dry-run", "--json"],
    ] {
        super::json::is_documented(args, &home.zeroclaw(args).exits(0).json());
    }
}
