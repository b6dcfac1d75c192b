//! Turns: one at a time, in order, and void with their owner.

use std::sync::Arc;
use std::time::Duration;

use zeroclaw::model::{Append, AppendEvent, PageLimit, SessionStatus, SessionTarget};
use zeroclaw::service::{Clock, DeleteOptions, ErrorKind, Request, Response, Service};

use super::{agent, folder, open, with_agents};
use crate::support::process::{part, played_on};
use crate::support::sqlite::block_on;

const NOW: i64 = 1_788_000_000_000;
const LONG: Duration = Duration::from_secs(30);

async fn with_session(root: &std::path::Path) -> Service {
    let atlas = agent("atlas");
    let service = with_agents(root, Clock::fixed(NOW), &[&atlas]).await;
    let to = SessionTarget::Id("s".to_owned());
    let append = Append::new(to, vec![AppendEvent::message("user", "hello")]);
    service.append(&atlas, append).await.unwrap();
    service
}

async fn status(service: &Service) -> SessionStatus {
    service.find_session(None, "s").await.unwrap().status
}

#[test]
fn a_second_caller_is_told_who_holds_the_turn_or_waits_in_order() {
    let dir = folder();
    block_on(async {
        let service = Arc::new(with_session(dir.path()).await);
        let atlas = agent("atlas");
        let first = service
            .begin_turn(&atlas, "s", "bot one", Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(status(&service).await, SessionStatus::Running);

        let refused = service
            .begin_turn(&atlas, "s", "bot two", Duration::ZERO)
            .await;
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..4 {
            let (service, order, atlas) = (Arc::clone(&service), Arc::clone(&order), atlas.clone());
            waiting.push(tokio::spawn(async move {
                let turn = service
                    .begin_turn(&atlas, "s", "waiting", LONG)
                    .await
                    .unwrap();
                order.lock().unwrap().push(number);
                turn.finish(SessionStatus::Done).await.unwrap();
            }));
            // Each stands in line before the next one comes.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
        first.finish(SessionStatus::Idle).await.unwrap();
        for waiting in waiting {
            waiting.await.unwrap();
        }

        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.to_string().contains("bot one"), "{refused}");
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
        assert_eq!(status(&service).await, SessionStatus::Done);
        Arc::into_inner(service).unwrap().close().await;
    });
}

#[test]
fn a_turn_can_be_asked_to_stop() {
    let dir = folder();
    block_on(async {
        let service = with_session(dir.path()).await;
        let atlas = agent("atlas");
        assert!(
            !service.cancel_turn(&atlas, "s").await.unwrap(),
            "nobody is there"
        );
        let mut turn = service
            .begin_turn(&atlas, "s", "bot", Duration::ZERO)
            .await
            .unwrap();
        assert!(!turn.is_cancelled() && !turn.beat().await.unwrap());

        assert!(service.cancel_turn(&atlas, "s").await.unwrap());

        turn.cancelled().await;
        assert!(turn.is_cancelled() && turn.beat().await.unwrap());
        let seen = service.turn(&atlas, "s").await.unwrap().unwrap();
        assert_eq!(
            (seen.owner.as_str(), seen.cancel_requested_at_ms),
            ("bot", Some(NOW))
        );
        turn.finish(SessionStatus::Killed).await.unwrap();
        assert_eq!(service.turn(&atlas, "s").await.unwrap(), None);
        service.close().await;
    });
}

#[test]
fn a_turn_that_is_dropped_is_interrupted() {
    let dir = folder();
    block_on(async {
        let service = Arc::new(with_session(dir.path()).await);
        let atlas = agent("atlas");
        let panicking = {
            let (service, atlas) = (Arc::clone(&service), atlas.clone());
            tokio::spawn(async move {
                let _turn = service
                    .begin_turn(&atlas, "s", "bot", Duration::ZERO)
                    .await
                    .unwrap();
                panic!("planted: the turn's task panics");
            })
        };
        assert!(panicking.await.is_err());

        // At once, whether or not the row says so yet.
        assert_eq!(status(&service).await, SessionStatus::Interrupted);
        let next = service.begin_turn(&atlas, "s", "bot", LONG).await.unwrap();
        assert_eq!(status(&service).await, SessionStatus::Running);
        next.finish(SessionStatus::Idle).await.unwrap();
        Arc::into_inner(service).unwrap().close().await;
    });
}

#[test]
fn what_must_not_happen_under_a_turn_is_refused() {
    let dir = folder();
    block_on(async {
        let service = with_session(dir.path()).await;
        let atlas = agent("atlas");
        let turn = service
            .begin_turn(&atlas, "s", "bot", Duration::ZERO)
            .await
            .unwrap();

        let deleted = service
            .delete_session(&atlas, "s", DeleteOptions::default())
            .await;
        let reset = service.reset_session(&atlas, "s").await;

        assert_eq!(deleted.unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(reset.unwrap_err().kind(), ErrorKind::Busy);
        turn.finish(SessionStatus::Idle).await.unwrap();
        assert!(
            service
                .delete_session(&atlas, "s", DeleteOptions::default())
                .await
                .is_ok()
        );
        service.close().await;
    });
}

/// Begins a turn and waits for its end.
#[tokio::test]
#[ignore = "a part of another test"]
async fn the_owner_that_is_killed() {
    let Some(root) = played_on() else { return };
    let service = open(&root, Clock::fixed(NOW)).await;
    let turn = service
        .begin_turn(&agent("atlas"), "s", "the killed one", LONG)
        .await;
    let _turn = turn.unwrap();
    println!("begun");
    std::future::pending::<()>().await;
}

#[test]
fn a_turn_whose_owner_died_is_not_running_and_is_closed_as_interrupted() {
    use std::io::BufRead;

    let dir = folder();
    block_on(async { with_session(dir.path()).await.close().await });
    let mut child = part("data::turn::the_owner_that_is_killed", dir.path())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let begun = lines
        .map_while(Result::ok)
        .any(|line| line.ends_with("begun"));
    assert!(begun, "the turn never began");
    child.kill().unwrap();
    child.wait().unwrap();

    block_on(async {
        let list = |status| Request::SessionsList {
            agent: None,
            channel: None,
            chat_type: None,
            status: Some(status),
            text: None,
            with_archived: false,
            since_ms: None,
            until_ms: None,
            before: None,
            limit: PageLimit::default(),
        };
        let count = async |service: &Service, status| match service.dispatch(list(status)).await {
            Ok(Response::Sessions(page)) => page.items.len(),
            other => panic!("{other:?}"),
        };
        // Whoever only looks sees it too, and writes nothing.
        let looking = Service::look(dir.path(), Clock::fixed(NOW)).await.unwrap();
        assert_eq!(status(&looking).await, SessionStatus::Interrupted);
        assert_eq!(count(&looking, SessionStatus::Running).await, 0);
        assert_eq!(count(&looking, SessionStatus::Interrupted).await, 1);
        looking.close().await;

        let service = open(dir.path(), Clock::fixed(NOW)).await;
        let closed = service.close_dead_turns(&agent("atlas")).await.unwrap();
        assert_eq!(closed, ["s"]);
        assert!(
            service
                .close_dead_turns(&agent("atlas"))
                .await
                .unwrap()
                .is_empty()
        );
        assert_eq!(status(&service).await, SessionStatus::Interrupted);
        let turn = service
            .begin_turn(&agent("atlas"), "s", "next", Duration::ZERO)
            .await;
        turn.unwrap().finish(SessionStatus::Idle).await.unwrap();
        service.close().await;
    });
}

#[test]
fn a_turn_keeps_its_agent_in_service_and_a_retired_agent_begins_none() {
    let dir = folder();
    block_on(async {
        let service = with_session(dir.path()).await;
        let atlas = agent("atlas");
        let turn = service
            .begin_turn(&atlas, "s", "bot one", Duration::ZERO)
            .await
            .unwrap();

        let refused = service.retire_agent(&atlas, None).await.unwrap_err();

        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.to_string().contains("bot one (pid "), "{refused}");
        turn.finish(SessionStatus::Done).await.unwrap();
        service.retire_agent(&atlas, None).await.unwrap();
        let refused = service
            .begin_turn(&atlas, "s", "bot one", Duration::ZERO)
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        service.activate_agent(&atlas).await.unwrap();
        let again = service.begin_turn(&atlas, "s", "bot one", Duration::ZERO);
        drop(again.await.unwrap());
        service.close().await;
    });
}
