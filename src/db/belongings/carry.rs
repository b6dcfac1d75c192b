//! An agent's rows carried from one control plane to another, and its database given another name.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::{HISTORY, OF_TASKS, TaskMention, change, tables};
use crate::db::error::{DbError, OpenError};
use crate::db::open::{Access, ConnectHere, Db, Durability, WriteAccess};
use crate::db::options::write_options;
use crate::model::{AgentId, Tier};

/// Makes an agent's database say that it is of another name. May be repeated.
///
/// Nobody has it open.
///
/// # Errors
///
/// [`OpenError`] when it is of a third agent, or cannot be opened.
pub async fn give_tier(
    path: &Path,
    old: &AgentId,
    new: &AgentId,
    access: WriteAccess,
) -> Result<(), OpenError> {
    match Db::open(
        path,
        &Tier::Agent(new.clone()),
        Access::Write(access.clone()),
    )
    .await
    {
        Ok(db) => {
            db.close().await;
            return Ok(());
        }
        Err(OpenError::WrongFile { .. }) => {}
        Err(error) => return Err(error),
    }
    let db = Db::open(path, &Tier::Agent(old.clone()), Access::Write(access)).await?;
    let name = new.clone();
    let given = db.write(move |tx| {
        Box::pin(async move {
            sqlx::query("UPDATE schema_meta SET agent_id = ?1 WHERE role = 'agent'")
                .bind(name.as_str())
                .execute(&mut **tx)
                .await?;
            Ok::<_, DbError>(())
        })
    });
    let given = given.await;
    db.close().await;
    Ok(given?)
}

/// Makes a control plane of an agent's rows alone.
///
/// * `global`: where they are; nobody writes it.
/// * `target`: a path where nothing is.
///
/// # Errors
///
/// [`OpenError`] when one cannot be opened or made.
pub async fn copy_belongings(
    global: &Path,
    target: &Path,
    agent: &AgentId,
    access: WriteAccess,
) -> Result<(), OpenError> {
    let made = Db::create(target, &Tier::Global, access).await?;
    made.close().await;
    let mut conn = attached(target, global).await?;
    let copied = async {
        copy(&mut conn, agent, "").await?;
        commit(&mut conn).await
    };
    let copied = copied.await;
    finish(conn, target, copied).await
}

/// Puts an agent's rows into a control plane, in one transaction. May be repeated: a row that is there stays as it is,
/// and one of the root's history gets its name back.
///
/// * `from`: a control plane of this schema that holds them; nobody writes it.
///
/// # Errors
///
/// [`OpenError`] when one cannot be opened; nothing is changed then.
pub async fn put_belongings(
    global: &Path,
    from: &Path,
    agent: &AgentId,
    mentions: &[TaskMention],
) -> Result<(), OpenError> {
    let mut conn = attached(global, from).await?;
    let put = async {
        copy(&mut conn, agent, "ON CONFLICT DO NOTHING").await?;
        for (table, column, key) in HISTORY {
            let sql = format!(
                "UPDATE main.{table} SET {column} = ?1
                 WHERE {column} IS NULL AND {key} IN (SELECT {key} FROM other.{table} WHERE {column} = ?1)"
            );
            change(&mut conn, sql, agent, None).await?;
        }
        for mention in mentions {
            name_again(&mut conn, agent, mention).await?;
        }
        commit(&mut conn).await
    };
    let put = put.await;
    finish(conn, global, put).await
}

/// Puts a name back into a task of another, where the task is as the name left it.
async fn name_again(
    conn: &mut SqliteConnection,
    agent: &AgentId,
    mention: &TaskMention,
) -> Result<(), DbError> {
    if mention.is_originator {
        sqlx::query(
            "UPDATE main.task_runs SET originator_route = ?1 WHERE task_id = ?2 AND originator_route IS NULL",
        )
        .bind(agent.as_str())
        .bind(&mention.task_id)
        .execute(&mut *conn)
        .await?;
    }
    let Some(chain) = &mention.caller_chain_json else {
        return Ok(());
    };
    sqlx::query(
        "UPDATE main.task_runs SET caller_chain_json = ?3
         WHERE task_id = ?2 AND caller_chain_json =
             (SELECT json_group_array(value) FROM (SELECT value FROM json_each(?3) WHERE value <> ?1 ORDER BY key))",
    )
    .bind(agent.as_str())
    .bind(&mention.task_id)
    .bind(chain)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

/// A connection that writes `path`, with another database beside it as `other`, inside a transaction.
async fn attached(path: &Path, other: &Path) -> Result<SqliteConnection, OpenError> {
    let named = |error: sqlx::Error| OpenError::Db(DbError::from(error).at(other));
    let options = write_options(path, Durability::Full);
    let mut conn = options.connect_here().await.map_err(named)?;
    let Some(other) = other.to_str() else {
        let error = sqlx::Error::Configuration("the path is not UTF-8".into());
        return Err(named(error));
    };
    sqlx::query("ATTACH DATABASE ?1 AS other")
        .bind(other)
        .execute(&mut conn)
        .await
        .map_err(named)?;
    sqlx::query("BEGIN IMMEDIATE")
        .execute(&mut conn)
        .await
        .map_err(named)?;
    Ok(conn)
}

async fn commit(conn: &mut SqliteConnection) -> Result<(), DbError> {
    sqlx::query("COMMIT").execute(conn).await?;
    Ok(())
}

async fn finish(
    mut conn: SqliteConnection,
    path: &Path,
    done: Result<(), DbError>,
) -> Result<(), OpenError> {
    if done.is_err() {
        // The first error is the one to tell; closing rolls back as well.
        let _ = sqlx::query("ROLLBACK").execute(&mut conn).await;
    }
    let closed = conn.close().await.map_err(DbError::from);
    done.and(closed)
        .map_err(|error| OpenError::Db(error.at(path)))
}

/// Copies an agent's rows of `other` into the database itself, columns by name.
async fn copy(conn: &mut SqliteConnection, agent: &AgentId, conflict: &str) -> Result<(), DbError> {
    for (table, is_its) in tables("other") {
        let columns: Vec<String> =
            sqlx::query_scalar("SELECT name FROM pragma_table_info(?1, 'main') ORDER BY cid")
                .bind(table)
                .fetch_all(&mut *conn)
                .await?;
        let columns = columns.join(", ");
        // What hangs on a task does not come to hang on another's, where that has its place.
        let and_its = match OF_TASKS.contains(&table) {
            true => "AND task_id IN (SELECT task_id FROM main.task_runs WHERE agent_id = ?1)",
            false => "",
        };
        let sql = format!(
            "INSERT INTO main.{table} ({columns}) SELECT {columns} FROM other.{table} WHERE {is_its} {and_its} {conflict}"
        );
        // Constants of this program, and names of columns of its own schema.
        sqlx::query(AssertSqlSafe(sql))
            .bind(agent.as_str())
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}
