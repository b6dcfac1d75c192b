//! Conversations and who takes part in them: `conversations`, `session_conversations`.

use sqlx::SqliteConnection;

use crate::db::WriteTx;
use crate::model::Conversation;
use crate::store::StoreError;

/// Finds the conversation of the same tuple, or inserts this one; gives the id that holds.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn ensure(
    tx: &mut WriteTx<'_>,
    conversation: &Conversation,
) -> Result<String, StoreError> {
    let existing: Option<String> = sqlx::query_scalar(
        "SELECT conversation_id FROM conversations
         WHERE channel = ?1 AND account_id = ?2 AND kind = ?3 AND peer_id = ?4
           AND ifnull(parent_conversation_id, '') = '' AND ifnull(thread_id, '') = ifnull(?5, '')",
    )
    .bind(&conversation.channel)
    .bind(&conversation.account_id)
    .bind(conversation.kind.as_str())
    .bind(&conversation.peer_id)
    .bind(&conversation.thread_id)
    .fetch_optional(&mut **tx)
    .await?;
    if let Some(id) = existing {
        sqlx::query("UPDATE conversations SET updated_at_ms = max(updated_at_ms, ?2) WHERE conversation_id = ?1")
            .bind(&id)
            .bind(conversation.updated_at_ms)
            .execute(&mut **tx)
            .await?;
        return Ok(id);
    }
    sqlx::query(
        "INSERT INTO conversations
             (conversation_id, channel, account_id, kind, peer_id, thread_id, created_at_ms, updated_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )
    .bind(&conversation.conversation_id)
    .bind(&conversation.channel)
    .bind(&conversation.account_id)
    .bind(conversation.kind.as_str())
    .bind(&conversation.peer_id)
    .bind(&conversation.thread_id)
    .bind(conversation.created_at_ms)
    .bind(conversation.updated_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(conversation.conversation_id.clone())
}

/// Makes a conversation the session's primary one, unless it has one already.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn link_primary(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    conversation_id: &str,
    first_seen_at_ms: i64,
    last_seen_at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO session_conversations (session_id, conversation_id, role, first_seen_at_ms, last_seen_at_ms)
         VALUES (?1, ?2, 'primary', ?3, ?4)
         ON CONFLICT DO NOTHING",
    )
    .bind(session_id)
    .bind(conversation_id)
    .bind(first_seen_at_ms)
    .bind(last_seen_at_ms)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "UPDATE sessions SET primary_conversation_id = ifnull(primary_conversation_id, ?2) WHERE session_id = ?1",
    )
    .bind(session_id)
    .bind(conversation_id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// How many conversations there are.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("SELECT count(*) FROM conversations")
        .fetch_one(conn)
        .await?)
}
