//! Readers of old formats, one file a format.
//!
//! Each opens its source read-only, streams what it holds to a [`Sink`] in bounded batches, and
//! neither changes the source nor knows where records go.

pub(crate) mod elements;
pub(crate) mod lenient;
pub(crate) mod lines;
pub(crate) mod objects;
pub(crate) mod openclaw;
pub(crate) mod rows;
pub(crate) mod sqlite;
pub(crate) mod zeroclaw;
pub(crate) mod zstd;

use std::future::Future;

use super::record::Item;

/// Items handed on at once, at most.
pub(crate) const MAX_BATCH: usize = 500;

/// Bytes of text handed on at once, but for a single larger record.
pub(crate) const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// Why a source could not be read, or what was read could not be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The source is not what its name promises.
    #[error("{reason}")]
    Format {
        /// What it is instead.
        reason: String,
    },
    /// The source is damaged.
    #[error("the database is damaged: {reason}")]
    Damaged {
        /// SQLite's own words.
        reason: String,
    },
    /// The source could not be read.
    #[error(transparent)]
    Fs(#[from] ::zeroclaw::fs::FsError),
    /// What was read could not be taken.
    #[error(transparent)]
    Sink(#[from] ::zeroclaw::service::ServiceError),
    /// What was committed is not what was read.
    #[error("read back {place}: {reason}")]
    Unproven {
        /// The record.
        place: String,
        /// What differs.
        reason: String,
    },
}

/// Takes what a reader gives.
pub(crate) trait Sink: Send {
    /// Takes the next items, in order.
    fn take(&mut self, items: Vec<Item>) -> impl Future<Output = Result<(), ReadError>> + Send;
}

/// Gathers items and hands them on in bounded batches.
pub(crate) struct Batcher<'s, S> {
    sink: &'s mut S,
    items: Vec<Item>,
    bytes: usize,
}

impl<'s, S: Sink> Batcher<'s, S> {
    /// Hands on to `sink`.
    pub(crate) fn new(sink: &'s mut S) -> Self {
        Self {
            sink,
            items: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds an item of about `bytes` bytes.
    pub(crate) async fn push(&mut self, item: Item, bytes: usize) -> Result<(), ReadError> {
        self.items.push(item);
        self.bytes += bytes;
        if self.items.len() >= MAX_BATCH || self.bytes >= MAX_BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Hands on what is left.
    pub(crate) async fn flush(&mut self) -> Result<(), ReadError> {
        self.bytes = 0;
        if self.items.is_empty() {
            return Ok(());
        }
        self.sink.take(std::mem::take(&mut self.items)).await
    }
}
