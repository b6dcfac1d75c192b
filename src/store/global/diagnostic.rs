//! The log of what a runtime did: `diagnostic_events`.

use sea_query::{Expr, ExprTrait, Iden, LikeExpr, Order, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{AgentId, DiagnosticEvent, DiagnosticLevel, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::{
    agent_id, decoded, decoded_opt, parse_time_cursor, time_cursor, values_sql,
};

/// Most rows of one insert.
pub const MAX_INSERT: usize = 500;

#[derive(Iden)]
enum DiagnosticEvents {
    Table,
    Scope,
    EventKey,
    CreatedAtMs,
    Sequence,
    Level,
    Category,
    AgentId,
    PayloadJson,
}

/// Which events to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticFilter {
    /// Only this grave and graver.
    pub level: Option<DiagnosticLevel>,
    /// Only of this agent.
    pub agent_id: Option<AgentId>,
    /// Only of this part of the runtime.
    pub category: Option<String>,
    /// Only from this instant on.
    pub since_ms: Option<i64>,
    /// Only whose payload holds this text, upper and lower case of ASCII letters alike.
    pub contains: Option<String>,
}

fn read(row: &SqliteRow) -> Result<DiagnosticEvent, StoreError> {
    let event_key: String = row.try_get("event_key")?;
    let level: String = row.try_get("level")?;
    Ok(DiagnosticEvent {
        scope: row.try_get("scope")?,
        created_at_ms: row.try_get("created_at_ms")?,
        sequence: row.try_get("sequence")?,
        level: decoded(
            DiagnosticLevel::parse,
            &level,
            "diagnostic_events",
            "level",
            &event_key,
        )?,
        category: row.try_get("category")?,
        action: row.try_get("action")?,
        outcome: row.try_get("outcome")?,
        agent_id: decoded_opt(
            agent_id,
            row.try_get("agent_id")?,
            "diagnostic_events",
            "agent_id",
            &event_key,
        )?,
        payload_json: row.try_get("payload_json")?,
        event_key,
    })
}

/// Inserts up to [`MAX_INSERT`] events; those whose name is taken in their log are left out. Gives how many are new.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_new(
    tx: &mut WriteTx<'_>,
    events: &[DiagnosticEvent],
) -> Result<u64, StoreError> {
    if events.is_empty() {
        return Ok(0);
    }
    let sql = values_sql(
        "INSERT INTO diagnostic_events (scope, event_key, created_at_ms, sequence, level, category, action, outcome,
             agent_id, payload_json) VALUES",
        10,
        events.len(),
        "ON CONFLICT (scope, event_key) DO NOTHING",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for event in events {
        query = query
            .bind(&event.scope)
            .bind(&event.event_key)
            .bind(event.created_at_ms)
            .bind(event.sequence)
            .bind(event.level.as_str())
            .bind(&event.category)
            .bind(&event.action)
            .bind(&event.outcome)
            .bind(event.agent_id.as_ref().map(AgentId::as_str))
            .bind(&event.payload_json);
    }
    Ok(query.execute(&mut **tx).await?.rows_affected())
}

/// The events of these names in one log, in no order; unknown names are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_many(
    conn: &mut SqliteConnection,
    scope: &str,
    keys: &[&str],
) -> Result<Vec<DiagnosticEvent>, StoreError> {
    let select = Query::select()
        .expr(Expr::cust("*"))
        .from(DiagnosticEvents::Table)
        .and_where(Expr::col(DiagnosticEvents::Scope).eq(scope))
        .and_where(Expr::col(DiagnosticEvents::EventKey).is_in(keys.iter().copied()))
        .take();
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Lists events, newest first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    filter: &DiagnosticFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<DiagnosticEvent>, StoreError> {
    let mut select = Query::select();
    select
        .expr(Expr::cust("*"))
        .from(DiagnosticEvents::Table)
        .order_by(DiagnosticEvents::CreatedAtMs, Order::Desc)
        .order_by(DiagnosticEvents::Sequence, Order::Desc)
        .order_by(DiagnosticEvents::EventKey, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(level) = filter.level {
        let graver = DiagnosticLevel::ALL.iter().filter(|other| **other >= level);
        let words: Vec<&str> = graver.map(|level| level.as_str()).collect();
        select.and_where(Expr::col(DiagnosticEvents::Level).is_in(words));
    }
    if let Some(agent) = &filter.agent_id {
        select.and_where(Expr::col(DiagnosticEvents::AgentId).eq(agent.as_str()));
    }
    if let Some(category) = &filter.category {
        select.and_where(Expr::col(DiagnosticEvents::Category).eq(category.as_str()));
    }
    if let Some(since_ms) = filter.since_ms {
        select.and_where(Expr::col(DiagnosticEvents::CreatedAtMs).gte(since_ms));
    }
    if let Some(text) = &filter.contains {
        select.and_where(Expr::col(DiagnosticEvents::PayloadJson).like(holding(text)));
    }
    if let Some(cursor) = before {
        let (at_ms, rest) = parse_time_cursor(cursor)?;
        let (sequence, key) = parse_time_cursor(&rest)?;
        let (time, place) = (
            || Expr::col(DiagnosticEvents::CreatedAtMs),
            || Expr::col(DiagnosticEvents::Sequence),
        );
        let behind = place()
            .eq(sequence)
            .and(Expr::col(DiagnosticEvents::EventKey).gt(key));
        let later = time().eq(at_ms).and(place().lt(sequence).or(behind));
        select.and_where(time().lt(at_ms).or(later));
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let events = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(events, limit, |event| {
        time_cursor(
            event.created_at_ms,
            &time_cursor(event.sequence, &event.event_key),
        )
    }))
}

/// A pattern for a text anywhere, taken by the letter, in the form it has inside JSON.
fn holding(text: &str) -> LikeExpr {
    let json = serde_json::Value::from(text).to_string();
    let inside = json.trim_start_matches('"');
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    let mut pattern = String::from("%");
    for letter in inside.chars() {
        if matches!(letter, '%' | '_' | '^') {
            pattern.push('^');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    LikeExpr::new(pattern).escape('^')
}

/// Deletes events recorded before a time, at most so many; gives how many.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn prune(tx: &mut WriteTx<'_>, before_ms: i64, most: u32) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM diagnostic_events WHERE rowid IN
             (SELECT rowid FROM diagnostic_events WHERE created_at_ms < ?1 ORDER BY created_at_ms LIMIT ?2)",
    )
    .bind(before_ms)
    .bind(most)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// When the newest event was recorded.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn newest(conn: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT max(created_at_ms) FROM diagnostic_events")
            .fetch_one(conn)
            .await?,
    )
}
