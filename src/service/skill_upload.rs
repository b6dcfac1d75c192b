//! Skills on their way in: in pieces, in order, and one proven archive at the end or nothing.
//!
//! A piece that comes again with the same bytes is the same piece; so a caller that lost an answer sends it again. What
//! is not committed in its time goes with all its pieces.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::append::{check_name, invalid, named, new_id};
use super::control::Control;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::db::WriteTx;
use crate::model::{MAX_SKILL_BYTES, MAX_SKILL_CHUNK_BYTES, Page, PageLimit, SkillUpload};
use crate::store::global::skill_upload;

/// How long an upload stays, committed or not: long enough to come back the next day.
const TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// Uploads that one sweep deletes.
const SWEEP: u32 = 100;

/// A skill that is announced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSkillUpload {
    /// What it is, in the caller's word.
    pub kind: String,
    /// Name the skill is to have.
    pub slug: String,
    /// Whether one of that name is replaced.
    pub force: bool,
    /// Bytes that will come.
    pub size_bytes: i64,
    /// Their SHA-256, hex, where the caller knows it.
    pub sha256: Option<String>,
    /// The same key is the same upload.
    pub idempotency_key: Option<String>,
}

/// Skills on their way in, for whoever takes and installs them.
#[derive(Clone, Debug)]
pub struct SkillUploads {
    control: Arc<Control>,
}

impl Service {
    /// Skills on their way in.
    #[must_use]
    pub fn skill_uploads(&self) -> SkillUploads {
        SkillUploads {
            control: Arc::new(Control::of(self)),
        }
    }
}

impl SkillUploads {
    /// Opens the uploads of a root beside whoever holds that.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when there is no state or it cannot be opened.
    pub async fn open(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        Ok(Self {
            control: Arc::new(Control::open(root, clock).await?),
        })
    }

    /// Closes its connection, where it has one of its own and this is the last clone.
    pub async fn close(self) {
        self.control.close().await;
    }

    /// Begins an upload, or gives the one of the same key.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for a size outside 1 to [`MAX_SKILL_BYTES`] or a digest that is none;
    /// [`ServiceError::Conflict`] where the key is of another skill.
    pub async fn begin(&self, new: NewSkillUpload) -> Result<SkillUpload, ServiceError> {
        check(&new)?;
        let now_ms = self.control.clock.now_ms();
        let key = new.idempotency_key.as_deref();
        let key_hash = key.map(|key| sha256(key.as_bytes()));
        let upload = SkillUpload {
            upload_id: new_id(),
            kind: new.kind,
            slug: new.slug,
            force: new.force,
            size_bytes: new.size_bytes,
            sha256: new.sha256.map(|digest| digest.to_ascii_lowercase()),
            actual_sha256: None,
            received_bytes: 0,
            created_at_ms: now_ms,
            expires_at_ms: now_ms
                .saturating_add(i64::try_from(TTL.as_millis()).unwrap_or(i64::MAX)),
            committed: false,
            committed_at_ms: None,
        };
        self.write(move |tx| {
            Box::pin(async move {
                skill_upload::expire(tx, now_ms, SWEEP).await?;
                if skill_upload::insert(tx, &upload, key_hash.as_deref()).await? {
                    return Ok(upload);
                }
                let key_hash = key_hash.unwrap_or_default();
                let there = skill_upload::get_by_key(tx, &key_hash).await?;
                let there = there.ok_or_else(|| no_such(&upload.upload_id))?;
                let what = |of: &SkillUpload| (of.slug.clone(), of.size_bytes, of.sha256.clone());
                match what(&there) == what(&upload) {
                    true => Ok(there),
                    false => Err(conflict(&there, &upload.slug, &there.slug)),
                }
            })
        })
        .await
    }

    /// Stores a piece; gives how the upload stands then.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for a piece that does not begin where the last ended, or other bytes at a place that is
    /// known; [`ServiceError::Invalid`] for one that is empty, above [`MAX_SKILL_CHUNK_BYTES`] or beyond the size that was
    /// announced; [`ServiceError::NotFound`] for an upload that is not there or has expired.
    pub async fn append(
        &self,
        upload_id: &str,
        byte_offset: i64,
        bytes: Vec<u8>,
    ) -> Result<SkillUpload, ServiceError> {
        if bytes.is_empty() || bytes.len() > MAX_SKILL_CHUNK_BYTES {
            let reason = format!("has not 1 to {MAX_SKILL_CHUNK_BYTES} bytes");
            return Err(invalid("piece", reason));
        }
        let (id, now_ms) = (upload_id.to_owned(), self.control.clock.now_ms());
        self.write(move |tx| {
            Box::pin(async move {
                let mut upload = open(tx, &id, now_ms).await?;
                let there = skill_upload::chunk(tx, &id, byte_offset).await?;
                if there.as_deref() == Some(&bytes[..]) {
                    return Ok(upload);
                }
                if byte_offset != upload.received_bytes {
                    let expected = format!("to go on at {}", upload.received_bytes);
                    return Err(conflict(&upload, &expected, &format!("at {byte_offset}")));
                }
                let end = byte_offset + i64::try_from(bytes.len()).unwrap_or(i64::MAX);
                if end > upload.size_bytes {
                    let announced = upload.size_bytes;
                    return Err(invalid(
                        "piece",
                        format!("ends beyond the {announced} bytes announced"),
                    ));
                }
                skill_upload::append(tx, &id, byte_offset, &bytes).await?;
                upload.received_bytes = end;
                Ok(upload)
            })
        })
        .await
    }

    /// Makes one proven archive of the pieces.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] while bytes are missing; where the digest is not the one that was announced, which
    /// leaves the upload to be given up and begun again.
    pub async fn commit(&self, upload_id: &str) -> Result<SkillUpload, ServiceError> {
        let (id, now_ms) = (upload_id.to_owned(), self.control.clock.now_ms());
        self.write(move |tx| {
            Box::pin(async move {
                let found = skill_upload::get(tx, &id, now_ms).await?;
                let mut upload = found.ok_or_else(|| no_such(&id))?;
                // An answer that was lost is asked for again.
                if upload.committed {
                    return Ok(upload);
                }
                let whole = gather(tx, &upload).await?;
                let actual = sha256(&whole);
                if let Some(announced) = upload.sha256.as_ref().filter(|sha256| **sha256 != actual)
                {
                    return Err(conflict(&upload, announced, &actual));
                }
                skill_upload::commit(tx, &id, &whole, &actual, now_ms).await?;
                upload.actual_sha256 = Some(actual);
                (upload.committed, upload.committed_at_ms) = (true, Some(now_ms));
                Ok(upload)
            })
        })
        .await
    }

    /// The archive of an upload that is committed, proven against its SHA-256.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for one that is not there or not committed; [`ServiceError::DamagedArtifact`].
    pub async fn archive(&self, upload_id: &str) -> Result<Vec<u8>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let now_ms = self.control.clock.now_ms();
        let upload = skill_upload::get(&mut conn, upload_id, now_ms)
            .await
            .in_db(db)?;
        let upload = upload.ok_or_else(|| no_such(upload_id))?;
        let whole = skill_upload::whole(&mut conn, upload_id).await.in_db(db)?;
        let whole = whole.ok_or_else(|| no_such(upload_id))?;
        let (found, recorded) = (sha256(&whole), upload.actual_sha256.unwrap_or_default());
        if found != recorded {
            return Err(ServiceError::DamagedArtifact {
                run_id: "skill upload".to_owned(),
                artifact: upload.upload_id,
                recorded,
                found,
            });
        }
        Ok(whole)
    }

    /// Uploads, newest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] for a foreign cursor, or when SQLite fails.
    pub async fn list(
        &self,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<SkillUpload>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let now_ms = self.control.clock.now_ms();
        skill_upload::list(&mut conn, now_ms, before, limit)
            .await
            .in_db(db)
    }

    /// Gives an upload up; says whether it was there.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn give_up(&self, upload_id: &str) -> Result<bool, ServiceError> {
        let id = upload_id.to_owned();
        self.write(|tx| Box::pin(async move { Ok(skill_upload::delete(tx, &id).await?) }))
            .await
    }

    /// Deletes what has expired, so much in one go; gives how many uploads went.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn expire(&self) -> Result<u64, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        self.write(move |tx| {
            Box::pin(async move { Ok(skill_upload::expire(tx, now_ms, SWEEP).await?) })
        })
        .await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t, 'c> FnOnce(
            &'t mut WriteTx<'c>,
        ) -> crate::db::BoxFuture<'t, Result<T, ServiceError>>
        + Send
        + 'static,
    ) -> Result<T, ServiceError> {
        let done = self.control.db.write(work).await;
        done.map_err(|error| named(error, &self.control.db))
    }
}

/// An upload that can take pieces.
async fn open(tx: &mut WriteTx<'_>, id: &str, now_ms: i64) -> Result<SkillUpload, ServiceError> {
    let found = skill_upload::get(tx, id, now_ms).await?;
    let upload = found.ok_or_else(|| no_such(id))?;
    match upload.committed {
        true => Err(conflict(&upload, "open", "committed")),
        false => Ok(upload),
    }
}

async fn gather(tx: &mut WriteTx<'_>, upload: &SkillUpload) -> Result<Vec<u8>, ServiceError> {
    let mut whole = Vec::with_capacity(usize::try_from(upload.size_bytes).unwrap_or(0));
    for offset in skill_upload::offsets(tx, &upload.upload_id).await? {
        let chunk = skill_upload::chunk(tx, &upload.upload_id, offset).await?;
        whole.extend(chunk.unwrap_or_default());
    }
    let expected = format!("{} bytes", upload.size_bytes);
    match i64::try_from(whole.len()) == Ok(upload.size_bytes) {
        true => Ok(whole),
        false => Err(conflict(upload, &expected, &whole.len().to_string())),
    }
}

fn check(new: &NewSkillUpload) -> Result<(), ServiceError> {
    check_name("kind", &new.kind)?;
    check_name("name", &new.slug)?;
    if new.slug.starts_with('.') || new.slug.contains(['/', '\\']) {
        return Err(invalid("name", "is not one plain name"));
    }
    if !(1..=MAX_SKILL_BYTES).contains(&new.size_bytes) {
        return Err(invalid(
            "size",
            format!("is not 1 to {MAX_SKILL_BYTES} bytes"),
        ));
    }
    let is_digest =
        |text: &String| text.len() == 64 && text.chars().all(|char| char.is_ascii_hexdigit());
    if !new.sha256.as_ref().is_none_or(is_digest) {
        return Err(invalid("SHA-256", "is not 64 hex digits"));
    }
    Ok(())
}

fn conflict(upload: &SkillUpload, expected: &str, found: &str) -> ServiceError {
    ServiceError::Conflict {
        what: "upload",
        name: upload.upload_id.clone(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

fn no_such(id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "upload",
        name: id.to_owned(),
    }
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
