//! What a root holds after a run, read from its databases and not from what the program says of itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::dump::{Skip, logical_dump};
use crate::support::recipe::sha256_hex;
use crate::support::sqlite;

/// What differs between two equal runs: who did it, when, and the archive made before.
const OF_THE_RUN: Skip<'static> = Skip {
    tables: &["backup_runs"],
    columns: &[
        ("migration_runs", "id"),
        ("migration_runs", "started_at_ms"),
        ("migration_runs", "finished_at_ms"),
        ("migration_runs", "backup_path"),
        ("migration_sources", "last_run_id"),
        ("migration_sources", "imported_at_ms"),
        ("migration_sources", "retired_path"),
        ("migration_sources", "report_json"),
        ("agent_databases", "created_at_ms"),
        ("agent_databases", "last_seen_at_ms"),
        ("agent_databases", "size_bytes"),
        ("schema_meta", "created_at_ms"),
        ("schema_meta", "updated_at_ms"),
    ],
};

/// A root with databases.
pub(super) struct State {
    root: PathBuf,
}

/// Sessions of the sample install.
pub(super) const SAMPLE_SESSIONS: usize = 13;

/// A session: agent, key, messages that are really there.
pub(super) type SessionRow = (String, String, usize);

impl State {
    pub(super) fn of(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(super) fn global(&self) -> PathBuf {
        self.root.join("state/state.sqlite")
    }

    pub(super) fn agent(&self, id: &str) -> PathBuf {
        self.root.join("agents").join(id).join("agent/agent.sqlite")
    }

    /// Agents that have a database.
    pub(super) fn agents(&self) -> Vec<String> {
        let Ok(folders) = std::fs::read_dir(self.root.join("agents")) else {
            return Vec::new();
        };
        let mut names: Vec<String> = folders
            .map(|folder| folder.unwrap().file_name().into_string().unwrap())
            .filter(|name| self.agent(name).exists())
            .collect();
        names.sort();
        names
    }

    /// Every tier that is there, the control plane first.
    pub(super) fn tiers(&self) -> Vec<PathBuf> {
        let agents = self.agents().into_iter().map(|id| self.agent(&id));
        std::iter::once(self.global())
            .chain(agents)
            .filter(|path| path.exists())
            .collect()
    }

    /// Every session, with its messages counted.
    pub(super) fn sessions(&self) -> Vec<SessionRow> {
        let query = "SELECT s.session_key, s.message_count,
                (SELECT count(*) FROM transcript_events e WHERE e.session_no = s.session_no AND e.role IS NOT NULL)
             FROM sessions s";
        let mut found = Vec::new();
        for agent in self.agents() {
            for row in sqlite::rows(&self.agent(&agent), query) {
                assert_eq!(row[1], row[2], "stored and true count of {}", row[0]);
                found.push((agent.clone(), row[0].clone(), row[2].parse().unwrap()));
            }
        }
        found.sort();
        found
    }

    /// Memories by agent, superseded ones too; agents without any are left out.
    pub(super) fn memories(&self) -> BTreeMap<String, usize> {
        let counted = self.agents().into_iter().map(|agent| {
            let rows = self.count(&self.agent(&agent), "memories");
            (agent, rows)
        });
        counted.filter(|(_, rows)| *rows > 0).collect()
    }

    /// Jobs: id, agent (empty for none), whether it may fire.
    pub(super) fn jobs(&self) -> Vec<(String, String, bool)> {
        sqlite::rows(
            &self.global(),
            "SELECT job_id, agent_id, enabled FROM cron_jobs ORDER BY job_id",
        )
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone(), row[2] == "1"))
        .collect()
    }

    pub(super) fn runs(&self) -> usize {
        self.count(&self.global(), "task_runs")
    }

    pub(super) fn count(&self, store: &Path, table: &str) -> usize {
        let query = format!("SELECT count(*) FROM {table}");
        usize::try_from(sqlite::number(store, &query)).unwrap()
    }

    /// Places of what stays a file, as put on record.
    pub(super) fn kept(&self) -> Vec<String> {
        let query = "SELECT source_path FROM migration_sources WHERE migration_kind = 'zeroclaw.kept' ORDER BY 1";
        sqlite::rows(&self.global(), query).concat()
    }

    /// Receipts by path of the source: status, then records, imported, present, merged, refused.
    pub(super) fn receipts(&self) -> Vec<(String, String, [u64; 5])> {
        let query = "SELECT source_path, status, source_record_count, imported_count, present_count, merged_count,
                refused_count FROM migration_sources WHERE migration_kind <> 'zeroclaw.kept' ORDER BY source_path, source_key";
        let number = |text: &String| text.parse().unwrap();
        sqlite::rows(&self.global(), query)
            .iter()
            .map(|row| {
                let counts = [2, 3, 4, 5, 6].map(|at| number(&row[at]));
                (row[0].clone(), row[1].clone(), counts)
            })
            .collect()
    }

    /// Tiers that an import has filled without a log and left so.
    pub(super) fn without_log(&self) -> Vec<PathBuf> {
        // The format's "write version" and "read version": 2 for a write-ahead log.
        let is_left = |tier: &PathBuf| {
            std::fs::read(tier).unwrap()[18..20] != [2, 2]
                || sqlite::sidecar(tier, "-journal").exists()
        };
        self.tiers().into_iter().filter(is_left).collect()
    }

    /// What SQLite has against any tier: pages, relations, text indexes.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        for tier in self.tiers() {
            let name = tier.display();
            if !sqlite::is_sound(&tier) {
                found.push(format!("{name}: integrity_check"));
            }
            if !sqlite::rows(&tier, "PRAGMA foreign_key_check").is_empty() {
                found.push(format!("{name}: foreign_key_check"));
            }
            if tier == self.global() {
                continue;
            }
            for index in zeroclaw::db::FULL_TEXT_INDEXES {
                if let Err(error) = sqlite::check_index(&tier, index) {
                    found.push(format!("{name}: {index}: {error}"));
                }
            }
        }
        found
    }

    /// Everything in every tier, but for what says who put it there and when.
    pub(super) fn dump(&self) -> String {
        let dump_of = |tier: &PathBuf| {
            let name = tier.strip_prefix(&self.root).unwrap().display();
            format!("# {name}\n{}", logical_dump(tier, OF_THE_RUN))
        };
        self.tiers().iter().map(dump_of).collect()
    }

    /// Retired sources: path below the run's folder, and digest.
    pub(super) fn retired(&self) -> BTreeMap<PathBuf, String> {
        files_below_each(&self.root.join("state/migrated"))
    }

    /// Bytes kept of what could not be read, by file.
    pub(super) fn quarantined(&self) -> Vec<Vec<u8>> {
        let files = walkdir::WalkDir::new(self.root.join("state/quarantine"))
            .into_iter()
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|ext| ext == "raw"));
        files
            .map(|entry| std::fs::read(entry.path()).unwrap())
            .collect()
    }
}

/// Files below each folder in `folder`, by path below that.
fn files_below_each(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_map(Result::ok)
    {
        if entry.file_type().is_file() {
            let below = entry.path().strip_prefix(folder).unwrap();
            let path: PathBuf = below.iter().skip(1).collect();
            found.insert(path, digest_of(entry.path()));
        }
    }
    found
}

/// SHA-256 of a file.
pub(super) fn digest_of(path: &Path) -> String {
    sha256_hex(&std::fs::read(path).unwrap())
}

/// Gives every file below `root` the same old time, so that sources made twice are equal in that too.
pub(super) fn age(root: &Path) {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_789_000_000);
    for entry in walkdir::WalkDir::new(root).into_iter().map(Result::unwrap) {
        if entry.file_type().is_file() {
            let file = std::fs::File::options()
                .write(true)
                .open(entry.path())
                .unwrap();
            file.set_modified(at).unwrap();
        }
    }
}

/// The source of a report at `path`, if the report names it.
pub(super) fn source<'r>(report: &'r Value, path: &str) -> Option<&'r Value> {
    let sources = report["sources"].as_array().unwrap();
    sources.iter().find(|source| source["path"] == path)
}

/// Codes of the findings of a report, with their levels.
pub(super) fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = report["findings"].as_array().unwrap().iter();
    all.map(|finding| (text(&finding["code"]), text(&finding["level"])))
        .collect()
}
