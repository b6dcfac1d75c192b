//! Builds installs as the old program left them.
//!
//! Tests write recipes, not binaries: schema text from `tests/fixtures/legacy/zeroclaw/ddl`, rows as SQL, everything
//! else as bytes. Files are 0600 and folders 0700, as the old program made its private ones.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::recipe::{self, Recipe};
use super::sqlite::{self, Journal};

/// A legacy install under construction.
#[derive(Debug, Clone)]
pub(crate) struct LegacyInstall {
    root: PathBuf,
}

impl LegacyInstall {
    /// Starts an install at `dir`, which is created if absent.
    pub(crate) fn new(dir: impl Into<PathBuf>) -> Self {
        let root = dir.into();
        create_private_dir(&root);
        Self { root }
    }

    /// The folder that holds `config.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where a file of the install lies.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Writes `config.toml`.
    pub(crate) fn config(&self, text: &str) -> &Self {
        self.file("config.toml", text.as_bytes())
    }

    /// Writes a `.secret_key` that anyone can see is made up.
    pub(crate) fn secret_key(&self) -> &Self {
        self.file(".secret_key", "f00dfeed".repeat(8).as_bytes())
    }

    /// Writes a file with exactly these bytes, and its folders. The name may be any the system takes.
    pub(crate) fn file(&self, relative: impl AsRef<Path>, bytes: &[u8]) -> &Self {
        let path = self.path(relative);
        create_private_dir(path.parent().unwrap());
        create_private_file(&path)
            .write_all(bytes)
            .unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
        self
    }

    /// Writes a JSONL file; the same as [`Self::file`], for the reader of a recipe.
    pub(crate) fn jsonl(&self, relative: impl AsRef<Path>, bytes: &[u8]) -> &Self {
        self.file(relative, bytes)
    }

    /// Writes an empty folder.
    pub(crate) fn folder(&self, relative: impl AsRef<Path>) -> &Self {
        create_private_dir(&self.path(relative));
        self
    }

    /// Writes a store that was closed in good order: no `-wal`, no `-journal`.
    ///
    /// * `ddl_file`: a name in `ddl/`; the journal mode follows from it.
    /// * `statements`: SQL scripts, run in one transaction with foreign keys off.
    pub(crate) fn sqlite(
        &self,
        relative: impl AsRef<Path>,
        ddl_file: &str,
        statements: &[&str],
    ) -> &Self {
        self.store(
            relative,
            journal_of(ddl_file),
            &recipe::ddl(ddl_file),
            statements,
        )
    }

    /// As [`Self::sqlite`], with the schema as text, for one that no release made.
    pub(crate) fn store(
        &self,
        relative: impl AsRef<Path>,
        journal: Journal,
        ddl: &str,
        statements: &[&str],
    ) -> &Self {
        let path = self.path(relative);
        create_private_dir(path.parent().unwrap());
        drop(create_private_file(&path));
        sqlite::block_on(async {
            let mut connection = sqlite::open(&path, journal).await;
            sqlite::run_together(&mut connection, &[ddl]).await;
            sqlite::run_together(&mut connection, statements).await;
            sqlx::Connection::close(connection).await.unwrap();
        });
        self
    }

    /// Writes a store whose last rows are committed in its `-wal` only, with no `-shm`, as a killed program leaves it.
    ///
    /// * `checkpointed`: scripts whose rows are in the main file.
    /// * `pending`: scripts whose rows are in the log.
    pub(crate) fn sqlite_with_wal(
        &self,
        relative: impl AsRef<Path>,
        ddl_file: &str,
        checkpointed: &[&str],
        pending: &[&str],
    ) -> &Self {
        assert_eq!(
            journal_of(ddl_file),
            Journal::Wal,
            "{ddl_file} has no write-ahead log"
        );
        let pair = sqlite::pair(&recipe::ddl(ddl_file), checkpointed, pending);
        let relative = relative.as_ref();
        self.file(relative, &pair.main)
            .file(sqlite::sidecar(relative, "-wal"), &pair.wal)
    }

    /// Runs a script on a store that exists, as a later life of the old program would, and closes it in good order.
    pub(crate) fn alter(
        &self,
        relative: impl AsRef<Path>,
        journal: Journal,
        script: &str,
    ) -> &Self {
        let path = self.path(relative);
        assert!(path.exists(), "{} does not exist", path.display());
        sqlite::block_on(async {
            let mut connection = sqlite::open(&path, journal).await;
            sqlite::run(&mut connection, script).await;
            sqlx::Connection::close(connection).await.unwrap();
        });
        self
    }

    /// How many rows a table of a store has, logs and journals included.
    pub(crate) fn rows(&self, relative: impl AsRef<Path>, table: &str) -> i64 {
        sqlite::number(
            &self.path(relative),
            &format!("SELECT count(*) FROM {table}"),
        )
    }
}

/// Only the cron store kept the default rollback journal.
fn journal_of(ddl_file: &str) -> Journal {
    if ddl_file.starts_with("cron_") {
        Journal::Rollback
    } else {
        Journal::Wal
    }
}

/// Builds the sample install at `dir` from `sample.recipe`.
pub(crate) fn build_sample(dir: impl Into<PathBuf>) -> LegacyInstall {
    let recipe = Recipe::named("sample.recipe");
    let install = LegacyInstall::new(dir);
    install
        .config(&recipe.sealed("config.toml"))
        .file(".secret_key", &recipe.bytes("secret_key"))
        .sqlite_with_wal(
            "data/sessions/sessions.db",
            "sessions_v0_8.sql",
            &[&recipe.sql("sessions.sql")],
            &[&recipe.sql("sessions.wal.sql")],
        )
        .jsonl(
            "data/sessions/telegram_main_42_lantern.jsonl",
            &recipe.bytes("live.jsonl"),
        )
        .jsonl(
            "data/sessions/telegram_main_43_tide.jsonl",
            &recipe::torn_inside_last_char(&recipe.text("torn.jsonl")),
        )
        .jsonl(
            "data/sessions/telegram_main_555_orchard.jsonl.migrated",
            &recipe.bytes("receipted.jsonl"),
        )
        .jsonl(
            "data/sessions/archive/2026-01-05_old_talk.jsonl",
            &recipe.bytes("archived.jsonl"),
        )
        .sqlite(
            "data/sessions/acp-sessions.db",
            "acp_v0_8_3.sql",
            &[&recipe.sql("acp.sql")],
        )
        .sqlite(
            "data/memory/brain.db",
            "brain_v0_8_3.sql",
            &[&recipe.sql("brain.sql")],
        )
        .sqlite(
            "data/cron/jobs.db",
            "cron_v0_8_4.sql",
            &[&recipe.sql("jobs.sql")],
        )
        .sqlite(
            "data/control_plane.db",
            "control_v8.sql",
            &[&recipe.sql("control.sql")],
        )
        .file(
            "data/delegate_results/7a5c0000-0000-4000-8000-000000000001.json",
            &recipe.bytes("result_output.json"),
        )
        .file(
            "data/delegate_results/7a5c0000-0000-4000-8000-000000000002.json",
            &recipe.bytes("result_status.json"),
        )
        .sqlite(
            "data/devices.db",
            "devices_v0_8.sql",
            &[&recipe.sql("devices.sql")],
        )
        .sqlite(
            "data/sop/runs.db",
            "sop_v0_8_2.sql",
            &[&recipe.sql("flows.sql")],
        )
        .sqlite(
            "data/heartbeat/history.db",
            "heartbeat_v0_4_3.sql",
            &[&recipe.sql("heartbeat.sql")],
        )
        .sqlite(
            "knowledge.db",
            "knowledge_v0_5.sql",
            &[&recipe.sql("knowledge.sql")],
        )
        .sqlite(
            "data/memory/audit.db",
            "audit_v0_5_7.sql",
            &[&recipe.sql("audit.sql")],
        )
        .jsonl("data/state/costs.jsonl", &recipe.bytes("costs.jsonl"))
        .jsonl(
            "data/state/runtime-trace.jsonl",
            &recipe.bytes("trace.jsonl"),
        )
        .jsonl(
            "data/state/runtime-trace.20260914-080003.jsonl",
            &recipe.bytes("trace-rotated.jsonl"),
        );
    install
}

/// The committed sample. Read it; copy it with [`copy_sample`] before running anything on it.
pub(crate) fn sample_dir() -> PathBuf {
    recipe::legacy_fixtures().join("sample")
}

/// Copies the committed sample to `dir`, private modes included, for a test to work on.
pub(crate) fn copy_sample(dir: impl Into<PathBuf>) -> LegacyInstall {
    let install = LegacyInstall::new(dir);
    copy_tree(&sample_dir(), install.root());
    install
}

/// Copies files and folders below `from` into `to`, byte for byte, with private modes. Links are refused.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    let target = LegacyInstall::new(to);
    for entry in walkdir::WalkDir::new(from).min_depth(1).sort_by_file_name() {
        let entry = entry.unwrap();
        let relative = entry.path().strip_prefix(from).unwrap();
        if entry.file_type().is_dir() {
            target.folder(relative);
        } else {
            assert!(
                entry.file_type().is_file(),
                "{} is not a plain file",
                entry.path().display()
            );
            target.file(relative, &fs::read(entry.path()).unwrap());
        }
    }
}

fn create_private_dir(path: &Path) {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()));
}

fn create_private_file(path: &Path) -> fs::File {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()))
}
