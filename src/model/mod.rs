//! Plain values: ids, times, enums and records. No SQL, no files.
//!
//! Everything here can be built, compared and serialised without a database. Times are Unix
//! milliseconds, UTC, and say so in their names (`…_at_ms`).

mod acp;
mod agent;
mod append;
mod artifact;
mod audit;
mod backup;
mod cache;
mod channel_pairing;
mod check;
mod commitment;
mod content;
mod cost;
mod cron;
mod delivery;
mod device;
mod diagnostic;
mod failure;
mod flow;
mod ids;
mod knowledge;
mod memory;
mod memory_file;
mod memory_index;
mod migration;
mod page;
mod pairing;
mod plugin;
mod process;
mod query;
mod recall;
mod retention;
mod session;
mod stats;
mod task;
mod task_life;
mod task_record;
mod tier;
mod timetable;
mod tool_artifact;
mod trajectory;
mod transcript;
mod vfs;
mod worker;

pub use acp::{AcpSession, AcpState};
pub use agent::{AgentRecord, AgentStatus};
pub use append::{
    Append, AppendEvent, Appended, ConversationAddress, EventPlace, MAX_APPEND_BYTES,
    MAX_APPEND_EVENTS, Place, SessionHeader, SessionTarget,
};
pub use artifact::{ArtifactInfo, KeptArtifact, MAX_ARTIFACT_BYTES, NewRunArtifact, RunArtifact};
pub use audit::AuditEvent;
pub use backup::{BackupFreshness, BackupKind, BackupRun, BackupStatus, KeepReason};
pub use cache::{CacheCleared, CacheEntry, CacheValue, MAX_CACHE_BYTES};
pub use channel_pairing::{ChannelAllowEntry, ChannelPairingRequest, ChannelPeer, ChannelStanding};
pub use check::{CheckOutcome, TierCheck};
pub use commitment::{Commitment, CommitmentStatus, NewCommitment};
pub use content::{Content, ContentError};
pub use cost::{CostGroup, CostGrouping, CostSums, UsageCost};
pub use cron::{
    CRON_STORE, CatchUp, CronJob, CronOrigin, CronPolicy, CronState, Delivery, PayloadKind,
    Schedule, ShellOutputFormat, TimeZoneOrigin,
};
pub use delivery::{DeadReason, DeliveryEntry, DeliveryRoute, DeliveryStatus, NewDelivery};
pub use device::{PairedDevice, TokenHash, TokenStatus};
pub use diagnostic::{DiagnosticEvent, DiagnosticLevel};
pub use failure::ErrorKind;
pub use flow::{FlowEvent, FlowProposal, FlowRun, FlowStatus, ProposalStatus};
pub use ids::{AgentId, IdError};
pub use knowledge::{KnowledgeEdge, KnowledgeNode};
pub use memory::{ExpiredMemories, MemoryHit, MemoryRecord, NewMemory};
pub use memory_file::{CORE_MEMORY_FILE, MemoryFileParser};
pub use memory_index::{IndexedEntry, IndexedFile, IndexedHit, Reindexed, SkippedFile};
pub use migration::{
    KindCount, MigrationRun, MigrationStatus, RunPhase, SourceReceipt, SourceState, SourceStatus,
    TierReceipt,
};
pub use page::{MAX_PAGE, Page, PageLimit};
pub use pairing::{
    DeviceIntroduction, DevicePaired, IssuedCode, PairingAnswer, PairingAsked, PairingRequest,
    PairingStatus, Secret, code_hash, pairing_code,
};
pub use plugin::{
    InstalledPlugins, MAX_PLUGIN_BLOB_BYTES, MAX_PLUGIN_VALUE_BYTES, NamespaceKind, PluginBinding,
    PluginBlob, PluginBlobEntry, PluginEntry, PluginLimits, PluginUsage,
};
pub use process::{Liveness, ProcessIdentity};
pub use query::{Cell, MAX_QUERY_ROWS, MAX_QUERY_TIME, QueryAnswer, QueryCut, QueryLimits};
pub use recall::{Direction, RecallQuery, Recalled, fused_score};
pub use retention::RetentionRules;
pub use session::{
    ChatType, Conversation, ConversationKind, FieldConflict, SessionPatch, SessionRecord,
    SessionRoute, SessionScope, SessionStatus,
};
pub use stats::{
    CompactRefusal, FolderStats, KindStats, RootCompacted, RootStats, TableStats, TierCompacted,
    TierStats,
};
pub use task::{CancelState, TaskOrigin, TaskOwnerKind, TaskProgress, TaskRun, TaskStatus};
pub use task_life::{CancelOutcome, NewTask, TaskClaim, TaskEnd};
pub use task_record::{GoalTask, TaskContinuation, TaskDelivery, TaskSettlement};
pub use tier::Tier;
pub use timetable::{ScheduleError, Timetable, zone_name};
pub use tool_artifact::{NewToolArtifact, ToolArtifact, ToolArtifactKind};
pub use trajectory::{ParentStreamEvent, StoredSpan, TrajectoryEvent};
pub use transcript::{
    BOUNDED_JSON_BYTES, BOUNDED_TEXT_BYTES, CutEvent, Event, NewEvent, PREVIEW_CHARS, Payloads,
    SearchHit, Snapshot, TranscriptCursor, TranscriptOrder,
};
pub use vfs::{
    MAX_NAMESPACE_BYTES, MAX_VFS_NAME_BYTES, MAX_VFS_PATH_BYTES, VfsEntry, VfsHit, VfsKind,
    VfsNameError, VfsNamespace, VfsPath, VfsTree,
};
pub use worker::{FsMode, WorkerSpec};

/// Gives an enum stored as text its column form, both ways.
macro_rules! text_enum {
    ($name:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $name {
            /// The form stored in its column and shown in JSON.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of a stored form; `None` when this release does not know it.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
use text_enum;

/// Reads a field that is left out where there is nothing: what is there, though it be null, is given.
fn given<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: serde::Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    T::deserialize(from).map(Some)
}
