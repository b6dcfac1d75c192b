//! The same messages in more than one place.

use std::path::Path;

use super::{CONFIG, Case, install};
use crate::support::expect::Expected;
use crate::support::rows::{Turn, chat, jsonl, messages, metadata, receipt, turns};

/// A session whose four rows stand twice, as an interrupted import of before 0.8.5 left it, and one whose user said the
/// same thing twice.
///
/// Only the first may be collapsed: the second's rows are minutes apart.
pub(crate) fn duplicated_prefix(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let four = turns("once", 4);
    let twice: Vec<Turn> = four.iter().chain(&four).cloned().collect();
    // One start of the program: all within the same second.
    let times: Vec<String> = (1..=8)
        .map(|i| format!("2026-08-01T06:00:00.{i:03}+00:00"))
        .collect();
    let ok = vec![("user".to_owned(), "ok".to_owned()); 2];
    install.sqlite(
        "data/sessions/sessions.db",
        "sessions_v0_8.sql",
        &[
            &messages("telegram_main_1_twice", &twice, &times),
            &metadata("telegram_main_1_twice", &times[0], &times[7], 8),
            &chat("telegram_main_2_ok", "2026-08-02", &ok),
        ],
    );

    let mut expected = Expected::default()
        .session("atlas", "telegram_main_1_twice", 4)
        .session("atlas", "telegram_main_2_ok", 2);
    expected.already_present = 4;
    (install, expected)
}

/// Live session files whose keys already have rows: a file that is the start of the rows, one that goes on after them,
/// and one that says something else.
///
/// The third becomes a session of its own beside the rows; its key is the importer's choice.
pub(crate) fn live_beside_rows(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let (prefix, extension) = (turns("prefix", 5), turns("extension", 5));
    let rows = turns("conflict", 3);
    let mut other = rows.clone();
    other[1].1 = "conflict, said otherwise".to_owned();
    install
        .sqlite(
            "data/sessions/sessions.db",
            "sessions_v0_8.sql",
            &[
                &chat("telegram_main_1_prefix", "2026-08-01", &prefix),
                &chat("telegram_main_2_extension", "2026-08-02", &extension[..3]),
                &chat("telegram_main_3_conflict", "2026-08-03", &rows),
            ],
        )
        .jsonl(
            "data/sessions/telegram_main_1_prefix.jsonl",
            &jsonl(&prefix[..3]),
        )
        .jsonl(
            "data/sessions/telegram_main_2_extension.jsonl",
            &jsonl(&extension),
        )
        .jsonl(
            "data/sessions/telegram_main_3_conflict.jsonl",
            &jsonl(&other),
        );

    let mut expected = Expected::default()
        .session("atlas", "telegram_main_1_prefix", 5)
        .session("atlas", "telegram_main_2_extension", 5)
        .session("atlas", "telegram_main_3_conflict", 3)
        .session_of_any_key("atlas", 3);
    // Three lines of the first file, three of the second.
    expected.already_present = 6;
    (install, expected)
}

/// Files that the old importer had staged: one with an equal receipt and its rows, one without a receipt and without
/// rows, one whose receipt is for other bytes that it has grown beyond.
///
/// The first is only a copy. The second is live. The third's rows are its first two lines, so its tail is live.
pub(crate) fn staged_with_and_without_receipt(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let (equal, none, grown) = (turns("equal", 3), turns("none", 3), turns("grown", 4));
    let at = "2026-08-22T06:00:00+00:00";
    install
        .sqlite(
            "data/sessions/sessions.db",
            "sessions_v0_8.sql",
            &[
                &imported("telegram_main_1_equal", at, &equal),
                &receipt("telegram_main_1_equal", &jsonl(&equal), at),
                &imported("telegram_main_3_grown", at, &grown[..2]),
                &receipt("telegram_main_3_grown", &jsonl(&grown[..2]), at),
            ],
        )
        .jsonl(
            "data/sessions/telegram_main_1_equal.jsonl.importing",
            &jsonl(&equal),
        )
        .jsonl(
            "data/sessions/telegram_main_2_none.jsonl.importing",
            &jsonl(&none),
        )
        .jsonl(
            "data/sessions/telegram_main_3_grown.jsonl.importing",
            &jsonl(&grown),
        );

    let mut expected = Expected::default()
        .session("atlas", "telegram_main_1_equal", 3)
        .session("atlas", "telegram_main_2_none", 3)
        .session("atlas", "telegram_main_3_grown", 4);
    expected.already_present = 5;
    (install, expected)
}

/// Rows as the old importer wrote them: one time for all.
fn imported(key: &str, at: &str, turns: &[Turn]) -> String {
    messages(key, turns, &vec![at.to_owned(); turns.len()]) + &metadata(key, at, at, turns.len())
}
