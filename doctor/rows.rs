//! Rows that need no more than a key: taken when new, compared when there, proven by their key.
//!
//! Sessions, events, memories and jobs have rules of their own in [`super::work`]; every other concept
//! is one line of [`rows!`] and one implementation of [`ImportRow`] in a file of its name. A row that
//! is there already stays: SQLite is the authority once it has it. The exception is a concept whose
//! rows have a direction (a task that has ended beats one that runs); [`ImportRow::settled`] says so.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::future::Future;

use zeroclaw::model::{AgentId, KindCount};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;

mod acp;
mod artifact;
mod audit;
pub(crate) mod background;
pub(crate) mod branch;
mod cost;
mod delivery;
mod device;
mod diagnostic;
mod flow;
mod knowledge;
mod memory_index;
mod session_route;
mod task;
mod task_record;
mod tool_artifact;

pub(crate) use diagnostic::RUNTIME_SCOPE;

/// Rows looked up and written at once.
const MAX_ROWS: usize = 200;

/// A row of ours that old records become.
pub(crate) trait ImportRow: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Its kind, as counts and reports name it.
    fn kind(&self) -> &'static str;

    /// What it is known by; the same for every reading of the same record.
    fn key(&self) -> String;

    /// The agent that the registry must know for its sake.
    fn agent(&self) -> Option<&AgentId> {
        None
    }

    /// Those of `keys` that are there, in no order.
    fn find(
        conn: &mut Connection,
        keys: &[&str],
    ) -> impl Future<Output = Result<Vec<Self>, StoreError>> + Send;

    /// Inserts rows whose keys are new.
    fn insert(
        tx: &mut WriteTx<'_>,
        rows: &[Self],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes what [`Self::settled`] gave over the row of its key; never called where that gives none.
    fn update(
        _tx: &mut WriteTx<'_>,
        _row: &Self,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Whether `stored` is `read`, as far as an import brings it.
    fn is_same(stored: &Self, read: &Self) -> bool {
        stored == read
    }

    /// The row of both, where `read` says more than `stored`; `None` leaves `stored` as it is.
    fn settled(_stored: &Self, _read: &Self) -> Option<Self> {
        None
    }

    /// Whether `stored` is what became of `read` by [`Self::settled`], and so proves it.
    fn absorbs(_stored: &Self, _read: &Self) -> bool {
        false
    }
}

/// What taking rows gave, by kind; `records` is left at 0.
pub(crate) type Taken = BTreeMap<&'static str, KindCount>;

/// What proving rows gave: how many are there as they were read, or one that is not, and why.
pub(crate) type Proof = Result<u64, (String, &'static str)>;

async fn take<R: ImportRow>(
    tx: &mut WriteTx<'_>,
    rows: Vec<R>,
    taken: &mut Taken,
) -> Result<(), StoreError> {
    for chunk in rows.chunks(MAX_ROWS) {
        let keys: Vec<String> = chunk.iter().map(R::key).collect();
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let stored = R::find(tx, &names).await?;
        let mut standing: HashMap<String, R> =
            stored.into_iter().map(|row| (row.key(), row)).collect();
        let mut new: Vec<&str> = Vec::new();
        let mut better: Vec<&str> = Vec::new();
        for (row, key) in chunk.iter().zip(&names) {
            let count = taken.entry(row.kind()).or_default();
            match standing.get(*key) {
                None => {
                    count.imported += 1;
                    new.push(key);
                    standing.insert((*key).to_owned(), row.clone());
                }
                Some(there) if R::is_same(there, row) => count.present += 1,
                Some(there) => {
                    count.merged += 1;
                    if let Some(both) = R::settled(there, row) {
                        standing.insert((*key).to_owned(), both);
                        if !new.contains(key) && !better.contains(key) {
                            better.push(key);
                        }
                    }
                }
            }
        }
        let rows: Vec<R> = new.iter().filter_map(|key| standing.remove(*key)).collect();
        if !rows.is_empty() {
            R::insert(tx, &rows).await?;
        }
        for row in better.iter().filter_map(|key| standing.remove(*key)) {
            R::update(tx, &row).await?;
        }
    }
    Ok(())
}

async fn prove<R: ImportRow>(conn: &mut Connection, rows: &[R]) -> Result<Proof, StoreError> {
    let mut proven = 0;
    for chunk in rows.chunks(MAX_ROWS) {
        let keys: Vec<String> = chunk.iter().map(R::key).collect();
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        let stored = R::find(conn, &names).await?;
        let stored: HashMap<String, R> = stored.into_iter().map(|row| (row.key(), row)).collect();
        for (row, key) in chunk.iter().zip(keys) {
            let place = || format!("{} {key}", row.kind());
            match stored.get(&key) {
                None => return Ok(Err((place(), "it is not there"))),
                Some(there) if R::is_same(there, row) || R::absorbs(there, row) => proven += 1,
                // One that was there before another way stays; it is counted as merged.
                Some(there) if R::settled(there, row).is_none() => {}
                Some(_) => return Ok(Err((place(), "its content differs"))),
            }
        }
    }
    Ok(Ok(proven))
}

/// The concepts, those that others point to first: `name: type`.
macro_rules! rows {
    ($($name:ident: $row:ty,)*) => {
        /// A row of any concept.
        #[derive(Clone, Debug)]
        pub(crate) enum Row {
            $(#[allow(missing_docs, reason = "named by its type")] $name(Box<$row>),)*
        }

        $(impl From<$row> for Row {
            fn from(row: $row) -> Self {
                Self::$name(Box::new(row))
            }
        })*


        impl Row {
            /// Its kind in counts.
            pub(crate) fn kind(&self) -> &'static str {
                match self { $(Self::$name(row) => row.kind(),)* }
            }

            /// The agent that the registry must know for its sake.
            pub(crate) fn agent(&self) -> Option<&AgentId> {
                match self { $(Self::$name(row) => row.agent(),)* }
            }
        }

        /// Rows that wait, by concept, and those that others point to first.
        #[derive(Debug, Default)]
        #[allow(non_snake_case, reason = "one field a concept")]
        pub(crate) struct Waiting { $($name: Vec<$row>,)* }

        impl Waiting {
            /// Adds one.
            pub(crate) fn push(&mut self, row: Row) {
                match row { $(Row::$name(row) => self.$name.push(*row),)* }
            }

            /// Writes them all.
            pub(crate) async fn write(&mut self, tx: &mut WriteTx<'_>) -> Result<Taken, StoreError> {
                let mut taken = Taken::new();
                $(if !self.$name.is_empty() {
                    take(tx, std::mem::take(&mut self.$name), &mut taken).await?;
                })*
                Ok(taken)
            }

            /// Proves them all.
            pub(crate) async fn prove(&mut self, conn: &mut Connection) -> Result<Proof, StoreError> {
                let mut proven = 0;
                $(if !self.$name.is_empty() {
                    match prove(conn, &std::mem::take(&mut self.$name)).await? {
                        Ok(count) => proven += count,
                        unproven => return Ok(unproven),
                    }
                })*
                Ok(Ok(proven))
            }

            /// Whether none waits.
            pub(crate) fn is_empty(&self) -> bool {
                true $(&& self.$name.is_empty())*
            }
        }
    };
}

rows! {
    Task: zeroclaw::model::TaskRun,
    Background: background::BackgroundTask,
    Goal: zeroclaw::model::GoalTask,
    Continuation: zeroclaw::model::TaskContinuation,
    Settlement: zeroclaw::model::TaskSettlement,
    Artifact: zeroclaw::model::RunArtifact,
    Device: zeroclaw::model::PairedDevice,
    SessionRoute: zeroclaw::model::SessionRoute,
    BranchTip: branch::BranchTip,
    Delivery: zeroclaw::model::DeliveryEntry,
    AcpSession: zeroclaw::model::AcpSession,
    ToolArtifact: zeroclaw::model::ToolArtifact,
    IndexedFile: zeroclaw::model::IndexedFile,
    Cost: zeroclaw::model::UsageCost,
    Diagnostic: zeroclaw::model::DiagnosticEvent,
    Flow: zeroclaw::model::FlowRun,
    FlowEvent: zeroclaw::model::FlowEvent,
    FlowProposal: zeroclaw::model::FlowProposal,
    KnowledgeNode: zeroclaw::model::KnowledgeNode,
    KnowledgeEdge: zeroclaw::model::KnowledgeEdge,
    AuditEvent: zeroclaw::model::AuditEvent,
}
