//! The program as another user: uid 1000 where the tests run as the superuser, else whoever runs them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sandbox::{Ran, Sandbox};

const UID: u32 = 1_000;

/// A HOME of another user.
pub(crate) struct Stranger {
    place: Sandbox,
    program: PathBuf,
    uid: Option<u32>,
}

impl Stranger {
    /// An empty HOME with a copy of the program: the folder it was built in may be closed to others.
    pub(crate) fn new() -> Self {
        let place = Sandbox::new();
        let program = place.home().join("zeroclaw");
        fs::copy(env!("CARGO_BIN_EXE_zeroclaw"), &program).unwrap();
        let is_superuser = fs::metadata(place.home()).unwrap().uid() == 0;
        let stranger = Self {
            place,
            program,
            uid: is_superuser.then_some(UID),
        };
        stranger.own(stranger.place.home());
        stranger
    }

    /// Who runs the program.
    pub(crate) fn uid(&self) -> u32 {
        self.uid
            .unwrap_or_else(|| fs::metadata(self.place.home()).unwrap().uid())
    }

    /// The whole HOME.
    pub(crate) fn home(&self) -> &Path {
        self.place.home()
    }

    /// Makes everything below a path the stranger's.
    pub(crate) fn own(&self, path: &Path) {
        let Some(uid) = self.uid else { return };
        for entry in walkdir::WalkDir::new(path) {
            lchown(entry.unwrap().path(), Some(uid), Some(uid)).unwrap();
        }
    }

    /// The program, to be started as the stranger.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home())
            .env("TMPDIR", self.home().join("tmp"))
            .current_dir(self.home());
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Runs the program to its end.
    pub(crate) fn zeroclaw<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran::of(self.command(args))
    }
}
