//! Which session a key leads to, with the entry it came with: `session_routes`, `session_entries`.

use sqlx::{Row, SqliteConnection};

use super::session;
use crate::db::WriteTx;
use crate::model::SessionRoute;
use crate::store::StoreError;

/// Those of `keys` that lead somewhere, in no order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get_many(
    conn: &mut SqliteConnection,
    keys: &[&str],
) -> Result<Vec<SessionRoute>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let marks = vec!["?"; keys.len()].join(",");
    let sql = format!(
        "SELECT r.session_key, r.session_id, r.updated_at_ms, e.entry_json
         FROM session_routes r LEFT JOIN session_entries e USING (session_key, session_id)
         WHERE r.session_key IN ({marks})"
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for key in keys {
        query = query.bind(*key);
    }
    let rows = query.fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            Ok(SessionRoute {
                session_key: row.try_get(0)?,
                session_id: row.try_get(1)?,
                updated_at_ms: row.try_get(2)?,
                entry_json: row.try_get(3)?,
            })
        })
        .collect()
}

/// Makes keys lead to sessions, which must be there.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or a session is not there.
pub async fn insert(tx: &mut WriteTx<'_>, routes: &[SessionRoute]) -> Result<(), StoreError> {
    for route in routes {
        let (key, id, at_ms) = (&route.session_key, &route.session_id, route.updated_at_ms);
        session::set_route(tx, key, id, at_ms).await?;
        if let Some(entry) = &route.entry_json {
            session::upsert_entry(tx, key, id, entry, at_ms).await?;
        }
    }
    Ok(())
}
