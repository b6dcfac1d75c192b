//! Media that channels brought or agents sent.
//!
//! A blob that an image to be sent still needs is kept, whatever the rules say; once all images of a blob are released
//! it goes with them.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::append::{check_name, invalid, named};
use super::control::Control;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::db::WriteTx;
use crate::model::{
    MAX_MEDIA_BYTES, MEDIA_ROOT, MediaBlob, MediaInfo, MediaPruned, MediaRules, OutgoingImage,
    Page, PageLimit,
};
use crate::store::global::{media, outgoing_image};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Blobs that one transaction looks at: others get their turn between two of them.
const SWEEP: u32 = 200;

/// The media of a root, for the channels that bring and send them.
///
/// Clones share one connection. Any number of processes may have one each.
#[derive(Clone, Debug)]
pub struct Media {
    control: Arc<Control>,
}

impl Service {
    /// The media of this root.
    #[must_use]
    pub fn media(&self) -> Media {
        Media {
            control: Arc::new(Control::of(self)),
        }
    }
}

impl Media {
    /// Opens the media of a root beside whoever holds that, as a process does that only works.
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

    /// Stores a blob in place of what its name held; gives what is known of it then.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for one above [`MAX_MEDIA_BYTES`], or names that cannot be taken.
    pub async fn put(
        &self,
        subdir: &str,
        id: &str,
        content_type: Option<&str>,
        bytes: Vec<u8>,
    ) -> Result<MediaInfo, ServiceError> {
        check_name("part of the media", subdir)?;
        check_name("name", id)?;
        if bytes.len() > MAX_MEDIA_BYTES {
            return Err(invalid(
                "media",
                format!("have more than {MAX_MEDIA_BYTES} bytes"),
            ));
        }
        let now_ms = self.control.clock.now_ms();
        let info = MediaInfo {
            subdir: subdir.to_owned(),
            id: id.to_owned(),
            content_type: content_type.map(str::to_owned),
            size_bytes: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            sha256: sha256(&bytes),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
        };
        let blob = MediaBlob {
            info: info.clone(),
            bytes,
        };
        self.write(|tx| Box::pin(async move { Ok(media::put(tx, &blob).await?) }))
            .await?;
        Ok(info)
    }

    /// A blob, proven against its SHA-256; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`ServiceError::DamagedArtifact`] when its bytes are not those that were stored.
    pub async fn get(&self, subdir: &str, id: &str) -> Result<Option<MediaBlob>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let found = media::get(&mut conn, subdir, id).await.in_db(db)?;
        let Some(blob) = found else {
            return Ok(None);
        };
        let found = sha256(&blob.bytes);
        if found != blob.info.sha256 {
            return Err(ServiceError::DamagedArtifact {
                run_id: subdir.to_owned(),
                artifact: id.to_owned(),
                recorded: blob.info.sha256,
                found,
            });
        }
        Ok(Some(blob))
    }

    /// Blobs, newest first, without their bytes.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] for a foreign cursor, or when SQLite fails.
    pub async fn list(
        &self,
        subdir: Option<&str>,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<MediaInfo>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        media::list(&mut conn, subdir, before, limit)
            .await
            .in_db(db)
    }

    /// Deletes a blob; says whether it was there.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] while an image to be sent needs it.
    pub async fn delete(&self, subdir: &str, id: &str) -> Result<bool, ServiceError> {
        let (subdir, id) = (subdir.to_owned(), id.to_owned());
        self.write(|tx| {
            Box::pin(async move {
                if outgoing_image::needs(tx, &subdir, &id).await? {
                    return Err(ServiceError::Conflict {
                        what: "media",
                        name: format!("{subdir}/{id}"),
                        expected: "not needed".to_owned(),
                        found: "needed by an image to be sent".to_owned(),
                    });
                }
                Ok(media::delete(tx, &subdir, &id).await?)
            })
        })
        .await
    }

    /// Records an image that is sent, in place of what its id held. Its blob is kept until it is released.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when it names a blob of [`MEDIA_ROOT`] that is not there; [`ServiceError::Invalid`]
    /// for a record that is no JSON.
    pub async fn record_image(&self, image: OutgoingImage) -> Result<(), ServiceError> {
        check_name("attachment", &image.attachment_id)?;
        check_name("session key", &image.session_key)?;
        if serde_json::from_str::<serde::de::IgnoredAny>(&image.record_json).is_err() {
            return Err(invalid("record", "is not JSON"));
        }
        self.write(|tx| {
            Box::pin(async move {
                let (subdir, id) = (&image.original_media_subdir, &image.original_media_id);
                let is_ours = image.original_media_root == MEDIA_ROOT;
                if is_ours && media::get(tx, subdir, id).await?.is_none() {
                    return Err(ServiceError::NotFound {
                        what: "media",
                        name: format!("{subdir}/{id}"),
                    });
                }
                Ok(outgoing_image::upsert(tx, &image).await?)
            })
        })
        .await
    }

    /// An image is not needed any more: the next sweep takes it, and its blob where no other image needs that.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn release_image(&self, attachment_id: &str) -> Result<bool, ServiceError> {
        let (id, now_ms) = (attachment_id.to_owned(), self.control.clock.now_ms());
        self.write(move |tx| {
            Box::pin(async move { Ok(outgoing_image::release(tx, &id, now_ms).await?) })
        })
        .await
    }

    /// Images that were sent, newest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] for a foreign cursor, or when SQLite fails.
    pub async fn images(
        &self,
        session_key: Option<&str>,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<OutgoingImage>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        outgoing_image::list(&mut conn, session_key, before, limit)
            .await
            .in_db(db)
    }

    /// Takes released images with their blobs, and what the configured rules do not keep, in bounded steps.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn sweep(&self) -> Result<MediaPruned, ServiceError> {
        let mut done = self.prune(self.control.config.media, false).await?;
        loop {
            let gone = self.write(|tx| Box::pin(take_released(tx))).await?;
            done.records += gone.records;
            done.blobs += gone.blobs;
            if gone.records < u64::from(SWEEP) {
                return Ok(done);
            }
        }
    }

    /// Deletes what rules do not keep, the oldest first.
    ///
    /// * `is_dry_run`: only counts.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn prune(
        &self,
        rules: MediaRules,
        is_dry_run: bool,
    ) -> Result<MediaPruned, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        let mut done = MediaPruned {
            is_dry_run,
            ..MediaPruned::default()
        };
        let mut after = (i64::MIN, String::new(), String::new());
        let db = &self.control.db;
        let (_, mut held) = media::usage(&mut *db.read().await?).await.in_db(db)?;
        loop {
            let mut conn = db.read().await?;
            let oldest = media::oldest(&mut conn, (after.0, &after.1, &after.2), SWEEP).await;
            let oldest = oldest.in_db(db)?;
            drop(conn);
            let is_last = oldest.len() < SWEEP as usize;
            let mut gone = Vec::new();
            for (subdir, id, size, created_at_ms) in oldest {
                after = (created_at_ms, subdir.clone(), id.clone());
                if !is_over(rules, held, created_at_ms, now_ms) {
                    continue;
                }
                held -= size;
                done.blobs += 1;
                done.bytes += size.unsigned_abs();
                gone.push((subdir, id));
            }
            let is_done = gone.is_empty();
            if !is_dry_run && !is_done {
                self.write(|tx| Box::pin(take(tx, gone))).await?;
            }
            // From the oldest on: where nothing of one page has to go, nothing after it has.
            if is_last || is_done {
                return Ok(done);
            }
        }
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

fn is_over(rules: MediaRules, held: i64, created_at_ms: i64, now_ms: i64) -> bool {
    let is_old = rules.max_age_days > 0
        && created_at_ms < now_ms.saturating_sub(rules.max_age_days.saturating_mul(DAY_MS));
    is_old || (rules.max_bytes > 0 && held > rules.max_bytes)
}

/// Deletes blobs that no image needs now: one may have come since they were chosen.
async fn take(tx: &mut WriteTx<'_>, gone: Vec<(String, String)>) -> Result<(), ServiceError> {
    for (subdir, id) in gone {
        if !outgoing_image::needs(tx, &subdir, &id).await? {
            media::delete(tx, &subdir, &id).await?;
        }
    }
    Ok(())
}

async fn take_released(tx: &mut WriteTx<'_>) -> Result<MediaPruned, ServiceError> {
    let mut done = MediaPruned::default();
    for (attachment_id, subdir, id) in outgoing_image::released(tx, SWEEP).await? {
        outgoing_image::delete(tx, &attachment_id).await?;
        done.records += 1;
        if let Some(subdir) = subdir
            && !outgoing_image::needs(tx, &subdir, &id).await?
            && media::delete(tx, &subdir, &id).await?
        {
            done.blobs += 1;
        }
    }
    Ok(done)
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
