//! `sessions/sessions.db`: chat and channel sessions, since 0.4.3.
//!
//! `sessions` has one row a **message**: `(id, session_key, role, content, created_at)`, order by
//! `id`. `session_metadata` has one row a session; columns were added by ALTER up to 0.8.0, so they
//! are read by name. Rows without metadata and metadata without rows both occur and both are kept.
//!
//! Known faults: `message_count` drifts (recomputed); a turn may stand as `running` (its owner is
//! gone); the importer of before 0.8.5 could write a whole file's messages twice in one start, which
//! is collapsed only when the repetition covers all there was and lies within one second.

use std::collections::BTreeMap;

use zeroclaw::model::{NewEvent, Tier};

use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{LegacyTime, MessageDigest, event_id, message_digest, stable_uuid};

mod metadata;

use metadata::{Metadata, read_metadata, session};

const MESSAGE: [&str; 5] = ["id", "session_key", "role", "content", "created_at"];
/// Rows of one start of the old program lie this close together.
const ONE_START_MS: i64 = 1_000;

/// Most rows held back to see whether they stand twice.
const MAX_HELD: usize = 4_000;

/// A message as it was read.
struct Message {
    rowid: i64,
    id: i64,
    role: String,
    text: String,
    created_at_text: String,
    created_at_ms: i64,
}

/// The session whose messages are being read.
struct Current {
    key: Vec<u8>,
    tier: Option<Tier>,
    last_at_ms: i64,
    parent: Option<String>,
    // Messages of the session's first second, held back; `None` once that has passed.
    held: Option<Vec<Message>>,
}

/// The session id an old key always gets.
pub(super) fn session_id(key: &str) -> String {
    stable_uuid(&[b"session", key.as_bytes()])
}

/// Streams a store's sessions and messages.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("sessions").await?;
    for needed in ["session_key", "role", "content"] {
        if !columns.iter().any(|column| column == needed) {
            return Err(ReadError::Format {
                reason: format!("table sessions has no column {needed}"),
            });
        }
    }
    let (metadata, metadata_damage) = read_metadata(db).await?;
    let mut reader = Reader {
        metadata,
        owners,
        out: Batcher::new(sink),
        current: None,
    };
    let table = Table {
        name: "sessions",
        wanted: &MESSAGE,
        order: "session_key, id",
    };
    let damage = each_row(db, table, async |found| match found {
        Found::Row(values) => reader.message(values).await,
        Found::Lost { rowid } => reader.lost(rowid).await,
    });
    let damage = damage.await?;
    reader.finish().await?;
    for (name, damage) in [("session_metadata", metadata_damage), ("sessions", damage)] {
        if let Some(reason) = damage {
            let place = format!("table {name}");
            reader.out.push(Item::Damage { place, reason }, 0).await?;
        }
    }
    let receipts = db.columns("jsonl_import_receipts").await?;
    if !receipts.is_empty() {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM jsonl_import_receipts")
            .fetch_one(&mut db.conn)
            .await?;
        let merged = Item::Merged {
            kind: kind::RECEIPT,
            count: u64::try_from(count).unwrap_or(0),
        };
        reader.out.push(merged, 0).await?;
    }
    reader.out.flush().await
}

/// Session keys that hold rows or metadata.
pub(crate) async fn keys(db: &mut LegacyDb) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut sql = "SELECT DISTINCT CAST(session_key AS BLOB) FROM sessions".to_owned();
    if !db.columns("session_metadata").await?.is_empty() {
        sql.push_str(" UNION SELECT CAST(session_key AS BLOB) FROM session_metadata");
    }
    Ok(sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_all(&mut db.conn)
        .await?)
}

/// Receipts of session files the old program took in: file name, SHA-256 and length.
pub(crate) async fn receipts(db: &mut LegacyDb) -> Result<Vec<(String, String, i64)>, ReadError> {
    if db.columns("jsonl_import_receipts").await?.is_empty() {
        return Ok(Vec::new());
    }
    Ok(
        sqlx::query_as("SELECT source_name, source_hash, source_len FROM jsonl_import_receipts")
            .fetch_all(&mut db.conn)
            .await?,
    )
}

struct Reader<'r, S> {
    metadata: BTreeMap<Vec<u8>, Metadata>,
    owners: &'r Owners,
    out: Batcher<'r, S>,
    current: Option<Current>,
}

impl<S: Sink> Reader<'_, S> {
    async fn message(&mut self, mut values: Values) -> Result<(), ReadError> {
        let place = format!("table sessions, row {}", values.rowid);
        let key = values.bytes(1).unwrap_or_default().to_vec();
        if self
            .current
            .as_ref()
            .is_none_or(|current| current.key != key)
        {
            self.begin(key, &values).await?;
        }
        let whole = |column| values.text(column).ok().flatten().map(str::to_owned);
        let Some(current) = self.current.as_mut() else {
            return Ok(());
        };
        if current.tier.is_none() {
            let raw = values.take(3).unwrap_or_default();
            let reason = "its session cannot be taken".to_owned();
            return self.refuse(place, reason, raw).await;
        }
        let (Some(role), Some(text)) = (whole(2), whole(3)) else {
            let raw = values.take(3).unwrap_or_default();
            let reason = if raw.is_empty() {
                "role or content is missing"
            } else {
                "content is not UTF-8"
            };
            return self.refuse(place, reason.to_owned(), raw).await;
        };
        let created_at_text = values.hint(4).unwrap_or_default();
        let parsed = LegacyTime::parse(&created_at_text).map(LegacyTime::ms);
        let created_at_ms = parsed.unwrap_or(current.last_at_ms);
        current.last_at_ms = created_at_ms;
        let message = Message {
            rowid: values.rowid,
            id: values.integer(0).unwrap_or(values.rowid),
            role,
            text,
            created_at_text,
            created_at_ms,
        };
        if parsed.is_none() {
            let message =
                "its time cannot be read; the time of the message before stands in".to_owned();
            self.out
                .push(
                    Item::Note {
                        code: "unreadable-time",
                        place,
                        message,
                    },
                    0,
                )
                .await?;
        }
        self.hold_or_give(message).await
    }

    async fn lost(&mut self, rowid: i64) -> Result<(), ReadError> {
        let lost = Refusal::lost(kind::MESSAGE, "sessions", rowid);
        self.out.push(Item::Refused(lost), 0).await
    }

    async fn refuse(
        &mut self,
        place: String,
        reason: String,
        raw: Vec<u8>,
    ) -> Result<(), ReadError> {
        let bytes = raw.len();
        self.out
            .push(
                Item::Refused(Refusal {
                    kind: kind::MESSAGE,
                    place,
                    reason,
                    raw,
                }),
                bytes,
            )
            .await
    }

    /// Holds the messages of a session's first second back, and gives them once that has passed.
    async fn hold_or_give(&mut self, message: Message) -> Result<(), ReadError> {
        let Some(current) = self.current.as_mut() else {
            return Ok(());
        };
        if let Some(held) = current.held.as_mut() {
            let since = held
                .first()
                .map_or(0, |first| message.created_at_ms - first.created_at_ms);
            if held.len() < MAX_HELD && (0..=ONE_START_MS).contains(&since) {
                held.push(message);
                return Ok(());
            }
            self.release().await?;
        }
        self.give(message).await
    }

    /// Gives the messages held back, without a part that stands twice.
    async fn release(&mut self) -> Result<(), ReadError> {
        let Some(held) = self
            .current
            .as_mut()
            .and_then(|current| current.held.take())
        else {
            return Ok(());
        };
        let digests: Vec<_> = held
            .iter()
            .map(|message| message_digest(&message.role, &message.text))
            .collect();
        let twice = repeated_prefix(&digests);
        for (at, message) in held.into_iter().enumerate() {
            if twice.is_some_and(|length| (length..2 * length).contains(&at)) {
                let place = format!("table sessions, row {}", message.rowid);
                let message =
                    "repeats the whole session so far within one start; taken once".to_owned();
                self.out
                    .push(
                        Item::Merged {
                            kind: kind::MESSAGE,
                            count: 1,
                        },
                        0,
                    )
                    .await?;
                self.out
                    .push(
                        Item::Note {
                            code: "repeated-prefix",
                            place,
                            message,
                        },
                        0,
                    )
                    .await?;
            } else {
                self.give(message).await?;
            }
        }
        Ok(())
    }

    async fn give(&mut self, message: Message) -> Result<(), ReadError> {
        let Some(current) = self.current.as_mut() else {
            return Ok(());
        };
        let Some(tier) = current.tier.clone() else {
            return Ok(());
        };
        let event_id = event_id(&[
            &current.key,
            message.id.to_string().as_bytes(),
            message.created_at_text.as_bytes(),
            message.role.as_bytes(),
            message.text.as_bytes(),
        ]);
        let bytes = message.text.len();
        let event = NewEvent {
            parent_id: current.parent.replace(event_id.clone()),
            event_id,
            event_type: "message".to_owned(),
            role: Some(message.role),
            idempotency_key: None,
            created_at_ms: message.created_at_ms,
            text: message.text,
            event_json: None,
        };
        self.out
            .push(
                Item::Record {
                    tier,
                    record: Record::Event(event),
                },
                bytes,
            )
            .await
    }

    /// Opens the session of `key`, whose first message is `values`.
    async fn begin(&mut self, key: Vec<u8>, values: &Values) -> Result<(), ReadError> {
        self.release().await?;
        let metadata = self.metadata.remove(&key);
        let first = values
            .hint(4)
            .and_then(|text| LegacyTime::parse(&text))
            .map(LegacyTime::ms);
        self.open(key, metadata, first).await
    }

    async fn open(
        &mut self,
        key: Vec<u8>,
        metadata: Option<Metadata>,
        first: Option<i64>,
    ) -> Result<(), ReadError> {
        let (tier, at_ms) = match session(&key, metadata, first, self.owners) {
            Ok((session, owner_note)) => {
                let tier = Tier::Agent(session.record.agent_id.clone());
                let at_ms = session.record.created_at_ms;
                let record = Record::Session(Box::new(session));
                self.out
                    .push(
                        Item::Record {
                            tier: tier.clone(),
                            record,
                        },
                        256,
                    )
                    .await?;
                if let Some(note) = owner_note {
                    self.out.push(note, 0).await?;
                }
                (Some(tier), at_ms)
            }
            Err(reason) => {
                let place = format!("session {}", String::from_utf8_lossy(&key));
                let refusal = Refusal {
                    kind: kind::SESSION,
                    place,
                    reason,
                    raw: key.clone(),
                };
                self.out.push(Item::Refused(refusal), key.len()).await?;
                (None, 0)
            }
        };
        self.current = Some(Current {
            key,
            tier,
            last_at_ms: at_ms,
            parent: None,
            held: Some(Vec::new()),
        });
        Ok(())
    }

    /// Gives what is held back, then the sessions that have no message.
    async fn finish(&mut self) -> Result<(), ReadError> {
        self.release().await?;
        for (key, metadata) in std::mem::take(&mut self.metadata) {
            self.open(key, Some(metadata), None).await?;
        }
        self.current = None;
        Ok(())
    }
}

/// The least `n` of two or more whose first `n` entries follow once more; see the module's head.
fn repeated_prefix(digests: &[MessageDigest]) -> Option<usize> {
    (2..=digests.len() / 2).find(|&n| digests[..n] == digests[n..2 * n])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_repetition_of_two_or_more_counts() {
        let d = |n: u8| [n; 16];

        assert_eq!(repeated_prefix(&[d(1), d(2), d(1), d(2)]), Some(2));
        assert_eq!(
            repeated_prefix(&[d(1), d(2), d(3), d(1), d(2), d(3), d(9)]),
            Some(3)
        );
        assert_eq!(repeated_prefix(&[d(1), d(1)]), None);
        assert_eq!(repeated_prefix(&[d(1), d(2), d(1)]), None);
    }
}
