//! Media that channels brought or agents sent, and skills on their way in.

use serde::{Deserialize, Serialize};

/// Most bytes of one media blob: 64 MiB.
pub const MAX_MEDIA_BYTES: usize = 64 * 1024 * 1024;
/// Most bytes of one skill: 64 MiB.
pub const MAX_SKILL_BYTES: i64 = 64 * 1024 * 1024;
/// Most bytes of one piece of a skill: 4 MiB.
pub const MAX_SKILL_CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// Word for a blob of the table, in [`OutgoingImage::original_media_root`].
pub const MEDIA_ROOT: &str = "media_blobs";

/// By which rules media go; 0 switches one off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaRules {
    /// Days after which one goes.
    pub max_age_days: i64,
    /// Bytes of all above which the oldest go.
    pub max_bytes: i64,
}

/// A blob as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaInfo {
    /// Which part of the media it is of, in its writer's word.
    pub subdir: String,
    /// Its name there.
    pub id: String,
    /// Kind of content, as told by whoever brought it.
    pub content_type: Option<String>,
    /// Its bytes.
    pub size_bytes: i64,
    /// Their SHA-256.
    pub sha256: String,
    /// When it came.
    pub created_at_ms: i64,
    /// When it was last written.
    pub updated_at_ms: i64,
}

/// A blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaBlob {
    /// What is known of it.
    pub info: MediaInfo,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// An image that an agent sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutgoingImage {
    /// Identity.
    pub attachment_id: String,
    /// The conversation.
    pub session_key: String,
    /// Who sent it.
    pub agent_id: Option<String>,
    /// The message it went with.
    pub message_id: Option<String>,
    /// When it was recorded.
    pub created_at_ms: i64,
    /// When that last changed.
    pub updated_at_ms: Option<i64>,
    /// How long it is meant to stay, in its writer's word.
    pub retention_class: Option<String>,
    /// What it shows, in words.
    pub alt: String,
    /// Where its bytes are: a folder of files, or [`MEDIA_ROOT`].
    pub original_media_root: String,
    /// Its name there.
    pub original_media_id: String,
    /// Which part it is of.
    pub original_media_subdir: String,
    /// Kind of content.
    pub original_content_type: String,
    /// Pixels.
    pub original_width: Option<i64>,
    /// Pixels.
    pub original_height: Option<i64>,
    /// Bytes.
    pub original_size_bytes: Option<i64>,
    /// Name it came with.
    pub original_filename: Option<String>,
    /// The record as its writer has it, JSON text.
    pub record_json: String,
    /// Whether it is not needed any more.
    pub cleanup_pending: bool,
}

/// What a sweep of media took, or would take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaPruned {
    /// Blobs.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records of images that went with theirs.
    pub records: u64,
    /// Whether everything is still there.
    pub is_dry_run: bool,
}

/// A skill on its way in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillUpload {
    /// Identity; sorts by time.
    pub upload_id: String,
    /// What it is, in its writer's word.
    pub kind: String,
    /// Name the skill is to have.
    pub slug: String,
    /// Whether one of that name is replaced.
    pub force: bool,
    /// Bytes that were announced.
    pub size_bytes: i64,
    /// SHA-256 that was announced.
    pub sha256: Option<String>,
    /// SHA-256 of what came, once it is whole.
    pub actual_sha256: Option<String>,
    /// Bytes that came.
    pub received_bytes: i64,
    /// When it began.
    pub created_at_ms: i64,
    /// From when on it is not there.
    pub expires_at_ms: i64,
    /// Whether it is whole and proven.
    pub committed: bool,
    /// Since when.
    pub committed_at_ms: Option<i64>,
}
