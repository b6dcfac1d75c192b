//! Procedures that runs propose to make or to change: decided once.

use serde_json::json;

use super::Flows;
use super::change::check_json;
use crate::model::{FlowProposal, ProposalStatus};
use crate::service::ServiceError;
use crate::service::append::{check_name, named, new_id};
use crate::store::global::flow;

/// A procedure that somebody proposes to make or to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProposal {
    /// Name of the procedure.
    pub controller_id: String,
    /// The run that proposes it.
    pub source_flow_id: Option<String>,
    /// What it would do: `create` or `update`.
    pub kind: String,
    /// Digest of the procedure that it would change; `None` for a new one.
    pub target_content_hash: Option<String>,
    /// The proposal itself, JSON text.
    pub proposal_json: String,
}

impl Flows {
    /// Records a proposal; nothing is changed by it.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for what no row could hold.
    pub async fn propose(&self, new: NewProposal) -> Result<FlowProposal, ServiceError> {
        check_name("procedure", &new.controller_id)?;
        check_name("kind", &new.kind)?;
        check_json("proposal", &new.proposal_json)?;
        let now_ms = self.now_ms();
        let content: serde_json::Value =
            serde_json::from_str(&new.proposal_json).unwrap_or_default();
        let whole = json!({
            "proposal": content,
            "target_content_hash": new.target_content_hash,
        });
        let proposal = FlowProposal {
            proposal_id: new_id(),
            controller_id: new.controller_id,
            source_flow_id: new.source_flow_id,
            kind: new.kind,
            status: ProposalStatus::Pending,
            status_detail: None,
            status_reason: None,
            created_at_ms: Some(now_ms),
            updated_at_ms: now_ms,
            applied_at_ms: None,
            applied_by: None,
            proposal_json: Some(whole.to_string()),
            detail_json: None,
        };
        let made = proposal.clone();
        let done = self.control.db.write(move |tx| {
            Box::pin(async move { Ok(flow::upsert_proposal(tx, &proposal).await?) })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))?;
        Ok(made)
    }

    /// Accepts a proposal, unless what it would change has changed meanwhile: it is stale then.
    ///
    /// * `current_hash`: digest of the procedure as it is now; `None` where there is none.
    ///
    /// Carrying it out is the caller's, once this has said that it is applied.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for one that is decided, [`ServiceError::NotFound`].
    pub async fn apply_proposal(
        &self,
        proposal_id: &str,
        actor: &str,
        current_hash: Option<&str>,
    ) -> Result<FlowProposal, ServiceError> {
        check_name("actor", actor)?;
        let (actor, now_ms) = (actor.to_owned(), self.now_ms());
        let current = current_hash.map(str::to_owned);
        self.decide(proposal_id, move |proposal| {
            if expected_hash(proposal) == current {
                proposal.status = ProposalStatus::Applied;
                proposal.applied_at_ms = Some(now_ms);
                proposal.applied_by = Some(actor);
            } else {
                proposal.status = ProposalStatus::Stale;
                proposal.status_reason =
                    Some("the procedure has changed since it was proposed".to_owned());
            }
        })
        .await
    }

    /// Refuses a proposal.
    ///
    /// # Errors
    ///
    /// As [`apply_proposal`](Self::apply_proposal).
    pub async fn reject_proposal(
        &self,
        proposal_id: &str,
        reason: Option<&str>,
    ) -> Result<FlowProposal, ServiceError> {
        let reason = reason.map(str::to_owned);
        self.decide(proposal_id, move |proposal| {
            proposal.status = ProposalStatus::Rejected;
            proposal.status_reason = reason;
        })
        .await
    }

    async fn decide(
        &self,
        proposal_id: &str,
        edit: impl FnOnce(&mut FlowProposal) + Send + 'static,
    ) -> Result<FlowProposal, ServiceError> {
        let (id, now_ms) = (proposal_id.to_owned(), self.now_ms());
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let found = flow::get_proposals(tx, &[&id]).await?.pop();
                let mut proposal = found.ok_or_else(|| ServiceError::NotFound {
                    what: "proposal",
                    name: id.clone(),
                })?;
                if proposal.status != ProposalStatus::Pending {
                    return Err(ServiceError::Conflict {
                        what: "proposal",
                        name: id,
                        expected: "pending".to_owned(),
                        found: proposal.status.to_string(),
                    });
                }
                edit(&mut proposal);
                proposal.updated_at_ms = now_ms;
                flow::upsert_proposal(tx, &proposal).await?;
                Ok(proposal)
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))
    }
}

/// The digest of what it would change, as it was proposed; also where an import brought it in.
fn expected_hash(proposal: &FlowProposal) -> Option<String> {
    let json = proposal.proposal_json.as_deref()?;
    let whole: serde_json::Value = serde_json::from_str(json).ok()?;
    Some(whole["target_content_hash"].as_str()?.to_owned())
}
