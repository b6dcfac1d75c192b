//! What comes back.

use serde::Serialize;

use super::{
    AgentChanged, AgentOverview, CostPage, CostReport, DeliveryPrune, DeliveryRetried,
    FlowClaimInfo, FlowOverview, Forked, GoalOverview, Imported, KnowledgeOverview, LeaseShown,
    PatchOutcome, PluginCleared, PluginOverview, PluginShown, Removed, Reset, RetentionReport,
    Revoked, RunHistory, SearchAnswer, SessionTranscript, StatusReport, SweepReport, TaskOutput,
    TaskOverview, VfsPart, VfsRemoved,
};
use crate::model::{
    AcpSession, AgentRecord, Appended, AuditEvent, BackupRun, CacheCleared, CacheEntry,
    CancelOutcome, ChannelAllowEntry, ChannelPairingRequest, ChannelStanding, Commitment, CronJob,
    DeliveryEntry, DiagnosticEvent, Event, ExpiredMemories, FlowProposal, FlowRun, IndexedHit,
    InstalledPlugins, IssuedCode, KeptArtifact, KnowledgeNode, MemoryHit, MigrationRun, Page,
    PairedDevice, PairingRequest, ParentStreamEvent, PluginBinding, Reindexed, RunArtifact,
    SessionRecord, TaskRun, TaskSettlement, TierCheck, ToolArtifact, TrajectoryEvent, VfsEntry,
    VfsHit, VfsTree,
};

/// An answer of the service; as JSON it is the value inside.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Response {
    /// How the root is.
    Status(StatusReport),
    /// Agents.
    Agents(Vec<AgentRecord>),
    /// One agent.
    Agent(AgentOverview),
    /// An agent that was made.
    AgentCreated(AgentRecord),
    /// An agent that was retired, or taken into service again.
    AgentChanged(AgentChanged),
    /// Sessions.
    Sessions(Page<SessionRecord>),
    /// One session with events.
    Transcript(SessionTranscript),
    /// One event.
    Event(Event),
    /// Where events went.
    Appended(Appended),
    /// A session that was made.
    SessionMade(Box<SessionRecord>),
    /// What became of a patch.
    Patched(PatchOutcome),
    /// A copy of a session.
    Forked(Box<Forked>),
    /// A session in the place of another.
    SessionReset(Reset),
    /// A session that is gone, or would be.
    SessionRemoved(Box<Removed>),
    /// What rules of retention took.
    SessionsPruned(RetentionReport),
    /// A session that was taken in.
    SessionImported(Imported),
    /// Hits in transcripts.
    Search(SearchAnswer),
    /// Sessions of ACP clients.
    AcpSessions(Page<AcpSession>),
    /// Payloads of tools.
    Artifacts(Vec<ToolArtifact>),
    /// One payload, whole.
    Artifact(ToolArtifact),
    /// Outputs of runs.
    RunArtifacts(Page<KeptArtifact>),
    /// One output, whole.
    RunArtifact(RunArtifact),
    /// Steps of a runtime.
    Trajectory(Page<TrajectoryEvent>),
    /// What children told a session.
    ParentStream(Page<ParentStreamEvent>),
    /// What is cached.
    Cache(Page<CacheEntry>),
    /// What was cached and is gone.
    CacheCleared(Vec<CacheCleared>),
    /// Memories that have expired and are gone.
    MemoriesPruned(Vec<ExpiredMemories>),
    /// Jobs.
    CronJobs(Vec<CronJob>),
    /// One job.
    CronJob(Box<CronJob>),
    /// Tasks.
    Tasks(Page<TaskRun>),
    /// One task.
    Task(Box<TaskOverview>),
    /// What a task gave.
    TaskOutput(TaskOutput),
    /// Goals.
    Goals(Page<GoalOverview>),
    /// Ends that are not settled.
    Settlements(Page<TaskSettlement>),
    /// What cancelling did.
    Cancelled(CancelOutcome),
    /// A task that has ended; `None` where it has not by then.
    Ended(Option<Box<TaskRun>>),
    /// What a sweep did.
    Swept(SweepReport),
    /// Leases.
    Leases(Vec<LeaseShown>),
    /// Devices.
    Devices(Vec<PairedDevice>),
    /// A code that pairs one device.
    CodeIssued(IssuedCode),
    /// Devices that ask.
    PairingRequests(Vec<PairingRequest>),
    /// A request that was decided.
    PairingDecided(PairingRequest),
    /// What a channel does with somebody.
    ChannelStanding(ChannelStanding),
    /// Strangers who wait.
    ChannelRequests(Vec<ChannelPairingRequest>),
    /// A stranger whose request was decided.
    ChannelDecided(ChannelPairingRequest),
    /// Those who may write.
    ChannelAllowed(Vec<ChannelAllowEntry>),
    /// Whether that changed something.
    Changed(bool),
    /// What became of a device's tokens.
    DeviceRevoked(Revoked),
    /// Costs.
    Costs(CostPage),
    /// Costs, added up.
    CostReport(CostReport),
    /// Events of a log.
    Diagnostics(Page<DiagnosticEvent>),
    /// Runs of procedures.
    Flows(Page<FlowRun>),
    /// One run of a procedure.
    Flow(FlowOverview),
    /// Proposals.
    Proposals(Page<FlowProposal>),
    /// Who drives runs.
    FlowClaims(Vec<FlowClaimInfo>),
    /// A run that was decided.
    FlowDecided(Box<FlowRun>),
    /// Messages for channels.
    Deliveries(Page<DeliveryEntry>),
    /// One message.
    Delivery(Box<DeliveryEntry>),
    /// Messages that wait again.
    DeliveriesRetried(DeliveryRetried),
    /// Messages that were deleted.
    DeliveriesPruned(DeliveryPrune),
    /// Commitments.
    Commitments(Page<Commitment>),
    /// One commitment.
    Commitment(Box<Commitment>),
    /// Plugins and how much each keeps.
    Plugins(Vec<PluginOverview>),
    /// One plugin.
    Plugin(Box<PluginShown>),
    /// What was kept and is gone.
    PluginCleared(PluginCleared),
    /// Where plugins may answer.
    PluginBindings(Vec<PluginBinding>),
    /// Which plugins are installed.
    PluginsInstalled(Vec<InstalledPlugins>),
    /// Nodes.
    Knowledge(Page<KnowledgeNode>),
    /// One node.
    KnowledgeNode(KnowledgeOverview),
    /// What was done to memories.
    Audit(Page<AuditEvent>),
    /// A memory that was stored.
    MemoryStored(Box<MemoryHit>),
    /// Memories of one name, or those that are gone.
    MemoriesNamed(Vec<MemoryHit>),
    /// Memories.
    Memories(Page<MemoryHit>),
    /// Trees of files.
    VfsTrees(Vec<VfsTree>),
    /// Files and folders.
    VfsEntries(Page<VfsEntry>),
    /// Part of a file.
    VfsPart(VfsPart),
    /// A file as it was written.
    VfsWritten(Box<VfsEntry>),
    /// Done, and there is nothing to tell.
    Done(()),
    /// What went.
    VfsRemoved(VfsRemoved),
    /// Files that were found.
    VfsHits(Vec<VfsHit>),
    /// Entries of files that hold memories.
    Indexed(Vec<IndexedHit>),
    /// What indexing anew did.
    Reindexed(Vec<Reindexed>),
    /// Checks.
    Checks(Vec<TierCheck>),
    /// Import runs.
    Runs(Vec<MigrationRun>),
    /// One import run.
    Run(RunHistory),
    /// Backup runs.
    Backups(Vec<BackupRun>),
}
