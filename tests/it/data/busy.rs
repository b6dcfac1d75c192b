//! C43: other processes hold locks while messages are stored.

use std::time::Duration;

use zeroclaw::model::{
    Append, AppendEvent, PageLimit, SessionTarget, TranscriptCursor, TranscriptOrder,
};
use zeroclaw::service::{Clock, ErrorKind};

use super::{agent, folder, is_one_chain, with_agents};
use crate::support::process::{part, played_on, wait_until};
use crate::support::sqlite::{Journal, block_on, open, run};

/// Rounds of holding the write lock, and how long each: `ZEROCLAW_HOLD=20x3000` is what was reported.
fn rounds() -> (u32, Duration) {
    let text = std::env::var("ZEROCLAW_HOLD").unwrap_or_else(|_| "4x400".to_owned());
    let (rounds, millis) = text.split_once('x').unwrap();
    let millis = Duration::from_millis(millis.parse().unwrap());
    (rounds.parse().unwrap(), millis)
}

/// Takes the write lock of a database again and again.
#[test]
#[ignore = "run by the tests beside it, in a process of its own"]
fn holder() {
    let Some(path) = played_on() else {
        return;
    };
    block_on(async {
        let mut conn = open(&path, Journal::Wal).await;
        run(&mut conn, "PRAGMA busy_timeout = 5000").await;
        let (rounds, held) = rounds();
        for _ in 0..rounds {
            run(
                &mut conn,
                "BEGIN IMMEDIATE; UPDATE schema_meta SET app_version = app_version",
            )
            .await;
            std::fs::write(path.with_extension("held"), "").unwrap();
            tokio::time::sleep(held).await;
            run(&mut conn, "COMMIT").await;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        std::fs::write(path.with_extension("done"), "").unwrap();
    });
}

/// Holds the write lock until a file beside the database says to let go.
#[test]
#[ignore = "run by the tests beside it, in a process of its own"]
fn stubborn_holder() {
    let Some(path) = played_on() else {
        return;
    };
    block_on(async {
        let mut conn = open(&path, Journal::Wal).await;
        run(&mut conn, "BEGIN IMMEDIATE").await;
        std::fs::write(path.with_extension("held"), "").unwrap();
        wait_until("to let go", || path.with_extension("let-go").exists());
        run(&mut conn, "ROLLBACK").await;
    });
}

fn said(text: String) -> Append {
    let key = SessionTarget::Key("telegram:main:42".to_owned());
    Append::new(key, vec![AppendEvent::message("user", text)])
}

#[test]
fn c43_messages_are_all_stored_in_order_beside_one_who_locks_and_one_who_reads() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::system(), &[&atlas]).await;
        let first = service.append(&atlas, said("0".to_owned())).await.unwrap();
        let path = service.layout().agent_db("atlas");
        let mut reader = open(&path, Journal::Wal).await;
        run(&mut reader, "BEGIN; SELECT count(*) FROM transcript_events").await;
        let mut other = part("data::busy::holder", &path).spawn().unwrap();
        wait_until("the lock to be held", || {
            path.with_extension("held").exists()
        });

        let mut number = 1;
        while !path.with_extension("done").exists() {
            service
                .append(&atlas, said(number.to_string()))
                .await
                .unwrap();
            number += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        run(&mut reader, "COMMIT").await;

        assert!(other.wait().unwrap().success());
        let mut stored = Vec::new();
        let order = TranscriptOrder::Accepted;
        loop {
            let after = TranscriptCursor::After(
                stored
                    .last()
                    .map_or(0, |event: &zeroclaw::model::Event| event.seq),
            );
            let limit = PageLimit::from(500);
            let page = service
                .transcript(&atlas, &first.session_id, order, after, limit)
                .await;
            let page = page.unwrap();
            stored.extend(page.events);
            if page.next_after.is_none() {
                break;
            }
        }
        is_one_chain(&stored);
        let texts: Vec<_> = stored.iter().map(|event| event.text.clone()).collect();
        assert_eq!(
            texts,
            (0..number)
                .map(|number| number.to_string())
                .collect::<Vec<_>>()
        );
        assert!(
            number > i32::try_from(rounds().0).unwrap(),
            "some between the rounds: {number}"
        );
        service.close().await;
    });
}

#[test]
fn c43_beyond_the_wait_a_message_is_refused_by_the_name_of_its_database_and_goes_through_later() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::system(), &[&atlas]).await;
        let path = service.layout().agent_db("atlas");
        let mut other = part("data::busy::stubborn_holder", &path).spawn().unwrap();
        wait_until("the lock to be held", || {
            path.with_extension("held").exists()
        });

        let refused = service
            .append(&atlas, said("a".to_owned()).with_key("a"))
            .await
            .unwrap_err();
        std::fs::write(path.with_extension("let-go"), "").unwrap();
        other.wait().unwrap();

        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        assert!(
            refused.to_string().contains(path.to_str().unwrap()),
            "{refused}"
        );
        let again = service
            .append(&atlas, said("a".to_owned()).with_key("a"))
            .await
            .unwrap();
        if cfg!(target_os = "linux") {
            let holder = format!("held by process {} (", other.id());
            assert!(refused.to_string().contains(&holder), "{refused}");
        }
        assert!(!again.is_repeat, "nothing of the refused one remains");
        service.close().await;
    });
}
