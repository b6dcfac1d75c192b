//! What the files beside a session index are, by their names: many end like a transcript and are none.

use crate::doctor::units::LegacyTime;

/// A file of a folder of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileName {
    /// `<id>.jsonl`, `<id>-topic-<t>.jsonl`, `<time>_<id>.jsonl`: a transcript in use.
    Transcript {
        /// Id of its session, by the name.
        id: String,
    },
    /// `<id>.jsonl.<why>.<time>`: a transcript that was moved aside.
    Past {
        /// Id of its session, by the name.
        id: String,
        /// `reset`, `deleted` or `bak`.
        why: &'static str,
        /// When, where the name says it.
        at_ms: Option<i64>,
    },
    /// The index.
    Index,
    /// Anything else.
    Other,
}

/// Tells what a file is.
pub(crate) fn of(name: &str) -> FileName {
    if name == INDEX {
        return FileName::Index;
    }
    if let Some(stem) = name.strip_suffix(".jsonl") {
        let is_side = stem.ends_with(".trajectory")
            || stem.ends_with(".acp-stream")
            || stem.contains(".checkpoint.");
        return match is_side || stem.is_empty() {
            true => FileName::Other,
            false => FileName::Transcript { id: id_of(stem) },
        };
    }
    for why in ["reset", "deleted", "bak"] {
        if let Some((stem, time)) = name.split_once(&format!(".jsonl.{why}.")) {
            let is_packed = time.ends_with(".zst") || time.ends_with(".gz");
            let is_time = time.starts_with(|c: char| c.is_ascii_digit());
            if is_packed || !is_time || stem.is_empty() {
                return FileName::Other;
            }
            return FileName::Past {
                id: id_of(stem),
                why,
                at_ms: time_of(time),
            };
        }
    }
    FileName::Other
}

/// Name of the index.
pub(crate) const INDEX: &str = "sessions.json";

/// The id within a stem: without its topic behind it and its time before it.
fn id_of(stem: &str) -> String {
    let stem = stem.rsplit_once("-topic-").map_or(stem, |(id, _)| id);
    match stem.split_once('_') {
        Some((time, id)) if time.contains('T') && time_of(time).is_some() => id.to_owned(),
        _ => stem.to_owned(),
    }
}

/// A time in a name: `2026-11-30T15-46-55.782Z`, also with colons, with or without an ending behind it.
fn time_of(text: &str) -> Option<i64> {
    let end = text.find('Z')?;
    let (day, time) = text[..end].split_once('T')?;
    let mut time: String = time.replacen('-', ":", 2);
    if let Some(at) = time.find('-') {
        time.replace_range(at..=at, ".");
    }
    LegacyTime::parse(&format!("{day}T{time}Z")).map(LegacyTime::ms)
}

/// Whether an id may name a session: `[a-z0-9][a-z0-9._-]{0,127}`, whatever the case.
pub(crate) fn is_safe_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    id.len() <= 128
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_name_before_it_is_opened() {
        let transcript = |id: &str| FileName::Transcript { id: id.to_owned() };
        assert_eq!(of("a-1.jsonl"), transcript("a-1"));
        assert_eq!(of("a-1-topic-7%2F.jsonl"), transcript("a-1"));
        assert_eq!(of("2026-11-30T15-46-55-782Z_a-1.jsonl"), transcript("a-1"));
        assert_eq!(of("my_session.jsonl"), transcript("my_session"));
        let reset = FileName::Past {
            id: "a-1".to_owned(),
            why: "reset",
            at_ms: Some(1_796_053_615_782),
        };
        assert_eq!(of("a-1.jsonl.reset.2026-11-30T15-46-55.782Z"), reset);
        for other in [
            "a-1.trajectory.jsonl",
            "a-1.acp-stream.jsonl",
            "a-1.checkpoint.5b.jsonl",
            "a-1.jsonl.deleted.2026-11-30T15-46-55.782Z.0123.zst",
            "a-1.jsonl.lock",
            "a-1.jsonl.bak-12-9",
            "a-1.jsonl.migrated",
            ".jsonl",
        ] {
            assert_eq!(of(other), FileName::Other, "{other}");
        }
        assert!(
            is_safe_id("0a.B_-") && !is_safe_id("../x") && !is_safe_id("") && !is_safe_id("-a")
        );
    }
}
