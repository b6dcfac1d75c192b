//! What hangs on sessions and messages, asked for while messages stream: a connection of its own.

use super::super::super::ReadError;
use super::super::super::sqlite::{LegacyDb, Values, select};
use crate::doctor::units::LegacyTime;

pub(super) const TOOL_CALL: [&str; 8] = [
    "id",
    "message_id",
    "tool_call_id",
    "tool_name",
    "event_kind",
    "payload",
    "outcome",
    "created_at",
];

pub(super) const EVENT: [&str; 6] = [
    "id",
    "session_id",
    "action",
    "outcome",
    "payload",
    "created_at",
];

const TOOL_CALLS: &str = "acp_tool_calls";
const EVENTS: &str = "acp_session_events";

/// Both tables, and the columns read of them.
pub(super) const TABLES: [(&str, &[&str]); 2] = [(TOOL_CALLS, &TOOL_CALL), (EVENTS, &EVENT)];

/// A table asked row by row; after damage it gives nothing more.
struct Asked {
    name: &'static str,
    columns: Vec<String>,
    damage: Option<String>,
}

/// Tool calls and session events, one at a time: payloads may be large.
pub(super) struct Beside {
    db: LegacyDb,
    tool_calls: Asked,
    events: Asked,
    /// The current session's next event, and the last one given.
    next_event: Option<Values>,
    last_event: Option<i64>,
    has_no_more: bool,
}

impl Beside {
    pub(super) async fn open(beside: &LegacyDb) -> Result<Self, ReadError> {
        let mut db = beside.again().await?;
        let mut asked = Vec::new();
        for name in [TOOL_CALLS, EVENTS] {
            asked.push(Asked {
                name,
                columns: db.columns(name).await?,
                damage: None,
            });
        }
        let (Some(events), Some(tool_calls)) = (asked.pop(), asked.pop()) else {
            unreachable!("invariant: two names, two tables");
        };
        Ok(Self {
            db,
            tool_calls,
            events,
            next_event: None,
            last_event: None,
            has_no_more: false,
        })
    }

    /// Closes it; gives what of each table is damaged.
    pub(super) async fn close(self) -> [(&'static str, Option<String>); 2] {
        self.db.close().await;
        [self.tool_calls, self.events].map(|asked| (asked.name, asked.damage))
    }

    /// Another session's events come next.
    pub(super) fn begin(&mut self) {
        self.next_event = None;
        self.last_event = None;
        self.has_no_more = false;
    }

    /// The next event of a session that happened before `at_ms`; any for `None`.
    pub(super) async fn event_before(
        &mut self,
        session: i64,
        at_ms: Option<i64>,
    ) -> Result<Option<Values>, ReadError> {
        if self.next_event.is_none() && !self.has_no_more {
            let found = one(
                &mut self.db,
                &mut self.events,
                &EVENT,
                "session_id",
                session,
                self.last_event,
            );
            self.next_event = found.await?;
            self.has_no_more = self.next_event.is_none();
            if let Some(found) = &self.next_event {
                self.last_event = Some(found.integer(0).unwrap_or(found.rowid));
            }
        }
        let is_due = |found: &Values| {
            let at = found.hint(5).and_then(|text| LegacyTime::parse(&text));
            at.zip(at_ms).is_none_or(|(at, until)| at.ms() < until)
        };
        Ok(self.next_event.take_if(|found| is_due(found)))
    }

    /// The next tool call of a message behind `after`.
    pub(super) async fn tool_call_after(
        &mut self,
        message: i64,
        after: Option<i64>,
    ) -> Result<Option<Values>, ReadError> {
        one(
            &mut self.db,
            &mut self.tool_calls,
            &TOOL_CALL,
            "message_id",
            message,
            after,
        )
        .await
    }

    /// The next row behind `after` whose parent is not there.
    pub(super) async fn stray_after(
        &mut self,
        table: &str,
        wanted: &[&str],
        after: Option<i64>,
    ) -> Result<Option<Values>, ReadError> {
        let (asked, parent, own) = if table == TOOL_CALLS {
            (&mut self.tool_calls, "acp_messages", "message_id")
        } else {
            (&mut self.events, "acp_sessions", "session_id")
        };
        let tail = format!(
            "WHERE rowid > ?1 AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = {own})
             ORDER BY rowid LIMIT 1"
        );
        let after = after.unwrap_or(i64::MIN);
        ask(&mut self.db, asked, wanted, &tail, [after, 0]).await
    }
}

/// The next row behind `after` of a parent.
async fn one(
    db: &mut LegacyDb,
    asked: &mut Asked,
    wanted: &[&str],
    parent: &str,
    id: i64,
    after: Option<i64>,
) -> Result<Option<Values>, ReadError> {
    let tail = format!("WHERE \"{parent}\" = ?2 AND id > ?1 ORDER BY id LIMIT 1");
    ask(db, asked, wanted, &tail, [after.unwrap_or(i64::MIN), id]).await
}

async fn ask(
    db: &mut LegacyDb,
    asked: &mut Asked,
    wanted: &[&str],
    tail: &str,
    [after, parent]: [i64; 2],
) -> Result<Option<Values>, ReadError> {
    if asked.columns.is_empty() || asked.damage.is_some() {
        return Ok(None);
    }
    let sql = select(asked.name, wanted, &asked.columns, tail);
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(after)
        .bind(parent)
        .fetch_optional(&mut db.conn)
        .await
        .map_err(ReadError::from);
    match row {
        Ok(row) => row.map(|row| Values::of(&row, wanted.len())).transpose(),
        Err(ReadError::Damaged { reason }) => {
            asked.damage = Some(reason);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
