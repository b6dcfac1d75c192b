//! What an agent has in the control plane: found, renamed, taken along and put back as a whole.
//!
//! Every table that names an agent is here by name. The tables are touched here and not in `store`, because what moves
//! an agent stands beside `store` and treats all of them alike: it must forget none, and knows nothing of their columns
//! besides the name. A test holds the lists against the schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::error::DbError;
use super::open::Db;
use crate::model::AgentId;

pub use self::carry::{copy_belongings, give_tier, put_belongings};

mod carry;

/// Tables whose rows are an agent's, with the column that says whose: parents before what hangs on them.
pub const OWNED: [(&str, &str); 8] = [
    ("agent_databases", "agent_id"),
    ("task_runs", "agent_id"),
    ("cron_jobs", "agent_id"),
    ("acp_sessions", "agent_id"),
    ("diagnostic_events", "agent_id"),
    ("audit_events", "agent_id"),
    ("delivery_queue_entries", "agent_id"),
    ("commitments", "agent_id"),
];

/// Tables whose rows are the root's own history and stay when an agent goes, with the column that names it, which may be
/// empty, and their key: only the name is taken out of them.
///
/// What was spent was spent: a budget that forgets it would be a new one.
pub const HISTORY: [(&str, &str, &str); 1] = [("usage_costs", "agent_id", "cost_id")];

/// Tables whose rows hang on a task, by `task_id`.
pub const OF_TASKS: [&str; 4] = [
    "task_delivery_state",
    "goal_tasks",
    "task_continuations",
    "task_settlements",
];

/// Whether a table may hold something of an agent.
#[must_use]
pub fn may_belong(table: &str) -> bool {
    naming().any(|(name, _)| name == table) || OF_TASKS.contains(&table)
}

/// A task of somebody else that names an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMention {
    /// The task.
    pub task_id: String,
    /// Whether the agent asked for it.
    pub is_originator: bool,
    /// The callers, where the agent is among them, as JSON.
    pub caller_chain_json: Option<String>,
}

/// The callers of a task with every name replaced, or without it.
const OTHER_CHAIN: &str = "(SELECT json_group_array(name) FROM
    (SELECT CASE value WHEN ?1 THEN ?2 ELSE value END AS name FROM json_each(caller_chain_json) ORDER BY key)
    WHERE name IS NOT NULL)";
/// Whether an agent is among the callers of a task.
const IN_CHAIN: &str = "CASE WHEN json_valid(caller_chain_json)
    THEN EXISTS (SELECT 1 FROM json_each(caller_chain_json) WHERE value = ?1) ELSE 0 END";

impl Db {
    /// Rows of an agent, or that name it, by table; tables without any are left out.
    ///
    /// # Errors
    ///
    /// [`DbError`] when a table cannot be read.
    pub async fn belongings(&self, agent: &AgentId) -> Result<BTreeMap<String, i64>, DbError> {
        let mut conn = self.read().await?;
        let mut found = BTreeMap::new();
        for (table, is_its) in tables("main") {
            let sql = format!("SELECT count(*) FROM {table} WHERE {is_its}");
            let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
                .bind(agent.as_str())
                .fetch_one(&mut *conn)
                .await
                .map_err(|error| DbError::from(error).at(self.path()))?;
            if count > 0 {
                found.insert(table.to_owned(), count);
            }
        }
        Ok(found)
    }

    /// Tasks of others that name an agent.
    ///
    /// # Errors
    ///
    /// [`DbError`] when they cannot be read.
    pub async fn mentions(&self, agent: &AgentId) -> Result<Vec<TaskMention>, DbError> {
        let mut conn = self.read().await?;
        let sql = format!(
            "SELECT task_id, originator_route IS ?1 AS is_originator, CASE WHEN {IN_CHAIN} THEN caller_chain_json END
             FROM task_runs WHERE agent_id IS NOT ?1 AND (originator_route IS ?1 OR ({IN_CHAIN})) ORDER BY task_id"
        );
        // Constants of this program.
        let rows: Vec<(String, bool, Option<String>)> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(agent.as_str())
            .fetch_all(&mut *conn)
            .await
            .map_err(|error| DbError::from(error).at(self.path()))?;
        let rows = rows.into_iter();
        Ok(rows
            .map(|(task_id, is_originator, caller_chain_json)| TaskMention {
                task_id,
                is_originator,
                caller_chain_json,
            })
            .collect())
    }

    /// Gives everything of an agent to another name, in one transaction. May be repeated.
    ///
    /// * `path`: where its database lies then, relative to the root.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails; nothing is changed then.
    pub async fn rename_agent(
        &self,
        old: &AgentId,
        new: &AgentId,
        path: String,
    ) -> Result<(), DbError> {
        let (old, new) = (old.clone(), new.clone());
        self.write(move |tx| {
            Box::pin(async move {
                for (table, column) in naming() {
                    let sql = format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1");
                    change(tx, sql, &old, Some(&new)).await?;
                }
                sqlx::query("UPDATE agent_databases SET path = ?2 WHERE agent_id = ?1")
                    .bind(new.as_str())
                    .bind(path)
                    .execute(&mut **tx)
                    .await?;
                name_anew(tx, &old, Some(&new)).await
            })
        })
        .await
    }

    /// Takes an agent out of the control plane: its rows go, and its name goes out of rows of others, in one transaction.
    /// May be repeated.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails; nothing is changed then.
    pub async fn forget_agent(&self, agent: &AgentId) -> Result<(), DbError> {
        let agent = agent.clone();
        self.write(move |tx| {
            Box::pin(async move {
                for (table, column, _) in HISTORY {
                    let sql = format!("UPDATE {table} SET {column} = NULL WHERE {column} = ?1");
                    change(tx, sql, &agent, None).await?;
                }
                // What hangs on a task goes with it.
                for (table, column) in OWNED.iter().rev() {
                    let sql = format!("DELETE FROM {table} WHERE {column} = ?1");
                    change(tx, sql, &agent, None).await?;
                }
                name_anew(tx, &agent, None).await
            })
        })
        .await
    }

    /// Switches off every scheduled job, for this reason.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails.
    pub async fn disable_jobs(&self, reason: &'static str) -> Result<(), DbError> {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query(
                    "UPDATE cron_jobs SET enabled = 0, disabled_reason = ?1, next_run_at_ms = NULL WHERE enabled = 1",
                )
                .bind(reason)
                .execute(&mut **tx)
                .await?;
                Ok(())
            })
        })
        .await
    }
}

/// Every table with a column that names an agent.
fn naming() -> impl Iterator<Item = (&'static str, &'static str)> {
    let history = HISTORY.iter().map(|(table, column, _)| (*table, *column));
    OWNED.into_iter().chain(history)
}

/// Every table that may hold something of an agent, with the condition for its rows.
fn tables(schema: &str) -> impl Iterator<Item = (&'static str, String)> {
    let of_tasks =
        format!("task_id IN (SELECT task_id FROM {schema}.task_runs WHERE agent_id = ?1)");
    let owned = naming().map(|(table, column)| (table, format!("{column} = ?1")));
    owned.chain(OF_TASKS.iter().map(move |table| (*table, of_tasks.clone())))
}

async fn change(
    conn: &mut SqliteConnection,
    sql: String,
    old: &AgentId,
    new: Option<&AgentId>,
) -> Result<(), DbError> {
    let takes_both = sql.contains("?2");
    // Constants of this program; both names are bound.
    let mut query = sqlx::query(AssertSqlSafe(sql)).bind(old.as_str());
    if takes_both {
        query = query.bind(new.map(AgentId::as_str));
    }
    query.execute(conn).await?;
    Ok(())
}

/// Changes a name in tasks of whomever, or takes it out.
async fn name_anew(
    conn: &mut SqliteConnection,
    old: &AgentId,
    new: Option<&AgentId>,
) -> Result<(), DbError> {
    let origin = "UPDATE task_runs SET originator_route = ?2 WHERE originator_route = ?1";
    change(conn, origin.to_owned(), old, new).await?;
    let chain = format!("UPDATE task_runs SET caller_chain_json = {OTHER_CHAIN} WHERE {IN_CHAIN}");
    change(conn, chain, old, new).await
}
