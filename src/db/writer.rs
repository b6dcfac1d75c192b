//! One writer a file: jobs queue, and all that have queued while the last commit ran share the next.
//!
//! A job lives in the writer's task: a caller that goes away loses the answer, never half a write.
//! There is no timer; under load the batch grows by itself, alone a job commits at once.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;

use futures_util::FutureExt;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::error::DbError;
use super::options::BUSY_TIMEOUT;
use super::tx::{WriteTx, begin_patiently};

/// Jobs that may wait; the next caller waits for a place.
const QUEUE: usize = 1_024;

/// Most jobs that share one commit.
const MAX_BATCH: usize = 256;

/// A boxed future, as a job returns it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The queue in front of a file's one writing connection.
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    task: JoinHandle<()>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// A use case's share of a batch.
trait Job: Send {
    /// Runs it; `Err` means: roll this job back. It carries SQLite's failure, if that was the reason.
    fn run<'t>(&'t mut self, tx: &'t mut WriteTx<'_>)
    -> BoxFuture<'t, Result<(), Option<DbError>>>;

    /// Tells the caller how it went, after the commit.
    fn answer(self: Box<Self>, commit: Result<(), DbError>);
}

struct TypedJob<F, A, T, E> {
    work: Option<F>,
    /// Told of what was committed, whether or not the caller still waits.
    after: A,
    outcome: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, A, T, E> Job for TypedJob<F, A, T, E>
where
    F: for<'t, 'c> FnOnce(&'t mut WriteTx<'c>) -> BoxFuture<'t, Result<T, E>> + Send,
    A: FnOnce(&T) + Send,
    T: Send,
    E: std::error::Error + From<DbError> + Send + 'static,
{
    fn run<'t>(
        &'t mut self,
        tx: &'t mut WriteTx<'_>,
    ) -> BoxFuture<'t, Result<(), Option<DbError>>> {
        Box::pin(async move {
            let Some(work) = self.work.take() else {
                return Err(None);
            };
            // A panic in one use case must not take the writer, and every other caller, with it.
            let outcome = AssertUnwindSafe(work(tx)).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|_| Err(DbError::stopped().into()));
            let result = outcome
                .as_ref()
                .map(|_| ())
                .map_err(|error| DbError::behind(error));
            self.outcome = Some(outcome);
            result
        })
    }

    fn answer(self: Box<Self>, commit: Result<(), DbError>) {
        let answer = match (self.outcome, commit) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.into()),
            (Some(Ok(value)), Ok(())) => {
                (self.after)(&value);
                Ok(value)
            }
            (None, Ok(())) => Err(DbError::stopped().into()),
        };
        // The caller may be gone; its write is done all the same.
        let _ = self.reply.send(answer);
    }
}

impl Writer {
    /// Starts to work on `conn`.
    ///
    /// * `last`: a statement for the end, when nobody else of this process has the file open.
    pub(super) fn start(conn: SqliteConnection, path: PathBuf, last: Option<&'static str>) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let task = tokio::spawn(work(conn, path, jobs, last));
        Self { queue, task }
    }

    pub(super) async fn run<F, A, T, E>(&self, work: F, after: A) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut WriteTx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
        T: Send + 'static,
        E: std::error::Error + From<DbError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = TypedJob {
            work: Some(work),
            after,
            outcome: None,
            reply,
        };
        if self.queue.send(Box::new(job)).await.is_err() {
            return Err(DbError::stopped().into());
        }
        answer
            .await
            .unwrap_or_else(|_| Err(DbError::stopped().into()))
    }

    /// Finishes what has queued, checkpoints and closes the connection.
    pub(super) async fn close(self) {
        drop(self.queue);
        // The task ends when the queue is empty; it does not panic, jobs are caught.
        let _ = self.task.await;
    }
}

async fn work(
    mut conn: SqliteConnection,
    path: PathBuf,
    mut jobs: mpsc::Receiver<Box<dyn Job>>,
    last: Option<&'static str>,
) {
    if let Err(error) = wait_in_short_pieces(&mut conn).await {
        tracing::warn!(path = %path.display(), %error, "the writer waits as SQLite does");
    }
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while jobs.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let commit = run_batch(&mut conn, &mut batch)
            .await
            .map_err(|error| error.held_at(&path));
        for job in batch.drain(..) {
            job.answer(commit.clone());
        }
    }
    if let Some(last) = last
        && let Err(error) = at_the_end(&mut conn, last).await
    {
        tracing::warn!(path = %path.display(), %error, "the writer's last statement failed");
    }
    if let Err(error) = conn.close().await {
        tracing::warn!(path = %path.display(), %error, "closing the writer failed");
    }
}

/// Lets the beginnings of transactions ask for the lock often; see [`begin_patiently`]. With a log nothing else of a
/// writer waits; without one a commit waits for readers, and goes on to wait as long.
async fn wait_in_short_pieces(conn: &mut SqliteConnection) -> Result<(), DbError> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut *conn)
        .await?;
    if mode == "wal" {
        statement(conn, "PRAGMA busy_timeout = 20").await?;
    }
    Ok(())
}

/// The last statement may wait for readers.
async fn at_the_end(conn: &mut SqliteConnection, last: &'static str) -> Result<(), DbError> {
    statement(conn, "PRAGMA busy_timeout = 5000").await?;
    statement(conn, last).await
}

async fn run_batch(conn: &mut SqliteConnection, batch: &mut [Box<dyn Job>]) -> Result<(), DbError> {
    begin_patiently(conn, BUSY_TIMEOUT).await?;
    let ran = match batch {
        // Alone it needs no savepoint: two hand-overs to SQLite's thread less, of seven.
        [job] => job.run(&mut WriteTx::new(conn)).await,
        jobs => run_jobs(conn, jobs).await.map_err(Some),
    };
    let ended = match ran {
        Ok(()) => statement(conn, "COMMIT").await,
        // A use case that was alone and refused has told its caller why itself.
        Err(error) => {
            let back = statement(conn, "ROLLBACK").await;
            return error.map_or(back, Err);
        }
    };
    if ended.is_err() {
        // Some failures (disk full, io) have rolled back by themselves; then this says so and is no news.
        let _ = statement(conn, "ROLLBACK").await;
    }
    ended
}

async fn run_jobs(conn: &mut SqliteConnection, batch: &mut [Box<dyn Job>]) -> Result<(), DbError> {
    for job in batch {
        // A savepoint each, so that a refused job takes nothing of its neighbours with it.
        statement(conn, "SAVEPOINT job").await?;
        if let Err(cause) = job.run(&mut WriteTx::new(conn)).await {
            // Where SQLite took the whole transaction back (disk full, io), the savepoint is gone with
            // it: the neighbours hear that reason, not that there is no such savepoint.
            let back = statement(conn, "ROLLBACK TO job").await;
            back.map_err(|error| cause.unwrap_or(error))?;
        }
        statement(conn, "RELEASE job").await?;
    }
    Ok(())
}

async fn statement(conn: &mut SqliteConnection, sql: &'static str) -> Result<(), DbError> {
    sqlx::query(sql).execute(conn).await?;
    Ok(())
}
