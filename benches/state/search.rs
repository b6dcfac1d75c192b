//! The full-text index, searches over it, and copies of a database.

use std::path::Path;

use zeroclaw::db::{Durability, SnapshotSource};
use zeroclaw::model::PageLimit;
use zeroclaw::store::agent::search::{self, SearchFilter, SearchOrder};

use crate::Scale;
use crate::data::{self, agent, events};
use crate::measure::{Table, Turns, median, ms, timed};
use crate::raw;
use crate::transcript::insert;

/// Builds the index after an insert, then searches.
pub(crate) async fn build_and_search(dir: &Path, scale: Scale, table: &mut Table) {
    let db = data::open(&data::fresh(dir, "searched"), Durability::Full).await;
    let events = events(scale.events);
    let (inserted, _) = timed(insert(&db, &events)).await;
    let (indexed, ()) = timed(async {
        loop {
            let mut bulk = db.begin_bulk().await.unwrap();
            let taken = search::index_slice(&mut bulk.tx()).await.unwrap();
            bulk.commit().await.unwrap();
            if taken == 0 {
                break;
            }
        }
    })
    .await;
    let ratio = format!(
        "{:.2} × insert",
        indexed.as_secs_f64() / inserted.as_secs_f64()
    );
    let work = format!("index {} events after an insert", events.len());
    table.ours(&work, &ms(indexed), &ratio, "≤ 4 ×");

    for (word, order, name, budget) in [
        (
            "rare7",
            SearchOrder::Newest,
            "rare word, newest first",
            "≤ 5 ms at 1 M",
        ),
        (
            "common",
            SearchOrder::Newest,
            "common word, newest first",
            "≤ 5 ms at 1 M",
        ),
        (
            "rare7",
            SearchOrder::Rank,
            "rare word, best first",
            "≤ 100 ms at 1 M",
        ),
        (
            "common",
            SearchOrder::Rank,
            "common word, best first",
            "≤ 100 ms at 1 M",
        ),
    ] {
        let mut conn = db.read().await.unwrap();
        let mut times = Vec::new();
        let mut hits = 0;
        for _ in 0..scale.rounds * 3 {
            let owner = agent();
            let all = SearchFilter::default();
            let page = search::search(&mut conn, &owner, word, order, &all, PageLimit::from(20));
            let (took, page) = timed(page).await;
            times.push(took);
            hits = page.unwrap().len();
        }
        assert!(hits > 0, "{word} is said");
        let work = format!("search {} messages, {name}", events.len());
        table.ours(&work, &ms(median(times)), &format!("{hits} hits"), budget);
    }
    db.close().await;
}

/// A consistent copy of the database just searched.
pub(crate) async fn snapshot(dir: &Path, scale: Scale, table: &mut Table) {
    let source = dir.join("searched.sqlite");
    let conn = raw::open(&source, "FULL");
    let mut turns = Turns::default();
    let mut holds = Vec::new();
    for round in 0..scale.rounds {
        let target = |side: &str| dir.join(format!("copy-{side}-{round}.sqlite"));
        let ours = async {
            let mut source = SnapshotSource::open(&source, true).await.unwrap();
            let (held, run) = timed(async {
                source.hold().await.unwrap();
                let (run, gate) = source.start(&target("ours")).await.unwrap();
                gate.release().await.unwrap();
                run
            })
            .await;
            run.finish().await.unwrap();
            held
        };
        let (took, held) = timed(ours).await;
        turns.ours(took);
        holds.push(held);
        turns.raw(timed(async { raw::copy(&conn, &target("raw")) }).await.0);
        for side in ["ours", "raw"] {
            std::fs::remove_file(target(side)).unwrap();
        }
    }
    let megabytes = std::fs::metadata(&source).unwrap().len() / 1_000_000;
    table.both(
        &format!("copy a database of {megabytes} MB"),
        &turns,
        1,
        "≥ 0.8",
    );
    table.ours("… writers held", &ms(median(holds)), "", "≤ 10 ms");
}
