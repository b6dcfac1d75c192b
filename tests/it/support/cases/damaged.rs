//! Stores with a bad page, a store in the middle of a transaction, and files that only look like stores.

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::Connection;

use super::{CONFIG, Case, LegacyInstall, install};
use crate::support::expect::{Expected, Place, Refused, Why};
use crate::support::recipe;
use crate::support::rows::{Turn, chat, job, jsonl, run, turns};
use crate::support::sqlite::{self, Journal};

const SESSIONS: &str = "data/sessions/sessions.db";

/// A `sessions.db` whose metadata table cannot be read; its messages can, and their keys say whose they are.
pub(crate) fn damaged_metadata_page(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let chats: String = (1..=3)
        .map(|i| {
            chat(
                &format!("telegram_main_{i}_whole"),
                "2026-08-01",
                &turns(&format!("whole {i}"), 4),
            )
        })
        .collect();
    install.sqlite(SESSIONS, "sessions_v0_8.sql", &[&chats]);
    let page = sqlite::number(
        &install.path(SESSIONS),
        "SELECT rootpage FROM sqlite_schema WHERE name = 'session_metadata'",
    );
    ruin_page(&install, SESSIONS, page);

    let mut expected = Expected::default().refuse(bad_page(page));
    for i in 1..=3 {
        expected = expected.session("atlas", &format!("telegram_main_{i}_whole"), 4);
    }
    expected.stays.push(PathBuf::from(SESSIONS));
    (install, expected)
}

/// A `sessions.db` with one bad page in the middle of its messages: those before and after it can be read.
///
/// The index over key and id is whole, so the ids that are lost can be named.
pub(crate) fn damaged_message_page(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let long: Vec<Turn> = turns("long", 60)
        .into_iter()
        .map(|(role, text)| (role, text + &" and so on".repeat(45)))
        .collect();
    install.sqlite(
        SESSIONS,
        "sessions_v0_8.sql",
        &[&chat("telegram_main_1_holed", "2026-08-01", &long)],
    );

    let leaf = |what| {
        let query = format!(
            "SELECT {what} FROM dbstat WHERE name = 'sessions' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 2"
        );
        sqlite::number(&install.path(SESSIONS), &query)
    };
    let (page, lost) = (leaf("pageno"), leaf("ncell"));
    ruin_page(&install, SESSIONS, page);

    let readable = 60 - usize::try_from(lost).unwrap();
    let mut expected = Expected::default()
        .session("atlas", "telegram_main_1_holed", readable)
        .refuse(bad_page(page));
    expected.stays.push(PathBuf::from(SESSIONS));
    (install, expected)
}

fn bad_page(page: i64) -> Refused {
    Refused {
        path: PathBuf::from(SESSIONS),
        place: Place::Page(page),
        why: Why::DamagedPage,
        raw: Vec::new(),
    }
}

/// Overwrites a page, counted from 1, with bytes that are no page.
fn ruin_page(install: &LegacyInstall, store: &str, page: i64) {
    let path = install.path(store);
    let size = usize::try_from(sqlite::number(&path, "PRAGMA page_size")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let start = usize::try_from(page - 1).unwrap() * size;
    bytes[start..start + size].fill(0xA5);
    install.file(store, &bytes);
}

/// A `jobs.db` whose writer died in a transaction: the main file has half of it, the `-journal` beside it takes it back.
///
/// The transaction disabled every job and removed the runs. Without the journal that is what a reader would see, or worse.
pub(crate) fn hot_rollback_journal(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("jobs.db");
    let committed = [
        job("north", "0 7 * * *", "echo north"),
        job("south", "0 8 * * *", "echo south"),
        job("west", "0 9 * * *", "echo west"),
        "UPDATE cron_jobs SET agent_alias = 'atlas';".to_owned(),
        (0..4)
            .map(|minute| run("north", "2026-09-01", minute, "ok"))
            .collect(),
    ];
    let (main, journal) = sqlite::block_on(async {
        let mut connection = sqlite::open(&path, Journal::Rollback).await;
        sqlite::run_together(&mut connection, &[&recipe::ddl("cron_v0_8_4.sql")]).await;
        sqlite::run_together(&mut connection, &committed.each_ref().map(String::as_str)).await;
        // A cache of one page: the change below must reach the main file before its commit.
        sqlite::run(
            &mut connection,
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE",
        )
        .await;
        sqlite::run(
            &mut connection,
            "DELETE FROM cron_runs; UPDATE cron_jobs SET enabled = 0, last_output = hex(zeroblob(8000))",
        )
        .await;
        let bytes = (
            fs::read(&path).unwrap(),
            fs::read(sqlite::sidecar(&path, "-journal")).unwrap(),
        );
        sqlite::run(&mut connection, "ROLLBACK").await;
        connection.close().await.unwrap();
        bytes
    });
    assert!(
        journal.first().is_some_and(|byte| *byte != 0),
        "the journal is not hot"
    );
    install
        .file("data/cron/jobs.db", &main)
        .file("data/cron/jobs.db-journal", &journal);

    let mut expected = Expected::default()
        .job("north", Some("atlas"), Some(true))
        .job("south", Some("atlas"), Some(true))
        .job("west", Some("atlas"), Some(true));
    expected.runs = 4;
    (install, expected)
}

/// Files whose names promise a store and whose bytes are none: a probe database without tables, JSON lines under a
/// database's name (two cost records), a brain of no bytes, a temporary file of a rewrite. One real session lies among them.
pub(crate) fn decoys(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let cost = |id: u8| {
        format!(
            "{{\"id\":\"c0570000-0000-4000-8000-00000000000{id}\",\"usage\":{{\"model\":\"words\",\"input_tokens\":10,\
             \"output_tokens\":5,\"total_tokens\":15,\"cost_usd\":0.25,\"timestamp\":\"2026-03-01T08:00:0{id}Z\"}},\
             \"session_id\":\"5e550000-0000-4000-8000-000000000001\"}}\n"
        )
    };
    install
        .store(
            "data/memory.db",
            Journal::Rollback,
            "CREATE TABLE probe (x); DROP TABLE probe;",
            &[],
        )
        .file("data/.zeroclaw/costs.db", (cost(1) + &cost(2)).as_bytes())
        .file("data/memory/brain.db", b"")
        .file("data/sessions/.tmpAb3xYz", b"{\"role\":\"user\",\"con")
        .jsonl(
            "data/sessions/telegram_main_1_real.jsonl",
            &jsonl(&turns("real", 2)),
        );

    let expected = Expected::default().session("atlas", "telegram_main_1_real", 2);
    (install, expected)
}
