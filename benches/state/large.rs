//! A few huge events among many: lists, pages and searches pass them by.

use std::path::Path;
use std::time::Duration;

use zeroclaw::db::Durability;
use zeroclaw::model::{
    AgentId, Append, AppendEvent, NewEvent, PageLimit, Payloads, SessionTarget, TranscriptCursor,
    TranscriptOrder,
};
use zeroclaw::service::{Clock, HolderKind, Request, Response, Service};
use zeroclaw::store::agent::search::{self, SearchFilter, SearchOrder};

use crate::Scale;
use crate::data::{self, agent, event};
use crate::measure::{Table, median, ms, timed};
use crate::transcript::insert;

const MEGABYTE: usize = 1_000_000;

/// 2,000 events, 50 of them of 2 MB and one of 30 MB.
fn events() -> Vec<NewEvent> {
    let payload = |megabytes: usize| Some(format!("\"{}\"", "A".repeat(megabytes * MEGABYTE)));
    (0..2_000)
        .map(|number| NewEvent {
            event_json: match number {
                1_000 => payload(30),
                number if number % 40 == 7 => payload(2),
                _ => None,
            },
            ..event(number)
        })
        .collect()
}

/// Searches and pages beside large payloads.
pub(crate) async fn pass_by(dir: &Path, scale: Scale, table: &mut Table) {
    let db = data::open(&data::fresh(dir, "large"), Durability::Full).await;
    let session_no = insert(&db, &events()).await;
    let mut bulk = db.begin_bulk().await.unwrap();
    search::index_slice(&mut bulk.tx()).await.unwrap();
    bulk.commit().await.unwrap();
    let mut conn = db.read().await.unwrap();
    for (name, order, budget) in [
        ("newest first", SearchOrder::Newest, "≤ 5 ms"),
        ("best first", SearchOrder::Rank, "≤ 100 ms"),
    ] {
        let mut times = Vec::new();
        for _ in 0..scale.rounds * 3 {
            let owner = agent();
            let limit = PageLimit::from(20);
            let (took, page) = timed(search::search(
                &mut conn,
                &owner,
                "common",
                order,
                &SearchFilter::default(),
                limit,
            ))
            .await;
            times.push(took);
            assert!(!page.unwrap().is_empty());
        }
        let work = format!("search beside 130 MB of payload, {name}");
        table.ours(&work, &ms(median(times)), "", budget);
    }
    let mut times = Vec::new();
    for _ in 0..scale.rounds * 3 {
        let run = zeroclaw::store::agent::branch::Run {
            first: 1_001,
            last: i64::MAX,
        };
        let limit = PageLimit::from(100);
        let end = zeroclaw::store::agent::transcript::end_of(
            &mut conn,
            session_no,
            run,
            limit,
            Payloads::Bounded,
        );
        let (took, end) = timed(end).await;
        times.push(took);
        assert!(end.unwrap().is_some());
    }
    table.ours(
        "… size of the newest page",
        &ms(median(times)),
        "",
        "≤ 5 ms",
    );
    drop(conn);
    db.close().await;
}

/// One event at a time through the service, with its index: what a runtime pays. Then pages of a long transcript.
pub(crate) async fn through_the_service(dir: &Path, scale: Scale, table: &mut Table) {
    let root = dir.join("root");
    let opened = Service::init(&root, Clock::system(), HolderKind::Cli).await;
    let service = opened.unwrap().0;
    let atlas = AgentId::new("atlas").unwrap();
    service.add_agent(&atlas).await.unwrap();
    let mut times: Vec<Duration> = Vec::new();
    for number in 0..scale.appends {
        let text = event(number).text;
        let to = SessionTarget::Id("s".to_owned());
        let append = Append::new(to, vec![AppendEvent::message("user", text)]);
        let (took, done) = timed(service.append(&atlas, append)).await;
        done.unwrap();
        times.push(took);
    }
    table.ours(
        "append through the service, indexed",
        &ms(median(times)),
        "",
        "",
    );
    for (name, cursor) in [
        ("newest", TranscriptCursor::Newest),
        ("oldest", TranscriptCursor::After(0)),
    ] {
        let mut times = Vec::new();
        for _ in 0..scale.rounds * 3 {
            let limit = PageLimit::from(100);
            let page = service.transcript(&atlas, "s", TranscriptOrder::Branch, cursor, limit);
            let (took, page) = timed(page).await;
            times.push(took);
            assert!(!page.unwrap().events.is_empty());
        }
        table.ours(
            &format!("… the {name} page of it"),
            &ms(median(times)),
            "",
            "",
        );
    }
    let request = Request::SessionsList {
        agent: None,
        channel: None,
        chat_type: None,
        status: None,
        text: None,
        with_archived: false,
        since_ms: None,
        until_ms: None,
        before: None,
        limit: PageLimit::from(100),
    };
    let (_, answer) = timed(service.dispatch(request)).await;
    assert!(matches!(answer, Ok(Response::Sessions(page)) if page.items.len() == 1));
    service.close().await;
}
