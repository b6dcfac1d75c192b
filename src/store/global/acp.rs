//! Sessions of ACP clients: `acp_sessions`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{AcpSession, AcpState, AgentId, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::{agent_id, decoded, parse_time_cursor, time_cursor, values_sql};

const TABLE: &str = "acp_sessions";

#[derive(Iden)]
enum AcpSessions {
    Table,
    AgentId,
    SessionId,
    State,
    LastActivityAtMs,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcpFilter {
    /// Only this agent's.
    pub agent_id: Option<AgentId>,
    /// Only in this state.
    pub state: Option<AcpState>,
}

fn read(row: &SqliteRow) -> Result<AcpSession, StoreError> {
    let id: String = row.try_get("session_id")?;
    let agent: String = row.try_get("agent_id")?;
    let state: String = row.try_get("state")?;
    Ok(AcpSession {
        agent_id: decoded(agent_id, &agent, TABLE, "agent_id", &id)?,
        state: decoded(AcpState::parse, &state, TABLE, "state", &id)?,
        session_key: row.try_get("session_key")?,
        cwd: row.try_get("cwd")?,
        token_count: row.try_get("token_count")?,
        created_at_ms: row.try_get("created_at_ms")?,
        last_activity_at_ms: row.try_get("last_activity_at_ms")?,
        ended_at_ms: row.try_get("ended_at_ms")?,
        session_id: id,
    })
}

/// Inserts sessions, at most 500.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or one of them exists.
pub async fn insert(tx: &mut WriteTx<'_>, sessions: &[AcpSession]) -> Result<(), StoreError> {
    if sessions.is_empty() {
        return Ok(());
    }
    let sql = values_sql(
        "INSERT INTO acp_sessions (agent_id, session_id, session_key, cwd, state, token_count, created_at_ms,
             last_activity_at_ms, ended_at_ms) VALUES",
        9,
        sessions.len(),
        "",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for session in sessions {
        query = query
            .bind(session.agent_id.as_str())
            .bind(&session.session_id)
            .bind(&session.session_key)
            .bind(&session.cwd)
            .bind(session.state.as_str())
            .bind(session.token_count)
            .bind(session.created_at_ms)
            .bind(session.last_activity_at_ms)
            .bind(session.ended_at_ms);
    }
    query.execute(&mut **tx).await?;
    Ok(())
}

/// Writes what changes in the life of a session: state, count, last activity.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn update(tx: &mut WriteTx<'_>, session: &AcpSession) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE acp_sessions SET state = ?3, token_count = ?4, last_activity_at_ms = ?5, ended_at_ms = ?6
         WHERE agent_id = ?1 AND session_id = ?2",
    )
    .bind(session.agent_id.as_str())
    .bind(&session.session_id)
    .bind(session.state.as_str())
    .bind(session.token_count)
    .bind(session.last_activity_at_ms)
    .bind(session.ended_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The sessions of these ids, of all agents, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn of_ids(
    conn: &mut SqliteConnection,
    session_ids: &[&str],
) -> Result<Vec<AcpSession>, StoreError> {
    if session_ids.is_empty() {
        return Ok(Vec::new());
    }
    let marks = vec!["?"; session_ids.len()].join(",");
    let sql = format!("SELECT * FROM acp_sessions WHERE session_id IN ({marks})");
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for id in session_ids {
        query = query.bind(*id);
    }
    query.fetch_all(conn).await?.iter().map(read).collect()
}

/// Lists sessions, newest activity first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    filter: &AcpFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<AcpSession>, StoreError> {
    let last = || Expr::col(AcpSessions::LastActivityAtMs);
    let mut select = Query::select();
    select
        .expr(Expr::cust("*"))
        .from(AcpSessions::Table)
        .order_by(AcpSessions::LastActivityAtMs, Order::Desc)
        .order_by(AcpSessions::SessionId, Order::Asc)
        .order_by(AcpSessions::AgentId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(agent) = &filter.agent_id {
        select.and_where(Expr::col(AcpSessions::AgentId).eq(agent.as_str()));
    }
    if let Some(state) = filter.state {
        select.and_where(Expr::col(AcpSessions::State).eq(state.as_str()));
    }
    if let Some(cursor) = before {
        let (at_ms, id) = parse_time_cursor(cursor)?;
        let (session, agent) = cursor_ids(&id);
        let behind =
            Expr::col(AcpSessions::SessionId)
                .gt(session)
                .or(Expr::col(AcpSessions::SessionId)
                    .eq(session)
                    .and(Expr::col(AcpSessions::AgentId).gt(agent)));
        select.and_where(last().lt(at_ms).or(last().eq(at_ms).and(behind)));
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let sessions = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(sessions, limit, |session| {
        let ids = format!("{}:{}", session.agent_id, session.session_id);
        time_cursor(session.last_activity_at_ms, &ids)
    }))
}

/// Session and agent of a cursor; an agent's name has no colon, a session's may.
fn cursor_ids(id: &str) -> (&str, &str) {
    id.split_once(':')
        .map_or((id, ""), |(agent, session)| (session, agent))
}
