//! An answer that came from elsewhere, as JSON, becomes the value it was.

use serde::de::DeserializeOwned;

use super::{Request, Response};

/// Why an answer could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is not what this request is answered with: the other side is of another release.
    #[error("the answer does not fit the request")]
    Unfit(#[source] serde_json::Error),
    /// What answers this request does not travel whole.
    #[error("such an answer is not read back")]
    OneWay,
}

impl Response {
    /// Reads the answer to `request` back from JSON.
    ///
    /// JSON holds the value alone, so that it takes the request to know what it is.
    ///
    /// # Errors
    ///
    /// [`AnswerError`]: not what the request asks for, or of a kind that is shown and not read back.
    pub fn read(request: &Request, json: &str) -> Result<Self, AnswerError> {
        let read = reader(request).ok_or(AnswerError::OneWay)?;
        read(json).map_err(AnswerError::Unfit)
    }

    /// Whether the answer to `request` can be read back at all.
    #[must_use]
    pub fn is_readable(request: &Request) -> bool {
        reader(request).is_some()
    }
}

fn reader(request: &Request) -> Option<Read> {
    use Request as R;
    use Response as A;

    Some(match request {
        R::Status => read(A::Status),
        R::AgentsList => read(A::Agents),
        R::AgentsShow { .. } => read(A::Agent),
        R::AgentsCreate { .. } => read(A::AgentCreated),
        R::AgentsRetire { .. } | R::AgentsActivate { .. } => read(A::AgentChanged),
        R::SessionsList { .. } => read(A::Sessions),
        R::SessionsShow { .. } => read(A::Transcript),
        R::SessionsEvent { .. } => read(A::Event),
        R::SessionsSearch { .. } => read(A::Search),
        R::SessionsAppend { .. } => read(A::Appended),
        R::SessionsCreate { .. } => read(|session| A::SessionMade(Box::new(session))),
        R::SessionsPatch { .. } => read(A::Patched),
        R::SessionsFork { .. } => read(|forked| A::Forked(Box::new(forked))),
        R::SessionsReset { .. } => read(A::SessionReset),
        R::SessionsDelete { .. } => read(|removed| A::SessionRemoved(Box::new(removed))),
        R::SessionsPrune { .. } => read(A::SessionsPruned),
        R::SessionsImport { .. } => read(A::SessionImported),
        R::SessionsAcp { .. } => read(A::AcpSessions),
        R::SessionsArtifacts { .. } => read(A::Artifacts),
        R::SessionsRunArtifacts { .. } => read(A::RunArtifacts),
        R::SessionsTrajectory { .. } => read(A::Trajectory),
        R::SessionsParentStream { .. } => read(A::ParentStream),
        R::CacheList { .. } => read(A::Cache),
        R::CacheClear { .. } => read(A::CacheCleared),
        R::MemoryPrune { .. } => read(A::MemoriesPruned),
        R::MemoryReindex { .. } => read(A::Reindexed),
        R::CronList { .. } => read(A::CronJobs),
        R::CronRuns { .. } | R::TasksList { .. } => read(A::Tasks),
        R::TasksShow { .. } => read(|task| A::Task(Box::new(task))),
        R::TasksGoals { .. } => read(A::Goals),
        R::TasksSettlements { .. } => read(A::Settlements),
        R::TasksSweep => read(A::Swept),
        R::DeliveryList { .. } => read(A::Deliveries),
        R::DeliveryShow { .. }
        | R::DeliveryRetry { .. }
        | R::DeliveryConfirm { .. }
        | R::DeliveryDrop { .. } => read(|message| A::Delivery(Box::new(message))),
        R::DeliveryRetryDead { .. } => read(A::DeliveriesRetried),
        R::DeliveryPrune { .. } => read(A::DeliveriesPruned),
        R::CostsList { .. } => read(A::Costs),
        R::CostsReport { .. } => read(A::CostReport),
        R::LogsList { .. } => read(A::Diagnostics),
        R::FlowsList { .. } => read(A::Flows),
        R::FlowsShow { .. } => read(A::Flow),
        R::FlowsProposals { .. } => read(A::Proposals),
        R::FlowsClaims => read(A::FlowClaims),
        R::FlowsApprove { .. } | R::FlowsDeny { .. } => read(|run| A::FlowDecided(Box::new(run))),
        R::CommitmentsList { .. } => read(A::Commitments),
        R::CommitmentsShow { .. } | R::CommitmentsDismiss { .. } => {
            read(|commitment| A::Commitment(Box::new(commitment)))
        }
        R::KnowledgeList { .. } => read(A::Knowledge),
        R::KnowledgeShow { .. } => read(A::KnowledgeNode),
        R::AuditList { .. } => read(A::Audit),
        R::MemoryList { .. } | R::MemorySearch { .. } => read(A::Memories),
        R::MemoryShow { .. } | R::MemoryForget { .. } => read(A::MemoriesNamed),
        R::MemoryStore { .. } => read(|stored| A::MemoryStored(Box::new(stored))),
        R::VfsRead { .. } => read(A::VfsPart),
        R::VfsWrite { .. } | R::VfsAppend { .. } => read(|entry| A::VfsWritten(Box::new(entry))),
        R::VfsMakeFolder { .. } | R::VfsRename { .. } => read(A::Done),
        R::VfsRemove { .. } => read(A::VfsRemoved),
        R::DevicesPair { .. } => read(A::CodeIssued),
        R::DevicesRequests => read(A::PairingRequests),
        R::DevicesApprove { .. } | R::DevicesDeny { .. } => read(A::PairingDecided),
        R::ChannelsStanding { .. } => read(A::ChannelStanding),
        R::ChannelsRequests { .. } => read(A::ChannelRequests),
        R::ChannelsApprove { .. } | R::ChannelsDeny { .. } => read(A::ChannelDecided),
        R::ChannelsAllowed { .. } => read(A::ChannelAllowed),
        R::ChannelsAllow { .. } => read(A::Changed),
        R::ChannelsRemove { .. } => read(A::Done),
        R::DevicesRevoke { .. } => read(A::DeviceRevoked),
        R::VfsTrees { .. } => read(A::VfsTrees),
        R::VfsList { .. } => read(A::VfsEntries),
        R::VfsSearch { .. } => read(A::VfsHits),
        R::MemoryIndexed { .. } => read(A::Indexed),
        R::PluginsList => read(A::Plugins),
        R::PluginsShow { .. } => read(|plugin| A::Plugin(Box::new(plugin))),
        R::PluginsClear { .. } => read(A::PluginCleared),
        R::PluginsBindings { .. } => read(A::PluginBindings),
        R::PluginsInstalled => read(A::PluginsInstalled),
        R::DbCheck { .. } => read(A::Checks),
        R::History { run: None, .. } => read(A::Runs),
        R::History { run: Some(_), .. } => read(A::Run),
        R::BackupList { .. } => read(A::Backups),
        // Of a token's digest only the start is told, of outputs no bytes that are no text: what is shown is not
        // all there is. So is whatever nobody has listed here yet.
        _ => return None,
    })
}

type Read = Box<dyn FnOnce(&str) -> Result<Response, serde_json::Error>>;

fn read<T: DeserializeOwned + 'static>(wrap: impl FnOnce(T) -> Response + 'static) -> Read {
    Box::new(|json| serde_json::from_str(json).map(wrap))
}
