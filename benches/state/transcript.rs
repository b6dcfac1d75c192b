//! Many events in, one transcript out, lists of sessions.

use std::path::Path;

use zeroclaw::db::{BulkTx, Db, Durability};
use zeroclaw::model::{Event, NewEvent, PageLimit};
use zeroclaw::store::agent::session::{self, SessionFilter};
use zeroclaw::store::agent::transcript::{self, PlacedEvent};

use crate::Scale;
use crate::data::{self, agent, events};
use crate::measure::{Table, Turns, median, ms, timed};
use crate::raw;

/// Makes a session and inserts its events, in one transaction.
pub(crate) async fn insert(db: &Db, events: &[NewEvent]) -> i64 {
    let mut bulk: BulkTx = db.begin_bulk().await.unwrap();
    let tail = session::insert(&mut bulk.tx(), &data::session(0))
        .await
        .unwrap();
    let placed: Vec<_> = (1..)
        .zip(events)
        .map(|(seq, event)| PlacedEvent {
            session_no: tail.session_no,
            seq,
            event,
        })
        .collect();
    for events in placed.chunks(transcript::MAX_INSERT) {
        transcript::insert(&mut bulk.tx(), events).await.unwrap();
    }
    bulk.commit().await.unwrap();
    tail.session_no
}

/// Events in one transaction, without their index.
pub(crate) async fn bulk_insert(dir: &Path, scale: Scale, table: &mut Table) {
    let events = events(scale.events);
    let mut turns = Turns::default();
    for _ in 0..scale.rounds {
        let db = data::open(&data::fresh(dir, "ours"), Durability::Full).await;
        turns.ours(timed(insert(&db, &events)).await.0);
        db.close().await;
        let conn = raw::open(&data::fresh(dir, "raw"), "FULL");
        raw::make_session(&conn);
        turns.raw(timed(async { raw::bulk_insert(&conn, &events) }).await.0);
    }
    let work = format!("insert {} events in bulk, each", events.len());
    table.both(&work, &turns, events.len(), "≥ 0.8, ≥ 0.6 from text");
}

/// A whole transcript, page by page.
pub(crate) async fn read(dir: &Path, scale: Scale, table: &mut Table) {
    let path = data::fresh(dir, "ours");
    let db = data::open(&path, Durability::Full).await;
    let events = events(scale.transcript);
    let session_no = insert(&db, &events).await;
    let conn = raw::open(&path, "FULL");
    let mut turns = Turns::default();
    for _ in 0..scale.rounds * 3 {
        let (took, ours) = timed(read_pages(&db, session_no)).await;
        turns.ours(took);
        let (took, raw) = timed(async { raw::read(&conn, session_no) }).await;
        turns.raw(took);
        assert_eq!(ours.len(), events.len());
        assert!(ours == raw, "both sides read the same");
    }
    table.both(
        &format!("read a transcript of {} events", events.len()),
        &turns,
        1,
        "≥ 0.55",
    );
    drop(conn);
    db.close().await;
}

async fn read_pages(db: &Db, session_no: i64) -> Vec<Event> {
    let mut conn = db.read().await.unwrap();
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = transcript::page(&mut conn, session_no, after, PageLimit::from(500));
        let page = page.await.unwrap();
        if page.is_empty() {
            return events;
        }
        events.extend(page);
    }
}

/// Sessions, a hundred a page, beside a large transcript.
pub(crate) async fn list_sessions(dir: &Path, scale: Scale, table: &mut Table) {
    let db = data::open(&data::fresh(dir, "ours"), Durability::Full).await;
    insert(&db, &events(scale.transcript)).await;
    let mut bulk = db.begin_bulk().await.unwrap();
    for number in 1..scale.sessions {
        let record = data::session(number);
        session::insert(&mut bulk.tx(), &record).await.unwrap();
    }
    bulk.commit().await.unwrap();
    let mut conn = db.read().await.unwrap();
    let mut times = Vec::new();
    for _ in 0..scale.rounds {
        let (mut seen, mut before) = (0, None::<String>);
        loop {
            let filter = SessionFilter::default();
            let limit = PageLimit::from(100);
            let owner = agent();
            let page = session::list(&mut conn, &owner, &filter, before.as_deref(), limit);
            let (took, page) = timed(page).await;
            let page = page.unwrap();
            times.push(took);
            seen += page.items.len();
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, scale.sessions);
    }
    let slowest = format!("slowest {}", ms(times.iter().copied().max().unwrap()));
    let work = format!("list {} sessions, a page of 100", scale.sessions);
    table.ours(&work, &ms(median(times)), &slowest, "≤ 5 ms");
    drop(conn);
    db.close().await;
}
