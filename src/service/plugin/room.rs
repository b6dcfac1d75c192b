//! Room for one more value, in the order that [`super`] states.

use super::SWEEP;
use crate::db::WriteTx;
use crate::model::{NamespaceKind, PluginLimits, PluginUsage};
use crate::service::ServiceError;
use crate::store::global::{plugin, plugin_blob, plugin_room};

/// Values that are looked at in one go for what is to make room.
const LOOK: u32 = 1_000;

/// Which table grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Entries,
    Blobs,
}

/// What a write adds.
#[derive(Clone, Debug)]
pub(super) struct Wish<'a> {
    pub(super) plugin_id: &'a str,
    pub(super) namespace: &'a str,
    pub(super) key: &'a str,
    pub(super) kind: NamespaceKind,
    pub(super) rows: Rows,
    /// Size of the new row.
    pub(super) bytes: i64,
    pub(super) now_ms: i64,
}

/// Rows and bytes that a plugin holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    rows: i64,
    bytes: i64,
}

impl Held {
    fn of(usage: &[PluginUsage]) -> Self {
        usage.iter().fold(Self::default(), |held, one| Self {
            rows: held.rows + one.entries + one.blobs,
            bytes: held.bytes + one.size_bytes,
        })
    }

    /// How far a plugin is over its limits once `more` is in.
    fn over(self, more: Self, limits: PluginLimits) -> Self {
        Self {
            rows: (self.rows + more.rows - limits.max_rows).max(0),
            bytes: (self.bytes + more.bytes - limits.max_bytes).max(0),
        }
    }
}

/// Makes room, or says that there is none; the caller's transaction then takes back whatever went.
pub(super) async fn make(
    tx: &mut WriteTx<'_>,
    wish: &Wish<'_>,
    limits: PluginLimits,
) -> Result<(), ServiceError> {
    let fits = Held::default();
    let mut more = more(tx, wish).await?;
    // What shrinks always fits, so that a plugin over a limit that was lowered can get out.
    if more.rows == 0 && more.bytes <= 0 {
        return Ok(());
    }
    let mut usage = plugin_room::usage(tx, Some(wish.plugin_id)).await?;
    if Held::of(&usage).over(more, limits) == fits {
        return Ok(());
    }
    if expire(tx, wish).await? {
        usage = plugin_room::usage(tx, Some(wish.plugin_id)).await?;
        // What the key held may be among what went.
        more = self::more(tx, wish).await?;
    }
    let held = Held::of(&usage);
    let over = held.over(more, limits);
    if over == fits || wish.kind == NamespaceKind::Cache && evict(tx, wish, over).await? {
        return Ok(());
    }
    Err(full(wish, held, more, limits, &usage))
}

/// What the write adds to what is there.
async fn more(tx: &mut WriteTx<'_>, wish: &Wish<'_>) -> Result<Held, ServiceError> {
    let (plugin_id, namespace, key) = (wish.plugin_id, wish.namespace, wish.key);
    let replaced = match wish.rows {
        Rows::Entries => plugin::size_of(tx, plugin_id, namespace, key).await?,
        Rows::Blobs => plugin_blob::size_of(tx, plugin_id, namespace, key).await?,
    };
    Ok(Held {
        rows: i64::from(replaced.is_none()),
        bytes: wish.bytes - replaced.unwrap_or(0),
    })
}

async fn expire(tx: &mut WriteTx<'_>, wish: &Wish<'_>) -> Result<bool, ServiceError> {
    let (plugin_id, mut gone) = (Some(wish.plugin_id), false);
    loop {
        let entries = plugin::expire(tx, plugin_id, wish.now_ms, SWEEP).await?;
        let blobs = plugin_blob::expire(tx, plugin_id, wish.now_ms, SWEEP).await?;
        gone |= entries + blobs > 0;
        if entries.max(blobs) < u64::from(SWEEP) {
            return Ok(gone);
        }
    }
}

/// Takes what was written longest ago out of the wish's own namespace; says whether that was enough.
async fn evict(
    tx: &mut WriteTx<'_>,
    wish: &Wish<'_>,
    mut over: Held,
) -> Result<bool, ServiceError> {
    let (plugin_id, namespace, key) = (wish.plugin_id, wish.namespace, wish.key);
    loop {
        let oldest = match wish.rows {
            Rows::Entries => plugin::oldest(tx, plugin_id, namespace, key, LOOK).await?,
            Rows::Blobs => plugin_blob::oldest(tx, plugin_id, namespace, key, LOOK).await?,
        };
        let mut taken = Vec::new();
        for (row, size) in oldest {
            if over.rows <= 0 && over.bytes <= 0 {
                break;
            }
            taken.push(row);
            over.rows -= 1;
            over.bytes -= size;
        }
        match wish.rows {
            Rows::Entries => plugin::delete_rows(tx, &taken).await?,
            Rows::Blobs => plugin_blob::delete_rows(tx, &taken).await?,
        }
        if over.rows <= 0 && over.bytes <= 0 {
            return Ok(true);
        }
        if taken.is_empty() {
            return Ok(false);
        }
    }
}

fn full(
    wish: &Wish<'_>,
    held: Held,
    more: Held,
    limits: PluginLimits,
    usage: &[PluginUsage],
) -> ServiceError {
    let by_rows = held.rows + more.rows > limits.max_rows;
    let weight = |one: &&PluginUsage| match by_rows {
        true => one.entries + one.blobs,
        false => one.size_bytes,
    };
    let most_in = usage.iter().max_by_key(weight);
    let namespace = most_in.map_or(wish.namespace, |one| &one.namespace);
    let (what, used, most, wanted) = match by_rows {
        true => ("rows", held.rows, limits.max_rows, more.rows),
        false => ("bytes", held.bytes, limits.max_bytes, more.bytes),
    };
    ServiceError::PluginFull {
        plugin_id: wish.plugin_id.to_owned(),
        what,
        used,
        most,
        wanted,
        namespace: namespace.to_owned(),
    }
}
