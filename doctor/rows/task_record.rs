//! Goals of tasks, where they go on, how they were to end: one a task, and the first word holds.

use zeroclaw::model::{GoalTask, TaskContinuation, TaskSettlement};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::{continuation, goal, settlement};

use super::ImportRow;
use crate::doctor::record::kind;

/// A row that a task has at most one of.
macro_rules! of_task {
    ($row:ty, $kind:expr, $store:ident) => {
        impl ImportRow for $row {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn key(&self) -> String {
                self.task_id.clone()
            }

            async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
                $store::get_many(conn, keys).await
            }

            async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
                for row in rows {
                    $store::insert_new(tx, row).await?;
                }
                Ok(())
            }
        }
    };
}

of_task!(GoalTask, kind::GOAL, goal);
of_task!(TaskContinuation, kind::CONTINUATION, continuation);
of_task!(TaskSettlement, kind::SETTLEMENT, settlement);
