//! Which transcript is whose: by the file an entry names, by the id in a file's name, or nobody's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use zeroclaw::fs::FsError;

use super::file_name::{self, FileName};
use super::home::{Agent, Home, Standing, Transcript};
use super::index::Entry;
use crate::doctor::scan::{is_regular, names};
use crate::doctor::units::stable_uuid;

impl Home {
    /// Finds whose transcripts the files of a folder are.
    pub(super) fn place_transcripts(&mut self, folder: &Path, agent: &str) -> Result<(), FsError> {
        let mut files = Vec::new();
        for name in names(&self.root.join(folder))? {
            let Some(name) = name.to_str() else { continue };
            let of = file_name::of(name);
            let is_one = matches!(of, FileName::Transcript { .. } | FileName::Past { .. });
            if is_one && is_regular(&self.root.join(folder).join(name)) {
                files.push((name.to_owned(), of));
            }
        }
        let known = self.agents.entry(agent.to_owned()).or_default();
        let routed = routed_files(known, &files);
        let mut ids: BTreeSet<String> = routed.values().cloned().collect();
        ids.extend(known.owner_of.keys().cloned());
        for (name, of) in files {
            let relative = folder.join(&name);
            let (named_id, standing) = match of {
                FileName::Transcript { id } if routed.contains_key(&name) => (id, Standing::Routed),
                FileName::Transcript { id } if known.has_unreadable_index => {
                    (id, Standing::Unindexed)
                }
                FileName::Transcript { id } => (id, Standing::Lost),
                FileName::Past { id, why, at_ms } => (id, Standing::Past { why, at_ms }),
                FileName::Index | FileName::Other => continue,
            };
            let session_id = match routed.get(&name) {
                Some(id) => id.clone(),
                // A copy of a session that is there is one beside it.
                None if !ids.insert(named_id.clone()) => {
                    stable_uuid(&[b"openclaw transcript", agent.as_bytes(), name.as_bytes()])
                }
                None => named_id.clone(),
            };
            let word = match standing {
                Standing::Past { why, .. } => why,
                _ => "recovered",
            };
            let own = known
                .owning_key(&session_id)
                .filter(|_| standing == Standing::Routed);
            let key = own.map_or_else(
                || format!("agent:{agent}:{word}:{session_id}"),
                str::to_owned,
            );
            let transcript = Transcript {
                agent: agent.to_owned(),
                session_id,
                named_id,
                key,
                standing,
            };
            if standing == Standing::Routed {
                known
                    .files
                    .insert(transcript.session_id.clone(), relative.clone());
            }
            self.transcripts.insert(relative, transcript);
        }
        Ok(())
    }
}

/// Which file is the transcript of which session that a key leads to.
fn routed_files(agent: &Agent, files: &[(String, FileName)]) -> BTreeMap<String, String> {
    let mut by_name: BTreeMap<&str, &str> = BTreeMap::new();
    let mut by_id: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, of) in files {
        if let FileName::Transcript { id } = of {
            by_name.insert(name, id);
            by_id.entry(id).or_default().push(name);
        }
    }
    let mut routed: BTreeMap<String, String> = BTreeMap::new();
    // A session whose id the file has comes before one that only names the file.
    let mut entries: Vec<&Entry> = agent.entries.values().collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.updated_at_ms));
    let file_of = |entry: &Entry| -> Option<String> {
        let told = entry
            .file
            .as_deref()
            .filter(|file| !file.starts_with("sqlite:"));
        let parts = told.into_iter().flat_map(|file| file.split(['/', '\\']));
        let is_safe = parts.clone().all(|part| part != ".." && part != "~");
        let told = parts
            .last()
            .filter(|name| is_safe && by_name.contains_key(name));
        let by_id = || {
            let names = by_id.get(entry.session_id.as_str())?;
            let plain = format!("{}.jsonl", entry.session_id);
            names
                .iter()
                .find(|name| **name == plain)
                .or(names.first())
                .copied()
        };
        told.or_else(by_id).map(str::to_owned)
    };
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    for is_own in [true, false] {
        for entry in &entries {
            let Some(name) = file_of(entry) else { continue };
            if (by_name[name.as_str()] == entry.session_id) == is_own {
                let is_free = !routed.contains_key(&name) && placed.insert(&entry.session_id);
                if is_free {
                    routed.insert(name, entry.session_id.clone());
                }
            }
        }
    }
    routed
}
