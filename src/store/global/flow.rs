//! Runs of procedures: `flow_runs`, `flow_events`, `flow_proposals`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{FlowEvent, FlowProposal, FlowRun, FlowStatus, Page, PageLimit, ProposalStatus};
use crate::store::StoreError;
use crate::store::row::{decoded, keys_json, parse_time_cursor, time_cursor};

fn read_run(row: &SqliteRow) -> Result<FlowRun, StoreError> {
    let flow_id: String = row.try_get("flow_id")?;
    let status: String = row.try_get("status")?;
    Ok(FlowRun {
        controller_id: row.try_get("controller_id")?,
        revision: row.try_get("revision")?,
        status: decoded(FlowStatus::parse, &status, "flow_runs", "status", &flow_id)?,
        status_detail: row.try_get("status_detail")?,
        trigger_source: row.try_get("trigger_source")?,
        current_step: row.try_get("current_step")?,
        total_steps: row.try_get("total_steps")?,
        started_at_ms: row.try_get("started_at_ms")?,
        waiting_since_ms: row.try_get("waiting_since_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        ended_at_ms: row.try_get("ended_at_ms")?,
        state_json: row.try_get("state_json")?,
        detail_json: row.try_get("detail_json")?,
        flow_id,
    })
}

fn read_event(row: &SqliteRow) -> Result<FlowEvent, StoreError> {
    Ok(FlowEvent {
        event_id: row.try_get("event_id")?,
        flow_id: row.try_get("flow_id")?,
        seq: row.try_get("seq")?,
        at_ms: row.try_get("at_ms")?,
        kind: row.try_get("kind")?,
        actor: row.try_get("actor")?,
        reason: row.try_get("reason")?,
        payload_json: row.try_get("payload_json")?,
        detail_json: row.try_get("detail_json")?,
    })
}

fn read_proposal(row: &SqliteRow) -> Result<FlowProposal, StoreError> {
    let proposal_id: String = row.try_get("proposal_id")?;
    let status: String = row.try_get("status")?;
    Ok(FlowProposal {
        controller_id: row.try_get("controller_id")?,
        source_flow_id: row.try_get("source_flow_id")?,
        kind: row.try_get("kind")?,
        status: decoded(
            ProposalStatus::parse,
            &status,
            "flow_proposals",
            "status",
            &proposal_id,
        )?,
        status_detail: row.try_get("status_detail")?,
        status_reason: row.try_get("status_reason")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        applied_at_ms: row.try_get("applied_at_ms")?,
        applied_by: row.try_get("applied_by")?,
        proposal_json: row.try_get("proposal_json")?,
        detail_json: row.try_get("detail_json")?,
        proposal_id,
    })
}

/// Writes a run; one of that id is written over.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or the run has no state.
pub async fn upsert_run(tx: &mut WriteTx<'_>, run: &FlowRun) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO flow_runs
             (flow_id, controller_id, revision, status, status_detail, trigger_source, current_step, total_steps,
              started_at_ms, waiting_since_ms, updated_at_ms, ended_at_ms, state_json, detail_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
         ON CONFLICT (flow_id) DO UPDATE SET
             controller_id = excluded.controller_id, revision = excluded.revision, status = excluded.status,
             status_detail = excluded.status_detail, trigger_source = excluded.trigger_source,
             current_step = excluded.current_step, total_steps = excluded.total_steps,
             started_at_ms = excluded.started_at_ms, waiting_since_ms = excluded.waiting_since_ms,
             updated_at_ms = excluded.updated_at_ms, ended_at_ms = excluded.ended_at_ms,
             state_json = excluded.state_json, detail_json = excluded.detail_json",
    )
    .bind(&run.flow_id)
    .bind(&run.controller_id)
    .bind(run.revision)
    .bind(run.status.as_str())
    .bind(&run.status_detail)
    .bind(&run.trigger_source)
    .bind(run.current_step)
    .bind(run.total_steps)
    .bind(run.started_at_ms)
    .bind(run.waiting_since_ms)
    .bind(run.updated_at_ms)
    .bind(run.ended_at_ms)
    .bind(&run.state_json)
    .bind(&run.detail_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The runs of these ids with their states, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_runs(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<FlowRun>, StoreError> {
    let rows =
        sqlx::query("SELECT * FROM flow_runs WHERE flow_id IN (SELECT value FROM json_each(?1))")
            .bind(keys_json(ids))
            .fetch_all(conn)
            .await?;
    rows.iter().map(read_run).collect()
}

/// Runs without their states, newest update first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list_runs(
    conn: &mut SqliteConnection,
    status: Option<FlowStatus>,
    controller: Option<&str>,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<FlowRun>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    let rows = sqlx::query(
        "SELECT flow_id, controller_id, revision, status, status_detail, trigger_source, current_step, total_steps,
                started_at_ms, waiting_since_ms, updated_at_ms, ended_at_ms, NULL AS state_json, detail_json
         FROM flow_runs
         WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR controller_id = ?2)
           AND (?3 IS NULL OR (updated_at_ms, flow_id) < (?3, ?4))
         ORDER BY updated_at_ms DESC, flow_id DESC LIMIT ?5",
    )
    .bind(status.map(FlowStatus::as_str))
    .bind(controller)
    .bind(cursor.as_ref().map(|cursor| cursor.0))
    .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let runs = rows.iter().map(read_run).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(runs, limit, |run| {
        time_cursor(run.updated_at_ms, &run.flow_id)
    }))
}

/// Inserts events.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or an event is there already.
pub async fn insert_events(tx: &mut WriteTx<'_>, events: &[FlowEvent]) -> Result<(), StoreError> {
    for event in events {
        sqlx::query(
            "INSERT INTO flow_events (event_id, flow_id, seq, at_ms, kind, actor, reason, payload_json, detail_json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )
        .bind(&event.event_id)
        .bind(&event.flow_id)
        .bind(event.seq)
        .bind(event.at_ms)
        .bind(&event.kind)
        .bind(&event.actor)
        .bind(&event.reason)
        .bind(&event.payload_json)
        .bind(&event.detail_json)
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// The events of these ids, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_events(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<FlowEvent>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM flow_events WHERE event_id IN (SELECT value FROM json_each(?1))",
    )
    .bind(keys_json(ids))
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_event).collect()
}

/// The first events of a run, in order.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn events_of(
    conn: &mut SqliteConnection,
    flow_id: &str,
    limit: PageLimit,
) -> Result<Vec<FlowEvent>, StoreError> {
    let rows =
        sqlx::query("SELECT * FROM flow_events WHERE flow_id = ?1 ORDER BY seq, event_id LIMIT ?2")
            .bind(flow_id)
            .bind(i64::from(limit.rows()))
            .fetch_all(conn)
            .await?;
    rows.iter().map(read_event).collect()
}

/// Writes a proposal; one of that id is written over.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or the proposal has no text.
pub async fn upsert_proposal(
    tx: &mut WriteTx<'_>,
    proposal: &FlowProposal,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO flow_proposals
             (proposal_id, controller_id, source_flow_id, kind, status, status_detail, status_reason, created_at_ms,
              updated_at_ms, applied_at_ms, applied_by, proposal_json, detail_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (proposal_id) DO UPDATE SET
             controller_id = excluded.controller_id, source_flow_id = excluded.source_flow_id, kind = excluded.kind,
             status = excluded.status, status_detail = excluded.status_detail, status_reason = excluded.status_reason,
             created_at_ms = excluded.created_at_ms, updated_at_ms = excluded.updated_at_ms,
             applied_at_ms = excluded.applied_at_ms, applied_by = excluded.applied_by,
             proposal_json = excluded.proposal_json, detail_json = excluded.detail_json",
    )
    .bind(&proposal.proposal_id)
    .bind(&proposal.controller_id)
    .bind(&proposal.source_flow_id)
    .bind(&proposal.kind)
    .bind(proposal.status.as_str())
    .bind(&proposal.status_detail)
    .bind(&proposal.status_reason)
    .bind(proposal.created_at_ms)
    .bind(proposal.updated_at_ms)
    .bind(proposal.applied_at_ms)
    .bind(&proposal.applied_by)
    .bind(&proposal.proposal_json)
    .bind(&proposal.detail_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The proposals of these ids with their texts, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_proposals(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<FlowProposal>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM flow_proposals WHERE proposal_id IN (SELECT value FROM json_each(?1))",
    )
    .bind(keys_json(ids))
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_proposal).collect()
}

/// Proposals without their texts, newest update first; of one run, where one is given.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list_proposals(
    conn: &mut SqliteConnection,
    flow_id: Option<&str>,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<FlowProposal>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    let rows = sqlx::query(
        "SELECT proposal_id, controller_id, source_flow_id, kind, status, status_detail, status_reason, created_at_ms,
                updated_at_ms, applied_at_ms, applied_by, NULL AS proposal_json, detail_json
         FROM flow_proposals
         WHERE (?1 IS NULL OR source_flow_id = ?1) AND (?2 IS NULL OR (updated_at_ms, proposal_id) < (?2, ?3))
         ORDER BY updated_at_ms DESC, proposal_id DESC LIMIT ?4",
    )
    .bind(flow_id)
    .bind(cursor.as_ref().map(|cursor| cursor.0))
    .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let found = rows
        .iter()
        .map(read_proposal)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |proposal| {
        time_cursor(proposal.updated_at_ms, &proposal.proposal_id)
    }))
}
