//! Recall over many memories with long vectors.

use std::path::Path;

use zeroclaw::db::Durability;
use zeroclaw::model::MemoryRecord;
use zeroclaw::store::agent::memory;
use zeroclaw::store::agent::memory::recall::{self, RecallScope};

use crate::Scale;
use crate::data;
use crate::measure::{Table, median, ms, timed};

/// Dimensions of common embedding models.
const DIMENSIONS: usize = 768;

/// Memories wanted: a page of ten, four times over.
const DEPTH: usize = 40;

/// Numbers that look like those of an embedding, the same in every run.
fn vector(seed: usize) -> Vec<f32> {
    let mut state = u32::try_from(seed).unwrap().wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from(u16::try_from(state >> 16).unwrap()) / 32_768.0 - 1.0
    };
    (0..DIMENSIONS).map(|_| next()).collect()
}

fn memory_of(number: usize) -> MemoryRecord {
    MemoryRecord {
        memory_id: format!("memory-{number}"),
        key: format!("key {number}"),
        category: ["core", "daily"][number % 2].to_owned(),
        namespace: "default".to_owned(),
        kind_json: None,
        importance: Some(0.5),
        pinned: false,
        is_trusted: true,
        session_hint: None,
        tenant_id: None,
        superseded_by: None,
        embedding_provider: None,
        embedding_model: None,
        created_at_ms: 0,
        updated_at_ms: 0,
        created_at_text: None,
        updated_at_text: None,
        expires_at_ms: None,
        content: format!("what was learned about {} and {}", number % 97, number % 13),
        embedding: Some(
            vector(number)
                .into_iter()
                .flat_map(f32::to_le_bytes)
                .collect(),
        ),
    }
}

/// By vector over all, by vector in one category, and by words.
pub(crate) async fn recall(dir: &Path, scale: Scale, table: &mut Table) {
    let db = data::open(&data::fresh(dir, "recalled"), Durability::Full).await;
    let mut bulk = db.begin_bulk().await.unwrap();
    let numbers: Vec<usize> = (0..scale.memories).collect();
    for slice in numbers.chunks(memory::MAX_INSERT) {
        let records: Vec<_> = slice.iter().map(|number| memory_of(*number)).collect();
        let records: Vec<_> = records.iter().collect();
        memory::insert(&mut bulk.tx(), &records).await.unwrap();
    }
    memory::rebuild(&mut bulk.tx()).await.unwrap();
    bulk.commit().await.unwrap();

    let all = RecallScope::default();
    let daily = RecallScope {
        categories: Some(vec!["daily".to_owned()]),
        ..RecallScope::default()
    };
    let mut conn = db.read().await.unwrap();
    let wanted = vector(scale.memories / 2);
    for (scope, name) in [(&all, ""), (&daily, ", one category")] {
        let mut times = Vec::new();
        for _ in 0..scale.rounds * 3 {
            let nearest = recall::by_vector(&mut conn, scope, &wanted, DEPTH);
            let (took, nearest) = timed(nearest).await;
            assert_eq!(nearest.unwrap().len(), DEPTH);
            times.push(took);
        }
        let work = format!("recall {} × {DIMENSIONS}{name}", scale.memories);
        table.ours(&work, &ms(median(times)), "", "≤ 50 ms");
    }
    let mut times = Vec::new();
    for _ in 0..scale.rounds * 3 {
        let found = recall::by_words(&mut conn, &all, "learned 17", 40);
        let (took, found) = timed(found).await;
        assert!(!found.unwrap().is_empty());
        times.push(took);
    }
    let work = format!("recall by words from {}", scale.memories);
    table.ours(&work, &ms(median(times)), "", "≤ 50 ms");
    drop(conn);
    db.close().await;
}
