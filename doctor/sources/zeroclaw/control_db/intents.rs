//! Ends that were decided and not applied: `terminal_settlement_intents`, version 8.
//!
//! A worker wrote down how its task ends, then the file with the output, then the end. After a crash
//! between the two the file proves the end, if its bytes are those that were decided on: in its old
//! place, or, since installs move, under its name in any place for results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Map;
use zeroclaw::model::TaskSettlement;

use super::super::super::rows::{Found, Table, each_row};
use super::super::super::sqlite::LegacyDb;
use super::super::super::{Batcher, ReadError, Sink};
use super::super::result_file::{self, Content};
use super::goal::detail;
use super::{INTENTS, Surroundings, all_columns, refuse_row};
use crate::doctor::record::{Item, Refusal, kind};

const INTENT: [&str; 8] = [
    "task_id",
    "owner_pid",
    "owner_boot_id",
    "desired_status",
    "artifact_path",
    "artifact_ref",
    "artifact_sha256",
    "terminal_error",
];

/// A decided end.
#[derive(Debug)]
pub(super) struct Intent {
    pub(super) task_id: String,
    pub(super) owner_pid: i64,
    pub(super) owner_boot_id: String,
    pub(super) desired: String,
    artifact_path: String,
    pub(super) artifact_ref: Option<String>,
    pub(super) artifact_sha256: String,
    pub(super) terminal_error: Option<String>,
    detail_json: Option<String>,
}

/// What became of a decided end.
#[derive(Debug)]
pub(super) enum Settled {
    /// The task has ended by it, or has failed for want of proof.
    Applied,
    /// It means nothing any more.
    Dropped,
    /// Nobody here knows what it means.
    Kept(Box<TaskSettlement>),
}

/// What proves a decided end.
#[derive(Debug)]
pub(super) struct Proven {
    /// The output, where its file lies in no place that is read for itself.
    pub(super) elsewhere: Option<String>,
}

impl Intent {
    /// As our own row, for one that cannot be settled.
    pub(super) fn settlement(self) -> TaskSettlement {
        TaskSettlement {
            task_id: self.task_id,
            owner_pid: self.owner_pid,
            owner_start_identity: None,
            owner_boot_id: self.owner_boot_id,
            desired_status: self.desired,
            artifact_path: self.artifact_path,
            artifact_ref: self.artifact_ref,
            artifact_sha256: self.artifact_sha256,
            terminal_error: self.terminal_error,
            created_at_ms: None,
            detail_json: self.detail_json,
        }
    }

    fn file_name(&self) -> String {
        format!("{}.json", self.task_id)
    }
}

/// Decided ends by task. There are as many as workers that were ending at once.
#[derive(Debug, Default)]
pub(super) struct Intents(BTreeMap<String, Intent>);

impl Intents {
    /// Reads them all.
    pub(super) async fn read<S: Sink>(
        db: &mut LegacyDb,
        out: &mut Batcher<'_, S>,
        damage: &mut Vec<(String, String)>,
    ) -> Result<Self, ReadError> {
        let mut intents = Self::default();
        let columns = db.columns(INTENTS).await?;
        if columns.is_empty() {
            return Ok(intents);
        }
        let names = all_columns(&INTENT, &columns);
        let table = Table {
            name: INTENTS,
            wanted: &names,
            order: "task_id",
        };
        let found = each_row(db, table, async |found| {
            let values = match found {
                Found::Row(values) => values,
                Found::Lost { rowid } => {
                    let lost = Refusal::lost(kind::SETTLEMENT, INTENTS, rowid);
                    return out.push(Item::Refused(lost), 0).await;
                }
            };
            let text = |column| values.hint(column).unwrap_or_default();
            let (Some(task_id), Some(desired)) = (values.hint(0), values.hint(3)) else {
                let reason = "its task or its status is missing or not UTF-8".to_owned();
                return refuse_row(&values, &names, INTENTS, kind::SETTLEMENT, reason, out).await;
            };
            let intent = Intent {
                owner_pid: values.integer(1).unwrap_or(0),
                owner_boot_id: text(2),
                desired,
                artifact_path: text(4),
                artifact_ref: values.hint(5),
                artifact_sha256: text(6),
                terminal_error: values.hint(7),
                detail_json: detail(Map::new(), &values, &names, INTENT.len()),
                task_id,
            };
            intents.0.insert(intent.task_id.clone(), intent);
            Ok(())
        })
        .await?;
        damage.extend(found.map(|reason| (INTENTS.to_owned(), reason)));
        Ok(intents)
    }

    /// The one of a task.
    pub(super) fn take(&mut self, task: &str) -> Option<Intent> {
        self.0.remove(task)
    }

    /// Drops those whose task is not there.
    pub(super) async fn drop_rest<S: Sink>(
        self,
        out: &mut Batcher<'_, S>,
    ) -> Result<(), ReadError> {
        for intent in self.0.into_values() {
            let merged = Item::Merged {
                kind: kind::SETTLEMENT,
                count: 1,
            };
            out.push(merged, 0).await?;
            let note = Item::Note {
                code: "settlement-dropped",
                place: format!("task {}", intent.task_id),
                message: format!(
                    "is not there; the end {:?} decided for it is dropped",
                    intent.desired
                ),
            };
            out.push(note, 0).await?;
        }
        Ok(())
    }
}

/// Whether a path is absolute on any system: the store may come from another one.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_drive = bytes.len() > 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes[2], b'\\' | b'/');
    path.starts_with('/') || path.starts_with("\\\\") || has_drive
}

/// Finds what proves a decided end, or says what is wrong.
pub(super) fn prove(intent: &Intent, surroundings: Surroundings<'_>) -> Result<Proven, String> {
    let name = intent.file_name();
    if !is_absolute(&intent.artifact_path) {
        return Err("the path of its artifact is not absolute".to_owned());
    }
    if intent.artifact_path.rsplit(['/', '\\']).next() != Some(name.as_str()) {
        return Err("the name of its artifact is not that of the task".to_owned());
    }
    let reference = format!("artifact:{name}");
    if intent.desired == "completed" && intent.artifact_ref.as_ref() != Some(&reference) {
        return Err("its artifact is not referred to".to_owned());
    }
    let digest = intent.artifact_sha256.as_bytes();
    if digest.len() != 64 || !digest.iter().all(u8::is_ascii_hexdigit) {
        return Err("the digest of its artifact is none".to_owned());
    }
    let (place, bytes) = find(intent, &name, surroundings)?;
    let output = match result_file::content(&bytes) {
        Ok(Content::Output { task_id, output }) if task_id == intent.task_id => output,
        Ok(_) => return Err("its artifact is not one of its task and an output".to_owned()),
        Err(reason) => return Err(format!("its artifact is none: {reason}")),
    };
    let folder = place.parent().unwrap_or(&place);
    let is_read = places(surroundings).any(|known| known == folder);
    Ok(Proven {
        elsewhere: output.filter(|_| !is_read),
    })
}

/// Every folder of results that is read for itself, or was.
fn places<'a>(surroundings: Surroundings<'a>) -> impl Iterator<Item = PathBuf> + 'a {
    let folders = surroundings.folders.iter().map(|folder| &folder.relative);
    folders
        .chain(surroundings.retired)
        .map(move |folder| surroundings.root.join(folder))
}

/// The file with the bytes that were decided on.
fn find(
    intent: &Intent,
    name: &str,
    surroundings: Surroundings<'_>,
) -> Result<(PathBuf, Vec<u8>), String> {
    let by_name = places(surroundings).map(|folder| folder.join(name));
    let mut is_there = false;
    for place in std::iter::once(PathBuf::from(&intent.artifact_path)).chain(by_name) {
        let Some(bytes) = plain_bytes(&place) else {
            continue;
        };
        is_there = true;
        if result_file::sha256(&bytes).eq_ignore_ascii_case(&intent.artifact_sha256) {
            return Ok((place, bytes));
        }
    }
    Err(if is_there {
        "its artifact holds other bytes than those decided on".to_owned()
    } else {
        "its artifact is missing".to_owned()
    })
}

/// The bytes of a regular file of bearable size that can be read.
fn plain_bytes(path: &Path) -> Option<Vec<u8>> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    if !meta.is_file() || meta.len() > result_file::MAX_BYTES {
        return None;
    }
    std::fs::read(path).ok()
}
