//! The user's `config.toml`, of which a state service needs little: read, never written.
//!
//! Reading is lenient, as the runtime's own is: unknown keys are passed over, and a part of the wrong shape is left out
//! with a warning, so that one slip does not stop the daemon. Both the present shape and older ones are accepted,
//! whatever the file says of its version: a file saved in part can mix them.
//!
//! Secrets are never taken out of the file, and neither errors nor warnings repeat a value.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::model::MediaRules;
use section::{Section, Warnings};

pub use access::FileAccess;
pub use backup::{BackupSchedule, ScheduledBackup};
pub use grants::MemoryGrant;
pub use http::HttpConfig;
pub use logs::LogsConfig;
pub use mentions::mentions;
pub use plugins::PluginsConfig;
pub use retention::Retention;
pub use scheduler::SchedulerConfig;
pub use sop::{ApprovalTimeout, SopConfig};

mod access;
mod backup;
mod grants;
mod http;
mod logs;
mod media;
mod mentions;
mod plugins;
mod retention;
mod scheduler;
mod section;
mod sop;

/// The newest shape this release knows; newer files are read as far as they parse.
const KNOWN_SCHEMA_VERSION: i64 = 3;
/// The shape from which a file without agents means that there are none.
const FIRST_VERSION_WITH_AGENTS: i64 = 3;
/// Far more than a configuration needs; a larger file is not one.
const MAX_CONFIG_BYTES: u64 = 8 * 1024 * 1024;
/// The agent that files from before agents mean.
const DEFAULT_AGENT: &str = "default";

/// When an acknowledged write is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Before it is acknowledged.
    #[default]
    Full,
    /// Soon after; a power cut may take the last moments.
    Normal,
}

/// What `[agents.<id>]` says.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentConfig {
    /// Whether the runtime runs it.
    pub enabled: bool,
    /// Channels it answers on, as `<type>.<alias>`.
    pub channels: Vec<String>,
    /// Ids of the cron jobs it owns.
    pub cron_jobs: Vec<String>,
    /// Its workspace when that is not the usual one; as written, `~` and relative paths included.
    pub workspace_path: Option<PathBuf>,
    /// Its own kind of memory store: `sqlite` unless it says otherwise.
    pub memory_backend: String,
    /// What it may do in the workspaces of others, by their ids; see [`Config::file_access`].
    pub workspace_access: BTreeMap<String, FileAccess>,
    /// Whether it may touch the whole disk.
    pub unrestricted_filesystem: bool,
    /// Whose memories it may read: names, or tables with limits, as written; see [`Config::memory_grants`].
    pub read_memory_from: Vec<Value>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            channels: Vec::new(),
            cron_jobs: Vec::new(),
            workspace_path: None,
            memory_backend: "sqlite".to_owned(),
            workspace_access: BTreeMap::new(),
            unrestricted_filesystem: false,
            read_memory_from: Vec::new(),
        }
    }
}

/// What the configuration says about state.
#[derive(Clone, Default, PartialEq)]
pub struct Config {
    /// Shape the file claims, 1 if it does not say.
    pub schema_version: i64,
    /// Agents by id, as written: an id is not checked here.
    pub agents: BTreeMap<String, AgentConfig>,
    /// When an acknowledged write is on disk.
    pub durability: Durability,
    /// By which rules sessions go.
    pub retention: Retention,
    /// By which rules media go.
    pub media: MediaRules,
    /// How much plugins may keep.
    pub plugins: PluginsConfig,
    /// Where the daemon answers over HTTP; `None` for nowhere.
    pub http: Option<HttpConfig>,
    /// Backups that a daemon makes by itself.
    pub backup: BackupSchedule,
    /// How long logs are kept.
    pub logs: LogsConfig,
    /// How runs of standing procedures are held in bounds.
    pub sop: SopConfig,
    /// Kind of memory store of all agents that do not say otherwise.
    pub memory_backend: String,
    /// Agent that heartbeats run as.
    pub heartbeat_agent: Option<String>,
    /// Declarative cron jobs by id, as written.
    pub cron: BTreeMap<String, Table>,
    /// How scheduled jobs run.
    pub scheduler: SchedulerConfig,
    /// What was left out, by key and reason.
    pub warnings: Vec<String>,
}

/// Jobs hold commands and addresses, which may hold secrets: only their ids are shown.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("schema_version", &self.schema_version)
            .field("agents", &self.agents)
            .field("durability", &self.durability)
            .field("retention", &self.retention)
            .field("media", &self.media)
            .field("plugins", &self.plugins)
            .field("http", &self.http)
            .field("backup", &self.backup)
            .field("logs", &self.logs)
            .field("sop", &self.sop)
            .field("memory_backend", &self.memory_backend)
            .field("heartbeat_agent", &self.heartbeat_agent)
            .field("cron", &self.cron.keys())
            .field("scheduler", &self.scheduler)
            .field("warnings", &self.warnings)
            .finish()
    }
}

/// Why a text is not a configuration: a place, and what the grammar wants there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SyntaxError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong, without anything from the text.
    pub message: String,
}

/// Why a configuration could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file exists and cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is larger than any configuration.
    #[error("{} is larger than {limit_bytes} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// A value that must be understood is not.
    #[error("{}: {fault}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Key and reason.
        fault: String,
    },
    /// The file is not TOML.
    #[error("{} is not valid", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: SyntaxError,
    },
}

impl Config {
    /// Reads a file; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] when the file cannot be read or is not TOML.
    pub fn load(path: &Path) -> Result<Option<Self>, ConfigError> {
        let read = |source| ConfigError::Read {
            path: path.to_path_buf(),
            source,
        };
        let bytes = match read_bounded(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                let limit_bytes = MAX_CONFIG_BYTES;
                return Err(ConfigError::TooLarge {
                    path: path.to_path_buf(),
                    limit_bytes,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(read(error)),
        };
        let config = match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse(text),
            Err(error) => {
                let readable = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                Err(syntax_error(
                    &readable,
                    readable.len(),
                    "the text is not UTF-8",
                ))
            }
        };
        config.map(Some).map_err(|source| ConfigError::Syntax {
            path: path.to_path_buf(),
            source,
        })
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`SyntaxError`] when the text is not TOML.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let file: Table = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            // The grammar's messages are fixed texts. Those about values repeat the value.
            let grammar = toml::de::DeTable::parse(text).err();
            let message = grammar
                .as_ref()
                .map_or("a value is out of range", |error| error.message());
            syntax_error(text, offset, message)
        })?;
        Ok(Self::from_table(&file))
    }

    fn from_table(file: &Table) -> Self {
        let mut warnings = Warnings::default();
        let root = Section {
            table: file,
            path: String::new(),
        };
        let schema_version = schema_version(&root, &mut warnings);
        let agents = agents(&root, schema_version, &mut warnings);
        let state = root.section("state", &mut warnings);
        let memory = root.section("memory", &mut warnings);
        let heartbeat = root.section("heartbeat", &mut warnings);
        Self {
            schema_version,
            agents,
            durability: state
                .as_ref()
                .map_or(Durability::Full, |state| durability(state, &mut warnings)),
            http: state
                .as_ref()
                .and_then(|state| http::http(state, &mut warnings)),
            backup: state.as_ref().map_or(BackupSchedule::Off, |state| {
                BackupSchedule::read(state, &mut warnings)
            }),
            logs: state.as_ref().map_or_else(LogsConfig::default, |state| {
                LogsConfig::read(state, &mut warnings)
            }),
            sop: root
                .section("sop", &mut warnings)
                .map_or_else(SopConfig::default, |sop| sop::read(&sop, &mut warnings)),
            media: state.as_ref().map_or_else(MediaRules::default, |state| {
                media::media(state, &mut warnings)
            }),
            plugins: state.as_ref().map_or_else(PluginsConfig::default, |state| {
                PluginsConfig::read(state, &mut warnings)
            }),
            retention: state.map_or_else(Retention::default, |state| {
                Retention::read(&state, &mut warnings)
            }),
            memory_backend: memory
                .and_then(|memory| memory.text("backend", &mut warnings))
                .unwrap_or_else(|| "sqlite".to_owned()),
            heartbeat_agent: heartbeat.and_then(|heartbeat| heartbeat.text("agent", &mut warnings)),
            cron: root
                .section("cron", &mut warnings)
                .map_or_else(BTreeMap::new, |cron| cron_jobs(&cron, &mut warnings)),
            scheduler: scheduler::scheduler(&root, &mut warnings),
            warnings: warnings.0,
        }
    }
}

/// Gives `None` when the file is over the limit.
fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    use io::Read as _;

    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(MAX_CONFIG_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= MAX_CONFIG_BYTES))
}

fn syntax_error(text: &str, offset: usize, message: &str) -> SyntaxError {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    SyntaxError {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: message.lines().next().unwrap_or_default().to_owned(),
    }
}

fn schema_version(root: &Section<'_>, warnings: &mut Warnings) -> i64 {
    let positive = |value: &Value| value.as_integer().filter(|version| *version > 0);
    let version = root
        .get(
            "schema_version",
            "a positive whole number",
            positive,
            warnings,
        )
        .unwrap_or(1);
    if version > KNOWN_SCHEMA_VERSION {
        warnings.add(
            "schema_version",
            "newer than this release knows; read as far as it can be",
        );
    }
    version
}

fn durability(state: &Section<'_>, warnings: &mut Warnings) -> Durability {
    let take = |value: &Value| match value.as_str() {
        Some("full") => Some(Durability::Full),
        Some("normal") => Some(Durability::Normal),
        _ => None,
    };
    state
        .get("durability", "\"full\" or \"normal\"", take, warnings)
        .unwrap_or_default()
}

fn agents(
    root: &Section<'_>,
    schema_version: i64,
    warnings: &mut Warnings,
) -> BTreeMap<String, AgentConfig> {
    let is_absent = root
        .table
        .get("agents")
        .is_none_or(|agents| agents.as_table().is_some_and(Table::is_empty));
    if is_absent && schema_version < FIRST_VERSION_WITH_AGENTS {
        return BTreeMap::from([(DEFAULT_AGENT.to_owned(), only_agent(root, warnings))]);
    }
    let Some(agents) = root.section("agents", warnings) else {
        return BTreeMap::new();
    };
    let read = |id: &String| {
        // An agent whose part is unreadable still exists: to leave it out would read as "deleted".
        let agent = agents
            .section(id, warnings)
            .map(|agent| agent_config(&agent, warnings));
        (id.clone(), agent.unwrap_or_default())
    };
    agents.table.keys().map(read).collect()
}

fn agent_config(agent: &Section<'_>, warnings: &mut Warnings) -> AgentConfig {
    let usual = AgentConfig::default();
    let workspace = agent.section("workspace", warnings);
    let memory = agent.section("memory", warnings);
    AgentConfig {
        enabled: agent
            .get("enabled", "true or false", Value::as_bool, warnings)
            .unwrap_or(usual.enabled),
        channels: agent.texts("channels", warnings),
        cron_jobs: agent.texts("cron_jobs", warnings),
        workspace_path: workspace
            .as_ref()
            .and_then(|place| place.text("path", warnings))
            .map(PathBuf::from),
        memory_backend: memory
            .and_then(|memory| memory.text("backend", warnings))
            .unwrap_or(usual.memory_backend),
        workspace_access: workspace.as_ref().map_or_else(BTreeMap::new, |place| {
            access::workspace_access(place, warnings)
        }),
        unrestricted_filesystem: workspace
            .as_ref()
            .and_then(|place| {
                let key = "unrestricted_filesystem";
                place.get(key, "true or false", Value::as_bool, warnings)
            })
            .unwrap_or(usual.unrestricted_filesystem),
        read_memory_from: workspace
            .and_then(|place| place.get("read_memory_from", "a list", Value::as_array, warnings))
            .cloned()
            .unwrap_or_default(),
    }
}

/// Before there were agents, one answered on every channel that was set up.
fn only_agent(root: &Section<'_>, warnings: &mut Warnings) -> AgentConfig {
    let mut channels = Vec::new();
    for key in ["channels", "channels_config"] {
        let Some(section) = root.section(key, warnings) else {
            continue;
        };
        let types = section
            .table
            .iter()
            .filter_map(|(kind, value)| Some((kind, value.as_table()?)));
        channels.extend(types.flat_map(|(kind, table)| channel_refs(kind, table)));
    }
    channels.sort();
    channels.dedup();
    AgentConfig {
        channels,
        ..AgentConfig::default()
    }
}

/// `[channels.<type>]` holds one channel, or since version 3 one table for each alias.
fn channel_refs(kind: &str, table: &Table) -> Vec<String> {
    let has_aliases = !table.is_empty() && table.values().all(Value::is_table);
    if has_aliases {
        table
            .keys()
            .map(|alias| format!("{kind}.{alias}"))
            .collect()
    } else {
        vec![format!("{kind}.default")]
    }
}

/// `[cron.<id>]` each a job; in older files `[[cron.jobs]]`, between settings that are no jobs.
fn cron_jobs(cron: &Section<'_>, warnings: &mut Warnings) -> BTreeMap<String, Table> {
    let mut jobs = BTreeMap::new();
    for (id, value) in cron.table {
        match value {
            Value::Table(job) => {
                jobs.insert(id.clone(), job.clone());
            }
            Value::Array(list) if id == "jobs" => add_listed_jobs(list, &mut jobs, warnings),
            _ => {}
        }
    }
    jobs
}

/// Names listed jobs as the runtime does when it reads an older file, so that both mean the same job by an id.
fn add_listed_jobs(list: &[Value], jobs: &mut BTreeMap<String, Table>, warnings: &mut Warnings) {
    for (index, value) in list.iter().enumerate() {
        let Some(job) = value.as_table() else {
            warnings.add("cron.jobs", "an entry is not a table");
            continue;
        };
        let named = |key: &str| {
            job.get(key)
                .and_then(Value::as_str)
                .map(slug)
                .filter(|id| !id.is_empty())
        };
        let base = named("name")
            .or_else(|| named("id"))
            .unwrap_or_else(|| format!("job_{}", index + 1));
        let id = (1..)
            .map(|turn| {
                if turn == 1 {
                    base.clone()
                } else {
                    format!("{base}_{turn}")
                }
            })
            .find(|id| !jobs.contains_key(id));
        jobs.insert(id.unwrap_or(base), job.clone());
    }
}

fn slug(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    text.trim().chars().map(plain).collect()
}

#[cfg(test)]
mod tests;
