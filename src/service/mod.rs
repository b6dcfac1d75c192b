//! Use cases: they open tiers, begin and commit transactions, and answer requests.
//!
//! One vocabulary, [`Request`] and [`Response`], whoever asks: a command in this process, or a daemon's client. No use case spans both tiers in one transaction; where one touches both,
//! the writes are ordered so that a rerun after a crash finishes them.

mod acp;
mod agent;
pub mod agent_life;
pub mod agent_move;
mod answer;
mod append;
mod artifact;
mod audit;
pub mod backup;
mod branch;
mod cache;
mod changes;
mod channel_pairing;
mod check;
mod checkpoint;
mod claim;
mod commitment;
mod compact;
mod config_save;
mod control;
mod control_watch;
mod cost;
mod cron;
mod delivery;
mod device;
mod diagnostic;
mod dispatch;
mod error;
mod flow;
mod history;
mod import;
mod knowledge;
mod lease;
mod media;
mod memory;
mod memory_index;
mod open;
mod pairing;
mod parent_stream;
mod plugin;
mod query;
mod request;
mod response;
mod scheduler;
mod session;
mod session_change;
mod session_export;
mod session_remove;
mod skill_upload;
mod stats;
mod status;
mod task;
mod task_ledger;
mod tool_artifact;
mod tool_state;
mod trajectory;
mod transcript;
mod turn;
pub mod undo;
mod vfs;
mod worker;

pub use agent::AgentOverview;
pub use agent_life::{AgentChanged, LifeError};
pub use answer::AnswerError;
pub use branch::Moved;
pub use changes::{Change, ChangeKind};
pub use checkpoint::{Compacted, Compaction};
pub use commitment::{Commitments, Committed};
pub use config_save::ConfigSaved;
pub use control_watch::{ControlChange, ControlWatch};
pub use cost::{CostPage, CostReport};
pub use delivery::{
    Deliveries, DeliveryClaim, DeliveryPrune, DeliveryRetried, DeliverySweep, Enqueued,
    SendFailure, SendLimits,
};
pub use device::Revoked;
pub use error::ServiceError;
pub use flow::{
    FlowClaim, FlowClaimInfo, FlowClaimed, FlowOverview, FlowStep, FlowSweep, Flows, NewFlowEvent,
    NewFlowRun, NewProposal,
};
pub use history::RunHistory;
pub use import::{ImportTx, Importer};
pub use knowledge::KnowledgeOverview;
pub use lease::{HeldLease, LeaseShown, Leases, is_void};
pub use media::Media;
pub use memory_index::MAX_MEMORY_FILE_BYTES;
pub use open::{Service, Tiers};
pub use plugin::{
    ClaimedKey, Expect, KeyClaim, NamespaceMigrated, NamespaceVersion, PluginCleared, PluginFault,
    PluginNamespace, PluginOverview, PluginProvider, PluginQuery, PluginShown, Plugins,
};
pub use request::Request;
pub use response::Response;
pub use scheduler::{CronChange, FailureAlert, NewCronJob, Reconciled, Scheduler, TickReport};
pub use session::{SearchAnswer, SessionTranscript};
pub use session_change::{DeleteOptions, Deleted, Forked, PatchOutcome, Reset};
pub use session_export::{ExportFormat, Exported, Imported};
pub use session_remove::{
    COPY_KEPT, Candidate, RemoveOptions, Removed, RetentionItem, RetentionOptions, RetentionReason,
    RetentionReport, plan_retention,
};
pub use skill_upload::{NewSkillUpload, SkillUploads};
pub use status::{StatusReport, TierStatus};
pub use task::{GoalOverview, TaskOutput, TaskOverview};
pub use task_ledger::{
    GoalBudget, GoalPause, NewGoal, SweepReport, SweptTask, TaskHandle, TaskLedger,
};
pub use tool_state::{ClientIdentity, Isolation, Lifetime, ToolCaller, ToolState};
pub use transcript::{Tail, TailEvent, TranscriptPage, TranscriptStream};
pub use turn::{Turn, TurnInfo};
pub use vfs::{MAX_CALL_BYTES, Removal, Vfs, VfsError, VfsExport, VfsPart, VfsRemoved, WriteMode};
pub use worker::{DiskFiles, Files, FilesKind, ScratchFiles, TaskDesk, TaskWorker, Worker};

pub use crate::clock::Clock;
pub use crate::db::{Connection, WriteTx};
pub use crate::fs::{HolderKind, RootError, resolve_root};
pub use crate::model::{ErrorKind, RetentionRules};
pub use crate::store::agent::search::SearchOrder;
