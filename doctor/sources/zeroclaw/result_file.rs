//! `delegate_results/<task id>.json`: results of background delegates, since 0.6.0.
//!
//! One JSON object a file. Up to 0.8.4 it tells the whole life of the task:
//! `{"task_id":"1f…","agent":"birch","status":"completed","output":"done","error":null,"started_at":"2026-…","finished_at":"2026-…"}`;
//! `agent` is who was asked, not who asked. Later it holds an output and nothing else:
//! `{"task_id":"1f…","output":"done"}`.
//!
//! Known faults: files torn by a crash, for the older form was not synced (refused), `running` of a
//! program that is gone (lost), `*.tmp` of writes that were cut off (never a result, left alone). The
//! output may be of any size.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use zeroclaw::fs::FsError;
use zeroclaw::model::{
    AgentId, ArtifactInfo, RunArtifact, TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus, Tier,
};

use super::super::{ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::rows::background::{BackgroundTask, ResultFile, SaidBy};
use crate::doctor::units::{LegacyTime, hex};

/// The largest file that is read, bytes: it is held as a whole.
pub(crate) const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The longest output that stands in the row of its task too, bytes.
const MAX_INLINE_BYTES: usize = 16 * 1024;
/// Kind of the artifact.
const ARTIFACT: &str = "delegate_result";

/// A folder that results may lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultFolder {
    /// Below the root; absolute where it is not below it.
    pub(crate) relative: PathBuf,
    /// The agent that wrote there, by its old name; `None` where the place does not tell.
    pub(crate) owner: Option<String>,
}

/// What a file says.
#[derive(Debug)]
pub(crate) enum Content {
    /// An output and nothing else.
    Output {
        /// The task.
        task_id: String,
        /// What it gave.
        output: Option<String>,
    },
    /// The life of a task.
    Status(Box<Life>),
}

/// The life of a task as its file tells it.
#[derive(Debug)]
pub(crate) struct Life {
    task_id: String,
    agent: Option<String>,
    status: String,
    output: Option<String>,
    error: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    more: Map<String, Value>,
}

/// SHA-256, hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Takes the bytes of a file apart, or says why they are no result.
pub(crate) fn content(bytes: &[u8]) -> Result<Content, String> {
    let value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(mut object) = value else {
        return Err("it is no JSON object".to_owned());
    };
    let mut text = |name: &str| match object.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its {name} is no text")),
    };
    let task_id = text("task_id")?.ok_or("it names no task")?;
    let (status, output) = (text("status")?, text("output")?);
    let Some(status) = status else {
        return match object.keys().next() {
            None => Ok(Content::Output { task_id, output }),
            Some(name) => Err(format!("it has no status, and {name:?} beside an output")),
        };
    };
    Ok(Content::Status(Box::new(Life {
        task_id,
        agent: text("agent")?,
        status,
        output,
        error: text("error")?,
        started_at: text("started_at")?,
        finished_at: text("finished_at")?,
        more: object,
    })))
}

/// Where a file stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// Old name of the agent in whose place it lies; empty where the place does not tell.
    pub(crate) alias: &'a str,
    /// Whose records are.
    pub(crate) owners: &'a Owners,
}

/// Gives the task of a file and its output.
pub(crate) async fn read<S: Sink>(standing: Standing<'_>, sink: &mut S) -> Result<(), ReadError> {
    let path = standing.path;
    let meta = std::fs::metadata(path).map_err(FsError::at("read", path))?;
    if meta.len() > MAX_BYTES {
        let reason = format!("it is larger than {MAX_BYTES} bytes");
        return Err(ReadError::Format { reason });
    }
    let bytes = std::fs::read(path).map_err(FsError::at("read", path))?;
    let written = meta.modified().ok();
    let since = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let written_at_ms = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    let found = named(path, &bytes).and_then(|content| {
        let file = File {
            sha256: sha256(&bytes),
            written_at_ms,
            owner: owner(&standing)?,
        };
        Ok(file.items(content, standing.owners))
    });
    let items = found.unwrap_or_else(|reason| {
        vec![Item::Refused(Refusal {
            kind: kind::TASK,
            place: "the file".to_owned(),
            reason,
            raw: bytes,
        })]
    });
    sink.take(items).await
}

/// The agent that keeps the output: the one in whose place the file lies.
fn owner(standing: &Standing<'_>) -> Result<AgentId, String> {
    match standing.alias {
        "" => Ok(standing.owners.fallback()?.agent),
        alias => standing.owners.named(alias),
    }
}

/// What a file says, if it says so under the name of its task.
fn named(path: &Path, bytes: &[u8]) -> Result<Content, String> {
    let found = content(bytes)?;
    let task_id = match &found {
        Content::Output { task_id, .. } => task_id,
        Content::Status(life) => &life.task_id,
    };
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    if stem != Some(task_id) {
        return Err("its name is not that of its task".to_owned());
    }
    if task_id.len() != 36 || uuid::Uuid::parse_str(task_id).is_err() {
        return Err("its task is not named by a UUID".to_owned());
    }
    Ok(found)
}

/// What is known of a file beside its content.
struct File {
    sha256: String,
    written_at_ms: i64,
    owner: AgentId,
}

impl File {
    fn items(self, content: Content, owners: &Owners) -> Vec<Item> {
        let mut items = Vec::new();
        let (task, output) = match content {
            Content::Output { task_id, output } => {
                (self.output(task_id, output.as_deref()), output)
            }
            Content::Status(life) => self.life(*life, owners, &mut items),
        };
        if let Some(output) = output {
            let kept = Kept {
                task_id: &task.task.task_id,
                agent: task.task.agent_id.as_ref().map(AgentId::as_str),
                status: task.task.status_detail.as_deref(),
                output,
                file_sha256: &self.sha256,
                made_at_ms: task.task.ended_at_ms.unwrap_or(self.written_at_ms),
            };
            let record = artifact(kept).into();
            let tier = Tier::Agent(self.owner.clone());
            items.push(Item::Record { tier, record });
        }
        let tier = Tier::Global;
        let record = task.into();
        items.push(Item::Record { tier, record });
        items
    }

    fn details(
        &self,
        mut details: Map<String, Value>,
        weight: i64,
        ended: Option<i64>,
        agent: Option<String>,
    ) -> String {
        let file = ResultFile {
            weight,
            ended_at_ms: ended.unwrap_or(i64::MIN),
            sha256: self.sha256.clone(),
            agent,
        };
        file.put(&mut details);
        Value::Object(details).to_string()
    }

    /// A task of which there is an output, and nobody says how it ended.
    fn output(&self, task_id: String, output: Option<&str>) -> BackgroundTask {
        let weight = i64::from(output.is_some());
        BackgroundTask {
            task: TaskRun {
                output: output.map(|output| shown(&task_id, output)),
                status: TaskStatus::Lost,
                status_detail: Some("unknown".to_owned()),
                created_at_ms: self.written_at_ms,
                started_at_ms: None,
                ended_at_ms: None,
                duration_ms: None,
                error: None,
                agent_id: None,
                detail_json: Some(self.details(Map::new(), weight, None, None)),
                ..delegate(task_id)
            },
            delivery: None,
            said_by: SaidBy::OutputFile,
        }
    }

    /// A task as its file tells it, and its output.
    fn life(
        &self,
        life: Life,
        owners: &Owners,
        items: &mut Vec<Item>,
    ) -> (BackgroundTask, Option<String>) {
        let mut note = |code, message: String| {
            let place = format!("task {}", life.task_id);
            items.push(Item::Note {
                code,
                place,
                message,
            });
        };
        let status = match life.status.as_str() {
            "completed" => TaskStatus::Succeeded,
            "failed" => TaskStatus::Failed,
            "cancelled" => TaskStatus::Cancelled,
            "timed_out" => TaskStatus::TimedOut,
            "lost" | "running" => TaskStatus::Lost,
            word => {
                let message = format!("its status {word:?} is unknown; comes in as lost");
                note("unknown-status", message);
                TaskStatus::Lost
            }
        };
        let mut details = life.more;
        let agent_id = life
            .agent
            .as_ref()
            .and_then(|alias| match owners.named(alias) {
                Ok(agent) => Some(agent),
                Err(reason) => {
                    details.insert("agent".to_owned(), json!(alias));
                    let message = format!("{reason}; the task comes in without");
                    note("illegal-agent-name", message);
                    None
                }
            });
        let mut time = |name: &str, text: &Option<String>| {
            let text = text.as_ref().filter(|text| !text.is_empty())?;
            let time = LegacyTime::parse(text).map(LegacyTime::ms);
            if time.is_none() {
                details.insert(name.to_owned(), json!(text));
                note("no-time", format!("its {name} is no time; kept beside"));
            }
            time
        };
        let started_at_ms = time("started_at", &life.started_at);
        let ended_at_ms = time("finished_at", &life.finished_at);
        let is_end = status != TaskStatus::Lost || life.status == TaskStatus::Lost.as_str();
        let gone = !is_end && life.error.is_none();
        let weight = match (is_end, &life.output) {
            (true, _) => 2,
            (false, Some(_)) => 1,
            (false, None) => 0,
        };
        let spent = ended_at_ms.zip(started_at_ms);
        let task = TaskRun {
            agent_id,
            status,
            status_detail: Some(life.status),
            created_at_ms: started_at_ms.or(ended_at_ms).unwrap_or(self.written_at_ms),
            started_at_ms,
            ended_at_ms,
            duration_ms: spent.map(|(end, start)| end.saturating_sub(start).max(0)),
            output: life
                .output
                .as_deref()
                .map(|output| shown(&life.task_id, output)),
            error: if gone {
                Some("the program that ran it was gone when it was imported".to_owned())
            } else {
                life.error
            },
            detail_json: Some(self.details(details, weight, ended_at_ms, life.agent)),
            ..delegate(life.task_id)
        };
        let task = BackgroundTask {
            task,
            delivery: None,
            said_by: SaidBy::StatusFile,
        };
        (task, life.output)
    }
}

/// A delegate of which nothing but its name is known.
fn delegate(task_id: String) -> TaskRun {
    TaskRun {
        task_id,
        owner_kind: TaskOwnerKind::Delegate,
        source_id: None,
        agent_id: None,
        label: None,
        status: TaskStatus::Lost,
        status_detail: None,
        created_at_ms: 0,
        started_at_ms: None,
        ended_at_ms: None,
        duration_ms: None,
        output: None,
        error: None,
        detail_json: None,
        origin: TaskOrigin {
            task_kind: Some("delegate".to_owned()),
            ..TaskOrigin::default()
        },
    }
}

/// An output as it stands in the row of its task: itself, or where a long one is.
fn shown(task_id: &str, output: &str) -> String {
    if output.len() <= MAX_INLINE_BYTES {
        output.to_owned()
    } else {
        format!("artifact:{task_id}.json")
    }
}

/// What is kept of an output.
pub(crate) struct Kept<'a> {
    /// The task.
    pub(crate) task_id: &'a str,
    /// Who worked.
    pub(crate) agent: Option<&'a str>,
    /// How it ended, in its producer's word.
    pub(crate) status: Option<&'a str>,
    /// The output.
    pub(crate) output: String,
    /// Of the file it came in.
    pub(crate) file_sha256: &'a str,
    /// When it was made.
    pub(crate) made_at_ms: i64,
}

/// An output as an artifact, named by its content: two outputs of one task are both kept.
pub(crate) fn artifact(kept: Kept<'_>) -> RunArtifact {
    let blob = kept.output.into_bytes();
    let sha256 = sha256(&blob);
    let metadata = json!({
        "agent": kept.agent, "status": kept.status, "file_sha256": kept.file_sha256,
    });
    RunArtifact {
        about: ArtifactInfo {
            run_id: kept.task_id.to_owned(),
            path: format!("{ARTIFACT}/{}", &sha256[..12]),
            kind: ARTIFACT.to_owned(),
            metadata_json: metadata.to_string(),
            sha256,
            size_bytes: i64::try_from(blob.len()).unwrap_or(i64::MAX),
            created_at_ms: kept.made_at_ms,
        },
        blob,
    }
}
