//! Whose files are, and who may read them.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::legacy::copy_sample;
use crate::support::sandbox::{Ran, Sandbox};

/// Nobody in particular, and not root.
const SOMEBODY: u32 = 1000;

fn each(root: &Path) -> Vec<(String, std::fs::Metadata)> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    entries
        .map(|entry| {
            (
                entry.path().display().to_string(),
                entry.metadata().unwrap(),
            )
        })
        .collect()
}

fn nothing_is_loose(root: &Path) {
    // What it was given is not its own making.
    for (path, found) in each(root).into_iter().skip(1) {
        assert_eq!(found.mode() & 0o077, 0, "{path}: {:o}", found.mode());
    }
}

/// The program as a shell with that umask starts it.
fn under_umask(home: &Sandbox, umask: &str, args: &[&str]) -> Ran {
    let program = home.command(args);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
    command.arg(program.get_program()).args(program.get_args());
    command.env_clear().current_dir(home.home());
    command.envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    Ran::of(command)
}

#[test]
fn c68_nothing_gets_looser_whatever_the_umask() {
    for umask in ["000", "077"] {
        let home = Sandbox::in_memory();
        copy_sample(home.root());

        under_umask(&home, umask, &["doctor", "--fix"]).exits(0);

        nothing_is_loose(&home.root());
    }
}

#[test]
fn c68_a_kill_under_an_open_umask_leaves_no_loose_log() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());

    let program = home.command(&["doctor", "--fix"]);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "umask 000; exec \"$0\" doctor --fix"])
        .arg(program.get_program());
    command
        .env_clear()
        .env("HOME", home.home())
        .env("TMPDIR", home.home().join("tmp"));
    command.env("ZEROCLAW_FAULT", "doctor-before-commit:3");
    let killed = Ran::of(command);

    assert_eq!(killed.code(), None, "{}", killed.told());
    let names: Vec<String> = each(&home.root())
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert!(names.iter().any(|name| name.ends_with("-wal")), "{names:?}");
    nothing_is_loose(&home.root());
    nothing_is_loose(&home.home().join("tmp"));
}

/// Gives everything in HOME to somebody; says whether that is allowed.
fn given_to_somebody(home: &Sandbox) -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: may not give files away");
        return false;
    }
    for (path, _) in each(home.home()) {
        chown(&path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    true
}

#[test]
fn c68_run_by_root_what_is_made_belongs_to_whom_the_root_folder_does() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());
    if !given_to_somebody(&home) {
        return;
    }

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    for (path, found) in each(&home.root()) {
        assert_eq!((found.uid(), found.gid()), (SOMEBODY, SOMEBODY), "{path}");
    }
}

#[test]
fn c68_a_root_folder_that_somebody_may_only_write_through_their_group_is_no_obstacle() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());
    if !given_to_somebody(&home) {
        return;
    }
    chown(home.root(), Some(0), Some(SOMEBODY)).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o770);
    std::fs::set_permissions(home.root(), mode).unwrap();

    let mut command = home.command(&["doctor", "--fix"]);
    command.uid(SOMEBODY).gid(SOMEBODY);
    let Ok(output) = command.output() else {
        println!("skipped: the program cannot be started by somebody else");
        return;
    };

    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    for (path, found) in each(&home.root()).into_iter().skip(1) {
        assert_eq!((found.uid(), found.mode() & 0o077), (SOMEBODY, 0), "{path}");
    }
}
