//! Brains with a wrong index or rows that cannot be read.

use std::path::{Path, PathBuf};

use super::{AGENT_ROWS, ATLAS, BIRCH, CONFIG, Case, DEFAULT, install};
use crate::support::expect::{Expected, Place, Refused, Why};
use crate::support::recipe;
use crate::support::rows::owned_memory;
use crate::support::sqlite::Journal;

const BRAIN: &str = "data/memory/brain.db";
const AT: &str = "2026-08-01T09:00:00.500+02:00";

/// A brain whose text index lacks three rows and has the old words of two: what a release without triggers left.
///
/// `integrity_check` calls it sound; only the index's own check at rank 1 does not.
pub(crate) fn c35_fts_drift(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let indexed: String = (1..=3)
        .map(|i| {
            owned_memory(
                &format!("atlas_{i}"),
                &format!("the willow stands at gate {i}"),
                AT,
                ATLAS,
            )
        })
        .chain((1..=2).map(|i| owned_memory(&format!("birch_{i}"), "the alder is old", AT, BIRCH)))
        .collect();
    let unseen: String = (1..=3)
        .map(|i| {
            owned_memory(
                &format!("late_{i}"),
                &format!("the rowan came {i} years later"),
                AT,
                ATLAS,
            )
        })
        .collect();
    let drift = format!(
        "DROP TRIGGER memories_ai; DROP TRIGGER memories_ad; DROP TRIGGER memories_au;
         {unseen}
         UPDATE memories SET content = 'the hazel is old' WHERE key IN ('birch_1', 'birch_2');
         {}",
        recipe::triggers("brain_v0_8_3.sql").concat()
    );
    install.sqlite(BRAIN, "brain_v0_8_3.sql", &[AGENT_ROWS, &indexed, &drift]);

    let mut expected = Expected::default().memory("atlas", 6).memory("birch", 2);
    expected.found = vec![
        ("atlas", "willow", 3),
        ("atlas", "rowan", 3),
        ("birch", "hazel", 2),
        ("birch", "alder", 0),
    ];
    (install, expected)
}

/// Seven memories: an ordinary one, one dated in the year 9999, two with the same key, one whose content is a BLOB, one
/// whose content is text that is not UTF-8, and one without a key.
///
/// The last three may go in only if the importer keeps them whole; else they are named. The schema is the current one
/// without the two constraints that forbid this, as repair tools leave it.
pub(crate) fn c37_undecodable_memories(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let ddl = without(
        &without(
            &recipe::ddl("brain_v0_8_3.sql"),
            "key           TEXT NOT NULL,",
            "key           TEXT,",
        ),
        "REFERENCES agents(id),\n    UNIQUE (agent_id, key)",
        "REFERENCES agents(id)",
    );
    let rows = [
        owned_memory("ordinary", "an ordinary row", AT, DEFAULT),
        owned_memory(
            "far",
            "from the last year there is",
            "9999-12-31T23:59:59.999999999+00:00",
            DEFAULT,
        ),
        owned_memory("twin", "the older twin", AT, DEFAULT),
        owned_memory(
            "twin",
            "the newer twin",
            "2026-08-03T09:00:00+02:00",
            DEFAULT,
        )
        .replace("'id-twin'", "'id-twin-2'"),
        owned_memory("blob", "-", AT, DEFAULT).replace("'-'", "X'ff00'"),
        owned_memory("bytes", "-", AT, DEFAULT).replace("'-'", "CAST(X'61ff62' AS TEXT)"),
        owned_memory("nokey", "a row without a key", AT, DEFAULT).replace("'nokey'", "NULL"),
    ];
    install.store(
        BRAIN,
        Journal::Wal,
        &ddl,
        &rows.each_ref().map(String::as_str),
    );

    let refuse = |rowid, why, raw: &[u8]| Refused {
        path: PathBuf::from(BRAIN),
        place: Place::Row {
            table: "memories",
            rowid,
        },
        why,
        raw: raw.to_vec(),
    };
    let expected = Expected::default()
        .memory("default", 4)
        .refuse(refuse(5, Why::WrongType, b"\xFF\x00"))
        .refuse(refuse(6, Why::NotUtf8, b"a\xFFb"))
        .refuse(refuse(7, Why::Missing, b""));
    (install, expected)
}

fn without(ddl: &str, from: &str, to: &str) -> String {
    assert!(
        ddl.contains(from),
        "the schema text no longer says {from:?}"
    );
    ddl.replacen(from, to, 1)
}
