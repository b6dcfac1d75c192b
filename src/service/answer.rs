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
        use Request as R;

        let kind = match request {
            R::Status => read(Self::Status),
            R::AgentsList => read(Self::Agents),
            R::AgentsShow { .. } => read(Self::Agent),
            R::AgentsCreate { .. } => read(Self::AgentCreated),
            R::SessionsList { .. } => read(Self::Sessions),
            R::SessionsShow { .. } => read(Self::Transcript),
            R::SessionsEvent { .. } => read(Self::Event),
            R::SessionsSearch { .. } => read(Self::Search),
            R::SessionsAcp { .. } => read(Self::AcpSessions),
            R::SessionsArtifacts { .. } => read(Self::Artifacts),
            R::SessionsRunArtifacts { .. } => read(Self::RunArtifacts),
            R::SessionsTrajectory { .. } => read(Self::Trajectory),
            R::SessionsParentStream { .. } => read(Self::ParentStream),
            R::CacheList { .. } => read(Self::Cache),
            R::CacheClear { .. } => read(Self::CacheCleared),
            R::MemoryPrune { .. } => read(Self::MemoriesPruned),
            R::MemoryReindex { .. } => read(Self::Reindexed),
            R::CronList { .. } => read(Self::CronJobs),
            R::CronRuns { .. } | R::TasksList { .. } => read(Self::Tasks),
            R::TasksShow { .. } => read(|task| Self::Task(Box::new(task))),
            R::TasksGoals { .. } => read(Self::Goals),
            R::TasksSettlements { .. } => read(Self::Settlements),
            R::DeliveryList { .. } => read(Self::Deliveries),
            R::DeliveryShow { .. }
            | R::DeliveryRetry { .. }
            | R::DeliveryConfirm { .. }
            | R::DeliveryDrop { .. } => read(|message| Self::Delivery(Box::new(message))),
            R::DeliveryRetryDead { .. } => read(Self::DeliveriesRetried),
            R::DeliveryPrune { .. } => read(Self::DeliveriesPruned),
            R::CostsList { .. } => read(Self::Costs),
            R::CostsReport { .. } => read(Self::CostReport),
            R::LogsList { .. } => read(Self::Diagnostics),
            R::FlowsList { .. } => read(Self::Flows),
            R::FlowsShow { .. } => read(Self::Flow),
            R::FlowsProposals { .. } => read(Self::Proposals),
            R::KnowledgeList { .. } => read(Self::Knowledge),
            R::KnowledgeShow { .. } => read(Self::KnowledgeNode),
            R::AuditList { .. } => read(Self::Audit),
            R::MemoryList { .. } | R::MemorySearch { .. } => read(Self::Memories),
            R::VfsTrees { .. } => read(Self::VfsTrees),
            R::VfsList { .. } => read(Self::VfsEntries),
            R::VfsSearch { .. } => read(Self::VfsHits),
            R::MemoryIndexed { .. } => read(Self::Indexed),
            R::DbCheck { .. } => read(Self::Checks),
            R::History { run: None, .. } => read(Self::Runs),
            R::History { run: Some(_), .. } => read(Self::Run),
            R::BackupList { .. } => read(Self::Backups),
            // Of a token's digest only the start is told, and half of one is none.
            R::DevicesList => return Err(AnswerError::OneWay),
            // Their bytes are not told where they are no text.
            R::SessionsArtifact { .. } | R::SessionsRunArtifact { .. } | R::TasksOutput { .. } => {
                return Err(AnswerError::OneWay);
            }
        };
        kind(json).map_err(AnswerError::Unfit)
    }
}

type Read = Box<dyn FnOnce(&str) -> Result<Response, serde_json::Error>>;

fn read<T: DeserializeOwned + 'static>(wrap: impl FnOnce(T) -> Response + 'static) -> Read {
    Box::new(|json| serde_json::from_str(json).map(wrap))
}
