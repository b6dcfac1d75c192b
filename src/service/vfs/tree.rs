//! The rules of a tree: what may stand where. Each runs inside of one transaction.

use super::VfsError;
use crate::db::WriteTx;
use crate::model::{MAX_VFS_PATH_BYTES, VfsKind, VfsPath};
use crate::service::ServiceError;
use crate::store::agent::vfs::{self, EntryRow, NewEntry};

/// What goes with a folder that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing: a folder must be empty.
    Alone,
    /// All that is in it.
    Tree,
}

/// A place in one tree, now.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) namespace: &'a str,
    pub(super) path: &'a VfsPath,
    pub(super) now_ms: i64,
}

impl<'a> Place<'a> {
    pub(super) fn new_entry(self, kind: VfsKind) -> NewEntry<'a> {
        NewEntry {
            namespace: self.namespace,
            path: self.path,
            kind,
            is_executable: false,
            is_opaque: false,
            created_at_ms: self.now_ms,
            updated_at_ms: self.now_ms,
        }
    }
}

/// What stands at a place; a whiteout counts as nothing.
pub(super) async fn find(
    tx: &mut WriteTx<'_>,
    namespace: &str,
    path: &VfsPath,
) -> Result<EntryRow, ServiceError> {
    let found = vfs::get(tx, namespace, path).await?;
    let found = found.filter(|row| row.entry.kind != VfsKind::Whiteout);
    Ok(found.ok_or_else(|| VfsError::NotFound { path: path.clone() })?)
}

/// Makes the folders above a place where they are missing.
pub(super) async fn ensure_above(
    tx: &mut WriteTx<'_>,
    place: Place<'_>,
) -> Result<(), ServiceError> {
    let Some(parent) = place.path.parent().filter(|parent| !parent.is_top()) else {
        return Ok(());
    };
    ensure_folder(
        tx,
        Place {
            path: &parent,
            ..place
        },
    )
    .await
}

/// Makes a folder and those above it where they are missing.
pub(super) async fn ensure_folder(
    tx: &mut WriteTx<'_>,
    place: Place<'_>,
) -> Result<(), ServiceError> {
    if place.path.is_top() || is_folder(tx, place.namespace, place.path).await? {
        return Ok(());
    }
    for path in place.path.ancestors().chain([place.path.clone()]) {
        let place = Place {
            path: &path,
            ..place
        };
        let found = vfs::get(tx, place.namespace, place.path).await?;
        let mut new = place.new_entry(VfsKind::Folder);
        match found {
            None => {}
            Some(row) if row.entry.kind == VfsKind::Folder => continue,
            Some(row) if row.entry.kind == VfsKind::Whiteout => {
                // What the whiteout hid stays hidden.
                new.is_opaque = true;
                vfs::delete(tx, row.entry_no).await?;
            }
            Some(_) => return Err(VfsError::NotFolder { path }.into()),
        }
        vfs::insert(tx, &new).await?;
    }
    Ok(())
}

async fn is_folder(
    tx: &mut WriteTx<'_>,
    namespace: &str,
    path: &VfsPath,
) -> Result<bool, ServiceError> {
    let found = vfs::get(tx, namespace, path).await?;
    Ok(found.is_some_and(|row| row.entry.kind == VfsKind::Folder))
}

/// The file at a place; made, with the folders above it, where it is missing. Its bytes are for the caller to set.
pub(super) async fn ensure_file(
    tx: &mut WriteTx<'_>,
    place: Place<'_>,
) -> Result<EntryRow, ServiceError> {
    refuse_top(place.path)?;
    match vfs::get(tx, place.namespace, place.path).await? {
        Some(row) if row.entry.kind == VfsKind::File => return Ok(row),
        Some(row) if row.entry.kind == VfsKind::Folder => {
            return Err(folder(place.path));
        }
        Some(whiteout) => vfs::delete(tx, whiteout.entry_no).await?,
        None => ensure_above(tx, place).await?,
    }
    vfs::insert(tx, &place.new_entry(VfsKind::File)).await?;
    find(tx, place.namespace, place.path).await
}

/// Clears a place for something new: a file that stands there goes, a folder is refused.
pub(super) async fn clear_for_file(
    tx: &mut WriteTx<'_>,
    place: Place<'_>,
) -> Result<Option<EntryRow>, ServiceError> {
    refuse_top(place.path)?;
    let found = vfs::get(tx, place.namespace, place.path).await?;
    match &found {
        Some(row) if row.entry.kind == VfsKind::Folder => return Err(folder(place.path)),
        Some(row) => vfs::delete(tx, row.entry_no).await?,
        None => ensure_above(tx, place).await?,
    }
    Ok(found.filter(|row| row.entry.kind == VfsKind::File))
}

/// Gives what stands at `from` the place `to`. A file replaces a file; anything else in the way is refused.
pub(super) async fn rename(
    tx: &mut WriteTx<'_>,
    from: &VfsPath,
    to: Place<'_>,
) -> Result<(), ServiceError> {
    refuse_top(from)?;
    refuse_top(to.path)?;
    let row = find(tx, to.namespace, from).await?;
    if from == to.path {
        return Ok(());
    }
    if to.path.is_below(from) {
        return Err(VfsError::IntoItself {
            from: from.clone(),
            to: to.path.clone(),
        }
        .into());
    }
    let taken = vfs::get(tx, to.namespace, to.path).await?;
    match (row.entry.kind, taken) {
        (_, None) => ensure_above(tx, to).await?,
        (_, Some(there)) if there.entry.kind == VfsKind::Whiteout => {
            vfs::delete(tx, there.entry_no).await?;
        }
        (VfsKind::File, Some(there)) if there.entry.kind == VfsKind::File => {
            vfs::delete(tx, there.entry_no).await?;
        }
        (_, Some(_)) => {
            return Err(VfsError::Taken {
                path: to.path.clone(),
            }
            .into());
        }
    }
    refuse_too_long(tx, &row, to).await?;
    Ok(vfs::rename(tx, &row, to.path).await?)
}

/// Names below a folder may become too long by its new place.
async fn refuse_too_long(
    tx: &mut WriteTx<'_>,
    row: &EntryRow,
    to: Place<'_>,
) -> Result<(), ServiceError> {
    if row.entry.kind != VfsKind::Folder {
        return Ok(());
    }
    let old = &row.entry.path;
    let (_, longest) = vfs::measure(tx, to.namespace, old).await?;
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    let new = longest.saturating_sub(old.as_str().len()) + to.path.as_str().len();
    if longest > 0 && new > MAX_VFS_PATH_BYTES {
        // Told in the words of the rule itself.
        VfsPath::new(&"/x".repeat(MAX_VFS_PATH_BYTES)).map_err(VfsError::Name)?;
    }
    Ok(())
}

/// Removes what stands at a place; gives how many entries went.
pub(super) async fn remove(
    tx: &mut WriteTx<'_>,
    namespace: &str,
    path: &VfsPath,
    removal: Removal,
) -> Result<u64, ServiceError> {
    if path.is_top() {
        let below = match removal {
            Removal::Tree => vfs::delete_below(tx, namespace, path).await?,
            Removal::Alone => return Err(VfsError::NotEmpty { path: path.clone() }.into()),
        };
        return Ok(below);
    }
    let row = find(tx, namespace, path).await?;
    let mut removed = 1;
    if row.entry.kind == VfsKind::Folder {
        let (below, _) = vfs::measure(tx, namespace, path).await?;
        if below > 0 && removal == Removal::Alone {
            return Err(VfsError::NotEmpty { path: path.clone() }.into());
        }
        removed += vfs::delete_below(tx, namespace, path).await?;
    }
    vfs::delete(tx, row.entry_no).await?;
    Ok(removed)
}

/// Takes away what a layer has at a place; leaves a whiteout where what it lies over would show.
pub(super) async fn hide(
    tx: &mut WriteTx<'_>,
    place: Place<'_>,
    shows: bool,
) -> Result<(), ServiceError> {
    if let Some(row) = vfs::get(tx, place.namespace, place.path).await? {
        vfs::delete_below(tx, place.namespace, place.path).await?;
        vfs::delete(tx, row.entry_no).await?;
    }
    if shows {
        ensure_above(tx, place).await?;
        vfs::insert(tx, &place.new_entry(VfsKind::Whiteout)).await?;
    }
    Ok(())
}

fn folder(path: &VfsPath) -> ServiceError {
    VfsError::IsFolder { path: path.clone() }.into()
}

/// The top is always there and cannot be anything else.
pub(in crate::service) fn refuse_top(path: &VfsPath) -> Result<(), ServiceError> {
    if path.is_top() {
        return Err(folder(path));
    }
    Ok(())
}
