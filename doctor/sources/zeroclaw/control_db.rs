//! `control_plane.db`: background delegates, subagents and goals, since 0.8.2; WAL.
//!
//! `user_version` counts from 0 to 8, and from 9 on means different things to different builds, so
//! tables and columns say what there is and the number is only told. What they add: goals (1 to 3),
//! where a goal goes on (5), ends that were decided and not applied (8), a chain of callers (after 8);
//! one build added tables of events and runner specifications and five more statuses. A column that
//! nobody here knows is kept as it is with its task, and so are rows of unknown tables that name a task.
//!
//! Times are RFC 3339 in UTC. `agent` is who works, for a delegate the target and not who asked.
//!
//! Known faults: tasks that ran when the program died (lost), goals whose task is missing (refused),
//! ends that were decided and never applied (settled by what can be proven, see [`intents`]), limits
//! that are no limits (kept beside).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use zeroclaw::model::{GoalTask, TaskContinuation, Tier};

use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use super::result_file::ResultFolder;
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};

mod extra;
mod goal;
mod intents;
mod task;

use extra::Extra;
use intents::{Intents, Settled};

/// Tables with readers of their own.
const KNOWN_TABLES: [&str; 4] = ["tasks", "goal_tasks", CONTEXTS, INTENTS];
const CONTEXTS: &str = "task_continuation_contexts";
const INTENTS: &str = "terminal_settlement_intents";

/// The newest version whose changes are known.
const KNOWN_VERSION: i64 = 8;

/// Notes on a record: the name of the kind of note, and what it says.
type Notes = Vec<(&'static str, String)>;

/// What a store lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    /// Whose records are.
    pub(crate) owners: &'a Owners,
    /// The root it belongs to.
    pub(crate) root: &'a Path,
    /// Where results are.
    pub(crate) folders: &'a [ResultFolder],
    /// Where results are that came in before, below the root.
    pub(crate) retired: &'a [PathBuf],
}

/// Streams a store's tasks, then what they have beside them.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    surroundings: Surroundings<'_>,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("tasks").await?;
    if !["id", "kind", "agent", "status"]
        .iter()
        .all(|wanted| columns.iter().any(|column| column == wanted))
    {
        return Err(ReadError::Format {
            reason: "it has no table tasks with id, kind, agent and status".to_owned(),
        });
    }
    let mut out = Batcher::new(sink);
    let mut damage = Vec::new();
    let mut extra = Extra::read(db, &mut out, &mut damage).await?;
    let mut intents = Intents::read(db, &mut out, &mut damage).await?;
    tell_version(db, &columns, &extra, &mut out).await?;
    let wanted = owners_of_rows(db).await?;
    let mut taken = HashSet::new();
    let names = task::columns(&columns);
    let table = Table {
        name: "tasks",
        wanted: &names,
        order: "id",
    };
    let found = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::TASK, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let id = values.hint(0).unwrap_or_default();
        let beside = task::Beside {
            owners: surroundings.owners,
            extra: extra.take(&id),
            intent: intents.take(&id),
        };
        let bytes = values.bytes(task::OUTPUT).map_or(0, <[u8]>::len) + 1024;
        match task::task(&values, &names, beside, |intent| {
            intents::prove(intent, surroundings)
        }) {
            Ok(given) => {
                if wanted.contains(&id) || matches!(given.settled, Some(Settled::Kept(_))) {
                    taken.insert(id);
                }
                give(given, &mut out, bytes).await
            }
            Err(reason) => refuse_row(&values, &names, "tasks", kind::TASK, reason, &mut out).await,
        }
    })
    .await?;
    damage.extend(found.map(|reason| ("tasks".to_owned(), reason)));
    extra.refuse_rest(&mut out).await?;
    intents.drop_rest(&mut out).await?;
    goal::goals(db, &taken, &mut out, &mut damage).await?;
    goal::contexts(db, &taken, &mut out, &mut damage).await?;
    for (table, reason) in damage {
        let place = format!("table {table}");
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    out.flush().await
}

/// Ids that other tables speak of: whether their tasks came in must be known for these alone.
async fn owners_of_rows(db: &mut LegacyDb) -> Result<HashSet<String>, ReadError> {
    let mut ids = HashSet::new();
    for table in ["goal_tasks", CONTEXTS] {
        if db.columns(table).await?.is_empty() {
            continue;
        }
        let table = Table {
            name: table,
            wanted: &["task_id"],
            order: "task_id",
        };
        // What of it is damaged is told when its rows are read.
        let _ = each_row(db, table, async |found| {
            if let Found::Row(values) = found {
                ids.extend(values.hint(0));
            }
            Ok(())
        })
        .await?;
    }
    Ok(ids)
}

/// Says what of the store this release does not know by name.
async fn tell_version<S: Sink>(
    db: &mut LegacyDb,
    columns: &[String],
    extra: &Extra,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let version: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut db.conn)
        .await?;
    let unknown = task::unknown(columns);
    if version <= KNOWN_VERSION && unknown.is_empty() && extra.tables().is_empty() {
        return Ok(());
    }
    let list = |what: &str, names: &[&str]| match names {
        [] => format!("no unknown {what}"),
        names => format!("the {what} {}", names.join(", ")),
    };
    let message = format!(
        "is of version {version}, with {} and {}; what is unknown is kept with its task",
        list("columns", &unknown),
        list("tables", &extra.tables())
    );
    let note = Item::Note {
        code: "newer-store",
        place: "user_version".to_owned(),
        message,
    };
    out.push(note, 0).await
}

/// Hands on a task with what became of its decided end.
async fn give<S: Sink>(
    given: task::Given,
    out: &mut Batcher<'_, S>,
    bytes: usize,
) -> Result<(), ReadError> {
    let place = format!("task {}", given.task.task.task_id);
    push(given.task.into(), out, bytes).await?;
    if given.folded > 0 {
        let item = Item::Merged {
            kind: kind::TASK_RECORD,
            count: given.folded,
        };
        out.push(item, 0).await?;
    }
    match given.settled {
        None => {}
        Some(Settled::Kept(settlement)) => push((*settlement).into(), out, 512).await?,
        Some(Settled::Applied | Settled::Dropped) => {
            let item = Item::Merged {
                kind: kind::SETTLEMENT,
                count: 1,
            };
            out.push(item, 0).await?;
        }
    }
    if let Some((owner, artifact)) = given.artifact {
        let bytes = artifact.blob.len();
        let item = Item::Record {
            tier: Tier::Agent(owner),
            record: artifact.into(),
        };
        out.push(item, bytes).await?;
    }
    tell(&place, given.notes, out).await
}

async fn push<S: Sink>(
    record: Record,
    out: &mut Batcher<'_, S>,
    bytes: usize,
) -> Result<(), ReadError> {
    let tier = Tier::Global;
    out.push(Item::Record { tier, record }, bytes).await
}

async fn tell<S: Sink>(
    place: &str,
    notes: Notes,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    for (code, message) in notes {
        let place = place.to_owned();
        let note = Item::Note {
            code,
            place,
            message,
        };
        out.push(note, 0).await?;
    }
    Ok(())
}

async fn refuse_row<S: Sink>(
    values: &Values,
    names: &[&str],
    table: &str,
    kind: &'static str,
    reason: String,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let raw = values.json(names, &[]).into_bytes();
    let bytes = raw.len();
    let refusal = Refusal {
        kind,
        place: format!("table {table}, row {}", values.rowid),
        reason,
        raw,
    };
    out.push(Item::Refused(refusal), bytes).await
}

/// All columns of a table: those `known`, in their order, then the others.
fn all_columns<'c>(known: &[&'c str], columns: &'c [String]) -> Vec<&'c str> {
    let others = columns.iter().map(String::as_str);
    known
        .iter()
        .copied()
        .chain(others.filter(|name| !known.contains(name)))
        .collect()
}

type Goal = GoalTask;
type Continuation = TaskContinuation;
