//! A place of its own for the compiled program: HOME, root and temporary folder, and nothing of the machine's.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::tree::{TreeEntry, assert_same_tree, tree_hash};

/// A HOME for one test, gone with it.
pub(crate) struct Sandbox {
    home: TempDir,
}

impl Sandbox {
    /// A HOME without a root.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("tmp")).unwrap();
        Self { home }
    }

    /// A HOME in memory where the system has room for one, else as [`Self::new`].
    ///
    /// For tests of many runs: a kill of the program loses nothing that it wrote, so waiting for a disk proves nothing.
    pub(crate) fn in_memory() -> Self {
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let home = home.unwrap();
        std::fs::create_dir(home.path().join("tmp")).unwrap();
        Self { home }
    }

    /// Where the root is, or would be.
    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().join(".zeroclaw")
    }

    /// The whole HOME, temporary files included.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The program, to be started with the environment it has here.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zeroclaw"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .env("TMPDIR", self.home.path().join("tmp"))
            // Where a test happens to run, in memory or not, is not what it is about.
            .env("ZEROCLAW_MOUNTINFO", "/dev/null")
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn zeroclaw<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran::of(self.command(args))
    }

    /// Everything below HOME.
    pub(crate) fn tree(&self) -> Vec<TreeEntry> {
        tree_hash(self.home.path())
    }

    /// Fails unless HOME is as it was.
    #[track_caller]
    pub(crate) fn is_unchanged_since(&self, before: &[TreeEntry]) {
        assert_same_tree(before, &self.tree());
    }

    /// The same after a kill: SQLite makes the index of a killed writer's log anew in place, which is no state.
    #[track_caller]
    pub(crate) fn is_unchanged_but_for_indexes_since(&self, before: &[TreeEntry]) {
        let state = |tree: &[TreeEntry]| -> Vec<TreeEntry> {
            let kept = tree.iter().filter(|entry| !entry.path.ends_with(b"-shm"));
            kept.cloned().collect()
        };
        assert_same_tree(&state(before), &state(&self.tree()));
    }
}

/// A program that ended.
pub(crate) struct Ran {
    line: String,
    code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Runs a command to its end; what it says must be UTF-8.
    pub(crate) fn of(mut command: Command) -> Self {
        let line = format!("{command:?}");
        let output = command.output().unwrap();
        Self {
            line,
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it ended with; `None` when a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.code
    }

    /// Everything about it, for a message.
    pub(crate) fn told(&self) -> String {
        format!(
            "{}\nexit: {:?}\nstdout: {}\nstderr: {}",
            self.line, self.code, self.stdout, self.stderr
        )
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.told());
        self
    }

    /// Fails unless stdout holds this text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "no {text:?} in {}", self.told());
        self
    }

    /// Fails unless stderr holds this text.
    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in {}", self.told());
        self
    }

    /// Fails unless stdout is empty.
    #[track_caller]
    pub(crate) fn says_nothing(self) -> Self {
        assert!(self.stdout.is_empty(), "{}", self.told());
        self
    }

    /// Fails unless stderr is empty.
    #[track_caller]
    pub(crate) fn complains_of_nothing(self) -> Self {
        assert!(self.stderr.is_empty(), "{}", self.told());
        self
    }

    /// stdout, which must be one JSON value on one line.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.told());
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.told()))
    }

    /// stderr, which must be one JSON value on one line.
    #[track_caller]
    pub(crate) fn json_error(&self) -> Value {
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.told());
        serde_json::from_str(&self.stderr)
            .unwrap_or_else(|error| panic!("{error}: {}", self.told()))
    }
}
