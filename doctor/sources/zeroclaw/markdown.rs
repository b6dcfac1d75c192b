//! `MEMORY.md`, `memory/YYYY-MM-DD.md`, `memory/archive/*.md`: memories as files, where the backend is `markdown`.
//!
//! A line that starts with `#` is a heading; `- **<key>**: <content>` is an entry, and so is every other
//! line that is not blank: a content of several lines was several entries to the old reader too. People
//! edit these files, so an entry is known by its text and not by its line. The files stay; they are indexed.
//! With another backend they are prompt text of an agent and no memories.
//!
//! Known faults: bytes that are no UTF-8 (taken leniently), entries that stand twice.

use std::path::{Component, Path};
use std::time::UNIX_EPOCH;

use zeroclaw::fs::FsError;
use zeroclaw::model::{IndexedFile, MemoryFileParser, Tier};

use super::super::lines::Lines;
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::names::escaped;
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Owner};

/// The backend under which these files are memories.
const BACKEND: &str = "markdown";

/// Whose memories a file holds; `None` where it holds none.
pub(crate) fn owner(relative: &Path, owners: &Owners) -> Option<Result<Owner, String>> {
    let parts: Vec<&str> = relative
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let config = owners.config();
    match parts.as_slice() {
        ["agents", alias, "workspace", ..] => {
            let own = config.agents.get(*alias);
            let is_memory = own.is_some_and(|own| own.memory_backend == BACKEND);
            is_memory.then(|| owners.of_alias(Some(alias)))
        }
        // Shared by all agents that have no store of their own kind.
        ["data" | "workspace", ..] => {
            let kind = config.memory_backend.split('.').next();
            (kind == Some(BACKEND)).then(|| owners.fallback())
        }
        _ => None,
    }
}

/// Streams the one file as a row with its entries.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    relative: &Path,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let Some(owner) = owner(relative, owners) else {
        return Ok(());
    };
    let owner = owner.map_err(|reason| ReadError::Format { reason })?;
    let mut out = Batcher::new(sink);
    let name = escaped(relative);
    if owner.is_fallback {
        let note = Item::Note {
            code: "owner-by-rule",
            place: name.clone(),
            message: format!("is shared by all agents; given to {}", owner.agent),
        };
        out.push(note, 0).await?;
    }
    // As the library's own indexing names it, or a file would be indexed twice.
    let file = indexed(path, relative.to_str().map_or(name, str::to_owned))?;
    let bytes = usize::try_from(file.size_bytes).unwrap_or(0);
    let item = Item::Record {
        tier: Tier::Agent(owner.agent),
        record: file.into(),
    };
    out.push(item, bytes).await?;
    out.flush().await
}

fn indexed(path: &Path, name: String) -> Result<IndexedFile, ReadError> {
    let meta = std::fs::metadata(path).map_err(FsError::at("look at", path))?;
    let mtime = meta.modified().map_err(FsError::at("look at", path))?;
    let mtime_ms = mtime
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    let own = path.file_name().and_then(|name| name.to_str());
    let mut parser = MemoryFileParser::new(own.unwrap_or_default());
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        parser.line(&line.bytes);
    }
    let size = i64::try_from(meta.len()).unwrap_or(i64::MAX);
    Ok(parser.finish(name, mtime_ms, size))
}
