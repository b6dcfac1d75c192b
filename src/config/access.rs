//! Who may touch whose workspace, as the configuration says it and nothing else.
//!
//! An agent owns its workspace. Those of others are closed but for what `[agents.<id>.workspace.access]` of the asking
//! agent opens, agent by agent. Nothing follows from a grant of somebody else: if a may read b's and b may read c's, a may
//! not read c's. `unrestricted_filesystem` takes the walls away, for the whole disk.

use std::collections::BTreeMap;

use toml::Value;

use super::Config;
use super::section::{Section, Warnings};

/// What an agent may do with the files of a workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// Nothing.
    #[default]
    None,
    /// Read.
    Read,
    /// Write, without seeing what is there.
    Write,
    /// Both.
    ReadWrite,
}

impl FileAccess {
    /// Whether files may be read and listed.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether files may be made, changed and removed.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }

    fn parse(word: &str) -> Option<Self> {
        match word {
            "read" => Some(Self::Read),
            "write" => Some(Self::Write),
            "read_write" | "read-write" | "readwrite" => Some(Self::ReadWrite),
            _ => None,
        }
    }
}

impl Config {
    /// What `agent` may do with files in the workspace of `owner`.
    ///
    /// An agent that the configuration does not name may touch its own workspace alone.
    #[must_use]
    pub fn file_access(&self, agent: &str, owner: &str) -> FileAccess {
        if agent == owner {
            return FileAccess::ReadWrite;
        }
        match self.agents.get(agent) {
            Some(config) if config.unrestricted_filesystem => FileAccess::ReadWrite,
            Some(config) => config
                .workspace_access
                .get(owner)
                .copied()
                .unwrap_or_default(),
            None => FileAccess::None,
        }
    }

    /// Whether `agent` may touch the whole disk.
    #[must_use]
    pub fn is_unrestricted(&self, agent: &str) -> bool {
        self.agents
            .get(agent)
            .is_some_and(|config| config.unrestricted_filesystem)
    }
}

/// Reads `access`; a word that is none opens nothing.
pub(super) fn workspace_access(
    workspace: &Section<'_>,
    warnings: &mut Warnings,
) -> BTreeMap<String, FileAccess> {
    let Some(access) = workspace.section("access", warnings) else {
        return BTreeMap::new();
    };
    let mut granted = BTreeMap::new();
    for owner in access.table.keys() {
        let take = |value: &Value| value.as_str().and_then(FileAccess::parse);
        let wanted = "\"read\", \"write\" or \"read_write\"";
        if let Some(mode) = access.get(owner, wanted, take, warnings) {
            granted.insert(owner.clone(), mode);
        }
    }
    granted
}
