//! Goals and where they go on.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::super::super::rows::{Found, Table, each_row};
use super::super::super::sqlite::{LegacyDb, Values};
use super::super::super::{Batcher, ReadError, Sink};
use super::{CONTEXTS, Continuation, Goal, Notes, all_columns, push, refuse_row, tell};
use crate::doctor::record::{Item, Refusal, kind};

const GOAL: [&str; 7] = [
    "task_id",
    "objective",
    "effective_token_limit",
    "effective_cost_limit_usd",
    "pause_reason",
    "pause_description",
    "blockers_json",
];
const CONTEXT: [&str; 2] = ["task_id", "context_json"];

type Damage = Vec<(String, String)>;

/// Streams the goals of tasks that came in.
pub(super) async fn goals<S: Sink>(
    db: &mut LegacyDb,
    taken: &HashSet<String>,
    out: &mut Batcher<'_, S>,
    damage: &mut Damage,
) -> Result<(), ReadError> {
    let columns = db.columns("goal_tasks").await?;
    let names = all_columns(&GOAL, &columns);
    each(
        db,
        "goal_tasks",
        &names,
        kind::GOAL,
        out,
        damage,
        |values| {
            let task_id = owner(values, taken)?;
            let (goal, notes) = goal(values, &names, task_id)?;
            Ok((format!("goal {}", goal.task_id), goal.into(), notes))
        },
    )
    .await
}

/// Streams where tasks that came in go on.
pub(super) async fn contexts<S: Sink>(
    db: &mut LegacyDb,
    taken: &HashSet<String>,
    out: &mut Batcher<'_, S>,
    damage: &mut Damage,
) -> Result<(), ReadError> {
    let columns = db.columns(CONTEXTS).await?;
    let names = all_columns(&CONTEXT, &columns);
    each(
        db,
        CONTEXTS,
        &names,
        kind::CONTINUATION,
        out,
        damage,
        |values| {
            let task_id = owner(values, taken)?;
            let mut notes = Notes::new();
            let context_json = values
                .hint(1)
                .ok_or("its context is missing or not UTF-8")?;
            if serde_json::from_str::<Value>(&context_json).is_err() {
                notes.push((
                    "context-not-json",
                    "where it goes on is not JSON; kept as it is".to_owned(),
                ));
            }
            let context = Continuation {
                task_id,
                context_json,
                detail_json: detail(Map::new(), values, &names, CONTEXT.len()),
            };
            Ok((
                format!("continuation {}", context.task_id),
                context.into(),
                notes,
            ))
        },
    )
    .await
}

type Read = Result<(String, crate::doctor::record::Record, Notes), String>;

async fn each<S: Sink>(
    db: &mut LegacyDb,
    name: &str,
    names: &[&str],
    kind: &'static str,
    out: &mut Batcher<'_, S>,
    damage: &mut Damage,
    mut read: impl FnMut(&Values) -> Read,
) -> Result<(), ReadError> {
    if db.columns(name).await?.is_empty() {
        return Ok(());
    }
    let table = Table {
        name,
        wanted: names,
        order: "task_id",
    };
    let found = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind, name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        match read(&values) {
            Ok((place, record, notes)) => {
                push(record, out, 1024).await?;
                tell(&place, notes, out).await
            }
            Err(reason) => refuse_row(&values, names, name, kind, reason, out).await,
        }
    })
    .await?;
    damage.extend(found.map(|reason| (name.to_owned(), reason)));
    Ok(())
}

/// The task a row belongs to, if that came in.
fn owner(values: &Values, taken: &HashSet<String>) -> Result<String, String> {
    let task_id = values.hint(0).ok_or("its task is missing or not UTF-8")?;
    if taken.contains(&task_id) {
        Ok(task_id)
    } else {
        Err(format!("its task {task_id} is not there"))
    }
}

fn goal(values: &Values, names: &[&str], task_id: String) -> Result<(Goal, Notes), String> {
    let mut notes = Notes::new();
    let mut details = Map::new();
    let objective = match values.text(1) {
        Ok(objective) => objective.unwrap_or_default().to_owned(),
        Err(_) => return Err("its objective is not UTF-8".to_owned()),
    };
    let tokens = values.integer(2).filter(|tokens| *tokens >= 0);
    let cost = values.real(3).filter(|cost| *cost >= 0.0);
    for (column, is_taken) in [(2, tokens.is_some()), (3, cost.is_some())] {
        if values.bytes(column).is_some() && !is_taken {
            details.insert(names[column].to_owned(), raw(values, column));
            notes.push((
                "no-limit",
                "a limit of it is none; kept beside, and the goal comes in without".to_owned(),
            ));
        }
    }
    let is_list = |json: &String| matches!(serde_json::from_str(json), Ok(Value::Array(_)));
    let blockers = values.hint(6);
    let blockers_json = blockers.filter(is_list).unwrap_or_else(|| {
        if values.bytes(6).is_some() {
            details.insert(names[6].to_owned(), raw(values, 6));
            notes.push((
                "blockers-not-json",
                "what stands in its way is no JSON list; kept beside".to_owned(),
            ));
        }
        "[]".to_owned()
    });
    let goal = Goal {
        task_id,
        objective,
        effective_token_limit: tokens,
        effective_cost_limit_usd: cost,
        pause_reason: values.hint(4),
        pause_description: values.hint(5),
        blockers_json,
        detail_json: detail(details, values, names, GOAL.len()),
    };
    Ok((goal, notes))
}

/// One value as JSON: text, or hex of bytes that are none.
pub(super) fn raw(values: &Values, column: usize) -> Value {
    match (values.bytes(column), values.text(column)) {
        (None, _) => Value::Null,
        (Some(_), Ok(Some(text))) => Value::from(text),
        (Some(bytes), _) => serde_json::json!({ "hex": crate::doctor::units::hex(bytes) }),
    }
}

/// `details` with the values of all columns from number `from` on that have one.
pub(super) fn detail(
    mut details: Map<String, Value>,
    values: &Values,
    names: &[&str],
    from: usize,
) -> Option<String> {
    for (column, name) in names.iter().enumerate().skip(from) {
        if values.bytes(column).is_some() {
            details.insert((*name).to_owned(), raw(values, column));
        }
    }
    (!details.is_empty()).then(|| Value::Object(details).to_string())
}
