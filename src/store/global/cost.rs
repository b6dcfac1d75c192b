//! What calls of models cost: `usage_costs`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query, SelectStatement};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{AgentId, CostGroup, CostGrouping, CostSums, Page, PageLimit, UsageCost};
use crate::store::StoreError;
use crate::store::row::{agent_id, decoded_opt, parse_time_cursor, time_cursor, values_sql};

/// Most rows of one insert.
pub const MAX_INSERT: usize = 500;

/// Most groups of one answer: ten years of days.
const MAX_GROUPS: u64 = 3_660;

#[derive(Iden)]
enum UsageCosts {
    Table,
    CostId,
    AgentId,
    RecordedAtMs,
    GoalTaskId,
}

/// Which costs to list or add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostFilter {
    /// Only of this agent.
    pub agent_id: Option<AgentId>,
    /// Only from this instant on.
    pub from_ms: Option<i64>,
    /// Only before this instant.
    pub to_ms: Option<i64>,
}

impl CostFilter {
    fn narrow(&self, select: &mut SelectStatement) {
        if let Some(agent) = &self.agent_id {
            select.and_where(Expr::col(UsageCosts::AgentId).eq(agent.as_str()));
        }
        if let Some(from_ms) = self.from_ms {
            select.and_where(Expr::col(UsageCosts::RecordedAtMs).gte(from_ms));
        }
        if let Some(to_ms) = self.to_ms {
            select.and_where(Expr::col(UsageCosts::RecordedAtMs).lt(to_ms));
        }
    }
}

fn read(row: &SqliteRow) -> Result<UsageCost, StoreError> {
    let cost_id: String = row.try_get("cost_id")?;
    Ok(UsageCost {
        agent_id: decoded_opt(
            agent_id,
            row.try_get("agent_id")?,
            "usage_costs",
            "agent_id",
            &cost_id,
        )?,
        model: row.try_get("model")?,
        input_tokens: row.try_get("input_tokens")?,
        output_tokens: row.try_get("output_tokens")?,
        cached_input_tokens: row.try_get("cached_input_tokens")?,
        total_tokens: row.try_get("total_tokens")?,
        cost_usd: row.try_get("cost_usd")?,
        cost_usd_text: row.try_get("cost_usd_text")?,
        has_price: row.try_get("has_price")?,
        recorded_at_ms: row.try_get("recorded_at_ms")?,
        recorded_at_text: row.try_get("recorded_at_text")?,
        process_id: row.try_get("process_id")?,
        goal_task_id: row.try_get("goal_task_id")?,
        detail_json: row.try_get("detail_json")?,
        cost_id,
    })
}

/// Inserts up to [`MAX_INSERT`] costs; ids that exist are left as they are. Gives how many are new.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_new(tx: &mut WriteTx<'_>, costs: &[UsageCost]) -> Result<u64, StoreError> {
    if costs.is_empty() {
        return Ok(0);
    }
    let sql = values_sql(
        "INSERT INTO usage_costs (cost_id, agent_id, model, input_tokens, output_tokens, cached_input_tokens,
             total_tokens, cost_usd, cost_usd_text, has_price, recorded_at_ms, recorded_at_text, process_id,
             goal_task_id, detail_json) VALUES",
        15,
        costs.len(),
        "ON CONFLICT (cost_id) DO NOTHING",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for cost in costs {
        query = query
            .bind(&cost.cost_id)
            .bind(cost.agent_id.as_ref().map(AgentId::as_str))
            .bind(&cost.model)
            .bind(cost.input_tokens)
            .bind(cost.output_tokens)
            .bind(cost.cached_input_tokens)
            .bind(cost.total_tokens)
            .bind(cost.cost_usd)
            .bind(&cost.cost_usd_text)
            .bind(cost.has_price)
            .bind(cost.recorded_at_ms)
            .bind(&cost.recorded_at_text)
            .bind(&cost.process_id)
            .bind(&cost.goal_task_id)
            .bind(&cost.detail_json);
    }
    Ok(query.execute(&mut **tx).await?.rows_affected())
}

/// The costs of these ids, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_many(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<UsageCost>, StoreError> {
    let select = Query::select()
        .expr(Expr::cust("*"))
        .from(UsageCosts::Table)
        .and_where(Expr::col(UsageCosts::CostId).is_in(ids.iter().copied()))
        .take();
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Lists costs, newest first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    filter: &CostFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<UsageCost>, StoreError> {
    let mut select = Query::select();
    select
        .expr(Expr::cust("*"))
        .from(UsageCosts::Table)
        .order_by(UsageCosts::RecordedAtMs, Order::Desc)
        .order_by(UsageCosts::CostId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    filter.narrow(&mut select);
    if let Some(cursor) = before {
        let (at_ms, id) = parse_time_cursor(cursor)?;
        let time = || Expr::col(UsageCosts::RecordedAtMs);
        let behind = time().eq(at_ms).and(Expr::col(UsageCosts::CostId).gt(id));
        select.and_where(time().lt(at_ms).or(behind));
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let costs = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(costs, limit, |cost| {
        time_cursor(cost.recorded_at_ms, &cost.cost_id)
    }))
}

/// What is added up. `total` does not overflow where `sum` of whole numbers would, and is exact to 2^53.
const SUMS: [&str; 7] = [
    "count(*) AS calls",
    "count(*) - count(nullif(has_price, 0)) AS unpriced_calls",
    "CAST(total(input_tokens) AS INTEGER) AS input_tokens",
    "CAST(total(output_tokens) AS INTEGER) AS output_tokens",
    "CAST(total(cached_input_tokens) AS INTEGER) AS cached_input_tokens",
    "CAST(total(total_tokens) AS INTEGER) AS total_tokens",
    "total(cost_usd) AS cost_usd",
];

fn sums(row: &SqliteRow) -> Result<CostSums, StoreError> {
    Ok(CostSums {
        calls: row.try_get("calls")?,
        unpriced_calls: row.try_get("unpriced_calls")?,
        input_tokens: row.try_get("input_tokens")?,
        output_tokens: row.try_get("output_tokens")?,
        cached_input_tokens: row.try_get("cached_input_tokens")?,
        total_tokens: row.try_get("total_tokens")?,
        cost_usd: row.try_get("cost_usd")?,
    })
}

/// Adds up all costs of a filter.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn total(
    conn: &mut SqliteConnection,
    filter: &CostFilter,
) -> Result<CostSums, StoreError> {
    let mut select = Query::select();
    select.exprs(SUMS.map(Expr::cust)).from(UsageCosts::Table);
    filter.narrow(&mut select);
    sums(&bound(&select).fetch_one(conn).await?)
}

/// Adds up what served one goal.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn of_goal(conn: &mut SqliteConnection, goal: &str) -> Result<CostSums, StoreError> {
    let select = Query::select()
        .exprs(SUMS.map(Expr::cust))
        .from(UsageCosts::Table)
        .and_where(Expr::col(UsageCosts::GoalTaskId).eq(goal))
        .take();
    sums(&bound(&select).fetch_one(conn).await?)
}

/// Adds up costs by agent, model or day: days newest first, the others dearest first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn groups(
    conn: &mut SqliteConnection,
    filter: &CostFilter,
    by: CostGrouping,
) -> Result<Vec<CostGroup>, StoreError> {
    let group = match by {
        CostGrouping::Agent => "agent_id",
        CostGrouping::Model => "model",
        // SQLite's calendar ends with the year 9999; what lies outside is one group.
        CostGrouping::Day => {
            "coalesce(strftime('%Y-%m-%d', recorded_at_ms / 1000.0, 'unixepoch'), 'out of range')"
        }
    };
    let order: &[(&'static str, Order)] = match by {
        CostGrouping::Agent | CostGrouping::Model => &[
            ("cost_usd", Order::Desc),
            ("total_tokens", Order::Desc),
            ("group_key", Order::Asc),
        ],
        CostGrouping::Day => &[("group_key", Order::Desc)],
    };
    let mut select = Query::select();
    select
        .expr(Expr::cust(format!("{group} AS group_key")))
        .exprs(SUMS.map(Expr::cust))
        .from(UsageCosts::Table)
        .add_group_by([Expr::cust("group_key")])
        .limit(MAX_GROUPS);
    for (name, direction) in order {
        select.order_by_expr(Expr::cust(*name), direction.clone());
    }
    filter.narrow(&mut select);
    let rows = bound(&select).fetch_all(conn).await?;
    let one = |row: &SqliteRow| {
        Ok(CostGroup {
            group: row.try_get("group_key")?,
            sums: sums(row)?,
        })
    };
    rows.iter().map(one).collect()
}
