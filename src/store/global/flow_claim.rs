//! Who drives runs of procedures, and how runs change: `flow_claims`, and `flow_runs` by compare-and-set.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{FlowRun, FlowStatus, PageLimit};
use crate::store::StoreError;

/// Who drives a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowClaimRow {
    /// The run.
    pub flow_id: String,
    /// Name of the procedure.
    pub controller_id: String,
    /// Who it is, for people.
    pub owner: String,
    /// Identity of the claim.
    pub token: String,
    /// The process, as it wrote itself down.
    pub owner_json: String,
    /// Since when.
    pub claimed_at_ms: i64,
}

fn read(row: &SqliteRow) -> Result<FlowClaimRow, StoreError> {
    Ok(FlowClaimRow {
        flow_id: row.try_get("flow_id")?,
        controller_id: row.try_get("controller_id")?,
        owner: row.try_get("owner")?,
        token: row.try_get("claim_token")?,
        owner_json: row.try_get("claim_owner_json")?,
        claimed_at_ms: row.try_get("claimed_at_ms")?,
    })
}

/// All claims, oldest first, void ones too: no more than runs may be driven at once, and what their drivers left.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list(conn: &mut SqliteConnection) -> Result<Vec<FlowClaimRow>, StoreError> {
    let rows = sqlx::query("SELECT * FROM flow_claims ORDER BY claimed_at_ms, flow_id")
        .fetch_all(conn)
        .await?;
    rows.iter().map(read).collect()
}

/// The claim of one run.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get(
    conn: &mut SqliteConnection,
    flow_id: &str,
) -> Result<Option<FlowClaimRow>, StoreError> {
    let row = sqlx::query("SELECT * FROM flow_claims WHERE flow_id = ?1")
        .bind(flow_id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Takes a run that nobody drives; says whether it did.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or there is no such run.
pub async fn insert(tx: &mut WriteTx<'_>, claim: &FlowClaimRow) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO flow_claims (flow_id, controller_id, owner, claim_token, claim_owner_json, claimed_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (flow_id) DO NOTHING",
    )
    .bind(&claim.flow_id)
    .bind(&claim.controller_id)
    .bind(&claim.owner)
    .bind(&claim.token)
    .bind(&claim.owner_json)
    .bind(claim.claimed_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends this very claim; says whether it was still held.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, flow_id: &str, token: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM flow_claims WHERE flow_id = ?1 AND claim_token = ?2")
        .bind(flow_id)
        .bind(token)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Writes a run over the one of a revision; its own is one more. Says whether that was the revision.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the run has no state.
pub async fn change_run(
    tx: &mut WriteTx<'_>,
    run: &FlowRun,
    expected_revision: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE flow_runs
         SET revision = ?2 + 1, status = ?3, status_detail = ?4, current_step = ?5, total_steps = ?6, started_at_ms = ?7,
             waiting_since_ms = ?8, updated_at_ms = ?9, ended_at_ms = ?10, state_json = ?11
         WHERE flow_id = ?1 AND revision = ?2",
    )
    .bind(&run.flow_id)
    .bind(expected_revision)
    .bind(run.status.as_str())
    .bind(&run.status_detail)
    .bind(run.current_step)
    .bind(run.total_steps)
    .bind(run.started_at_ms)
    .bind(run.waiting_since_ms)
    .bind(run.updated_at_ms)
    .bind(run.ended_at_ms)
    .bind(&run.state_json)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The place behind the last event of a run.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn next_seq(conn: &mut SqliteConnection, flow_id: &str) -> Result<i64, StoreError> {
    let last: Option<i64> =
        sqlx::query_scalar("SELECT max(seq) FROM flow_events WHERE flow_id = ?1")
            .bind(flow_id)
            .fetch_one(conn)
            .await?;
    Ok(last.map_or(1, |last| last + 1))
}

/// Ids of runs that stand so, of one procedure or all, by id, from behind `after`.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn runs_that(
    conn: &mut SqliteConnection,
    status: FlowStatus,
    controller: Option<&str>,
    after: &str,
    limit: PageLimit,
) -> Result<Vec<String>, StoreError> {
    // The states that the partial index names are written out, or SQLite cannot know that it serves.
    let found = sqlx::query_scalar(
        "SELECT flow_id FROM flow_runs
         WHERE status IN ('pending', 'running', 'waiting_approval', 'paused', 'interrupted')
           AND status = ?1 AND flow_id > ?2 AND (?4 IS NULL OR controller_id = ?4)
         ORDER BY flow_id LIMIT ?3",
    )
    .bind(status.as_str())
    .bind(after)
    .bind(i64::from(limit.rows()))
    .bind(controller)
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// The last event of a kind in a run: its time and payload.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn last_event(
    conn: &mut SqliteConnection,
    flow_id: &str,
    kinds: [&str; 2],
) -> Result<Option<(Option<i64>, String)>, StoreError> {
    let found = sqlx::query_as(
        "SELECT at_ms, payload_json FROM flow_events WHERE flow_id = ?1 AND kind IN (?2, ?3)
         ORDER BY seq DESC LIMIT 1",
    )
    .bind(flow_id)
    .bind(kinds[0])
    .bind(kinds[1])
    .fetch_optional(conn)
    .await?;
    Ok(found)
}
