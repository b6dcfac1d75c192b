//! Room: found out before the first change, and made while the program waits.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::state::State;
use crate::support::legacy::LegacyInstall;
use crate::support::sandbox::Sandbox;
use crate::support::scale::Scale;

/// A small filesystem in memory, gone with its value.
pub(super) struct Mount(PathBuf);

impl Mount {
    /// Mounts one at `path`; `None`, said aloud, where that is not allowed.
    pub(super) fn tmpfs(path: &Path, size: &str) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o"]);
        command
            .arg(format!("size={size},mode=700"))
            .arg("tmpfs")
            .arg(path);
        let may = rustix::process::geteuid().is_root();
        if may && command.output().is_ok_and(|output| output.status.success()) {
            return Some(Self(path.to_owned()));
        }
        println!("skipped: may not mount a tmpfs");
        None
    }

    pub(super) fn resize(&self, size: &str) {
        let mut command = Command::new("mount");
        command
            .args(["-o", &format!("remount,size={size}")])
            .arg(&self.0);
        assert!(command.status().unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazy, so that a test that failed with a file open leaves no mount behind.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn c21_without_room_nothing_is_begun_and_the_bytes_are_told() {
    let home = Sandbox::new();
    std::fs::create_dir(home.root()).unwrap();
    let Some(mount) = Mount::tmpfs(&home.root(), "16m") else {
        return;
    };
    let install = LegacyInstall::new(home.root());
    install.config("schema_version = 3\n[agents.atlas]\n");
    install.many_files(
        100,
        10,
        Scale {
            text_bytes: 10_000,
            ..Scale::default()
        },
    );
    let before = home.tree();

    let refused = home.zeroclaw(&["doctor", "--fix"]).exits(8).says_nothing();

    home.is_unchanged_since(&before);
    let root = home.root();
    let refused = refused
        .complains(root.to_str().unwrap())
        .complains("bytes free");
    let numbers: Vec<u64> = refused
        .stderr
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|text| text.parse().ok())
        .filter(|number| *number > 1_000_000)
        .collect();
    assert_eq!(numbers.len(), 2, "free and needed: {}", refused.stderr);

    mount.resize("256m");
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    assert_eq!(State::of(home.root()).sessions().len(), 100);
}
