//! Rows of tables that only some builds have: events of tasks, specifications and ledgers of runners.
//!
//! They are kept with the task that they name. A build of which nothing is known can have any table:
//! what names no task is refused row by row, so that its bytes are in quarantine and nobody is told
//! that all came in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::super::rows::{Found, Table, each_row};
use super::super::super::sqlite::LegacyDb;
use super::super::super::{Batcher, ReadError, Sink};
use super::{KNOWN_TABLES, refuse_row};
use crate::doctor::record::{Item, Refusal, kind};

/// Rows held until their tasks are read, bytes; rows beyond are refused.
const MAX_HELD_BYTES: usize = 32 * 1024 * 1024;

/// Rows of unknown tables by task and table.
#[derive(Debug, Default)]
pub(super) struct Extra {
    rows: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    names: Vec<String>,
}

/// What a task's rows of unknown tables are.
#[derive(Debug, Default)]
pub(super) struct Folded {
    /// By table.
    pub(super) tables: Map<String, Value>,
    /// How many.
    pub(super) count: u64,
}

impl Extra {
    /// Reads all such tables.
    pub(super) async fn read<S: Sink>(
        db: &mut LegacyDb,
        out: &mut Batcher<'_, S>,
        damage: &mut Vec<(String, String)>,
    ) -> Result<Self, ReadError> {
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
             ORDER BY name",
        )
        .fetch_all(&mut db.conn)
        .await?;
        let mut extra = Self::default();
        let mut held = 0;
        for name in tables {
            if KNOWN_TABLES.contains(&name.as_str()) {
                continue;
            }
            extra.table(db, &name, &mut held, out, damage).await?;
            extra.names.push(name);
        }
        Ok(extra)
    }

    async fn table<S: Sink>(
        &mut self,
        db: &mut LegacyDb,
        name: &str,
        held: &mut usize,
        out: &mut Batcher<'_, S>,
        damage: &mut Vec<(String, String)>,
    ) -> Result<(), ReadError> {
        let columns = db.columns(name).await?;
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let of_task = names.iter().position(|column| *column == "task_id");
        let table = Table {
            name,
            wanted: &names,
            order: "rowid",
        };
        let read = each_row(db, table, async |found| {
            let values = match found {
                Found::Row(values) => values,
                Found::Lost { rowid } => {
                    let lost = Refusal::lost(kind::TASK_RECORD, name, rowid);
                    return out.push(Item::Refused(lost), 0).await;
                }
            };
            let json = values.json(&names, &[]);
            let task = of_task.and_then(|column| values.hint(column));
            let reason = match task {
                Some(_) if *held + json.len() > MAX_HELD_BYTES => {
                    "there are more such rows than one import holds".to_owned()
                }
                Some(task) => {
                    *held += json.len();
                    let row = serde_json::from_str(&json).unwrap_or(Value::String(json));
                    let tables = self.rows.entry(task).or_default();
                    tables.entry(name.to_owned()).or_default().push(row);
                    return Ok(());
                }
                None => "it names no task, and this release does not know its table".to_owned(),
            };
            refuse_row(&values, &names, name, kind::TASK_RECORD, reason, out).await
        })
        .await;
        match read {
            Ok(found) => damage.extend(found.map(|reason| (name.to_owned(), reason))),
            // One of which no row can be had costs itself alone.
            Err(ReadError::Format { reason } | ReadError::Damaged { reason }) => {
                damage.push((name.to_owned(), reason));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Names of the tables.
    pub(super) fn tables(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// What a task has in them.
    pub(super) fn take(&mut self, task: &str) -> Folded {
        let mut folded = Folded::default();
        for (table, rows) in self.rows.remove(task).unwrap_or_default() {
            folded.count += rows.len() as u64;
            folded.tables.insert(table, Value::Array(rows));
        }
        folded
    }

    /// Refuses the rows whose task did not come.
    pub(super) async fn refuse_rest<S: Sink>(
        self,
        out: &mut Batcher<'_, S>,
    ) -> Result<(), ReadError> {
        for (task, tables) in self.rows {
            for (table, rows) in tables {
                for row in rows {
                    let raw = row.to_string().into_bytes();
                    let bytes = raw.len();
                    let refusal = Refusal {
                        kind: kind::TASK_RECORD,
                        place: format!("table {table}, a row of task {task}"),
                        reason: format!("its task {task} is not there"),
                        raw,
                    };
                    out.push(Item::Refused(refusal), bytes).await?;
                }
            }
        }
        Ok(())
    }
}
