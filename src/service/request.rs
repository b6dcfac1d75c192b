//! What can be asked.

use serde::{Deserialize, Serialize};

use crate::model::{
    AcpState, AgentId, AppendEvent, ChannelPeer, ChatType, CommitmentStatus, Content, CostGrouping,
    DeliveryStatus, DiagnosticLevel, FlowStatus, MediaRules, NewMemory, PageLimit, Payloads, Place,
    RetentionRules, SessionHeader, SessionPatch, SessionStatus, SessionTarget, TaskOwnerKind,
    TaskStatus, TranscriptCursor, TranscriptOrder, VfsNamespace, VfsPath,
};

/// A question to the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
#[non_exhaustive]
pub enum Request {
    /// How the root is.
    #[serde(rename = "status")]
    Status,
    /// All agents.
    #[serde(rename = "agents.list")]
    AgentsList,
    /// One agent and how much it holds.
    #[serde(rename = "agents.show")]
    AgentsShow {
        /// Its name.
        agent: AgentId,
    },
    /// Make an agent that holds nothing; it must not be there.
    #[serde(rename = "agents.create")]
    AgentsCreate {
        /// Its name.
        agent: AgentId,
    },
    /// Keep an agent for its history alone; refused while something under way needs it.
    #[serde(rename = "agents.retire")]
    AgentsRetire {
        /// Its name.
        agent: AgentId,
        /// Why, for people.
        #[serde(default)]
        reason: Option<String>,
    },
    /// Take a retired agent into service again; its jobs stay off.
    #[serde(rename = "agents.activate")]
    AgentsActivate {
        /// Its name.
        agent: AgentId,
    },
    /// Sessions, newest update first.
    #[serde(rename = "sessions.list")]
    SessionsList {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Only through this channel.
        channel: Option<String>,
        /// Only of this kind of chat.
        chat_type: Option<ChatType>,
        /// Only in this state.
        status: Option<SessionStatus>,
        /// Only whose key or title contains this.
        text: Option<String>,
        /// Archived ones too.
        #[serde(default)]
        with_archived: bool,
        /// Only updated at this time or later.
        #[serde(default)]
        since_ms: Option<i64>,
        /// Only updated before this time.
        #[serde(default)]
        until_ms: Option<i64>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One session and a page of its events, oldest first within the page.
    #[serde(rename = "sessions.show")]
    SessionsShow {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
        /// Which events, in which order.
        #[serde(default)]
        order: TranscriptOrder,
        /// Where the page begins or ends.
        #[serde(default)]
        cursor: TranscriptCursor,
        /// How much of large events.
        #[serde(default)]
        payloads: Payloads,
        /// Events of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One event of a session, whole.
    #[serde(rename = "sessions.event")]
    SessionsEvent {
        /// Its agent, where the session's id or key is not unique.
        agent: Option<AgentId>,
        /// The session's id, its key, or the start of its id.
        session: String,
        /// The event's place or id.
        event: String,
    },
    /// Messages that hold all words of a text.
    #[serde(rename = "sessions.search")]
    SessionsSearch {
        /// The words.
        text: String,
        /// Only this agent's; retired agents are searched too.
        agent: Option<AgentId>,
        /// Newest first instead of best first.
        #[serde(default)]
        newest: bool,
        /// Only what this one said: `user`, `assistant` and so on.
        #[serde(default)]
        role: Option<String>,
        /// Only said at this time or later.
        #[serde(default)]
        since_ms: Option<i64>,
        /// Only said before this time.
        #[serde(default)]
        until_ms: Option<i64>,
        /// Most hits.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Append events to a session, all or none; one that is not there is made.
    #[serde(rename = "sessions.append")]
    SessionsAppend {
        /// The agent.
        agent: AgentId,
        /// The session: `{"key": "…"}` or `{"id": "…"}`.
        session: SessionTarget,
        /// What it is made with, if it is not there yet.
        #[serde(default)]
        header: SessionHeader,
        /// The events in order, 1 to 500; each follows the one before.
        events: Vec<AppendEvent>,
        /// A repeat with the same key appends nothing and gives the first result.
        #[serde(default)]
        idempotency_key: Option<String>,
        /// Only if the conversation stands there: `"start"` or `{"event": "…"}`.
        #[serde(default)]
        expected_parent: Option<Place>,
    },
    /// Make a session without events; it must not be there.
    #[serde(rename = "sessions.create")]
    SessionsCreate {
        /// The agent.
        agent: AgentId,
        /// The session: `{"key": "…"}` or `{"id": "…"}`.
        session: SessionTarget,
        /// What it is made with.
        #[serde(default)]
        header: SessionHeader,
    },
    /// Change fields of a session, if it is still as the caller saw it.
    #[serde(rename = "sessions.patch")]
    SessionsPatch {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
        /// What to change; what is left out stays, and null takes a text away.
        patch: SessionPatch,
        /// Only if it has this revision.
        #[serde(default)]
        expected_revision: Option<i64>,
    },
    /// Copy a session up to one of its events into a new one.
    #[serde(rename = "sessions.fork")]
    SessionsFork {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
        /// The last event to copy; where the conversation stands without it.
        #[serde(default)]
        at: Option<Place>,
        /// Key of the copy; its own id without it.
        #[serde(default)]
        session_key: Option<String>,
    },
    /// Put a new session behind a session's key, with the same settings and nothing said.
    #[serde(rename = "sessions.reset")]
    SessionsReset {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
    },
    /// Delete a session; a copy is kept for 30 days unless none is wanted.
    #[serde(rename = "sessions.delete")]
    SessionsDelete {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
        /// A pinned one too.
        #[serde(default)]
        even_pinned: bool,
        /// Without a copy: gone for good.
        #[serde(default)]
        without_copy: bool,
        /// Only say what would go.
        dry_run: bool,
    },
    /// Delete the sessions that rules of retention take.
    #[serde(rename = "sessions.prune")]
    SessionsPrune {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// The rules; those of the configuration without them.
        #[serde(default)]
        rules: Option<RetentionRules>,
        /// By age although nothing was said for long: the clock was looked at.
        #[serde(default)]
        clock_is_right: bool,
        /// Only say what would go.
        dry_run: bool,
    },
    /// Take in a session that was exported as lines, whole or not at all.
    #[serde(rename = "sessions.import")]
    SessionsImport {
        /// Who it shall belong to; who it belonged to without it.
        agent: Option<AgentId>,
        /// The lines.
        lines: String,
        /// What they are, for messages.
        name: String,
    },
    /// Sessions of ACP clients, newest activity first.
    #[serde(rename = "sessions.acp")]
    SessionsAcp {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Only in this state.
        state: Option<AcpState>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Payloads of tools kept beside a session, oldest first, without their bytes.
    #[serde(rename = "sessions.artifacts")]
    SessionsArtifacts {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
    },
    /// One of them, whole.
    #[serde(rename = "sessions.artifact")]
    SessionsArtifact {
        /// Its agent, where the session's id or key is not unique.
        agent: Option<AgentId>,
        /// The session's id, its key, or the start of its id.
        session: String,
        /// Its id.
        artifact: String,
    },
    /// Outputs of an agent's runs by run and path, without their bytes.
    #[serde(rename = "sessions.run_artifacts")]
    SessionsRunArtifacts {
        /// The agent that keeps them.
        agent: AgentId,
        /// Only of this run.
        run: Option<String>,
        /// Cursor of an earlier page.
        after: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One of them, whole.
    #[serde(rename = "sessions.run_artifact")]
    SessionsRunArtifact {
        /// The agent that keeps it.
        agent: AgentId,
        /// Its run.
        run: String,
        /// Its name in its run.
        path: String,
    },
    /// Steps of a runtime in a session, in order.
    #[serde(rename = "sessions.trajectory")]
    SessionsTrajectory {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
        /// Only of this run.
        run: Option<String>,
        /// Cursor of an earlier page.
        after: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// What ACP children told a session, by run and place.
    #[serde(rename = "sessions.parent_stream")]
    SessionsParentStream {
        /// Its agent, where its id or key is not unique.
        agent: Option<AgentId>,
        /// Its id, its key, or the start of its id.
        session: String,
        /// Only of this run.
        run: Option<String>,
        /// Cursor of an earlier page.
        after: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// What an agent has cached, by scope and key, without the values.
    #[serde(rename = "cache.list")]
    CacheList {
        /// The agent.
        agent: AgentId,
        /// Only of this scope.
        scope: Option<String>,
        /// Cursor of an earlier page.
        after: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Delete what is cached.
    #[serde(rename = "cache.clear")]
    CacheClear {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Only of this scope.
        scope: Option<String>,
        /// Only count it.
        dry_run: bool,
    },
    /// Scheduled jobs.
    #[serde(rename = "cron.list")]
    CronList {
        /// Only this agent's.
        agent: Option<AgentId>,
    },
    /// One scheduled job, by its id, name, or the beginning of its id.
    #[serde(rename = "cron.show")]
    CronShow {
        /// The job.
        job: String,
    },
    /// Runs of scheduled jobs, newest first.
    #[serde(rename = "cron.runs")]
    CronRuns {
        /// Only of this job.
        job: Option<String>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Background work, newest start first; runs of scheduled jobs only where they are asked for.
    #[serde(rename = "tasks.list")]
    TasksList {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Only of this kind.
        kind: Option<TaskOwnerKind>,
        /// Only in this state.
        status: Option<TaskStatus>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One task and all that belongs to it.
    #[serde(rename = "tasks.show")]
    TasksShow {
        /// Its id, or the start of it.
        task: String,
    },
    /// What a task gave, whole.
    #[serde(rename = "tasks.output")]
    TasksOutput {
        /// Its id, or the start of it.
        task: String,
        /// Which output, where there are several.
        path: Option<String>,
    },
    /// Goals by task.
    #[serde(rename = "tasks.goals")]
    TasksGoals {
        /// Cursor of an earlier page.
        after: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Ends that were decided and are not settled, by task.
    #[serde(rename = "tasks.settlements")]
    TasksSettlements {
        /// Cursor of an earlier page.
        after: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Ends a task that nobody works on, or asks its worker to stop.
    #[serde(rename = "tasks.cancel")]
    TasksCancel {
        /// Its id.
        task: String,
    },
    /// Waits until a task has ended.
    #[serde(rename = "tasks.wait")]
    TasksWait {
        /// Its id.
        task: String,
        /// How long at most.
        timeout_ms: u64,
    },
    /// Settles what workers left that are gone.
    #[serde(rename = "tasks.sweep")]
    TasksSweep,
    /// Who holds what.
    #[serde(rename = "leases.list")]
    LeasesList,
    /// Paired devices.
    #[serde(rename = "devices.list")]
    DevicesList,
    /// Take back every token of a device.
    #[serde(rename = "devices.revoke")]
    DevicesRevoke {
        /// Its id.
        device: String,
    },
    /// Make a code that pairs one device.
    #[serde(rename = "devices.pair")]
    DevicesPair {
        /// What the device shall be called; what it says without it.
        #[serde(default)]
        name: Option<String>,
        /// How long the code opens, at most a day; ten minutes without it.
        #[serde(default)]
        life_ms: Option<i64>,
    },
    /// Devices that ask to be paired, newest first.
    #[serde(rename = "devices.requests")]
    DevicesRequests,
    /// Let a device that asks collect its token.
    #[serde(rename = "devices.approve")]
    DevicesApprove {
        /// Its request.
        request: String,
    },
    /// Turn a device away that asks.
    #[serde(rename = "devices.deny")]
    DevicesDeny {
        /// Its request.
        request: String,
    },
    /// What a channel does with somebody who writes: a stranger gets a code to show to the owner.
    #[serde(rename = "channels.standing")]
    ChannelsStanding {
        /// Who writes: `channel`, `account_id`, `peer_id`.
        peer: ChannelPeer,
        /// What the channel knows of them, JSON.
        #[serde(default)]
        meta_json: Option<String>,
    },
    /// Strangers who wait for the owner's word, oldest first.
    #[serde(rename = "channels.requests")]
    ChannelsRequests {
        /// Only of this channel.
        channel: Option<String>,
    },
    /// Let a stranger in.
    #[serde(rename = "channels.approve")]
    ChannelsApprove {
        /// The channel.
        channel: String,
        /// The code they were told.
        code: String,
    },
    /// Turn a stranger away; they may ask again.
    #[serde(rename = "channels.deny")]
    ChannelsDeny {
        /// The channel.
        channel: String,
        /// The code they were told.
        code: String,
    },
    /// Those who may write, by channel.
    #[serde(rename = "channels.allowed")]
    ChannelsAllowed {
        /// Only of this channel.
        channel: Option<String>,
    },
    /// Let somebody write who did not ask.
    #[serde(rename = "channels.allow")]
    ChannelsAllow {
        /// Who: `channel`, `account_id`, `peer_id`.
        peer: ChannelPeer,
    },
    /// Let somebody write no more.
    #[serde(rename = "channels.remove")]
    ChannelsRemove {
        /// Who: `channel`, `account_id`, `peer_id`.
        peer: ChannelPeer,
    },
    /// What calls of models cost, newest first, with the sum of all.
    #[serde(rename = "costs.list")]
    CostsList {
        /// Only of this agent.
        agent: Option<AgentId>,
        /// Only from this instant on, Unix milliseconds.
        from_ms: Option<i64>,
        /// Only before this instant.
        to_ms: Option<i64>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// The same added up by agent, model or day.
    #[serde(rename = "costs.report")]
    CostsReport {
        /// What by.
        by: CostGrouping,
        /// Only of this agent.
        agent: Option<AgentId>,
        /// Only from this instant on, Unix milliseconds.
        from_ms: Option<i64>,
        /// Only before this instant.
        to_ms: Option<i64>,
    },
    /// Events of a runtime's log, newest first.
    #[serde(rename = "logs.list")]
    LogsList {
        /// Only this grave and graver.
        level: Option<DiagnosticLevel>,
        /// Only of this agent.
        agent: Option<AgentId>,
        /// Only of this part of the runtime.
        category: Option<String>,
        /// Only from this instant on, Unix milliseconds.
        since_ms: Option<i64>,
        /// Only with this text in them.
        contains: Option<String>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Runs of procedures, newest update first.
    #[serde(rename = "flows.list")]
    FlowsList {
        /// Only those that stand so.
        status: Option<FlowStatus>,
        /// Only of the procedure of this name.
        procedure: Option<String>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One run of a procedure, what happened in it and what it proposes.
    #[serde(rename = "flows.show")]
    FlowsShow {
        /// Its id.
        run: String,
    },
    /// Proposals to make or change procedures, newest update first.
    #[serde(rename = "flows.proposals")]
    FlowsProposals {
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Who drives runs, oldest first.
    #[serde(rename = "flows.claims")]
    FlowsClaims,
    /// Approve what a run waits for.
    #[serde(rename = "flows.approve")]
    FlowsApprove {
        /// The run.
        run: String,
        /// Who decides.
        actor: String,
    },
    /// Refuse what a run waits for.
    #[serde(rename = "flows.deny")]
    FlowsDeny {
        /// The run.
        run: String,
        /// Who decides.
        actor: String,
        /// Why.
        reason: Option<String>,
    },
    /// Messages for channels, newest first.
    #[serde(rename = "delivery.list")]
    DeliveryList {
        /// Only those that stand so.
        status: Option<DeliveryStatus>,
        /// Only through this channel.
        channel: Option<String>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One message, with what is to be sent.
    #[serde(rename = "delivery.show")]
    DeliveryShow {
        /// Its id.
        message: String,
    },
    /// Send one message anew.
    #[serde(rename = "delivery.retry")]
    DeliveryRetry {
        /// Its id.
        message: String,
    },
    /// Send all dead messages anew.
    #[serde(rename = "delivery.retry_dead")]
    DeliveryRetryDead {
        /// Only through this channel.
        channel: Option<String>,
    },
    /// A message of which nobody knew was sent.
    #[serde(rename = "delivery.confirm")]
    DeliveryConfirm {
        /// Its id.
        message: String,
    },
    /// A message is not to be sent.
    #[serde(rename = "delivery.drop")]
    DeliveryDrop {
        /// Its id.
        message: String,
    },
    /// Delete dead messages.
    #[serde(rename = "delivery.prune")]
    DeliveryPrune {
        /// Only those that died before this.
        before_ms: i64,
        /// Count them only.
        is_dry_run: bool,
    },
    /// What agents have promised, newest first.
    #[serde(rename = "commitments.list")]
    CommitmentsList {
        /// Only those that stand so.
        status: Option<CommitmentStatus>,
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One commitment.
    #[serde(rename = "commitments.show")]
    CommitmentsShow {
        /// Its id.
        commitment: String,
    },
    /// Drop a commitment.
    #[serde(rename = "commitments.dismiss")]
    CommitmentsDismiss {
        /// Its id.
        commitment: String,
    },
    /// Nodes of the knowledge graph, newest update first.
    #[serde(rename = "knowledge.list")]
    KnowledgeList {
        /// Only of this type.
        node_type: Option<String>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// One node and how it belongs to others.
    #[serde(rename = "knowledge.show")]
    KnowledgeShow {
        /// Its id.
        node: String,
    },
    /// What was done to memories, newest first.
    #[serde(rename = "audit.list")]
    AuditList {
        /// Only what this agent did.
        agent: Option<AgentId>,
        /// Only of this kind.
        operation: Option<String>,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Memories, newest update first.
    #[serde(rename = "memory.list")]
    MemoryList {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Only of this category.
        category: Option<String>,
        /// Superseded ones too.
        #[serde(default)]
        with_superseded: bool,
        /// Expired ones too.
        #[serde(default)]
        with_expired: bool,
        /// Cursor of an earlier page.
        before: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Living memories that hold all words of a text.
    #[serde(rename = "memory.search")]
    MemorySearch {
        /// The words.
        text: String,
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Expired ones too.
        #[serde(default)]
        with_expired: bool,
        /// Most hits.
        #[serde(default)]
        limit: PageLimit,
    },
    /// All memories of a key, replaced ones too, or the one of an id; the living one first.
    #[serde(rename = "memory.show")]
    MemoryShow {
        /// The agent.
        agent: AgentId,
        /// The key or the id.
        memory: String,
    },
    /// Store a memory under its key; what the key held before is kept as superseded.
    #[serde(rename = "memory.store")]
    MemoryStore {
        /// The agent.
        agent: AgentId,
        /// The memory.
        memory: NewMemory,
    },
    /// Delete all memories of a key, replaced ones too, or the one of an id.
    #[serde(rename = "memory.forget")]
    MemoryForget {
        /// The agent.
        agent: AgentId,
        /// The key or the id.
        memory: String,
    },
    /// Delete memories that have expired and are not pinned.
    #[serde(rename = "memory.prune")]
    MemoryPrune {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Only count them.
        dry_run: bool,
    },
    /// Trees of files an agent has.
    #[serde(rename = "vfs.trees")]
    VfsTrees {
        /// The agent.
        agent: AgentId,
    },
    /// Files and folders in a folder, by path.
    #[serde(rename = "vfs.list")]
    VfsList {
        /// The agent.
        agent: AgentId,
        /// The tree.
        namespace: VfsNamespace,
        /// The folder.
        path: VfsPath,
        /// All below it too.
        #[serde(default)]
        recursive: bool,
        /// Cursor of an earlier page.
        after: Option<String>,
        /// Rows of a page.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Part of a file; none behind its end.
    #[serde(rename = "vfs.read")]
    VfsRead {
        /// The agent.
        agent: AgentId,
        /// The tree.
        namespace: VfsNamespace,
        /// The file.
        path: VfsPath,
        /// Where to begin, bytes.
        #[serde(default)]
        offset: u64,
        /// Most bytes; 16 MiB at most, and without it.
        #[serde(default)]
        length: Option<usize>,
    },
    /// Write a file in place of one that may be there; folders above it are made.
    #[serde(rename = "vfs.write")]
    VfsWrite {
        /// The agent.
        agent: AgentId,
        /// The tree.
        namespace: VfsNamespace,
        /// The file.
        path: VfsPath,
        /// Its bytes, 16 MiB at most: `{"text": "…"}` or `{"base64": "…"}`.
        content: Content,
        /// Whether a disk should let it be started.
        #[serde(default)]
        is_executable: bool,
    },
    /// Write at the end of a file; it is made where it is missing.
    #[serde(rename = "vfs.append")]
    VfsAppend {
        /// The agent.
        agent: AgentId,
        /// The tree.
        namespace: VfsNamespace,
        /// The file.
        path: VfsPath,
        /// The bytes, 16 MiB at most: `{"text": "…"}` or `{"base64": "…"}`.
        content: Content,
    },
    /// Make a folder and those above it.
    #[serde(rename = "vfs.make_folder")]
    VfsMakeFolder {
        /// The agent.
        agent: AgentId,
        /// The tree.
        namespace: VfsNamespace,
        /// The folder.
        path: VfsPath,
    },
    /// Give a file or folder another place; a file takes the place of a file.
    #[serde(rename = "vfs.rename")]
    VfsRename {
        /// The agent.
        agent: AgentId,
        /// The tree.
        namespace: VfsNamespace,
        /// What.
        path: VfsPath,
        /// Its new place.
        to: VfsPath,
    },
    /// Remove a file or folder.
    #[serde(rename = "vfs.remove")]
    VfsRemove {
        /// The agent.
        agent: AgentId,
        /// The tree.
        namespace: VfsNamespace,
        /// What.
        path: VfsPath,
        /// A folder with all that is in it.
        #[serde(default)]
        recursive: bool,
    },
    /// Files whose name or text hold all words of a text.
    #[serde(rename = "vfs.search")]
    VfsSearch {
        /// The agent.
        agent: AgentId,
        /// Only in this tree.
        namespace: Option<VfsNamespace>,
        /// The words.
        text: String,
        /// Most hits.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Entries of files that hold memories, all or those that hold all words of a text.
    #[serde(rename = "memory.indexed")]
    MemoryIndexed {
        /// The words; empty for all entries.
        text: String,
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Most entries.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Bring the index over files that hold memories up to date.
    #[serde(rename = "memory.reindex")]
    MemoryReindex {
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Write everything anew.
        #[serde(default)]
        rebuild: bool,
    },
    /// How much each plugin keeps.
    #[serde(rename = "plugins.list")]
    PluginsList,
    /// What one plugin keeps and may.
    #[serde(rename = "plugins.show")]
    PluginsShow {
        /// The plugin.
        plugin: String,
        /// Only this namespace.
        namespace: Option<String>,
        /// Blobs instead of values.
        #[serde(default)]
        blobs: bool,
        /// With the values, or what is said of blobs.
        #[serde(default)]
        with_values: bool,
        /// Exclusive cursor of an earlier page.
        after: Option<String>,
        /// Most rows.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Delete what a plugin keeps.
    #[serde(rename = "plugins.clear")]
    PluginsClear {
        /// The plugin.
        plugin: String,
        /// Only this namespace.
        namespace: Option<String>,
        /// Only count.
        dry_run: bool,
    },
    /// Where plugins may answer, newest first.
    #[serde(rename = "plugins.bindings")]
    PluginsBindings {
        /// Only this plugin.
        plugin: Option<String>,
    },
    /// Which plugins are installed.
    #[serde(rename = "plugins.installed")]
    PluginsInstalled,
    /// Media, newest first.
    #[serde(rename = "media.list")]
    MediaList {
        /// Only this part, for example `inbound`.
        part: Option<String>,
        /// Exclusive cursor of an earlier page.
        before: Option<String>,
        /// Most rows.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Images that agents sent, newest first.
    #[serde(rename = "media.images")]
    MediaImages {
        /// Only of this conversation.
        session: Option<String>,
        /// Exclusive cursor of an earlier page.
        before: Option<String>,
        /// Most rows.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Skills on their way in, newest first.
    #[serde(rename = "media.uploads")]
    SkillUploads {
        /// Exclusive cursor of an earlier page.
        before: Option<String>,
        /// Most rows.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Delete media that rules do not keep, the oldest first.
    #[serde(rename = "media.prune")]
    MediaPrune {
        /// The rules.
        rules: MediaRules,
        /// Only count.
        dry_run: bool,
    },
    /// What can be proved about each database.
    #[serde(rename = "db.check")]
    DbCheck {
        /// Only this agent's database.
        agent: Option<AgentId>,
    },
    /// Import runs, newest first, or one with its receipts.
    #[serde(rename = "doctor.history")]
    History {
        /// The run.
        run: Option<String>,
        /// Most runs.
        #[serde(default)]
        limit: PageLimit,
    },
    /// Backup, verification and restore runs, newest first.
    #[serde(rename = "backup.list")]
    BackupList {
        /// Most runs.
        #[serde(default)]
        limit: PageLimit,
    },
}
