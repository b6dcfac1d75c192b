//! Statements that somebody wrote.

use super::{Service, ServiceError};
use crate::backup;
use crate::db::{OpenError, QueryError, known_version};
use crate::model::{AgentId, QueryAnswer, QueryLimits, Tier};

impl Service {
    /// Answers a statement that only reads, from one agent's database or from the control plane.
    ///
    /// What an archive without secrets would not hold is not read.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Query`] when it would do more than read, is not understood or goes beyond what memory or time
    /// allow; others when the database cannot be opened.
    pub async fn query(
        &self,
        agent: Option<&AgentId>,
        sql: &str,
        limits: &QueryLimits,
    ) -> Result<QueryAnswer, ServiceError> {
        let (db, tier) = match agent {
            None => (self.global().clone(), Tier::Global),
            Some(id) => (self.agent(id).await?, Tier::Agent(id.clone())),
        };
        match db.query(sql, limits, &backup::sealed(&tier)).await {
            // What is asked for may be what came with a later schema: the views did.
            Err(QueryError::Statement { .. }) if db.version() < known_version(&tier) => {
                Err(OpenError::TooOld {
                    path: db.path().to_owned(),
                    found: db.version(),
                    known: known_version(&tier),
                }
                .into())
            }
            answer => Ok(answer?),
        }
    }
}
