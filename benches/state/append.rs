//! Single appends: one client, and many at once.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroclaw::db::{Db, Durability};
use zeroclaw::model::NewEvent;
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::session::{self, SessionTail};
use zeroclaw::store::agent::transcript::{self, PlacedEvent};

use crate::Scale;
use crate::data::{self, event, events};
use crate::measure::{Table, Turns, median, ms, timed};
use crate::raw;

const CLIENTS: usize = 64;
const DATABASES: usize = 8;

/// Makes session `number`; events go to its small key.
async fn make_session(db: &Db, number: usize) -> i64 {
    let record = data::session(number);
    let made = db.write(move |tx| Box::pin(async move { session::insert(tx, &record).await }));
    let tail: Result<SessionTail, StoreError> = made.await;
    tail.unwrap().session_no
}

/// Appends one event and waits until it is on disk.
async fn append(db: &Db, session_no: i64, seq: usize, event: NewEvent) {
    let tail = SessionTail {
        session_no,
        last_seq: i64::try_from(seq).unwrap(),
    };
    let done = db.write(move |tx| {
        Box::pin(async move {
            let placed = PlacedEvent {
                session_no,
                seq: tail.last_seq,
                event: &event,
            };
            transcript::insert(tx, &[placed]).await?;
            session::grow(tx, tail, 1, 1, event.created_at_ms).await
        })
    });
    let done: Result<(), StoreError> = done.await;
    done.unwrap();
}

/// One client: at FULL and at NORMAL. Gives what one durable append takes.
pub(crate) async fn one_client(dir: &Path, scale: Scale, table: &mut Table) -> Duration {
    let mut durable = Duration::ZERO;
    for (durability, word, budget) in [
        (Durability::Full, "FULL", "≥ 0.6"),
        (Durability::Normal, "NORMAL", "≥ 0.3"),
    ] {
        let db = data::open(&data::fresh(dir, "ours"), durability).await;
        let conn = raw::open(&data::fresh(dir, "raw"), word);
        let session_no = make_session(&db, 0).await;
        raw::make_session(&conn);
        let mut turns = Turns::default();
        for round in 0..scale.rounds {
            let after = round * scale.appends;
            let events: Vec<_> = (after..after + scale.appends).map(event).collect();
            let ours = async {
                for (number, event) in events.iter().cloned().enumerate() {
                    append(&db, session_no, after + number + 1, event).await;
                }
            };
            turns.ours(timed(ours).await.0);
            turns.raw(timed(async { raw::append(&conn, after, &events) }).await.0);
        }
        table.both(
            &format!("append, 1 client, {word}"),
            &turns,
            scale.appends,
            budget,
        );
        if durability == Durability::Full {
            durable = turns.our_median() / u32::try_from(scale.appends).unwrap();
        }
        db.close().await;
    }
    durable
}

/// 64 clients on 8 databases, all durable: how much more than one client gets, and how even.
pub(crate) async fn many_clients(dir: &Path, scale: Scale, alone: Duration, table: &mut Table) {
    let mut dbs = Vec::new();
    for number in 0..DATABASES {
        let path = data::fresh(dir, &format!("many{number}"));
        dbs.push(Arc::new(data::open(&path, Durability::Full).await));
    }
    let since = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let db = Arc::clone(&dbs[client % DATABASES]);
            tokio::spawn(async move {
                let session_no = make_session(&db, client).await;
                let mut times = Vec::with_capacity(scale.appends_each);
                for (number, event) in events(scale.appends_each).into_iter().enumerate() {
                    times.push(timed(append(&db, session_no, number + 1, event)).await.0);
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    let each = since.elapsed() / u32::try_from(times.len()).unwrap();
    times.sort();
    let (middle, slow) = (median(times.clone()), times[times.len() * 99 / 100]);
    let gain = format!(
        "{:.1} × one client",
        alone.as_secs_f64() / each.as_secs_f64()
    );
    table.ours(
        "append, 64 clients on 8 databases, FULL",
        &ms(each),
        &gain,
        "≥ 5 ×",
    );
    let evenness = format!(
        "{:.1} × p50 {}",
        slow.as_secs_f64() / middle.as_secs_f64(),
        ms(middle)
    );
    table.ours("… slowest of a hundred", &ms(slow), &evenness, "≤ 20 ×");
    for db in dbs {
        Arc::into_inner(db).unwrap().close().await;
    }
}
