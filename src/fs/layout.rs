//! Where everything lies under a root, and which folder is the root.
//!
//! The only place that joins path parts of the product. Paths are never turned into text: a root may have a name
//! that is not UTF-8.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

const CONFIG_FILE: &str = "config.toml";
const ROOT_FOLDER: &str = ".zeroclaw";

/// How the names of restores' staging folders begin.
pub const RESTORE_PREFIX: &str = ".restore-";
/// How the names of archives begin.
pub const ARCHIVE_PREFIX: &str = "zeroclaw-backup-";
/// How the names of archives of one agent begin: never taken for a backup of the root.
pub const AGENT_ARCHIVE_PREFIX: &str = "zeroclaw-agent-";
/// How the names of archives end.
pub const ARCHIVE_SUFFIX: &str = ".tar.gz";
/// How the names of encrypted archives end.
pub const SEALED_SUFFIX: &str = ".tar.gz.age";
/// How the names of archives end that an import makes before its first change.
pub const BEFORE_IMPORT_SUFFIX: &str = "-before-import.tar.gz";

/// Every path of one root. Computes only; touches no disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Takes the root folder, which need not exist.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder that holds everything.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path as the state keeps it: relative to the root where it lies inside, so that a moved root still finds it.
    #[must_use]
    pub fn stored<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// The user's configuration: read, never written.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.root.join(CONFIG_FILE)
    }

    /// The user's secret key: read, never written.
    #[must_use]
    pub fn secret_key_file(&self) -> PathBuf {
        self.root.join(".secret_key")
    }

    /// Folder of the global tier, the locks and the retired sources.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Database of the global tier.
    #[must_use]
    pub fn global_db(&self) -> PathBuf {
        self.state_dir().join("state.sqlite")
    }

    /// File under the lock of whoever writes the root.
    #[must_use]
    pub fn daemon_lock(&self) -> PathBuf {
        self.state_dir().join("daemon.lock")
    }

    /// Socket on which the daemon answers, unless it was given another place.
    #[must_use]
    pub fn daemon_socket(&self) -> PathBuf {
        self.state_dir().join("daemon.sock")
    }

    /// File under the lock of whoever migrates a schema.
    #[must_use]
    pub fn migrate_lock(&self) -> PathBuf {
        self.state_dir().join("migrate.lock")
    }

    /// Journal of a restore under way; present only while one is unfinished.
    #[must_use]
    pub fn restore_journal(&self) -> PathBuf {
        self.state_dir().join("restore.journal")
    }

    /// Folder in which a restore gathers the new files, on the filesystem of the state.
    #[must_use]
    pub fn restore_staging_dir(&self, id: &str) -> PathBuf {
        self.state_dir()
            .join(format!("{RESTORE_PREFIX}{}", one_name(id)))
    }

    /// Folder of the files that all restores set aside.
    #[must_use]
    pub fn restored_dir(&self) -> PathBuf {
        self.state_dir().join("restored")
    }

    /// Folder of the files that one restore set aside, each under its old path.
    #[must_use]
    pub fn restored_run_dir(&self, id: &str) -> PathBuf {
        self.restored_dir().join(one_name(id))
    }

    /// Folder of the sources retired by all import runs.
    #[must_use]
    pub fn migrated_dir(&self) -> PathBuf {
        self.state_dir().join("migrated")
    }

    /// Folder of the sources retired by one import run.
    #[must_use]
    pub fn migrated_run_dir(&self, run_id: &str) -> PathBuf {
        self.migrated_dir().join(one_name(run_id))
    }

    /// Folder of the bytes that one import run could not read.
    ///
    /// Outside of [`migrated_run_dir`](Self::migrated_run_dir), which mirrors old paths of any name.
    #[must_use]
    pub fn quarantine_dir(&self, run_id: &str) -> PathBuf {
        self.quarantines_dir().join(one_name(run_id))
    }

    /// Folder of the bytes that all import runs could not read.
    #[must_use]
    pub fn quarantines_dir(&self) -> PathBuf {
        self.state_dir().join("quarantine")
    }

    /// Folder of what all undone import runs had made.
    #[must_use]
    pub fn undone_dir(&self) -> PathBuf {
        self.state_dir().join("undone")
    }

    /// Folder of what one undone import run had made, each thing under its old path.
    #[must_use]
    pub fn undone_run_dir(&self, run_id: &str) -> PathBuf {
        self.undone_dir().join(one_name(run_id))
    }

    /// What an import found before it made the control plane; present until the control plane knows.
    #[must_use]
    pub fn before_import_file(&self) -> PathBuf {
        self.state_dir().join("import.before")
    }

    /// Folder of the copies of all agents' deleted sessions.
    #[must_use]
    pub fn all_deleted_dir(&self) -> PathBuf {
        self.state_dir().join("deleted")
    }

    /// Folder of the copies of one agent's deleted sessions.
    #[must_use]
    pub fn deleted_dir(&self, agent: &str) -> PathBuf {
        self.all_deleted_dir().join(one_name(agent))
    }

    /// Folder of all agents.
    #[must_use]
    pub fn agents_dir(&self) -> PathBuf {
        self.root.join("agents")
    }

    /// Folder of one agent, or of a retired generation `<id>@<stamp>`.
    #[must_use]
    pub fn agent_dir(&self, id: &str) -> PathBuf {
        self.agents_dir().join(one_name(id))
    }

    /// Folder of one agent's database and its sidecars.
    #[must_use]
    pub fn agent_db_dir(&self, id: &str) -> PathBuf {
        self.agent_dir(id).join("agent")
    }

    /// Database of one agent's tier.
    #[must_use]
    pub fn agent_db(&self, id: &str) -> PathBuf {
        self.root.join(Self::agent_db_relative(id))
    }

    /// Database of one agent's tier as the registry stores it, relative to the root.
    #[must_use]
    pub fn agent_db_relative(id: &str) -> PathBuf {
        ["agents", one_name(id), "agent", "agent.sqlite"]
            .iter()
            .collect()
    }

    /// Folder of one agent's own files: ours only to respect.
    #[must_use]
    pub fn workspace(&self, id: &str) -> PathBuf {
        self.agent_dir(id).join("workspace")
    }

    /// Default home of archives.
    #[must_use]
    pub fn backups_dir(&self) -> PathBuf {
        self.root.join("backups")
    }
}

/// Callers hand in ids that were checked when they were made; a separator here is a bug of the caller.
fn one_name(id: &str) -> &str {
    debug_assert!(
        !id.is_empty() && !id.contains('/') && id != "." && id != "..",
        "not one path name: {id:?}"
    );
    id
}

/// Names the files SQLite may keep beside a database: `-wal`, `-shm`, `-journal`.
#[must_use]
pub fn sidecars(db: &Path) -> [PathBuf; 3] {
    ["-wal", "-shm", "-journal"].map(|suffix| {
        let mut name = db.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// Why no root could be named.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// The folder was given as an empty text.
    #[error("the configuration folder is an empty path")]
    Empty,
    /// Neither a flag nor an environment variable names a root, and there is no home folder.
    #[error(
        "no home folder: HOME is not set, and neither --config-dir nor ZEROCLAW_CONFIG_DIR is given"
    )]
    NoHome,
    /// The working folder, which a relative path starts from, cannot be found.
    #[error("cannot make {} absolute", path.display())]
    Relative {
        /// The relative path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Finds the root: the flag, `ZEROCLAW_CONFIG_DIR`, `ZEROCLAW_DATA_DIR`, `ZEROCLAW_WORKSPACE`, on macOS the folder of the
/// Homebrew that holds the program, `~/.zeroclaw`, in this order.
///
/// The last two variables name a data folder. The root is that folder itself if it holds a configuration; else the
/// `.zeroclaw` beside it, if that holds one or the folder is called `data` or `workspace`; else the folder itself.
///
/// Values that are empty, `undefined` or `null` count as unset. A leading `~` stands for `HOME`. The result is
/// absolute; it need not exist.
///
/// # Errors
///
/// [`RootError`] when the flag is empty, there is no home to fall back on, or the working folder is gone.
pub fn resolve_root(
    flag: Option<PathBuf>,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, RootError> {
    let set = |name: &str| env(name).filter(|value| is_set(value)).map(PathBuf::from);
    let home = set("HOME");
    let full = |path: PathBuf| absolute(&expand_home(&path, home.as_deref()));

    if let Some(path) = flag {
        return if path.as_os_str().is_empty() {
            Err(RootError::Empty)
        } else {
            full(path)
        };
    }
    if let Some(path) = set("ZEROCLAW_CONFIG_DIR") {
        return full(path);
    }
    if let Some(path) = set("ZEROCLAW_DATA_DIR").or_else(|| set("ZEROCLAW_WORKSPACE")) {
        return Ok(root_near(&full(path)?));
    }
    if let Some(root) = std::env::current_exe()
        .ok()
        .filter(|_| cfg!(target_os = "macos"))
        .and_then(|program| homebrew_root(&program))
    {
        return Ok(root);
    }
    match home {
        Some(home) => absolute(&home.join(ROOT_FOLDER)),
        None => Err(RootError::NoHome),
    }
}

/// The root of a program that Homebrew installed: `<prefix>/var/zeroclaw`, where `<prefix>/Cellar` holds the program.
fn homebrew_root(program: &Path) -> Option<PathBuf> {
    let real = program
        .canonicalize()
        .unwrap_or_else(|_| program.to_owned());
    let cellar = real
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "Cellar"))?;
    Some(cellar.parent()?.join("var/zeroclaw"))
}

/// Replaces a leading `~` by the home folder; leaves `~name` and everything else as it is.
#[must_use]
pub fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_path_buf(),
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}

/// Finds the root that a data folder belongs to, as [`resolve_root`] says.
fn root_near(folder: &Path) -> PathBuf {
    let beside = folder.parent().map(|parent| parent.join(ROOT_FOLDER));
    match beside {
        _ if folder.join(CONFIG_FILE).exists() => folder.to_path_buf(),
        Some(beside) if beside.join(CONFIG_FILE).exists() || has_usual_name(folder) => beside,
        _ => folder.to_path_buf(),
    }
}

fn has_usual_name(folder: &Path) -> bool {
    folder
        .file_name()
        .is_some_and(|name| name == "data" || name == "workspace")
}

fn is_set(value: &OsStr) -> bool {
    match value.to_str().map(str::trim) {
        Some(text) => !matches!(text, "" | "undefined" | "null"),
        None => true,
    }
}

fn absolute(path: &Path) -> Result<PathBuf, RootError> {
    std::path::absolute(path).map_err(|source| RootError::Relative {
        path: path.to_path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests;
