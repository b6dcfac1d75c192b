//! Old files that come back after they were imported.

use zeroclaw::model::{AgentId, NewEvent, Tier};
use zeroclaw::service::{Clock, HolderKind, Importer, Service};
use zeroclaw::store::agent::{session, transcript};

use super::state::{State, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::rows::{job, jsonl, run, turns};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal, block_on};

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n";
const KEY: &str = "telegram_main_1_talk";
const FILE: &str = "data/sessions/telegram_main_1_talk.jsonl";

fn home_with_talk(messages: usize) -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install
        .config(CONFIG)
        .jsonl(FILE, &jsonl(&turns("talk", messages)));
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    (home, install)
}

fn texts(home: &Sandbox) -> Vec<String> {
    let query = "SELECT text FROM transcript_events ORDER BY session_no, seq";
    sqlite::rows(&State::of(home.root()).agent("atlas"), query).concat()
}

/// Adds messages to the one session, as a runtime does after the import.
fn go_on(home: &Sandbox, texts: &[&str]) {
    let root = home.root();
    block_on(async {
        let service = Service::open(&root, Clock::system(), HolderKind::Doctor).await;
        let importer = Importer::new(service.unwrap());
        let atlas = Tier::Agent(AgentId::new("atlas").unwrap());
        let mut tx = importer.begin(&atlas).await.unwrap();
        let id = session::routed(&mut tx.tx(), KEY).await.unwrap().unwrap();
        let tail = session::tail(&mut tx.tx(), &id).await.unwrap().unwrap();
        let events: Vec<NewEvent> = texts.iter().map(|text| said(text)).collect();
        let placed: Vec<_> = (tail.last_seq + 1..)
            .zip(&events)
            .map(|(seq, event)| transcript::PlacedEvent {
                session_no: tail.session_no,
                seq,
                event,
            })
            .collect();
        transcript::insert(&mut tx.tx(), &placed).await.unwrap();
        let count = i64::try_from(texts.len()).unwrap();
        session::grow(&mut tx.tx(), tail, count, count, 1)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        importer
            .index(&AgentId::new("atlas").unwrap())
            .await
            .unwrap();
        importer.close().await;
    });
}

fn said(text: &str) -> NewEvent {
    NewEvent {
        event_id: format!("later {text}"),
        event_type: "message".to_owned(),
        role: Some("user".to_owned()),
        parent_id: None,
        idempotency_key: None,
        created_at_ms: 1,
        text: text.to_owned(),
        event_json: None,
    }
}

#[test]
fn c07_a_file_that_comes_back_is_archived_and_rolls_nothing_back() {
    let (home, install) = home_with_talk(5);
    go_on(&home, &["talk 6, here", "talk 7, here"]);
    let before = texts(&home);
    install.jsonl(FILE, &jsonl(&turns("talk", 5)));

    let looked = home.zeroclaw(&["doctor", "--json"]).exits(7).json();
    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json();

    assert_eq!(before.len(), 7);
    assert_eq!(texts(&home), before);
    assert_eq!(source(&looked, FILE).unwrap()["action"], "archive");
    let back = source(&report, FILE).unwrap();
    assert_eq!(back["status"], "archived");
    assert!(
        back["reason"].as_str().unwrap().contains("imported before"),
        "{back}"
    );
    assert!(!install.path(FILE).exists());
    assert!(install.path(back["now_at"].as_str().unwrap()).exists());
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn c07_of_a_file_that_comes_back_longer_only_the_tail_comes_in() {
    let (home, install) = home_with_talk(5);
    install.jsonl(FILE, &jsonl(&turns("talk", 8)));

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json();

    let wanted: Vec<String> = turns("talk", 8).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts(&home), wanted);
    let counts = &source(&report, FILE).unwrap()["counts"];
    assert_eq!(counts["messages"]["imported"], 3, "{counts}");
    assert_eq!(counts["messages"]["records"], 8, "{counts}");
    assert_eq!(counts["sessions"]["present"], 1, "{counts}");
}

#[test]
fn c07_a_file_that_comes_back_shorter_takes_nothing_away() {
    let (home, install) = home_with_talk(5);
    install.jsonl(FILE, &jsonl(&turns("talk", 2)));

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    assert_eq!(texts(&home).len(), 5);
    assert_eq!(State::of(home.root()).sessions().len(), 1);
}

#[test]
fn c07_a_file_that_comes_back_saying_something_else_is_kept_beside_and_told() {
    let (home, install) = home_with_talk(5);
    let mut other = turns("talk", 5);
    other[2].1 = "something else".to_owned();
    install.jsonl(FILE, &jsonl(&other));

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json();

    assert_eq!(texts(&home).len(), 10);
    let sessions = State::of(home.root()).sessions();
    assert_eq!(
        sessions.iter().map(|session| session.2).collect::<Vec<_>>(),
        [5, 5]
    );
    let codes = findings(&report);
    assert!(
        codes.iter().any(|(code, _)| code == "conflicting-session"),
        "{codes:?}"
    );
    // The key still leads to the session that was there.
    let routed = "SELECT s.session_no FROM session_routes r JOIN sessions s USING (session_id)";
    assert_eq!(
        sqlite::number(&State::of(home.root()).agent("atlas"), routed),
        1
    );
}

#[test]
fn c07_a_job_store_that_comes_back_changed_is_merged_by_key() {
    const JOBS: &str = "data/cron/jobs.db";
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let owned = "UPDATE cron_jobs SET agent_alias = 'atlas'";
    let first = job("kept", "0 9 * * *", "echo first");
    let earlier = run("kept", "2026-09-01", 0, "ok");
    install
        .config(CONFIG)
        .sqlite(JOBS, "cron_v0_8_4.sql", &[&first, owned, &earlier]);
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    let changed = job("kept", "0 10 * * *", "echo changed by the old program")
        + &job("new", "0 11 * * *", "echo new");
    let later = run("kept", "2026-09-02", 0, "ok");
    install.sqlite(
        JOBS,
        "cron_v0_8_4.sql",
        &[&changed, owned, &earlier, &later],
    );

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json();

    let state = State::of(home.root());
    let jobs = sqlite::rows(
        &state.global(),
        "SELECT job_id, payload_message FROM cron_jobs ORDER BY job_id",
    );
    assert_eq!(jobs, [["kept", "echo first"], ["new", "echo new"]]);
    assert_eq!(state.runs(), 2);
    let counts = &source(&report, JOBS).unwrap()["counts"];
    assert_eq!(counts["cron jobs"]["imported"], 1, "{counts}");
    assert_eq!(counts["cron jobs"]["merged"], 1, "{counts}");
    assert_eq!(counts["cron runs"]["present"], 1, "{counts}");
}

#[test]
fn c25_a_log_without_its_database_is_reported_and_not_followed() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let pair = sqlite::pair(
        &crate::support::recipe::ddl("brain_v0_8_3.sql"),
        &[],
        &["CREATE TABLE x (y)"],
    );
    install
        .config(CONFIG)
        .file("data/memory/brain.db-wal", &pair.wal);
    let before = home.tree();

    for _ in 0..3 {
        let report = home
            .zeroclaw(&["doctor", "--fix", "--json"])
            .exits(1)
            .json();
        let lone = ("lone-sidecar".to_owned(), "warning".to_owned());
        let fresh = ("no-state".to_owned(), "advice".to_owned());
        assert_eq!(findings(&report), [lone, fresh]);
        assert_eq!(report["findings"][0]["place"], "data/memory/brain.db-wal");
    }

    home.is_unchanged_since(&before);
}

#[test]
fn a_store_the_old_program_made_anew_is_merged() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let chat = |key: &str| crate::support::rows::chat(key, "2026-09-01", &turns(key, 2));
    let store = "data/sessions/sessions.db";
    install
        .config(CONFIG)
        .sqlite(store, "sessions_v0_8.sql", &[&chat("telegram_main_1_a")]);
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    assert!(!install.path(store).exists());
    install.sqlite(store, "sessions_v0_8.sql", &[]);
    install.alter(store, Journal::Wal, &chat("telegram_main_2_b"));

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    let keys: Vec<_> = State::of(home.root())
        .sessions()
        .into_iter()
        .map(|s| s.1)
        .collect();
    assert_eq!(keys, ["telegram_main_1_a", "telegram_main_2_b"]);
}
