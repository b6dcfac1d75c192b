//! What a worker is given.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// Which files a worker sees, and where what it writes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FsMode {
    /// The workspace on disk.
    Disk,
    /// The workspace on disk, under a layer in the database that takes every change: the disk stays as it is.
    VfsScratch,
    /// The agent's files in the database; the disk is not seen.
    VfsOnly,
}

text_enum!(FsMode {
    Disk => "disk",
    VfsScratch => "vfs-scratch",
    VfsOnly => "vfs-only",
});

/// All a worker is given: it opens its own connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// The agent it works for.
    pub agent_id: AgentId,
    /// The run it does.
    pub run_id: String,
    /// Which files it sees.
    pub fs_mode: FsMode,
    /// The root.
    pub root: PathBuf,
}
