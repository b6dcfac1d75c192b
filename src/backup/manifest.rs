//! The list of contents of an archive: `manifest.json`, its first member.
//!
//! It names nothing of the machine it was written on: every path is relative to the root. Its own digest is the
//! archive's last member, so that a flipped byte in it does not pass as another list.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::names;
use crate::db::TaskMention;
use crate::fs::Layout;
use crate::model::{AgentId, AgentRecord};

/// Newest version of the format; a reader refuses a newer one.
pub const FORMAT_VERSION: i64 = 2;
/// Version of archives that a reader of the first one understands: all but those of a whole agent.
pub(super) const FIRST_VERSION: i64 = 1;
/// From here on an agent's archive may hold everything that is the agent's.
const WHOLE_AGENT_VERSION: i64 = 2;
/// Path of the manifest in an archive.
pub const MANIFEST_NAME: &str = "manifest.json";
/// Path of the manifest's digest, as `sha256sum -c` reads it.
pub const DIGEST_NAME: &str = "manifest.sha256";
/// Most members of an archive.
pub(super) const MAX_MEMBERS: usize = 100_000;
/// Largest manifest, bytes.
pub(super) const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// What an archive is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A whole root.
    #[default]
    Root,
    /// One agent, to be moved.
    Agent,
}

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// See [`FORMAT_VERSION`].
    pub format_version: i64,
    /// Release that wrote it.
    pub app_version: String,
    /// Identity of the backup.
    pub id: String,
    /// When it was begun, Unix milliseconds.
    pub created_at_ms: i64,
    /// The same as text.
    pub created_at: String,
    /// What it is of; archives that do not say are of a root.
    #[serde(default)]
    pub scope: Scope,
    /// The agent's row in the registry it came from; only for [`Scope::Agent`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<AgentRecord>,
    /// Tasks of others that name the agent; only for a whole one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub mentions: Vec<TaskMention>,
    /// Whether secrets were left in.
    pub has_secrets: bool,
    /// Every other member but the digest.
    pub members: Vec<Member>,
    /// What lies in the root and is not in the archive.
    pub left_out: Vec<LeftOut>,
}

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// What it is.
    pub kind: MemberKind,
    /// Whose database it is; only for databases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub role: Option<Role>,
    /// The agent, for an agent's database.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_id: Option<AgentId>,
    /// `user_version`; only for databases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schema_version: Option<i64>,
    /// Path in the archive and in the root, with `/`.
    pub archive_path: String,
    /// Size.
    pub bytes: u64,
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Permission bits of the original; a restored file is 0600 or 0700, see [`Member::is_program`].
    pub mode: u32,
    /// Rows of each ordinary table; only for databases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rows: Option<BTreeMap<String, i64>>,
    /// `ok`, or what SQLite found wrong; only for databases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub integrity: Option<String>,
}

impl Member {
    /// Whether it comes back as a program: files that are not ours do, where their owner could run them.
    #[must_use]
    pub fn is_program(&self) -> bool {
        let may_be = matches!(self.kind, MemberKind::Workspace | MemberKind::File);
        may_be && self.mode & 0o100 != 0
    }
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// A database, as a compact copy without sidecars.
    Database,
    /// The user's configuration.
    Config,
    /// A key.
    Key,
    /// A file with credentials.
    Credential,
    /// A file of an agent's workspace.
    Workspace,
    /// Any other file.
    File,
}

impl MemberKind {
    /// The word in the manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Config => "config",
            Self::Key => "key",
            Self::Credential => "credential",
            Self::Workspace => "workspace",
            Self::File => "file",
        }
    }
}

impl std::fmt::Display for MemberKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whose database a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The control plane.
    Global,
    /// One agent's.
    Agent,
    /// Another program's.
    Foreign,
}

impl Role {
    /// The word in the manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Agent => "agent",
            Self::Foreign => "foreign",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something of the root that is not in the archive: a file, or `database: table.column`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOut {
    /// Path relative to the root; of a column, that of its database and the column.
    pub path: String,
    /// Why.
    pub reason: String,
    /// Whether it was left out because it is a secret: somebody must put it back after a restore.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_secret: bool,
}

/// Why a manifest is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ManifestFault {
    /// Written in a newer format.
    Newer {
        /// Its version.
        found: i64,
        /// The release that wrote it.
        release: String,
    },
    /// Not a good list.
    Bad {
        /// The item, by its path.
        member: String,
        /// What is wrong.
        reason: String,
    },
}

impl ManifestFault {
    fn bad(member: &str, reason: impl Into<String>) -> Self {
        Self::Bad {
            member: names::shown(member),
            reason: reason.into(),
        }
    }
}

/// The part that every future format keeps.
#[derive(Deserialize)]
struct Head {
    format_version: i64,
    #[serde(default)]
    app_version: String,
}

impl Manifest {
    /// Reads a list and holds it against the rules of the format.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ManifestFault> {
        let unreadable = |error: serde_json::Error| {
            ManifestFault::bad(MANIFEST_NAME, format!("cannot be read: {error}"))
        };
        let head: Head = serde_json::from_slice(bytes).map_err(unreadable)?;
        if head.format_version > FORMAT_VERSION {
            return Err(ManifestFault::Newer {
                found: head.format_version,
                release: names::shown(&head.app_version),
            });
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The text as it goes into an archive.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .expect("invariant: a manifest has text keys and plain values only");
        bytes.push(b'\n');
        bytes
    }

    /// The member at a path.
    #[must_use]
    pub fn member(&self, path: &str) -> Option<&Member> {
        self.members
            .iter()
            .find(|member| member.archive_path == path)
    }

    /// The agents whose databases it holds.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentId, &Member)> {
        self.members
            .iter()
            .filter_map(|member| Some((member.agent_id.as_ref()?, member)))
    }

    fn check(&self) -> Result<(), ManifestFault> {
        if self.format_version < 1 {
            return Err(ManifestFault::bad(MANIFEST_NAME, "has no valid version"));
        }
        if self.members.len() > MAX_MEMBERS {
            return Err(ManifestFault::bad(MANIFEST_NAME, "lists too many members"));
        }
        names::check_all(self.members.iter().map(|m| m.archive_path.as_str()))
            .map_err(|(member, reason)| ManifestFault::bad(&member, reason))?;
        let mut agents = HashSet::new();
        for member in &self.members {
            check_member(member)
                .map_err(|reason| ManifestFault::bad(&member.archive_path, reason))?;
            if let Some(agent) = &member.agent_id
                && !agents.insert(agent)
            {
                return Err(ManifestFault::bad(
                    &member.archive_path,
                    format!("is a second database of agent {agent}"),
                ));
            }
        }
        self.check_scope()?;
        let databases: HashSet<&str> = self
            .members
            .iter()
            .filter(|member| member.kind == MemberKind::Database)
            .map(|member| member.archive_path.as_str())
            .collect();
        for member in &self.members {
            let path = &member.archive_path;
            if names::database_of_sidecar(path).is_some_and(|db| databases.contains(db)) {
                return Err(ManifestFault::bad(path, "is a log beside its database"));
            }
        }
        Ok(())
    }

    /// Whether it holds everything of one agent: what the control plane has of it too.
    #[must_use]
    pub fn is_whole_agent(&self) -> bool {
        let has_rows = || self.members.iter().any(|it| it.role == Some(Role::Global));
        self.scope == Scope::Agent && self.format_version >= WHOLE_AGENT_VERSION && has_rows()
    }

    /// One agent's archive holds its database, its row, and nothing but its workspace besides, or everything that is its.
    fn check_scope(&self) -> Result<(), ManifestFault> {
        if self.scope == Scope::Root {
            return match &self.agent {
                Some(_) => Err(ManifestFault::bad(
                    MANIFEST_NAME,
                    "has the row of one agent and claims to be of a root",
                )),
                None => Ok(()),
            };
        }
        let Some(agent) = &self.agent else {
            return Err(ManifestFault::bad(MANIFEST_NAME, "lacks the agent's row"));
        };
        let database = Layout::agent_db_relative(agent.agent_id.as_str());
        let database = database.to_string_lossy();
        let workspace = names::workspace_prefix(&agent.agent_id);
        let everything = match self.is_whole_agent() {
            true => names::of_whole_agent(&agent.agent_id),
            false => Vec::new(),
        };
        let mut has_database = false;
        for member in &self.members {
            let path = member.archive_path.as_str();
            let is_database = path == database && member.agent_id.as_ref() == Some(&agent.agent_id);
            has_database |= is_database;
            let is_foreign = member.role == Some(Role::Foreign);
            let is_workspace = path.starts_with(&workspace)
                && (is_foreign || member.kind == MemberKind::Workspace);
            let is_its = everything.iter().any(|start| path.starts_with(start))
                && (is_foreign || member.kind != MemberKind::Database);
            let is_rows = !everything.is_empty() && member.role == Some(Role::Global);
            if !is_database && !is_workspace && !is_its && !is_rows {
                return Err(ManifestFault::bad(
                    path,
                    "has no place in an agent's archive",
                ));
            }
        }
        match has_database {
            true => Ok(()),
            false => Err(ManifestFault::bad(&database, "is missing")),
        }
    }
}

fn check_member(member: &Member) -> Result<(), &'static str> {
    if member.sha256.len() != 64 || !member.sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("has no SHA-256");
    }
    let is_database = member.kind == MemberKind::Database;
    if is_database != member.role.is_some() {
        return Err("does not say whose database it is");
    }
    if is_database && (member.rows.is_none() || member.integrity.is_none()) {
        return Err("lacks what a database must say");
    }
    if (member.role == Some(Role::Agent)) != member.agent_id.is_some() {
        return Err("does not say whose agent's database it is");
    }
    let is_ours = matches!(member.role, Some(Role::Global | Role::Agent));
    if is_ours && member.schema_version.is_none() {
        return Err("does not say its schema version");
    }
    if !names::fits(member) {
        return Err("stands where its kind may not");
    }
    Ok(())
}

/// SHA-256 as lower-case hex.
pub(super) fn hex(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(digest.len() * 2);
    for byte in digest {
        write!(text, "{byte:02x}").expect("invariant: writing to a String cannot fail");
    }
    text
}

/// SHA-256 of `bytes`, as lower-case hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The line that the digest member holds.
pub(super) fn digest_line(manifest: &[u8]) -> String {
    format!("{}  {MANIFEST_NAME}\n", sha256_hex(manifest))
}
